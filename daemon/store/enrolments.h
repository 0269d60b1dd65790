/* Enrolment of hosts at a centre: part of the contract of store.h, which includes this. A host gets its identity when a
 * token names its tenant; later its key stands for it. */
#ifndef PROFD_STORE_ENROLMENTS_H
#define PROFD_STORE_ENROLMENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/status.h"
#include "store/offers.h"

#define STORE_NAME_SIZE 256
#define STORE_MACHINE_SIZE 64 /* of a machine-id or a version, with its NUL */

struct store_enrol_token {
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
    uint32_t uid;       /* of the tenant: store_is_tenant */
    bool has_enrolment; /* else not_after is that of a certificate of another CA */
    int64_t not_after, revoked, first, last, delivered, restored; /* ns; 0: never */
    int64_t copied; /* ns: when two machines were last seen with this identity; 0: never */
};

struct store;

/* --- Verbs, on the writing handle where nothing else is said. Each call is one transaction --- */

/* Adds a token; LIMIT: there are too many tenants. */
enum profd_status store_put_enrol_token(struct store *s, const struct store_enrol_token *token, struct profd_error *e);
/* Enrols the host of a key with a token, which is used up by one. The same key with the same token gets what it got
 * before, even if the token is used up or has expired now. *out is set if the verdict is STORE_ENROLLED. *spent: the
 * token is used up, and x does not say so. Only STORE_ENROLLED changes anything. O(log n). */
enum profd_status store_enrol(struct store *s, const struct store_enrolling *x, struct store_enrolment *out,
                              enum store_enrol_verdict *verdict, bool *spent, struct profd_error *e);
/* A host with an enrolled key gets its next certificate: machine, version and not_after are stored. *out as above. */
enum profd_status store_renew(struct store *s, const struct store_enrolling *x, struct store_enrolment *out,
                              enum store_enrol_verdict *verdict, struct profd_error *e);
/* Revokes the key of the host with this identity, or else of the only one with this name that is not revoked, and calls
 * each with it. If all were revoked before, each gets these. each returns false when out of memory: then nothing is
 * changed. AMBIGUOUS: several hosts have the name; the sentence has their identities. */
enum profd_status store_revoke(struct store *s, const char *which, int64_t now,
                               bool (*each)(void *context, const struct store_enrolment *host), void *context,
                               struct profd_error *e);
/* Revokes enrolled keys: n hashes, each with its time in ns. Unknown ones are ignored. */
enum profd_status store_revoke_keys(struct store *s, const uint8_t *keys, const int64_t *times, size_t n,
                                    struct profd_error *e);
/* On any handle: the enrolments of n hosts, by their identities behind each other; found[i] says whether the i-th has
 * one, which is out[i] then. */
enum profd_status store_find_enrolments(struct store *s, const uint8_t *hosts, size_t n, struct store_enrolment *out,
                                        bool *found, struct profd_error *e);
/* On any handle: every host that has arrived or was enrolled, by name. each returns false to stop. */
enum profd_status store_each_host(struct store *s, bool (*each)(void *context, const struct store_fleet_host *host),
                                  void *context, struct profd_error *e);

#endif
