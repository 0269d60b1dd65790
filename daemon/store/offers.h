/* Symbols that hosts offer to a centre, and which of them name functions there: part of the contract of store.h, which
 * includes this.
 *
 * A host that has sent counts of a build is asked for the hash of its parsed object of this build. For each tenant the
 * centre stores the first object of a build that a host sends. Only the same host may replace it. Objects of other
 * hosts are not used; if one has another hash, the build is disputed. An object that an operator of the tenant has sent
 * takes precedence over that of the host, and ends the dispute. An object without names is replaced by the first one
 * with names. */
#ifndef PROFD_STORE_OFFERS_H
#define PROFD_STORE_OFFERS_H

#include "proto/buildid.h"
#include "store/arrivals.h"

#define STORE_HASH_SIZE 32
#define STORE_OFFER_MOST 4096u                    /* objects of one host */
#define STORE_OFFER_BYTES (UINT64_C(512) << 20)   /* of their encodings */
#define STORE_OFFER_AGAIN INT64_C(86400000000000) /* ns until the host is asked again if its offer is known, */
#define STORE_OFFER_ABSENT INT64_C(60000000000)   /* if the host lacks the object, */
#define STORE_OFFER_AWAITED INT64_C(10000000000)  /* and if the centre lacks it */

struct store_scope;
/* The object that a host has of a build. Borrowed. */
struct store_offer {
    uint8_t host[STORE_HOST_SIZE]; /* identity */
    const char *build_id;
    bool has;                      /* false: the host has no usable object of the build */
    bool refused;                  /* with has=false: the host's object cannot be used */
    uint8_t hash[STORE_HASH_SIZE]; /* SHA-256 of the encoded object */
    uint64_t size;                 /* of the encoded object; one above LIMIT_PARSED_OBJECT cannot be used */
    int64_t now;                   /* ns */
};
struct store_offered {
    enum {
        STORE_OFFER_TAKEN,
        STORE_OFFER_UNASKED,  /* refused: the host has sent no counts of the build */
        STORE_OFFER_TOO_MANY, /* refused: STORE_OFFER_MOST. The next: STORE_OFFER_BYTES, or size */
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
    uint32_t variants; /* number of different stored contents of the build that `seen` counts */
    bool by_operators; /* operators of each tenant of the sum have sent it */
    bool apart;        /* no object names functions in the sum, but one does for a tenant of the sum */
    char disputed[2 * LIMIT_LABEL_VALUE + 256]; /* a clause with the names of two hosts; "": undisputed */
};

#endif
