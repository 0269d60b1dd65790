/* The symbols that hosts have of builds, and which of them name functions at a centre: part of the contract of store.h,
 * which includes this.
 *
 * A host that has sent counts of a build is asked for the hash of the parsed object that names functions there. The
 * centre takes one object of a build for each tenant: the first that a host sends. The same host may replace it. What
 * other hosts have under this build-id is kept out; if it has another hash, the build is disputed. The object that an
 * operator of the tenant has sent precedes that of the host, and ends the dispute. An object without names is kept only
 * until one with names comes. */
#ifndef PROFD_STORE_OFFERS_H
#define PROFD_STORE_OFFERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/buildid.h"
#include "store/arrivals.h"

#define STORE_HASH_SIZE 32
#define STORE_OFFER_MOST 4096u                    /* objects of one host */
#define STORE_OFFER_BYTES (UINT64_C(512) << 20)   /* of their encodings */
#define STORE_OFFER_AGAIN INT64_C(86400000000000) /* ns: after it what is known is asked for again, */
#define STORE_OFFER_ABSENT INT64_C(60000000000)   /* what the host lacks, */
#define STORE_OFFER_AWAITED INT64_C(10000000000)  /* and what it has, but the centre lacks */

struct store_scope;
/* What a host has of a build that it was asked for. Borrowed. */
struct store_offer {
    uint8_t host[STORE_HOST_SIZE]; /* identity */
    const char *build_id;
    bool has;                      /* false: it has no object of the build, or none that can be used */
    bool refused;                  /* with has=false: what it has cannot be used */
    uint8_t hash[STORE_HASH_SIZE]; /* SHA-256 of the encoded object */
    uint64_t size;                 /* of it; more than LIMIT_PARSED_OBJECT cannot be used */
    int64_t now;                   /* ns */
};
struct store_offered {
    enum {
        STORE_OFFER_TAKEN,
        STORE_OFFER_UNASKED,  /* refused: the host has sent no counts of the build */
        STORE_OFFER_TOO_MANY, /* refused: STORE_OFFER_MOST, STORE_OFFER_BYTES, the size of one */
        STORE_OFFER_TOO_LARGE
    } verdict;
    bool wanted; /* the host shall send the object */
};

/* The senders of the counts of a sum. Borrowed. */
struct store_senders {
    const uint32_t *uids; /* ascending */
    size_t uid_count;
    const struct store_scope *seen; /* naming.variants counts trusted objects and those of these users; NULL: all */
};

/* Why an object names functions, or why there is none. */
struct store_naming {
    uint32_t variants; /* number of different contents of the build that are stored and counted: seen */
    bool by_operators; /* of each tenant of the sum */
    bool apart;        /* there is none, but a tenant of the sum has one */
    char disputed[2 * LIMIT_LABEL_VALUE + 256]; /* a clause with the names of two hosts; "": undisputed */
};

#endif
