/* Uploads: payload → decode → validate → profile → store. Synchronous. The first steps may run on another thread than
 * the writer's, while the writer waits for the disk. */
#ifndef PROFD_INGEST_INGEST_H
#define PROFD_INGEST_INGEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ingest/build_cache.h"
#include "proto/buildid.h"
#include "proto/limits.h"
#include "proto/message.h"
#include "proto/status.h"
#include "store/store.h"

struct ingest_validated;

/* Claimed users: a program that samples a whole host sends what processes of other users did. */

/* A message of user sender, which may claim or not; it claims that it is of uid if claimed is set. */
struct claim {
    uint32_t sender;
    bool may_claim, claimed;
    uint32_t uid;
};

/* Sets *uid to the user that the message is of. FORBIDDEN: the sender may not claim, or the number is one of those of
 * tenants. */
enum profd_status claim_check(const struct claim *c, uint32_t *uid, struct profd_error *e);

/* One upload on its way. The first part is given, the second filled in; zero both at first. */
struct ingest_item {
    uint32_t uid;           /* of the peer, from the kernel; of a validated upload, the user that it is of */
    bool may_claim;         /* the peer may send counts of other users */
    int64_t received;       /* ns since the epoch */
    const uint8_t *payload; /* of an UPLOAD frame, inflated */
    size_t size;
    enum store_id_kind ids; /* what the id of the upload means */

    struct ingest_validated *validated; /* of ingest_check, until ingest_batch or ingest_item_done */
    enum profd_status status;           /* OK: acknowledge; else NACK with error */
    uint32_t retry_after_ms;            /* of a NACK that knows it, else 0 */
    bool duplicate, relabelled;         /* relabelled: as STORE_RELABELLED */
    struct profd_error error;
    uint64_t ticks, calls;         /* of a stored upload */
    size_t missing_count;          /* builds to request the executables of, with the names from the upload */
    struct missing_build *missing; /* freed by ingest_item_done */
};

/* Decodes and validates one item, which need not be on the writer's thread; a cache is used by one thread at a time.
 * generation is a number that grows when the store adds or removes an executable. The payload is not needed afterwards.
 * The item's status is OK (then it is validated) or final, except WRONG_BUILD, which ingest_batch decides. */
void ingest_check(struct build_cache *cache, uint64_t generation, struct ingest_item *item);

/* Stores all validated items in one transaction; if that fails, each of them gets its status. Every item was checked,
 * or has another status than OK. generation as of ingest_check, but of now. */
void ingest_batch(struct store *s, uint64_t generation, struct ingest_item *const *items, size_t n);
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
    const uint8_t *host; /* as in struct store_object */
};
/* Validates the bytes as untrusted, compares the id with the requested one (WRONG_BUILD), stores as store_put_object
 * does. If those of a host cannot be used, the host is asked for them again after STORE_OFFER_AGAIN. */
enum profd_status ingest_object_store(struct store *s, const struct ingest_object *object, struct profd_error *e);

#endif
