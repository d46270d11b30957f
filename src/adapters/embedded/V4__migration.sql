-- Moving types between Redis instances.

ALTER TABLE redis_instance ADD COLUMN drain_to INTEGER REFERENCES redis_instance (id);

ALTER TABLE id_type ADD COLUMN generation INTEGER NOT NULL DEFAULT 0;
ALTER TABLE id_type ADD COLUMN moving_to INTEGER REFERENCES redis_instance (id);
-- May be removed, so it refers to nothing.
ALTER TABLE id_type ADD COLUMN moved_from INTEGER;
ALTER TABLE id_type ADD COLUMN moved_ms INTEGER NOT NULL DEFAULT 0;

CREATE INDEX id_type_by_target ON id_type (moving_to) WHERE moving_to IS NOT NULL;

-- Made anew: on which instance a history was, and in which order they came. Of those
-- that were there only the last is known, which is the current one.
CREATE TABLE type_history_v4 (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    name        TEXT NOT NULL REFERENCES id_type (name),
    history     TEXT NOT NULL,
    instance_id INTEGER NOT NULL,
    UNIQUE (name, history)
) STRICT;

INSERT INTO type_history_v4 (name, history, instance_id)
    SELECT h.name, h.history, t.instance_id
    FROM type_history h JOIN id_type t USING (name)
    ORDER BY h.name, h.history IS t.history, h.history;

DROP TABLE type_history;

ALTER TABLE type_history_v4 RENAME TO type_history;
