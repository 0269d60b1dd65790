/* Stored uploads and sums become one profile: single uploads, sums that are added up by blocks of hours or days, and
 * the shares of the random groups. */
#include <stdlib.h>
#include <string.h>

#include "core/rollup.h"
#include "proto/collector.h"
#include "proto/message.h"
#include "query/query_internal.h"

const char *row_find_label(const struct store_row *row, const char *name)
{
    for (size_t i = 0; i < row->label_count; i++) {
        if (strcmp(row->labels[i].name, name) == 0) {
            return row->labels[i].value;
        }
    }
    return "";
}

enum profd_status row_decode_counts(const struct store_row *row, struct arena *a, struct counts *out,
                                    struct profd_error *e)
{
    const uint32_t builds = (uint32_t)row->build_count;
    arena_reset(a);
    const enum profd_status status = row->rolled
                                         ? rollup_decode(a, row->counts, row->counts_size, builds, false, out, e)
                                         : rollup_decode_upload(a, row->counts, row->counts_size, builds, out, e);
    /* The row's number counts the uploads of all users: it is not for every reader. profctl verify names the row. */
    return !status ? status
                   : profd_error_wrap(e, status == PROFD_NO_MEMORY ? status : PROFD_DAMAGED,
                                      "a stored %s cannot be read", row->rolled ? "sum" : "upload");
}

/* Cached sums, by what they are the sum of. */

struct cached_sum {
    struct lru_entry lru;
    struct counts r;  /* its arrays are in the same block */
    uint64_t *shares; /* of its nodes by group; NULL: they were not asked for */
};

struct query_cache {
    uint64_t found, missed;
    struct lru lru;
};

struct query_cache *query_cache_new(size_t limit, const struct query_lock *lock)
{
    struct query_cache *c = calloc(1, sizeof *c);
    if (c) {
        lru_init(&c->lru, limit, SIZE_MAX, lock);
    }
    return c;
}

void query_cache_free(struct query_cache *c)
{
    if (c) {
        lru_clear(&c->lru);
    }
    free(c);
}

struct query_cache_use query_cache_measure(struct query_cache *c)
{
    lru_lock(&c->lru);
    struct query_cache_use use = {c->found, c->missed, c->lru.bytes, c->lru.entries};
    lru_unlock(&c->lru);
    return use;
}

/* Keeps a copy under the key, unless there is one or it would take more than a quarter of the limit. A failure is
 * silent: nothing is kept. */
static void cache_put(struct query_cache *c, const void *key, size_t key_size, const struct counts *r,
                      const uint64_t *shares)
{
    const size_t rows[COUNTS_KINDS] = {r->histogram_count, r->bin_count, r->arc_count, r->tree_count, r->node_count};
    const size_t share_bytes = shares ? (size_t)r->node_count * TREE_GROUPS * sizeof *shares : 0;
    size_t size = sizeof(struct cached_sum) + share_bytes, at = sizeof(struct cached_sum);
    for (const struct counts_column *k = counts_columns; k < counts_columns + COUNTS_COLUMNS; k++) {
        size += (rows[k->kind] * k->size + 7) & ~(size_t)7; /* arrays begin at multiples of 8 */
    }
    char *block = size <= c->lru.limit / 4 ? malloc(size) : NULL;
    struct cached_sum *entry = (struct cached_sum *)(void *)block;
    if (entry) {
        *entry = (struct cached_sum){.r = *r, .shares = shares ? (uint64_t *)(void *)(block + at) : NULL};
        if (share_bytes > 0) {
            memcpy(block + at, shares, share_bytes);
        }
        at += share_bytes;
        for (const struct counts_column *k = counts_columns; k < counts_columns + COUNTS_COLUMNS; k++) {
            const size_t bytes = rows[k->kind] * k->size;
            if (bytes > 0) {
                memcpy(block + at, counts_column_of(r, k), bytes);
            }
            counts_column_set(&entry->r, k, block + at);
            at += (bytes + 7) & ~(size_t)7;
        }
    }
    lru_lock(&c->lru);
    c->missed++;
    /* Another reader may have put the same sum meanwhile. */
    const bool kept = entry && lru_find(&c->lru, key, key_size) == NULL && lru_put(&c->lru, key, key_size, entry, size);
    lru_unlock(&c->lru);
    if (!kept) {
        free(entry);
    }
}

