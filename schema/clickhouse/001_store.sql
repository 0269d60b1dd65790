-- ClickHouse, version 1: everything that a centre stores. Any number of daemons insert into and read these tables at the same time; none
-- of them keeps anything else.
--
-- Rules:
-- * A row follows from what it describes, so a row that is inserted again replaces itself. Of rows with the same sorting key the one with
--   the greatest version (the column that $replacing names) counts. Old rows remain until the server merges them.
-- * $local: rows are spread over the shards of a cluster. $copied: every shard has all rows; what one is asked for is what it has itself, and
--   an insert goes to each.
-- * number: nanoseconds since the epoch by the inserting daemon's clock, greater than the daemon's number before.
-- * uid: number of the tenant (daemon/store/arrivals.h). build, program: build-ids as hexadecimal digits. hour: hours since the epoch, UTC.
--   Times without a unit are nanoseconds since the epoch.
-- * generation: how often the program of this uid was deleted (table deletion) when the row was made. Rows of a smaller generation than
--   the current one do not count.
-- * The order of inserts for a batch of segments: series, segment_group, what arrivals refer to, arrival, change, version, and then the
--   acknowledgement.

-- One row for each group of a segment (profd-segment(5)): the shares that processes of random group grp have. head is 1 in the row with the
-- smallest grp, which alone has the columns from first to touching. A segment without counts has one row. Columns b_, a_ and n_ are arrays of
-- numbers as planes of bytes (daemon/core/rollup_columns.h), which take less than half of what arrays take: compressed, too.
CREATE TABLE IF NOT EXISTS $local(segment_group) (
    program String,
    sent DateTime('UTC'),         -- hour of the segment by its host's clock
    epoch FixedString(12),
    sequence UInt64,
    grp UInt8,
    number UInt64,
    digest FixedString(32),       -- of the segment
    group_rows UInt8,             -- number of rows of this segment
    head UInt8,
    series FixedString(16),
    hour UInt32,                  -- in which it counts
    uid UInt32,
    generation UInt32,
    host UInt32,                  -- slot in table host
    first Int64,                  -- earliest start of a window, as it counts
    last Int64,                   -- latest end
    ended Int64,                  -- earliest end; 0: the hour is as narrow as its time is known; 0: it counts in the hour, in no slice of it
    inexact UInt32,               -- reasons, as bits
    uploads UInt64,
    processes Array(UInt64),      -- by group
    ticks UInt64,
    calls UInt64,
    stack_ticks UInt64,
    nanoseconds Array(UInt64),    -- of each build of the series
    into Array(UInt64),           -- calls into each build
    touching Array(UInt64),       -- calls of arcs that begin or end in each build
    h_build Array(UInt16),        -- histograms, ascending; positions in the series' builds
    h_low Array(UInt64),
    h_high Array(UInt64),
    h_bins Array(UInt32),
    h_rate Array(UInt32),
    h_dimension Array(String),
    h_abbreviation Array(UInt8),
    h_rank Array(UInt32),         -- position in order of first arrival in the segment
    h_used Array(UInt32),         -- number of its bins below
    b_index String,               -- of each histogram: the first position, then differences
    b_n String,
    arcs UInt32,                  -- how many: ascending by build and address of the caller, then of what is called
    a_from_build String,          -- and 1; 0: outside every known build
    a_from String,                -- of each build: the first address, then differences
    a_to_build String,
    a_to String,
    a_rank String,                -- as h_rank
    a_n String,
    t_rate Array(UInt32),         -- trees of stacks
    t_dimension Array(String),
    t_abbreviation Array(UInt8),
    t_used Array(UInt32),         -- number of its nodes below
    n_depth String,
    n_kind String,
    n_build String,               -- as a_from_build
    n_address String,
    n_n String                    -- ticks that end there; 0: only its descendants have some
) ENGINE = $replacing(segment_group, number)
PARTITION BY toYYYYMMDD(sent) ORDER BY (program, sent, epoch, sequence, grp) SETTINGS index_granularity = 256;

$distributed(segment_group, cityHash64(epoch, sequence));

-- Keys that have arrived, by the day of receipt.
CREATE TABLE IF NOT EXISTS $local(arrival) (
    epoch FixedString(12),
    sequence UInt64,
    received Int64,
    number UInt64,
    digest FixedString(32),
    outcome UInt8,                -- enum store_segment_outcome
    host UInt32,
    program String,               -- '' if nothing was counted, as below
    series FixedString(16),
    hour UInt32,
    uid UInt32,
    generation UInt32,
    uploads UInt64,
    ticks UInt64,
    calls UInt64
) ENGINE = $replacing(arrival, number)
PARTITION BY toYYYYMMDD(toDateTime(intDiv(received, 1000000000), 'UTC')) ORDER BY (epoch, sequence) SETTINGS index_granularity = 1024;

$distributed(arrival, cityHash64(epoch, sequence));

