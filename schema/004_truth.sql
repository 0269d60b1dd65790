-- Schema version 4. It only adds tables and columns, so a database of version 2 or 3 is migrated in place by one short transaction,
-- whatever its size. Missing values of its rows are filled in afterwards, in slices, while uploads go on (daemon/store/sqlite_migrate.c).

-- One row for each step of a migration that is not finished. A new database has none.
CREATE TABLE migration (
    step TEXT PRIMARY KEY,        -- a name in daemon/store/sqlite_migrate.c
    cursor INTEGER NOT NULL,      -- where the next slice of the step begins; 0 at first
    done INTEGER NOT NULL,        -- rows processed
    total INTEGER NOT NULL        -- approximate number of rows when the step began
) STRICT, WITHOUT ROWID;

-- 1: the symbols were made by an older object worker and lack some fields. The executable is requested again; until it arrives they
-- remain in use.
ALTER TABLE object ADD COLUMN outdated INTEGER NOT NULL DEFAULT 1;

-- Live processes: harvests of one process are added to the upload of the current slice of time. A slice is 1, 5, 15 or 60 whole minutes
-- of the clock, and an upload is in the slice in which its window ends. Narrow slices are merged into wider ones when they take too much
-- space.
ALTER TABLE upload ADD COLUMN width INTEGER NOT NULL DEFAULT 0;     -- minutes of its slice; 0: it has none
ALTER TABLE upload ADD COLUMN instance INTEGER NOT NULL DEFAULT 0;  -- the slice's instance: an id, which may have been removed since
ALTER TABLE upload ADD COLUMN parts INTEGER NOT NULL DEFAULT 1;     -- number of uploads merged into this one
-- The uploads that have a slice, ordered by time.
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

-- The run of the daemon that read the process last. If it is not the current run and the process has not ended, some of its counts may
-- not be stored.
ALTER TABLE instance ADD COLUMN run INTEGER NOT NULL DEFAULT 0;
CREATE INDEX instance_unread ON instance (run, series, seen) WHERE ended = 0;
-- Children that counted, less the children that were read. If positive, counts of children are not stored. A child may be read before
-- its parent reports it, so the number may be negative for a while.
ALTER TABLE instance ADD COLUMN missing INTEGER NOT NULL DEFAULT 0;
ALTER TABLE instance ADD COLUMN missing_since INTEGER NOT NULL DEFAULT 0; -- ns: the harvest before the one by which missing rose above 0
CREATE INDEX instance_missing ON instance (series, missing_since) WHERE missing > 0;
-- Children that were read before their parents attached.
CREATE TABLE instance_waiting (
    parent BLOB NOT NULL,         -- its name
    child INTEGER NOT NULL,       -- id
    uid INTEGER NOT NULL,         -- of the child
    PRIMARY KEY (parent, child)
) STRICT, WITHOUT ROWID;
CREATE INDEX instance_waiting_by_child ON instance_waiting (child);
-- Finds a process that has changed its user, by its name.
CREATE INDEX instance_by_name ON instance (name);

-- For each sum, the number of its processes in each of the 16 random groups, and the number of processes without a known group: 17 LEB128
-- numbers (daemon/core/random_groups.h). A sum without a row was made by an older version: its groups are unknown. A table of its own,
-- because rows of table rollup are too long to be read to their end for it. A single upload has this in its columns.
CREATE TABLE rollup_processes (
    series INTEGER NOT NULL,
    level INTEGER NOT NULL,
    at INTEGER NOT NULL,
    groups BLOB NOT NULL,
    PRIMARY KEY (series, level, at)
) STRICT, WITHOUT ROWID;

-- How many bytes each user stores: counts of uploads, sums, snapshots of live processes, symbols that no other user has sent, and the rows
-- that name and list them (daemon/store/sqlite_users.c).
CREATE TABLE user_bytes (
    uid INTEGER PRIMARY KEY,
    bytes INTEGER NOT NULL
) STRICT;
ALTER TABLE doomed ADD COLUMN uid INTEGER; -- its user; NULL: its bytes were not charged
