-- Schema version 4. Only adds tables and columns, whatever the size: a database of version 2 or 3 is changed where it is, in one short
-- transaction. What its rows lack is filled in afterwards, slice by slice while uploads go on (daemon/store/sqlite_migrate.c).

-- One row for each step of a migration that is not finished. A new database has none.
CREATE TABLE migration (
    step TEXT PRIMARY KEY,        -- a name in daemon/store/sqlite_migrate.c
    cursor INTEGER NOT NULL,      -- of the step: where the next slice begins; 0 at first
    done INTEGER NOT NULL,        -- rows that were looked at
    total INTEGER NOT NULL        -- rows that were there when it began, about
) STRICT, WITHOUT ROWID;

-- 1: the symbols lack what an object worker says today. The executable is asked for again; until it comes they stay in use.
ALTER TABLE object ADD COLUMN outdated INTEGER NOT NULL DEFAULT 1;

-- Live processes: an upload that grows holds one slice of time of one process. A slice is 1, 5, 15 or 60 whole minutes of the clock, and
-- an upload is in the slice in which its window ends. Narrow ones become wider ones when they take too much space.
ALTER TABLE upload ADD COLUMN width INTEGER NOT NULL DEFAULT 0;     -- minutes of its slice; 0: it never grew
ALTER TABLE upload ADD COLUMN instance INTEGER NOT NULL DEFAULT 0;  -- whose slice it is: an id, which may be forgotten since
ALTER TABLE upload ADD COLUMN parts INTEGER NOT NULL DEFAULT 1;     -- how many uploads became this one
-- The uploads that have a slice, to be found by time.
CREATE TABLE slice (
    series INTEGER NOT NULL,
    width INTEGER NOT NULL,       -- minutes
    at INTEGER NOT NULL,          -- number of the slice: minutes since the epoch / width
    instance INTEGER NOT NULL,
    upload INTEGER NOT NULL,
    PRIMARY KEY (series, width, at, instance, upload)
) STRICT, WITHOUT ROWID;
CREATE INDEX slice_by_time ON slice (width, at, series);
-- Bytes of the counts of uploads that have a slice; part of raw_bytes.
ALTER TABLE ledger ADD COLUMN live_bytes INTEGER NOT NULL DEFAULT 0;
ALTER TABLE series ADD COLUMN live_bytes INTEGER NOT NULL DEFAULT 0;
ALTER TABLE state ADD COLUMN live_bytes INTEGER NOT NULL DEFAULT 0;

-- Which run of the daemon read the process last: one that was read by another run, and has not ended, has counted what is not stored.
ALTER TABLE instance ADD COLUMN run INTEGER NOT NULL DEFAULT 0;
CREATE INDEX instance_unread ON instance (run, series, seen) WHERE ended = 0;
-- Children that counted, less those that were read: above 0 their counts are not stored. A child may be read before its parent says that it
-- was born, so the number may be negative for a while.
ALTER TABLE instance ADD COLUMN missing INTEGER NOT NULL DEFAULT 0;
ALTER TABLE instance ADD COLUMN missing_since INTEGER NOT NULL DEFAULT 0; -- ns: the harvest before the one by which missing rose above 0
CREATE INDEX instance_missing ON instance (series, missing_since) WHERE missing > 0;
-- Children that were read before their parents were known.
CREATE TABLE instance_waiting (
    parent BLOB NOT NULL,         -- its name
    child INTEGER NOT NULL,       -- id
    uid INTEGER NOT NULL,         -- of the child
    PRIMARY KEY (parent, child)
) STRICT, WITHOUT ROWID;
CREATE INDEX instance_waiting_by_child ON instance_waiting (child);
-- A process that has changed its user since is found by its name.
CREATE INDEX instance_by_name ON instance (name);

-- Of the processes of a sum, how many are in each of the 16 random groups of processes, and of how many that is not known: 17 LEB128
-- numbers (daemon/core/process_groups.h). A sum without a row was made by an older version: nothing is known of its processes. Beside
-- table rollup, whose rows are too long to be read to their end for it. Of a single upload, the columns say it.
CREATE TABLE rollup_processes (
    series INTEGER NOT NULL,
    level INTEGER NOT NULL,
    at INTEGER NOT NULL,
    groups BLOB NOT NULL,
    PRIMARY KEY (series, level, at)
) STRICT, WITHOUT ROWID;

-- How many bytes each user stores: counts of uploads, sums, snapshots of live processes, symbols that nobody else has sent, and the rows
-- that name and list them (daemon/store/sqlite_users.c).
CREATE TABLE user_bytes (
    uid INTEGER PRIMARY KEY,
    bytes INTEGER NOT NULL
) STRICT;
ALTER TABLE doomed ADD COLUMN uid INTEGER; -- whose it was; NULL: its bytes were not counted
