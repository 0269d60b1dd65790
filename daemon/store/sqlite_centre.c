/* The state of a centre: its row, the hosts, and how hours are marked. */
#include "store/sqlite_centre.h"

#include <string.h>
#include <time.h>

#include "store/outgoing.h"
#include "store/sqlite_host_total.h"
#include "store/sqlite_rollup.h"
#include "store/sqlite_segment.h"

#define RESTORED_HOURS_MOST (366 * 24) /* a clock that was wrong must not fill the database */

enum profd_status sqlite_centre_load(struct store *s, struct sqlite_centre *out, struct profd_error *e)
{
    sqlite3_stmt *q;
    bool row = false;
    size_t n = 0, name_size = 0;
    TRY(sqlite_first(s, SQL_CENTRE_GET, NULL, 0, &q, &row, e));
    const uint8_t *incarnation = row ? sqlite_blob(q, 0, &n) : NULL,
                  *name = row ? sqlite_blob(q, 10, &name_size) : NULL;
    enum profd_status status = PROFD_OK;
    if (row && n == sizeof out->incarnation && name_size == sizeof out->name) {
        *out = (struct sqlite_centre){.number = (uint64_t)sqlite3_column_int64(q, 1),
                                      .backup = (uint64_t)sqlite3_column_int64(q, 2),
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

#define AMOUNT(a) INTEGER((a).uploads), INTEGER((a).ticks), INTEGER((a).calls)

enum profd_status sqlite_centre_save(struct store *s, const struct sqlite_centre *c, struct profd_error *e)
{
    return sqlite_run(
        s, SQL_CENTRE_SET,
        VALUES(INTEGER(c->number), INTEGER(c->backup), INTEGER(c->last), AMOUNT(c->counted), AMOUNT(c->removed)), e);
}

enum profd_status sqlite_centre_removed(struct store *s, const struct sqlite_identity *series,
                                        const struct sqlite_sums *gone, struct profd_error *e)
{
    struct sqlite_centre c;
    const struct store_amount amount = {gone->uploads, gone->ticks, gone->calls};
    if (!store_is_tenant(series->uid)) {
        return PROFD_OK;
    }
    TRY(sqlite_centre_load(s, &c, e));
    outgoing_amount_add(&c.removed, &amount);
    return sqlite_centre_save(s, &c, e);
}

enum profd_status sqlite_centre_backed_up(struct store *s, int64_t number, struct profd_error *e)
{
    return sqlite_run(s, SQL_CENTRE_BACKED_UP, VALUES(INTEGER(number)), e);
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

/* Marks the hours of these times (ns), both included. from 0: none. */
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
    struct sqlite_centre c;
    int64_t sign = 0;
    bool found, changed = false;
    TRY(sqlite_centre_load(s, &c, e));
    TRY(sqlite_find(s, SQL_SIGN_OF_LIFE, NULL, 0, &sign, &found, e));
    TRY(sqlite_write_begin(s, e));
    enum profd_status status =
        mark_hours(s, sign < now ? sign : now, now, SQLITE_MARK_LOCAL, INEXACT_RESTORED, &changed, e);
    if (status == PROFD_OK) {
        status = mark_hours(s, c.last, now - STORE_RELAY_AGE, SQLITE_MARK_HOSTS, INEXACT_SEGMENT_MISSING, &changed, e);
    }
    return sqlite_write_end(s, status, e);
}

/* What was said of a host before. id 0: it is new. */
struct met_host {
    int64_t id, clock, last;
    uint64_t number;
};

static enum profd_status find_host(struct store *s, const struct store_arrival *a, struct met_host *out,
                                   struct profd_error *e)
{
    sqlite3_stmt *q;
    bool row = false;
    *out = (struct met_host){.id = 0};
    TRY(sqlite_first(s, SQL_FLEET_HOST_FIND, VALUES(BLOB(a->host, sizeof a->host)), &q, &row, e));
    if (row) {
        *out = (struct met_host){.id = sqlite3_column_int64(q, 0),
                                 .clock = sqlite3_column_int64(q, 2),
                                 .last = sqlite3_column_int64(q, 4),
                                 .number = (uint64_t)sqlite3_column_int64(q, 3)};
        sqlite_finish(q);
    }
    return PROFD_OK;
}

/* By the host's clock. */
static int64_t host_time(int64_t now, int64_t clock)
{
    int64_t time;
    return !__builtin_add_overflow(now, clock, &time) ? time : clock < 0 ? INT64_MIN : INT64_MAX;
}

/* A host that holds something apart asks whether its database went back. It is not told by its number now, but by that
 * of its start; and its number is raised by what it delivers after it has the answer. So the question may be asked
 * again after an answer that was lost. Otherwise a smaller number may be that of an old request that a proxy
 * delivers late: then the host's clock has gone back, too, and neither is stored. */
static enum profd_status admit_host(struct store *s, const struct store_arrival *a, struct store_admission *out,
                                    struct profd_error *e)
{
    const uint32_t tenant = a->tenant ? a->tenant : STORE_TENANT;
    struct met_host met;
    bool marked = false;
    TRY(find_host(s, a, &met, e));
    const bool smaller = (a->held ? a->held - 1 : a->number) < met.number,
               late = smaller && !a->held && host_time(a->now, a->clock) < host_time(met.last, met.clock);
    *out = (struct store_admission){.restored = smaller && !late, .number = met.number};
    TRY(sqlite_run(s, SQL_FLEET_HOST_SET,
                   VALUES(BLOB(a->host, sizeof a->host), TEXT(a->name), INTEGER(a->now),
                          INTEGER(late ? met.clock : a->clock), INTEGER(a->held || late ? met.number : a->number),
                          INTEGER(out->restored), INTEGER(store_tenant_id(tenant)), TEXT(a->machine ? a->machine : ""),
                          TEXT(a->version ? a->version : ""), TEXT(a->boot ? a->boot : "")),
                   e));
    if (!out->restored) {
        return PROFD_OK;
    }
    /* What the host had not sent when it was restored is missing in the hours since it was there last. */
    TRY(mark_hours(s, met.last < a->now ? met.last : a->now, a->now, met.id, INEXACT_RESTORED, &marked, e));
    return marked ? sqlite_centre_touch(s, ++s->state.number, tenant, tenant, e) : PROFD_OK;
}

enum profd_status store_admit_hosts(struct store *s, const struct store_arrival *list, size_t n,
                                    struct store_admission *out, struct profd_error *e)
{
    TRY(sqlite_space_begin(s, e));
    TRY(sqlite_upkeep_begin(s, e));
    enum profd_status status = PROFD_OK;
    for (size_t i = 0; i < n && status == PROFD_OK; i++) {
        status = admit_host(s, &list[i], &out[i], e);
    }
    if (status == PROFD_OK) {
        status = sqlite_space_judge(s, e);
    }
    return sqlite_upkeep_end(s, status, e);
}

enum profd_status store_each_host(struct store *s, bool (*each)(void *context, const struct store_fleet_host *host),
                                  void *context, struct profd_error *e)
{
    sqlite3_stmt *q;
    bool goes_on = true;
    TRY(sqlite_start(s, SQL_FLEET_HOST_EACH, NULL, 0, &q, e));
    enum profd_status status = PROFD_OK;
    while (goes_on && sqlite_row(s, q, &status, e)) {
        size_t n = 0;
        const uint8_t *identity = sqlite_blob(q, 0, &n);
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
        memcpy(host.host, identity, n < sizeof host.host ? n : sizeof host.host);
        goes_on = each(context, &host);
    }
    if (status == PROFD_OK && !goes_on) {
        sqlite_finish(q);
    }
    return status;
}

/* Numbers of the centre that its row does not have. */
static enum profd_status get_counts(struct store *s, struct store_centre *out, struct profd_error *e)
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
    enum profd_status status = PROFD_OK;
    for (size_t i = 0; i < sizeof counts / sizeof counts[0] && status == PROFD_OK; i++) {
        int64_t n = 0;
        bool found;
        const bool asks = counts[i].which == SQL_TENANT_SERIES || counts[i].which == SQL_HOST_BUILDS_DISPUTED;
        status = sqlite_find(s, counts[i].which,
                             (const struct sqlite_value[]){INTEGER(out->last / SQLITE_HOUR), INTEGER(STORE_TENANT_LAST),
                                                           INTEGER(STORE_TENANT)},
                             asks ? 3 : 0, &n, &found, e);
        memcpy((char *)out + counts[i].at, &n, sizeof n);
    }
    return status;
}

static enum profd_status get_row(struct store *s, struct store_centre *out, struct profd_error *e)
{
    struct sqlite_centre c;
    TRY(sqlite_centre_load(s, &c, e));
    *out = (struct store_centre){.number = c.number,
                                 .counts_segments = true,
                                 .backup = c.backup,
                                 .last = c.last,
                                 .counted = c.counted,
                                 .removed = c.removed,
                                 .restored = c.restored};
    memcpy(out->incarnation, c.incarnation, sizeof out->incarnation);
    memcpy(out->name, c.name, sizeof out->name);
    return PROFD_OK;
}

enum profd_status store_get_greeting(struct store *s, struct store_centre *out, struct profd_error *e)
{
    TRY(get_row(s, out, e));
    return sqlite_tenant_series(s, out->last / SQLITE_HOUR, &out->series, e);
}

enum profd_status store_get_centre(struct store *s, struct store_centre *out, struct profd_error *e)
{
    bool began;
    TRY(sqlite_read_begin(s, &began, e));
    enum profd_status status = get_row(s, out, e);
    if (status == PROFD_OK) {
        status = get_counts(s, out, e);
    }
    if (status == PROFD_OK) {
        int64_t one;
        bool totals = false;
        status = sqlite_find(s, SQL_HOST_TOTAL_ANY, VALUES(INTEGER(out->last / SQLITE_HOUR)), &one, &totals, e);
        out->detail = !totals;
    }
    return sqlite_read_end(s, began, status, e);
}