-- Sequences first to last of an epoch that have arrived, of which table arrival has no rows any more.
CREATE TABLE IF NOT EXISTS $copied(known) (
    epoch FixedString(12),
    first UInt64,
    last UInt64,
    number UInt64
) ENGINE = $replacing(known, number) ORDER BY (epoch, first, last);

-- An epoch belongs to the host that sent it first: of several rows that with the smallest number counts.
CREATE TABLE IF NOT EXISTS $copied(epoch_host) (
    epoch FixedString(12),
    number UInt64,
    host FixedString(16)
) ENGINE = $replacing(epoch_host, number) ORDER BY (epoch, number);

-- Hosts that have arrived.
CREATE TABLE IF NOT EXISTS $copied(host) (
    identity FixedString(16),
    number UInt64,
    slot UInt32,                  -- from 1; no other host has it
    name String,
    uid UInt32,
    clock Int64,                  -- how far its clock is ahead
    database_number UInt64,       -- the greatest that its database gave
    restored Int64,               -- when that became smaller; 0: never
    first Int64,
    last Int64,
    delivered Int64,
    copied Int64,                 -- when two machines were last seen with this identity; 0: never
    epoch FixedString(12),        -- its newest, and
    began Int64,                  -- when the first segment of that came
    machine String,
    other String,
    version String,
    not_after Int64
) ENGINE = $replacing(host, number) ORDER BY identity;

-- Hours in which something of a host is missing, for one reason each.
CREATE TABLE IF NOT EXISTS $copied(mark) (
    hour UInt32,
    host FixedString(16),         -- zeros: of every host
    reason UInt32,
    number UInt64
) ENGINE = $replacing(mark, number) ORDER BY (hour, host, reason);

-- Segments that could not be read.
CREATE TABLE IF NOT EXISTS $copied(quarantine) (
    epoch FixedString(12),
    sequence UInt64,
    number UInt64,
    received Int64,
    reason String,
    size UInt64,
    bytes String
) ENGINE = $replacing(quarantine, number) ORDER BY (epoch, sequence);

-- What all segments of a series have in common. The key is a hash of uid, program, builds and labels.
CREATE TABLE IF NOT EXISTS $copied(series) (
    series FixedString(16),
    number UInt64,                -- when it was made by this writer
    writer UInt64,
    uid UInt32,
    program String,
    builds Array(String),         -- in load order
    names Array(String),
    label_names Array(String),
    label_values Array(String)
) ENGINE = $replacing(series, number) ORDER BY (series, writer);

-- How often a writer (the handle of a daemon, by a random number) has changed an hour of a series. The sum over writers of the greatest
-- count is the version of the hour: a rollup of that version has everything.
CREATE TABLE IF NOT EXISTS $copied(change) (
    program String,
    series FixedString(16),
    hour UInt32,
    generation UInt32,
    writer UInt64,
    count UInt64,
    sent_from UInt32,             -- hours of the keys in table segment_group that this writer has inserted for it
    sent_to UInt32
) ENGINE = $replacing(change, count)
PARTITION BY toYYYYMMDD(toDateTime(hour * 3600, 'UTC')) ORDER BY (program, series, hour, generation, writer)
SETTINGS index_granularity = 1024;

-- How often a writer has changed what answers about a build say to readers of a uid. build '': lists. The sum over writers is the number
-- of the epoch in ETags.
CREATE TABLE IF NOT EXISTS $copied(version) (
    build String,
    uid UInt32,
    writer UInt64,
    count UInt64
) ENGINE = $replacing(version, count) ORDER BY (build, uid, writer);

-- The sum of an hour of a series. It counts if its version is the one of table change; else the segments count.
CREATE TABLE IF NOT EXISTS $local(rollup) (
    program String,
    series FixedString(16),
    hour UInt32,
    generation UInt32,
    version UInt64,
    uid UInt32,
    commit UInt64,                -- of its earliest segment (daemon/store/incoming.h)
    segments UInt64,
    uploads UInt64,
    processes Array(UInt64),      -- by group
    ticks UInt64,
    calls UInt64,
    stack_ticks UInt64,
    first Int64,
    last Int64,
    inexact UInt32,
    nanoseconds Array(UInt64),
    into Array(UInt64),
    hosts String,                 -- slots, ascending: LEB128 differences
    counts String,                -- daemon/core/rollup.h
    spread String,
    stack_spread String           -- what spread has of stacks, for readers of these alone; '': there are no stacks
) ENGINE = $replacing(rollup, version)
PARTITION BY toYYYYMMDD(toDateTime(hour * 3600, 'UTC')) ORDER BY (program, series, hour, generation) SETTINGS index_granularity = 4;

$distributed(rollup, cityHash64(series, hour));

