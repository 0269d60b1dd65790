-- Schema version 6: what a centre accepts from hosts (profd-segment(5)). Only adds tables and columns: a database of an older version is
-- changed where it is. Without `gate` they stay as they are here.

-- The ends of the windows in an open segment are in [since, until): ns.
ALTER TABLE segment ADD COLUMN since INTEGER NOT NULL DEFAULT 0;
ALTER TABLE segment ADD COLUMN until INTEGER NOT NULL DEFAULT 9223372036854775807;

-- One row. Always: counted = the series of the user STORE_TENANT (daemon/store/arrivals.h) + removed = the sum of table arrival, of outcome
-- 0, and of what table epoch says of rows that are gone.
CREATE TABLE centre (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    incarnation BLOB NOT NULL,    -- 16 random bytes, drawn anew at each restore
    number INTEGER NOT NULL,      -- last number given to an arrival
    backup INTEGER NOT NULL,      -- the latest backup contains the arrivals with numbers up to this one
    last INTEGER NOT NULL,        -- ns: when the latest one was received; 0: none was
    counted_uploads INTEGER NOT NULL,
    counted_ticks INTEGER NOT NULL,
    counted_calls INTEGER NOT NULL,
    removed_uploads INTEGER NOT NULL, -- of these, by retention or delete
    removed_ticks INTEGER NOT NULL,
    removed_calls INTEGER NOT NULL
) STRICT;
INSERT INTO centre VALUES (1, randomblob(16), 0, 0, 0, 0, 0, 0, 0, 0, 0);

-- The hosts that have arrived, by the identity in their certificates.
CREATE TABLE fleet_host (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    identity BLOB NOT NULL UNIQUE, -- 16 bytes
    name TEXT NOT NULL,           -- in the latest certificate: value of the label `host`
    first INTEGER NOT NULL,       -- ns: of its arrivals
    last INTEGER NOT NULL,
    clock INTEGER NOT NULL,       -- ns: how far its clock is ahead of the centre's
    number INTEGER NOT NULL,      -- last number that its database gave
    restored INTEGER NOT NULL     -- ns: when that number was smaller than before; 0: it never was
) STRICT;

-- Epochs of hosts' daemons. An epoch belongs to the host that sent it first.
CREATE TABLE epoch (
    id INTEGER PRIMARY KEY,
    epoch BLOB NOT NULL UNIQUE,   -- 12 bytes
    host INTEGER NOT NULL,        -- fleet_host
    mark INTEGER NOT NULL,        -- every sequence up to it has arrived; of these, table arrival has no row if the outcome was 0
    mark_number INTEGER NOT NULL, -- largest number of these
    gone_uploads INTEGER NOT NULL, -- and their sums
    gone_ticks INTEGER NOT NULL,
    gone_calls INTEGER NOT NULL
) STRICT;

-- Keys that have arrived.
CREATE TABLE arrival (
    epoch INTEGER NOT NULL,       -- id
    sequence INTEGER NOT NULL,
    digest BLOB NOT NULL,         -- of the segment: 32 bytes
    number INTEGER NOT NULL,      -- ascends in the order of arrival
    outcome INTEGER NOT NULL,     -- 0 counted, 1 put aside
    received INTEGER NOT NULL,    -- seconds
    uploads INTEGER NOT NULL,     -- what was counted
    ticks INTEGER NOT NULL,
    calls INTEGER NOT NULL,
    PRIMARY KEY (epoch, sequence)
) STRICT, WITHOUT ROWID;

-- Segments that could not be read. The oldest bytes are removed when there are too many.
CREATE TABLE quarantine (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    epoch INTEGER NOT NULL,       -- id
    sequence INTEGER NOT NULL,
    received INTEGER NOT NULL,    -- ns
    reason TEXT NOT NULL,
    size INTEGER NOT NULL,        -- of bytes; 0: removed
    bytes BLOB NOT NULL
) STRICT;
CREATE INDEX quarantine_kept ON quarantine (id) WHERE size > 0;

-- Hours in which something of a host is missing.
CREATE TABLE hour_mark (
    hour INTEGER NOT NULL,
    host INTEGER NOT NULL,        -- fleet_host; 0: every host
    reasons INTEGER NOT NULL,     -- message_inexact bits
    PRIMARY KEY (hour, host)
) STRICT, WITHOUT ROWID;

-- Table rollup has further levels for what hosts have sent: 3, 4 and 5 are sums of 1, 5 and 15 minutes of the current hour and the one before
-- (at: minutes since the epoch / width; folded 0: they are in no other sum); 16 and above could not be read (at: the hour).

-- What a host has sent of a series that does not have the label `host`, by hour. Together they are the ledger's row of that series and hour.
CREATE TABLE host_total (
    series INTEGER NOT NULL,
    hour INTEGER NOT NULL,
    host INTEGER NOT NULL,        -- fleet_host
    uploads INTEGER NOT NULL,
    processes INTEGER NOT NULL,
    ticks INTEGER NOT NULL,
    calls INTEGER NOT NULL,
    first INTEGER NOT NULL,
    last INTEGER NOT NULL,
    inexact INTEGER NOT NULL,
    shares BLOB NOT NULL,         -- for each build of the set nanoseconds, and calls of arcs that begin or end in it: LEB128 numbers
    PRIMARY KEY (series, hour, host)
) STRICT, WITHOUT ROWID;
CREATE INDEX host_total_by_hour ON host_total (hour);

-- Programs that were deleted: what ended before then is not stored when it arrives.
CREATE TABLE deletion (
    build_id TEXT PRIMARY KEY,
    before INTEGER NOT NULL       -- ns
) STRICT, WITHOUT ROWID;
