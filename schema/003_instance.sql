-- Schema version 3: live processes. It only adds tables, so a database of version 2 is migrated in place.

-- A live process. Each harvest adds the difference to the last snapshot to the upload of the current hour.
CREATE TABLE instance (
    id INTEGER PRIMARY KEY,
    uid INTEGER NOT NULL,
    name BLOB NOT NULL,           -- 16 random bytes that identify the process permanently
    generation INTEGER NOT NULL,  -- of the snapshot: the number of harvests
    upload INTEGER,               -- number of its latest upload, which may have been rolled up since; NULL: none yet
    series INTEGER,               -- of that upload
    hour INTEGER,
    seen INTEGER NOT NULL,        -- when its latest harvest was received
    ended INTEGER NOT NULL,       -- 1: no more harvests will come
    UNIQUE (uid, name)
) STRICT;
CREATE INDEX instance_living ON instance (id) WHERE ended = 0;
CREATE INDEX instance_ended ON instance (seen, id) WHERE ended = 1;

-- All counts of a process up to its latest harvest. A table of its own, so that reading instances stays fast.
CREATE TABLE snapshot (
    instance INTEGER PRIMARY KEY, -- id
    bytes BLOB NOT NULL           -- as received
) STRICT;
CREATE INDEX snapshot_by_instance ON snapshot (instance); -- verification reads this, not the bytes
