/* One transaction of segments: a job of the writer. */
#ifndef PROFD_REQUESTS_CENTRE_FLUSH_H
#define PROFD_REQUESTS_CENTRE_FLUSH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net/conn.h"
#include "proto/message.h"
#include "store/store.h"
#include "writer/writer.h"

/* A segment until it is answered. */
struct centre_item {
    conn_id conn;
    uint32_t tag;
    uint64_t session_job;
    size_t weight;
    uint32_t tenant;        /* its share has the weight, too */
    struct message message; /* owns the bytes */
    struct store_delivery delivery;
    struct segment segment;
    bool decoded;
    enum profd_status status; /* why it is refused; OK: receipt says what became of it */
    struct profd_error error;
    struct store_receipt receipt;
};

struct centre_flush {
    struct writer_job job;
    struct centre_item *items; /* owned */
    size_t count;
    struct store_detail detail;
    uint8_t incarnation[STORE_INCARNATION_SIZE];
    /* On the loop, once, when the items say what became of them. Frees the flush by centre_flush_free. */
    void (*done)(void *context, struct centre_flush *f);
    void *context;
};

/* Takes over the items. False if the writer's queue is full: then nothing has changed. */
bool centre_flush_put(struct writer *w, struct centre_item *items, size_t count, const struct store_detail *detail,
                      void (*done)(void *context, struct centre_flush *f), void *context);
void centre_flush_free(struct centre_flush *f);

#endif
