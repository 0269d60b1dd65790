/* The symbols of builds: which of several contents names functions, and what hosts offer (offers.h). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/deflate.h"
#include "store/labels.h"
#include "store/store_internal.h"

enum profd_status sqlite_take_content(struct store *s, sqlite3_stmt *q, uint8_t **bytes, size_t *size,
                                      struct profd_error *e)
{
    size_t n, raw = (size_t)sqlite3_column_int64(q, 0);
    const uint8_t *stored = sqlite_blob(q, 1, &n);
    uint8_t *block = malloc(raw > 0 ? raw : 1);
    if (!block) {
        return profd_no_memory(e);
    }
    enum profd_status status = deflate_unpack(stored, n, block, raw, e);
    if (status != PROFD_OK) {
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
    bool readable, has_names, trusted;
    size_t users, operators; /* numbers of the users that accept it, and of these the tenants with operators that did */
    int64_t delivered;       /* latest delivery by a trusted sender or one of the users */
    char *note;              /* of that delivery */
};

/* Is the candidate, which may name functions, to be preferred? */
static bool is_better(const struct candidate *c, const struct candidate *best, size_t uid_count)
{
    const bool ruled = c->operators == uid_count, best_ruled = best->operators == uid_count;
    return best->object == 0                 ? true
           : c->has_names != best->has_names ? c->has_names
           : ruled != best_ruled             ? ruled
           : c->trusted != best->trusted     ? c->trusted
                                             : c->delivered > best->delivered;
}

