#include <stdlib.h>
#include <string.h>

#include "proto/deflate.h"
#include "store/sqlite_users.h"

#define OBJECT_SHRINKS 4 /* estimated compression of symbols */

/* The row with exactly these bytes under (build, variant), or 0. */
static enum profd_status find_same(struct store *s, int64_t build, const struct store_object *object, int64_t *id,
                                   struct profd_error *e)
{
    sqlite3_stmt *q;
    bool row = false, same = false;
    enum profd_status status = sqlite_start(s, SQL_OBJECT_SAME, VALUES(INTEGER(build), TEXT(object->variant)), &q, e);
    while (status == PROFD_OK && !same && (status = sqlite_next(s, q, &row, e)) == PROFD_OK && row) {
        uint8_t *bytes = NULL;
        size_t size = 0;
        if (sqlite3_column_int64(q, 0) != (int64_t)object->encoded_size) {
            continue;
        }
        status = sqlite_take_content(s, q, &bytes, &size, e);
        same = status == PROFD_OK && (size == 0 || memcmp(bytes, object->encoded, size) == 0);
        *id = sqlite3_column_int64(q, 2);
        free(bytes);
        if (same || status != PROFD_OK) {
            sqlite_finish(q);
        }
    }
    if (status == PROFD_OK && !same) {
        *id = 0;
    }
    return status;
}

static enum profd_status add_object(struct store *s, int64_t build, const struct store_object *o, int64_t *id,
                                    struct profd_error *e)
{
    size_t bound = deflate_bound(o->encoded_size), n = 0;
    uint8_t *packed = malloc(bound);
    if (!packed) {
        return profd_no_memory(e);
    }
    enum profd_status status = deflate_pack(o->encoded, o->encoded_size, false, packed, bound, &n, e);
    if (status == PROFD_OK) {
        status = sqlite_run(s, SQL_OBJECT_ADD,
                            VALUES(INTEGER(build), TEXT(o->variant), INTEGER(o->has_names), INTEGER(o->encoded_size),
                                   BLOB(o->bounds, o->bounds_size), BLOB(packed, n)),
                            e);
        *id = sqlite3_last_insert_rowid(s->db);
    }
    free(packed);
    return status;
}

/* Records the sender. *changed: answers to any user may change; *trusted: answers to all users. */
static enum profd_status put_sender(struct store *s, int64_t build, int64_t object, const struct store_object *o,
                                    int64_t host, bool *changed, bool *trusted, struct profd_error *e)
{
    sqlite3_stmt *q;
    bool known = false, found = false;
    int64_t delivered = 0, latest = 0;
    *changed = true;
    *trusted = o->trusted;
    bool by_operator = o->by_operator;
    TRY(sqlite_find(s, SQL_OBJECT_LATEST, VALUES(INTEGER(build)), &latest, &found, e));
    TRY(sqlite_start(s, SQL_OBJECT_SENDER_FIND, VALUES(INTEGER(object), INTEGER(o->uid)), &q, e));
    TRY(sqlite_next(s, q, &known, e));
    if (known) {
        bool was_trusted = sqlite3_column_int(q, 0) != 0;
        delivered = sqlite3_column_int64(q, 1);
        const bool by_operator_before = sqlite3_column_int(q, 3) != 0;
        *trusted = o->trusted || was_trusted; /* a file keeps what it was shown to be */
        by_operator = o->by_operator || by_operator_before;
        *changed = *trusted != was_trusted || by_operator != by_operator_before || delivered != latest ||
                   strcmp(sqlite_text(q, 2), o->note) != 0;
        sqlite_finish(q);
    }
    if (!*changed) {
        return sqlite_run(s, SQL_OBJECT_SENDER_SEEN, VALUES(INTEGER(object), INTEGER(o->uid), INTEGER(o->received)), e);
    }
    s->state.number++;
    return sqlite_run(s, SQL_OBJECT_SENDER_SET,
                      VALUES(INTEGER(object), INTEGER(o->uid), INTEGER(*trusted), INTEGER(s->state.number),
                             TEXT(o->name), TEXT(o->note), INTEGER(o->received), INTEGER(by_operator), INTEGER(host)),
                      e);
}

