/* UPLOAD: queued, checked beside the writer, stored with others in one transaction, answered when that is durable. */
#ifndef PROFD_REQUESTS_UPLOAD_H
#define PROFD_REQUESTS_UPLOAD_H

#include "ingest/ingest.h"
#include "net/conn.h"
#include "requests/numbers.h"
#include "proto/status.h"

struct object_service;
struct sync_config;
struct writer;

/* The server fills it in. All parts outlive the writer's thread. */
struct upload_service {
    struct conn_group *conns;
    const struct sync_config *sync;
    struct writer *writer;
    struct build_cache *builds;      /* used where jobs are prepared, by nothing else */
    struct object_service *objects;  /* asks for the executables that uploads want */
    void (*no_space)(void *context); /* an upload was refused for want of space */
    void *context;
    struct upload_counts counts;
};

/* For conn_handler; the context is the service. */
enum profd_status upload_receive(void *context, struct conn *c, struct conn_frame *f, struct profd_error *e);

#endif
