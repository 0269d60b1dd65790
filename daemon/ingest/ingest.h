/* Corridor 1: payload → decode → validate → profile → store. Synchronous; runs on the writer thread. */
#ifndef PROFD_INGEST_INGEST_H
#define PROFD_INGEST_INGEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/buildid.h"
#include "proto/limits.h"
#include "proto/message.h"
#include "proto/status.h"
#include "store/store.h"

/* One upload on its way. The first part is given, the second filled in. */
struct ingest_item {
    uint32_t uid;              /* of the peer, from the kernel */
    int64_t received;          /* ns since the epoch */
    const uint8_t *payload;    /* of an UPLOAD frame, inflated */
    size_t size;

    enum profd_status status;  /* OK: acknowledge; else NACK with error */
    bool duplicate;
    struct profd_error error;
    uint64_t ticks, calls;     /* of a stored upload */
    size_t wanted_count;       /* builds whose executable should be asked for, with the names the upload gave */
    struct wanted_build {
        struct buildid id;
        char name[256];
    } *wanted;                 /* freed by ingest_item_done */
};

/* Decodes and believes every item by itself, then stores all believed ones in one transaction: when that
 * fails every believed item gets its status. No item is lost without a status. */
void ingest_batch(struct store *s, struct ingest_item *items, size_t n);
void ingest_item_done(struct ingest_item *item);

/* What the object worker said about an executable. answer is the worker's bytes (untrusted), or NULL and failure says why. */
struct ingest_object {
    uint32_t uid;
    bool trusted;              /* sender root, or a root-owned file nobody else may write */
    int64_t received;
    const char *build_id;      /* the id that was asked for, "" if nobody asked */
    const char *name;
    const uint8_t *answer;
    size_t answer_size;
    const char *failure;
};
/* Validates like a stranger's bytes, compares the id with the one asked for (WRONG_BUILD), stores. */
enum profd_status ingest_object_store(struct store *s, const struct ingest_object *object, struct profd_error *e);

#endif
