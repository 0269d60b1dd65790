/* Sums of series over their hours, for lists. */
#include <inttypes.h>
#include <string.h>

#include "clickhouse/catalogue.h"
#include "core/rollup.h"
#include "core/sum.h"

/* Σ of an array of numbers up to 2^63−1 by element, as two arrays of UInt64 that do not overflow. */
#define HALVES(array)                                                                                                  \
    "sumForEach(arrayMap(x -> bitShiftRight(x, 32), " array ")), "                                                     \
    "sumForEach(arrayMap(x -> bitAnd(x, 4294967295), " array "))"
#define SUMMED                                                                                                         \
    HALVES("[uploads, ticks, calls, stack_ticks]")                                                                     \
    ", " HALVES("processes") ", " HALVES("nanoseconds") ", " HALVES("into") ", groupBitOr(inexact)"
#define COLUMNS "uploads, ticks, calls, stack_ticks, processes, nanoseconds, into, first, last, inexact"

/* An hour without a valid rollup. */
struct open_hour {
    uint32_t series; /* in the catalogue */
    uint32_t hour;
};

struct summing {
    struct clickhouse_store *s;
    struct arena *a;
    const struct engine_catalogue *c;
    struct engine_sums *out;
    const char *where;
    bool segments;        /* no rollup counts */
    struct hashmap open;  /* struct open_hour */
    struct hashmap hours; /* of them, distinct */
    uint32_t sent_from, sent_to;
};

/* Adds two columns of HALVES to n sums. */
static bool add_halves(struct row_reader *r, struct arena *a, uint64_t *sums, size_t n, bool *saturated)
{
    size_t high_count, low_count;
    const uint64_t *high = rows_array_u64(r, a, &high_count), *low = rows_array_u64(r, a, &low_count);
    if (!high || !low) {
        return false;
    }
    for (size_t i = 0; i < n && i < high_count && i < low_count; i++) {
        const bool over = high[i] > SUM_MAX >> 32;
        sum_add(&sums[i], over ? SUM_MAX : high[i] << 32, saturated);
        sum_add(&sums[i], low[i], saturated);
        *saturated |= over;
    }
    return true;
}

/* Adds the columns of SUMMED, then first and last. */
static enum profd_status add_columns(struct summing *x, struct row_reader *r, const struct engine_series *series,
                                     struct engine_sums *sums, struct profd_error *e)
{
    struct arena *a = arena_new_child(x->a);
    uint64_t scalars[4] = {sums->uploads, sums->ticks, sums->calls, sums->stack_ticks}, processes[ROLLUP_GROUPS] = {0};
    const bool fine = a && add_halves(r, a, scalars, 4, &sums->saturated) &&
                      add_halves(r, a, processes, ROLLUP_GROUPS, &sums->saturated) &&
                      add_halves(r, a, sums->nanoseconds, series->build_count, &sums->saturated) &&
                      add_halves(r, a, sums->into, series->build_count, &sums->saturated);
    const uint32_t inexact = rows_u32(r);
    const int64_t first = rows_i64(r), last = rows_i64(r);
    arena_free(a);
    const enum profd_status status = engine_rows_check(r, "sums", e);
    if (status != PROFD_OK || !fine) {
        return status != PROFD_OK ? status : profd_no_memory(e);
    }
    for (size_t i = 0; i < ROLLUP_GROUPS; i++) {
        sum_add(&sums->processes, processes[i], &sums->saturated);
    }
    sums->uploads = scalars[0];
    sums->ticks = scalars[1];
    sums->calls = scalars[2];
    sums->stack_ticks = scalars[3];
    sums->first = sums->hours == 0 || first < sums->first ? first : sums->first;
    sums->last = sums->hours == 0 || last > sums->last ? last : sums->last;
    sums->inexact |= inexact | (sums->saturated ? (uint32_t)INEXACT_SATURATED : 0);
    return PROFD_OK;
}

static enum profd_status put_if_new(struct hashmap *t, const void *key, size_t size, struct profd_error *e)
{
    return hashmap_find(t, key, size) || hashmap_put(t, key, size, "", 1) ? PROFD_OK : profd_no_memory(e);
}

/* A series' row of the first query: its closed hours, and which are open. */
static enum profd_status read_closed(struct summing *x, struct row_reader *r, struct profd_error *e)
{
    uint8_t hash[ENGINE_SERIES_SIZE];
    struct engine_sums ignored = {.hours = 0};
    static const struct engine_series none;
    rows_fixed(r, hash, sizeof hash);
    const uint32_t generation = rows_u32(r);
    const uint64_t closed = rows_u64(r);
    const uint32_t from = rows_u32(r), to = rows_u32(r);
    const struct engine_series *series = engine_find_series(x->c, hash);
    const bool counts = series && series->generation == generation;
    struct engine_sums *sums = counts ? &x->out[series - x->c->list] : &ignored;
    const size_t n = rows_length(r, sizeof(uint32_t));
    enum profd_status status = PROFD_OK;
    for (size_t i = 0; i < n && status == PROFD_OK; i++) {
        const struct open_hour open = {.series = counts ? (uint32_t)(series - x->c->list) : 0, .hour = rows_u32(r)};
        status = counts ? put_if_new(&x->open, &open, sizeof open, e) : PROFD_OK;
        if (counts && status == PROFD_OK) {
            status = put_if_new(&x->hours, &open.hour, sizeof open.hour, e);
        }
    }
    if (counts && n > 0) {
        x->sent_from = from < x->sent_from ? from : x->sent_from;
        x->sent_to = to > x->sent_to ? to : x->sent_to;
    }
    if (status != PROFD_OK) {
        return status;
    }
    status = add_columns(x, r, counts && closed > 0 ? series : &none, closed > 0 ? sums : &ignored, e);
    sums->hours += closed;
    return status;
}

