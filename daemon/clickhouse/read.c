/* Rows for readers: rollups as they are stored, and sums of the segments of other hours, by ascending commit. */
#include <stdlib.h>
#include <string.h>

#include "clickhouse/host_totals.h"
#include "clickhouse/segment_sums.h"
#include "core/sum.h"
#include "proto/varint.h"

#define BATCH_BYTES (32u << 20) /* of rollups that are asked for at once, about */
#define BATCH_FIRST 32u         /* rollups, before it is known how long they are */
#define BATCH_MOST 1024u
#define ROWS_BYTES (32u << 20) /* of rows of rollups that a handle remembers */
#define BATCH_SLICES 256u      /* sums that are made at once */
#define BATCH_SEGMENTS 8192u

/* Slots of a user's hosts that were given; greater ones than SLOTS_SEEN are given again. */
#define SLOTS_SEEN (1u << 20)
struct seen_hosts {
    struct seen_hosts *next;
    uint32_t uid;
    uint8_t given[SLOTS_SEEN / 8];
};

struct giving {
    struct plan *p;
    row_sink *each;
    void *context;
    struct host_slots hosts;
    struct seen_hosts *seen;
    struct arena *arena;  /* of a batch */
    uint32_t rolled_most; /* rollups in a batch */
    const uint8_t *set;   /* hosts of the row before, as they are stored, */
    uint32_t set_uid;
    size_t set_size;
    const char *const *names; /* and as they are given */
    size_t name_count;
};

/* Rows of the plan that are read at once. */
struct batch {
    const struct plan_ref *refs;
    size_t n;
    struct store_row *rows;
    struct summed *sums;
    struct hashmap places;   /* of rollups: index of the hour → index of the row */
    struct row_reader reply; /* which rows borrow from */
};

