/* FETCH and ACKNOWLEDGE: profd-relay fetches sealed outgoing uploads, and states which of them the centre has
 * committed. Only the users root, profd-relay and that of the daemon may send these messages. */
#ifndef PROFD_REQUESTS_RELAY_H
#define PROFD_REQUESTS_RELAY_H

#include <stdbool.h>
#include <stdint.h>

#include "net/conn.h"
#include "requests/numbers.h"
#include "proto/segment.h"
#include "proto/status.h"

struct relay_service;
struct store;
struct sync_config;
struct writer;

/* All parts outlive the service. */
struct relay_config {
    bool active;                       /* outgoing uploads are made */
    uint8_t epoch[SEGMENT_EPOCH_SIZE]; /* if active: from relay_begin_epoch */
    struct conn_group *conns;
    const struct sync_config *sync;
    struct writer *writer;
};

/* Draws an epoch and begins it (store_relay_begin). An epoch is the time in seconds, so that epochs ascend, and 64
 * random bits. IO: there are no random numbers. */
enum profd_status relay_begin_epoch(struct store *store, uint8_t epoch[SEGMENT_EPOCH_SIZE], struct profd_error *e);

/* Moves the host to another centre: store_relay_move, and a new epoch. On the writer's thread. */
enum profd_status relay_move(struct relay_service *s, struct store *store, uint64_t *withdrawn, struct profd_error *e);

enum profd_status relay_service_new(const struct relay_config *config, struct relay_service **out,
                                    struct profd_error *e);
/* After the writer's thread and the connections. Accepts NULL. */
void relay_service_free(struct relay_service *s);
const struct relay_counts *relay_service_get_counts(const struct relay_service *s);
/* For conn_handler; the context is the service. */
enum profd_status relay_receive_fetch(void *context, struct conn *c, struct conn_frame *f, struct profd_error *e);
enum profd_status relay_receive_acknowledge(void *context, struct conn *c, struct conn_frame *f, struct profd_error *e);
/* FETCH_OBJECT: the parsed object of a build that this host offers, in pieces. */
enum profd_status relay_receive_fetch_object(void *context, struct conn *c, struct conn_frame *f,
                                             struct profd_error *e);

#endif
