/* A centre: its row, tenants and tokens, the hosts, marked hours, and the digests of arrivals. */
#include <stdio.h>
#include <time.h>

#include "store/store_internal.h"

#define RESTORED_HOURS_MOST (366 * 24) /* a clock that was wrong must not fill the database */

enum profd_status sqlite_centre_load(struct store *s, struct store_centre *out, struct profd_error *e)
{
    sqlite3_stmt *q;
    bool row = false;
    size_t n = 0, name_size = 0;
    TRY(sqlite_first(s, SQL_CENTRE_GET, NULL, 0, &q, &row, e));
    const uint8_t *incarnation = row ? sqlite_blob(q, 0, &n) : NULL,
                  *name = row ? sqlite_blob(q, 10, &name_size) : NULL;
    enum profd_status status = PROFD_OK;
    if (row && n == sizeof out->incarnation && name_size == sizeof out->name) {
        *out = (struct store_centre){.number = sqlite_u64(q, 1),
                                     .counts_segments = true,
                                     .backup = sqlite_u64(q, 2),
                                     .last = sqlite3_column_int64(q, 3),
                                     .counted = sqlite_amount(q, 4),
                                     .removed = sqlite_amount(q, 7),
                                     .restored = sqlite3_column_int(q, 11) != 0};
        memcpy(out->incarnation, incarnation, n);
        memcpy(out->name, name, name_size);
    } else {
        status = profd_error_set(e, PROFD_DAMAGED, "database %s: table centre has no name or no incarnation", s->path);
    }
    if (row) {
        sqlite_finish(q);
    }
    return status;
}

enum profd_status sqlite_centre_save(struct store *s, const struct store_centre *c, struct profd_error *e)
{
    return sqlite_run(
        s, SQL_CENTRE_SET,
        VALUES(INTEGER(c->number), INTEGER(c->backup), INTEGER(c->last), AMOUNT(c->counted), AMOUNT(c->removed)), e);
}

enum profd_status sqlite_centre_removed(struct store *s, const struct sqlite_identity *series,
                                        const struct sqlite_sums *gone, struct profd_error *e)
{
    struct store_centre c;
    const struct store_amount amount = sqlite_sums_amount(gone);
    if (!store_is_tenant(series->uid)) {
        return PROFD_OK;
    }
    TRY(sqlite_centre_load(s, &c, e));
    outgoing_amount_add(&c.removed, &amount);
    return sqlite_centre_save(s, &c, e);
}

enum profd_status sqlite_centre_add(struct store *s, const struct store_upload *u, struct profd_error *e)
{
    const struct store_amount amount = {1, u->ticks, u->calls};
    struct store_centre c;
    TRY(sqlite_centre_load(s, &c, e));
    outgoing_amount_add(&c.counted, &amount);
    TRY(sqlite_centre_save(s, &c, e));
    return sqlite_run(s, SQL_EPOCH_COUNT, VALUES(INTEGER(store_tenant_id(u->uid)), AMOUNT(amount)), e);
}

enum profd_status sqlite_hour_mark(struct store *s, int64_t hour, int64_t host, uint32_t reasons, bool *changed,
                                   struct profd_error *e)
{
    enum profd_status status =
        sqlite_run(s, SQL_HOUR_MARK_ADD, VALUES(INTEGER(hour), INTEGER(host), INTEGER(reasons)), e);
    *changed |= status == PROFD_OK && sqlite3_changes(s->db) > 0;
    return status;
}

enum profd_status sqlite_centre_touch(struct store *s, int64_t number, uint32_t from, uint32_t to,
                                      struct profd_error *e)
{
    static const enum sqlite_sql touches[] = {SQL_TENANT_TOUCH, SQL_TENANT_BUILDS_TOUCH, SQL_TENANT_USERS_TOUCH};
    TRY(sqlite_run(s, SQL_USER_EPOCH_SET, VALUES(INTEGER(to), INTEGER(number)), e));
    for (size_t i = 0; i < sizeof touches / sizeof touches[0]; i++) {
        TRY(sqlite_run(s, touches[i], VALUES(INTEGER(number), INTEGER(from), INTEGER(to)), e));
    }
    return PROFD_OK;
}

