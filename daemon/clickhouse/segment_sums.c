#include "clickhouse/segment_sums.h"

#include <stdlib.h>
#include <string.h>

#include "clickhouse/segment.h"
#include "core/sum.h"
#include "proto/message.h"
#include "store/incoming.h"

#define PART_SEGMENTS 1024u /* that are asked for at once, about */
#define PARTS_MOST (1u << 20)

_Static_assert(SEGMENT_ROW_SERIES == ENGINE_SERIES_SIZE, "one hash");

/* A sum in the making. */
struct making {
    struct folding folding;
    uint64_t segments, content;
    uint64_t ticks, calls, stack_ticks; /* of the segments, as their heads say */
    struct share *shares;
    uint32_t *hosts; /* slots, as they came */
    uint32_t host_count, host_capacity;
};

struct sums {
    const struct plan *p;
    const struct plan_ref *refs;
    size_t n;
    bool spread;
    struct arena *arena, *numbers; /* of the sums; of a segment */
    struct making *making;         /* of each row of the plan */
    struct hashmap slices;         /* hour, minutes, at → index */
    unsigned part, parts;          /* the next one */
    struct piece *pieces;          /* rows of one segment */
    uint32_t piece_count, piece_capacity;
};

/* A row of a segment, and where its counts are. */
struct piece {
    struct segment_row row;
    struct row_reader counts;
};

