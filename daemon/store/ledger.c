/* The sums of the ledger and of series. */

#include "proto/sum.h"
#include "store/store_internal.h"

enum { COLUMN_RAW_SINCE = 10, COLUMN_SHARES };

void sqlite_sums_init(struct sqlite_sums *s, size_t builds)
{
    memset(s, 0, SQLITE_SUMS_SIZE(builds));
    s->first = INT64_MAX;
    s->last = INT64_MIN;
    s->raw_since = INT64_MAX;
    s->build_count = builds;
}

void sqlite_sums_add(struct sqlite_sums *to, const struct sqlite_sums *more)
{
    bool saturated = false;
    sum_add(&to->uploads, more->uploads, &saturated);
    sum_add(&to->processes, more->processes, &saturated);
    sum_add(&to->ticks, more->ticks, &saturated);
    sum_add(&to->calls, more->calls, &saturated);
    sum_add(&to->stack_ticks, more->stack_ticks, &saturated);
    sum_add(&to->raw_uploads, more->raw_uploads, &saturated);
    to->raw_bytes += more->raw_bytes; /* modulo 2^64, because an upload that grows may need fewer bytes than before */
    to->live_bytes += more->live_bytes;
    for (size_t i = 0; i < to->build_count; i++) {
        sum_add(&to->shares[i].nanoseconds, more->shares[i].nanoseconds, &saturated);
        sum_add(&to->shares[i].calls, more->shares[i].calls, &saturated);
    }
    to->inexact |= more->inexact | (saturated ? (uint32_t)INEXACT_SATURATED : 0);
    if (more->first < to->first) {
        to->first = more->first;
    }
    if (more->last > to->last) {
        to->last = more->last;
    }
    if (more->raw_since < to->raw_since) {
        to->raw_since = more->raw_since;
    }
}

bool sqlite_sums_subtract(struct sqlite_sums *to, const struct sqlite_sums *part)
{
    bool good = sum_subtract(&to->uploads, part->uploads) && sum_subtract(&to->processes, part->processes) &&
                sum_subtract(&to->ticks, part->ticks) && sum_subtract(&to->calls, part->calls) &&
                sum_subtract(&to->stack_ticks, part->stack_ticks) &&
                sum_subtract(&to->raw_uploads, part->raw_uploads) && sum_subtract(&to->raw_bytes, part->raw_bytes) &&
                sum_subtract(&to->live_bytes, part->live_bytes);
    for (size_t i = 0; good && i < to->build_count; i++) {
        good = sum_subtract(&to->shares[i].nanoseconds, part->shares[i].nanoseconds) &&
               sum_subtract(&to->shares[i].calls, part->shares[i].calls);
    }
    return good && part->first > to->first && part->last < to->last && part->inexact == 0;
}

size_t sqlite_shares_encode(const struct sqlite_sums *s, uint8_t *out)
{
    uint8_t *p = out;
    for (size_t i = 0; i < s->build_count; i++) {
        p = varint_put(p, s->shares[i].nanoseconds);
        p = varint_put(p, s->shares[i].calls);
    }
    p = varint_put(p, s->stack_ticks);
    return (size_t)(p - out);
}

bool sqlite_shares_decode(const uint8_t *in, size_t n, struct sqlite_sums *s)
{
    const uint8_t *end = in + n;
    for (size_t i = 0; i < s->build_count; i++) {
        if (!varint_get(&in, end, &s->shares[i].nanoseconds) || !varint_get(&in, end, &s->shares[i].calls) ||
            s->shares[i].nanoseconds > SUM_MAX || s->shares[i].calls > SUM_MAX) {
            return false;
        }
    }
    return varint_get(&in, end, &s->stack_ticks) && s->stack_ticks <= SUM_MAX && in == end;
}

enum profd_status sqlite_sums_read(struct store *s, sqlite3_stmt *q, size_t builds, struct sqlite_sums *out,
                                   struct profd_error *e)
{
    size_t n;
    sqlite_sums_init(out, builds);
    const uint8_t *shares = sqlite_blob(q, COLUMN_SHARES, &n);
    out->uploads = sqlite_u64(q, 0);
    if (out->uploads == 0) {
        return PROFD_OK; /* a series that is being created */
    }
    out->processes = sqlite_u64(q, 1);
    out->ticks = sqlite_u64(q, 2);
    out->calls = sqlite_u64(q, 3);
    out->first = sqlite3_column_int64(q, 4);
    out->last = sqlite3_column_int64(q, 5);
    out->inexact = (uint32_t)sqlite3_column_int64(q, 6);
    out->raw_uploads = sqlite_u64(q, 7);
    out->raw_bytes = sqlite_u64(q, 8);
    out->live_bytes = sqlite_u64(q, 9);
    if (sqlite3_column_type(q, COLUMN_RAW_SINCE) != SQLITE_NULL) {
        out->raw_since = sqlite3_column_int64(q, COLUMN_RAW_SINCE);
    }
    FAIL_IF(!sqlite_shares_decode(shares, n, out), e, PROFD_DAMAGED,
            "database %s: the %zu bytes of shares of %zu builds break their rules", s->path, n, builds);
    return PROFD_OK;
}

