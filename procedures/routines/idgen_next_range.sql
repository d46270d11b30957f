-- Allocates the next range of a type: one transaction, and one row that is
-- read only after it is committed. docs/dba-guide.md has examples.
-- For types that are neither sharded nor a calendar series; idgen_lease_range is
-- for all, and has the rule.
--
-- p_instance, p_history  the Redis instance and the line of its writes that the
--                        range will be published on; both NULL for other uses
-- p_consumed, p_elapsed_ms  ids used, and time, since the last load; both NULL
--                        keeps the length
-- p_floor                the highest range end that the caller knows, or NULL
-- p_owner                who asks, for the range log; NULL is the account
CREATE PROCEDURE idgen_next_range(
  IN p_name VARCHAR(512) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
  IN p_instance DECIMAL(20, 0),
  IN p_history VARCHAR(512) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
  IN p_consumed DECIMAL(20, 0),
  IN p_elapsed_ms DECIMAL(20, 0),
  IN p_floor DECIMAL(20, 0),
  IN p_owner VARCHAR(512) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin
)
    MODIFIES SQL DATA
BEGIN
  CALL idgen_lease_range(p_name, NULL, NULL, NULL, NULL, p_instance, p_history,
    p_consumed, p_elapsed_ms, p_floor, p_owner);
END
