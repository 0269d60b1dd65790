-- profd's database, schema version 1. Times are nanoseconds since the epoch, UTC; `number` numbers what was accepted
-- and is never reused. All sums (uploads … shares) saturate at 2^63-1.
--
-- An upload belongs to the hour in which its window ends: hour = end / 3600 s, day = hour / 24, since the epoch. It is
-- in exactly one row of table upload or in exactly one hour row of table rollup. In addition a day row holds the sum
-- of its folded hours, and the row of level 2 holds the sum of the folded days.
--
-- A later version is a file of its own, 002_NAME.sql, that changes these tables: daemon/store/open.c.

-- One row: the last numbers that were given, and the totals that /metrics shows.
CREATE TABLE state (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    number INTEGER NOT NULL,      -- last number given to an upload or to the delivery of an object
    list_epoch INTEGER NOT NULL,  -- number at which the list of all builds last changed
    salt INTEGER NOT NULL,        -- random: epochs of two databases differ
    uploads INTEGER NOT NULL,
    ticks INTEGER NOT NULL,
    calls INTEGER NOT NULL,
    version INTEGER NOT NULL,     -- last version given to a rollup
    retired_uploads INTEGER NOT NULL, -- accepted = those of all series + these
    retired_ticks INTEGER NOT NULL,
    retired_calls INTEGER NOT NULL,
    raw_uploads INTEGER NOT NULL, -- sums over series
    raw_bytes INTEGER NOT NULL,
    rollups INTEGER NOT NULL,     -- rows
    retiring INTEGER NOT NULL,    -- days before this one are being removed to save space
    live_bytes INTEGER NOT NULL,
    clock INTEGER NOT NULL        -- the latest trusted time, to ten minutes: nothing newer has aged what is stored
) STRICT;
INSERT INTO state VALUES (1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);

CREATE TABLE host (
    id INTEGER PRIMARY KEY,
    machine TEXT NOT NULL UNIQUE  -- machine-id, '' if unknown
) STRICT;

CREATE TABLE build (
    id INTEGER PRIMARY KEY,
    build_id TEXT NOT NULL UNIQUE,
    epoch INTEGER NOT NULL,       -- number of the last change of a report on it over all users; 0: never uploaded
    named INTEGER NOT NULL,       -- 1: some object of it has names
    seen INTEGER NOT NULL DEFAULT 0 -- latest end of what was removed of it
) STRICT;
CREATE INDEX build_unseen ON build (seen) WHERE epoch = 0;

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
    -- for each build of the set nanoseconds and calls, then the ticks that have a stack: LEB128 numbers
    shares BLOB NOT NULL,
    live_bytes INTEGER NOT NULL DEFAULT 0,
    -- 1: its sums are those of visible mirrored blocks (table block, state 6), and are in no total: neither in the
    -- ledger nor in tables state, centre and user_bytes. The series of the same name with 0 has what is this database's.
    mirror INTEGER NOT NULL DEFAULT 0,
    UNIQUE (build_set, uid, program, labels, mirror)
) STRICT;

-- Uploads that are not rolled up. Those of a live process are in slices of time: a slice is 1, 5, 15 or 60 whole
-- minutes of the clock, and each harvest adds to the upload of the current slice. An upload is in the slice in which
-- its window ends. Narrow slices are merged into wider ones when they take too much space.
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
    counts BLOB NOT NULL,         -- proto/counts.h
    width INTEGER NOT NULL,       -- minutes of its slice; 0: it has none
    instance INTEGER NOT NULL,    -- the slice's instance: an id, which may have been removed since
    parts INTEGER NOT NULL DEFAULT 1 -- number of uploads merged into this one
) STRICT;
CREATE INDEX upload_by_series ON upload (series, hour);

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