/* Loads the only row of a statement that begins with sums; sums without uploads if there is none. */
static enum profd_status load_one(struct store *s, enum sqlite_sql which, const struct sqlite_value *values,
                                  size_t count, size_t builds, struct sqlite_sums *out, bool *found,
                                  struct profd_error *e)
{
    sqlite3_stmt *q;
    enum profd_status status = PROFD_OK;
    sqlite_sums_init(out, builds);
    *found = false;
    TRY(sqlite_first(s, which, values, count, &q, found, e));
    if (*found) {
        status = sqlite_sums_read(s, q, builds, out, e);
        sqlite_finish(q);
    }
    return status;
}

enum profd_status sqlite_ledger_load(struct store *s, int64_t series, int64_t hour, size_t builds,
                                     struct sqlite_sums *out, bool *found, struct profd_error *e)
{
    return load_one(s, SQL_LEDGER_GET, VALUES(INTEGER(series), INTEGER(hour)), builds, out, found, e);
}

enum profd_status sqlite_series_load(struct store *s, int64_t series, size_t builds, struct sqlite_sums *out,
                                     bool *found, struct profd_error *e)
{
    return load_one(s, SQL_SERIES_GET, VALUES(INTEGER(series)), builds, out, found, e);
}

#define SUM_VALUES(x)                                                                                                  \
    INTEGER((x)->uploads), INTEGER((x)->processes), INTEGER((x)->ticks), INTEGER((x)->calls), INTEGER((x)->first),     \
        INTEGER((x)->last), INTEGER((x)->inexact), INTEGER((x)->raw_uploads), INTEGER((x)->raw_bytes),                 \
        INTEGER((x)->live_bytes)

enum profd_status sqlite_ledger_save(struct store *s, int64_t series, int64_t hour, const struct sqlite_sums *x,
                                     struct profd_error *e)
{
    uint8_t shares[SQLITE_SHARES_BYTES];
    size_t n = sqlite_shares_encode(x, shares);
    return sqlite_run(s, SQL_LEDGER_SET,
                      VALUES(INTEGER(series), SUM_VALUES(x), BLOB(shares, n), INTEGER(hour),
                             x->raw_since == INT64_MAX ? NOTHING : INTEGER(x->raw_since)),
                      e);
}

enum profd_status sqlite_series_save(struct store *s, int64_t series, const struct sqlite_sums *x,
                                     struct profd_error *e)
{
    uint8_t shares[SQLITE_SHARES_BYTES];
    size_t n = sqlite_shares_encode(x, shares);
    return sqlite_run(s, SQL_SERIES_SET, VALUES(INTEGER(series), SUM_VALUES(x), BLOB(shares, n)), e);
}

enum profd_status sqlite_sums_of_rows(struct store *s, enum sqlite_sql which, const struct sqlite_value *values,
                                      size_t count, size_t builds, struct sqlite_sums *out, struct profd_error *e)
{
    sqlite3_stmt *q;
    struct sqlite_sums one;
    sqlite_sums_init(out, builds);
    enum profd_status status = sqlite_start(s, which, values, count, &q, e);
    while (sqlite_row(s, q, &status, e)) {
        status = sqlite_sums_read(s, q, builds, &one, e);
        if (!status) {
            sqlite_sums_add(out, &one);
        }
    }
    return status;
}

enum profd_status sqlite_ledger_sum(struct store *s, int64_t series, int64_t from, int64_t to, size_t builds,
                                    struct sqlite_sums *out, struct profd_error *e)
{
    return sqlite_sums_of_rows(s, SQL_LEDGER_RANGE, VALUES(INTEGER(series), INTEGER(from), INTEGER(to)), builds, out,
                               e);
}

enum profd_status sqlite_series_identify(struct store *s, struct arena *a, int64_t series, struct sqlite_identity *out,
                                         bool *found, struct profd_error *e)
{
    sqlite3_stmt *q;
    bool row = false;
    enum profd_status status = sqlite_first(s, SQL_SERIES_SET_OF, VALUES(INTEGER(series)), &q, &row, e);
    *found = row;
    if (!row) {
        return status;
    }
    size_t n;
    const uint8_t *set = sqlite_blob(q, 0, &n);
    uint32_t *builds = ARENA_ARRAY(a, n / 4 + 1, uint32_t);
    if (!builds) {
        status = profd_no_memory(e);
    } else if (n / 4 > LIMIT_BUILDS) {
        status = profd_error_set(e, PROFD_DAMAGED, "database %s: a set of %zu builds; at most %u", s->path, n / 4,
                                 LIMIT_BUILDS);
    }
    for (size_t i = 0; !status && i < n / 4; i++) {
        builds[i] = sqlite_set_build(set, i);
    }
    *out = (struct sqlite_identity){.id = series,
                                    .set = sqlite3_column_int64(q, 3),
                                    .program = sqlite3_column_int64(q, 2),
                                    .uid = (uint32_t)sqlite3_column_int64(q, 1),
                                    .mirror = sqlite3_column_int(q, 4) != 0,
                                    .build_count = n / 4,
                                    .builds = builds};
    sqlite_finish(q);
    return status;
}

enum profd_status sqlite_series_need(struct store *s, struct arena *a, int64_t series, const char *what,
                                     struct sqlite_identity *out, struct profd_error *e)
{
    bool found = false;
    TRY(sqlite_series_identify(s, a, series, out, &found, e));
    return found ? PROFD_OK
                 : profd_error_set(e, PROFD_DAMAGED, "database %s: series %lld is in %s but has no row", s->path,
                                   (long long)series, what);
}
