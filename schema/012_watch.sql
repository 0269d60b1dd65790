-- Schema version 12: what the watch list of the configuration has counted and compared. Only adds a table.
CREATE TABLE watch (
    kind INTEGER NOT NULL,        -- 0 the count of a function, 1 a verdict on two versions
    key TEXT NOT NULL,            -- watch, program and version, function; lines
    changed INTEGER NOT NULL,     -- ns
    document TEXT NOT NULL,       -- JSON
    PRIMARY KEY (kind, key)
) STRICT, WITHOUT ROWID;
