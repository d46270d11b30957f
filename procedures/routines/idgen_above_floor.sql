-- The first position at or above the next one and a floor. A floor in a later
-- slice of an opaque type (p_slices is not NULL) tells of a database that lost
-- its latest writes, perhaps a new key among them: what is left of that slice
-- may have been permuted under a key that nobody knows any more, so it is
-- skipped. Past the last slice the answer is above every p_max. For the other
-- procedures; harmless on its own.
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
  IF p_slices IS NOT NULL THEN
    SET v_length = p_max DIV p_slices + (p_max MOD p_slices > 0);
    SET v_slice = (p_start - 1) DIV v_length;
    IF v_slice <> (p_next - 1) DIV v_length THEN
      SET v_wanted = CAST(v_slice + 1 AS DECIMAL(65, 0)) * v_length + 1;
      SET p_start = LEAST(v_wanted, 9223372036854775807);
    END IF;
  END IF;
END
