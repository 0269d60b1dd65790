/* FETCH and ACKNOWLEDGE: profd-relay fetches sealed outgoing uploads, and states which of them the centre has
 * committed. Only the users root, profd-relay and that of the daemon may send these messages. */
#ifndef PROFD_REQUESTS_RELAY_H
#define PROFD_REQUESTS_RELAY_H

#include "requests/numbers.h"

struct shared;

/* A parsed object that the relay fetches in pieces. */
struct relay_object {
    struct buildid id;
    uint8_t *bytes; /* owned; NULL: none */
    size_t size;
    uint8_t hash[STORE_HASH_SIZE];
};

/* The server fills it in. All parts outlive the writer's thread. */
struct relay_service {
    bool active; /* outgoing uploads are made */
    const struct shared *shared;
    uint8_t
        epoch[SEGMENT_EPOCH_SIZE]; /* if active: from relay_begin_epoch; epoch and moves are of the writer's thread */
    uint64_t moves;                /* to another centre, since the start */
    struct relay_object object;    /* fetched in part */
    struct relay_counts counts;
};

/* Draws an epoch and begins it (store_relay_begin). An epoch is the time in seconds, so that epochs ascend, and 64
 * random bits. IO: there are no random numbers. */
enum profd_status relay_begin_epoch(struct store *store, uint8_t epoch[SEGMENT_EPOCH_SIZE], struct profd_error *e);

/* Moves the host to another centre: store_relay_move, and a new epoch. On the writer's thread. */
enum profd_status relay_move(struct relay_service *s, struct store *store, uint64_t *withdrawn, struct profd_error *e);

/* Frees what a peer fetched in part. After the writer's thread and the connections. */
void relay_service_done(struct relay_service *s);
/* For conn_handler; the context is the service. */
enum profd_status relay_receive_fetch(void *context, struct conn *c, struct conn_frame *f, struct profd_error *e);
enum profd_status relay_receive_acknowledge(void *context, struct conn *c, struct conn_frame *f, struct profd_error *e);
/* FETCH_OBJECT: the parsed object of a build that this host offers, in pieces. */
enum profd_status relay_receive_fetch_object(void *context, struct conn *c, struct conn_frame *f,
                                             struct profd_error *e);

#endif
