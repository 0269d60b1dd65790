#include "ingest/ingest.h"

#include <nettle/sha2.h>
#include <stdlib.h>
#include <string.h>

#include "core/arena.h"
#include "core/bounds.h"
#include "core/object.h"
#include "ingest/validate.h"
#include "proto/frame.h"

/* What the object worker said about an executable: validated, compared with what is stored, and stored. */

#define OBJECT_MEMORY ((size_t)2 << 30) /* that a worker's answer may take once decoded */

/* *adds: the object has something that the stored one lacks which names functions for the same users. If not, it is
 * not stored: otherwise a stripped copy would take source lines away. The store
 * decides about what a host sends. */
static enum profd_status compare_stored(struct store *s, const struct ingest_object *o, const struct object *object,
                                        struct arena *a, bool *adds, struct profd_error *e)
{
    const struct store_senders of = {.uids = &o->uid, .uid_count = o->trusted ? 0 : 1};
    struct store_naming naming;
    struct object *stored = NULL;
    uint8_t *bytes = NULL;
    size_t size = 0;
    *adds = true;
    if (o->host || store_get_object(s, &of, object->id.text, &bytes, &size, &naming, NULL) != PROFD_OK) {
        return PROFD_OK; /* there is none; if the store has failed, the next verb says so */
    }
    const bool same = size == o->answer_size && memcmp(bytes, o->answer, size) == 0;
    enum profd_status status = PROFD_OK;
    if (!same && (!o->by_operator || naming.by_operators) && object_decode(a, bytes, size, &stored, NULL) == PROFD_OK) {
        status = object_compare_content(object, stored, a, adds, e);
    }
    free(bytes);
    return status;
}

static enum profd_status store_answer(struct store *s, const struct ingest_object *o, struct arena *a,
                                      struct profd_error *e)
{
    struct object *object;
    struct store_object stored = {.uid = o->uid,
                                  .trusted = o->trusted,
                                  .by_operator = o->by_operator,
                                  .encoded = o->answer,
                                  .encoded_size = o->answer_size,
                                  .name = o->name,
                                  .received = o->received,
                                  .host = o->host};
    uint8_t hash[STORE_HASH_SIZE];
    struct sha256_ctx sha;
    struct object_line *none;
    struct object_instruction *nothing;
    uint32_t count;
    enum profd_status status = object_decode(a, o->answer, o->answer_size, &object, e);
    if (status == PROFD_OK) {
        status = object_lines_find(object, a, 0, 0, &none, &count, e);
    }
    if (status == PROFD_OK) {
        status = object_instructions_find(object, a, 0, 0, &nothing, &count, e);
    }
    if (status != PROFD_OK) {
        return profd_error_wrap(e, status, "what %s about %s", o->host ? "a host said" : "the worker said",
                                o->name[0] ? o->name : "an executable");
    }
    if (o->build_id[0] != 0) {
        struct buildid asked;
        TRY(buildid_parse(o->build_id, strlen(o->build_id), &asked, e));
        FAIL_IF(strcmp(asked.text, object->id.text) != 0, e, PROFD_WRONG_BUILD,
                "requested build %s, but \"%s\" is build %s", asked.text, o->name, object->id.text);
    }
    FAIL_IF(o->wants_names && !object->has_names, e, PROFD_REFUSED,
            "%s has no function names; send the file as it was linked, or its debug file", o->name);
    stored.id = object->id;
    memcpy(stored.variant, object->variant, sizeof stored.variant);
    stored.has_names = !object->has_names ? 0 : object->only_dynamic ? 1 : object->line_count == 0 ? 2 : 3;
    stored.note = object->note;
    if (o->host) {
        sha256_init(&sha);
        sha256_update(&sha, o->answer_size, o->answer);
        sha256_digest(&sha, sizeof hash, hash);
        stored.hash = hash;
    }
    bool adds = true;
    status = compare_stored(s, o, object, a, &adds, e);
    if (status != PROFD_OK || !adds) {
        return status;
    }
    TRY(bounds_encode(object, a, &stored.bounds, &stored.bounds_size, e));
    return store_put_object(s, &stored, e);
}

enum profd_status ingest_object_store(struct store *s, const struct ingest_object *object, struct profd_error *e)
{
    FAIL_IF(strlen(object->name) > LIMIT_BUILD_NAME, e, PROFD_TOO_LARGE,
            "the executable's name has %zu bytes; at most %u are allowed", strlen(object->name), LIMIT_BUILD_NAME);
    if (!object->answer) {
        /* The worker failed: the reason is stored, so that the executable is not requested repeatedly. */
        struct store_object stored = {
            .uid = object->uid,
            .trusted = object->trusted,
            .name = object->name,
            .note = object->failure && object->failure[0] ? object->failure : "the executable could not be read",
            .received = object->received};
        FAIL_IF(object->build_id[0] == 0, e, PROFD_MALFORMED, "%s", stored.note);
        TRY(buildid_parse(object->build_id, strlen(object->build_id), &stored.id, e));
        return store_put_object(s, &stored, e);
    }
    struct arena *a = arena_new(OBJECT_MEMORY);
    FAIL_IF(!a, e, PROFD_NO_MEMORY, "no memory for an executable's symbols");
    enum profd_status status = store_answer(s, object, a, e);
    arena_free(a);
    if (object->host && status != PROFD_OK && status != PROFD_CONFLICT && !profd_status_retry(status)) {
        /* What cannot be used is not asked for again soon. */
        struct store_offer nothing = {.build_id = object->build_id, .refused = true, .now = object->received};
        struct store_offered ignored;
        memcpy(nothing.host, object->host, sizeof nothing.host);
        (void)store_offer(s, &nothing, 1, &ignored, NULL); /* if that fails, it is asked for again */
    }
    return status;
}

/* An upload from the bytes of its frame to the store: decoded and validated beside the writer (ingest_check), then
 * stored with others in one transaction (ingest_batch). */

#define BLOCK_EXTRA 1024u /* an arena's own bookkeeping and alignment */

enum profd_status claim_check(const struct claim *c, uint32_t *uid, struct profd_error *e)
{
    FAIL_IF(c->claimed && !c->may_claim, e, PROFD_FORBIDDEN,
            "user %u sends in the name of user %u: only root and the user profd-record may do that", c->sender, c->uid);
    FAIL_IF(c->claimed && c->uid >= LIMIT_UID_TENANTS, e, PROFD_FORBIDDEN,
            "user %u sends in the name of user %u: numbers of users from %u on belong to the tenants of a centre",
            c->sender, c->uid, LIMIT_UID_TENANTS);
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
    FAIL_IF(!v->arena, e, PROFD_NO_MEMORY, "no memory for an upload");
    const struct claim claim = {item->uid, item->may_claim, m->claimed, m->uid};
    TRY(claim_check(&claim, &item->uid, e));
    TRY(validate_upload(item->uid, item->received, m, v->arena, u, &builds, e));
    u->ids = item->ids;
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
    item->relabelled = outcome == STORE_RELABELLED;
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