/* Sets the sentence why an object of a host is kept out: another one precedes it. */
static enum profd_status keep_out(struct store *s, const struct sqlite_host_build *h, const struct store_object *o,
                                  struct profd_error *e)
{
    sqlite3_stmt *q;
    bool row;
    TRY(sqlite_host_build_set(s, h, o->hash, o->encoded_size, o->received + STORE_OFFER_AGAIN, e));
    TRY(sqlite_first(s, SQL_HOST_BUILD_FIRST, VALUES(INTEGER(h->build), INTEGER(h->uid), INTEGER(h->host)), &q, &row,
                     e));
    if (!row) {
        return profd_error_set(e, PROFD_INTERNAL, "the symbols of build %s vanished", o->id.text);
    }
    const char *mine = sqlite_text(q, 0), *first = sqlite_text(q, 1);
    if (*first) {
        profd_error_set(
            e, PROFD_CONFLICT,
            "the symbols of build %s that host %s has sent are kept out: they differ from those of host %s, "
            "which came first",
            o->id.text, mine, first);
    } else {
        profd_error_set(
            e, PROFD_CONFLICT,
            "the symbols of build %s that host %s has sent are kept out: an operator of its tenant has sent "
            "others",
            o->id.text, mine);
    }
    sqlite_finish(q);
    return PROFD_OK;
}

static enum profd_status put_object(struct store *s, const struct store_object *o, struct sqlite_host_build *h,
                                    struct profd_error *e)
{
    int64_t build = 0, id = 0;
    bool changed = false, trusted = false;
    if (o->host) {
        /* Judges an object of a host. If h->kept_out, the object is only recorded, and *e says why. */
        struct store_offered offered;
        TRY(sqlite_host_build_limit(s, h, o->encoded_size, &offered, e));
        if (offered.verdict != STORE_OFFER_TAKEN) {
            return profd_error_set(
                e, PROFD_LIMIT,
                "a host may have %u parsed objects of at most %u bytes, with %llu bytes in all; that of "
                "build %s has %zu bytes",
                STORE_OFFER_MOST, LIMIT_PARSED_OBJECT, (unsigned long long)STORE_OFFER_BYTES, o->id.text,
                o->encoded_size);
        }
        TRY(sqlite_host_build_judge(s, h, o->hash, o->has_names, e));
        TRY(h->kept_out ? keep_out(s, h, o, e) : PROFD_OK);
        if (h->kept_out) {
            return PROFD_OK;
        }
    }
    TRY(sqlite_intern_build(s, o->id.text, &build, e));
    TRY(find_same(s, build, o, &id, e));
    TRY(id == 0 ? add_object(s, build, o, &id, e) : PROFD_OK);
    TRY(o->hash ? sqlite_run(s, SQL_OBJECT_HASH_SET, VALUES(INTEGER(id), BLOB(o->hash, STORE_HASH_SIZE)), e)
                : PROFD_OK);
    TRY(sqlite_count_object(s, id, -1, e));
    TRY(put_sender(s, build, id, o, h->host, &changed, &trusted, e));
    TRY(sqlite_count_object(s, id, 1, e));
    TRY(o->host ? sqlite_host_build_stored(s, h, id, o, e) : PROFD_OK);
    if (!changed) {
        return PROFD_OK;
    }
    TRY(sqlite_touch_object(s, build, trusted ? 0 : o->uid, trusted ? UINT32_MAX : o->uid, e));
    return o->has_names ? sqlite_run(s, SQL_BUILD_NAMED_SET, VALUES(INTEGER(build)), e) : PROFD_OK;
}

enum profd_status store_put_object(struct store *s, const struct store_object *object, struct profd_error *e)
{
    struct sqlite_host_build h = {.host = 0};
    struct store_object own = *object;
    struct store_use use;
    if (own.host) {
        bool found;
        TRY(sqlite_host_build_find(s, own.host, own.id.text, &h, &found, e));
        if (!found) {
            return profd_error_set(e, PROFD_FORBIDDEN, "this host has sent no counts of build %s", own.id.text);
        }
        own.uid = h.uid;
    }
    TRY(store_get_use(s, own.uid, &use, e));
    if (use.most != UINT64_MAX && use.bytes + own.encoded_size / OBJECT_SHRINKS + own.bounds_size > use.most) {
        return store_share_refuse(s, own.uid, e);
    }
    TRY(sqlite_store_begin(s, e));
    enum profd_status status = sqlite_store_end(s, put_object(s, &own, &h, e), e);
    hashmap_clear(&s->known); /* objects are stored rarely and queried often */
    return status == PROFD_OK && h.kept_out ? PROFD_CONFLICT : status;
}