-- The ids of profiles that other tools have sent, for a day.
CREATE TABLE day_id (
    uid INTEGER NOT NULL,
    id BLOB NOT NULL,
    seen INTEGER NOT NULL,        -- seconds
    PRIMARY KEY (uid, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX day_id_by_time ON day_id (seen);

-- The builds of each user. A row is there as long as one of the user's series has the build.
CREATE TABLE build_user (
    build INTEGER NOT NULL,
    uid INTEGER NOT NULL,
    epoch INTEGER NOT NULL,       -- number of the last change of a report on it for this user
    added INTEGER NOT NULL,       -- number of the first upload
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
    has_names INTEGER NOT NULL,   -- 1: of exported functions only; 2: of all; 3: and lines; 0: none
    size INTEGER NOT NULL,        -- of the encoding
    bounds BLOB NOT NULL,
    encoded BLOB NOT NULL,        -- a zstd frame with a checksum
    hash BLOB                     -- The SHA-256 of the encoding, of an object that came from a host; NULL of others.
) STRICT;
CREATE INDEX object_by_build ON object (build, variant);

CREATE TABLE object_sender (
    object INTEGER NOT NULL,
    uid INTEGER NOT NULL,
    trusted INTEGER NOT NULL,
    delivered INTEGER NOT NULL,   -- number of the latest delivery
    name TEXT NOT NULL,
    note TEXT NOT NULL,
    received INTEGER NOT NULL,    -- time of the latest delivery
    -- 1: an operator sent it for the tenant uid; it names functions of this tenant instead of what hosts send.
    operator INTEGER NOT NULL,
    host INTEGER NOT NULL,        -- fleet_host that sent it first for the tenant uid; 0: no host did
    PRIMARY KEY (object, uid)
) STRICT, WITHOUT ROWID;

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
    live_bytes INTEGER NOT NULL,  -- Bytes of the counts of uploads that have a slice; part of raw_bytes.
    PRIMARY KEY (series, hour)
) STRICT, WITHOUT ROWID;
CREATE INDEX ledger_by_hour ON ledger (hour, series);
CREATE INDEX ledger_raw ON ledger (raw_since, series, hour) WHERE raw_since IS NOT NULL;

-- Sums of rolled-up uploads. level 0: an hour, 1: a day, 2: all time. Levels 3, 4 and 5 are sums of 1, 5 and 15 minutes
-- of what hosts have sent of the current hour and the one before (at: minutes since the epoch / width; folded 0: they
-- are in no other sum). Levels from 16 on could not be read (at: the hour).
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
CREATE INDEX rollup_by_day ON rollup (at, series, level) WHERE level = 1; -- level: it is read without the rows

-- Sums of one day that moved to the tier together (daemon/store/blocks.h).
CREATE TABLE block (
    number INTEGER PRIMARY KEY AUTOINCREMENT, -- never reused if positive; of what was mirrored or adopted negative
    centre BLOB NOT NULL,         -- that wrote it: table centre, name
    attempt INTEGER NOT NULL,     -- rows of earlier attempts in the tier are not part of it
    day INTEGER NOT NULL,
    -- 1 open, 2 written, 3 sealed, 4 gone. What another centre sealed (daemon/store/foreign_blocks.h): 5 arriving,
    -- 6 mirrored, 7 leaving, 8 listed: there are no rows yet. Of 5 and 7 no reader sees anything
    state INTEGER NOT NULL,
    sums INTEGER NOT NULL,        -- released, or mirrored
    bytes INTEGER NOT NULL,       -- of these
    sealed INTEGER NOT NULL,      -- ns: when it was written; 0: it was not; of 6 and 7: retention removes it
    -- table centre, number, when it was opened: it has nothing that arrived later
    arrivals INTEGER NOT NULL DEFAULT 0,
    tier_number INTEGER NOT NULL DEFAULT 0, -- its number in the tier; 0: the same
    name TEXT NOT NULL DEFAULT '' -- of the centre that sealed it; '': this one
) STRICT;
CREATE INDEX block_by_day ON block (day, state);
CREATE INDEX block_unsealed ON block (state) WHERE state < 3;
CREATE INDEX block_hidden ON block (number) WHERE state IN (5, 7);

-- What stays of a sum of an hour or day when its counts, spread and hosts are in a block. An hour is also in the day of
-- its block. A sum is either here or in table rollup; what came after its day was sealed begins another one there.
CREATE TABLE sealed (
    id INTEGER PRIMARY KEY AUTOINCREMENT, -- never reused: with the block's attempt it identifies the content
    block INTEGER NOT NULL,
    series INTEGER NOT NULL,
    level INTEGER NOT NULL,       -- as in table rollup, and so are the columns up to inexact
    at INTEGER NOT NULL,
    number INTEGER NOT NULL,
    uploads INTEGER NOT NULL,
    processes INTEGER NOT NULL,
    ticks INTEGER NOT NULL,
    calls INTEGER NOT NULL,
    first INTEGER NOT NULL,
    last INTEGER NOT NULL,
    inexact INTEGER NOT NULL,
    groups BLOB,                  -- as in table rollup_processes; NULL: unknown
    bytes INTEGER NOT NULL,       -- of its counts, spread and list of hosts in table rollup
    total_hosts INTEGER NOT NULL, -- hosts that the block has totals of beside it: 0 if table host_total had none
    arcs BLOB,                    -- of a day: its counts without all but the arcs; NULL: not kept
    shares BLOB                   -- as in table ledger, of a mirrored sum; NULL of others
) STRICT;
CREATE INDEX sealed_by_time ON sealed (series, level, at);
CREATE INDEX sealed_by_block ON sealed (block, level, series);

-- Deleted series: no query sees them, and their rows are removed in slices.
CREATE TABLE doomed (
    series INTEGER PRIMARY KEY,
    uid INTEGER NOT NULL          -- its user
) STRICT;

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
    -- The run of the daemon that read the process last. If it is not the current run and the process has not
    -- ended, some of its counts may not be stored.
    run INTEGER NOT NULL DEFAULT 0,
    -- Children that counted, less the children that were read. If positive, counts of children are not stored. A child
    -- may be read before its parent reports it, so the number may be negative for a while.
    missing INTEGER NOT NULL DEFAULT 0,
    missing_since INTEGER NOT NULL DEFAULT 0, -- ns: the harvest before the one by which missing rose above 0, or above
                                              -- what is marked
    marked INTEGER NOT NULL DEFAULT 0, -- 1: the reasons of an upload state that these children are missing
    UNIQUE (uid, name)
) STRICT;
-- Finds a process that has changed its user, by its name.
CREATE INDEX instance_by_name ON instance (name);
CREATE INDEX instance_ended ON instance (seen, id) WHERE ended = 1;
CREATE INDEX instance_living ON instance (id) WHERE ended = 0;
CREATE INDEX instance_missing ON instance (series, missing_since) WHERE missing > 0;
CREATE INDEX instance_unread ON instance (run, series, seen) WHERE ended = 0;