/* One load. Single uploads are added to the sum as they come. Rows that are sums already, the rolled ones, are added up
 * by blocks of hours or days, and what was added up is kept in the cache for the next question. */

#define HOUR INT64_C(3600000000000)
#define DAY (24 * HOUR)
/* As many hours, or days, make a block, which is added up and kept as one. Blocks are aligned: a window that moves on
 * finds most of them again, and a new day or a late upload makes only one of them out of date. */
#define ROLLED_HOURS 6u
#define ROLLED_DAYS 8u
#define ROLLED_WAITING ((size_t)64 << 20) /* encoded bytes that wait for the rest of their block */

/* A rolled row that waits for its block. */
struct waiting {
    uint32_t group, sequence;
    int64_t width, block;
    uint64_t id, version;
    const void *bytes, *spread;
    size_t size, spread_size;
};

/* Series that map alike are added up in their own numbers of builds. */
struct rolled_group {
    const uint32_t *map;
    uint32_t builds;
    struct rollup_sum *sum;
    struct counts total;
};

/* The same with shares, for bins and arcs by random group. */
struct sharing {
    const uint32_t *map;
    struct counts first; /* the first sum, with its spread: often the only one */
    struct counts_shares first_spread;
    bool any;
    struct rollup_sum *sums;                  /* of all sums; NULL: there is at most one */
    struct rollup_sum *groups[RANDOM_GROUPS]; /* of the uploads of each group; likewise */
};

struct profile_load {
    const struct load_request *request;
    struct arena *arena;
    struct profile_sum *sum;
    struct set series, hosts, host_labels, users, *rows;
    const uint32_t **maps; /* per series: the sum's index of each build of its uploads */
    uint32_t map_capacity;
    const char **names; /* per build of the sum */
    uint32_t name_capacity;
    struct provenance provenance;
    /* rolled rows */
    struct arena *bytes, *scratch, *block; /* of waiting rows; of one that is decoded; of a block's sum */
    struct set group_maps;
    struct rolled_group *groups; /* by number of group_maps */
    uint32_t group_capacity;
    struct waiting *waiting;
    uint32_t waiting_count, waiting_capacity;
    /* shares, in the request's arena */
    struct set sharing_maps;
    struct sharing *sharings; /* by number of sharing_maps */
    uint32_t sharing_capacity;
};

/* A sum's row for its shares, which are of bins and arcs. */
static enum profd_status decode_sum(struct arena *a, const struct store_row *row, struct counts *r,
                                    struct counts_shares *spread, struct profd_error *e)
{
    enum profd_status status = rollup_decode(a, row->counts, row->counts_size, (uint32_t)row->build_count, false, r, e);
    if (!status) {
        status = rollup_decode_spread(a, r, row->spread, row->spread_size, spread, e);
    }
    r->tree_count = r->node_count = 0;
    return !status ? status : profd_error_wrap(e, status, "a stored sum cannot be read");
}

/* Adds a row that was read with its spread to the shares; map as for profile_sum_add, and as long-lived as the load.
 * Sums without spread take an eighth of the memory: an upload is of one group. DAMAGED names the rule. */
