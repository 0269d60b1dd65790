/* UPLOAD: queued, checked beside the writer, stored with others in one transaction, answered when that is durable. */
#ifndef PROFD_REQUESTS_UPLOAD_H
#define PROFD_REQUESTS_UPLOAD_H

#include "ingest/ingest.h"
#include "net/conn.h"
#include "requests/numbers.h"
#include "proto/status.h"

struct object_service;
struct upload_service;
struct sync_config;
struct writer;

/* All parts outlive the service. */
struct upload_config {
    struct conn_group *conns;
    const struct sync_config *sync;
    struct writer *writer;
    struct build_cache *builds;      /* used where jobs are prepared, by nothing else */
    struct object_service *objects;  /* asks for the executables that uploads want */
    void (*no_space)(void *context); /* an upload was refused for want of space */
    void *context;
};

enum profd_status upload_service_new(const struct upload_config *config, struct upload_service **out,
                                     struct profd_error *e);
/* After the writer. Accepts NULL. */
void upload_service_free(struct upload_service *s);
/* For conn_handler; the context is the service. */
enum profd_status upload_receive(void *context, struct conn *c, struct conn_frame *f, struct profd_error *e);
const struct upload_counts *upload_service_get_counts(const struct upload_service *s);

#endif
