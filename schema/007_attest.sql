-- Schema version 7: which parsed objects hosts attest. Only adds tables and a column.

-- The SHA-256 of the encoding, of an object that came from a host; NULL of others.
ALTER TABLE object ADD COLUMN hash BLOB;

-- The contents that hosts attest of builds.
CREATE TABLE variant (
    id INTEGER PRIMARY KEY,
    build INTEGER NOT NULL,       -- build
    hash BLOB NOT NULL,           -- 32 bytes: SHA-256 of the encoded object
    hosts INTEGER NOT NULL,       -- number of hosts that attest it, not 0
    UNIQUE (build, hash)
) STRICT;

-- The builds that segments of a host named, and what the host attests of them.
CREATE TABLE attestation (
    build INTEGER NOT NULL,       -- build
    host INTEGER NOT NULL,        -- fleet_host
    variant INTEGER NOT NULL,     -- 0: nothing
    size INTEGER NOT NULL,        -- of the encoding, as the host says
    due INTEGER NOT NULL,         -- ns: when the host is asked for it again
    PRIMARY KEY (build, host)
) STRICT, WITHOUT ROWID;
CREATE INDEX attestation_due ON attestation (host, due);
