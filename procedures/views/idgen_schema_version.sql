-- The version of the schema; nodes refuse to start on one that they do not know.
CREATE OR REPLACE VIEW idgen_schema_version AS
SELECT MAX(version) AS version
FROM idgen_schema_history
