/* What the object worker said about an executable: validated, compared with what is stored, and stored. */
#include <nettle/sha2.h>
#include <stdlib.h>
#include <string.h>

#include "core/arena.h"
#include "core/bounds.h"
#include "core/object.h"
#include "core/object_compare.h"
#include "core/object_instructions.h"
#include "core/object_lines.h"
#include "ingest/ingest.h"

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
        if (strcmp(asked.text, object->id.text) != 0) {
            return profd_error_set(e, PROFD_WRONG_BUILD, "requested build %s, but \"%s\" is build %s", asked.text,
                                   o->name, object->id.text);
        }
    }
    if (o->wants_names && !object->has_names) {
        return profd_error_set(e, PROFD_REFUSED,
                               "%s has no function names; send the file as it was linked, or its debug file", o->name);
    }
    stored.id = object->id;
    memcpy(stored.variant, object->variant, sizeof stored.variant);
    stored.has_names = object->has_names;
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
    if (strlen(object->name) > LIMIT_BUILD_NAME) {
        return profd_error_set(e, PROFD_TOO_LARGE, "the executable's name has %zu bytes; at most %u are allowed",
                               strlen(object->name), LIMIT_BUILD_NAME);
    }
    if (!object->answer) {
        /* The worker failed: the reason is stored, so that the executable is not requested repeatedly. */
        struct store_object stored = {
            .uid = object->uid,
            .trusted = object->trusted,
            .name = object->name,
            .note = object->failure && object->failure[0] ? object->failure : "the executable could not be read",
            .received = object->received};
        if (object->build_id[0] == 0) {
            return profd_error_set(e, PROFD_MALFORMED, "%s", stored.note);
        }
        TRY(buildid_parse(object->build_id, strlen(object->build_id), &stored.id, e));
        return store_put_object(s, &stored, e);
    }
    struct arena *a = arena_new(OBJECT_MEMORY);
    if (!a) {
        return profd_error_set(e, PROFD_NO_MEMORY, "no memory for an executable's symbols");
    }
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