static enum profd_status add_shares(struct profile_load *l, const struct store_row *row, const uint32_t *map,
                                    struct profd_error *e)
{
    struct arena *a = l->request->shares;
    bool added;
    const uint32_t number = set_add(&l->sharing_maps, map, row->build_count * sizeof *map, &added);
    if (added) {
        l->sharings = arena_extend(a, l->sharings, number, &l->sharing_capacity, sizeof *l->sharings);
        l->sharings[number] = (struct sharing){.map = map};
    }
    struct sharing *s = &l->sharings[number];
    if (!row->rolled) {
        struct counts c;
        struct rollup_sum **sum = &s->groups[row->group % RANDOM_GROUPS];
        *sum = *sum != NULL ? *sum : rollup_sum_new_plain(a);
        TRY(row_decode_counts(row, l->scratch, &c, e));
        c.tree_count = c.node_count = 0;
        return rollup_sum_add_upload(*sum, &c, row->commit, 0, e);
    }
    if (!row->spread) {
        return PROFD_OK;
    }
    if (!s->any) {
        s->any = true;
        return decode_sum(a, row, &s->first, &s->first_spread, e);
    }
    struct counts r;
    struct counts_shares spread;
    if (!s->sums) {
        s->sums = rollup_sum_new(a);
        TRY(rollup_sum_add(s->sums, &s->first, &s->first_spread, e));
    }
    arena_reset(l->scratch);
    TRY(decode_sum(l->scratch, row, &r, &spread, e));
    return rollup_sum_add(s->sums, &r, &spread, e);
}

/* All rows were added, and p is their sum: its shares. */
static enum profd_status finish_shares(struct profile_load *l, const struct profile *p, struct shares *out,
                                       struct profd_error *e)
{
    const bool alone = l->request->alone, one = l->sharing_maps.count == 1;
    struct counts r;
    struct counts_shares spread;
    const struct sharing *s = l->sharings;
    bool uploads = false;
    for (uint32_t g = 0; one && g < RANDOM_GROUPS; g++) {
        uploads |= s->groups[g] != NULL;
    }
    /* The rows of the only sum's spread can be the shares as they are. */
    const bool as_they_are = one && !uploads && s->any && !s->sums && shares_has_arcs(p, &s->first, s->map, alone);
    shares_new(l->request->shares, p, as_they_are ? s->first_spread.arcs : NULL, out);
    for (uint32_t i = 0; i < l->sharing_maps.count; i++) {
        s = &l->sharings[i];
        if (s->sums) {
            TRY(rollup_sum_finish(s->sums, &r, &spread, e));
            shares_add(out, &r, &spread, 0, s->map, alone);
        } else if (s->any) {
            shares_add(out, &s->first, &s->first_spread, 0, s->map, alone);
        }
        for (uint32_t g = 0; g < RANDOM_GROUPS; g++) {
            if (s->groups[g]) {
                TRY(rollup_sum_finish(s->groups[g], &r, NULL, e));
                shares_add(out, &r, NULL, g, s->map, alone);
            }
        }
    }
    return PROFD_OK;
}

/* What a block has: histograms or only arcs, no stacks, stacks, or these by group, too. */
enum content { CONTENT_PLAIN, CONTENT_STACKS, CONTENT_SHARES };

/* The key of a block: what it is the sum of, and what it has. */
static uint64_t *make_key(struct profile_load *l, const struct waiting *rows, uint32_t n, bool arcs_only,
                          enum content content)
{
    uint64_t *key = ARENA_ARRAY(l->block, 2 * (size_t)n + 1, uint64_t);
    key[0] = (uint64_t)content << 1 | arcs_only;
    for (uint32_t i = 0; i < n; i++) {
        key[2 * i + 1] = rows[i].id;
        key[2 * i + 2] = rows[i].version;
    }
    return key;
}

/* Adds a finished block to its group, and its stacks to the sum. */
static enum profd_status join_block(struct profile_load *l, const struct rolled_group *group,
                                    const struct counts *total, const uint64_t *shares, struct profd_error *e)
{
    ARENA_BOUNDARY(l->arena, profd_no_memory(e)); /* the cache may be locked */
    struct counts rows = *total;
    if (l->request->stacks != LOAD_STACKS_NONE) {
        const struct tree_addend stacks = {.list = {total->trees, COUNTS_NODES(total), total->tree_count},
                                           .map = group->map,
                                           .alone = l->request->alone,
                                           .group = TREE_GROUPS,
                                           .shares = shares};
        TRY(profile_sum_add_stacks(l->sum, &stacks, UINT64_MAX, e));
    }
    rows.tree_count = rows.node_count = 0;
    return rollup_sum_add(group->sum, &rows, NULL, e);
}

