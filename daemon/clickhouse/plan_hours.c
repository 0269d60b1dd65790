/* Which hours of the selected series have something, and which rows are given of them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clickhouse/plan.h"
#include "proto/message.h"
#include "store/incoming.h"

#define HOURS_MOST (INT64_MAX / ENGINE_HOUR)
#define HOURS_LISTED 1000u /* in a statement; more are a range */

uint32_t plan_slice(int64_t ended, int64_t last)
{
    static const uint32_t minutes[] = {1, 5, 15};
    for (size_t i = 0; i < sizeof minutes / sizeof minutes[0] && ended > 0 && ended <= last; i++) {
        const int64_t width = minutes[i] * PLAN_MINUTE;
        if (ended / width == last / width) {
            return minutes[i];
        }
    }
    return PLAN_WIDE;
}

bool plan_window(const struct plan *p, uint32_t *first, uint32_t *last)
{
    const int64_t since = p->since > 0 ? p->since : 0;
    *first = (uint32_t)(since / ENGINE_HOUR);
    *last = (uint32_t)(p->until > 0 ? (p->until - 1) / ENGINE_HOUR : HOURS_MOST);
    return p->until <= 0 || p->until > since;
}

/* Appends the query for hours: their versions, beside those of rollups. One statement, so that what was rolled up and
 * what was changed are read at about the same time; a rollup may be newer than the version, and then has more. */
static void print_hours(const struct plan *p, uint32_t first, uint32_t last)
{
    struct buffer *b = &p->s->statement;
    char hours[64];
    snprintf(hours, sizeof hours, " AND hour >= %u AND hour <= %u", first, last);
    engine_begin(p->s);
    buffer_add_text(b, "SELECT series, hour, generation, sum(v), max(r), max(k), min(f), max(t) FROM ("
                       "SELECT series, hour, generation, max(count) AS v, toUInt64(0) AS r, toUInt64(0) AS k, "
                       "min(sent_from) AS f, max(sent_to) AS t FROM change WHERE ");
    plan_put_series(p, NULL, b);
    buffer_add_text(b, hours);
    buffer_add_text(b, " GROUP BY series, hour, generation, writer UNION ALL "
                       "SELECT series, hour, generation, toUInt64(0) AS v, max(version) AS r, "
                       "argMax(commit, version) AS k, toUInt32(4294967295) AS f, toUInt32(0) AS t FROM rollup WHERE ");
    plan_put_series(p, NULL, b);
    buffer_add_text(b, hours);
    buffer_add_text(b, " GROUP BY series, hour, generation) GROUP BY series, hour, generation "
                       "ORDER BY hour, series");
}

static enum profd_status take_hour(struct plan *p, struct row_reader *rows, struct profd_error *e)
{
    uint8_t hash[ENGINE_SERIES_SIZE];
    rows_fixed(rows, hash, sizeof hash);
    struct plan_hour h = {.hour = rows_u32(rows)};
    const uint32_t generation = rows_u32(rows);
    h.version = rows_u64(rows);
    h.rolled = rows_u64(rows);
    h.commit = rows_u64(rows);
    h.sent_from = rows_u32(rows);
    h.sent_to = rows_u32(rows);
    if (rows->cut) {
        return engine_rows_check(rows, "hours", e);
    }
    const struct plan_series *x = plan_find_series(p, hash);
    if (!x || x->generation != generation || h.version == 0) {
        return PROFD_OK;
    }
    h.series = (uint32_t)(x - p->series);
    h.rolled = h.rolled >= h.version ? h.rolled : 0;
    struct plan_hour *grown = arena_extend(p->arena, p->hours, p->hour_count, &p->hour_capacity, sizeof h);
    if (!grown) {
        return profd_no_memory(e);
    }
    p->hours = grown;
    p->hours[p->hour_count++] = h;
    return PROFD_OK;
}

enum profd_status plan_find_hours(struct plan *p, uint32_t first, uint32_t last, struct profd_error *e)
{
    struct row_reader rows;
    if (p->series_count == 0) {
        return PROFD_OK;
    }
    print_hours(p, first, last);
    enum profd_status status = engine_query_printed(p->s, &rows, e);
    if (status != PROFD_OK) {
        return status;
    }
    while (status == PROFD_OK && rows_more(&rows)) {
        status = take_hour(p, &rows, e);
    }
    rows_close(&rows);
    return status;
}

static int compare_hours(const void *a, const void *b)
{
    const struct plan_hour *x = a, *y = b;
    return x->hour != y->hour ? (x->hour > y->hour) - (x->hour < y->hour)
                              : (x->series > y->series) - (x->series < y->series);
}

uint32_t plan_find_hour(const struct plan *p, const struct plan_series *series, uint32_t hour)
{
    const struct plan_hour key = {.series = (uint32_t)(series - p->series), .hour = hour};
    const struct plan_hour *found =
        p->hour_count > 0 ? bsearch(&key, p->hours, p->hour_count, sizeof key, compare_hours) : NULL;
    return found ? (uint32_t)(found - p->hours) : PLAN_NONE;
}

