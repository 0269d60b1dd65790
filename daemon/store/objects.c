/* The symbols of builds: which of several contents names functions, and what hosts offer (offers.h). */
#include <stdio.h>
#include <stdlib.h>

#include "proto/deflate.h"
#include "store/store_internal.h"

enum profd_status sqlite_take_content(struct store *s, sqlite3_stmt *q, uint8_t **bytes, size_t *size,
                                      struct profd_error *e)
{
    size_t n, raw = (size_t)sqlite3_column_int64(q, 0);
    const uint8_t *stored = sqlite_blob(q, 1, &n);
    uint8_t *block = malloc(raw > 0 ? raw : 1);
    TRY(block ? PROFD_OK : profd_no_memory(e));
    enum profd_status status = deflate_unpack(stored, n, block, raw, e);
    if (status) {
        free(block);
        return profd_error_wrap(e, status == PROFD_NO_MEMORY ? status : PROFD_DAMAGED,
                                "database %s: the stored symbols of a build", s->path);
    }
    *bytes = block;
    *size = raw;
    return PROFD_OK;
}

/* One object with a summary of its senders. */
struct candidate {
    int64_t object;
    bool readable, trusted;
    int has_names;           /* as of struct store_object */
    size_t users, operators; /* users that accept it; tenants among them whose operators have sent it */
    int64_t delivered;       /* latest delivery by a trusted sender or one of the users */
    char *note;              /* of that delivery */
};

/* Keeps the better of an object and the best so far, when all senders of it were read. uid_count: of the sum's users.
 */
static void judge_candidate(struct candidate *c, size_t uid_count, struct candidate *best, struct candidate *failure)
{
    struct candidate *target = NULL;
    if (c->readable && (c->trusted || (uid_count > 0 && c->users == uid_count))) {
        const bool ruled = c->operators == uid_count, best_ruled = best->operators == uid_count,
                   better = best->object == 0                   ? true
                            : !c->has_names != !best->has_names ? c->has_names
                            : ruled != best_ruled               ? ruled
                            : c->trusted != best->trusted       ? c->trusted
                            : c->has_names != best->has_names   ? c->has_names > best->has_names
                                                                : c->delivered > best->delivered;
        target = better ? best : NULL;
    } else if (!c->readable && c->delivered > failure->delivered) {
        target = failure;
    }
    if (target) {
        free(target->note);
        *target = *c;
        c->note = NULL;
    }
    free(c->note);
    c->note = NULL;
}

static bool is_member(const struct store_senders *of, uint32_t uid)
{
    uint32_t low;
    SORT_SEARCH(low, 0, (uint32_t)of->uid_count, of->uids[low] < uid);
    return low < of->uid_count && of->uids[low] == uid;
}

enum profd_status sqlite_choose_object(struct store *s, int64_t build, const struct store_senders *of,
                                       struct sqlite_choice *choice, struct profd_error *e)
{
    sqlite3_stmt *q;
    struct candidate current = {.object = 0}, best = {.object = 0}, failure = {.object = 0};
    bool apart = false;
    enum profd_status status = sqlite_start(s, SQL_OBJECT_EACH, VALUES(INTEGER(build)), &q, e);
    while (sqlite_row(s, q, &status, e)) {
        if (sqlite3_column_int64(q, 0) != current.object) {
            judge_candidate(&current, of->uid_count, &best, &failure);
            current = (struct candidate){.object = sqlite3_column_int64(q, 0)};
        }
        const uint32_t uid = (uint32_t)sqlite3_column_int64(q, 3);
        const bool trusted = sqlite3_column_int(q, 4) != 0, member = is_member(of, uid);
        const int64_t delivered = sqlite3_column_int64(q, 5);
        current.readable = sqlite3_column_int(q, 1) != 0;
        current.has_names = sqlite3_column_int(q, 2);
        current.trusted |= trusted;
        current.users += member && sqlite3_column_int(q, 8) != 0;
        current.operators += member && sqlite3_column_int(q, 7) != 0;
        apart |= member && current.readable && store_is_tenant(uid);
        if ((trusted || member) && delivered > current.delivered) {
            current.delivered = delivered;
            free(current.note);
            current.note = strdup(sqlite_text(q, 6));
            status = current.note ? PROFD_OK : profd_no_memory(e);
        }
    }
    if (!status) {
        judge_candidate(&current, of->uid_count, &best, &failure);
        choice->object = best.object;
        choice->has_names = best.has_names;
        choice->trusted = best.trusted;
        choice->by_operators = best.operators > 0 && best.operators == of->uid_count;
        choice->apart = apart && best.object == 0;
        choice->note = best.object != 0 ? best.note : failure.note;
        *(best.object != 0 ? &best.note : &failure.note) = NULL;
    }
    free(current.note);
    free(best.note);
    free(failure.note);
    return status;
}