static enum profd_status load_known(struct store *s, uint32_t uid, const char *build_id, bool *known, int64_t *object,
                                    struct profd_error *e)
{
    int64_t build = 0, complete = 0;
    bool found = false;
    struct sqlite_choice choice = {.object = 0};
    *object = 0;
    TRY(sqlite_find(s, SQL_OBJECT_KNOWN, VALUES(TEXT(build_id), INTEGER(uid)), &complete, &found, e));
    if (!found) {
        return PROFD_OK;
    }
    *known = complete != 0;
    enum profd_status status = sqlite_find(s, SQL_BUILD_FIND, VALUES(TEXT(build_id)), &build, &found, e);
    if (status == PROFD_OK && found) {
        status = sqlite_choose_object(s, build, &(struct store_senders){.uids = &uid, .uid_count = 1}, &choice, e);
    }
    free(choice.note);
    *object = choice.object;
    return status;
}

/* Creates the cache entry of a build from the tables. */
static enum profd_status make_known(struct store *s, uint32_t uid, const char *build_id, struct sqlite_known **out,
                                    size_t *out_size, struct profd_error *e)
{
    bool known = false, row = false;
    int64_t object = 0;
    sqlite3_stmt *q = NULL;
    const uint8_t *bounds = NULL;
    size_t n = 0;
    enum profd_status status = load_known(s, uid, build_id, &known, &object, e);
    if (status == PROFD_OK && object != 0) {
        status = sqlite_start(s, SQL_OBJECT_BOUNDS, VALUES(INTEGER(object)), &q, e);
        if (status == PROFD_OK) {
            status = sqlite_next(s, q, &row, e);
        }
        if (row) {
            bounds = sqlite_blob(q, 0, &n);
        }
    }
    struct sqlite_known *entry = status == PROFD_OK ? malloc(sizeof *entry + n) : NULL;
    if (status == PROFD_OK && !entry) {
        status = profd_no_memory(e);
    }
    if (entry) {
        *entry = (struct sqlite_known){.known = known, .bounds_size = n};
        if (n > 0) {
            memcpy(entry->bounds, bounds, n);
        }
        *out = entry;
        *out_size = sizeof *entry + n;
    }
    if (row) {
        sqlite_finish(q);
    }
    return status;
}

/* The writer's cache entry of the build, filled on first use. A reader's entry would become outdated, so it is created
 * for each call and valid until the next. */
static enum profd_status find_known(struct store *s, uint32_t uid, const char *build_id,
                                    const struct sqlite_known **out, struct profd_error *e)
{
    char key[sizeof uid + BUILDID_TEXT_SIZE];
    struct sqlite_known *entry = NULL;
    size_t size = 0, n = strlen(build_id);
    if (n >= BUILDID_TEXT_SIZE) {
        return profd_error_set(e, PROFD_REFUSED, "a build-id has at most %d characters, this has %zu",
                               BUILDID_TEXT_SIZE - 1, n);
    }
    memcpy(key, &uid, sizeof uid);
    memcpy(key + sizeof uid, build_id, n);
    const struct sqlite_known *known = s->writable ? hashmap_find(&s->known, key, sizeof uid + n) : NULL;
    if (known) {
        *out = known;
        return PROFD_OK;
    }
    TRY(make_known(s, uid, build_id, &entry, &size, e));
    if (s->writable) {
        known = hashmap_put(&s->known, key, sizeof uid + n, entry, size);
        free(entry);
        if (!known) {
            return profd_no_memory(e);
        }
    } else {
        free(s->bounds);
        s->bounds = (uint8_t *)entry;
        known = entry;
    }
    *out = known;
    return PROFD_OK;
}

enum profd_status store_has_object(struct store *s, uint32_t uid, const char *build_id, bool *known,
                                   struct profd_error *e)
{
    const struct sqlite_known *entry;
    TRY(find_known(s, uid, build_id, &entry, e));
    *known = entry->known;
    return PROFD_OK;
}

