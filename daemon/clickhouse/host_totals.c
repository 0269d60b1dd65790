#include "clickhouse/host_totals.h"

#include <stdlib.h>
#include <string.h>

#include "core/sum.h"
#include "proto/message.h"
#include "store/labels.h"

#define HOURS_AT_ONCE 24u
#define DAYS_AT_ONCE 4u
#define LABELS_MOST 65536
#define HOURS_OF_DAY 24u

/* A sum that the server made. It wraps at 2^64, so that a sum of doubles is beside it, which tells whether it has. */
static uint64_t judge_sum(uint64_t sum, double about, uint32_t *inexact)
{
    if (sum <= SUM_MAX && about < 1.2e19) {
        return sum;
    }
    *inexact |= (uint32_t)INEXACT_SATURATED;
    return SUM_MAX;
}

static uint64_t take_sum(struct row_reader *rows, uint32_t *inexact)
{
    double about = 0;
    const uint64_t sum = rows_u64(rows);
    rows_fixed(rows, &about, sizeof about);
    return judge_sum(sum, about, inexact);
}

/* Takes the sums of an array's elements into one member of shares. */
static void take_sums(struct row_reader *rows, struct share *shares, size_t n, bool calls, uint32_t *inexact)
{
    const struct row_reader begin = *rows;
    struct row_reader about = begin;
    size_t count = rows_length(rows, sizeof(uint64_t));
    rows->cut |= count != n;
    for (size_t i = 0; i < n && !rows->cut; i++) {
        (void)rows_u64(rows);
    }
    about = *rows; /* behind the array: the doubles */
    struct row_reader sums = begin;
    (void)rows_length(&sums, sizeof(uint64_t));
    count = rows->cut ? 0 : rows_length(&about, sizeof(double));
    rows->cut |= count != n;
    for (size_t i = 0; i < n && !rows->cut; i++) {
        double d;
        const uint64_t sum = rows_u64(&sums);
        rows_fixed(&about, &d, sizeof d);
        *(calls ? &shares[i].calls : &shares[i].nanoseconds) = judge_sum(sum, d, inexact);
    }
    *rows = rows->cut ? *rows : about;
}

/* Takes the next total of an hour. x->series NULL: it does not count. */
static enum profd_status take_total(const struct plan *p, struct row_reader *rows, struct arena *a,
                                    struct host_total *x, struct profd_error *e)
{
    uint8_t hash[ENGINE_SERIES_SIZE];
    uint32_t stopped = 0;
    rows_fixed(rows, hash, sizeof hash);
    *x = (struct host_total){.series = plan_find_series(p, hash)};
    x->hour = rows_u32(rows);
    const uint32_t generation = rows_u32(rows), builds = rows_u32(rows);
    x->host = rows_u32(rows);
    x->uploads = take_sum(rows, &stopped);
    x->processes = take_sum(rows, &stopped);
    x->ticks = take_sum(rows, &stopped);
    x->calls = take_sum(rows, &stopped);
    x->first = rows_i64(rows);
    x->last = rows_i64(rows);
    x->inexact = rows_u32(rows);
    struct share *shares = ARENA_ARRAY(a, (size_t)builds + 1, struct share);
    if (!shares) {
        return profd_no_memory(e);
    }
    take_sums(rows, shares, builds, false, &stopped);
    take_sums(rows, shares, builds, true, &stopped);
    x->shares = shares;
    x->inexact |= stopped;
    if (!x->series || x->series->generation != generation || x->series->build_count != builds) {
        x->series = NULL;
    }
    return engine_rows_check(rows, "totals of hosts", e);
}

#define SUM(column) "sum(" column "), sum(toFloat64(" column ")), "
#define SUMS(column) ", sumForEach(" column "), sumForEach(arrayMap(x -> toFloat64(x), " column "))"
#define SUMMED                                                                                                         \
    SUM("uploads")                                                                                                     \
    SUM("p")                                                                                                           \
    SUM("ticks") SUM("calls") "min(first), max(last), groupBitOr(inexact)" SUMS("nanoseconds") SUMS("touching")
#define HEADS                                                                                                          \
    "generation, toUInt32(length(nanoseconds)) AS builds, host, uploads, arraySum(processes) AS p, ticks, calls, "     \
    "first, last, inexact, nanoseconds, touching, epoch, sequence FROM segment_group WHERE "

/* Appends the query for totals of hours, or of the day. Of several rows of a key any counts: they are the same, unless
 * two daemons took two segments with one key in the same moment. */
