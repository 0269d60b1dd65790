-- The tier, version 1: sums of past days in ClickHouse (profd(8), "Outgrowing one machine"). `profctl tier init` makes these tables. No row
-- is changed after it was inserted. Rows of sum and mark go when their day is dropped.
--
-- {local}: "" on one server, "_local" in a cluster. {MergeTree NAME}: the engine, replicated with replicated=1. {durable}: settings of a
-- table that write each insert to the disk, on servers that know them. A statement that has {cluster} is for clusters only.

CREATE TABLE IF NOT EXISTS layout (
    version UInt32,
    described String,            -- one server, or the cluster
    profd String                 -- version of the profd that made the tables
) ENGINE = MergeTree ORDER BY version;

-- The sums of blocks. A row counts only if the manifest's latest row of its block names its attempt.
CREATE TABLE IF NOT EXISTS sum{local} (
    centre FixedString(16),      -- that sealed it
    day UInt32,                  -- since the epoch
    block UInt32,
    attempt UInt32,
    program String,              -- build-id as hexadecimal digits
    series FixedString(16),
    level UInt8,                 -- 0: an hour, 1: a day
    at Int64,                    -- number of the hour or day since the epoch
    number UInt64,               -- order of first arrival
    uploads UInt64,
    processes UInt64,
    ticks UInt64,
    calls UInt64,
    first Int64,                 -- times: nanoseconds since the epoch
    last Int64,
    inexact UInt32,              -- reasons, as bits
    groups String,               -- as in table rollup of SQLite (schema/001_initial.sql), and what follows, too
    shares String,               -- of an hour
    hosts Array(String),         -- machine-ids
    totals String,               -- by host, if the series has no label `host`: identity NUL name NUL uploads processes ticks calls
                                 -- first last-first inexact size shares; numbers are LEB128
    counts String,
    spread String
) ENGINE = {MergeTree sum} PARTITION BY (centre, day) ORDER BY (program, series, level, at)
SETTINGS index_granularity = 32{durable};

CREATE TABLE IF NOT EXISTS sum AS sum_local ENGINE = Distributed('{cluster}', '{database}', sum_local, cityHash64(series));

-- What sums are of. A series may be here several times, with the same values.
CREATE TABLE IF NOT EXISTS series{local} (
    series FixedString(16),      -- SHA-256 over what follows, its first bytes
    tenant String,
    program String,
    builds Array(String),
    names Array(String),
    labels Array(String)         -- name, value, name, value, …
) ENGINE = {MergeTree series} ORDER BY (tenant, program, series)
SETTINGS index_granularity = 1024{durable};

CREATE TABLE IF NOT EXISTS series AS series_local ENGINE = Distributed('{cluster}', '{database}', series_local, cityHash64(series));

-- Blocks that are complete. Of a block's rows the one with the greatest version counts.
CREATE TABLE IF NOT EXISTS manifest{local} (
    centre FixedString(16),
    name String,                 -- of the centre
    day UInt32,
    block UInt32,
    attempt UInt32,
    state UInt8,                 -- 1: visible, 2: dropped
    rows UInt64,
    bytes UInt64,                -- of counts and spread
    checksum UInt64,
    keys String,                 -- of the uploads of hosts that it may contain (daemon/store/block_keys.h)
    sealed Int64,
    version UInt64
) ENGINE = {MergeTree manifest} ORDER BY (centre, day, block, version)
SETTINGS index_granularity = 1024{durable};

CREATE TABLE IF NOT EXISTS manifest AS manifest_local ENGINE = Distributed('{cluster}', '{database}', manifest_local, cityHash64(centre));

-- Hours in which counts of hosts of a centre may be missing. A centre adds a row whenever it learns more: the reasons of
-- all rows of an hour and host count together.
CREATE TABLE IF NOT EXISTS mark{local} (
    centre FixedString(16),
    hour Int64,                  -- since the epoch
    tenant String,               -- "" if the host is ""
    host String,                 -- "": every host of the centre
    reasons UInt32               -- as bits
) ENGINE = {MergeTree mark} ORDER BY (centre, hour, tenant, host)
SETTINGS index_granularity = 1024{durable};

CREATE TABLE IF NOT EXISTS mark AS mark_local ENGINE = Distributed('{cluster}', '{database}', mark_local, cityHash64(centre));

-- Builds that were deleted: sums of these in blocks up to this one of a centre do not count.
CREATE TABLE IF NOT EXISTS tombstone{local} (
    tenant String,
    build String,
    centre FixedString(16),
    block UInt32,
    deleted Int64
) ENGINE = {MergeTree tombstone} ORDER BY (tenant, build, centre, block)
SETTINGS index_granularity = 1024{durable};

CREATE TABLE IF NOT EXISTS tombstone AS tombstone_local ENGINE = Distributed('{cluster}', '{database}', tombstone_local, cityHash64(build));
