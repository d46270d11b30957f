-- What API tokens of programs that take ids have beside others (docs/access.md).
--
-- Every statement can be repeated, as in V1 to V4.

-- quota: ids per second on each node, NULL for no limit. certificate: 1 for the name
-- of a client's certificate, which has no secret.
SET @idgen_step = (SELECT IF(COUNT(*) > 0, 'DO 0', CONCAT(
  'ALTER TABLE idgen_credential ',
  'ADD COLUMN quota BIGINT NULL, ',
  'ADD COLUMN certificate TINYINT NOT NULL DEFAULT 0'))
  FROM information_schema.columns
  WHERE table_schema = DATABASE() AND table_name = 'idgen_credential' AND column_name = 'quota');
PREPARE idgen_step FROM @idgen_step;
EXECUTE idgen_step;
DEALLOCATE PREPARE idgen_step;