-- All counts of a process up to its latest harvest. A table of its own, so that reading instances stays fast.
CREATE TABLE snapshot (
    instance INTEGER PRIMARY KEY, -- id
    bytes BLOB NOT NULL           -- as received
) STRICT;
CREATE INDEX snapshot_by_instance ON snapshot (instance); -- verification reads this, not the bytes

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

-- Children that were read before their parents attached.
CREATE TABLE instance_waiting (
    parent BLOB NOT NULL,         -- its name
    child INTEGER NOT NULL,       -- id
    uid INTEGER NOT NULL,         -- of the child
    PRIMARY KEY (parent, child)
) STRICT, WITHOUT ROWID;
CREATE INDEX instance_waiting_by_child ON instance_waiting (child);

-- For each sum, the number of its processes in each of the 16 random groups, and the number of processes without a
-- known group: 17 LEB128 numbers (daemon/core/spread.h). A table of its own, because rows of table rollup are
-- too long to be read to their end for it. A single upload has this in its columns.
CREATE TABLE rollup_processes (
    series INTEGER NOT NULL,
    level INTEGER NOT NULL,
    at INTEGER NOT NULL,
    groups BLOB NOT NULL,
    PRIMARY KEY (series, level, at)
) STRICT, WITHOUT ROWID;

-- How many bytes each user stores: counts of uploads, sums, snapshots of live processes, symbols that no other user
-- has sent, and the rows that name and list them (daemon/store/quota.c).
CREATE TABLE user_bytes (
    uid INTEGER PRIMARY KEY,
    bytes INTEGER NOT NULL
) STRICT;

