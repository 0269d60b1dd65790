#include "store/sqlite_host_total.h"

#include <time.h>

#include "core/sum.h"
#include "proto/message.h"

static int64_t monotonic_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec;
}

/* Of the tenants from first to last. O(series and hosts of the two hours): 12 ms for 200,000. */
static enum profd_status count_series(struct store *s, struct sqlite_tenant_series *t, int64_t hour, uint32_t first,
                                      uint32_t last, struct profd_error *e)
{
    int64_t n = 0;
    bool found;
    TRY(sqlite_find(s, SQL_TENANT_SERIES, VALUES(INTEGER(hour), INTEGER(first), INTEGER(last)), &n, &found, e));
    *t = (struct sqlite_tenant_series){.hour = hour, .counted = (uint64_t)n, .since = monotonic_seconds()};
    return PROFD_OK;
}

enum profd_status sqlite_tenant_series(struct store *s, int64_t hour, uint64_t *out, struct profd_error *e)
{
    struct sqlite_tenant_series *t = &s->all_series;
    const bool fresh = t->hour == hour && (t->added == 0 || t->since == monotonic_seconds());
    TRY(fresh ? PROFD_OK : count_series(s, t, hour, STORE_TENANT_LAST, STORE_TENANT, e));
    *out = t->counted;
    return PROFD_OK;
}

enum profd_status sqlite_host_detail(struct store *s, uint32_t uid, int64_t hour, uint64_t number, size_t segments,
                                     bool *detail, struct profd_error *e)
{
    const uint64_t most = s->detail.most > 0 ? s->detail.most : STORE_DETAIL_MOST;
    struct sqlite_tenant_series *t = hashmap_find(&s->tenant_series, &uid, sizeof uid);
    *detail = s->detail.when == STORE_DETAIL_ALWAYS;
    if (s->detail.when != STORE_DETAIL_AUTO) {
        return PROFD_OK;
    }
    t = t ? t : hashmap_put(&s->tenant_series, &uid, sizeof uid, &(struct sqlite_tenant_series){0}, sizeof *t);
    if (!t) {
        return profd_no_memory(e);
    }
    if (t->hour != hour || t->number != number) {
        const bool near = t->counted < most && t->counted + t->added >= most;
        TRY(near || t->hour != hour ? count_series(s, t, hour, uid, uid, e) : PROFD_OK);
        t->number = number;
        t->added += segments;
    }
    *detail = t->counted < most;
    return PROFD_OK;
}

void sqlite_incoming_sums(const struct incoming *in, struct sqlite_sums *out)
{
    const struct store_upload *u = &in->upload;
    sqlite_sums_init(out, u->build_count);
    out->uploads = in->uploads;
    out->processes = in->processes;
    out->ticks = u->ticks;
    out->calls = u->calls;
    out->stack_ticks = u->stack_ticks;
    out->first = u->start;
    out->last = u->end;
    out->inexact = u->inexact;
    for (size_t i = 0; i < u->build_count; i++) {
        out->shares[i] = (struct share){.nanoseconds = u->builds[i].nanoseconds, .calls = u->builds[i].calls};
    }
}

enum profd_status sqlite_host_total_add(struct store *s, int64_t series, int64_t host, const struct incoming *in,
                                        struct profd_error *e)
{
    sqlite3_stmt *q;
    const struct store_upload *u = &in->upload;
    struct sqlite_sums one, sum;
    uint8_t shares[SQLITE_SHARES_BYTES];
    uint64_t touching[LIMIT_BUILDS] = {0};
    bool row = false;
    sqlite_incoming_sums(in, &one);
    (void)incoming_add_touching(&in->counts, touching, u->build_count);
    for (size_t i = 0; i < one.build_count; i++) {
        one.shares[i].calls = touching[i];
    }
    TRY(sqlite_first(s, SQL_HOST_TOTAL_GET, VALUES(INTEGER(series), INTEGER(in->hour), INTEGER(host)), &q, &row, e));
    enum profd_status status = PROFD_OK;
    if (row) {
        status = sqlite_sums_read(s, q, u->build_count, &sum, e);
        sqlite_finish(q);
        sqlite_sums_add(&one, &sum);
    }
    if (status != PROFD_OK) {
        return status;
    }
    const size_t n = sqlite_shares_encode(&one, shares);
    return sqlite_run(s, SQL_HOST_TOTAL_SET,
                      VALUES(INTEGER(series), INTEGER(in->hour), INTEGER(host), INTEGER(one.uploads),
                             INTEGER(one.processes), INTEGER(one.ticks), INTEGER(one.calls), INTEGER(one.first),
                             INTEGER(one.last), INTEGER(one.inexact), BLOB(shares, n)),
                      e);
}

enum profd_status sqlite_host_totals_each(struct store *s, int64_t series, size_t builds, int64_t from, int64_t to,
                                          enum profd_status (*each)(void *context, const struct sqlite_host_total *x,
                                                                    struct profd_error *e),
                                          void *context, struct profd_error *e)
{
    sqlite3_stmt *q;
    TRY(sqlite_start(s, SQL_HOST_TOTALS, VALUES(INTEGER(series), INTEGER(from), INTEGER(to)), &q, e));
    enum profd_status status = PROFD_OK;
    while (sqlite_row(s, q, &status, e)) {
        struct sqlite_host_total x = {.hour = sqlite3_column_int64(q, SQLITE_SUM_COLUMNS),
                                      .name = sqlite_text(q, SQLITE_SUM_COLUMNS + 1),
                                      .identity = sqlite_text(q, SQLITE_SUM_COLUMNS + 2)};
        status = sqlite_sums_read(s, q, builds, &x.sums, e);
        if (status == PROFD_OK) {
            status = each(context, &x, e);
        }
    }
    return status;
}
