/* Uploads.
 *
 * UPLOAD, of a process: queued, checked beside the writer, stored with others in one transaction, acknowledged after
 * the commit.
 *
 * POST /api/v1/uploads, of a host, at a centre: a batch of uploads (Batch of proto/profd.proto), which may be empty.
 * The host's token, which has the right write, determines the tenant and the host. Answered after the commit. On the
 * loop's thread. */
#ifndef PROFD_REQUESTS_UPLOADS_H
#define PROFD_REQUESTS_UPLOADS_H

#include "ingest/ingest.h"
#include "requests/numbers.h"

struct intake;
struct object_service;
struct shared;

/* The server fills it in. All parts outlive the writer's thread. */
struct process_uploads {
    const struct shared *shared;
    struct build_cache *builds;     /* used where jobs are prepared, by nothing else */
    struct object_service *objects; /* asks for the executables that uploads want */
    struct upload_counts counts;
};

/* Counts one that was stored now or before. */
void upload_count(struct upload_counts *counts, const struct ingest_item *item);

/* For conn_handler; the context is the service. */
enum profd_status upload_receive(void *context, struct conn *c, struct conn_frame *f, struct profd_error *e);

#define UPLOADS_LOG_STATUSES 100u

/* The server fills it in. All parts outlive the writer's thread. */
struct host_batches {
    uint8_t centre[STORE_CENTRE_SIZE]; /* name */
    bool relays;                       /* this daemon sends to a centre, and refuses batches of others */
    const struct shared *shared;
    struct intake *intake;
    uint64_t logged[UPLOADS_LOG_STATUSES]; /* ms of loop_now of the latest line, by HTTP status − 400 */
};

/* For struct post_route; the context is a struct host_batches. A request needs a token with the right write. */
int batch_judge(void *context, const struct http_body_head *head, struct profd_error *e);
/* Takes a request that batch_judge accepted, and answers it later. */
void batch_receive(void *context, struct http_exchange *x, const struct http_request *request);

#endif
