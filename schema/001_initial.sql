-- profd's database, schema version 1. Times are nanoseconds since the epoch, UTC; `number` numbers what was accepted and is never reused.
-- Sums by hour and day, spread and ledger will be tables beside these, keyed by series.

-- One row: the last numbers that were given, and the totals that /metrics shows.
CREATE TABLE state (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    number INTEGER NOT NULL,      -- last number given to an upload or to the delivery of an object
    list_epoch INTEGER NOT NULL,  -- number at which the list of all builds last changed
    salt INTEGER NOT NULL,        -- random: epochs of two databases differ
    uploads INTEGER NOT NULL,
    ticks INTEGER NOT NULL,
    calls INTEGER NOT NULL
) STRICT;
INSERT INTO state VALUES (1, 0, 0, abs(random() % 262144), 0, 0, 0);

CREATE TABLE host (
    id INTEGER PRIMARY KEY,
    machine TEXT NOT NULL UNIQUE  -- machine-id, '' if unknown
) STRICT;

CREATE TABLE build (
    id INTEGER PRIMARY KEY,
    build_id TEXT NOT NULL UNIQUE,
    epoch INTEGER NOT NULL,       -- number of the last change of a report on it over all users; 0: never uploaded
    named INTEGER NOT NULL        -- 1: some object of it has names
) STRICT;

-- The builds of a process in load order: row ids as 32-bit little-endian numbers.
CREATE TABLE build_set (
    id INTEGER PRIMARY KEY,
    builds BLOB NOT NULL UNIQUE
) STRICT;
CREATE TABLE build_set_member (
    build INTEGER NOT NULL,
    build_set INTEGER NOT NULL,
    PRIMARY KEY (build, build_set)
) STRICT, WITHOUT ROWID;
CREATE INDEX build_set_member_by_set ON build_set_member (build_set, build);
-- The users of processes with this set.
CREATE TABLE build_set_user (
    build_set INTEGER NOT NULL,
    uid INTEGER NOT NULL,
    PRIMARY KEY (build_set, uid)
) STRICT, WITHOUT ROWID;

-- (user, program, builds, labels), interned once.
CREATE TABLE series (
    id INTEGER PRIMARY KEY,
    build_set INTEGER NOT NULL,
    uid INTEGER NOT NULL,
    program INTEGER NOT NULL,     -- build
    labels BLOB NOT NULL,         -- name NUL value NUL …, ascending by name
    uploads INTEGER NOT NULL,
    UNIQUE (build_set, uid, program, labels)
) STRICT;

CREATE TABLE upload (
    number INTEGER PRIMARY KEY,
    series INTEGER NOT NULL,
    host INTEGER NOT NULL,
    start INTEGER NOT NULL,
    length INTEGER NOT NULL,      -- of the window
    first_hour INTEGER NOT NULL,  -- start / 3600 s
    last_hour INTEGER NOT NULL,   -- (start + length) / 3600 s
    inexact INTEGER NOT NULL,     -- message_inexact bits
    started INTEGER NOT NULL,     -- processes that begin with this upload
    counts BLOB NOT NULL          -- proto/counts.h
) STRICT;
CREATE INDEX upload_by_series ON upload (series, last_hour, first_hour);

-- Upload ids already counted: everything up to mark, and the ranges above it (pairs of 32-bit little-endian numbers).
CREATE TABLE sender (
    host INTEGER NOT NULL,
    uid INTEGER NOT NULL,
    sender BLOB NOT NULL,
    mark INTEGER NOT NULL,
    seen INTEGER NOT NULL,        -- seconds
    above BLOB,
    PRIMARY KEY (host, uid, sender)
) STRICT, WITHOUT ROWID;

-- What lists show, by build and user. Sums saturate at 2^63-1.
CREATE TABLE build_user (
    build INTEGER NOT NULL,
    uid INTEGER NOT NULL,
    epoch INTEGER NOT NULL,       -- number of the last change of a report on it for this user
    added INTEGER NOT NULL,       -- number of the first upload
    is_program INTEGER NOT NULL,
    first INTEGER NOT NULL,
    last INTEGER NOT NULL,
    uploads INTEGER NOT NULL,
    processes INTEGER NOT NULL,
    nanoseconds INTEGER NOT NULL,
    calls INTEGER NOT NULL,
    inexact INTEGER NOT NULL,
    name TEXT NOT NULL,           -- as this user first delivered it
    PRIMARY KEY (build, uid)
) STRICT, WITHOUT ROWID;
CREATE INDEX build_user_by_uid ON build_user (uid, build);

-- When the list of builds last changed for a user.
CREATE TABLE user_epoch (
    uid INTEGER PRIMARY KEY,
    epoch INTEGER NOT NULL
) STRICT;

-- Symbols of executables. variant '' is a file that could not be read; object_sender.note has the reason.
CREATE TABLE object (
    id INTEGER PRIMARY KEY,
    build INTEGER NOT NULL,
    variant TEXT NOT NULL,
    has_names INTEGER NOT NULL,
    size INTEGER NOT NULL,        -- of the encoding
    compressed INTEGER NOT NULL,  -- 1: encoded is a zstd frame
    bounds BLOB NOT NULL,
    encoded BLOB NOT NULL
) STRICT;
CREATE INDEX object_by_build ON object (build, variant);
CREATE TABLE object_sender (
    object INTEGER NOT NULL,
    uid INTEGER NOT NULL,
    trusted INTEGER NOT NULL,
    delivered INTEGER NOT NULL,   -- number of the latest delivery
    name TEXT NOT NULL,
    note TEXT NOT NULL,
    PRIMARY KEY (object, uid)
) STRICT, WITHOUT ROWID;
