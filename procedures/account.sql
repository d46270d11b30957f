-- The account of the service: it may call the procedures and read the views,
-- and nothing else. It cannot read or write a table.
--
-- Run it once as an administrator, in the database of the service, after
-- `idgen schema apply`, with a password and a host of your own:
--
--   mysql -u root -p idgen < procedures/account.sql
--
-- EXECUTE is granted on the whole database (`*` is the current one), because
-- MySQL forgets a grant on a single procedure when that procedure is replaced.
-- So keep no procedures of others in this database.
CREATE USER IF NOT EXISTS 'idgen_app'@'%' IDENTIFIED BY 'change-me';
GRANT EXECUTE ON * TO 'idgen_app'@'%';
GRANT SELECT ON idgen_schema_version TO 'idgen_app'@'%';
GRANT SELECT ON idgen_types TO 'idgen_app'@'%';
GRANT SELECT ON idgen_instances TO 'idgen_app'@'%';
GRANT SELECT ON idgen_node_instances TO 'idgen_app'@'%';
GRANT SELECT ON idgen_migrations TO 'idgen_app'@'%';
GRANT SELECT ON idgen_changes TO 'idgen_app'@'%';
GRANT SELECT ON idgen_ranges TO 'idgen_app'@'%';
GRANT SELECT ON idgen_histories TO 'idgen_app'@'%';
GRANT SELECT ON idgen_shards TO 'idgen_app'@'%';
GRANT SELECT ON idgen_type_keys TO 'idgen_app'@'%';
GRANT SELECT ON idgen_workers TO 'idgen_app'@'%';
GRANT SELECT ON idgen_past_workers TO 'idgen_app'@'%';
GRANT SELECT ON idgen_accounts TO 'idgen_app'@'%';
GRANT SELECT ON idgen_node_accounts TO 'idgen_app'@'%';
GRANT SELECT ON idgen_credentials TO 'idgen_app'@'%';
