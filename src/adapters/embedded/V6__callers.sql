-- What API tokens of programs that take ids have beside others.

-- Ids per second; NULL for no limit.
ALTER TABLE credential ADD COLUMN quota INTEGER;
-- 1 for the name of a client's certificate, which has no secret.
ALTER TABLE credential ADD COLUMN certificate INTEGER NOT NULL DEFAULT 0;