static void print_hours(const struct plan *p, const bool *wanted, const struct plan_hour *const *hours, size_t n,
                        bool day)
{
    struct buffer *b = &p->s->statement;
    uint32_t from = UINT32_MAX, to = 0, last = PLAN_NONE;
    engine_begin(p->s);
    buffer_add_text(b, "SELECT series, h, generation, builds, host, " SUMMED " FROM (SELECT series, ");
    buffer_add_text(b, day ? "toUInt32(intDiv(hour, 24)) AS h, " HEADS : "hour AS h, " HEADS);
    plan_put_series(p, wanted, b);
    buffer_add_text(b, " AND head = 1 AND hour IN (");
    for (size_t i = 0; i < n; i++) {
        if (hours[i]->hour != last) {
            buffer_add_format(b, "%s%u", i > 0 ? "," : "", hours[i]->hour);
        }
        last = hours[i]->hour;
        from = hours[i]->sent_from < from ? hours[i]->sent_from : from;
        to = hours[i]->sent_to > to ? hours[i]->sent_to : to;
    }
    buffer_add_format(b,
                      ") AND sent >= toDateTime(%llu) AND sent <= toDateTime(%llu) LIMIT 1 BY epoch, sequence) "
                      "GROUP BY series, h, generation, builds, host ORDER BY series, h, host",
                      from * 3600ULL, to * 3600ULL);
}

/* The series of which one of these hours is. */
static bool *mark_series(const struct plan *p, const struct plan_hour *const *hours, size_t n, struct arena *a)
{
    bool *wanted = ARENA_ARRAY(a, p->series_count, bool);
    for (size_t i = 0; wanted && i < n; i++) {
        wanted[hours[i]->series] = true;
    }
    return wanted;
}

static enum profd_status each_of_hours(const struct plan *p, const struct plan_hour *const *hours, size_t n, bool day,
                                       struct arena *a, total_sink *each, void *context, struct profd_error *e)
{
    struct row_reader rows = {.bytes = NULL};
    const bool *wanted = mark_series(p, hours, n, a);
    if (!wanted) {
        return profd_no_memory(e);
    }
    print_hours(p, wanted, hours, n, day);
    enum profd_status status = engine_query_printed(p->s, &rows, e);
    for (struct host_total x; status == PROFD_OK && rows_more(&rows);) {
        arena_reset(a);
        status = take_total(p, &rows, a, &x, e);
        status = status == PROFD_OK && x.series ? each(context, &x, e) : status;
    }
    rows_close(&rows);
    return status;
}

enum profd_status totals_each_hour(const struct plan *p, const struct plan_hour *const *hours, size_t n,
                                   total_sink *each, void *context, struct profd_error *e)
{
    struct arena *a = arena_new(0);
    enum profd_status status = a ? PROFD_OK : profd_no_memory(e);
    for (size_t i = 0; status == PROFD_OK && i < n;) {
        const size_t first = i;
        for (; i < n && hours[i]->hour < hours[first]->hour + HOURS_AT_ONCE; i++) {
        }
        arena_reset(a);
        status = each_of_hours(p, hours + first, i - first, false, a, each, context, e);
    }
    arena_free(a);
    return status;
}

enum profd_status totals_of_day(const struct plan *p, const struct plan_hour *const *hours, size_t n, total_sink *each,
                                void *context, struct profd_error *e)
{
    struct arena *a = arena_new(0);
    const enum profd_status status = a ? each_of_hours(p, hours, n, true, a, each, context, e) : profd_no_memory(e);
    arena_free(a);
    return status;
}

static int compare_days(const void *a, const void *b)
{
    const struct total_day *x = a, *y = b;
    return x->series != y->series ? (x->series > y->series) - (x->series < y->series)
                                  : (x->day > y->day) - (x->day < y->day);
}

/* The rows of a day: only those of the greatest version, if that has everything. */
struct day_rows {
    struct total_day *day;
    uint64_t version;
};

