-- The keys of the opaque types, secret: for the service's account alone.
CREATE OR REPLACE VIEW idgen_type_keys AS
SELECT
  t.name AS name,
  k.from_slice AS from_slice,
  k.key_hex AS key_hex,
  k.created_ms AS created_ms
FROM idgen_type_key k
JOIN idgen_type t ON t.id = k.type_id
