-- The tables of the newest version, as the numbered files make them one after the other: a new database is made from this text, and
-- that of a database is compared with it. What a column means is said where its file adds it. In the order of table, index; name.
CREATE TABLE arrival (
    epoch INTEGER NOT NULL,
    sequence INTEGER NOT NULL,
    digest BLOB NOT NULL,
    number INTEGER NOT NULL,
    outcome INTEGER NOT NULL,
    received INTEGER NOT NULL,
    uploads INTEGER NOT NULL,
    ticks INTEGER NOT NULL,
    calls INTEGER NOT NULL,
    PRIMARY KEY (epoch, sequence)
) STRICT, WITHOUT ROWID;
CREATE TABLE attestation (
    build INTEGER NOT NULL,
    host INTEGER NOT NULL,
    variant INTEGER NOT NULL,
    size INTEGER NOT NULL,
    due INTEGER NOT NULL,
    PRIMARY KEY (build, host)
) STRICT, WITHOUT ROWID;
CREATE TABLE build (
    id INTEGER PRIMARY KEY,
    build_id TEXT NOT NULL UNIQUE,
    epoch INTEGER NOT NULL,
    named INTEGER NOT NULL,
    seen INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE TABLE build_set (
    id INTEGER PRIMARY KEY,
    builds BLOB NOT NULL UNIQUE
) STRICT;
CREATE TABLE build_set_member (
    build INTEGER NOT NULL,
    build_set INTEGER NOT NULL,
    PRIMARY KEY (build, build_set)
) STRICT, WITHOUT ROWID;
CREATE TABLE build_set_user (
    build_set INTEGER NOT NULL,
    uid INTEGER NOT NULL,
    PRIMARY KEY (build_set, uid)
) STRICT, WITHOUT ROWID;
CREATE TABLE build_user (
    build INTEGER NOT NULL,
    uid INTEGER NOT NULL,
    epoch INTEGER NOT NULL,
    added INTEGER NOT NULL,
    is_program INTEGER NOT NULL,
    first INTEGER NOT NULL,
    last INTEGER NOT NULL,
    uploads INTEGER NOT NULL,
    processes INTEGER NOT NULL,
    nanoseconds INTEGER NOT NULL,
    calls INTEGER NOT NULL,
    inexact INTEGER NOT NULL,
    name TEXT NOT NULL,
    PRIMARY KEY (build, uid)
) STRICT, WITHOUT ROWID;
CREATE TABLE centre (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    incarnation BLOB NOT NULL,
    number INTEGER NOT NULL,
    backup INTEGER NOT NULL,
    last INTEGER NOT NULL,
    counted_uploads INTEGER NOT NULL,
    counted_ticks INTEGER NOT NULL,
    counted_calls INTEGER NOT NULL,
    removed_uploads INTEGER NOT NULL,
    removed_ticks INTEGER NOT NULL,
    removed_calls INTEGER NOT NULL
) STRICT;
CREATE TABLE deletion (
    build_id TEXT PRIMARY KEY,
    before INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE doomed (
    series INTEGER PRIMARY KEY,
    uid INTEGER
) STRICT;
CREATE TABLE enrolment (
    identity BLOB PRIMARY KEY,
    tenant INTEGER NOT NULL,
    token INTEGER NOT NULL,
    name TEXT NOT NULL,
    machine TEXT NOT NULL,
    key BLOB NOT NULL UNIQUE,
    version TEXT NOT NULL,
    not_after INTEGER NOT NULL,
    enrolled INTEGER NOT NULL,
    revoked INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE epoch (
    id INTEGER PRIMARY KEY,
    epoch BLOB NOT NULL UNIQUE,
    host INTEGER NOT NULL,
    mark INTEGER NOT NULL,
    mark_number INTEGER NOT NULL,
    gone_uploads INTEGER NOT NULL,
    gone_ticks INTEGER NOT NULL,
    gone_calls INTEGER NOT NULL
) STRICT;
CREATE TABLE fleet_host (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    identity BLOB NOT NULL UNIQUE,
    name TEXT NOT NULL,
    first INTEGER NOT NULL,
    last INTEGER NOT NULL,
    clock INTEGER NOT NULL,
    number INTEGER NOT NULL,
    restored INTEGER NOT NULL,
    tenant INTEGER NOT NULL DEFAULT 1,
    machine TEXT NOT NULL DEFAULT '',
    other TEXT NOT NULL DEFAULT '',
    version TEXT NOT NULL DEFAULT '',
    not_after INTEGER NOT NULL DEFAULT 0,
    delivered INTEGER NOT NULL DEFAULT 0,
    copied INTEGER NOT NULL DEFAULT 0,
    epoch INTEGER NOT NULL DEFAULT 0,
    began INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE TABLE host (
    id INTEGER PRIMARY KEY,
    machine TEXT NOT NULL UNIQUE
) STRICT;
CREATE TABLE host_total (
    series INTEGER NOT NULL,
    hour INTEGER NOT NULL,
    host INTEGER NOT NULL,
    uploads INTEGER NOT NULL,
    processes INTEGER NOT NULL,
    ticks INTEGER NOT NULL,
    calls INTEGER NOT NULL,
    first INTEGER NOT NULL,
    last INTEGER NOT NULL,
    inexact INTEGER NOT NULL,
    shares BLOB NOT NULL,
    PRIMARY KEY (series, hour, host)
) STRICT, WITHOUT ROWID;
CREATE TABLE hour_mark (
    hour INTEGER NOT NULL,
    host INTEGER NOT NULL,
    reasons INTEGER NOT NULL,
    PRIMARY KEY (hour, host)
) STRICT, WITHOUT ROWID;
CREATE TABLE instance (
    id INTEGER PRIMARY KEY,
    uid INTEGER NOT NULL,
    name BLOB NOT NULL,
    generation INTEGER NOT NULL,
    upload INTEGER,
    series INTEGER,
    hour INTEGER,
    seen INTEGER NOT NULL,
    ended INTEGER NOT NULL,
    run INTEGER NOT NULL DEFAULT 0,
    missing INTEGER NOT NULL DEFAULT 0,
    missing_since INTEGER NOT NULL DEFAULT 0,
    UNIQUE (uid, name)
) STRICT;
CREATE TABLE instance_waiting (
    parent BLOB NOT NULL,
    child INTEGER NOT NULL,
    uid INTEGER NOT NULL,
    PRIMARY KEY (parent, child)
) STRICT, WITHOUT ROWID;
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
    raw_since INTEGER,
    shares BLOB NOT NULL,
    live_bytes INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (series, hour)
) STRICT, WITHOUT ROWID;
CREATE TABLE migration (
    step TEXT PRIMARY KEY,
    cursor INTEGER NOT NULL,
    done INTEGER NOT NULL,
    total INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE object (
    id INTEGER PRIMARY KEY,
    build INTEGER NOT NULL,
    variant TEXT NOT NULL,
    has_names INTEGER NOT NULL,
    size INTEGER NOT NULL,
    compressed INTEGER NOT NULL,
    bounds BLOB NOT NULL,
    encoded BLOB NOT NULL,
    outdated INTEGER NOT NULL DEFAULT 1,
    hash BLOB
) STRICT;
CREATE TABLE object_sender (
    object INTEGER NOT NULL,
    uid INTEGER NOT NULL,
    trusted INTEGER NOT NULL,
    delivered INTEGER NOT NULL,
    name TEXT NOT NULL,
    note TEXT NOT NULL,
    received INTEGER NOT NULL DEFAULT 0,
    operator INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (object, uid)
) STRICT, WITHOUT ROWID;
CREATE TABLE quarantine (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    epoch INTEGER NOT NULL,
    sequence INTEGER NOT NULL,
    received INTEGER NOT NULL,
    reason TEXT NOT NULL,
    size INTEGER NOT NULL,
    bytes BLOB NOT NULL
) STRICT;
CREATE TABLE reader (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL UNIQUE,
    role INTEGER NOT NULL,
    hash BLOB UNIQUE,
    expires INTEGER NOT NULL,
    created INTEGER NOT NULL
) STRICT;
CREATE TABLE reader_tenant (
    reader INTEGER NOT NULL,
    tenant INTEGER NOT NULL,
    PRIMARY KEY (reader, tenant)
) STRICT, WITHOUT ROWID;
CREATE TABLE relay (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    active INTEGER NOT NULL,
    epoch BLOB NOT NULL,
    sequence INTEGER NOT NULL,
    outside_uploads INTEGER NOT NULL,
    outside_ticks INTEGER NOT NULL,
    outside_calls INTEGER NOT NULL,
    acknowledged_uploads INTEGER NOT NULL,
    acknowledged_ticks INTEGER NOT NULL,
    acknowledged_calls INTEGER NOT NULL,
    rejected_uploads INTEGER NOT NULL,
    rejected_ticks INTEGER NOT NULL,
    rejected_calls INTEGER NOT NULL,
    withdrawn_uploads INTEGER NOT NULL,
    withdrawn_ticks INTEGER NOT NULL,
    withdrawn_calls INTEGER NOT NULL,
    incarnation BLOB NOT NULL,
    backup INTEGER NOT NULL,
    held INTEGER NOT NULL DEFAULT 0,
    held_since INTEGER NOT NULL DEFAULT 0,
    held_hour INTEGER NOT NULL DEFAULT 0,
    apart_before INTEGER NOT NULL DEFAULT 0,
    apart_hour INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE TABLE remote (
    id INTEGER PRIMARY KEY,
    series INTEGER NOT NULL,
    hour INTEGER NOT NULL,
    hash BLOB NOT NULL,
    number INTEGER NOT NULL,
    version INTEGER NOT NULL,
    segments INTEGER NOT NULL,
    digests INTEGER NOT NULL,
    bytes INTEGER NOT NULL,
    since INTEGER NOT NULL,
    sent_from INTEGER NOT NULL,
    sent_to INTEGER NOT NULL,
    UNIQUE (series, hour)
) STRICT;
CREATE TABLE rollup (
    id INTEGER PRIMARY KEY,
    series INTEGER NOT NULL,
    level INTEGER NOT NULL,
    at INTEGER NOT NULL,
    folded INTEGER NOT NULL,
    version INTEGER NOT NULL,
    number INTEGER NOT NULL,
    uploads INTEGER NOT NULL,
    processes INTEGER NOT NULL,
    ticks INTEGER NOT NULL,
    calls INTEGER NOT NULL,
    first INTEGER NOT NULL,
    last INTEGER NOT NULL,
    inexact INTEGER NOT NULL,
    hosts BLOB NOT NULL,
    counts BLOB NOT NULL,
    spread BLOB NOT NULL,
    UNIQUE (series, level, at)
) STRICT;
CREATE TABLE rollup_processes (
    series INTEGER NOT NULL,
    level INTEGER NOT NULL,
    at INTEGER NOT NULL,
    groups BLOB NOT NULL,
    PRIMARY KEY (series, level, at)
) STRICT, WITHOUT ROWID;
CREATE TABLE segment (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    epoch BLOB NOT NULL,
    sequence INTEGER NOT NULL,
    series INTEGER NOT NULL,
    hour INTEGER NOT NULL,
    state INTEGER NOT NULL,
    opened INTEGER NOT NULL,
    changed INTEGER NOT NULL,
    uploads INTEGER NOT NULL,
    ticks INTEGER NOT NULL,
    calls INTEGER NOT NULL,
    weight INTEGER NOT NULL,
    parts INTEGER NOT NULL,
    part_bytes INTEGER NOT NULL,
    size INTEGER NOT NULL,
    number INTEGER NOT NULL,
    outcome INTEGER NOT NULL,
    since INTEGER NOT NULL DEFAULT 0,
    until INTEGER NOT NULL DEFAULT 9223372036854775807,
    stack_ticks INTEGER,
    UNIQUE (epoch, sequence)
) STRICT;
CREATE TABLE segment_bytes (
    segment INTEGER PRIMARY KEY,
    bytes BLOB NOT NULL
) STRICT;
CREATE TABLE segment_part (
    id INTEGER PRIMARY KEY,
    spread_group INTEGER NOT NULL,
    start INTEGER NOT NULL,
    length INTEGER NOT NULL,
    inexact INTEGER NOT NULL,
    uploads INTEGER NOT NULL,
    started INTEGER NOT NULL,
    counts BLOB NOT NULL
) STRICT;
CREATE TABLE sender (
    host INTEGER NOT NULL,
    uid INTEGER NOT NULL,
    sender BLOB NOT NULL,
    mark INTEGER NOT NULL,
    seen INTEGER NOT NULL,
    above BLOB,
    PRIMARY KEY (host, uid, sender)
) STRICT, WITHOUT ROWID;
CREATE TABLE series (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    build_set INTEGER NOT NULL,
    uid INTEGER NOT NULL,
    program INTEGER NOT NULL,
    labels BLOB NOT NULL,
    uploads INTEGER NOT NULL,
    processes INTEGER NOT NULL,
    ticks INTEGER NOT NULL,
    calls INTEGER NOT NULL,
    first INTEGER NOT NULL,
    last INTEGER NOT NULL,
    inexact INTEGER NOT NULL,
    raw_uploads INTEGER NOT NULL,
    raw_bytes INTEGER NOT NULL,
    shares BLOB NOT NULL,
    live_bytes INTEGER NOT NULL DEFAULT 0,
    UNIQUE (build_set, uid, program, labels)
) STRICT;
CREATE TABLE slice (
    series INTEGER NOT NULL,
    width INTEGER NOT NULL,
    at INTEGER NOT NULL,
    instance INTEGER NOT NULL,
    upload INTEGER NOT NULL,
    PRIMARY KEY (series, width, at, instance, upload)
) STRICT, WITHOUT ROWID;
CREATE TABLE snapshot (
    instance INTEGER PRIMARY KEY,
    bytes BLOB NOT NULL
) STRICT;
CREATE TABLE state (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    number INTEGER NOT NULL,
    list_epoch INTEGER NOT NULL,
    salt INTEGER NOT NULL,
    uploads INTEGER NOT NULL,
    ticks INTEGER NOT NULL,
    calls INTEGER NOT NULL,
    version INTEGER NOT NULL DEFAULT 0,
    retired_uploads INTEGER NOT NULL DEFAULT 0,
    retired_ticks INTEGER NOT NULL DEFAULT 0,
    retired_calls INTEGER NOT NULL DEFAULT 0,
    raw_uploads INTEGER NOT NULL DEFAULT 0,
    raw_bytes INTEGER NOT NULL DEFAULT 0,
    rollups INTEGER NOT NULL DEFAULT 0,
    retiring INTEGER NOT NULL DEFAULT 0,
    live_bytes INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE TABLE tenant (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL UNIQUE
) STRICT;
CREATE TABLE token (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    hash BLOB NOT NULL UNIQUE,
    tenant INTEGER NOT NULL,
    uses INTEGER NOT NULL,
    expires INTEGER NOT NULL,
    created INTEGER NOT NULL,
    name TEXT NOT NULL
) STRICT;
CREATE TABLE upload (
    number INTEGER PRIMARY KEY,
    series INTEGER NOT NULL,
    hour INTEGER NOT NULL,
    host INTEGER NOT NULL,
    start INTEGER NOT NULL,
    length INTEGER NOT NULL,
    inexact INTEGER NOT NULL,
    started INTEGER NOT NULL,
    spread_group INTEGER NOT NULL,
    counts BLOB NOT NULL,
    width INTEGER NOT NULL DEFAULT 0,
    instance INTEGER NOT NULL DEFAULT 0,
    parts INTEGER NOT NULL DEFAULT 1
) STRICT;
CREATE TABLE user_bytes (
    uid INTEGER PRIMARY KEY,
    bytes INTEGER NOT NULL
) STRICT;
CREATE TABLE user_epoch (
    uid INTEGER PRIMARY KEY,
    epoch INTEGER NOT NULL
) STRICT;
CREATE TABLE variant (
    id INTEGER PRIMARY KEY,
    build INTEGER NOT NULL,
    hash BLOB NOT NULL,
    hosts INTEGER NOT NULL,
    UNIQUE (build, hash)
) STRICT;
CREATE TABLE watch (
    kind INTEGER NOT NULL,
    key TEXT NOT NULL,
    changed INTEGER NOT NULL,
    document TEXT NOT NULL,
    PRIMARY KEY (kind, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX attestation_due ON attestation (host, due);
CREATE INDEX build_set_member_by_set ON build_set_member (build_set, build);
CREATE INDEX build_unseen ON build (seen) WHERE epoch = 0;
CREATE INDEX build_user_by_uid ON build_user (uid, build);
CREATE INDEX host_total_by_hour ON host_total (hour);
CREATE INDEX instance_by_name ON instance (name);
CREATE INDEX instance_ended ON instance (seen, id) WHERE ended = 1;
CREATE INDEX instance_living ON instance (id) WHERE ended = 0;
CREATE INDEX instance_missing ON instance (series, missing_since) WHERE missing > 0;
CREATE INDEX instance_unread ON instance (run, series, seen) WHERE ended = 0;
CREATE INDEX instance_waiting_by_child ON instance_waiting (child);
CREATE INDEX ledger_by_hour ON ledger (hour, series);
CREATE INDEX ledger_raw ON ledger (raw_since, series, hour) WHERE raw_since IS NOT NULL;
CREATE INDEX object_by_build ON object (build, variant);
CREATE INDEX quarantine_kept ON quarantine (id) WHERE size > 0;
CREATE INDEX rollup_open ON rollup (series, level, at, number) WHERE folded = 0;
CREATE INDEX rollup_to_fold ON rollup (level, at, series) WHERE folded = 0;
CREATE INDEX segment_by_state ON segment (state, id);
CREATE INDEX segment_kept ON segment (changed, id) WHERE state = 3;
CREATE INDEX segment_open ON segment (series, hour, id) WHERE state = 0;
CREATE INDEX slice_by_time ON slice (width, at, series);
CREATE INDEX snapshot_by_instance ON snapshot (instance);
CREATE INDEX upload_by_series ON upload (series, hour);
INSERT INTO state (one, number, list_epoch, salt, uploads, ticks, calls) VALUES (1, 0, 0, 0, 0, 0, 0);
INSERT INTO centre VALUES (1, randomblob(16), 0, 0, 0, 0, 0, 0, 0, 0, 0);
INSERT INTO tenant VALUES (1, 'default');