uint32_t plan_find_open(const struct plan *p, const struct plan_series *series, uint32_t hour)
{
    const uint32_t at = plan_find_hour(p, series, hour);
    return at != PLAN_NONE && p->hours[at].rolled == 0 ? at : PLAN_NONE;
}

static struct plan_ref *add_ref(struct plan *p, const struct plan_ref *ref)
{
    struct plan_ref *grown = arena_extend(p->arena, p->refs, p->ref_count, &p->ref_capacity, sizeof *ref);
    if (!grown) {
        return NULL;
    }
    p->refs = grown;
    p->refs[p->ref_count] = *ref;
    return &p->refs[p->ref_count++];
}

/* Counts a segment of an hour in the row of its slice. slices: hour, minutes, at → index of the row. */
static enum profd_status add_segment(struct plan *p, struct hashmap *slices, uint32_t hour, uint32_t minutes,
                                     int64_t last, const struct profile_order *order, struct profd_error *e)
{
    const int64_t start = p->hours[hour].hour * ENGINE_HOUR;
    const uint32_t key[] = {hour, minutes, (uint32_t)((last - start) / (minutes * PLAN_MINUTE))};
    const uint32_t *known = hashmap_find(slices, key, sizeof key);
    if (!known) {
        known = hashmap_put(slices, key, sizeof key, &p->ref_count, sizeof p->ref_count);
        const struct plan_ref ref = {
            .commit = order->commit, .rank = order->rank, .hour = hour, .minutes = minutes, .at = key[2]};
        if (!known || !add_ref(p, &ref)) {
            return profd_no_memory(e);
        }
    }
    struct plan_ref *ref = &p->refs[*known];
    ref->segments++;
    if (order->commit < ref->commit || (order->commit == ref->commit && order->rank < ref->rank)) {
        ref->commit = order->commit;
        ref->rank = order->rank;
    }
    return PROFD_OK;
}

/* Appends the query for the segments of hours that are not rolled up. False: there are none. */
static bool print_heads(const struct plan *p)
{
    struct buffer *b = &p->s->statement;
    uint32_t from = UINT32_MAX, to = 0, last = PLAN_NONE, listed = 0, first_hour = 0;
    engine_begin(p->s);
    buffer_add_text(b, "SELECT series, hour, generation, epoch, sequence, last, ended FROM segment_group WHERE ");
    plan_put_series(p, NULL, b);
    buffer_add_text(b, " AND head = 1 AND (hour IN (");
    for (uint32_t i = 0; i < p->hour_count; i++) {
        const struct plan_hour *h = &p->hours[i];
        if (h->rolled != 0 || p->series[h->series].totals) {
            continue;
        }
        if (h->hour != last && ++listed <= HOURS_LISTED) {
            buffer_add_format(b, "%s%u", listed > 1 ? "," : "", h->hour);
        }
        first_hour = listed == 1 ? h->hour : first_hour;
        last = h->hour;
        from = h->sent_from < from ? h->sent_from : from;
        to = h->sent_to > to ? h->sent_to : to;
    }
    buffer_add_char(b, ')');
    if (listed > HOURS_LISTED) {
        buffer_add_format(b, " OR (hour >= %u AND hour <= %u)", first_hour, last);
    }
    buffer_add_format(b,
                      ") AND sent >= toDateTime(%llu) AND sent <= toDateTime(%llu) "
                      "ORDER BY hour, series, epoch, sequence, number DESC",
                      from * 3600ULL, to * 3600ULL);
    return listed > 0;
}

/* What tells a segment from the one before it in a reply. */
struct segment_key {
    uint8_t series[ENGINE_SERIES_SIZE], epoch[SEGMENT_EPOCH_SIZE];
    uint32_t hour, generation;
    uint64_t sequence;
};

static bool is_same_key(const struct segment_key *a, const struct segment_key *b)
{
    return a->hour == b->hour && a->generation == b->generation && a->sequence == b->sequence &&
           memcmp(a->series, b->series, sizeof a->series) == 0 && memcmp(a->epoch, b->epoch, sizeof a->epoch) == 0;
}

static enum profd_status take_head(struct plan *p, struct row_reader *rows, struct hashmap *slices,
                                   struct segment_key *before, struct profd_error *e)
{
    struct segment_key key;
    memset(&key, 0, sizeof key);
    rows_fixed(rows, key.series, sizeof key.series);
    key.hour = rows_u32(rows);
    key.generation = rows_u32(rows);
    rows_fixed(rows, key.epoch, sizeof key.epoch);
    key.sequence = rows_u64(rows);
    const int64_t last = rows_i64(rows), ended = rows_i64(rows);
    if (rows->cut) {
        return engine_rows_check(rows, "segments", e);
    }
    const struct plan_series *x = plan_find_series(p, key.series);
    const uint32_t hour = x && !x->totals ? plan_find_open(p, x, key.hour) : PLAN_NONE;
    if (hour == PLAN_NONE || x->generation != key.generation || is_same_key(&key, before)) {
        return PROFD_OK;
    }
    *before = key;
    const struct profile_order order = incoming_order(key.hour, key.epoch, key.sequence);
    return add_segment(p, slices, hour, p->sliced ? plan_slice(ended, last) : PLAN_WIDE, last, &order, e);
}