/* Takes the next row of host_day. x->series NULL: it does not count. */
static enum profd_status take_day(const struct plan *p, struct row_reader *rows, struct arena *a, struct day_rows *d,
                                  struct total_day *days, size_t n, struct host_total *x, struct profd_error *e)
{
    uint8_t hash[ENGINE_SERIES_SIZE];
    rows_fixed(rows, hash, sizeof hash);
    *x = (struct host_total){.hour = rows_u32(rows)};
    const struct plan_series *series = plan_find_series(p, hash);
    const uint32_t generation = rows_u32(rows);
    x->host = rows_u32(rows);
    const uint64_t version = rows_u64(rows);
    x->uploads = rows_u64(rows);
    x->processes = rows_u64(rows);
    x->ticks = rows_u64(rows);
    x->calls = rows_u64(rows);
    x->first = rows_i64(rows);
    x->last = rows_i64(rows);
    x->inexact = rows_u32(rows);
    size_t ns, touching;
    const uint64_t *nanoseconds = rows_array_u64(rows, a, &ns), *calls = rows_array_u64(rows, a, &touching);
    struct share *shares = ARENA_ARRAY(a, ns + 1, struct share);
    if (rows->cut || !shares || !nanoseconds || !calls) {
        return rows->cut ? engine_rows_check(rows, "totals of days", e) : profd_no_memory(e);
    }
    const struct total_day key = {.series = series ? (uint32_t)(series - p->series) : 0, .day = x->hour};
    struct total_day *day = series ? bsearch(&key, days, n, sizeof key, compare_days) : NULL;
    if (!day || series->generation != generation || ns != series->build_count || touching != ns) {
        return PROFD_OK;
    }
    if (d->day != day) {
        *d = (struct day_rows){day, version};
    }
    day->stored = d->version >= day->version;
    for (size_t i = 0; i < ns; i++) {
        shares[i] = (struct share){nanoseconds[i], calls[i]};
    }
    x->shares = shares;
    x->series = day->stored && version == d->version ? series : NULL;
    return PROFD_OK;
}

static void print_days(const struct plan *p, const bool *wanted, uint32_t from, uint32_t to)
{
    struct buffer *b = &p->s->statement;
    engine_begin(p->s);
    buffer_add_text(b, "SELECT series, day, generation, host, version, uploads, processes, ticks, calls, first, last, "
                       "inexact, nanoseconds, touching FROM host_day WHERE ");
    plan_put_series(p, wanted, b);
    buffer_add_format(b,
                      " AND day >= %u AND day <= %u ORDER BY series, day, generation, version DESC, host "
                      "LIMIT 1 BY series, day, generation, version, host",
                      from, to);
}

static enum profd_status each_of_days(const struct plan *p, struct total_day *days, size_t n, uint32_t from,
                                      struct arena *a, total_sink *each, void *context, struct profd_error *e)
{
    struct row_reader rows;
    struct day_rows at = {.day = NULL};
    bool *wanted = ARENA_ARRAY(a, p->series_count, bool), any = false;
    if (!wanted) {
        return profd_no_memory(e);
    }
    for (size_t i = 0; i < n; i++) {
        const bool here = days[i].day >= from && days[i].day < from + DAYS_AT_ONCE;
        wanted[days[i].series] |= here;
        any |= here;
    }
    if (!any) {
        return PROFD_OK;
    }
    print_days(p, wanted, from, from + DAYS_AT_ONCE - 1);
    enum profd_status status = engine_query_printed(p->s, &rows, e);
    if (status != PROFD_OK) {
        return status;
    }
    while (status == PROFD_OK && rows_more(&rows)) {
        struct host_total x;
        arena_reset(a);
        status = take_day(p, &rows, a, &at, days, n, &x, e);
        if (status == PROFD_OK && x.series) {
            status = each(context, &x, e);
        }
    }
    rows_close(&rows);
    return status;
}

enum profd_status totals_each_day(const struct plan *p, struct total_day *days, size_t n, total_sink *each,
                                  void *context, struct profd_error *e)
{
    struct arena *a = arena_new(0);
    enum profd_status status = a ? PROFD_OK : profd_no_memory(e);
    uint32_t from = UINT32_MAX, to = 0;
    for (size_t i = 0; i < n; i++) {
        from = days[i].day < from ? days[i].day : from;
        to = days[i].day > to ? days[i].day : to;
    }
    for (; status == PROFD_OK && n > 0 && from <= to; from += DAYS_AT_ONCE) {
        arena_reset(a);
        status = each_of_days(p, days, n, from, a, each, context, e);
    }
    arena_free(a);
    return status;
}

void totals_put(const struct host_total *x, uint64_t version, struct buffer *rows)
{
    const struct plan_series *s = x->series;
    rows_put_text(rows, s->builds[s->program].id.text);
    rows_put_fixed(rows, s->hash, sizeof s->hash);
    rows_put_u32(rows, x->hour);
    rows_put_u32(rows, s->generation);
    rows_put_u32(rows, x->host);
    rows_put_u64(rows, version);
    rows_put_u64(rows, x->uploads);
    rows_put_u64(rows, x->processes);
    rows_put_u64(rows, x->ticks);
    rows_put_u64(rows, x->calls);
    rows_put_i64(rows, x->first);
    rows_put_i64(rows, x->last);
    rows_put_u32(rows, x->inexact);
    rows_put_count(rows, s->build_count);
    for (size_t i = 0; i < s->build_count; i++) {
        rows_put_u64(rows, x->shares[i].nanoseconds);
    }
    rows_put_count(rows, s->build_count);
    for (size_t i = 0; i < s->build_count; i++) {
        rows_put_u64(rows, x->shares[i].calls);
    }
}