/* When all senders of an object were read: keeps the better of it and the best so far. */
static void judge_candidate(struct candidate *c, size_t uid_count, struct candidate *best, struct candidate *failure)
{
    struct candidate *target = NULL;
    if (c->readable && (c->trusted || (uid_count > 0 && c->users == uid_count))) {
        target = is_better(c, best, uid_count) ? best : NULL;
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

static bool is_member(const uint32_t *uids, size_t n, uint32_t uid)
{
    size_t low = 0, high = n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (uids[middle] < uid) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < n && uids[low] == uid;
}

/* Adds a row of SQL_OBJECT_EACH to its object. */
static enum profd_status fold_sender(struct candidate *c, sqlite3_stmt *q, const struct store_senders *of, bool *apart,
                                     struct profd_error *e)
{
    const uint32_t uid = (uint32_t)sqlite3_column_int64(q, 3);
    const bool trusted = sqlite3_column_int(q, 4) != 0, member = is_member(of->uids, of->uid_count, uid);
    const int64_t delivered = sqlite3_column_int64(q, 5);
    c->readable = sqlite3_column_int(q, 1) != 0;
    c->has_names = sqlite3_column_int(q, 2) != 0;
    c->trusted |= trusted;
    c->users += member && sqlite3_column_int(q, 8) != 0;
    c->operators += member && sqlite3_column_int(q, 7) != 0;
    *apart |= member && c->readable && store_is_tenant(uid);
    if ((!trusted && !member) || delivered <= c->delivered) {
        return PROFD_OK;
    }
    c->delivered = delivered;
    free(c->note);
    c->note = strdup(sqlite_text(q, 6));
    return c->note ? PROFD_OK : profd_error_set(e, PROFD_NO_MEMORY, "no memory for a sentence about an executable");
}

enum profd_status sqlite_choose_object(struct store *s, int64_t build, const struct store_senders *of,
                                       struct sqlite_choice *choice, struct profd_error *e)
{
    sqlite3_stmt *q;
    struct candidate current = {.object = 0}, best = {.object = 0}, failure = {.object = 0};
    bool apart = false;
    TRY(sqlite_start(s, SQL_OBJECT_EACH, VALUES(INTEGER(build)), &q, e));
    enum profd_status status = PROFD_OK;
    while (sqlite_row(s, q, &status, e)) {
        if (sqlite3_column_int64(q, 0) != current.object) {
            judge_candidate(&current, of->uid_count, &best, &failure);
            current = (struct candidate){.object = sqlite3_column_int64(q, 0)};
        }
        status = fold_sender(&current, q, of, &apart, e);
    }
    if (status == PROFD_OK) {
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

enum profd_status sqlite_touch_object(struct store *s, int64_t build, uint32_t from, uint32_t to, struct profd_error *e)
{
    static const enum sqlite_sql touches[] = {SQL_TOUCH_BUILD_USERS, SQL_TOUCH_BUILDS, SQL_TOUCH_USERS};
    enum profd_status status = PROFD_OK;
    int users = 0;
    for (size_t i = 0; status == PROFD_OK && i < sizeof touches / sizeof touches[0]; i++) {
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

enum profd_status sqlite_host_build_find(struct store *s, const uint8_t identity[STORE_HOST_SIZE], const char *build_id,
                                         struct sqlite_host_build *out, bool *found, struct profd_error *e)
{
    sqlite3_stmt *q;
    TRY(sqlite_first(s, SQL_HOST_BUILD_FIND,
                     VALUES(BLOB(identity, STORE_HOST_SIZE), TEXT(build_id), INTEGER(STORE_TENANT)), &q, found, e));
    if (*found) {
        *out = (struct sqlite_host_build){.build = sqlite3_column_int64(q, 0),
                                          .host = sqlite3_column_int64(q, 1),
                                          .uid = (uint32_t)sqlite3_column_int64(q, 2),
                                          .differs = sqlite3_column_int(q, 3) != 0};
        sqlite_finish(q);
    }
    return PROFD_OK;
}

enum profd_status sqlite_host_build_limit(struct store *s, const struct sqlite_host_build *h, uint64_t size,
                                          struct store_offered *out, struct profd_error *e)
{
    sqlite3_stmt *q;
    bool row;
    out->verdict = size < 1 || size > LIMIT_PARSED_OBJECT ? STORE_OFFER_TOO_LARGE : STORE_OFFER_TAKEN;
    TRY(sqlite_first(s, SQL_HOST_BUILD_USE, VALUES(INTEGER(h->host), INTEGER(h->build)), &q, &row, e));
    if (row) {
        if (sqlite3_column_int64(q, 0) >= STORE_OFFER_MOST) {
            out->verdict = STORE_OFFER_TOO_MANY;
        } else if (size > STORE_OFFER_BYTES || (uint64_t)sqlite3_column_int64(q, 1) > STORE_OFFER_BYTES - size) {
            out->verdict = STORE_OFFER_TOO_LARGE;
        }
        sqlite_finish(q);
    }
    return PROFD_OK;
}

enum profd_status sqlite_host_build_judge(struct store *s, struct sqlite_host_build *h, const uint8_t *hash,
                                          bool has_names, struct profd_error *e)
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

enum profd_status sqlite_host_build_set(struct store *s, const struct sqlite_host_build *h, const uint8_t *hash,
                                        uint64_t size, int64_t due, struct profd_error *e)
{
    TRY(sqlite_run(s, SQL_HOST_BUILD_SET,
                   VALUES(INTEGER(h->build), INTEGER(h->host), hash ? BLOB(hash, STORE_HASH_SIZE) : NOTHING,
                          INTEGER(size), INTEGER(due)),
                   e));
    if (hash ? h->differs || !h->kept_out : !h->differs) {
        return PROFD_OK;
    }
    s->state.number++; /* a dispute has begun or ended */
    return sqlite_touch_object(s, h->build, h->uid, h->uid, e);
}

static enum profd_status offer_one(struct store *s, const struct store_offer *o, struct store_offered *out,
                                   struct profd_error *e)
{
    struct sqlite_host_build h;
    bool found = false;
    *out = (struct store_offered){.verdict = STORE_OFFER_UNASKED};
    TRY(sqlite_host_build_find(s, o->host, o->build_id, &h, &found, e));
    if (!found) {
        return PROFD_OK;
    }
    out->verdict = STORE_OFFER_TAKEN;
    if (o->has) {
        TRY(sqlite_host_build_limit(s, &h, o->size, out, e));
        TRY(sqlite_host_build_judge(s, &h, o->hash, true, e));
    }
    const bool has = o->has && out->verdict == STORE_OFFER_TAKEN;
    out->wanted = has && !h.stored && !h.kept_out;
    const int64_t wait = out->wanted                                              ? STORE_OFFER_AWAITED
                         : has || o->refused || out->verdict != STORE_OFFER_TAKEN ? STORE_OFFER_AGAIN
                                                                                  : STORE_OFFER_ABSENT;
    return sqlite_host_build_set(s, &h, has && !h.stored ? o->hash : NULL, has ? o->size : 0, o->now + wait, e);
}

enum profd_status store_offer(struct store *s, const struct store_offer *list, size_t n, struct store_offered *out,
                              struct profd_error *e)
{
    TRY(sqlite_store_begin(s, e));
    enum profd_status status = PROFD_OK;
    for (size_t i = 0; i < n && status == PROFD_OK; i++) {
        status = offer_one(s, &list[i], &out[i], e);
    }
    return sqlite_store_end(s, status, e);
}

enum profd_status store_wanted(struct store *s, const uint8_t host[STORE_HOST_SIZE], int64_t now, struct buildid *out,
                               size_t most, size_t *count, struct profd_error *e)
{
    sqlite3_stmt *q;
    *count = 0;
    TRY(sqlite_start(s, SQL_HOST_BUILD_DUE, VALUES(BLOB(host, STORE_HOST_SIZE), INTEGER(now), INTEGER(most)), &q, e));
    enum profd_status status = PROFD_OK;
    while (sqlite_row(s, q, &status, e)) {
        struct buildid *id = &out[(*count)++];
        snprintf(id->text, sizeof id->text, "%s", sqlite_text(q, 0));
    }
    return status;
}

enum profd_status sqlite_host_build_stored(struct store *s, const struct sqlite_host_build *h, int64_t object,
                                           const struct store_object *o, struct profd_error *e)
{
    const int64_t due = o->received + STORE_OFFER_AGAIN;
    /* Removes what this host sent before as the first object of the build. */
    int64_t old = 0;
    bool found = true;
    while (found) {
        TRY(sqlite_find(s, SQL_HOST_BUILD_OLD,
                        VALUES(INTEGER(h->build), INTEGER(h->uid), INTEGER(h->host), INTEGER(object)), &old, &found,
                        e));
        if (found) {
            TRY(sqlite_count_object(s, old, -1, e));
            TRY(sqlite_run(s, SQL_OBJECT_SENDER_DROP, VALUES(INTEGER(old), INTEGER(h->uid)), e));
            TRY(sqlite_run(s, SQL_OBJECT_DROP_UNSENT, VALUES(INTEGER(old)), e));
            TRY(sqlite_count_object(s, old, 1, e));
        }
    }
    TRY(sqlite_run(
        s, SQL_HOST_BUILD_AGREE,
        VALUES(INTEGER(h->build), BLOB(o->hash, STORE_HASH_SIZE), INTEGER(store_tenant_id(h->uid)), INTEGER(due)), e));
    return sqlite_host_build_set(s, h, NULL, o->encoded_size, due, e);
}

enum profd_status sqlite_find_dispute(struct store *s, int64_t object, const struct store_senders *of, char *text,
                                      size_t size, struct profd_error *e)
{
    sqlite3_stmt *q;
    *text = '\0';
    TRY(sqlite_start(s, SQL_HOST_BUILD_DISPUTE, VALUES(INTEGER(object)), &q, e));
    enum profd_status status = PROFD_OK;
    while (sqlite_row(s, q, &status, e)) {
        const uint32_t uid = (uint32_t)sqlite3_column_int64(q, 0);
        bool member = false;
        for (size_t i = 0; i < of->uid_count && !member; i++) {
            member = of->uids[i] == uid;
        }
        if (!member || *text) {
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
