/* Private to requests/relay*. */
#ifndef PROFD_REQUESTS_RELAY_INTERNAL_H
#define PROFD_REQUESTS_RELAY_INTERNAL_H

#include "proto/buildid.h"
#include "requests/relay.h"
#include "store/store.h"

/* A parsed object that the relay fetches in pieces. */
struct relay_object {
    struct buildid id;
    uint8_t *bytes; /* owned; NULL: none */
    size_t size;
    uint8_t hash[STORE_HASH_SIZE];
};

struct relay_service {
    struct relay_config config;
    struct relay_counts counts;
    uint8_t epoch[SEGMENT_EPOCH_SIZE]; /* the current one; epoch and moves are of the writer's thread */
    uint64_t moves;                    /* to another centre, since the start */
    struct relay_object object;        /* fetched in part */
};

/* FORBIDDEN: this peer may not fetch. CONFIG: nothing is forwarded. */
enum profd_status relay_check(const struct relay_service *s, const struct conn *c, struct profd_error *e);

#endif