-- One row, since `relay` was configured first. With it, everywhere and always:
-- accepted (table state) = outside + acknowledged + withdrawn + the sum of table segment without states 3 and 4.
CREATE TABLE relay (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    active INTEGER NOT NULL,      -- 1: what is accepted goes into segments. 0: `relay` was taken from the configuration
    epoch BLOB NOT NULL,          -- 12 random bytes, drawn at the latest start
    sequence INTEGER NOT NULL,    -- last number given in this epoch
    outside_uploads INTEGER NOT NULL, -- accepted while nothing was forwarded
    outside_ticks INTEGER NOT NULL,
    outside_calls INTEGER NOT NULL,
    acknowledged_uploads INTEGER NOT NULL,
    acknowledged_ticks INTEGER NOT NULL,
    acknowledged_calls INTEGER NOT NULL,
    rejected_uploads INTEGER NOT NULL, -- of the acknowledged: what the centre put aside and did not count
    rejected_ticks INTEGER NOT NULL,
    rejected_calls INTEGER NOT NULL,
    withdrawn_uploads INTEGER NOT NULL, -- deleted here before it was sealed, set apart after a restore,
    -- or sealed for another centre than the present one
    withdrawn_ticks INTEGER NOT NULL,
    withdrawn_calls INTEGER NOT NULL,
    incarnation BLOB NOT NULL,    -- of the centre: 16 bytes; empty: it has not answered yet
    backup INTEGER NOT NULL,      -- the centre's latest backup contains what it gave numbers up to this one
    held INTEGER NOT NULL,        -- 1 + the number of the database (table state) before the start; 0: nothing is held.
    -- ns: differences that began before then are held, in segments of state 6: they are not sealed.
    held_since INTEGER NOT NULL,
    held_hour INTEGER NOT NULL,   -- The hour of the last sign of life before the start.
    -- ns: the database was restored; differences that began before then count on this host only. They count
    -- as withdrawn.
    apart_before INTEGER NOT NULL,
    apart_hour INTEGER NOT NULL,  -- The last hour for which the centre was told so.
    centre BLOB NOT NULL          -- name of the centre: 16 bytes; empty: not known
) STRICT;

-- Sums of a series and hour on their way, in the order in which they were opened. Immutable once sealed.
CREATE TABLE segment (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    epoch BLOB NOT NULL,
    sequence INTEGER NOT NULL,
    series INTEGER NOT NULL,      -- which may be gone
    hour INTEGER NOT NULL,
    -- 0 open, 1 closed: nothing more is added, 2 sealed, 3 acknowledged, 4 acknowledged and its bytes
    -- removed, 5 unreadable: it can never be sealed, 6 held until the centre has answered
    state INTEGER NOT NULL,
    opened INTEGER NOT NULL,      -- ns
    changed INTEGER NOT NULL,     -- ns: when it was sealed, or acknowledged
    uploads INTEGER NOT NULL,
    ticks INTEGER NOT NULL,
    calls INTEGER NOT NULL,
    weight INTEGER NOT NULL,      -- rows at most, as LIMIT_SEGMENT_ROWS counts them
    parts INTEGER NOT NULL,       -- rows of table segment_part
    part_bytes INTEGER NOT NULL,  -- of their counts
    size INTEGER NOT NULL,        -- of its bytes; 0: removed
    number INTEGER NOT NULL,      -- that the centre gave it; 0: not acknowledged
    outcome INTEGER NOT NULL,     -- of the acknowledgement: 0 counted, 1 put aside, 2 another segment has its key
    since INTEGER NOT NULL,       -- The ends of the windows in an open segment are in [since, until): ns.
    until INTEGER NOT NULL,
    stack_ticks INTEGER NOT NULL, -- of its ticks, those that have a stack
    UNIQUE (epoch, sequence)
) STRICT;
CREATE INDEX segment_by_state ON segment (state, id);
CREATE INDEX segment_kept ON segment (changed, id) WHERE state = 3;
CREATE INDEX segment_open ON segment (series, hour, id) WHERE state = 0;

-- proto/segment.h: of an open one, what was folded into it so far.
CREATE TABLE segment_bytes (
    segment INTEGER PRIMARY KEY,
    bytes BLOB NOT NULL
) STRICT;

-- What was accepted since. A row is an upload, a part of a large one, or what a harvest added.
CREATE TABLE segment_part (
    id INTEGER PRIMARY KEY,       -- segment × 2^24 + its number in the segment
    spread_group INTEGER NOT NULL,
    start INTEGER NOT NULL,
    length INTEGER NOT NULL,
    inexact INTEGER NOT NULL,
    uploads INTEGER NOT NULL,
    started INTEGER NOT NULL,
    counts BLOB NOT NULL          -- proto/counts.h
) STRICT;