/* A number that differs for different numbers, most likely. */
static uint64_t mix(uint64_t a, uint64_t b)
{
    uint64_t n = a ^ (b + UINT64_C(0x9e3779b97f4a7c15)); /* the finalizer of SplitMix64 */
    n = (n ^ n >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    n = (n ^ n >> 27) * UINT64_C(0x94d049bb133111eb);
    return n ^ n >> 31;
}

/* The row of a ref, without what was counted. */
static struct store_row begin_row(const struct plan *p, const struct plan_ref *ref)
{
    const struct plan_hour *h = &p->hours[ref->hour];
    const struct plan_series *x = &p->series[h->series];
    struct store_row row = plan_begin_row(x);
    const uint64_t place = (uint64_t)h->hour << 32 | ref->minutes << 16 | ref->at << 1 | ref->rolled;
    row.commit = ref->commit;
    row.id = mix(mix(x->number, x->generation), place);
    row.width = ref->minutes * PLAN_MINUTE;
    return row;
}

/* Leaves the slots that were not given to the user before, if the filter wants each once. */
static enum profd_status leave_new(struct giving *g, uint32_t uid, uint32_t *slots, size_t *n, struct profd_error *e)
{
    struct seen_hosts *seen = g->seen;
    size_t kept = 0;
    while (seen && seen->uid != uid) {
        seen = seen->next;
    }
    if (!seen) {
        seen = ARENA_NEW(g->p->arena, struct seen_hosts);
        if (!seen) {
            return profd_no_memory(e);
        }
        seen->uid = uid;
        seen->next = g->seen;
        g->seen = seen;
    }
    for (size_t i = 0; i < *n; i++) {
        const uint32_t slot = slots[i];
        const uint8_t bit = (uint8_t)(1u << slot % 8);
        slots[kept] = slot;
        kept += slot >= SLOTS_SEEN || !(seen->given[slot / 8] & bit);
        if (slot < SLOTS_SEEN) {
            seen->given[slot / 8] |= bit;
        }
    }
    *n = kept;
    return PROFD_OK;
}

static enum profd_status name_slots(struct giving *g, uint32_t *slots, size_t n, struct store_row *row,
                                    struct profd_error *e)
{
    enum profd_status status = g->p->filter->hosts_once ? leave_new(g, row->uid, slots, &n, e) : PROFD_OK;
    const char **names = status == PROFD_OK ? ARENA_ARRAY(g->arena, n + 1, const char *) : NULL;
    status = status == PROFD_OK && !names ? profd_no_memory(e) : status;
    for (size_t i = 0; status == PROFD_OK && i < n; i++) {
        const struct host_slot *host = NULL;
        status = host_slots_find(&g->hosts, slots[i], &host, e);
        names[i] = host ? host->identity : "";
    }
    row->hosts = names;
    row->host_count = n;
    return status;
}

/* The hosts of a rollup. Adjacent ones often have the same. */
static enum profd_status name_set(struct giving *g, const uint8_t *set, size_t size, struct store_row *row,
                                  struct profd_error *e)
{
    const int64_t *slots;
    size_t n;
    if (g->set && g->set_uid == row->uid && g->set_size == size && memcmp(g->set, set, size) == 0) {
        row->hosts = g->names;
        row->host_count = g->p->filter->hosts_once ? 0 : g->name_count;
        return PROFD_OK;
    }
    enum profd_status status = folded_decode_hosts(g->arena, set, size, &slots, &n, e);
    uint32_t *numbers = status == PROFD_OK ? ARENA_ARRAY(g->arena, n + 1, uint32_t) : NULL;
    if (!numbers) {
        return status == PROFD_OK ? profd_no_memory(e) : status;
    }
    for (size_t i = 0; i < n; i++) {
        numbers[i] = (uint32_t)slots[i];
    }
    status = name_slots(g, numbers, n, row, e);
    g->set = set;
    g->set_uid = row->uid;
    g->set_size = size;
    g->names = row->hosts;
    g->name_count = row->host_count;
    return status;
}

static void set_processes(struct store_row *row, const uint64_t *of, size_t n)
{
    bool stopped = false;
    for (size_t i = 0; i < n && i < RANDOM_GROUPS; i++) {
        row->groups.of[i] = of[i];
        sum_add(&row->processes_started, of[i], &stopped);
    }
}

/* Which columns a row that is read has of the spread. */
enum spread_kind { SPREAD_NONE, SPREAD_STACKS, SPREAD_ALL };

static enum spread_kind wanted_spread(const struct giving *g)
{
    const struct store_filter *f = g->p->filter;
    return f->spread ? SPREAD_ALL : f->stack_spread ? SPREAD_STACKS : SPREAD_NONE;
}

/* What identifies a rollup, as the first columns of a reply, and what is read of it. */
struct rollup_key {
    uint8_t hash[ENGINE_SERIES_SIZE];
    uint32_t hour, generation;
    uint64_t version, segments, uploads;
    uint64_t spread; /* enum spread_kind: there is no padding */
};
#define KEY_COLUMNS "series, hour, generation, version, segments, uploads"

static struct rollup_key read_key(struct row_reader *rows, enum spread_kind spread)
{
    struct rollup_key key;
    memset(&key, 0, sizeof key);
    rows_fixed(rows, key.hash, sizeof key.hash);
    key.hour = rows_u32(rows);
    key.generation = rows_u32(rows);
    key.version = rows_u64(rows);
    key.segments = rows_u64(rows);
    key.uploads = rows_u64(rows);
    key.spread = spread;
    return key;
}

/* The row of a rollup that the plan has; NULL: of none of the batch. */
static struct store_row *find_place(const struct giving *g, const struct batch *b, const struct rollup_key *key)
{
    const struct plan *p = g->p;
    const struct plan_series *x = plan_find_series(p, key->hash);
    const uint32_t at = x && x->generation == key->generation ? plan_find_hour(p, x, key->hour) : PLAN_NONE;
    const size_t *place = at == PLAN_NONE ? NULL : hashmap_find(&b->places, &at, sizeof at);
    return place ? &b->rows[*place] : NULL;
}

/* Takes the next rollup, of which the columns end with that spread. Of several of an hour the newest comes first.
 * *taken: it is one of the batch. */
static enum profd_status take_rollup(struct giving *g, const struct batch *b, struct row_reader *rows,
                                     enum spread_kind has, bool *taken, struct profd_error *e)
{
    size_t n, set_size;
    const struct rollup_key key = read_key(rows, has);
    const uint64_t *processes = rows_array_u64(rows, g->arena, &n);
    const int64_t first = rows_i64(rows), last = rows_i64(rows);
    const uint32_t inexact = rows_u32(rows);
    const uint8_t *set = (const uint8_t *)rows_string(rows, &set_size);
    size_t counts_size, spread_size = 0;
    const char *counts = rows_string(rows, &counts_size), *spread = NULL;
    if (has != SPREAD_NONE) {
        spread = rows_string(rows, &spread_size);
    }
    if (rows->cut || !processes) {
        return rows->cut ? engine_rows_check(rows, "rollups", e) : profd_no_memory(e);
    }
    struct store_row *row = find_place(g, b, &key);
    *taken = row && !row->counts;
    if (!*taken) {
        return PROFD_OK;
    }
    row->version = mix(mix(key.version, key.segments), key.uploads);
    row->uploads = key.uploads;
    row->start = first;
    row->end = last;
    row->inexact = inexact;
    row->counts = (const uint8_t *)counts;
    row->counts_size = counts_size;
    if (wanted_spread(g) != SPREAD_NONE && spread_size > 0) {
        row->spread = (const uint8_t *)spread;
        row->spread_size = spread_size;
        row->of_stacks = has == SPREAD_STACKS;
    }
    set_processes(row, processes, n);
    return name_set(g, set, set_size, row, e);
}

/* Asks for columns of the rollups of the batch that have not been read. */
static enum profd_status ask_rollups(struct giving *g, const struct batch *b, const char *columns,
                                     struct row_reader *reply, struct profd_error *e)
{
    const struct plan *p = g->p;
    struct buffer *s = &p->s->statement;
    uint32_t from = UINT32_MAX, to = 0;
    bool *wanted = ARENA_ARRAY(g->arena, p->series_count, bool);
    if (!wanted) {
        return profd_no_memory(e);
    }
    for (size_t i = 0; i < b->n; i++) {
        const struct plan_hour *h = &p->hours[b->refs[i].hour];
        if (b->refs[i].rolled && !b->rows[i].counts) {
            wanted[h->series] = true;
            from = h->hour < from ? h->hour : from;
            to = h->hour > to ? h->hour : to;
        }
    }
    engine_begin(p->s);
    buffer_add_format(s, "SELECT " KEY_COLUMNS "%s FROM rollup WHERE ", columns);
    plan_put_series(p, wanted, s);
    buffer_add_format(s, " AND hour >= %u AND hour <= %u ORDER BY hour, series, version DESC", from, to);
    return engine_query_printed(p->s, reply, e);
}

/* Takes a rollup that the handle remembers; what it has beside what is wanted is left. */
static enum profd_status take_known(struct giving *g, const struct batch *b, struct rollup_key *key, bool *taken,
                                    struct profd_error *e)
{
    const uint32_t *size = NULL;
    for (; !size && key->spread <= SPREAD_ALL; key->spread += !size) {
        size = hashmap_find(&g->p->s->rows, key, sizeof *key);
    }
    if (!size) {
        return PROFD_OK;
    }
    struct row_reader bytes = {.at = (const uint8_t *)(size + 1)};
    bytes.end = bytes.at + *size;
    return take_rollup(g, b, &bytes, (enum spread_kind)key->spread, taken, e);
}

/* An hour of a series of which the handle remembers a rollup. */
struct row_hour {
    uint8_t hash[ENGINE_SERIES_SIZE];
    uint32_t hour;
};

static struct row_hour make_row_hour(const uint8_t hash[ENGINE_SERIES_SIZE], uint32_t hour)
{
    struct row_hour key = {.hour = hour};
    memcpy(key.hash, hash, sizeof key.hash);
    return key;
}

/* Does the handle remember a rollup of the batch? */
static bool remembers_any(const struct giving *g, const struct batch *b)
{
    const struct plan *p = g->p;
    bool any = false;
    for (size_t i = 0; i < b->n && !any; i++) {
        const struct plan_hour *h = &p->hours[b->refs[i].hour];
        const struct row_hour key = make_row_hour(p->series[h->series].hash, h->hour);
        any = b->refs[i].rolled && hashmap_find(&p->s->row_hours, &key, sizeof key);
    }
    return any;
}

/* Takes the rollups of the batch that the handle remembers. *left: how many it does not. */
static enum profd_status take_remembered(struct giving *g, const struct batch *b, size_t *left, struct profd_error *e)
{
    bool *met = ARENA_ARRAY(g->arena, b->n, bool); /* only the newest of an hour counts */
    struct row_reader keys;
    *left = b->places.count;
    if (!met || !remembers_any(g, b)) {
        return met ? PROFD_OK : profd_no_memory(e);
    }
    enum profd_status status = ask_rollups(g, b, "", &keys, e);
    if (status != PROFD_OK) {
        return status;
    }
    while (status == PROFD_OK && rows_more(&keys)) {
        bool taken = false;
        struct rollup_key key = read_key(&keys, wanted_spread(g));
        const struct store_row *row = keys.cut ? NULL : find_place(g, b, &key);
        if (row && !met[row - b->rows]) {
            met[row - b->rows] = true;
            status = take_known(g, b, &key, &taken, e);
        }
        *left -= taken;
    }
    status = status == PROFD_OK ? engine_rows_check(&keys, "rollups", e) : status;
    rows_close(&keys);
    return status;
}

/* Remembers a row that was read, if there is memory for it. */
static void remember(const struct giving *g, const uint8_t *at, const uint8_t *end)
{
    struct row_reader bytes = {.at = at, .end = end};
    const struct rollup_key key = read_key(&bytes, wanted_spread(g));
    struct hashmap *known = &g->p->s->rows;
    const uint32_t size = (uint32_t)(end - at);
    if (known->bytes + size > ROWS_BYTES || g->p->s->base.partial || hashmap_find(known, &key, sizeof key)) {
        return;
    }
    uint8_t *copy = malloc(sizeof size + size);
    if (copy) {
        memcpy(copy, &size, sizeof size);
        memcpy(copy + sizeof size, at, size);
        const struct row_hour hour = make_row_hour(key.hash, key.hour);
        if (hashmap_put(&g->p->s->row_hours, &hour, sizeof hour, "", 1)) {
            (void)hashmap_put(known, &key, sizeof key, copy, sizeof size + size);
        }
    }
    free(copy);
}

/* Reads those that are left. */
static enum profd_status take_rollups(struct giving *g, struct batch *b, size_t left, struct profd_error *e)
{
    static const char *const columns[] = {[SPREAD_NONE] = ", processes, first, last, inexact, hosts, counts",
                                          [SPREAD_STACKS] =
                                              ", processes, first, last, inexact, hosts, counts, stack_spread",
                                          [SPREAD_ALL] = ", processes, first, last, inexact, hosts, counts, spread"};
    enum profd_status status = ask_rollups(g, b, columns[wanted_spread(g)], &b->reply, e);
    if (status == PROFD_OK) {
        const size_t each = (size_t)(b->reply.end - b->reply.at) / left + 1;
        const size_t fit = BATCH_BYTES / each;
        g->rolled_most = (uint32_t)(fit < 1 ? 1 : fit > BATCH_MOST ? BATCH_MOST : fit);
    }
    while (status == PROFD_OK && rows_more(&b->reply)) {
        bool taken = false;
        const uint8_t *at = b->reply.at;
        status = take_rollup(g, b, &b->reply, wanted_spread(g), &taken, e);
        if (taken && status == PROFD_OK) {
            remember(g, at, b->reply.at);
        }
    }
    return status;
}

/* Reads the rollups of a batch. */
static enum profd_status read_rollups(struct giving *g, struct batch *b, struct profd_error *e)
{
    enum profd_status status = PROFD_OK;
    size_t left = 0;
    for (size_t i = 0; status == PROFD_OK && i < b->n; i++) {
        if (b->refs[i].rolled && !hashmap_put(&b->places, &b->refs[i].hour, sizeof b->refs[i].hour, &i, sizeof i)) {
            status = profd_no_memory(e);
        }
    }
    if (status != PROFD_OK || b->places.count == 0) {
        return status;
    }
    if (g->p->s->rows.bytes > ROWS_BYTES / 8 * 7) {
        hashmap_clear(&g->p->s->rows); /* only here: rows of a batch may be of it */
        hashmap_clear(&g->p->s->row_hours);
    }
    status = take_remembered(g, b, &left, e);
    if (status == PROFD_OK && left > 0) {
        status = take_rollups(g, b, left, e);
    }
    for (size_t i = 0; status == PROFD_OK && i < b->n; i++) {
        if (b->refs[i].rolled && !b->rows[i].counts) {
            status = profd_error_set(e, PROFD_BUSY, "store: a rollup of hour %u was removed while it was to be read",
                                     g->p->hours[b->refs[i].hour].hour);
        }
    }
    return status;
}

/* Takes over the block. */
static const uint8_t *keep_bytes(struct arena *a, uint8_t *bytes, size_t n)
{
    const char *copy = arena_copy(a, (const char *)bytes, n);
    free(bytes);
    return (const uint8_t *)copy;
}

/* A sum of segments as a row. */
static enum profd_status encode_sum(struct giving *g, const struct summed *from, struct store_row *row,
                                    struct profd_error *e)
{
    uint8_t *bytes;
    enum profd_status status = rollup_encode(&from->row.counts, &bytes, &row->counts_size, e);
    if (status == PROFD_OK) {
        row->counts = keep_bytes(g->arena, bytes, row->counts_size);
        status = row->counts ? PROFD_OK : profd_no_memory(e);
    }
    const enum spread_kind kind = wanted_spread(g);
    row->of_stacks = kind == SPREAD_STACKS;
    if (status == PROFD_OK && (kind == SPREAD_ALL || (kind == SPREAD_STACKS && from->row.counts.tree_count > 0))) {
        status = (kind == SPREAD_ALL ? rollup_encode_spread : rollup_encode_stack_spread)(
            &from->row.counts, &from->row.spread, &bytes, &row->spread_size, e);
        row->spread = status == PROFD_OK ? keep_bytes(g->arena, bytes, row->spread_size) : NULL;
        status = status == PROFD_OK && !row->spread ? profd_no_memory(e) : status;
    }
    row->version = from->content;
    row->uploads = from->row.uploads;
    row->start = from->row.first;
    row->end = from->row.last;
    row->inexact = from->row.inexact;
    row->processes_started = from->row.processes;
    row->groups = from->row.groups;
    return status == PROFD_OK ? name_slots(g, from->hosts, from->host_count, row, e) : status;
}

/* Adds up the segments of a batch. */
static enum profd_status read_sums(struct giving *g, struct batch *b, struct profd_error *e)
{
    struct plan_ref *open = ARENA_ARRAY(g->arena, b->n + 1, struct plan_ref);
    size_t n = 0;
    b->sums = ARENA_ARRAY(g->arena, b->n + 1, struct summed);
    if (!open || !b->sums) {
        return profd_no_memory(e);
    }
    for (size_t i = 0; i < b->n; i++) {
        open[n] = b->refs[i];
        n += !b->refs[i].rolled;
    }
    enum profd_status status = sums_read(g->p, open, n, wanted_spread(g) != SPREAD_NONE, g->arena, b->sums, e);
    n = 0;
    for (size_t i = 0; status == PROFD_OK && i < b->n; i++) {
        if (!b->refs[i].rolled) {
            status = encode_sum(g, &b->sums[n++], &b->rows[i], e);
        }
    }
    return status;
}

/* How many rows from refs on are read at once. */
static size_t measure_batch(const struct giving *g, const struct plan_ref *refs, size_t n)
{
    size_t i = 0;
    uint64_t rolled = 0, slices = 0, segments = 0;
    for (; i < n; i++) {
        rolled += refs[i].rolled;
        slices += !refs[i].rolled;
        segments += refs[i].segments;
        if (i > 0 && (rolled > g->rolled_most || slices > BATCH_SLICES || segments > BATCH_SEGMENTS)) {
            break;
        }
    }
    return i;
}

static enum profd_status give_batch(struct giving *g, const struct plan_ref *refs, size_t n, struct profd_error *e)
{
    struct batch b = {.refs = refs, .n = n};
    arena_reset(g->arena);
    g->set = NULL;
    b.rows = ARENA_ARRAY(g->arena, n, struct store_row);
    if (!b.rows) {
        return profd_no_memory(e);
    }
    hashmap_init(&b.places, 0);
    for (size_t i = 0; i < n; i++) {
        b.rows[i] = begin_row(g->p, &refs[i]);
    }
    enum profd_status status = read_rollups(g, &b, e);
    if (status == PROFD_OK) {
        status = read_sums(g, &b, e);
    }
    for (size_t i = 0; status == PROFD_OK && i < n; i++) {
        status = g->each(g->context, &b.rows[i], e);
    }
    hashmap_clear(&b.places);
    rows_close(&b.reply);
    return status;
}

static enum profd_status give_rows(struct giving *g, struct profd_error *e)
{
    enum profd_status status = PROFD_OK;
    for (size_t i = 0; status == PROFD_OK && i < g->p->ref_count;) {
        const size_t n = measure_batch(g, g->p->refs + i, g->p->ref_count - i);
        status = give_batch(g, g->p->refs + i, n, e);
        i += n;
    }
    return status == PROFD_OK ? totals_read(g->p, &g->hosts, g->each, g->context, e) : status;
}

/* Plans what a filter selects, with all of its hours. */
static enum profd_status plan_all(struct plan *p, struct clickhouse_store *s, const struct store_scope *scope,
                                  const struct store_filter *filter, struct profd_error *e)
{
    uint32_t first, last;
    enum profd_status status = plan_init(p, s, scope, filter, e);
    if (status == PROFD_OK && plan_window(p, &first, &last)) {
        status = plan_find_hours(p, first, last, e);
    }
    return status == PROFD_OK ? plan_find_refs(p, e) : status;
}

enum profd_status engine_each_upload(struct store *base, const struct store_scope *scope,
                                     const struct store_filter *filter, row_sink *each, void *context,
                                     struct profd_error *e)
{
    struct plan p;
    struct giving g = {.p = &p, .each = each, .context = context, .arena = arena_new(0), .rolled_most = BATCH_FIRST};
    enum profd_status status = plan_all(&p, engine_self(base), scope, filter, e);
    if (status == PROFD_OK) {
        status = g.arena ? plan_find_names(&p, e) : profd_no_memory(e);
    }
    host_slots_init(&g.hosts, engine_self(base), p.arena);
    if (status == PROFD_OK) {
        status = give_rows(&g, e);
    }
    host_slots_done(&g.hosts);
    arena_free(g.arena);
    plan_done(&p);
    return status;
}

/* Adds the hour of a limit, if the limit is inside it. */
static enum profd_status find_edge(struct plan *p, int64_t edge, struct profd_error *e)
{
    const uint32_t hour = (uint32_t)(edge / ENGINE_HOUR);
    return edge > 0 && edge % ENGINE_HOUR != 0 && (p->hour_count == 0 || p->hours[0].hour != hour)
               ? plan_find_hours(p, hour, hour, e)
               : PROFD_OK;
}

enum profd_status engine_get_range(struct store *base, const struct store_scope *scope,
                                   const struct store_filter *filter, int64_t *since, int64_t *until,
                                   struct profd_error *e)
{
    struct plan p = {.arena = NULL};
    const bool moves = filter->since % ENGINE_HOUR > 0 || filter->until % ENGINE_HOUR > 0;
    enum profd_status status = moves ? plan_init(&p, engine_self(base), scope, filter, e) : PROFD_OK;
    if (status == PROFD_OK && moves) {
        status = find_edge(&p, filter->since, e);
    }
    if (status == PROFD_OK && moves) {
        status = find_edge(&p, filter->until, e);
    }
    if (status == PROFD_OK && moves) {
        status = plan_find_refs(&p, e);
    }
    if (status == PROFD_OK) {
        *since = moves ? p.since : filter->since;
        *until = moves ? p.until : filter->until;
    }
    if (moves) {
        plan_done(&p);
    }
    return status;
}