/* Adds up a block that is not in the cache, and keeps it there. */
static enum profd_status add_fresh(struct profile_load *l, const struct waiting *rows, uint32_t n, const uint64_t *key,
                                   struct profd_error *e)
{
    const struct rolled_group *group = &l->groups[rows[0].group];
    const bool with_stacks = l->request->stacks != LOAD_STACKS_NONE;
    struct rollup_sum *sum = rollup_sum_new_plain(l->block);
    struct tree_sum *trees = with_stacks ? tree_sum_new(l->block, l->request->stacks == LOAD_STACKS_SHARES) : NULL;
    struct counts total;
    struct tree_total stacks = {0};
    for (const struct waiting *row = rows; row < rows + n; row++) {
        struct counts decoded;
        struct counts_shares spread = {0};
        arena_reset(l->scratch);
        enum profd_status status =
            rollup_decode(l->scratch, row->bytes, row->size, group->builds, l->request->arcs_only, &decoded, e);
        if (!status && row->spread && decoded.tree_count > 0) { /* the groups of stacks only */
            status = rollup_decode_spread(l->scratch, &decoded, row->spread, row->spread_size, &spread, e);
        }
        if (status) {
            return profd_error_wrap(e, status, "a stored sum cannot be read");
        }
        if (trees) {
            const struct tree_addend addend = {.list = {decoded.trees, COUNTS_NODES(&decoded), decoded.tree_count},
                                               .group = TREE_GROUPS,
                                               .shares = spread.nodes};
            TRY(tree_sum_add(trees, &addend, e));
        }
        decoded.tree_count = decoded.node_count = 0;
        TRY(rollup_sum_add(sum, &decoded, NULL, e));
    }
    TRY(rollup_sum_finish(sum, &total, NULL, e));
    if (trees) {
        TRY(tree_sum_finish(trees, &stacks, &total.saturated, e));
    }
    total.tree_count = stacks.tree_count;
    total.node_count = stacks.node_count;
    total.trees = stacks.trees;
    total.node_depth = stacks.nodes.depth;
    total.node_kind = stacks.nodes.kind;
    total.node_build = stacks.nodes.build;
    total.node_address = stacks.nodes.address;
    total.node_ticks = stacks.nodes.ticks;
    if (l->request->cache) {
        cache_put(l->request->cache, key, (2 * (size_t)n + 1) * sizeof *key, &total, stacks.shares);
    }
    return join_block(l, group, &total, stacks.shares, e);
}

/* Adds n rows of one block of a group, from the cache if it is there. A sum that has more than is needed can also be
 * used. */
static enum profd_status add_block(struct profile_load *l, const struct waiting *rows, uint32_t n,
                                   struct profd_error *e)
{
    struct query_cache *cache = l->request->cache;
    const enum content wanted = l->request->stacks == LOAD_STACKS_SHARES ? CONTENT_SHARES
                                : l->request->stacks != LOAD_STACKS_NONE ? CONTENT_STACKS
                                                                         : CONTENT_PLAIN;
    const int last = !cache ? -1 : l->request->arcs_only ? 1 : 0;
    arena_reset(l->block);
    for (int arcs_only = 0; arcs_only <= last; arcs_only++) {
        for (enum content has = wanted; has <= CONTENT_SHARES; has++) {
            const uint64_t *key = make_key(l, rows, n, arcs_only == 1, has);
            enum profd_status status = PROFD_OK;
            lru_lock(&cache->lru);
            struct cached_sum *entry = lru_find(&cache->lru, key, (2 * (size_t)n + 1) * sizeof *key);
            if (entry) {
                cache->found++;
                lru_use(&cache->lru, entry);
                status = join_block(l, &l->groups[rows[0].group], &entry->r, entry->shares, e);
            }
            lru_unlock(&cache->lru);
            if (entry) {
                return status;
            }
        }
    }
    return add_fresh(l, rows, n, make_key(l, rows, n, l->request->arcs_only, wanted), e);
}

