-- The first position at or above the next one and a floor. A floor above the
-- next position tells of a database that lost its latest writes. In an opaque
-- type (p_slices is not NULL) there may have been a new key among them, or a new
-- one may have been given since: the slice of the floor may have been permuted
-- under a key that nobody knows any more, so what is left of it is skipped. Past
-- the last slice the answer is above every p_max. For the other procedures;
-- harmless on its own.
CREATE PROCEDURE idgen_above_floor(
  IN p_next BIGINT,
  IN p_floor BIGINT,
  IN p_max BIGINT,
  IN p_slices BIGINT,
  OUT p_start BIGINT
)
    NO SQL
BEGIN
  DECLARE v_length, v_slice BIGINT;
  DECLARE v_wanted DECIMAL(65, 0);

  SET p_start = GREATEST(p_next, p_floor);
  IF p_slices IS NOT NULL AND p_floor > p_next THEN
    SET v_length = p_max DIV p_slices + (p_max MOD p_slices > 0);
    SET v_slice = (p_start - 1) DIV v_length;
    SET v_wanted = CAST(v_slice + 1 AS DECIMAL(65, 0)) * v_length + 1;
    SET p_start = LEAST(v_wanted, 9223372036854775807);
  END IF;
END
