/* An upload from the bytes of its frame to the store: decoded and validated beside the writer (ingest_check), then
 * stored with others in one transaction (ingest_batch). */
#include "ingest/ingest.h"

#include <stdlib.h>
#include <string.h>

#include "core/arena.h"
#include "ingest/validate.h"
#include "proto/frame.h"

#define BLOCK_EXTRA 1024u /* an arena's own bookkeeping and alignment */

enum profd_status claim_check(const struct claim *c, uint32_t *uid, struct profd_error *e)
{
    if (c->claimed && !c->may_claim) {
        return profd_error_set(e, PROFD_FORBIDDEN,
                               "user %u sends in the name of user %u: only root and the user profd-record may do that",
                               c->sender, c->uid);
    }
    if (c->claimed && c->uid >= LIMIT_UID_TENANTS) {
        return profd_error_set(e, PROFD_FORBIDDEN,
                               "user %u sends in the name of user %u: numbers of users from %u on belong to the "
                               "tenants of a centre",
                               c->sender, c->uid, LIMIT_UID_TENANTS);
    }
    *uid = c->claimed ? c->uid : c->sender;
    return PROFD_OK;
}

/* A checked upload until it is stored. */
struct ingest_validated {
    struct message message;     /* keeps strings and counts */
    struct arena *arena;        /* keeps builds and labels */
    uint8_t *cut;               /* counts without what cannot be, in place of those of the message; or NULL */
    uint64_t generation;        /* of the check */
    struct store_upload upload; /* of a refusal only its id may be looked at */
};

static void validated_free(struct ingest_item *item)
{
    struct ingest_validated *v = item->validated;
    if (!v) {
        return;
    }
    message_done(&v->message);
    free(v->cut);
    arena_free(v->arena);
    free(v);
    item->validated = NULL;
}

static enum profd_status check(struct build_cache *cache, struct ingest_item *item, struct ingest_validated *v,
                               struct profd_error *e)
{
    const struct message_upload *m = &v->message.as.upload;
    struct store_upload *u = &v->upload;
    struct store_build *builds;
    /* Thousands of uploads wait in their arenas, so each is no larger than what validate_upload takes. */
    const size_t build_count = m->build_count > LIMIT_BUILDS ? 0 : m->build_count;
    const size_t label_count = m->label_count > LIMIT_LABELS ? 0 : m->label_count;
    v->arena = arena_new(BLOCK_EXTRA + build_count * (sizeof(struct store_build) + sizeof(struct store_build *)) +
                         (label_count + 1) * sizeof(struct store_label));
    if (!v->arena) {
        return profd_error_set(e, PROFD_NO_MEMORY, "no memory for an upload");
    }
    const struct claim claim = {item->uid, item->may_claim, m->claimed, m->uid};
    TRY(claim_check(&claim, &item->uid, e));
    TRY(validate_upload(item->uid, item->received, m, v->arena, u, &builds, e));
    TRY(validate_counts(cache, builds, u, &v->cut, e));
    TRY(build_cache_list_missing(cache, u, &item->missing, &item->missing_count, e));
    /* Last, when all else is well: what is refused for other reasons costs nothing. */
    return build_cache_charge(cache, item->uid, item->received, builds, u->build_count, &item->retry_after_ms, e);
}

void ingest_check(struct build_cache *cache, uint64_t generation, struct ingest_item *item)
{
    struct ingest_validated *v = calloc(1, sizeof *v);
    item->error.sentence[0] = 0;
    item->validated = NULL;
    item->retry_after_ms = 0;
    if (!v) {
        item->status = profd_error_set(&item->error, PROFD_NO_MEMORY, "no memory for an upload");
        return;
    }
    build_cache_begin(cache, generation);
    v->generation = generation;
    item->status = message_decode(FRAME_UPLOAD, item->payload, item->size, &v->message, &item->error);
    if (item->status) {
        free(v);
        return;
    }
    item->validated = v;
    item->status = check(cache, item, v, &item->error);
    if (item->status && item->status != PROFD_WRONG_BUILD) {
        validated_free(item);
    }
}

static void settle(struct store *s, uint64_t generation, struct ingest_item *item, enum store_outcome outcome)
{
    const struct ingest_validated *v = item->validated;
    if (outcome == STORE_TOO_MANY_GAPS) {
        item->status = profd_error_set(
            &item->error, PROFD_BUSY,
            "upload %u of its sender would leave more than %u gaps in the sequence; send the missing uploads first",
            (unsigned)v->upload.sequence, STORE_ID_RANGES);
        return;
    }
    if (outcome == STORE_OVER_SHARE) {
        item->status = store_share_refuse(s, item->uid, &item->error);
        return;
    }
    item->duplicate = outcome == STORE_DUPLICATE;
    item->ticks = item->duplicate ? 0 : v->upload.ticks;
    item->calls = item->duplicate ? 0 : v->upload.calls;
    if (v->generation != generation) {
        /* Executables have come or gone since the check: none is asked for that is there. What cannot be determined is
         * asked for with the next upload, because this one is durable and nothing here may fail it. */
        size_t kept = 0;
        for (size_t i = 0; i < item->missing_count; i++) {
            bool has = true;
            if (store_has_object(s, item->uid, item->missing[i].id.text, &has, NULL) == PROFD_OK && !has) {
                item->missing[kept++] = item->missing[i];
            }
        }
        item->missing_count = kept;
    }
}

void ingest_batch(struct store *s, uint64_t generation, struct ingest_item *const *items, size_t n)
{
    struct ingest_item **valid = calloc(n ? n : 1, sizeof *valid);
    struct store_upload *uploads = calloc(n ? n : 1, sizeof *uploads);
    enum store_outcome *outcomes = calloc(n ? n : 1, sizeof *outcomes);
    struct profd_error e = {.sentence = ""};
    enum profd_status status = PROFD_OK;
    size_t count = 0;
    const bool memory = valid && uploads && outcomes;
    if (!memory) {
        status = profd_error_set(&e, PROFD_NO_MEMORY, "no memory for a batch of %zu uploads", n);
    }
    for (size_t i = 0; i < n; i++) {
        bool counted = false;
        if (!items[i]->status && memory) { /* contiguous, as the store requires */
            uploads[count] = items[i]->validated->upload;
            valid[count++] = items[i];
        } else if (!items[i]->status) {
            items[i]->status = status;
            items[i]->error = e;
        } else if (items[i]->status == PROFD_WRONG_BUILD &&
                   !store_has_upload(s, &items[i]->validated->upload, &counted, NULL) && counted) {
            /* An executable that was stored since the first delivery does not change the answer to a repeat. */
            items[i]->duplicate = true;
            items[i]->status = PROFD_OK;
            items[i]->error.sentence[0] = 0;
        }
    }
    if (memory && count) {
        status = store_put_uploads(s, uploads, count, outcomes, &e);
    }
    for (size_t i = 0; memory && i < count; i++) {
        if (status) {
            valid[i]->status = status;
            valid[i]->error = e;
        } else {
            settle(s, generation, valid[i], outcomes[i]);
        }
    }
    for (size_t i = 0; i < n; i++) {
        validated_free(items[i]);
    }
    free(valid);
    free(uploads);
    free(outcomes);
}

void ingest_item_done(struct ingest_item *item)
{
    validated_free(item);
    free(item->missing);
    item->missing = NULL;
    item->missing_count = 0;
}