/* Marks the hours from one time (ns) to another, both included. from 0: marks none. */
static enum profd_status mark_hours(struct store *s, int64_t from, int64_t until, int64_t host, unsigned reasons,
                                    bool *changed, struct profd_error *e)
{
    const int64_t to = until / SQLITE_HOUR;
    int64_t hour = from / SQLITE_HOUR;
    hour = hour < to - RESTORED_HOURS_MOST ? to - RESTORED_HOURS_MOST : hour;
    for (; from > 0 && hour <= to; hour++) {
        TRY(sqlite_hour_mark(s, hour, host, reasons, changed, e));
    }
    return PROFD_OK;
}

enum profd_status sqlite_mark_gap(struct store *s, struct profd_error *e)
{
    const int64_t now = (int64_t)time(NULL) * INT64_C(1000000000);
    struct store_centre c;
    int64_t sign = 0;
    bool found, changed = false;
    TRY(sqlite_centre_load(s, &c, e));
    TRY(sqlite_find(s, SQL_SIGN_OF_LIFE, NULL, 0, &sign, &found, e));
    TRY(sqlite_write_begin(s, e));
    enum profd_status status =
        mark_hours(s, sign < now ? sign : now, now, SQLITE_MARK_LOCAL, INEXACT_RESTORED, &changed, e);
    status =
        status ? status
               : mark_hours(s, c.last, now - STORE_RELAY_AGE, SQLITE_MARK_HOSTS, INEXACT_SEGMENT_MISSING, &changed, e);
    return sqlite_write_end(s, status, e);
}

/* Returns a time by the host's clock. */
static int64_t host_time(int64_t now, int64_t clock)
{
    int64_t time;
    return !__builtin_add_overflow(now, clock, &time) ? time : clock < 0 ? INT64_MIN : INT64_MAX;
}

/* A host that holds counts back asks whether its database went back. The number that its database had at its start
 * tells, not the number now. The stored number rises only with what the host delivers after it has the answer, so that
 * it can ask again if the answer was lost. If a host holds nothing back, a smaller number may be that of an old request
 * that a proxy delivers late. Then the host's clock has gone back, too, and neither is stored. */
static enum profd_status admit_host(struct store *s, const struct store_arrival *a, struct store_admission *out,
                                    struct profd_error *e)
{
    const uint32_t tenant = a->tenant ? a->tenant : STORE_TENANT;
    sqlite3_stmt *q;
    int64_t id = 0, clock = 0, last = 0;
    uint64_t number = 0;
    bool known = false, marked = false;
    TRY(sqlite_first(s, SQL_FLEET_HOST_FIND, VALUES(BLOB(a->host, sizeof a->host)), &q, &known, e));
    if (known) {
        id = sqlite3_column_int64(q, 0);
        clock = sqlite3_column_int64(q, 2);
        number = sqlite_u64(q, 3);
        last = sqlite3_column_int64(q, 4);
        sqlite_finish(q);
    }
    const bool smaller = (a->held ? a->held - 1 : a->number) < number,
               late = smaller && !a->held && host_time(a->now, a->clock) < host_time(last, clock);
    *out = (struct store_admission){.restored = smaller && !late, .number = number};
    TRY(sqlite_run(s, SQL_FLEET_HOST_SET,
                   VALUES(BLOB(a->host, sizeof a->host), TEXT(a->name), INTEGER(a->now),
                          INTEGER(late ? clock : a->clock), INTEGER(a->held || late ? number : a->number),
                          INTEGER(out->restored), INTEGER(store_tenant_id(tenant)), TEXT(a->machine ? a->machine : ""),
                          TEXT(a->version ? a->version : ""), TEXT(a->boot ? a->boot : "")),
                   e));
    if (!out->restored) {
        return PROFD_OK;
    }
    /* What the host had not sent when it was restored is missing in the hours since it was there last. */
    TRY(mark_hours(s, last < a->now ? last : a->now, a->now, id, INEXACT_RESTORED, &marked, e));
    return marked ? sqlite_centre_touch(s, ++s->state.number, tenant, tenant, e) : PROFD_OK;
}

enum profd_status store_admit_hosts(struct store *s, const struct store_arrival *list, size_t n,
                                    struct store_admission *out, struct profd_error *e)
{
    TRY(sqlite_space_begin(s, e));
    TRY(sqlite_upkeep_begin(s, e));
    enum profd_status status = PROFD_OK;
    for (size_t i = 0; i < n && !status; i++) {
        status = admit_host(s, &list[i], &out[i], e);
    }
    status = status ? status : sqlite_space_judge(s, e);
    return sqlite_upkeep_end(s, status, e);
}

