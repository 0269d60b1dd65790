-- Version 13: the table of an earlier way to keep segments in ClickHouse. Nothing is stored here any more. A database with rows in it is
-- refused: they stand for sums that are elsewhere, in a form that no version reads now.
CREATE TABLE remote (
    id INTEGER PRIMARY KEY,
    series INTEGER NOT NULL,
    hour INTEGER NOT NULL,        -- in which the segments count
    hash BLOB NOT NULL,           -- 16 bytes: what names the series on the server
    number INTEGER NOT NULL,      -- as in table rollup
    version INTEGER NOT NULL,     -- changes with every segment
    segments INTEGER NOT NULL,
    digests INTEGER NOT NULL,     -- first 8 bytes of each segment's digest, all of them by exclusive or
    bytes INTEGER NOT NULL,       -- of the segments
    since INTEGER NOT NULL,       -- number of the first one's arrival: rows of the server with a smaller one were removed here
    sent_from INTEGER NOT NULL,   -- hours of their keys on the server
    sent_to INTEGER NOT NULL,
    UNIQUE (series, hour)
) STRICT;
