/* Requests that push profiles of other tools: POST /ingest, PusherService/Push and OTLP. A request is read and checked
 * while the writer works on others. Its profiles are stored in one transaction, and it is answered after the commit.
 * The functions run on the loop's thread. */
#ifndef PROFD_REQUESTS_PUSH_H
#define PROFD_REQUESTS_PUSH_H

#include "ingest/foreign.h"
#include "requests/numbers.h"

struct shared;

/* The server fills it in. All parts outlive the writer's thread. */
struct push_service {
    struct foreign_names *names;
    struct build_cache *builds; /* used only where jobs are prepared */
    const struct shared *shared;
    /* *relay: where this daemon sends its uploads, so that it refuses profiles of other tools; NULL: nowhere */
    const char *const *relay;
    struct upload_counts *counts; /* of uploads; these profiles are counted among them */
};

/* For struct post_route; the context is a struct push_service. A request over TCP needs a token with the right write;
 * over the Unix socket, the user that the kernel reports may send. */
int push_judge(void *context, const struct http_body_head *head, struct profd_error *e);
/* Answers later. Errors of Push have the form of Connect, those of OTLP are a Status, others are problem documents. */
void push_receive(void *context, struct http_exchange *x, const struct http_request *request);

#endif