/* Reports with this build are new from the state's number on, for the users from one to another. */
static enum profd_status touch_object(struct store *s, int64_t build, uint32_t from, uint32_t to, struct profd_error *e)
{
    static const enum sqlite_sql touches[] = {SQL_TOUCH_BUILD_USERS, SQL_TOUCH_BUILDS, SQL_TOUCH_USERS};
    enum profd_status status = PROFD_OK;
    int users = 0;
    for (size_t i = 0; !status && i < sizeof touches / sizeof touches[0]; i++) {
        status =
            sqlite_run(s, touches[i], VALUES(INTEGER(build), INTEGER(from), INTEGER(to), INTEGER(s->state.number)), e);
        users = sqlite3_changes(s->db);
    }
    struct sqlite_state *t = &s->state;
    if (users > 0) {
        t->list_epoch = t->number;
    }
    return status == PROFD_OK ? sqlite_save_state(s, e) : status;
}

enum profd_status sqlite_await_objects(struct store *s, int64_t series, int64_t host, struct profd_error *e)
{
    return sqlite_run(s, SQL_HOST_BUILD_AWAIT, VALUES(INTEGER(series), INTEGER(host)), e);
}

/* A build, and a host that has sent counts of it: their row ids. */
struct host_build {
    int64_t build, host;
    uint32_t uid;  /* of the host's tenant */
    bool differs;  /* the object that it stated last is not stored */
    bool stored;   /* its tenant has this object, */
    bool kept_out; /* or another one that precedes it: host_build_judge sets both */
};

/* *found: false if the host has sent no counts of the build. */
static enum profd_status host_build_find(struct store *s, const uint8_t identity[STORE_HOST_SIZE], const char *build_id,
                                         struct host_build *out, bool *found, struct profd_error *e)
{
    sqlite3_stmt *q;
    TRY(sqlite_first(s, SQL_HOST_BUILD_FIND,
                     VALUES(BLOB(identity, STORE_HOST_SIZE), TEXT(build_id), INTEGER(STORE_TENANT)), &q, found, e));
    if (*found) {
        *out = (struct host_build){.build = sqlite3_column_int64(q, 0),
                                   .host = sqlite3_column_int64(q, 1),
                                   .uid = (uint32_t)sqlite3_column_int64(q, 2),
                                   .differs = sqlite3_column_int(q, 3) != 0};
        sqlite_finish(q);
    }
    return PROFD_OK;
}

/* Sets the verdict for an object of this size. */
static enum profd_status host_build_limit(struct store *s, const struct host_build *h, uint64_t size,
                                          struct store_offered *out, struct profd_error *e)
{
    sqlite3_stmt *q;
    bool row;
    out->verdict = size < 1 || size > LIMIT_PARSED_OBJECT ? STORE_OFFER_TOO_LARGE : STORE_OFFER_TAKEN;
    TRY(sqlite_first(s, SQL_HOST_BUILD_USE, VALUES(INTEGER(h->host), INTEGER(h->build)), &q, &row, e));
    if (row) {
        if (sqlite3_column_int64(q, 0) >= STORE_OFFER_MOST) {
            out->verdict = STORE_OFFER_TOO_MANY;
        } else if (size > STORE_OFFER_BYTES || sqlite_u64(q, 1) > STORE_OFFER_BYTES - size) {
            out->verdict = STORE_OFFER_TOO_LARGE;
        }
        sqlite_finish(q);
    }
    return PROFD_OK;
}

/* Sets stored and kept_out for an object with this hash. */
static enum profd_status host_build_judge(struct store *s, struct host_build *h, const uint8_t *hash, bool has_names,
                                          struct profd_error *e)
{
    sqlite3_stmt *q;
    bool row;
    TRY(sqlite_first(
        s, SQL_HOST_BUILD_JUDGE,
        VALUES(INTEGER(h->build), INTEGER(h->uid), BLOB(hash, STORE_HASH_SIZE), INTEGER(h->host), INTEGER(has_names)),
        &q, &row, e));
    if (row) {
        h->stored = sqlite3_column_int(q, 0) != 0;
        h->kept_out = !h->stored && sqlite3_column_int(q, 1) != 0;
        sqlite_finish(q);
    }
    return PROFD_OK;
}