enum profd_status store_each_host(struct store *s, bool (*each)(void *context, const struct store_fleet_host *host),
                                  void *context, struct profd_error *e)
{
    sqlite3_stmt *q;
    bool goes_on = true;
    enum profd_status status = sqlite_start(s, SQL_FLEET_HOST_EACH, NULL, 0, &q, e);
    while (goes_on && sqlite_row(s, q, &status, e)) {
        struct store_fleet_host host = {.name = sqlite_text(q, 1),
                                        .tenant = sqlite_text(q, 2),
                                        .machine = sqlite_text(q, 3),
                                        .version = sqlite_text(q, 4),
                                        .first = sqlite3_column_int64(q, 5),
                                        .last = sqlite3_column_int64(q, 6),
                                        .delivered = sqlite3_column_int64(q, 7),
                                        .restored = sqlite3_column_int64(q, 8),
                                        .uid = store_tenant_uid(sqlite3_column_int64(q, 9)),
                                        .copied = sqlite3_column_int64(q, 10)};
        sqlite_copy(q, 0, host.host, sizeof host.host);
        goes_on = each(context, &host);
    }
    sqlite_finish(q);
    return status;
}

/* Counts the series of the tenants from first to last. O(series and hosts of the two hours): 12 ms for 200,000. */
static enum profd_status count_series(struct store *s, struct sqlite_tenant_series *x, int64_t hour, int64_t now,
                                      uint32_t first, uint32_t last, struct profd_error *e)
{
    int64_t n = 0;
    bool found;
    TRY(sqlite_find(s, SQL_TENANT_SERIES, VALUES(INTEGER(hour), INTEGER(first), INTEGER(last)), &n, &found, e));
    *x = (struct sqlite_tenant_series){.hour = hour, .counted = (uint64_t)n, .since = now};
    return PROFD_OK;
}

enum profd_status store_get_greeting(struct store *s, struct store_centre *out, struct profd_error *e)
{
    struct sqlite_tenant_series *x = &s->all_series;
    struct timespec now;
    TRY(sqlite_centre_load(s, out, e));
    clock_gettime(CLOCK_MONOTONIC, &now);
    const int64_t hour = out->last / SQLITE_HOUR;
    if (x->hour != hour || (x->added > 0 && x->since != now.tv_sec)) {
        TRY(count_series(s, x, hour, now.tv_sec, STORE_TENANT_LAST, STORE_TENANT, e));
    }
    out->series = x->counted;
    return PROFD_OK;
}

enum profd_status sqlite_host_detail(struct store *s, uint32_t uid, int64_t hour, uint64_t number, size_t segments,
                                     bool *detail, struct profd_error *e)
{
    const uint64_t most = s->detail.most > 0 ? s->detail.most : STORE_DETAIL_MOST;
    struct sqlite_tenant_series *x = hashmap_find(&s->tenant_series, &uid, sizeof uid);
    *detail = s->detail.when == STORE_DETAIL_ALWAYS;
    if (s->detail.when != STORE_DETAIL_AUTO) {
        return PROFD_OK;
    }
    x = x ? x : hashmap_put(&s->tenant_series, &uid, sizeof uid, &(struct sqlite_tenant_series){0}, sizeof *x);
    TRY(x ? PROFD_OK : profd_no_memory(e));
    if (x->hour != hour || x->number != number) {
        const bool near = x->counted < most && x->counted + x->added >= most;
        TRY(near || x->hour != hour ? count_series(s, x, hour, 0, uid, uid, e) : PROFD_OK);
        x->number = number;
        x->added += segments;
    }
    *detail = x->counted < most;
    return PROFD_OK;
}

