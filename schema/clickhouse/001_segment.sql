-- ClickHouse, version 1: the segments of hosts (profd-segment(5)), a row each, with their bytes as they came.
--
-- $local(T), $replacing(T, V) and $distributed(T, KEY) are replaced by daemon/clickhouse/script.c. On a server without a cluster $local(T)
-- is the table T itself; in a cluster it is T_local, and T distributes rows over the shards.
--
-- The sorting key follows from the bytes alone, and the shard from the key. So a segment that is inserted again replaces itself, whichever
-- server takes it. profd inserts into T with insert_distributed_sync=1, and reads T with FINAL.
CREATE TABLE IF NOT EXISTS $local(segment) (
    program String,               -- build-id, as hexadecimal digits
    sent DateTime('UTC'),         -- hour of the segment by its host's clock
    epoch FixedString(12),
    sequence UInt64,
    number UInt64,                -- of its arrival: of rows with the same key the one with the greatest remains
    series FixedString(16),       -- hash of tenant, program, builds and labels
    hour UInt32,                  -- in which it counts: hours since the epoch, UTC
    tenant UInt32,
    host FixedString(16),
    first Int64,                  -- ns: earliest start of a window, as it counts
    last Int64,                   -- ns: latest end
    inexact UInt32,               -- reasons, as bits
    uploads UInt64,
    ticks UInt64,
    calls UInt64,
    bytes String
) ENGINE = $replacing(segment, number)
PARTITION BY toYYYYMMDD(sent) ORDER BY (program, sent, epoch, sequence) SETTINGS index_granularity = 256;

$distributed(segment, cityHash64(epoch, sequence));
