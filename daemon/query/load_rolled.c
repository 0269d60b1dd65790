#include "query/load_rolled.h"

#include <stdlib.h>
#include <string.h>

#include "core/rollup.h"
#include "proto/collector.h"
#include "proto/limits.h"
#include "query/lru.h"
#include "query/set.h"

/* Cached sums, by what they are the sum of. */

struct entry {
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
    if (c != NULL) {
        lru_init(&c->lru, limit, SIZE_MAX, lock);
    }
    return c;
}

void query_cache_free(struct query_cache *c)
{
    if (c != NULL) {
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

/* Gives the entry of this key to a function, if there is one. *found says whether. Returns its status, or OK. */
static enum profd_status cache_use(struct query_cache *c, const void *key, size_t size,
                                   enum profd_status (*use)(void *context, const struct counts *r,
                                                            const uint64_t *shares, struct profd_error *e),
                                   void *context, bool *found, struct profd_error *e)
{
    enum profd_status status = PROFD_OK;
    lru_lock(&c->lru);
    struct entry *entry = lru_find(&c->lru, key, size);
    *found = entry != NULL;
    c->found += entry != NULL;
    if (entry != NULL) {
        lru_use(&c->lru, entry);
        status = use(context, &entry->r, entry->shares, e);
    }
    lru_unlock(&c->lru);
    return status;
}

/* Appends an array of n rows to the block; arrays begin at multiples of 8. */
static void *append(unsigned char *block, size_t *at, const void *rows, size_t n)
{
    void *copy = block + *at;
    if (n > 0) {
        memcpy(copy, rows, n);
    }
    *at += (n + 7) & ~(size_t)7;
    return copy;
}

static size_t shares_size(const struct counts *r, const uint64_t *shares)
{
    return shares == NULL ? 0 : (size_t)r->node_count * TREE_GROUPS * sizeof *shares;
}

static size_t entry_size(const struct counts *r, const uint64_t *shares)
{
    return shares_size(r, shares) + sizeof(struct entry) + r->histogram_count * sizeof *r->histograms +
           (size_t)r->bin_count * 12 + (size_t)r->arc_count * 44 + r->tree_count * sizeof *r->trees +
           (size_t)r->node_count * 22 + 16 * 8;
}

static struct entry *copy_entry(const struct counts *r, const uint64_t *shares, size_t size)
{
    unsigned char *block = malloc(size);
    size_t at = sizeof(struct entry), n = r->arc_count;
    if (block == NULL) {
        return NULL;
    }
    struct entry *entry = (struct entry *)(void *)block;
    *entry = (struct entry){.r = *r};
    entry->shares = shares == NULL ? NULL : append(block, &at, shares, shares_size(r, shares));
    entry->r.histograms = append(block, &at, r->histograms, r->histogram_count * sizeof *r->histograms);
    entry->r.bin_ticks = append(block, &at, r->bin_ticks, r->bin_count * sizeof *r->bin_ticks);
    entry->r.bin_index = append(block, &at, r->bin_index, r->bin_count * sizeof *r->bin_index);
    entry->r.from = append(block, &at, r->from, n * sizeof *r->from);
    entry->r.to = append(block, &at, r->to, n * sizeof *r->to);
    entry->r.calls = append(block, &at, r->calls, n * sizeof *r->calls);
    entry->r.commit = append(block, &at, r->commit, n * sizeof *r->commit);
    entry->r.from_build = append(block, &at, r->from_build, n * sizeof *r->from_build);
    entry->r.to_build = append(block, &at, r->to_build, n * sizeof *r->to_build);
    entry->r.rank = append(block, &at, r->rank, n * sizeof *r->rank);
    entry->r.trees = append(block, &at, r->trees, r->tree_count * sizeof *r->trees);
    entry->r.node_address = append(block, &at, r->node_address, r->node_count * sizeof *r->node_address);
    entry->r.node_ticks = append(block, &at, r->node_ticks, r->node_count * sizeof *r->node_ticks);
    entry->r.node_build = append(block, &at, r->node_build, r->node_count * sizeof *r->node_build);
    entry->r.node_depth = append(block, &at, r->node_depth, r->node_count * sizeof *r->node_depth);
    entry->r.node_kind = append(block, &at, r->node_kind, r->node_count * sizeof *r->node_kind);
    return entry;
}

/* Keeps a copy under the key, unless there is one or it would take more than a quarter of the limit. A failure is
 * silent: nothing is kept. */
static void cache_put(struct query_cache *c, const void *key, size_t size, const struct counts *r,
                      const uint64_t *shares)
{
    size_t bytes = entry_size(r, shares);
    struct entry *entry = bytes <= c->lru.limit / 4 ? copy_entry(r, shares, bytes) : NULL;
    lru_lock(&c->lru);
    c->missed++;
    /* Another reader may have put the same sum meanwhile. */
    bool kept = entry != NULL && lru_find(&c->lru, key, size) == NULL && lru_put(&c->lru, key, size, entry, bytes);
    lru_unlock(&c->lru);
    if (!kept) {
        free(entry);
    }
}

#define HOUR INT64_C(3600000000000)
#define DAY (24 * HOUR)
#define ROLLED_HOURS                                                                                                   \
    6u /* this many hours, or days, aligned, are added up and kept together: a window that moves on finds most of */
#define ROLLED_DAYS 8u                    /* them again, and a new day or a late upload spoils one only */
#define ROLLED_WAITING ((size_t)64 << 20) /* encoded bytes that wait for the rest of their block */

/* A row that waits for its block. */
struct waiting {
    uint32_t group, sequence;
    int64_t width, block;
    uint64_t id, version;
    const void *bytes, *spread;
    size_t size, spread_size;
};

/* Series that map alike are added up in their own numbers of builds. */
struct group {
    const uint32_t *map;
    uint32_t builds;
    struct rollup_sum *sum;
    struct counts total;
};

struct rolled {
    struct arena *arena;                   /* the load's */
    struct arena *bytes, *scratch, *block; /* of waiting rows; of one that is decoded; of a block's sum */
    struct rolled_config config;
    struct set maps;
    struct group *groups;
    uint32_t group_capacity;
    struct waiting *waiting;
    uint32_t waiting_count, waiting_capacity;
};

struct rolled *rolled_new(struct arena *a, const struct rolled_config *config)
{
    struct rolled *r = ARENA_NEW(a, struct rolled);
    *r = (struct rolled){.arena = a,
                         .config = *config,
                         .bytes = arena_new_child(a, LIMIT_QUERY_MEMORY),
                         .scratch = arena_new_child(a, LIMIT_QUERY_MEMORY),
                         .block = arena_new_child(a, LIMIT_QUERY_MEMORY)};
    set_init(&r->maps, a);
    return r;
}

void rolled_done(struct rolled *r)
{
    arena_free(r->bytes);
    arena_free(r->scratch);
    arena_free(r->block);
}

static uint32_t find_group(struct rolled *r, const uint32_t *map, uint32_t builds)
{
    bool added;
    const uint32_t number = set_add(&r->maps, map, builds * sizeof *map, &added);
    if (added) {
        r->groups = arena_extend(r->arena, r->groups, number, &r->group_capacity, sizeof *r->groups);
        r->groups[number] = (struct group){.map = map, .builds = builds, .sum = rollup_sum_new_plain(r->arena)};
    }
    return number;
}

/* What a block has: histograms or only arcs, no stacks, stacks, or these by group, too. */
enum content { CONTENT_PLAIN, CONTENT_STACKS, CONTENT_SHARES };

static enum content wanted_content(const struct rolled *r)
{
    return r->config.shares ? CONTENT_SHARES : r->config.stacks ? CONTENT_STACKS : CONTENT_PLAIN;
}

/* The key of a block: what it is the sum of, and what it has. */
static uint64_t *make_key(struct rolled *r, const struct waiting *rows, uint32_t n, bool arcs_only,
                          enum content content)
{
    uint64_t *key = ARENA_ARRAY(r->block, 2 * (size_t)n + 1, uint64_t);
    key[0] = (uint64_t)content << 1 | arcs_only;
    for (uint32_t i = 0; i < n; i++) {
        key[2 * i + 1] = rows[i].id;
        key[2 * i + 2] = rows[i].version;
    }
    return key;
}

/* A block in the making; stacks: NULL if not wanted. */
struct block {
    struct rollup_sum *rows;
    struct tree_sum *stacks;
};

static enum profd_status add_decoded(struct rolled *r, const struct waiting *row, const struct block *b,
                                     struct profd_error *e)
{
    struct counts decoded;
    struct counts_shares spread = {0};
    arena_reset(r->scratch);
    enum profd_status status = rollup_decode(r->scratch, row->bytes, row->size, r->groups[row->group].builds,
                                             r->config.arcs_only, &decoded, e);
    if (status == PROFD_OK && row->spread != NULL && decoded.tree_count > 0) { /* the groups of stacks only */
        status = rollup_decode_spread(r->scratch, &decoded, row->spread, row->spread_size, &spread, e);
    }
    if (status != PROFD_OK) {
        return profd_error_wrap(e, status, "a stored sum cannot be read");
    }
    if (b->stacks != NULL) {
        const struct tree_addend stacks = {.list = {decoded.trees, COUNTS_NODES(&decoded), decoded.tree_count},
                                           .group = TREE_GROUPS,
                                           .shares = spread.nodes};
        status = tree_sum_add(b->stacks, &stacks, e);
    }
    decoded.tree_count = decoded.node_count = 0;
    return status == PROFD_OK ? rollup_sum_add(b->rows, &decoded, NULL, e) : status;
}

/* Where a finished block goes. */
struct joining {
    struct rolled *r;
    const struct group *group;
};

static enum profd_status join_block(void *context, const struct counts *total, const uint64_t *shares,
                                    struct profd_error *e)
{
    const struct joining *j = context;
    ARENA_BOUNDARY(j->r->arena, profd_no_memory(e)); /* the cache is locked */
    struct counts rows = *total;
    enum profd_status status = PROFD_OK;
    if (j->r->config.stacks) {
        const struct tree_addend stacks = {.list = {total->trees, COUNTS_NODES(total), total->tree_count},
                                           .map = j->group->map,
                                           .alone = j->r->config.alone,
                                           .group = TREE_GROUPS,
                                           .shares = shares};
        status = profile_sum_add_stacks(j->r->config.sum, &stacks, UINT64_MAX, e);
    }
    rows.tree_count = rows.node_count = 0;
    return status == PROFD_OK ? rollup_sum_add(j->group->sum, &rows, NULL, e) : status;
}

/* Adds up a block that is not in the cache, and keeps it there. */
static enum profd_status add_fresh(struct rolled *r, const struct waiting *rows, uint32_t n, struct joining *j,
                                   struct profd_error *e)
{
    struct counts total;
    struct tree_total stacks = {0};
    struct block b = {rollup_sum_new_plain(r->block),
                      r->config.stacks ? tree_sum_new(r->block, r->config.shares) : NULL};
    uint64_t *key = make_key(r, rows, n, r->config.arcs_only, wanted_content(r));
    for (uint32_t i = 0; i < n; i++) {
        TRY(add_decoded(r, &rows[i], &b, e));
    }
    TRY(rollup_sum_finish(b.rows, &total, NULL, e));
    if (b.stacks != NULL) {
        TRY(tree_sum_finish(b.stacks, &stacks, &total.saturated, e));
    }
    total.tree_count = stacks.tree_count;
    total.node_count = stacks.node_count;
    total.trees = stacks.trees;
    total.node_depth = stacks.nodes.depth;
    total.node_kind = stacks.nodes.kind;
    total.node_build = stacks.nodes.build;
    total.node_address = stacks.nodes.address;
    total.node_ticks = stacks.nodes.ticks;
    if (r->config.cache != NULL) {
        cache_put(r->config.cache, key, (2 * (size_t)n + 1) * sizeof *key, &total, stacks.shares);
    }
    return join_block(j, &total, stacks.shares, e);
}

/* n rows of one block of a group. A sum that has more than is needed can also be used. */
static enum profd_status add_block(struct rolled *r, const struct waiting *rows, uint32_t n, struct profd_error *e)
{
    struct joining j = {r, &r->groups[rows[0].group]};
    enum profd_status status = PROFD_OK;
    bool found = false;
    int last = r->config.cache == NULL ? -1 : r->config.arcs_only ? 1 : 0;
    arena_reset(r->block);
    for (int arcs_only = 0; arcs_only <= last; arcs_only++) {
        for (enum content has = wanted_content(r); status == PROFD_OK && !found && has <= CONTENT_SHARES; has++) {
            uint64_t *key = make_key(r, rows, n, arcs_only == 1, has);
            status = cache_use(r->config.cache, key, (2 * (size_t)n + 1) * sizeof *key, join_block, &j, &found, e);
        }
    }
    return status == PROFD_OK && !found ? add_fresh(r, rows, n, &j, e) : status;
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
static enum profd_status add_waiting(struct rolled *r, struct profd_error *e)
{
    enum profd_status status = PROFD_OK;
    struct waiting *w = r->waiting;
    uint32_t n = r->waiting_count;
    if (n > 0) {
        qsort(w, n, sizeof *w, waiting_compare);
    }
    for (uint32_t i = 0; status == PROFD_OK && i < n;) {
        uint32_t first = i;
        while (i < n && w[i].group == w[first].group && w[i].width == w[first].width && w[i].block == w[first].block) {
            i++;
        }
        status = add_block(r, w + first, i - first, e);
    }
    r->waiting_count = 0;
    arena_reset(r->bytes);
    return status;
}

static int64_t find_block(const struct store_row *row)
{
    if (row->width == 0) {
        return 0;
    }
    return row->end / row->width / (row->width >= DAY ? ROLLED_DAYS : ROLLED_HOURS);
}

enum profd_status rolled_add(struct rolled *r, const struct store_row *row, const uint32_t *map, struct profd_error *e)
{
    const uint32_t group = find_group(r, map, (uint32_t)row->build_count);
    if (arena_used(r->bytes) + row->counts_size > ROLLED_WAITING) {
        TRY(add_waiting(r, e));
    }
    r->waiting = arena_extend(r->arena, r->waiting, r->waiting_count, &r->waiting_capacity, sizeof *r->waiting);
    const char *bytes = arena_copy(r->bytes, (const char *)row->counts, row->counts_size);
    const bool spread = r->config.shares && row->spread != NULL;
    const char *copy = spread ? arena_copy(r->bytes, (const char *)row->spread, row->spread_size) : NULL;
    r->waiting[r->waiting_count] = (struct waiting){.group = group,
                                                    .sequence = r->waiting_count,
                                                    .width = row->width,
                                                    .block = find_block(row),
                                                    .id = row->id,
                                                    .version = row->version,
                                                    .bytes = bytes,
                                                    .size = row->counts_size,
                                                    .spread = copy,
                                                    .spread_size = row->spread_size};
    r->waiting_count++;
    return PROFD_OK;
}

/* When each build of the group came first, by what is left of its counts. */
static void note_orders(struct rolled *r, const struct group *g, struct profile_sum *sum)
{
    const struct counts *t = &g->total;
    uint64_t *first = ARENA_ARRAY(r->arena, g->builds, uint64_t);
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
            profile_sum_note_order(sum, g->map[i], (struct counts_order){first[i], i});
        }
    }
}

enum profd_status rolled_close(struct rolled *r, struct profile_sum *sum, struct profd_error *e)
{
    enum profd_status status = add_waiting(r, e);
    for (uint32_t i = 0; status == PROFD_OK && i < r->maps.count; i++) {
        status = rollup_sum_finish(r->groups[i].sum, &r->groups[i].total, NULL, e);
        if (status == PROFD_OK) {
            note_orders(r, &r->groups[i], sum);
        }
    }
    return status;
}

/* A single group with the same numbers as the profile: the usual case. */
static bool is_whole(const struct rolled *r, const struct profile *p)
{
    const struct group *g = r->groups;
    for (uint32_t i = 0; i < g->builds; i++) {
        if (g->map[i] != i) {
            return false;
        }
    }
    return r->maps.count == 1 && !r->config.alone && p->arc_count == 0 && p->histogram_count == 0;
}

enum profd_status rolled_join(struct rolled *r, struct profile *p, struct profd_error *e)
{
    struct counts total;
    if (r->maps.count == 0) {
        return PROFD_OK;
    }
    if (is_whole(r, p)) {
        rollup_make_profile(&r->groups[0].total, r->arena, p);
        return PROFD_OK;
    }
    struct rollup_sum *sum = rollup_sum_new_plain(r->arena);
    rollup_sum_add_profile(sum, p);
    for (uint32_t i = 0; i < r->maps.count; i++) {
        const struct group *g = &r->groups[i];
        rollup_sum_add_mapped(sum, &g->total, g->map, g->builds, r->config.alone);
    }
    TRY(rollup_sum_finish(sum, &total, NULL, e));
    rollup_make_profile(&total, r->arena, p);
    return PROFD_OK;
}