/* --- Totals as rows for readers --- */

struct telling {
    const struct plan *p;
    struct host_slots *hosts;
    int64_t width;
    row_sink *each;
    void *context;
};

static enum profd_status tell_total(void *context, const struct host_total *x, struct profd_error *e)
{
    const struct telling *t = context;
    const struct plan_series *s = x->series;
    const struct host_slot *host;
    struct store_label labels[LIMIT_LABELS + 1];
    struct buffer text;
    enum profd_status status = host_slots_find(t->hosts, x->host, &host, e);
    if (status != PROFD_OK) {
        return status;
    }
    const size_t n = labels_add_host(s->labels, s->label_count, host->name, labels);
    buffer_init(&text, LABELS_MOST);
    labels_encode(labels, n, &text);
    const bool failed = text.failed, wanted = !failed && labels_match(text.data, text.size, t->p->filter->matchers,
                                                                      t->p->filter->matcher_count);
    buffer_done(&text);
    if (failed || !wanted) {
        return failed ? profd_no_memory(e) : PROFD_OK;
    }
    struct store_row row = plan_begin_row(s);
    row.width = t->width;
    row.label_count = n;
    row.labels = labels;
    row.uploads = x->uploads;
    row.processes_started = x->processes;
    row.start = x->first;
    row.end = x->last;
    row.inexact = x->inexact;
    row.host_count = 1;
    row.hosts = &host->identity;
    row.shares = x->shares;
    row.calls = x->calls;
    return t->each(t->context, &row, e);
}

/* Days of which every hour is within the limits, with the sums of their versions. */
static struct total_day *find_days(const struct plan *p, size_t *count)
{
    struct total_day *days = ARENA_ARRAY(p->arena, (size_t)p->hour_count + 1, struct total_day);
    const bool wanted = p->filter->widest == 0 || p->filter->widest >= ENGINE_DAY;
    size_t n = 0, kept = 0;
    for (uint32_t i = 0; days && wanted && i < p->hour_count; i++) {
        const struct plan_hour *h = &p->hours[i];
        const uint32_t day = h->hour / HOURS_OF_DAY;
        const int64_t start = day * ENGINE_DAY;
        if (p->series[h->series].totals && (p->since <= 0 || start >= p->since) &&
            (p->until <= 0 || start + ENGINE_DAY <= p->until)) {
            days[n++] = (struct total_day){.series = h->series, .day = day, .version = h->version};
        }
    }
    if (n > 1) {
        qsort(days, n, sizeof *days, compare_days);
    }
    for (size_t i = 0; i < n; i++) {
        if (kept > 0 && compare_days(&days[kept - 1], &days[i]) == 0) {
            days[kept - 1].version += days[i].version;
        } else {
            days[kept++] = days[i];
        }
    }
    *count = kept;
    return days;
}

/* The hours of totals within the limits of which no day was given. */
static const struct plan_hour **find_hours(const struct plan *p, const struct total_day *days, size_t n, size_t *count)
{
    const int64_t since = p->since > 0 ? p->since / ENGINE_HOUR : 0,
                  until = p->until > 0 ? (p->until - 1) / ENGINE_HOUR : INT64_MAX;
    const struct plan_hour **hours = ARENA_ARRAY(p->arena, (size_t)p->hour_count + 1, const struct plan_hour *);
    *count = 0;
    for (uint32_t i = 0; hours && i < p->hour_count; i++) {
        const struct plan_hour *h = &p->hours[i];
        const struct total_day key = {.series = h->series, .day = h->hour / HOURS_OF_DAY};
        const struct total_day *day = n > 0 ? bsearch(&key, days, n, sizeof key, compare_days) : NULL;
        if (p->series[h->series].totals && h->hour >= since && h->hour <= until && (!day || !day->stored)) {
            hours[(*count)++] = h;
        }
    }
    return hours;
}

enum profd_status totals_read(struct plan *p, struct host_slots *hosts, row_sink *each, void *context,
                              struct profd_error *e)
{
    struct telling t = {p, hosts, ENGINE_DAY, each, context};
    size_t n = 0, count = 0;
    struct total_day *days = find_days(p, &n);
    enum profd_status status = days ? totals_each_day(p, days, n, tell_total, &t, e) : profd_no_memory(e);
    if (status != PROFD_OK) {
        return status;
    }
    t.width = ENGINE_HOUR;
    const struct plan_hour **open = find_hours(p, days, n, &count);
    return open ? totals_each_hour(p, open, count, tell_total, &t, e) : profd_no_memory(e);
}
