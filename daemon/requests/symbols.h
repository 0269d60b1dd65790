/* Symbols of builds.
 *
 * OBJECT: an executable by descriptor. Sandboxed processes read it, on behalf of threads of their own because reading
 * may block. The writer validates and stores the result; then the OBJECT is acknowledged. DECLINE: a client has no such
 * file.
 *
 * PUT /api/v1/builds/{id}/symbols: an executable, with a token that has the right admin. It names functions for the
 * token's tenant, or for all users if the token is for all. Or the parsed object of a build whose counts a host sends,
 * with the host's token, which has the right write. On the loop's thread. */
#ifndef PROFD_REQUESTS_SYMBOLS_H
#define PROFD_REQUESTS_SYMBOLS_H

#include "elf/broker.h"
#include "ingest/ingest.h"
#include "requests/numbers.h"

struct intake;
struct object_service;
struct shared;

/* All parts outlive the service. */
struct object_config {
    const struct shared *shared;
    struct closer *closer;         /* closes what senders opened, which may wait */
    struct broker *const *brokers; /* LIMIT_WORKERS of them, for object_service_start only */
};

enum profd_status object_service_start(const struct object_config *config, struct object_service **out,
                                       struct profd_error *e);
/* Drops the waiting executables, because reading them may take longer than a stop may. */
void object_service_stop(struct object_service *s);
/* Returns the number of executables that wait or are being read. */
size_t object_service_pending(const struct object_service *s);
/* Ends the threads. Before the writer's thread, which stores what they have read. */
void object_service_join(struct object_service *s);
/* After the writer's thread. Accepts NULL. */
void object_service_free(struct object_service *s);

/* An executable that an operator has sent. */
struct object_put {
    int fd; /* closed by the service, in any case */
    const char *build_id;
    const char *name;
    bool code;       /* store its instructions, too */
    uint32_t tenant; /* that it names functions for; 0: for all users */
    /* Called once, on the loop's thread, if object_put returned OK. */
    void (*done)(void *context, enum profd_status status, const char *sentence);
    void *context;
};
/* Queues the executable, to be read and stored as that of an OBJECT. BUSY, IO, NO_MEMORY. Errors of the file are passed
 * to done. */
enum profd_status object_put(struct object_service *s, const struct object_put *put, struct profd_error *e);

/* For conn_handler; the context is the service. */
enum profd_status object_receive(void *context, struct conn *c, struct conn_frame *f, struct profd_error *e);
enum profd_status object_receive_decline(void *context, struct conn *c, struct conn_frame *f, struct profd_error *e);

/* Asks for executables that have not been sent yet: at most once for each build on a connection. */
void object_request_missing(struct object_service *s, struct conn *c, const struct missing_build *missing, size_t n);
struct object_counts object_service_get_counts(const struct object_service *s);

/* All parts outlive the service. */
struct symbols_service {
    struct object_service *objects;
    const struct shared *shared;
    struct intake *intake; /* counts parsed objects */
};

/* http_judge_body of a PUT. */
int symbols_judge(const struct symbols_service *s, const struct http_body_head *head, struct profd_error *e);
/* Takes a PUT that symbols_judge accepted, and its body, and answers it later. */
void symbols_receive(const struct symbols_service *s, struct http_exchange *x, const struct http_request *request);

#endif
