/* What is said of the hours and hosts of a query. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "store/labels.h"
#include "store/sqlite_centre.h"
#include "store/sqlite_segment.h"
#include "store/sqlite_select.h"

enum profd_status sqlite_salt_draw(sqlite3 *db, struct profd_error *e)
{
    int64_t salt;
    char sql[64];
    if (getrandom(&salt, sizeof salt, 0) != (ssize_t)sizeof salt) {
        return profd_error_set(e, PROFD_IO, "no random bytes for the salt of ETags");
    }
    sqlite3_snprintf((int)sizeof sql, sql, "UPDATE state SET salt=%lld", (long long)salt);
    return sqlite_direct_run(db, sql, "cannot set the salt of ETags", e);
}

enum profd_status store_sqlite_resalt(struct store *s, struct profd_error *e)
{
    return sqlite_salt_draw(s->db, e);
}

enum profd_status store_sqlite_renew(struct store *s, struct profd_error *e)
{
    uint64_t incarnation[2];
    char sql[160];
    if (getrandom(incarnation, sizeof incarnation, 0) != (ssize_t)sizeof incarnation) {
        return profd_error_set(e, PROFD_IO, "no random bytes for the incarnation of a centre");
    }
    sqlite3_snprintf((int)sizeof sql, sql,
                     "UPDATE centre SET restored=(SELECT number>0 FROM state), incarnation=x'%016llx%016llx'",
                     (unsigned long long)incarnation[0], (unsigned long long)incarnation[1]);
    TRY(sqlite_direct_run(s->db, sql, "cannot set the incarnation of a centre", e));
    TRY(sqlite_relay_mark_gap(s, e));
    TRY(sqlite_mark_gap(s, e));
    return store_sqlite_resalt(s, e);
}

enum profd_status store_sqlite_touch(struct store *s, struct profd_error *e)
{
    return sqlite_direct_run(s->db, "UPDATE state SET salt=salt", "cannot begin the log", e);
}

enum profd_status store_sqlite_describe(struct store *s, struct store_sqlite_state *out, struct profd_error *e)
{
    struct sqlite_state t;
    TRY(s->broken == PROFD_OK || s->saved ? sqlite_load_state(s, &t, e)
                                          : profd_error_set(e, s->broken, "%s", s->health.error.sentence));
    out->salt = t.salt;
    out->number = t.number;
    (void)snprintf(out->text, sizeof out->text,
                   "%" PRId64 ",%" PRId64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64,
                   t.list_epoch, t.version, t.uploads, t.calls, t.retired_uploads, t.raw_bytes, t.rollups,
                   t.live_bytes);
    return PROFD_OK;
}

enum profd_status store_each_mark(struct store *s, const struct store_scope *scope, const struct store_filter *filter,
                                  bool (*each)(void *context, const struct store_mark *mark), void *context,
                                  struct profd_error *e)
{
    sqlite3_stmt *q;
    bool fine = true;
    const int64_t from = filter->since > 0 ? filter->since / SQLITE_HOUR : 0,
                  to = filter->until > 0 ? (filter->until - 1) / SQLITE_HOUR : INT64_MAX,
                  first = scope->all || !store_is_tenant(scope->uid) ? SQLITE_MARK_LOCAL : SQLITE_MARK_HOSTS,
                  last = store_scope_has_tenants(scope) ? INT64_MAX : SQLITE_MARK_LOCAL;
    enum profd_status status = sqlite_start(s, SQL_HOUR_MARKS,
                                            VALUES(INTEGER(from), INTEGER(to), INTEGER(scope->all), SCOPE(scope),
                                                   INTEGER(STORE_TENANT), INTEGER(first), INTEGER(last)),
                                            &q, e);
    while (fine && sqlite_row(s, q, &status, e)) {
        const struct store_mark m = {.of = sqlite3_column_int64(q, 3) == SQLITE_MARK_LOCAL ? STORE_OF_LOCAL_USERS
                                                                                           : STORE_OF_HOSTS,
                                     .host = sqlite3_column_type(q, 1) == SQLITE_NULL ? NULL : sqlite_text(q, 1),
                                     .hour = sqlite3_column_int64(q, 2),
                                     .reasons = (uint32_t)sqlite3_column_int64(q, 0)};
        fine = (m.host && !labels_match_host(filter, m.host)) || each(context, &m);
    }
    if (!fine) {
        sqlite_finish(q);
        return profd_no_memory(e);
    }
    return status;
}

struct reasons {
    enum store_origin of;
    uint32_t bits;
};

static bool add_reasons(void *context, const struct store_mark *mark)
{
    struct reasons *r = context;
    r->bits |= r->of & mark->of ? mark->reasons : 0;
    return true;
}

enum profd_status store_get_marks(struct store *s, const struct store_scope *scope, const struct store_filter *filter,
                                  enum store_origin of, uint32_t *reasons, struct profd_error *e)
{
    struct reasons found = {.of = of};
    bool apart = false;
    if (of & STORE_OF_HOSTS && store_scope_has_tenants(scope) && filter->build_id && !filter->by_host &&
        labels_are_asked(filter, "host")) {
        TRY(sqlite_has_totals(s, scope, filter, &apart, e));
    }
    TRY(store_each_mark(s, scope, filter, add_reasons, &found, e));
    *reasons = found.bits | (apart ? (uint32_t)INEXACT_HOST_TOTALS : 0);
    return PROFD_OK;
}