-- What a host has sent of a series on a day (UTC). The rows count if their version is the sum of the versions of the day's hours.
CREATE TABLE IF NOT EXISTS $local(host_day) (
    program String,
    series FixedString(16),
    day UInt32,
    generation UInt32,
    host UInt32,
    version UInt64,
    uploads UInt64,
    processes UInt64,
    ticks UInt64,
    calls UInt64,
    first Int64,
    last Int64,
    inexact UInt32,
    nanoseconds Array(UInt64),
    touching Array(UInt64)
) ENGINE = $replacing(host_day, version)
PARTITION BY intDiv(day, 30) ORDER BY (program, series, day, generation, host) SETTINGS index_granularity = 4096;

$distributed(host_day, cityHash64(series));

-- Programs that were deleted: the greatest generation counts. before: what ended before then is not stored when it arrives.
CREATE TABLE IF NOT EXISTS $copied(deletion) (
    program String,
    uid UInt32,
    generation UInt32,
    before Int64
) ENGINE = $replacing(deletion, generation) ORDER BY (program, uid);

-- What was accepted and removed since, by what removed it: the ledger's other half.
CREATE TABLE IF NOT EXISTS $copied(removed) (
    program String,
    uid UInt32,
    generation UInt32,
    day UInt32,                   -- days since the epoch; 4294967295: the program was deleted
    number UInt64,
    uploads UInt64,
    ticks UInt64,
    calls UInt64
) ENGINE = $replacing(removed, number) ORDER BY (program, uid, generation, day);

-- Parsed objects. content: SHA-256 of encoded.
CREATE TABLE IF NOT EXISTS $copied(object) (
    build String,
    variant String,
    content FixedString(32),
    number UInt64,
    has_names UInt8,
    outdated UInt8,
    hashed UInt8,                 -- a host sent it
    gone UInt8,
    encoded String,
    bounds String
) ENGINE = $replacing(object, number) ORDER BY (build, variant, content) SETTINGS index_granularity = 16;

CREATE TABLE IF NOT EXISTS $copied(object_sender) (
    build String,
    variant String,
    content FixedString(32),
    uid UInt32,
    number UInt64,
    trusted UInt8,
    operator UInt8,
    gone UInt8,
    delivered UInt64,             -- number of the latest delivery; equal to number: table version may lack it
    received Int64,
    name String,
    note String
) ENGINE = $replacing(object_sender, number) ORDER BY (build, variant, content, uid);

-- The builds that segments of a host named, and what the host attests of them.
CREATE TABLE IF NOT EXISTS $copied(attestation) (
    build String,
    host FixedString(16),
    number UInt64,
    uid UInt32,
    has UInt8,
    hash FixedString(32),
    size UInt64,
    due Int64,                    -- when it is asked for again; 0: at once, and table version may lack what is here
    gone UInt8
) ENGINE = $replacing(attestation, number) ORDER BY (build, host);

-- Tenant n has uid 4294967294 - (n - 1); `default` is 1.
CREATE TABLE IF NOT EXISTS $copied(tenant) (
    name String,
    number UInt64,
    id UInt32
) ENGINE = $replacing(tenant, number) ORDER BY name;

CREATE TABLE IF NOT EXISTS $copied(token) (
    hash FixedString(32),
    number UInt64,
    tenant UInt32,
    name String,
    uses UInt64,
    expires Int64,
    created Int64
) ENGINE = $replacing(token, number) ORDER BY hash;

CREATE TABLE IF NOT EXISTS $copied(enrolment) (
    key FixedString(32),
    identity FixedString(16),
    number UInt64,
    tenant UInt32,
    token FixedString(32),
    name String,
    machine String,
    version String,
    not_after Int64,
    enrolled Int64,
    revoked Int64                 -- 0: it is not; else number is the greatest there is, so that nothing undoes it
) ENGINE = $replacing(enrolment, number) ORDER BY key;

CREATE TABLE IF NOT EXISTS $copied(reader) (
    name String,
    number UInt64,
    id UInt64,                    -- its number when it was added
    admin UInt8,
    has_token UInt8,
    hash FixedString(32),
    expires Int64,
    created Int64,
    everything UInt8,
    tenants Array(UInt32),        -- ids
    gone UInt8
) ENGINE = $replacing(reader, number) ORDER BY name;

CREATE TABLE IF NOT EXISTS $copied(watch) (
    kind UInt8,
    key String,
    number UInt64,
    changed Int64,
    document String,              -- '': removed
    gone UInt8
) ENGINE = $replacing(watch, number) ORDER BY (kind, key);

-- lock/NAME/WRITER: when a writer's lock ends, in seconds since the epoch by the clock of the servers; '': it has none.
-- incarnation: 16 random bytes, drawn by init and after a restore. backup: a number; all that arrived up to it is in a backup. salt.
CREATE TABLE IF NOT EXISTS $copied(state) (
    name String,
    number UInt64,
    value String
) ENGINE = $replacing(state, number) ORDER BY name;