enum profd_status store_get_centre(struct store *s, struct store_centre *out, struct profd_error *e)
{
    static const struct {
        enum sqlite_sql which;
        size_t at;
    } counts[] = {{SQL_FLEET_HOST_COUNT, offsetof(struct store_centre, hosts)},
                  {SQL_TENANT_SERIES, offsetof(struct store_centre, series)},
                  {SQL_ROLLUP_ASIDE_COUNT, offsetof(struct store_centre, damaged)},
                  {SQL_HOST_BUILDS_DISPUTED, offsetof(struct store_centre, disputed)},
                  {SQL_QUARANTINE_COUNT, offsetof(struct store_centre, quarantined)},
                  {SQL_QUARANTINE_BYTES, offsetof(struct store_centre, quarantine_bytes)}};
    bool began, found, totals = false;
    int64_t one;
    TRY(sqlite_read_begin(s, &began, e));
    enum profd_status status = sqlite_centre_load(s, out, e);
    for (size_t i = 0; i < sizeof counts / sizeof counts[0] && !status; i++) {
        const struct sqlite_value values[] = {INTEGER(out->last / SQLITE_HOUR), INTEGER(STORE_TENANT_LAST),
                                              INTEGER(STORE_TENANT)};
        const bool asks = counts[i].which == SQL_TENANT_SERIES || counts[i].which == SQL_HOST_BUILDS_DISPUTED;
        int64_t n = 0;
        status = sqlite_find(s, counts[i].which, values, asks ? 3 : 0, &n, &found, e);
        memcpy((char *)out + counts[i].at, &n, sizeof n);
    }
    if (!status) {
        status = sqlite_find(s, SQL_HOST_TOTAL_ANY, VALUES(INTEGER(out->last / SQLITE_HOUR)), &one, &totals, e);
        out->detail = !totals;
    }
    return sqlite_read_end(s, began, status, e);
}

/* --- Tenants and tokens --- */

#define EVERY_TENANT 0 /* in table token */

enum profd_status sqlite_owner_name(struct store *s, uint32_t uid, char out[SQLITE_OWNER_SIZE], struct profd_error *e)
{
    sqlite3_stmt *q;
    bool row = false;
    (void)snprintf(out, SQLITE_OWNER_SIZE, "uid %u", uid);
    if (!store_is_tenant(uid)) {
        return PROFD_OK;
    }
    TRY(sqlite_first(s, SQL_TENANT_NAME, VALUES(INTEGER(store_tenant_id(uid))), &q, &row, e));
    if (row) {
        (void)snprintf(out, SQLITE_OWNER_SIZE, "%s", sqlite_text(q, 0));
        sqlite_finish(q);
    }
    return PROFD_OK;
}

enum profd_status sqlite_find_tenant(struct store *s, const char *name, int64_t *id, struct profd_error *e)
{
    bool found = false;
    TRY(sqlite_find(s, SQL_TENANT_FIND, VALUES(TEXT(name)), id, &found, e));
    if (!found) { /* without this test an insertion that conflicts would use up a number */
        TRY(sqlite_run(s, SQL_TENANT_ADD, VALUES(TEXT(name)), e));
        *id = sqlite3_last_insert_rowid(s->db);
    }
    FAIL_IF(store_tenant_uid(*id) < STORE_TENANT_LAST, e, PROFD_LIMIT, "there are %u tenants, the limit",
            STORE_TENANT - STORE_TENANT_LAST + 1);
    return PROFD_OK;
}

enum profd_status store_add_token(struct store *s, struct store_token *token, struct profd_error *e)
{
    int64_t id = 0, tenant = EVERY_TENANT, tokens = 0;
    bool found = false;
    TRY(sqlite_store_begin(s, e));
    enum profd_status status = sqlite_find(s, SQL_TOKEN_FIND, VALUES(TEXT(token->name)), &id, &found, e);
    if (!status && found) {
        status =
            profd_error_set(e, PROFD_REFUSED, "there is a token \"%s\"; remove it first to make another", token->name);
    }
    status = status ? status : sqlite_find(s, SQL_TOKEN_COUNT, NULL, 0, &tokens, &found, e);
    if (!status && tokens >= (int64_t)STORE_TOKENS_MOST) {
        status = profd_error_set(e, PROFD_LIMIT, "there are %u tokens, the limit", STORE_TOKENS_MOST);
    }
    if (!status && !token->all) {
        status = sqlite_find_tenant(s, token->tenant, &tenant, e);
    }
    if (!status) {
        status = sqlite_find(s, SQL_TOKEN_ADD,
                             VALUES(TEXT(token->name), INTEGER(token->rights), INTEGER(tenant), TEXT(token->hosts),
                                    token->has_hash ? BLOB(token->hash, sizeof token->hash) : NOTHING,
                                    INTEGER(token->expires), INTEGER(token->created)),
                             &id, &found, e);
        token->id = (uint64_t)id;
        token->uid = token->all ? UINT32_MAX : store_tenant_uid(tenant);
    }
    return sqlite_write_end(s, status, e);
}

