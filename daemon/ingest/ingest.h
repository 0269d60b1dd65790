/* Uploads: payload → decode → validate → profile → store. Synchronous. The first steps may run on another thread than
 * the writer's, while the writer waits for the disk. */
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

struct ingest_checker;
struct ingest_validated;

/* One upload on its way. The first part is given, the second filled in; zero both at first. */
struct ingest_item {
    uint32_t uid;           /* of the peer, from the kernel; of a validated upload, the user that it is of */
    bool may_claim;         /* the peer may send counts of other users */
    int64_t received;       /* ns since the epoch */
    const uint8_t *payload; /* of an UPLOAD frame, inflated */
    size_t size;

    struct ingest_validated *validated; /* of ingest_check, until ingest_batch or ingest_item_done */
    enum profd_status status;           /* OK: acknowledge; else NACK with error */
    uint32_t retry_after_ms;            /* of a NACK that knows it, else 0 */
    bool duplicate;
    struct profd_error error;
    uint64_t ticks, calls; /* of a stored upload */
    size_t missing_count;  /* builds to request the executables of, with the names from the upload */
    struct missing_build {
        struct buildid id;
        char name[256];
    } * missing; /* freed by ingest_item_done */
};

/* Checks uploads ahead of the writer, with a reading handle or, in one thread, the writer's own. Used by one thread at
 * a time. */
enum profd_status ingest_checker_new(struct store *s, struct ingest_checker **out, struct profd_error *e);
/* Accepts NULL. */
void ingest_checker_free(struct ingest_checker *c);
/* Decodes and validates one item. generation is a number that grows when the store adds or removes an executable. The
 * payload is borrowed until ingest_batch. The item's status is OK (then it is validated) or final, except WRONG_BUILD,
 * which ingest_batch decides. */
void ingest_check(struct ingest_checker *c, uint64_t generation, struct ingest_item *item);

/* Stores all validated items in one transaction; if that fails, each of them gets its status. Items that were not
 * checked are checked first. Every item gets a status. */
void ingest_batch(struct store *s, struct ingest_item *const *items, size_t n);
void ingest_item_done(struct ingest_item *item);

/* What the object worker said about an executable. answer is the worker's bytes (untrusted), or NULL and failure says
 * why. */
struct ingest_object {
    uint32_t uid;
    bool trusted;     /* the sender is root, or the file is root's and no other user may write it */
    bool by_operator; /* as in struct store_object */
    bool wants_names; /* REFUSED without */
    int64_t received;
    const char *build_id; /* the requested id, "" if there was no request */
    const char *name;
    const uint8_t *answer;
    size_t answer_size;
    const char *failure;
    const uint8_t *hash; /* of a host's: as in struct store_object; NULL of another */
};
/* Validates the bytes as untrusted, compares the id with the requested one (WRONG_BUILD), stores. */
enum profd_status ingest_object_store(struct store *s, const struct ingest_object *object, struct profd_error *e);

#endif
