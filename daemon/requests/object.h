/* OBJECT: an executable by descriptor. A sandboxed child reads it, on behalf of threads of their own because that may
 * wait; the writer validates and stores its answer; then it is acknowledged. DECLINE: a client has no such file. */
#ifndef PROFD_REQUESTS_OBJECT_H
#define PROFD_REQUESTS_OBJECT_H

#include <stddef.h>

#include "elf/broker.h"
#include "ingest/ingest.h"
#include "net/conn.h"
#include "requests/numbers.h"
#include "proto/limits.h"
#include "proto/status.h"

struct closer;
struct loop;
struct object_service;
struct sync_config;
struct writer;

/* All parts outlive the service. */
struct object_config {
    struct loop *loop;
    struct conn_group *conns;
    const struct sync_config *sync;
    struct closer *closer; /* closes what senders opened, which may wait */
    struct writer *writer;
    const char *database;          /* path of the database, for object_service_start only */
    struct broker *const *brokers; /* LIMIT_WORKERS of them, for object_service_start only */
};

enum profd_status object_service_start(const struct object_config *config, struct object_service **out,
                                       struct profd_error *e);
/* Drops what waits: reading an executable may take longer than a stop may. */
void object_service_stop(struct object_service *s);
/* Executables that wait or are being read. */
size_t object_service_pending(const struct object_service *s);
/* Ends the threads, while the writer runs: what they have read goes to it. */
void object_service_join(struct object_service *s);
/* After the writer. Accepts NULL. */
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
/* Reads it as OBJECT is, and stores it. BUSY, IO, NO_MEMORY; what is wrong with the file is told to done. */
enum profd_status object_put(struct object_service *s, const struct object_put *put, struct profd_error *e);

/* For conn_handler; the context is the service. */
enum profd_status object_receive(void *context, struct conn *c, struct conn_frame *f, struct profd_error *e);
enum profd_status object_receive_decline(void *context, struct conn *c, struct conn_frame *f, struct profd_error *e);

/* Asks for executables that have not been sent yet, once each on a connection. */
void object_request_missing(struct object_service *s, struct conn *c, const struct missing_build *missing, size_t n);
struct object_counts object_service_get_counts(const struct object_service *s);

#endif