static int waiting_compare(const void *left, const void *right)
{
    const struct waiting *a = left, *b = right;
    if (a->group != b->group) {
        return a->group < b->group ? -1 : 1;
    }
    if (a->width != b->width) {
        return a->width < b->width ? -1 : 1;
    }
    if (a->block != b->block) {
        return a->block < b->block ? -1 : 1;
    }
    return a->sequence < b->sequence ? -1 : a->sequence > b->sequence;
}

/* Adds up everything that waits, block by block. */
static enum profd_status add_waiting(struct profile_load *l, struct profd_error *e)
{
    enum profd_status status = PROFD_OK;
    struct waiting *w = l->waiting;
    uint32_t n = l->waiting_count;
    if (n > 0) {
        qsort(w, n, sizeof *w, waiting_compare);
    }
    for (uint32_t i = 0; !status && i < n;) {
        uint32_t first = i;
        while (i < n && w[i].group == w[first].group && w[i].width == w[first].width && w[i].block == w[first].block) {
            i++;
        }
        status = add_block(l, w + first, i - first, e);
    }
    l->waiting_count = 0;
    arena_reset(l->bytes);
    return status;
}

/* Lets a sum's row wait for its block. map as for profile_sum_add, and as long-lived as the load; in alone mode,
 * COUNTS_NOWHERE stands for builds that are left out. */
static enum profd_status add_rolled(struct profile_load *l, const struct store_row *row, const uint32_t *map,
                                    struct profd_error *e)
{
    bool added;
    const uint32_t builds = (uint32_t)row->build_count;
    const uint32_t group = set_add(&l->group_maps, map, builds * sizeof *map, &added);
    if (added) {
        l->groups = arena_extend(l->arena, l->groups, group, &l->group_capacity, sizeof *l->groups);
        l->groups[group] = (struct rolled_group){.map = map, .builds = builds, .sum = rollup_sum_new_plain(l->arena)};
    }
    if (arena_used(l->bytes) + row->counts_size > ROLLED_WAITING) {
        TRY(add_waiting(l, e));
    }
    l->waiting = arena_extend(l->arena, l->waiting, l->waiting_count, &l->waiting_capacity, sizeof *l->waiting);
    const char *bytes = arena_copy(l->bytes, (const char *)row->counts, row->counts_size);
    const bool spread = l->request->stacks == LOAD_STACKS_SHARES && row->spread;
    const char *copy = spread ? arena_copy(l->bytes, (const char *)row->spread, row->spread_size) : NULL;
    const unsigned together = row->width >= DAY ? ROLLED_DAYS : ROLLED_HOURS;
    l->waiting[l->waiting_count] = (struct waiting){.group = group,
                                                    .sequence = l->waiting_count,
                                                    .width = row->width,
                                                    .block = row->width == 0 ? 0 : row->end / row->width / together,
                                                    .id = row->id,
                                                    .version = row->version,
                                                    .bytes = bytes,
                                                    .size = row->counts_size,
                                                    .spread = copy,
                                                    .spread_size = row->spread_size};
    l->waiting_count++;
    return PROFD_OK;
}

/* When each build of the group came first, by what is left of its counts. */
static void note_orders(struct profile_load *l, const struct rolled_group *g)
{
    const struct counts *t = &g->total;
    uint64_t *first = ARENA_ARRAY(l->arena, g->builds, uint64_t);
    memset(first, 0xff, g->builds * sizeof *first);
    for (uint32_t i = 0; i < t->histogram_count; i++) {
        uint64_t *at = &first[t->histograms[i].build];
        if (collector_is_dimension(t->histograms[i].dimension)) {
            continue;
        }
        *at = t->histograms[i].order.commit < *at ? t->histograms[i].order.commit : *at;
    }
    for (uint32_t i = 0; i < t->arc_count; i++) {
        uint32_t ends[] = {t->from_build[i], t->to_build[i]};
        for (int k = 0; k < 2; k++) {
            if (ends[k] != COUNTS_NOWHERE && t->commit[i] < first[ends[k]]) {
                first[ends[k]] = t->commit[i];
            }
        }
    }
    for (uint32_t i = 0; i < g->builds; i++) {
        if (first[i] != UINT64_MAX && g->map[i] != COUNTS_NOWHERE) {
            profile_sum_note_order(l->sum, g->map[i], (struct counts_order){first[i], i});
        }
    }
}