enum profd_status store_remove_token(struct store *s, const char *name, uint64_t *id, struct profd_error *e)
{
    int64_t removed = 0;
    bool found = false;
    TRY(sqlite_write_begin(s, e));
    enum profd_status status = sqlite_find(s, SQL_TOKEN_REMOVE, VALUES(TEXT(name)), &removed, &found, e);
    if (!status && !found) {
        status = profd_error_set(e, PROFD_NOT_FOUND, "there is no token \"%s\"; see profctl token list", name);
    }
    TRY(sqlite_write_end(s, status, e));
    *id = (uint64_t)removed;
    return PROFD_OK;
}

enum profd_status store_each_token(struct store *s, bool (*each)(void *context, const struct store_token *t),
                                   void *context, struct profd_error *e)
{
    enum profd_status status = PROFD_OK;
    sqlite3_stmt *q;
    bool goes_on = true;
    TRY(sqlite_start(s, SQL_TOKEN_EACH, NULL, 0, &q, e));
    while (goes_on && sqlite_row(s, q, &status, e)) {
        const int64_t tenant = sqlite3_column_int64(q, 3);
        struct store_token t = {.id = sqlite_u64(q, 0),
                                .rights = (unsigned)sqlite3_column_int(q, 2),
                                .all = tenant == EVERY_TENANT,
                                .uid = tenant == EVERY_TENANT ? UINT32_MAX : store_tenant_uid(tenant),
                                .expires = sqlite3_column_int64(q, 7),
                                .created = sqlite3_column_int64(q, 8)};
        size_t n = 0;
        const uint8_t *hash = sqlite_blob(q, 6, &n);
        snprintf(t.name, sizeof t.name, "%s", sqlite_text(q, 1));
        snprintf(t.tenant, sizeof t.tenant, "%s", sqlite_text(q, 4));
        snprintf(t.hosts, sizeof t.hosts, "%s", sqlite_text(q, 5));
        t.has_hash = n == sizeof t.hash;
        if (t.has_hash) {
            memcpy(t.hash, hash, n);
        }
        goes_on = each(context, &t);
    }
    sqlite_finish(q);
    return status;
}

/* --- Digests of old arrivals are replaced by the mark of their epoch: up to it, every sequence has arrived --- */

#define ROWS_AT_ONCE 2000

enum profd_status sqlite_centre_forget(struct store *s, int64_t before, struct profd_error *e)
{
    const struct sqlite_value old = INTEGER(before / SQLITE_SECOND);
    sqlite3_stmt *q;
    int64_t epoch = 0, rows = 0;
    bool found = true;
    while (rows < ROWS_AT_ONCE) {
        TRY(sqlite_first(s, SQL_EPOCH_OLD, VALUES(INTEGER(epoch), old), &q, &found, e));
        if (!found) {
            return PROFD_OK;
        }
        epoch = sqlite3_column_int64(q, 0);
        int64_t mark = sqlite3_column_int64(q, 1), number = sqlite3_column_int64(q, 2);
        struct store_amount gone = sqlite_amount(q, 3);
        sqlite_finish(q);
        for (; rows < ROWS_AT_ONCE; rows++) {
            TRY(sqlite_first(s, SQL_ARRIVAL_OLD, VALUES(INTEGER(epoch), INTEGER(mark + 1), old), &q, &found, e));
            if (!found) {
                break;
            }
            const int64_t given = sqlite3_column_int64(q, 0);
            const bool counted = sqlite3_column_int64(q, 1) == STORE_SEGMENT_COUNTED;
            const struct store_amount amount = sqlite_amount(q, 2);
            sqlite_finish(q);
            mark++;
            if (counted) { /* otherwise its outcome stays known */
                number = given > number ? given : number;
                outgoing_amount_add(&gone, &amount);
                TRY(sqlite_run(s, SQL_ARRIVAL_REMOVE, VALUES(INTEGER(epoch), INTEGER(mark)), e));
            }
        }
        TRY(sqlite_run(s, SQL_EPOCH_MARK, VALUES(INTEGER(epoch), INTEGER(mark), INTEGER(number), AMOUNT(gone)), e));
    }
    return PROFD_OK;
}
