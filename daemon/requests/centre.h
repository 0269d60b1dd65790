/* ARRIVE and DELIVER: profd-gate says which hosts are there, and passes their segments on. Only it, root and the
 * daemon's user may. Segments wait a little, so that many become one transaction; each is acknowledged after that has
 * been committed. */
#ifndef PROFD_REQUESTS_CENTRE_H
#define PROFD_REQUESTS_CENTRE_H

#include <stdbool.h>
#include <stdint.h>

#include "net/conn.h"
#include "pages/numbers.h"
#include "proto/status.h"
#include "store/store.h"

struct centre_service;
struct loop;
struct revocations;
struct sync_config;
struct writer;

/* All parts outlive the service. */
struct centre_config {
    bool active;      /* segments are accepted */
    int64_t interval; /* ns: hosts come at most once in it */
    struct store_detail detail;
    const struct revocations *revocations; /* NULL if not active */
    struct loop *loop;
    struct conn_group *conns;
    const struct sync_config *sync;
    struct writer *writer;
    void (*no_space)(void *context); /* a segment was refused for want of space */
    void *context;
};

enum profd_status centre_service_new(const struct centre_config *config, struct centre_service **out,
                                     struct profd_error *e);
/* After the writer's thread and the connections. Accepts NULL. */
void centre_service_free(struct centre_service *s);
const struct centre_counts *centre_service_get_counts(const struct centre_service *s);
/* Identity → struct host_counts, of the hosts that came since the start. */
const struct hashmap *centre_service_get_hosts(const struct centre_service *s);
/* Changes what is told to hosts, and what is stored of segments, from now on. */
void centre_service_set(struct centre_service *s, int64_t interval, const struct store_detail *detail);
/* Segments that wait are stored now. */
void centre_service_stop(struct centre_service *s);
/* For conn_handler; the context is the service. */
enum profd_status centre_receive_arrive(void *context, struct conn *c, struct conn_frame *f, struct profd_error *e);
enum profd_status centre_receive_deliver(void *context, struct conn *c, struct conn_frame *f, struct profd_error *e);

#endif
