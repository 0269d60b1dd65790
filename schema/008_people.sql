-- Schema version 8: tenants, enrolment of hosts, and readers of a centre. Only adds tables and columns.

-- Owners of what hosts send. Tenant n has the number 4294967294 - (n - 1) wherever a table says uid.
CREATE TABLE tenant (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL UNIQUE
) STRICT;
INSERT INTO tenant VALUES (1, 'default');

-- Tokens with which hosts enrol.
CREATE TABLE token (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    hash BLOB NOT NULL UNIQUE,    -- 32 bytes: SHA-256 of the secret
    tenant INTEGER NOT NULL,      -- tenant
    uses INTEGER NOT NULL,        -- left
    expires INTEGER NOT NULL,     -- ns
    created INTEGER NOT NULL,     -- ns
    name TEXT NOT NULL            -- said by the operator; may be empty
) STRICT;

-- Hosts to which the centre gave a certificate.
CREATE TABLE enrolment (
    identity BLOB PRIMARY KEY,    -- 16 random bytes, in the certificate
    tenant INTEGER NOT NULL,      -- tenant
    token INTEGER NOT NULL,       -- id of the token; its row may be gone
    name TEXT NOT NULL,           -- in the certificate
    machine TEXT NOT NULL,        -- machine-id as the host says; may be empty
    key BLOB NOT NULL UNIQUE,     -- 32 bytes: SHA-256 of the DER form of the public key
    version TEXT NOT NULL,        -- of profd on the host, as it says; may be empty
    not_after INTEGER NOT NULL,   -- ns: end of the latest certificate
    enrolled INTEGER NOT NULL,    -- ns
    revoked INTEGER NOT NULL      -- ns; 0: is not
) STRICT, WITHOUT ROWID;

-- Users that read over the network.
CREATE TABLE reader (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL UNIQUE,
    role INTEGER NOT NULL,        -- 0 read, 1 admin
    hash BLOB UNIQUE,             -- 32 bytes: SHA-256 of its token; NULL: a proxy names it
    expires INTEGER NOT NULL,     -- ns; 0: never
    created INTEGER NOT NULL      -- ns
) STRICT;

-- The tenants of which a reader sees the data.
CREATE TABLE reader_tenant (
    reader INTEGER NOT NULL,      -- reader
    tenant INTEGER NOT NULL,      -- tenant
    PRIMARY KEY (reader, tenant)
) STRICT, WITHOUT ROWID;

-- What a host says of itself, and its certificate, at its latest arrival.
ALTER TABLE fleet_host ADD COLUMN tenant INTEGER NOT NULL DEFAULT 1; -- tenant
ALTER TABLE fleet_host ADD COLUMN machine TEXT NOT NULL DEFAULT ''; -- machine-id
ALTER TABLE fleet_host ADD COLUMN other TEXT NOT NULL DEFAULT ''; -- the machine-id before the latest one, if another came with this identity
ALTER TABLE fleet_host ADD COLUMN version TEXT NOT NULL DEFAULT '';
ALTER TABLE fleet_host ADD COLUMN not_after INTEGER NOT NULL DEFAULT 0; -- ns: end of the certificate
ALTER TABLE fleet_host ADD COLUMN delivered INTEGER NOT NULL DEFAULT 0; -- ns: when a segment came last
ALTER TABLE fleet_host ADD COLUMN copied INTEGER NOT NULL DEFAULT 0; -- ns: when two machines were last seen with this identity
ALTER TABLE fleet_host ADD COLUMN epoch INTEGER NOT NULL DEFAULT 0; -- its newest, and
ALTER TABLE fleet_host ADD COLUMN began INTEGER NOT NULL DEFAULT 0; -- ns: when the first segment of that came

-- 1: an operator sent it for the tenant uid; it names functions of this tenant, whatever its hosts attest.
ALTER TABLE object_sender ADD COLUMN operator INTEGER NOT NULL DEFAULT 0;