-- One row. Always: counted = the series of the user STORE_TENANT (daemon/store/arrivals.h) + removed = the sum of
-- table arrival, of outcome 0, and of what table epoch says of rows that are gone.
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
    removed_calls INTEGER NOT NULL,
    name BLOB NOT NULL,           -- 16 random bytes that stay, whatever is restored: hosts send to this centre only
    restored INTEGER NOT NULL DEFAULT 0 -- 1: since a restore, blocks that it had sealed were not adopted yet
) STRICT;
INSERT INTO centre VALUES (1, randomblob(16), 0, 0, 0, 0, 0, 0, 0, 0, 0, randomblob(16), 0);

-- Uploads of hosts that adopted blocks may contain (daemon/store/block_keys.h): of this day they are not counted again.
CREATE TABLE adopted_key (
    day INTEGER NOT NULL,         -- of the block
    tenant INTEGER NOT NULL,      -- tenant
    epoch BLOB NOT NULL,
    low INTEGER NOT NULL,         -- sequences, both included
    high INTEGER NOT NULL,
    PRIMARY KEY (day, tenant, epoch, low)
) STRICT, WITHOUT ROWID;

-- The hosts that have arrived, with what each said of itself at its latest arrival.
CREATE TABLE fleet_host (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    identity BLOB NOT NULL UNIQUE, -- 16 bytes: of its tenant and its name
    name TEXT NOT NULL,           -- value of the label `host`
    first INTEGER NOT NULL,       -- ns: of its arrivals
    last INTEGER NOT NULL,
    clock INTEGER NOT NULL,       -- ns: how far its clock is ahead of the centre's
    number INTEGER NOT NULL,      -- last number that its database gave
    restored INTEGER NOT NULL,    -- ns: when that number was smaller than before; 0: it never was
    tenant INTEGER NOT NULL,      -- tenant
    machine TEXT NOT NULL,        -- machine-id
    boot TEXT NOT NULL DEFAULT '', -- boot-id of its kernel, as it said last; '' if it has not
    boot_before TEXT NOT NULL DEFAULT '', -- the one before that
    version TEXT NOT NULL,
    delivered INTEGER NOT NULL DEFAULT 0, -- ns: when a segment came last
    copied INTEGER NOT NULL DEFAULT 0, -- ns: when two machines were last seen with this identity
    epoch INTEGER NOT NULL DEFAULT 0, -- its newest, and
    began INTEGER NOT NULL DEFAULT 0 -- ns: when the first segment of that came
) STRICT;

