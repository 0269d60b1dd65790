/* Enrolment of hosts at a centre: part of the contract of store.h, which includes this. A host gets its identity when a
 * token names its tenant; later its key stands for it. */
#ifndef PROFD_STORE_ENROLMENTS_H
#define PROFD_STORE_ENROLMENTS_H

#include <stdbool.h>
#include <stdint.h>

#include "store/attestations.h"

#define STORE_NAME_SIZE 256
#define STORE_MACHINE_SIZE 64 /* of a machine-id or a version, with its NUL */

struct store_token {
    uint8_t hash[STORE_HASH_SIZE]; /* of the secret */
    const char *tenant;            /* made if there is none of this name */
    const char *name;
    uint64_t uses;
    int64_t expires, created; /* ns */
};

/* A host that was enrolled. */
struct store_enrolment {
    uint8_t host[STORE_HOST_SIZE]; /* identity */
    uint8_t key[STORE_HASH_SIZE];  /* of the DER form of its public key */
    char tenant[STORE_NAME_SIZE];
    uint32_t uid; /* of the tenant: store_is_tenant */
    char name[STORE_NAME_SIZE], machine[STORE_MACHINE_SIZE], version[STORE_MACHINE_SIZE];
    int64_t not_after, enrolled, revoked; /* ns; revoked 0: it is not */
};

struct store_enrolling {
    uint8_t token[STORE_HASH_SIZE];
    bool spent; /* the token is used up, whatever the database says */
    uint8_t host[STORE_HOST_SIZE], key[STORE_HASH_SIZE];
    const char *name, *machine, *version;
    int64_t now, not_after; /* ns */
};

enum store_enrol_verdict {
    STORE_ENROLLED,      /* now, or before with the same key and token */
    STORE_ENROL_UNKNOWN, /* no such token, or no such key */
    STORE_ENROL_EXPIRED,
    STORE_ENROL_USED_UP,
    STORE_ENROL_OTHER,  /* the key was enrolled with another token */
    STORE_ENROL_REVOKED /* the key is */
};

/* A host as the centre knows it. Texts live until the callback returns. */
struct store_fleet_host {
    uint8_t host[STORE_HOST_SIZE];
    const char *name, *tenant, *machine, *version;
    const char *other;  /* another machine-id that came with this identity; "" */
    uint32_t uid;       /* of the tenant: store_is_tenant */
    bool has_enrolment; /* else not_after is that of a certificate of another CA */
    int64_t not_after, revoked, first, last, delivered, restored; /* ns; 0: never */
    int64_t copied; /* ns: when two machines were last seen with this identity; 0: never */
};

#endif
