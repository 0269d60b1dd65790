/* Which parsed objects hosts attest, at a centre: part of the contract of store.h, which includes this.
 *
 * A build of which a host has sent a segment is asked for: the host attests the hash of the parsed object that names
 * functions there, one for each build. A variant (a content, known by its hash) that a quorum of hosts attests names
 * functions of everything that came from hosts; another one only of what the hosts that attest it have sent. Without a
 * quorum for one variant, those with the same names count as one (same_names.h). Where an
 * operator of a tenant has sent a variant, it names the functions of this tenant, whatever hosts attest. */
#ifndef PROFD_STORE_ATTESTATIONS_H
#define PROFD_STORE_ATTESTATIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/buildid.h"
#include "store/arrivals.h"

#define STORE_HASH_SIZE 32
#define STORE_QUORUM 3u                            /* hosts; also a majority of the attesting hosts of the build */
#define STORE_ATTEST_MOST 4096u                    /* variants of one host */
#define STORE_ATTEST_BYTES (UINT64_C(512) << 20)   /* of their encodings */
#define STORE_ATTEST_AGAIN INT64_C(86400000000000) /* ns: after it what is known is asked for again, */
#define STORE_ATTEST_ABSENT INT64_C(60000000000)   /* what the host lacks, */
#define STORE_ATTEST_AWAITED INT64_C(10000000000)  /* and what it has, but the centre lacks */

struct store_scope;
struct store_attestation {
    uint8_t host[STORE_HOST_SIZE];
    const char *build_id; /* "": the host only asks what is asked for */
    bool has;             /* false: it has no object of the build */
    bool refused;         /* with has=false: what it has cannot be used */
    uint8_t hash[STORE_HASH_SIZE];
    uint64_t size;
    int64_t now; /* ns */
};

struct store_attested {
    enum {
        STORE_ATTEST_TAKEN,
        STORE_ATTEST_UNASKED,  /* refused: no segment of this host named the build */
        STORE_ATTEST_TOO_MANY, /* refused: STORE_ATTEST_MOST, STORE_ATTEST_BYTES */
        STORE_ATTEST_TOO_LARGE
    } verdict;
    bool stored;         /* the object itself is there */
    struct buildid next; /* a build that the host shall attest now; "": none */
};

/* The senders of the counts of a sum. Borrowed. */
struct store_senders {
    const uint32_t *uids; /* ascending */
    size_t uid_count;
    const char *const *hosts;       /* of what belongs to tenants: identities, 32 hex digits */
    size_t host_count;              /* 0: every host that has sent segments of the build */
    const struct store_scope *seen; /* naming.variants counts trusted objects and those of these users; NULL: all */
};

/* Why an object names functions. */
enum store_named_by {
    STORE_NAMED_BY_USERS,    /* trusted, or all senders are users of this machine that have sent it */
    STORE_NAMED_BY_QUORUM,   /* of hosts */
    STORE_NAMED_BY_HOSTS,    /* no quorum, but each host of the sum attests it */
    STORE_NAMED_BY_OPERATORS /* of each tenant of the sum */
};
struct store_naming {
    uint32_t variants; /* number of different contents of the build that are stored and counted: seen */
    enum store_named_by by;
    uint64_t hosts, attesting; /* that attest the object, and any object of the build; 0 if by users */
    uint32_t operators;        /* number of tenants of the sum of which an operator has sent an object with names */
};

#endif
