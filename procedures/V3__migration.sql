-- What moving id types between Redis instances needs (docs/dba-guide.md).
--
-- Every statement can be repeated, as in V1 and V2.

-- moving_to: where the type is on its way. It may not be removed; moved_from, where
-- it was before, may. generation counts the steps of migrations, and stands in the
-- seal that closes the type on the instance that it leaves.
SET @idgen_step = (SELECT IF(COUNT(*) > 0, 'DO 0', CONCAT(
  'ALTER TABLE idgen_type ',
  'ADD COLUMN generation BIGINT NOT NULL DEFAULT 0, ',
  'ADD COLUMN moving_to BIGINT NULL, ',
  'ADD COLUMN moved_from BIGINT NULL, ',
  'ADD COLUMN moved_ms BIGINT NOT NULL DEFAULT 0, ',
  'ADD KEY idgen_type_moving (moving_to), ',
  'ADD CONSTRAINT idgen_type_moving FOREIGN KEY (moving_to) REFERENCES idgen_redis_instance (id)'))
  FROM information_schema.columns
  WHERE table_schema = DATABASE() AND table_name = 'idgen_type' AND column_name = 'generation');
PREPARE idgen_step FROM @idgen_step;
EXECUTE idgen_step;
DEALLOCATE PREPARE idgen_step;

-- drain_to: where its types go one after another; it gets no new ones.
SET @idgen_step = (SELECT IF(COUNT(*) > 0, 'DO 0', CONCAT(
  'ALTER TABLE idgen_redis_instance ',
  'ADD COLUMN drain_to BIGINT NULL, ',
  'ADD KEY idgen_redis_instance_drain (drain_to), ',
  'ADD CONSTRAINT idgen_redis_instance_drain FOREIGN KEY (drain_to) REFERENCES idgen_redis_instance (id)'))
  FROM information_schema.columns
  WHERE table_schema = DATABASE() AND table_name = 'idgen_redis_instance' AND column_name = 'drain_to');
PREPARE idgen_step FROM @idgen_step;
EXECUTE idgen_step;
DEALLOCATE PREPARE idgen_step;