static enum profd_status add_closed(struct summing *x, struct profd_error *e)
{
    struct row_reader r = {.bytes = NULL};
    struct buffer where;
    buffer_init(&where, 1 << 20);
    engine_put_selection(&where, x->c);
    if (x->where) {
        buffer_add_format(&where, " AND (%s)", x->where);
    }
    buffer_add(&where, "", 1);
    if (where.failed) {
        buffer_done(&where);
        return profd_no_memory(e);
    }
    engine_begin(x->s);
    buffer_add_text(&x->s->statement,
                    "SELECT series, generation, toUInt64(countIf(segments > 0)), minIf(sent_from, segments = 0), "
                    "maxIf(sent_to, segments = 0), groupArrayIf(hour, segments = 0), " SUMMED
                    ", minIf(first, segments > 0), maxIf(last, segments > 0) FROM ");
    engine_put_hours(&x->s->statement, where.data);
    buffer_add_format(&x->s->statement,
                      " ANY LEFT JOIN (SELECT program, series, hour, generation, version, segments, " COLUMNS
                      " FROM rollup WHERE %s%s) USING (program, series, hour, generation, version) "
                      "GROUP BY series, generation",
                      where.data, x->segments ? " AND 0" : "");
    buffer_done(&where);
    enum profd_status status = engine_query_printed(x->s, &r, e);
    while (status == PROFD_OK && rows_more(&r)) {
        status = read_closed(x, &r, e);
    }
    rows_close(&r);
    return status;
}

static enum profd_status read_open(struct summing *x, struct row_reader *r, struct profd_error *e)
{
    uint8_t hash[ENGINE_SERIES_SIZE];
    struct engine_sums ignored = {.hours = 0};
    static const struct engine_series none;
    rows_fixed(r, hash, sizeof hash);
    const uint32_t generation = rows_u32(r), hour = rows_u32(r);
    const struct engine_series *series = engine_find_series(x->c, hash);
    const struct open_hour open = {.series = series ? (uint32_t)(series - x->c->list) : 0, .hour = hour};
    const bool counts = series && series->generation == generation && hashmap_find(&x->open, &open, sizeof open);
    struct engine_sums *sums = counts ? &x->out[open.series] : &ignored;
    const uint64_t before = sums->uploads;
    const enum profd_status status = add_columns(x, r, counts ? series : &none, sums, e);
    sums->single += sums->uploads - before;
    sums->hours++;
    return status;
}

/* Of several rows of a segment's head the latest counts. */
static enum profd_status add_open(struct summing *x, struct profd_error *e)
{
    struct row_reader r = {.bytes = NULL};
    struct buffer *b = &x->s->statement;
    size_t position = 0;
    const void *hour;
    if (x->open.count == 0) {
        return PROFD_OK;
    }
    engine_begin(x->s);
    buffer_add_text(b, "SELECT series, generation, hour, " SUMMED ", min(first), max(last) FROM (SELECT series, "
                       "generation, hour, epoch, sequence, " COLUMNS " FROM segment_group WHERE head = 1 AND ");
    engine_put_selection(b, x->c);
    buffer_add_format(
        b, " AND sent >= toDateTime(%" PRIu64 ", 'UTC') AND sent <= toDateTime(%" PRIu64 ", 'UTC') AND hour IN (",
        (uint64_t)x->sent_from * 3600, (uint64_t)x->sent_to * 3600);
    for (bool first = true; hashmap_next(&x->hours, &position, &hour); first = false) {
        uint32_t h;
        memcpy(&h, hour, sizeof h);
        buffer_add_format(b, "%s%" PRIu32, first ? "" : ",", h);
    }
    buffer_add_text(b, ") ORDER BY number DESC LIMIT 1 BY epoch, sequence) GROUP BY series, generation, hour");
    enum profd_status status = engine_query_printed(x->s, &r, e);
    while (status == PROFD_OK && rows_more(&r)) {
        status = read_open(x, &r, e);
    }
    rows_close(&r);
    return status;
}

static enum profd_status load(struct summing *x, struct profd_error *e)
{
    for (size_t i = 0; i < x->c->count; i++) {
        const size_t n = x->c->list[i].build_count;
        x->out[i] =
            (struct engine_sums){.nanoseconds = ARENA_ARRAY(x->a, n, uint64_t), .into = ARENA_ARRAY(x->a, n, uint64_t)};
        if (!x->out[i].nanoseconds || !x->out[i].into) {
            return profd_no_memory(e);
        }
    }
    if (x->c->count == 0) {
        return PROFD_OK;
    }
    hashmap_init(&x->open, 0);
    hashmap_init(&x->hours, 0);
    enum profd_status status = add_closed(x, e);
    if (status == PROFD_OK) {
        status = add_open(x, e);
    }
    hashmap_clear(&x->open);
    hashmap_clear(&x->hours);
    return status;
}

enum profd_status engine_load_sums(struct clickhouse_store *s, struct arena *a, const struct engine_catalogue *c,
                                   const char *where, struct engine_sums *out, struct profd_error *e)
{
    struct summing x = {.s = s, .a = a, .c = c, .out = out, .where = where, .sent_from = UINT32_MAX};
    return load(&x, e);
}

enum profd_status engine_sum_segments(struct clickhouse_store *s, struct arena *a, const struct engine_catalogue *c,
                                      const char *where, struct engine_sums *out, struct profd_error *e)
{
    struct summing x = {.s = s, .a = a, .c = c, .out = out, .where = where, .segments = true, .sent_from = UINT32_MAX};
    return load(&x, e);
}