enum profd_status store_get_bounds(struct store *s, uint32_t uid, const char *build_id, const uint8_t **bytes,
                                   size_t *size, struct profd_error *e)
{
    const struct sqlite_known *entry;
    TRY(find_known(s, uid, build_id, &entry, e));
    *bytes = entry->bounds;
    *size = entry->bounds_size;
    return PROFD_OK;
}

/* *naming is set, too, if there is no object. */
static enum profd_status read_object(struct store *s, const struct store_senders *of, const char *build_id,
                                     uint8_t **bytes, size_t *size, struct store_naming *naming, struct profd_error *e)
{
    int64_t build = 0, variants = 0;
    bool found = false, row = false;
    sqlite3_stmt *q;
    struct sqlite_choice choice = {.object = 0};
    enum profd_status status = sqlite_find(s, SQL_BUILD_FIND, VALUES(TEXT(build_id)), &build, &found, e);
    if (status == PROFD_OK && found) {
        status = sqlite_choose_object(s, build, of, &choice, e);
    }
    free(choice.note);
    *naming = (struct store_naming){.by_operators = choice.by_operators, .apart = choice.apart};
    if (status != PROFD_OK) {
        return status;
    }
    if (choice.object == 0) {
        return profd_error_set(e, PROFD_NOT_FOUND, "no trusted user has sent the executable of build %s", build_id);
    }
    const struct store_scope *seen = of->seen ? of->seen : &(struct store_scope){.all = true};
    status = sqlite_find(s, SQL_OBJECT_VARIANTS, VALUES(INTEGER(build), INTEGER(seen->all), SCOPE(seen)), &variants,
                         &found, e);
    naming->variants = (uint32_t)variants;
    if (status == PROFD_OK && !choice.trusted && !choice.by_operators) {
        status = sqlite_find_dispute(s, choice.object, of, naming->disputed, sizeof naming->disputed, e);
    }
    if (status == PROFD_OK) {
        status = sqlite_start(s, SQL_OBJECT_GET, VALUES(INTEGER(choice.object)), &q, e);
    }
    if (status == PROFD_OK) {
        status = sqlite_next(s, q, &row, e);
    }
    if (row) {
        status = sqlite_take_content(s, q, bytes, size, e);
        sqlite_finish(q);
    } else if (status == PROFD_OK) {
        return profd_error_set(e, PROFD_INTERNAL, "object %lld vanished", (long long)choice.object);
    }
    return status;
}

enum profd_status store_get_object(struct store *s, const struct store_senders *of, const char *build_id,
                                   uint8_t **bytes, size_t *size, struct store_naming *naming, struct profd_error *e)
{
    bool began;
    uint8_t *block = NULL;
    size_t n = 0;
    struct store_naming found = {.variants = 0};
    TRY(sqlite_read_begin(s, &began, e));
    enum profd_status status = read_object(s, of, build_id, &block, &n, &found, e);
    status = sqlite_read_end(s, began, status, e);
    *naming = found;
    if (status != PROFD_OK) {
        free(block);
        return status;
    }
    *bytes = block;
    *size = n;
    return PROFD_OK;
}

enum profd_status store_get_shared_object(struct store *s, const char *build_id, uint8_t **bytes, size_t *size,
                                          struct profd_error *e)
{
    sqlite3_stmt *q;
    struct buffer uids;
    struct store_naming naming;
    buffer_init(&uids, SIZE_MAX);
    enum profd_status status = sqlite_start(s, SQL_BUILD_UIDS, VALUES(TEXT(build_id)), &q, e);
    while (sqlite_row(s, q, &status, e)) {
        const uint32_t uid = (uint32_t)sqlite3_column_int64(q, 0);
        buffer_add(&uids, &uid, sizeof uid);
    }
    if (status == PROFD_OK && uids.failed) {
        status = profd_error_set(e, PROFD_NO_MEMORY, "no memory for the users of a build");
    }
    if (status == PROFD_OK) {
        const struct store_senders of = {.uids = (const uint32_t *)(const void *)uids.data,
                                         .uid_count = uids.size / sizeof(uint32_t)};
        status = store_get_object(s, &of, build_id, bytes, size, &naming, e);
    }
    buffer_done(&uids);
    return status;
}
