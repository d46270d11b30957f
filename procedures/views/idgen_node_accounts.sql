-- The hashes of the passwords, secret: for the service's account alone.
CREATE OR REPLACE VIEW idgen_node_accounts AS
SELECT
  a.name AS name,
  a.password_hash AS password_hash
FROM idgen_account a
