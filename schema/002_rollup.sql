-- Schema version 2: sums by hour, by day and over all time (the pyramid), the ledger, retention.
-- This migration runs on an empty database only: rows of an older file are copied into a new one (daemon/store/sqlite_upgrade.c).
-- An upload belongs to the hour in which its window ends: hour = end / 3600 s, day = hour / 24, since the epoch. It is in exactly one
-- row of table upload or in exactly one hour row of table rollup. In addition a day row holds the sum of its folded hours, and the
-- row of level 2 holds the sum of the folded days.
-- All sums (uploads … shares) saturate at 2^63-1.

DROP TABLE upload;
CREATE TABLE upload (
    number INTEGER PRIMARY KEY,
    series INTEGER NOT NULL,
    hour INTEGER NOT NULL,
    host INTEGER NOT NULL,
    start INTEGER NOT NULL,
    length INTEGER NOT NULL,      -- of the window
    inexact INTEGER NOT NULL,     -- message_inexact bits
    started INTEGER NOT NULL,     -- processes that begin with this upload
    spread_group INTEGER NOT NULL, -- 0 … 15: random group of its process
    counts BLOB NOT NULL          -- proto/counts.h
) STRICT;
CREATE INDEX upload_by_series ON upload (series, hour);

-- (user, program, builds, labels), interned once, with the sums of its rows in the ledger.
DROP TABLE series;
CREATE TABLE series (
    id INTEGER PRIMARY KEY AUTOINCREMENT, -- never reused: rows of a removed series remain for a while
    build_set INTEGER NOT NULL,
    uid INTEGER NOT NULL,
    program INTEGER NOT NULL,     -- build
    labels BLOB NOT NULL,         -- name NUL value NUL …, ascending by name
    uploads INTEGER NOT NULL,
    processes INTEGER NOT NULL,
    ticks INTEGER NOT NULL,
    calls INTEGER NOT NULL,
    first INTEGER NOT NULL,       -- earliest start, latest end
    last INTEGER NOT NULL,
    inexact INTEGER NOT NULL,
    raw_uploads INTEGER NOT NULL, -- of the uploads, those in table upload
    raw_bytes INTEGER NOT NULL,   -- of their counts
    shares BLOB NOT NULL,         -- for each build of the set nanoseconds and calls: LEB128 numbers
    UNIQUE (build_set, uid, program, labels)
) STRICT;

-- What was accepted and is still stored, by series and hour.
CREATE TABLE ledger (
    series INTEGER NOT NULL,
    hour INTEGER NOT NULL,
    uploads INTEGER NOT NULL,
    processes INTEGER NOT NULL,
    ticks INTEGER NOT NULL,
    calls INTEGER NOT NULL,
    first INTEGER NOT NULL,
    last INTEGER NOT NULL,
    inexact INTEGER NOT NULL,
    raw_uploads INTEGER NOT NULL,
    raw_bytes INTEGER NOT NULL,
    raw_since INTEGER,            -- seconds: when the first of the raw uploads was accepted; NULL: there are none
    shares BLOB NOT NULL,
    PRIMARY KEY (series, hour)
) STRICT, WITHOUT ROWID;
CREATE INDEX ledger_by_hour ON ledger (hour, series);
CREATE INDEX ledger_raw ON ledger (raw_since, series, hour) WHERE raw_since IS NOT NULL;

-- Sums of rolled-up uploads. level 0: an hour, 1: a day, 2: all time.
CREATE TABLE rollup (
    id INTEGER PRIMARY KEY,
    series INTEGER NOT NULL,
    level INTEGER NOT NULL,
    at INTEGER NOT NULL,          -- number of the hour or day; 0 at level 2
    folded INTEGER NOT NULL,      -- 1: also in the sum of the level above; always 1 at level 2
    version INTEGER NOT NULL,     -- state.version at its last change: (id, version) identifies the content permanently
    number INTEGER NOT NULL,      -- of its first upload
    uploads INTEGER NOT NULL,
    processes INTEGER NOT NULL,
    ticks INTEGER NOT NULL,
    calls INTEGER NOT NULL,
    first INTEGER NOT NULL,
    last INTEGER NOT NULL,
    inexact INTEGER NOT NULL,
    hosts BLOB NOT NULL,          -- row ids, ascending: LEB128 differences
    counts BLOB NOT NULL,         -- core/rollup.h
    spread BLOB NOT NULL,
    UNIQUE (series, level, at)
) STRICT;
CREATE INDEX rollup_open ON rollup (series, level, at, number) WHERE folded = 0;
CREATE INDEX rollup_to_fold ON rollup (level, at, series) WHERE folded = 0;

-- Deleted series: no query sees them, and their rows are removed in slices.
CREATE TABLE doomed (
    series INTEGER PRIMARY KEY
) STRICT;

ALTER TABLE state ADD COLUMN version INTEGER NOT NULL DEFAULT 0;  -- last version given to a rollup
ALTER TABLE state ADD COLUMN retired_uploads INTEGER NOT NULL DEFAULT 0; -- accepted = those of all series + these
ALTER TABLE state ADD COLUMN retired_ticks INTEGER NOT NULL DEFAULT 0;
ALTER TABLE state ADD COLUMN retired_calls INTEGER NOT NULL DEFAULT 0;
ALTER TABLE state ADD COLUMN raw_uploads INTEGER NOT NULL DEFAULT 0;     -- sums over series
ALTER TABLE state ADD COLUMN raw_bytes INTEGER NOT NULL DEFAULT 0;
ALTER TABLE state ADD COLUMN rollups INTEGER NOT NULL DEFAULT 0;         -- rows
ALTER TABLE state ADD COLUMN retiring INTEGER NOT NULL DEFAULT 0;        -- days before this one are being removed to save space

ALTER TABLE build ADD COLUMN seen INTEGER NOT NULL DEFAULT 0;            -- latest end of what was removed of it
CREATE INDEX build_unseen ON build (seen) WHERE epoch = 0;
ALTER TABLE object_sender ADD COLUMN received INTEGER NOT NULL DEFAULT 0; -- time of the latest delivery
