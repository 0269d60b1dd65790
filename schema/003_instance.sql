-- Schema version 3: live processes (DECISIONS 23). Only adds tables: a database of version 2 is changed where it is.

-- A process that counts into memory which profd reads. What was counted since its snapshot is added to its upload of the hour.
CREATE TABLE instance (
    id INTEGER PRIMARY KEY,
    uid INTEGER NOT NULL,
    name BLOB NOT NULL,           -- 16 random bytes, for ever those of this process
    generation INTEGER NOT NULL,  -- of the snapshot: 1 with the first harvest, then one more each
    upload INTEGER,               -- number of its latest upload, which may have become part of a sum since; NULL: none yet
    series INTEGER,               -- of that upload
    hour INTEGER,
    seen INTEGER NOT NULL,        -- when its latest harvest was received
    ended INTEGER NOT NULL,       -- 1: nothing more is expected of it
    UNIQUE (uid, name)
) STRICT;
CREATE INDEX instance_living ON instance (id) WHERE ended = 0;
CREATE INDEX instance_ended ON instance (seen, id) WHERE ended = 1;

-- All that was counted of it, as its upload said. Apart from the instances, so that these are read quickly.
CREATE TABLE snapshot (
    instance INTEGER PRIMARY KEY, -- id
    bytes BLOB NOT NULL           -- as they came
) STRICT;
CREATE INDEX snapshot_by_instance ON snapshot (instance); -- verification reads this, not the bytes