/* Adds everything rolled but stacks to a finished profile of the same builds. */
static enum profd_status join_rolled(struct profile_load *l, struct profile *p, struct profd_error *e)
{
    struct counts total;
    const uint32_t n = l->group_maps.count;
    bool whole = n == 1 && !l->request->alone && p->arc_count == 0 && p->histogram_count == 0;
    /* A single group with the same numbers as the profile is the usual case. */
    for (uint32_t i = 0; whole && i < l->groups->builds; i++) {
        whole = l->groups->map[i] == i;
    }
    if (n == 0 || whole) {
        if (whole) {
            rollup_make_profile(&l->groups->total, l->arena, p);
        }
        return PROFD_OK;
    }
    struct rollup_sum *sum = rollup_sum_new_plain(l->arena);
    rollup_sum_add_profile(sum, p);
    for (const struct rolled_group *g = l->groups; g < l->groups + n; g++) {
        rollup_sum_add_mapped(sum, &g->total, g->map, g->builds, l->request->alone);
    }
    TRY(rollup_sum_finish(sum, &total, NULL, e));
    rollup_make_profile(&total, l->arena, p);
    return PROFD_OK;
}

static void add_host(struct set *to, const char *host)
{
    bool added;
    if (host && *host) {
        set_add(to, host, strlen(host), &added);
    }
}

/* The map of a row's builds, made once a series. When only one build is wanted, nothing may point at the others any
 * more: they get the index COUNTS_NOWHERE. */
static const uint32_t *find_map(struct profile_load *l, const struct store_row *row)
{
    bool added;
    const uint32_t number = set_add(&l->series, &row->series, sizeof row->series, &added);
    l->maps = arena_extend(l->arena, l->maps, number, &l->map_capacity, sizeof *l->maps);
    if (!added) {
        return l->maps[number];
    }
    uint32_t *map = ARENA_ARRAY(l->arena, row->build_count + 1, uint32_t);
    add_host(&l->host_labels, row_find_label(row, "host"));
    for (size_t i = 0; i < row->build_count; i++) {
        const struct store_build *build = &row->builds[i];
        map[i] = COUNTS_NOWHERE;
        if (l->request->alone && strcmp(build->id.text, l->request->filter.build_id) != 0) {
            continue;
        }
        map[i] = profile_sum_build(l->sum, build->id.text);
        l->names = arena_extend(l->arena, l->names, map[i], &l->name_capacity, sizeof *l->names);
        if (!l->names[map[i]]) {
            const char *name = build->name ? build->name : "";
            l->names[map[i]] = arena_copy(l->arena, name, strlen(name));
        }
    }
    if (!l->request->alone) { /* a series is first seen with the number of its earliest upload */
        profile_sum_load_order(l->sum, map, (uint32_t)row->build_count, row->commit);
    }
    return l->maps[number] = map;
}

/* Drops what does not touch the wanted build, in place; ends elsewhere lose their addresses, so that they add up. The
 * collector's counters describe whole processes: they stay with the wanted build. */
static void counts_keep_alone(struct counts *c, const uint32_t *map, uint32_t builds)
{
    uint32_t n = 0, kept = 0;
    while (kept < builds && map[kept] == COUNTS_NOWHERE) {
        kept++;
    }
    for (uint32_t i = 0; i < c->histogram_count; i++) {
        struct counts_histogram h = c->histograms[i];
        if (collector_is_dimension(h.dimension) && kept < builds) {
            h.build = kept;
        }
        if (map[h.build] != COUNTS_NOWHERE) {
            c->histograms[n++] = h;
        }
    }
    c->histogram_count = n;
    n = 0;
    for (uint32_t i = 0; i < c->arc_count; i++) {
        bool from = c->from_build[i] != COUNTS_NOWHERE && map[c->from_build[i]] != COUNTS_NOWHERE;
        bool to = c->to_build[i] != COUNTS_NOWHERE && map[c->to_build[i]] != COUNTS_NOWHERE;
        if (!from && !to) {
            continue;
        }
        c->from_build[n] = from ? c->from_build[i] : COUNTS_NOWHERE;
        c->to_build[n] = to ? c->to_build[i] : COUNTS_NOWHERE;
        c->from[n] = from ? c->from[i] : 0;
        c->to[n] = to ? c->to[i] : 0;
        if (c->sorted) {
            c->rank[n] = c->rank[i];
        }
        c->calls[n++] = c->calls[i];
    }
    c->arc_count = n;
}

