-- Refuses options of a type that break a rule (src/domain/options.rs has the
-- same rules), and answers with them in the one way in which they are stored
-- (what is a default is left out, what has a default inside is written out), and
-- with the highest position that they allow. For the other procedures; harmless
-- on its own.
--
-- What it cannot check is the grammar of a format, whether its date tells the
-- period, and the name of a time zone: nodes refuse a type whose format or time zone they do not understand.
CREATE PROCEDURE idgen_check_options(
  IN p_mode VARCHAR(512) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
  IN p_options LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
  IN p_first_id DECIMAL(20, 0),
  IN p_max_id DECIMAL(20, 0),
  OUT p_stored VARCHAR(2048) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
  OUT p_max_position BIGINT
)
    READS SQL DATA
BEGIN
  DECLARE v_message VARCHAR(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
  DECLARE v_options, v_stored LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
  DECLARE v_limit, v_loss, v_format, v_calendar, v_zone, v_unit LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
  DECLARE v_opaque, v_sites, v_snowflake LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
  DECLARE v_app, v_slices, v_count, v_site, v_highest, v_width BIGINT;
  DECLARE v_time_bits, v_worker_bits, v_sequence_bits, v_epoch, v_now BIGINT;

  IF p_mode IS NULL OR p_mode NOT IN ('strict', 'segment', 'sharded', 'snowflake') THEN
    SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 45102,
      MESSAGE_TEXT = 'mode is not known; this version has: strict, segment, sharded, snowflake';
  END IF;

  SET v_options = COALESCE(p_options, '{}');
  IF LENGTH(v_options) > 2048 THEN
    SET v_message = CONCAT('options has ', LENGTH(v_options), ' bytes; the limit is 2048');
    SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 45120, MESSAGE_TEXT = v_message;
  END IF;
  CALL idgen_check_object('options', 45120, v_options,
    ',at_limit,on_redis_loss,format,calendar,time_zone,opaque,app_id,snowflake,sites,');
  CALL idgen_json_text('at_limit', 45121, v_options, '$.at_limit', v_limit);
  CALL idgen_json_text('on_redis_loss', 45129, v_options, '$.on_redis_loss', v_loss);
  CALL idgen_json_text('format', 45122, v_options, '$.format', v_format);
  CALL idgen_json_text('calendar', 45123, v_options, '$.calendar', v_calendar);
  CALL idgen_json_text('time_zone', 45124, v_options, '$.time_zone', v_zone);
  SET v_limit = COALESCE(v_limit, 'error');
  SET v_loss = COALESCE(v_loss, 'fail');
  IF v_limit NOT IN ('error', 'cycle') THEN
    SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 45121, MESSAGE_TEXT = 'at_limit must be error or cycle';
  END IF;
  IF v_loss NOT IN ('fail', 'segment') THEN
    SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 45129, MESSAGE_TEXT = 'on_redis_loss must be fail or segment';
  END IF;
  IF v_calendar NOT IN ('daily', 'monthly', 'yearly') THEN
    SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 45123,
      MESSAGE_TEXT = 'calendar must be daily, monthly or yearly';
  END IF;
  -- A null is as good as nothing. Compared as text, not as JSON.
  SET v_opaque = JSON_EXTRACT(v_options, '$.opaque');
  SET v_opaque = NULLIF(v_opaque, 'null');
  SET v_sites = JSON_EXTRACT(v_options, '$.sites');
  SET v_sites = NULLIF(v_sites, 'null');
  SET v_snowflake = JSON_EXTRACT(v_options, '$.snowflake');
  SET v_snowflake = NULLIF(v_snowflake, 'null');
  IF JSON_TYPE(JSON_EXTRACT(v_options, '$.app_id')) <> 'NULL' THEN
    CALL idgen_json_number('app_id', 45126, v_options, '$.app_id', NULL, 0, 255, v_app);
  END IF;

  IF v_loss <> 'fail' AND p_mode <> 'strict' THEN
    SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 45129,
      MESSAGE_TEXT = 'on_redis_loss is for types of mode strict only';
  END IF;
  IF v_limit <> 'error' AND p_mode = 'snowflake' THEN
    SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 45121,
      MESSAGE_TEXT = 'at_limit is for types of mode strict or segment or sharded only';
  END IF;
  IF v_opaque IS NOT NULL AND p_mode = 'snowflake' THEN
    SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 45125,
      MESSAGE_TEXT = 'opaque is for types of mode strict or segment or sharded only';
  END IF;
  IF v_calendar IS NOT NULL AND p_mode NOT IN ('strict', 'segment') THEN
    SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 45123,
      MESSAGE_TEXT = 'calendar is for types of mode strict or segment only';
  END IF;
  IF v_sites IS NOT NULL AND p_mode <> 'segment' THEN
    SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 45128,
      MESSAGE_TEXT = 'sites is for types of mode segment only';
  END IF;
  IF v_app IS NOT NULL AND p_mode <> 'sharded' THEN
    SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 45126,
      MESSAGE_TEXT = 'app_id is for types of mode sharded only';
  END IF;
  IF v_snowflake IS NOT NULL AND p_mode <> 'snowflake' THEN
    SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 45127,
      MESSAGE_TEXT = 'snowflake is for types of mode snowflake only';
  END IF;
  IF p_mode = 'sharded' AND v_app IS NULL THEN
    SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 45126,
      MESSAGE_TEXT = 'app_id is missing: a sharded type needs one, from 0 to 255';
  END IF;

  IF v_opaque IS NOT NULL AND v_limit = 'cycle' THEN
    SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 45125,
      MESSAGE_TEXT = 'opaque does not go with at_limit cycle: its ids would repeat in plain order';
  END IF;
  IF v_calendar IS NOT NULL AND v_opaque IS NOT NULL THEN
    SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 45125,
      MESSAGE_TEXT = 'opaque does not go with calendar: its numbers are short and in order';
  END IF;
  IF v_calendar IS NOT NULL AND v_limit = 'cycle' THEN
    SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 45121,
      MESSAGE_TEXT = 'at_limit does not go with calendar: its numbers restart with the period';
  END IF;
  IF v_calendar IS NOT NULL AND v_sites IS NOT NULL THEN
    SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 45128,
      MESSAGE_TEXT = 'sites does not go with calendar: two sites would disagree on the day';
  END IF;

  CALL idgen_check_object('opaque', 45125, v_opaque, ',slices,');
  CALL idgen_json_number('opaque.slices', 45130, v_opaque, '$.slices', 16, 1, 1024, v_slices);
  CALL idgen_check_object('sites', 45128, v_sites, ',count,site,');
  IF v_sites IS NOT NULL THEN
    IF NOT JSON_CONTAINS_PATH(v_sites, 'all', '$.count', '$.site') THEN
      SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 45128,
        MESSAGE_TEXT = 'sites needs count, how many there can ever be, and site, which one this is';
    END IF;
    CALL idgen_json_number('sites.count', 45131, v_sites, '$.count', NULL, 2, 1024, v_count);
    CALL idgen_json_number('sites.site', 45132, v_sites, '$.site', NULL, 0, v_count - 1, v_site);
  END IF;
  -- The defaults and limits are those of src/domain/snowflake.rs.
  IF v_snowflake IS NOT NULL THEN
    CALL idgen_check_object('snowflake', 45127, v_snowflake, ',time_bits,worker_bits,sequence_bits,unit,epoch_ms,');
    CALL idgen_json_number('snowflake.time_bits', 45133, v_snowflake, '$.time_bits', 41, 28, 53, v_time_bits);
    CALL idgen_json_number('snowflake.worker_bits', 45134, v_snowflake, '$.worker_bits', 10, 1, 20, v_worker_bits);
    CALL idgen_json_number('snowflake.sequence_bits', 45135, v_snowflake, '$.sequence_bits', 12, 1, 24, v_sequence_bits);
    SET v_now = TIMESTAMPDIFF(MICROSECOND, '1970-01-01 00:00:00', UTC_TIMESTAMP(3)) DIV 1000;
    CALL idgen_json_number('snowflake.epoch_ms', 45136, v_snowflake, '$.epoch_ms', 1288834974657, 0, v_now, v_epoch);
    CALL idgen_json_text('snowflake.unit', 45127, v_snowflake, '$.unit', v_unit);
    SET v_unit = COALESCE(v_unit, 'ms');
    IF v_unit NOT IN ('ms', 's') THEN
      SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 45127, MESSAGE_TEXT = 'snowflake.unit must be ms or s';
    END IF;
    IF v_time_bits + v_worker_bits + v_sequence_bits > 63 THEN
      SET v_message = CONCAT('snowflake.time_bits ', v_time_bits, ', worker_bits ', v_worker_bits, ' and sequence_bits ', v_sequence_bits,
        ' are ', v_time_bits + v_worker_bits + v_sequence_bits, ' together: an id has 63');
      SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 45133, MESSAGE_TEXT = v_message;
    END IF;
  END IF;

  CALL idgen_check_text('format', 45122, v_format, 255);
  CALL idgen_check_text('time_zone', 45124, v_zone, 64);
  IF v_zone IS NOT NULL AND v_format IS NULL THEN
    SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 45124,
      MESSAGE_TEXT = 'time_zone needs a format with a date, which it is for';
  END IF;

  IF p_mode = 'snowflake' THEN
    -- Nothing is counted, so there is nothing to limit.
    IF p_first_id <> 1 OR p_max_id <> 9223372036854775806 THEN
      SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 45106,
        MESSAGE_TEXT = 'first_id and max_id have no meaning for a snowflake type: leave them out';
    END IF;
    SET v_highest = p_max_id;
  ELSE
    -- The highest number before it is composed into an id, which must not pass
    -- max_id: 14 bits of a sharded id are its shard and its app.
    SET v_highest = CASE
      WHEN p_mode = 'sharded' THEN (p_max_id + 1) DIV 16384 - 1
      WHEN v_sites IS NOT NULL THEN (p_max_id - v_site) DIV v_count
      ELSE p_max_id END;
    IF p_first_id > v_highest THEN
      SET v_message = CONCAT('max_id ', p_max_id, ' leaves no room for first_id ', p_first_id, ' in this mode');
      SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 45106, MESSAGE_TEXT = v_message;
    END IF;
    -- FF1 asks for a million at least (NIST SP 800-38G Rev. 1, section 5).
    IF v_opaque IS NOT NULL AND v_highest < 1000000 * v_slices THEN
      SET v_message = CONCAT('max_id ', p_max_id, ' is too small for an opaque type of ', v_slices,
        ' slices: each must hold 1000000 ids');
      SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 45106, MESSAGE_TEXT = v_message;
    END IF;
    IF v_calendar IS NOT NULL THEN
      -- A position has 40 bits of the number, below the period.
      CALL idgen_check_number('max_id', 45106, p_max_id, p_first_id, 1099511627774);
    END IF;
  END IF;
  IF v_calendar IS NOT NULL AND (v_format IS NULL OR LOCATE('{date:', v_format) = 0) THEN
    SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 45122,
      MESSAGE_TEXT = 'a calendar series needs a format that holds the date, such as {date:yyMMdd}{seq:06}';
  END IF;

  CALL idgen_format_limit(v_format, v_width);
  IF v_width < p_max_id THEN
    SET v_message = CONCAT('format has room for numbers up to ', v_width, ', but max_id is ', p_max_id, ': widen it or lower max_id');
    SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 45122, MESSAGE_TEXT = v_message;
  END IF;

  -- Always in this order, so that texts can be compared.
  SET v_stored = CONCAT(
    IF(v_limit = 'error', '', ',"at_limit":"cycle"'),
    IF(v_loss = 'fail', '', ',"on_redis_loss":"segment"'),
    COALESCE(CONCAT(',"format":', JSON_QUOTE(v_format)), ''),
    COALESCE(CONCAT(',"calendar":"', v_calendar, '"'), ''),
    COALESCE(CONCAT(',"time_zone":', JSON_QUOTE(v_zone)), ''),
    IF(v_opaque IS NULL, '', CONCAT(',"opaque":{"slices":', v_slices, '}')),
    COALESCE(CONCAT(',"app_id":', v_app), ''),
    IF(v_snowflake IS NULL, '', CONCAT(',"snowflake":{"time_bits":', v_time_bits, ',"worker_bits":', v_worker_bits,
      ',"sequence_bits":', v_sequence_bits, ',"unit":"', v_unit, '","epoch_ms":', v_epoch, '}')),
    IF(v_sites IS NULL, '', CONCAT(',"sites":{"count":', v_count, ',"site":', v_site, '}')));
  SET p_stored = CONCAT('{', SUBSTRING(v_stored, 2), '}');
  SET p_max_position = IF(v_limit = 'cycle', 9223372036854775806, v_highest);
END