/* Records what the host has. hash: of what is not stored; NULL: it has nothing else. */
static enum profd_status host_build_set(struct store *s, const struct host_build *h, const uint8_t *hash, uint64_t size,
                                        int64_t due, struct profd_error *e)
{
    TRY(sqlite_run(s, SQL_HOST_BUILD_SET,
                   VALUES(INTEGER(h->build), INTEGER(h->host), hash ? BLOB(hash, STORE_HASH_SIZE) : NOTHING,
                          INTEGER(size), INTEGER(due)),
                   e));
    if (hash ? h->differs || !h->kept_out : !h->differs) {
        return PROFD_OK;
    }
    s->state.number++; /* a dispute has begun or ended */
    return touch_object(s, h->build, h->uid, h->uid, e);
}

enum profd_status store_offer(struct store *s, const struct store_offer *list, size_t n, struct store_offered *out,
                              struct profd_error *e)
{
    TRY(sqlite_store_begin(s, e));
    enum profd_status status = PROFD_OK;
    for (size_t i = 0; i < n && !status; i++) {
        const struct store_offer *o = &list[i];
        struct host_build h;
        bool found = false;
        out[i] = (struct store_offered){.verdict = STORE_OFFER_UNASKED};
        status = host_build_find(s, o->host, o->build_id, &h, &found, e);
        if (status || !found) {
            continue;
        }
        out[i].verdict = STORE_OFFER_TAKEN;
        if (o->has) {
            status = host_build_limit(s, &h, o->size, &out[i], e);
            status = status ? status : host_build_judge(s, &h, o->hash, true, e);
        }
        const bool taken = out[i].verdict == STORE_OFFER_TAKEN, has = o->has && taken;
        out[i].wanted = has && !h.stored && !h.kept_out;
        const int64_t wait = out[i].wanted                 ? STORE_OFFER_AWAITED
                             : has || o->refused || !taken ? STORE_OFFER_AGAIN
                                                           : STORE_OFFER_ABSENT;
        if (!status) {
            status = host_build_set(s, &h, has && !h.stored ? o->hash : NULL, has ? o->size : 0, o->now + wait, e);
        }
    }
    return sqlite_store_end(s, status, e);
}

enum profd_status store_wanted(struct store *s, const uint8_t host[STORE_HOST_SIZE], int64_t now, struct buildid *out,
                               size_t most, size_t *count, struct profd_error *e)
{
    sqlite3_stmt *q;
    *count = 0;
    enum profd_status status =
        sqlite_start(s, SQL_HOST_BUILD_DUE, VALUES(BLOB(host, STORE_HOST_SIZE), INTEGER(now), INTEGER(most)), &q, e);
    while (sqlite_row(s, q, &status, e)) {
        struct buildid *id = &out[(*count)++];
        snprintf(id->text, sizeof id->text, "%s", sqlite_text(q, 0));
    }
    return status;
}

#define OBJECT_SHRINKS 4 /* estimated compression of symbols */

