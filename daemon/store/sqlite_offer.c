/* Which symbols hosts have of builds (offers.h). */
#include <stdio.h>
#include <string.h>

#include "store/sqlite_users.h"

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