static enum profd_status take_row(void *context, const struct store_row *row, struct profd_error *e)
{
    struct profile_load *l = context;
    struct provenance *p = &l->provenance;
    ARENA_BOUNDARY(l->arena, profd_no_memory(e));
    const uint32_t *map = find_map(l, row);
    bool added, first = p->uploads == 0;
    const uint64_t key[] = {row->rolled, row->id, row->version};
    if (row->uploads > 0) {
        set_add(l->rows, key, sizeof key, &added);
    }
    if (row->uploads == 0 || !added) {
        return PROFD_OK;
    }
    p->uploads += row->uploads;
    p->processes += row->processes_started;
    random_groups_add(&p->groups, &row->groups);
    p->inexact |= row->inexact;
    p->inexact_all = first ? row->inexact : p->inexact_all & row->inexact;
    p->first = first || row->start < p->first ? row->start : p->first;
    p->last = first || row->end > p->last ? row->end : p->last;
    set_add(&l->users, &row->uid, sizeof row->uid, &added);
    add_host(&l->hosts, row->host);
    for (size_t i = 0; i < row->host_count; i++) {
        add_host(&l->hosts, row->hosts[i]);
    }
    if (l->request->shares) {
        TRY(add_shares(l, row, map, e));
    }
    if (row->rolled) {
        return add_rolled(l, row, map, e);
    }

    struct counts c;
    TRY(row_decode_counts(row, l->scratch, &c, e));
    if (l->request->alone) {
        counts_keep_alone(&c, map, (uint32_t)row->build_count);
    }
    profile_sum_add(l->sum, &c, map, row->commit, l->request->arcs_only);
    if (l->request->stacks == LOAD_STACKS_NONE) {
        return PROFD_OK;
    }
    const struct tree_addend stacks = {
        .list = {c.trees, COUNTS_NODES(&c), c.tree_count}, .map = map, .alone = l->request->alone, .group = row->group};
    return profile_sum_add_stacks(l->sum, &stacks, row->commit, e);
}

static int uid_compare(const void *left, const void *right)
{
    uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
    return a < b ? -1 : a > b;
}

#define CENTRES_NAMED 32u

/* Other centres, on the stack: the store calls back without a boundary. */
struct named_centres {
    size_t n;
    struct store_tier_centre list[CENTRES_NAMED];
};

static void take_centre(void *context, const struct store_tier_centre *c)
{
    struct named_centres *named = context;
    if (named->n < CENTRES_NAMED) {
        named->list[named->n++] = *c;
    }
}

/* Takes everything that matches. */
static enum profd_status take_matching(struct profile_load *l, struct profd_error *e)
{
    const struct load_request *r = l->request;
    struct provenance *p = &l->provenance;
    struct store_filter filter = r->filter;
    struct store_living unread, read;
    /* Live processes, and those not read since the restart, before the uploads, as store_get_living requires. */
    TRY(store_get_living(r->store, STORE_UNREAD, &r->scope, &r->filter, &unread, e));
    TRY(store_get_living(r->store, STORE_READ, &r->scope, &r->filter, &read, e));
    p->unread = unread.processes;
    p->unread_since = unread.earliest;
    p->inexact |= unread.processes > 0 ? (uint32_t)INEXACT_NOT_READ : 0;
    p->live = read.processes;
    p->as_of = read.latest;