static enum profd_status find_segments(struct plan *p, struct profd_error *e)
{
    struct row_reader rows;
    struct hashmap slices;
    struct segment_key before = {.hour = PLAN_NONE};
    if (!print_heads(p)) {
        return PROFD_OK;
    }
    enum profd_status status = engine_query_printed(p->s, &rows, e);
    if (status != PROFD_OK) {
        return status;
    }
    hashmap_init(&slices, 0);
    while (status == PROFD_OK && rows_more(&rows)) {
        status = take_head(p, &rows, &slices, &before, e);
    }
    hashmap_clear(&slices);
    rows_close(&rows);
    return status;
}

/* Every hour that is not rolled up has segments; else they are lost, or were removed in this moment. */
static enum profd_status check_open(const struct plan *p, struct profd_error *e)
{
    bool *found = ARENA_ARRAY(p->arena, (size_t)p->hour_count + 1, bool);
    if (!found) {
        return profd_no_memory(e);
    }
    if (p->s->base.partial) {
        return PROFD_OK;
    }
    for (uint32_t i = 0; i < p->ref_count; i++) {
        found[p->refs[i].hour] = true;
    }
    for (uint32_t i = 0; i < p->hour_count; i++) {
        const struct plan_series *x = &p->series[p->hours[i].series];
        if (!found[i] && !x->totals) {
            return profd_error_set(e, PROFD_BUSY,
                                   "store: the servers have no segments of hour %u of program %s, in which some count",
                                   p->hours[i].hour, x->builds[x->program].id.text);
        }
    }
    return PROFD_OK;
}

static enum profd_status add_rolled(struct plan *p, struct profd_error *e)
{
    for (uint32_t i = 0; i < p->hour_count; i++) {
        const struct plan_hour *h = &p->hours[i];
        const struct plan_ref ref = {.commit = h->commit, .hour = i, .minutes = PLAN_WIDE, .rolled = true};
        if (h->rolled != 0 && !p->series[h->series].totals && !add_ref(p, &ref)) {
            return profd_no_memory(e);
        }
    }
    return PROFD_OK;
}

/* Moves a limit outward to the border of the widest row that contains it. */
static void settle_edge(const struct plan *p, int64_t *edge, bool up)
{
    const int64_t hour = *edge / ENGINE_HOUR;
    uint32_t widest = 0;
    if (*edge <= 0 || *edge % ENGINE_HOUR == 0) {
        return;
    }
    for (uint32_t i = 0; i < p->hour_count; i++) {
        widest = p->hours[i].hour == hour && p->series[p->hours[i].series].totals ? PLAN_WIDE : widest;
    }
    for (uint32_t i = 0; i < p->ref_count; i++) {
        const struct plan_ref *r = &p->refs[i];
        const int64_t width = r->minutes * PLAN_MINUTE, start = p->hours[r->hour].hour * ENGINE_HOUR + r->at * width;
        widest = start < *edge && *edge < start + width && r->minutes > widest ? r->minutes : widest;
    }
    if (widest > 0) {
        const int64_t width = widest * PLAN_MINUTE, at = *edge / width + up;
        *edge = at > INT64_MAX / width ? INT64_MAX : at * width;
    }
}

/* Rows outside the limits are not given. */
static void leave_out(struct plan *p)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < p->ref_count; i++) {
        const struct plan_ref *r = &p->refs[i];
        const int64_t start = p->hours[r->hour].hour * ENGINE_HOUR + r->at * r->minutes * PLAN_MINUTE;
        if ((p->since <= 0 || start >= p->since) && (p->until <= 0 || start < p->until)) {
            p->refs[n++] = *r;
        }
    }
    p->ref_count = n;
}

static int compare_refs(const void *a, const void *b)
{
    const struct plan_ref *x = a, *y = b;
    if (x->commit != y->commit) {
        return x->commit > y->commit ? 1 : -1;
    }
    if (x->rank != y->rank) {
        return x->rank > y->rank ? 1 : -1;
    }
    if (x->hour != y->hour) {
        return x->hour > y->hour ? 1 : -1;
    }
    return x->minutes != y->minutes ? (x->minutes > y->minutes ? 1 : -1) : (x->at > y->at) - (x->at < y->at);
}

enum profd_status plan_find_refs(struct plan *p, struct profd_error *e)
{
    if (p->hour_count > 1) {
        qsort(p->hours, p->hour_count, sizeof *p->hours, compare_hours);
    }
    enum profd_status status = find_segments(p, e);
    if (status == PROFD_OK) {
        status = add_rolled(p, e);
    }
    if (status == PROFD_OK) {
        status = check_open(p, e);
    }
    if (status != PROFD_OK) {
        return status;
    }
    settle_edge(p, &p->since, false);
    settle_edge(p, &p->until, true);
    leave_out(p);
    if (p->ref_count > 1) {
        qsort(p->refs, p->ref_count, sizeof *p->refs, compare_refs);
    }
    return PROFD_OK;
}
