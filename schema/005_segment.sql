-- Schema version 5: what a host forwards to a centre (profd-segment(5)). Only adds tables: a database of an older version is changed where
-- it is. Without `relay` they stay empty.

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
    withdrawn_uploads INTEGER NOT NULL, -- deleted here before it was sealed, or set apart after a restore
    withdrawn_ticks INTEGER NOT NULL,
    withdrawn_calls INTEGER NOT NULL,
    incarnation BLOB NOT NULL,    -- of the centre: 16 bytes; empty: it has not answered yet
    backup INTEGER NOT NULL       -- the centre's latest backup contains what it gave numbers up to this one
) STRICT;

-- Sums of a series and hour on their way, in the order in which they were opened. Immutable once sealed.
CREATE TABLE segment (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    epoch BLOB NOT NULL,
    sequence INTEGER NOT NULL,
    series INTEGER NOT NULL,      -- which may be gone
    hour INTEGER NOT NULL,
    state INTEGER NOT NULL,       -- 0 open, 1 closed: nothing more is added, 2 sealed, 3 acknowledged, 4 acknowledged and its bytes removed,
                                  -- 5 unreadable: it can never be sealed, 6 held until the centre has answered
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
    UNIQUE (epoch, sequence)
) STRICT;
CREATE INDEX segment_by_state ON segment (state, id);
CREATE INDEX segment_open ON segment (series, hour, id) WHERE state = 0;
CREATE INDEX segment_kept ON segment (changed, id) WHERE state = 3;

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
