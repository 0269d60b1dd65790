/* ARRIVE and DELIVER: profd-gate says which hosts are there, and passes their segments on. Only it, root and the
 * daemon's user may. */
#ifndef PROFD_REQUESTS_CENTRE_H
#define PROFD_REQUESTS_CENTRE_H

#include <stdbool.h>
#include <stdint.h>

#include "net/conn.h"
#include "proto/status.h"

struct centre_service;
struct intake;
struct revocations;
struct sync_config;
struct writer;

/* All parts outlive the service. */
struct centre_config {
    bool active;                           /* segments are accepted */
    const struct revocations *revocations; /* NULL if not active */
    struct intake *intake;
    struct conn_group *conns;
    const struct sync_config *sync;
    struct writer *writer;
    void (*no_space)(void *context); /* an attestation was refused for want of space */
    void *context;
};

enum profd_status centre_service_new(const struct centre_config *config, struct centre_service **out,
                                     struct profd_error *e);
/* After the writer's thread and the connections. Accepts NULL. */
void centre_service_free(struct centre_service *s);
/* For conn_handler; the context is the service. */
enum profd_status centre_receive_arrive(void *context, struct conn *c, struct conn_frame *f, struct profd_error *e);
enum profd_status centre_receive_deliver(void *context, struct conn *c, struct conn_frame *f, struct profd_error *e);

#endif