-- Epochs of hosts' daemons. A host that comes with another name or token of its tenant goes on with its epochs.
-- What was sent with a tenant's tokens, but by no daemon, is in gone_* of an epoch of zeros.
CREATE TABLE epoch (
    id INTEGER PRIMARY KEY,
    tenant INTEGER NOT NULL,      -- tenant
    epoch BLOB NOT NULL,          -- 12 bytes
    -- every sequence up to it has arrived; of these, table arrival has no row if the outcome was 0
    mark INTEGER NOT NULL,
    mark_number INTEGER NOT NULL, -- largest number of these
    gone_uploads INTEGER NOT NULL, -- and their sums
    gone_ticks INTEGER NOT NULL,
    gone_calls INTEGER NOT NULL,
    UNIQUE (tenant, epoch)
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

-- Hours in which something of a host is missing, or of local users.
CREATE TABLE hour_mark (
    hour INTEGER NOT NULL,
    host INTEGER NOT NULL,        -- fleet_host; 0: every host; -1: what local users counted
    reasons INTEGER NOT NULL,     -- message_inexact bits
    PRIMARY KEY (hour, host)
) STRICT, WITHOUT ROWID;

-- A copy of table mark of the tier: such hours of the hosts of every centre, also of this one. They count from
-- the first to the last day that their centre has visible blocks of here.
CREATE TABLE tier_mark (
    centre BLOB NOT NULL,
    hour INTEGER NOT NULL,
    tenant TEXT NOT NULL,         -- name; '' if the host is ''
    host TEXT NOT NULL,           -- name; '': every host of the centre
    reasons INTEGER NOT NULL,
    PRIMARY KEY (centre, hour, tenant, host)
) STRICT, WITHOUT ROWID;

-- What a host has sent of a series that does not have the label `host`, by hour. Together with those that moved to the
-- tier with the sums of their hour, they are the ledger's row of that series and hour.
CREATE TABLE host_total (
    series INTEGER NOT NULL,
    hour INTEGER NOT NULL,
    host INTEGER NOT NULL,        -- fleet_host
    late INTEGER NOT NULL,        -- block for which the day was frozen when it came, and which is without it; 0: it was not
    uploads INTEGER NOT NULL,
    processes INTEGER NOT NULL,
    ticks INTEGER NOT NULL,
    calls INTEGER NOT NULL,
    first INTEGER NOT NULL,
    last INTEGER NOT NULL,
    inexact INTEGER NOT NULL,
    -- for each build of the set nanoseconds, and calls of arcs that begin or end in it: LEB128 numbers
    shares BLOB NOT NULL,
    PRIMARY KEY (series, hour, host, late)
) STRICT, WITHOUT ROWID;
CREATE INDEX host_total_by_hour ON host_total (hour);

-- Programs that were deleted: what ended before then is not stored when it arrives.
CREATE TABLE deletion (
    build_id TEXT NOT NULL,
    uid INTEGER NOT NULL,         -- of the tenant; -1: of all
    before INTEGER NOT NULL,      -- ns
    PRIMARY KEY (build_id, uid)
) STRICT, WITHOUT ROWID;

-- Deletions of the tier that were applied here (daemon/store/tombstones.h).
CREATE TABLE tombstone (
    tenant TEXT NOT NULL,         -- name
    build_id TEXT NOT NULL,
    centre BLOB NOT NULL,
    block INTEGER NOT NULL,       -- of this centre: sums of later blocks are not deleted
    deleted INTEGER NOT NULL,     -- ns
    uploads INTEGER NOT NULL,     -- that it deleted here
    PRIMARY KEY (tenant, build_id, centre, block, deleted)
) STRICT, WITHOUT ROWID;

-- The builds that hosts have sent counts of, and what each host has of their symbols.
CREATE TABLE host_build (
    build INTEGER NOT NULL,       -- build
    host INTEGER NOT NULL,        -- fleet_host
    -- 32 bytes: SHA-256 of the encoded object that the host has, if its tenant has no object with this
    -- hash; NULL of others
    hash BLOB,
    size INTEGER NOT NULL,        -- of the encoding, as the host says; 0: it has none
    due INTEGER NOT NULL,         -- ns: when the host is asked for it again
    PRIMARY KEY (build, host)
) STRICT, WITHOUT ROWID;
CREATE INDEX host_build_due ON host_build (host, due);
CREATE INDEX host_build_differs ON host_build (build, host) WHERE hash IS NOT NULL;
CREATE INDEX host_build_has ON host_build (host, size) WHERE size > 0; -- of at most STORE_OFFER_MOST rows of a host

-- Owners of what hosts send. Tenant n has the number 4294967294 - (n - 1) wherever a table says uid.
CREATE TABLE tenant (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL UNIQUE
) STRICT;
INSERT INTO tenant VALUES (1, 'default');

-- Tokens of the HTTP API.
CREATE TABLE token (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL UNIQUE,
    rights INTEGER NOT NULL,      -- sum: 1 read, 2 write, 4 admin
    tenant INTEGER NOT NULL,      -- tenant; 0: all of them
    hosts TEXT NOT NULL,          -- pattern of the names of hosts that its holder may state; '': its name alone
    hash BLOB UNIQUE,             -- 32 bytes: SHA-256 of the token; NULL: a proxy names it
    expires INTEGER NOT NULL,     -- ns; 0: never
    created INTEGER NOT NULL      -- ns
) STRICT;

-- What the watch list of the configuration has counted.
CREATE TABLE watch (
    key TEXT NOT NULL PRIMARY KEY, -- watch, program and version, function; lines
    changed INTEGER NOT NULL,     -- ns
    document TEXT NOT NULL        -- JSON
) STRICT, WITHOUT ROWID;
