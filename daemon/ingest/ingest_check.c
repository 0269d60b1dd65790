/* Decodes and validates the bytes of an upload, or explains in a sentence why it is refused. */
#include <stdlib.h>
#include <string.h>

#include "ingest/validate.h"
#include "ingest/ingest_validated.h"
#include "ingest/build_cache.h"
#include "ingest/claim.h"
#include "proto/frame.h"

#define BLOCK_EXTRA 1024u /* an arena's own bookkeeping and alignment */

struct ingest_checker {
    struct build_cache *cache;
};

enum profd_status ingest_checker_new(struct store *s, struct ingest_checker **out, struct profd_error *e)
{
    struct ingest_checker *c = calloc(1, sizeof *c);
    if (c) {
        c->cache = build_cache_new(s);
    }
    if (!c || !c->cache) {
        free(c);
        return profd_error_set(e, PROFD_NO_MEMORY, "no memory to check uploads");
    }
    *out = c;
    return PROFD_OK;
}

void ingest_checker_free(struct ingest_checker *c)
{
    if (!c) {
        return;
    }
    build_cache_free(c->cache);
    free(c);
}

struct build_cache *ingest_checker_get_cache(struct ingest_checker *c)
{
    return c->cache;
}

void ingest_validated_free(struct ingest_item *item)
{
    struct ingest_validated *b = item->validated;
    if (!b) {
        return;
    }
    message_done(&b->message);
    free(b->cut);
    arena_free(b->arena);
    free(b);
    item->validated = NULL;
}

/* An arena for what validate_upload takes: thousands of uploads wait in it, so it is no larger than that. */
static struct arena *take_arena(const struct message_upload *m)
{
    size_t builds = m->build_count > LIMIT_BUILDS ? 0 : m->build_count;
    size_t labels = m->label_count > LIMIT_LABELS ? 0 : m->label_count;
    return arena_new(BLOCK_EXTRA + builds * (sizeof(struct store_build) + sizeof(struct store_build *)) +
                     (labels + 1) * sizeof(struct store_label));
}

static enum profd_status check(struct ingest_checker *c, struct ingest_item *item, struct ingest_validated *b)
{
    struct store_build *builds;
    b->arena = take_arena(&b->message.as.upload);
    if (!b->arena) {
        return profd_error_set(&item->error, PROFD_NO_MEMORY, "no memory for an upload");
    }
    const struct message_upload *m = &b->message.as.upload;
    const struct claim claim = {item->uid, item->may_claim, m->claimed, m->uid};
    enum profd_status status = claim_check(&claim, &item->uid, &item->error);
    if (status == PROFD_OK) {
        status = validate_upload(item->uid, item->received, m, b->arena, &b->upload, &builds, &item->error);
    }
    if (status == PROFD_OK) {
        status = validate_counts(c->cache, builds, &b->upload, &b->cut, &item->error);
    }
    /* Last, when all else is well: what is refused for other reasons costs nothing. */
    if (status == PROFD_OK) {
        status = build_cache_charge(c->cache, item->uid, item->received, builds, b->upload.build_count,
                                    &item->retry_after_ms, &item->error);
    }
    return status;
}

void ingest_check(struct ingest_checker *c, uint64_t generation, struct ingest_item *item)
{
    struct ingest_validated *b = calloc(1, sizeof *b);
    item->error.sentence[0] = 0;
    item->validated = NULL;
    item->retry_after_ms = 0;
    if (!b) {
        item->status = profd_error_set(&item->error, PROFD_NO_MEMORY, "no memory for an upload");
        return;
    }
    build_cache_begin(c->cache, generation);
    item->status = message_decode(FRAME_UPLOAD, item->payload, item->size, &b->message, &item->error);
    if (item->status != PROFD_OK) {
        free(b);
        return;
    }
    item->validated = b;
    item->status = check(c, item, b);
    if (item->status != PROFD_OK && item->status != PROFD_WRONG_BUILD) {
        ingest_validated_free(item);
    }
}