    /* Other centres also before the sums are read: these may have more than is said, never less. */
    if (store_scope_has_tenants(&r->scope)) {
        struct named_centres named = {.n = 0};
        TRY(store_each_centre(r->store, take_centre, &named, e));
        struct provenance_centre *centres = ARENA_ARRAY(l->arena, named.n + 1, struct provenance_centre);
        for (size_t i = 0; i < named.n; i++) {
            const struct store_tier_centre *c = &named.list[i];
            centres[i] = (struct provenance_centre){.name = arena_copy(l->arena, c->name, strlen(c->name)),
                                                    .sealed_to = c->sealed_to};
        }
        p->centres = centres;
        p->centre_count = named.n;
    }
    filter.spread |= r->stacks == LOAD_STACKS_SHARES;
    filter.arcs_only = r->arcs_only;
    TRY(store_each_upload(r->store, &r->scope, &filter, take_row, l, e));

    /* Something of what came from hosts, or of local users, may be missing. */
    uint32_t reasons = 0;
    unsigned of = l->users.count == 0 ? STORE_OF_ALL : 0;
    for (uint32_t i = 0; i < l->users.count; i++) {
        uint32_t uid;
        memcpy(&uid, l->users.keys[i].bytes, sizeof uid);
        of |= store_origin_of(uid);
    }
    TRY(store_get_marks(r->store, &r->scope, &r->filter, (enum store_origin)of, &reasons, e));
    p->inexact |= reasons;
    return store_pattern_judge(&r->filter, e);
}

/* Everything that is wanted becomes one profile. */
static enum profd_status load_sum(struct profile_load *l, struct profile **profile, struct shares *shares,
                                  struct profd_error *e)
{
    const struct load_request *r = l->request;
    TRY(r->row ? take_row(l, r->row, e) : take_matching(l, e));
    TRY(add_waiting(l, e));
    for (uint32_t i = 0; i < l->group_maps.count; i++) {
        TRY(rollup_sum_finish(l->groups[i].sum, &l->groups[i].total, NULL, e));
        note_orders(l, &l->groups[i]);
    }
    TRY(profile_sum_finish(l->sum, profile, e));
    TRY(join_rolled(l, *profile, e));
    return r->shares ? finish_shares(l, *profile, shares, e) : PROFD_OK;
}

enum profd_status load_profile(const struct load_request *request, struct arena *a, struct load *out,
                               struct profd_error *e)
{
    struct profile_load l = {.request = request,
                             .arena = a,
                             .sum = profile_sum_new(a),
                             .rows = request->loaded ? request->loaded : ARENA_NEW(a, struct set),
                             .bytes = arena_new_child(a, LIMIT_QUERY_MEMORY),
                             .scratch = arena_new_child(a, LIMIT_QUERY_MEMORY),
                             .block = arena_new_child(a, LIMIT_QUERY_MEMORY)};
    struct load result = {0};
    if (!request->loaded) {
        set_init(l.rows, a);
    }
    set_init(&l.series, a);
    set_init(&l.hosts, a);
    set_init(&l.host_labels, a);
    set_init(&l.users, a);
    set_init(&l.group_maps, a);
    set_init(&l.sharing_maps, request->shares ? request->shares : a);
    if (request->stacks != LOAD_STACKS_NONE) {
        profile_sum_want_stacks(l.sum, request->stacks == LOAD_STACKS_SHARES);
    }
    enum profd_status status = load_sum(&l, &result.profile, &result.shares, e);
    arena_free(l.bytes);
    arena_free(l.scratch);
    arena_free(l.block);
    TRY(status);
    struct provenance *p = &l.provenance;
    if (request->downtime) {
        downtime_measure(request->downtime, p->first, p->last, &p->down_count, &p->down_ns);
    }
    uint32_t *uids = ARENA_ARRAY(a, (size_t)l.users.count + 1, uint32_t);
    for (uint32_t i = 0; i < l.users.count; i++) {
        memcpy(&uids[i], l.users.keys[i].bytes, sizeof *uids);
    }
    qsort(uids, l.users.count, sizeof *uids, uid_compare);
    p->uids = uids;
    p->uid_count = l.users.count;
    p->hosts = l.hosts.count;
    p->host_labels = l.host_labels.count;
    result.names = l.names;
    result.rows = l.rows;
    result.provenance = *p;
    *out = result;
    return PROFD_OK;
}