/* Finds or adds the row with exactly these bytes under (build, variant). */
static enum profd_status intern_object(struct store *s, int64_t build, const struct store_object *o, int64_t *id,
                                       struct profd_error *e)
{
    sqlite3_stmt *q;
    bool same = false;
    enum profd_status status = PROFD_OK;
    TRY(sqlite_start(s, SQL_OBJECT_SAME, VALUES(INTEGER(build), TEXT(o->variant)), &q, e));
    while (!same && sqlite_row(s, q, &status, e)) {
        uint8_t *bytes = NULL;
        size_t size = 0;
        if (sqlite3_column_int64(q, 0) != (int64_t)o->encoded_size) {
            continue;
        }
        status = sqlite_take_content(s, q, &bytes, &size, e);
        same = !status && (size == 0 || memcmp(bytes, o->encoded, size) == 0);
        *id = sqlite3_column_int64(q, 2);
        free(bytes);
    }
    sqlite_finish(q);
    if (status || same) {
        return status;
    }
    size_t bound = deflate_bound(o->encoded_size), n = 0;
    uint8_t *packed = malloc(bound);
    TRY(packed ? PROFD_OK : profd_no_memory(e));
    status = deflate_pack(o->encoded, o->encoded_size, false, packed, bound, &n, e);
    if (!status) {
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
    bool known = false, found = false, by_operator = o->by_operator;
    int64_t latest = 0;
    *changed = true;
    *trusted = o->trusted;
    TRY(sqlite_find(s, SQL_OBJECT_LATEST, VALUES(INTEGER(build)), &latest, &found, e));
    TRY(sqlite_first(s, SQL_OBJECT_SENDER_FIND, VALUES(INTEGER(object), INTEGER(o->uid)), &q, &known, e));
    if (known) {
        const bool was_trusted = sqlite3_column_int(q, 0) != 0, by_operator_before = sqlite3_column_int(q, 3) != 0;
        *trusted = o->trusted || was_trusted; /* once trusted, a file stays trusted */
        by_operator = o->by_operator || by_operator_before;
        *changed = *trusted != was_trusted || by_operator != by_operator_before ||
                   sqlite3_column_int64(q, 1) != latest || strcmp(sqlite_text(q, 2), o->note) != 0;
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

/* Stores an object. If another one precedes it, h->kept_out is set, it is only recorded, and *e states the reason. */
static enum profd_status put_object(struct store *s, const struct store_object *o, struct host_build *h,
                                    struct profd_error *e)
{
    int64_t build = 0, id = 0;
    bool changed = false, trusted = false;
    if (o->host) {
        struct store_offered offered;
        TRY(host_build_limit(s, h, o->encoded_size, &offered, e));
        FAIL_IF(offered.verdict != STORE_OFFER_TAKEN, e, PROFD_LIMIT,
                "a host may have %u parsed objects of at most %u bytes, with %llu bytes in all; that of build %s has "
                "%zu bytes",
                STORE_OFFER_MOST, LIMIT_PARSED_OBJECT, (unsigned long long)STORE_OFFER_BYTES, o->id.text,
                o->encoded_size);
        TRY(host_build_judge(s, h, o->hash, o->has_names, e));
    }
    if (h->kept_out) {
        sqlite3_stmt *q;
        bool row;
        TRY(host_build_set(s, h, o->hash, o->encoded_size, o->received + STORE_OFFER_AGAIN, e));
        TRY(sqlite_first(s, SQL_HOST_BUILD_FIRST, VALUES(INTEGER(h->build), INTEGER(h->uid), INTEGER(h->host)), &q,
                         &row, e));
        FAIL_IF(!row, e, PROFD_INTERNAL, "the symbols of build %s vanished", o->id.text);
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

    TRY(sqlite_intern_build(s, o->id.text, &build, e));
    TRY(intern_object(s, build, o, &id, e));
    TRY(o->hash ? sqlite_run(s, SQL_OBJECT_HASH_SET, VALUES(INTEGER(id), BLOB(o->hash, STORE_HASH_SIZE)), e)
                : PROFD_OK);
    TRY(sqlite_count_object(s, id, -1, e));
    TRY(put_sender(s, build, id, o, h->host, &changed, &trusted, e));
    TRY(sqlite_count_object(s, id, 1, e));
    if (o->host || o->grows) { /* it replaces what this host, or the user, sent before of the build */
        int64_t old = 0;
        for (bool found = true; found;) {
            TRY(sqlite_find(s, SQL_OBJECT_BEFORE,
                            VALUES(INTEGER(build), INTEGER(o->uid), INTEGER(h->host), INTEGER(id)), &old, &found, e));
            if (found) {
                TRY(sqlite_count_object(s, old, -1, e));
                TRY(sqlite_run(s, SQL_OBJECT_SENDER_DROP, VALUES(INTEGER(old), INTEGER(o->uid)), e));
                TRY(sqlite_run(s, SQL_OBJECT_DROP_UNSENT, VALUES(INTEGER(old)), e));
                TRY(sqlite_count_object(s, old, 1, e));
            }
        }
    }
    if (o->host) {
        const int64_t due = o->received + STORE_OFFER_AGAIN;
        TRY(sqlite_run(
            s, SQL_HOST_BUILD_AGREE,
            VALUES(INTEGER(h->build), BLOB(o->hash, STORE_HASH_SIZE), INTEGER(store_tenant_id(h->uid)), INTEGER(due)),
            e));
        TRY(host_build_set(s, h, NULL, o->encoded_size, due, e));
    }
    if (!changed) {
        return PROFD_OK;
    }
    TRY(touch_object(s, build, trusted ? 0 : o->uid, trusted ? UINT32_MAX : o->uid, e));
    return o->has_names ? sqlite_run(s, SQL_BUILD_NAMED_SET, VALUES(INTEGER(build)), e) : PROFD_OK;
}

enum profd_status store_put_object(struct store *s, const struct store_object *object, struct profd_error *e)
{
    struct host_build h = {.host = 0};
    struct store_object own = *object;
    struct store_use use;
    if (own.host) {
        bool found;
        TRY(host_build_find(s, own.host, own.id.text, &h, &found, e));
        FAIL_IF(!found, e, PROFD_FORBIDDEN, "this host has sent no counts of build %s", own.id.text);
        own.uid = h.uid;
    }
    TRY(store_get_use(s, own.uid, &use, e));
    if (use.most != UINT64_MAX && use.bytes + own.encoded_size / OBJECT_SHRINKS + own.bounds_size > use.most) {
        return store_share_refuse(s, own.uid, e);
    }
    TRY(sqlite_store_begin(s, e));
    enum profd_status status = sqlite_store_end(s, put_object(s, &own, &h, e), e);
    hashmap_clear(&s->known); /* objects are stored rarely and queried often */
    return !status && h.kept_out ? PROFD_CONFLICT : status;
}

/* What the writer remembers of a build for a user. */
struct known_object {
    bool known;
    size_t bounds_size;
    uint8_t bounds[];
};

/* Finds the cache entry of the build, which the writer fills on first use. A reader's entry would become outdated, so
 * it is created for each call and valid until the next. */
static enum profd_status find_known(struct store *s, uint32_t uid, const char *build_id,
                                    const struct known_object **out, struct profd_error *e)
{
    char key[sizeof uid + BUILDID_TEXT_SIZE];
    const size_t length = strlen(build_id);
    FAIL_IF(length >= BUILDID_TEXT_SIZE, e, PROFD_REFUSED, "a build-id has at most %d characters, this has %zu",
            BUILDID_TEXT_SIZE - 1, length);
    memcpy(key, &uid, sizeof uid);
    memcpy(key + sizeof uid, build_id, length);
    const struct known_object *cached = s->writable ? hashmap_find(&s->known, key, sizeof uid + length) : NULL;
    if (cached) {
        *out = cached;
        return PROFD_OK;
    }

    struct sqlite_choice choice = {.object = 0};
    const struct store_senders senders = {.uids = &uid, .uid_count = 1};
    sqlite3_stmt *q = NULL;
    int64_t build = 0, complete = 0;
    bool known = false, found = false;
    const uint8_t *bounds = NULL;
    size_t n = 0;
    TRY(sqlite_find(s, SQL_OBJECT_KNOWN, VALUES(TEXT(build_id), INTEGER(uid)), &complete, &known, e));
    if (known) {
        TRY(sqlite_find(s, SQL_BUILD_FIND, VALUES(TEXT(build_id)), &build, &found, e));
    }
    TRY(found ? sqlite_choose_object(s, build, &senders, &choice, e) : PROFD_OK);
    free(choice.note);
    if (choice.object != 0) {
        TRY(sqlite_first(s, SQL_OBJECT_BOUNDS, VALUES(INTEGER(choice.object)), &q, &found, e));
        bounds = found ? sqlite_blob(q, 0, &n) : NULL;
    }
    struct known_object *entry = malloc(sizeof *entry + n);
    if (entry) {
        *entry = (struct known_object){.known = known && complete != 0, .bounds_size = n};
        memcpy(entry->bounds, n > 0 ? bounds : (const uint8_t *)"", n);
    }
    sqlite_finish(q);
    if (entry && s->writable) {
        *out = hashmap_put(&s->known, key, sizeof uid + length, entry, sizeof *entry + n);
        free(entry);
        return *out ? PROFD_OK : profd_no_memory(e);
    }
    free(s->bounds);
    s->bounds = (uint8_t *)entry;
    *out = entry;
    return entry ? PROFD_OK : profd_no_memory(e);
}

enum profd_status store_has_object(struct store *s, uint32_t uid, const char *build_id, bool *known,
                                   struct profd_error *e)
{
    const struct known_object *entry;
    TRY(find_known(s, uid, build_id, &entry, e));
    *known = entry->known;
    return PROFD_OK;
}

enum profd_status store_get_bounds(struct store *s, uint32_t uid, const char *build_id, const uint8_t **bytes,
                                   size_t *size, struct profd_error *e)
{
    const struct known_object *entry;
    TRY(find_known(s, uid, build_id, &entry, e));
    *bytes = entry->bounds;
    *size = entry->bounds_size;
    return PROFD_OK;
}

/* Sets the clause of struct store_naming about an object that names functions for these senders. */
static enum profd_status find_dispute(struct store *s, int64_t object, const struct store_senders *of, char *text,
                                      size_t size, struct profd_error *e)
{
    sqlite3_stmt *q;
    *text = '\0';
    enum profd_status status = sqlite_start(s, SQL_HOST_BUILD_DISPUTE, VALUES(INTEGER(object)), &q, e);
    while (sqlite_row(s, q, &status, e)) {
        const uint32_t uid = (uint32_t)sqlite3_column_int64(q, 0);
        if (!is_member(of, uid) || *text) {
            continue;
        }
        const char *mine = sqlite_text(q, 2), *other = sqlite_text(q, 4);
        const int64_t more = sqlite3_column_int64(q, 5);
        int n = snprintf(text, size, "its names are those of host %s, which sent them first; host %s",
                         sqlite_text(q, 1), sqlite_text(q, 3));
        if (more > 0) {
            n += snprintf(text + n, size - (size_t)n, " (and %lld more)", (long long)more);
        }
        n += snprintf(text + n, size - (size_t)n, " has another content under this build-id");
        if (strcmp(mine, other) != 0 && *mine && *other && strlen(mine) < 32 && strlen(other) < 32) {
            snprintf(text + n, size - (size_t)n, "; they run profd %s and %s, which may read one file differently",
                     mine, other);
        }
    }
    return status;
}

enum profd_status store_get_object(struct store *s, const struct store_senders *of, const char *build_id,
                                   uint8_t **bytes, size_t *size, struct store_naming *naming, struct profd_error *e)
{
    const struct store_scope all = {.all = true}, *seen = of->seen ? of->seen : &all;
    struct sqlite_choice choice = {.object = 0};
    struct store_naming found = {.variants = 0};
    int64_t build = 0, variants = 0;
    bool began, row = false;
    sqlite3_stmt *q = NULL;
    uint8_t *block = NULL;
    size_t n = 0;
    TRY(sqlite_read_begin(s, &began, e));
    enum profd_status status = sqlite_find(s, SQL_BUILD_FIND, VALUES(TEXT(build_id)), &build, &row, e);
    status = status || !row ? status : sqlite_choose_object(s, build, of, &choice, e);
    free(choice.note);
    found.by_operators = choice.by_operators;
    found.apart = choice.apart;
    if (!status && choice.object == 0) {
        status = profd_error_set(e, PROFD_NOT_FOUND, "no trusted user has sent the executable of build %s", build_id);
    }
    if (!status) {
        status = sqlite_find(s, SQL_OBJECT_VARIANTS, VALUES(INTEGER(build), INTEGER(seen->all), SCOPE(seen)), &variants,
                             &row, e);
        found.variants = (uint32_t)variants;
    }
    if (!status && !choice.trusted && !choice.by_operators) {
        status = find_dispute(s, choice.object, of, found.disputed, sizeof found.disputed, e);
    }
    status = status ? status : sqlite_first(s, SQL_OBJECT_GET, VALUES(INTEGER(choice.object)), &q, &row, e);
    if (!status) {
        status = row ? sqlite_take_content(s, q, &block, &n, e)
                     : profd_error_set(e, PROFD_INTERNAL, "object %lld vanished", (long long)choice.object);
    }
    sqlite_finish(q);
    status = sqlite_read_end(s, began, status, e);
    *naming = found; /* also if there is no object */
    if (status) {
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
    if (!status && uids.failed) {
        status = profd_no_memory(e);
    }
    if (!status) {
        const struct store_senders of = {.uids = (const uint32_t *)(const void *)uids.data,
                                         .uid_count = uids.size / sizeof(uint32_t)};
        status = store_get_object(s, &of, build_id, bytes, size, &naming, e);
    }
    buffer_done(&uids);
    return status;
}