static int compare_slots(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/* Sorts the hosts, and leaves each once. */
static void sort_hosts(struct making *m)
{
    uint32_t n = 0;
    if (m->host_count > 1) {
        qsort(m->hosts, m->host_count, sizeof *m->hosts, compare_slots);
    }
    for (uint32_t i = 0; i < m->host_count; i++) {
        if (n == 0 || m->hosts[n - 1] != m->hosts[i]) {
            m->hosts[n++] = m->hosts[i];
        }
    }
    m->host_count = n;
}

static enum profd_status add_host(struct sums *r, struct making *m, uint32_t slot, struct profd_error *e)
{
    if (m->host_count > 0 && m->hosts[m->host_count - 1] == slot) {
        return PROFD_OK;
    }
    const bool full = m->host_count == m->host_capacity;
    if (full) {
        sort_hosts(m);
    }
    if (full && m->host_count >= m->host_capacity / 2) {
        uint32_t *grown = arena_extend(r->arena, m->hosts, m->host_capacity, &m->host_capacity, sizeof *grown);
        if (!grown) {
            return profd_no_memory(e);
        }
        m->hosts = grown;
    }
    m->hosts[m->host_count++] = slot;
    return PROFD_OK;
}

/* Adds what lists say of a segment. */
static void add_head(struct making *m, const struct segment_row *x, size_t builds)
{
    bool stopped = false;
    sum_add(&m->ticks, x->ticks, &stopped);
    sum_add(&m->calls, x->calls, &stopped);
    sum_add(&m->stack_ticks, x->stack_ticks, &stopped);
    for (size_t i = 0; i < builds && i < x->build_count; i++) {
        sum_add(&m->shares[i].nanoseconds, x->nanoseconds[i], &stopped);
        sum_add(&m->shares[i].calls, x->into[i], &stopped);
    }
    m->folding.out.inexact |= stopped ? (uint32_t)INEXACT_SATURATED : 0;
}

/* Adds one row of a segment. The head has what the segment has once. */
static enum profd_status add_piece(struct sums *r, struct making *m, struct piece *x, const struct plan_series *of,
                                   struct profd_error *e)
{
    struct folded one = {.number = INT64_MAX, .first = INT64_MAX, .last = INT64_MIN};
    bool stopped = false;
    if (x->row.head) {
        one.number = (int64_t)incoming_order(x->row.hour, x->row.epoch, x->row.sequence).commit;
        one.uploads = x->row.uploads;
        one.first = x->row.first;
        one.last = x->row.last;
        one.inexact = x->row.inexact;
        for (unsigned g = 0; g < RANDOM_GROUPS; g++) {
            one.groups.of[g] = x->row.processes[g];
            sum_add(&one.processes, x->row.processes[g], &stopped);
        }
        add_head(m, &x->row, of->build_count);
    }
    enum profd_status status =
        segment_row_read_counts(&x->counts, r->numbers, &x->row, (uint32_t)of->build_count, &one.counts, e);
    if (status == PROFD_OK && r->spread) {
        status = segment_row_spread(&one.counts, x->row.group, r->numbers, &one.spread, e);
    }
    return status == PROFD_OK ? folding_add(&m->folding, &one, e) : status;
}

/* The rows of the segment that count: of the digest of the newest, one for each group. *n: how many these are. */
static const struct piece *pick_pieces(const struct sums *r, bool *picked, uint32_t *n)
{
    const struct piece *newest = r->pieces, *head = NULL;
    const uint8_t *before = NULL;
    *n = 0;
    for (uint32_t i = 1; i < r->piece_count; i++) {
        newest = r->pieces[i].row.number > newest->row.number ? &r->pieces[i] : newest;
    }
    for (uint32_t i = 0; i < r->piece_count; i++) {
        const struct segment_row *x = &r->pieces[i].row;
        picked[i] = memcmp(x->digest, newest->row.digest, sizeof x->digest) == 0 && (!before || *before != x->group);
        if (picked[i]) {
            before = &x->group;
            ++*n;
            head = x->head ? &r->pieces[i] : head;
        }
    }
    return head;
}

/* The sum to which a segment belongs; NULL: none of those that are asked for. */
static struct making *find_making(const struct sums *r, const struct plan_series *of, const struct segment_row *x)
{
    const uint32_t hour = of ? plan_find_open(r->p, of, x->hour) : PLAN_NONE;
    if (hour == PLAN_NONE || of->generation != x->generation) {
        return NULL;
    }
    const uint32_t minutes = r->p->sliced ? plan_slice(x->ended, x->last) : PLAN_WIDE;
    const uint32_t key[] = {hour, minutes, (uint32_t)((x->last - x->hour * ENGINE_HOUR) / (minutes * PLAN_MINUTE))};
    const size_t *at = hashmap_find(&r->slices, key, sizeof key);
    return at ? &r->making[*at] : NULL;
}

/* Adds the segment of the rows that were collected. */
static enum profd_status add_segment(struct sums *r, struct profd_error *e)
{
    uint32_t n;
    uint64_t content;
    enum profd_status status = PROFD_OK;
    bool *picked = ARENA_ARRAY(r->numbers, r->piece_count, bool);
    if (!picked) {
        return profd_no_memory(e);
    }
    const struct piece *head = pick_pieces(r, picked, &n);
    if (!head || n != head->row.group_rows) {
        const struct segment_row *x = &r->pieces[0].row;
        return profd_error_set(e, PROFD_BUSY,
                               "store: the servers have %u of the %u rows of segment %llu of hour %u of program %s", n,
                               x->group_rows, (unsigned long long)x->sequence, x->hour, x->program);
    }
    const struct plan_series *of = plan_find_series(r->p, head->row.series);
    struct making *m = find_making(r, of, &head->row);
    if (!m) {
        return PROFD_OK;
    }
    for (uint32_t i = 0; status == PROFD_OK && i < r->piece_count; i++) {
        status = picked[i] ? add_piece(r, m, &r->pieces[i], of, e) : PROFD_OK;
    }
    memcpy(&content, head->row.digest, sizeof content);
    m->content += content;
    m->segments++;
    return status == PROFD_OK ? add_host(r, m, head->row.host, e) : status;
}

static bool is_same_segment(const struct segment_row *a, const struct segment_row *b)
{
    return a->sequence == b->sequence && a->hour == b->hour && a->generation == b->generation &&
           memcmp(a->epoch, b->epoch, sizeof a->epoch) == 0 && memcmp(a->series, b->series, sizeof a->series) == 0;
}

/* Adds a row to those of its segment. */
static enum profd_status keep_piece(struct sums *r, const struct piece *x, struct profd_error *e)
{
    struct piece *grown = arena_extend(r->numbers, r->pieces, r->piece_count, &r->piece_capacity, sizeof *x);
    if (!grown) {
        return profd_no_memory(e);
    }
    r->pieces = grown;
    r->pieces[r->piece_count++] = *x;
    return PROFD_OK;
}

static void forget_pieces(struct sums *r)
{
    arena_reset(r->numbers);
    r->pieces = NULL;
    r->piece_count = r->piece_capacity = 0;
}

/* Adds up a reply: rows of a segment follow each other. */
static enum profd_status take_rows(struct sums *r, struct row_reader *rows, struct profd_error *e)
{
    enum profd_status status = PROFD_OK;
    forget_pieces(r);
    while (status == PROFD_OK && rows_more(rows)) {
        const struct row_reader begin = *rows;
        struct piece x = {.counts = {.bytes = NULL}};
        if (!segment_row_read_key(rows, r->numbers, &x.row) || !segment_row_read_sums(rows, r->numbers, &x.row)) {
            return rows->cut ? engine_rows_check(rows, "segments", e) : profd_no_memory(e);
        }
        if (r->piece_count > 0 && !is_same_segment(&x.row, &r->pieces[0].row)) {
            status = add_segment(r, e);
            forget_pieces(r);
            *rows = begin; /* read again: its numbers are gone */
            continue;
        }
        x.counts = *rows;
        segment_row_skip_counts(rows);
        status = keep_piece(r, &x, e);
    }
    if (status == PROFD_OK) {
        status = engine_rows_check(rows, "segments", e);
    }
    return status == PROFD_OK && r->piece_count > 0 ? add_segment(r, e) : status;
}

/* Appends the query for the segments of all these rows, or one part of several. */
static enum profd_status print_query(const struct sums *r, unsigned part, unsigned parts, struct profd_error *e)
{
    const struct plan *p = r->p;
    struct buffer *b = &p->s->statement;
    uint32_t from = UINT32_MAX, to = 0, last = PLAN_NONE;
    bool *wanted = ARENA_ARRAY(r->numbers, p->series_count, bool);
    if (!wanted) {
        return profd_no_memory(e);
    }
    for (size_t i = 0; i < r->n; i++) {
        const struct plan_hour *h = &p->hours[r->refs[i].hour];
        wanted[h->series] = true;
        from = h->sent_from < from ? h->sent_from : from;
        to = h->sent_to > to ? h->sent_to : to;
    }
    engine_begin(p->s);
    buffer_add_text(b, "SELECT " SEGMENT_ROW_ALL " FROM segment_group WHERE ");
    plan_put_series(p, wanted, b);
    buffer_add_text(b, " AND hour IN (");
    for (size_t i = 0; i < r->n; i++) {
        const uint32_t hour = p->hours[r->refs[i].hour].hour;
        if (hour != last) {
            buffer_add_format(b, "%s%u", i > 0 ? "," : "", hour);
        }
        last = hour;
    }
    buffer_add_format(b, ") AND sent >= toDateTime(%llu) AND sent <= toDateTime(%llu)", from * 3600ULL, to * 3600ULL);
    if (parts > 1) {
        buffer_add_format(b, " AND cityHash64(epoch, sequence) %% %u = %u", parts, part);
    }
    buffer_add_text(b, " ORDER BY hour, series, epoch, sequence, grp, number DESC");
    return PROFD_OK;
}

/* Reads a part of the segments, in smaller parts if the reply would be too long. */
static enum profd_status read_part(struct sums *r, unsigned part, unsigned parts, struct profd_error *e)
{
    struct row_reader rows;
    arena_reset(r->numbers);
    enum profd_status status = print_query(r, part, parts, e);
    if (status == PROFD_OK) {
        status = engine_query_printed(r->p->s, &rows, e);
    }
    if (status == PROFD_BUSY && r->p->s->too_large && parts <= PARTS_MOST / 8) {
        /* Each part of 8 n with the same rest by n has some of its segments. */
        status = PROFD_OK;
        for (unsigned i = 0; status == PROFD_OK && i < 8; i++) {
            status = read_part(r, part + i * parts, 8 * parts, e);
        }
        return status;
    }
    if (status == PROFD_OK) {
        status = take_rows(r, &rows, e);
        rows_close(&rows);
    }
    return status;
}

static enum profd_status begin(struct sums *r, struct profd_error *e)
{
    enum profd_status status = PROFD_OK;
    uint64_t segments = 0;
    hashmap_init(&r->slices, 0);
    r->numbers = arena_new(0);
    r->making = ARENA_ARRAY(r->arena, r->n + 1, struct making);
    if (!r->making || !r->numbers) {
        return profd_no_memory(e);
    }
    for (size_t i = 0; status == PROFD_OK && i < r->n; i++) {
        const struct plan_ref *ref = &r->refs[i];
        const uint32_t key[] = {ref->hour, ref->minutes, ref->at};
        const struct plan_series *x = &r->p->series[r->p->hours[ref->hour].series];
        r->making[i].shares = ARENA_ARRAY(r->arena, x->build_count + 1, struct share);
        status =
            r->making[i].shares ? folding_begin(&r->making[i].folding, r->arena, r->spread, e) : profd_no_memory(e);
        if (status == PROFD_OK && !hashmap_put(&r->slices, key, sizeof key, &i, sizeof i)) {
            status = profd_no_memory(e);
        }
        segments += ref->segments;
    }
    r->parts = (unsigned)(segments / PART_SEGMENTS < PARTS_MOST ? segments / PART_SEGMENTS : PARTS_MOST) + 1;
    return status;
}

enum profd_status sums_open(const struct plan *p, const struct plan_ref *refs, size_t n, bool spread, struct arena *a,
                            struct sums **out, struct profd_error *e)
{
    struct sums *r = calloc(1, sizeof *r);
    if (!r) {
        return profd_no_memory(e);
    }
    *r = (struct sums){.p = p, .refs = refs, .n = n, .spread = spread, .arena = a};
    const enum profd_status status = begin(r, e);
    if (status != PROFD_OK) {
        sums_close(r);
        return status;
    }
    *out = r;
    return PROFD_OK;
}

void sums_close(struct sums *r)
{
    if (r) {
        hashmap_clear(&r->slices);
        arena_free(r->numbers);
        free(r);
    }
}

enum profd_status sums_step(struct sums *r, bool *more, struct profd_error *e)
{
    const enum profd_status status = r->n > 0 && r->part < r->parts ? read_part(r, r->part, r->parts, e) : PROFD_OK;
    r->part++;
    *more = status == PROFD_OK && r->n > 0 && r->part < r->parts;
    return status;
}

static enum profd_status finish(struct sums *r, size_t i, struct summed *out, struct profd_error *e)
{
    struct making *m = &r->making[i];
    if (m->segments < r->refs[i].segments) {
        const struct plan_hour *h = &r->p->hours[r->refs[i].hour];
        const struct plan_series *x = &r->p->series[h->series];
        return profd_error_set(e, PROFD_BUSY, "store: the servers have %llu of %llu segments of hour %u of program %s",
                               (unsigned long long)m->segments, (unsigned long long)r->refs[i].segments, h->hour,
                               x->builds[x->program].id.text);
    }
    const enum profd_status status = folding_finish(&m->folding, e);
    sort_hosts(m);
    *out = (struct summed){.row = m->folding.out,
                           .segments = m->segments,
                           .content = m->content + m->segments,
                           .stack_ticks = m->stack_ticks,
                           .shares = m->shares,
                           .hosts = m->hosts,
                           .host_count = m->host_count};
    out->row.ticks = m->ticks;
    out->row.calls = m->calls;
    return status;
}

enum profd_status sums_finish(struct sums *r, struct summed *out, struct profd_error *e)
{
    enum profd_status status = PROFD_OK;
    for (size_t i = 0; status == PROFD_OK && i < r->n; i++) {
        status = finish(r, i, &out[i], e);
    }
    return status;
}

enum profd_status sums_read(const struct plan *p, const struct plan_ref *refs, size_t n, bool spread, struct arena *a,
                            struct summed *out, struct profd_error *e)
{
    struct sums *r = NULL;
    bool more = n > 0;
    enum profd_status status = n > 0 ? sums_open(p, refs, n, spread, a, &r, e) : PROFD_OK;
    while (status == PROFD_OK && more) {
        status = sums_step(r, &more, e);
    }
    if (status == PROFD_OK && n > 0) {
        status = sums_finish(r, out, e);
    }
    sums_close(r);
    return status;
}
