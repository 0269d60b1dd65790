/* Stored uploads and sums become one profile: single uploads, sums that are added up by blocks of hours or days, and
 * the shares of the random groups. */
#include <stdlib.h>
#include <string.h>

#include "core/rollup.h"
#include "proto/collector.h"
#include "proto/message.h"
#include "query/query_internal.h"

/* The rolled part of a load: rows that are sums already. They are added up by key, several at a time, and what was
 * added up is kept in the cache for the next question. */
struct rolled_config {
    struct query_cache *cache; /* NULL: none */
    bool alone, arcs_only;     /* as in struct load_request */
    bool stacks, shares;       /* shares: of stacks, by group; rows are then given with their spread */
    struct profile_sum *sum;   /* which stacks are added to */
};

const char *row_find_label(const struct store_row *row, const char *name)
{
    for (size_t i = 0; i < row->label_count; i++) {
        if (strcmp(row->labels[i].name, name) == 0) {
            return row->labels[i].value;
        }
    }
    return "";
}

static void free_counts(void *c)
{
    counts_done(c);
}

enum profd_status row_open_counts(const struct store_row *row, struct arena *a, struct row_counts *c,
                                  struct profd_error *e)
{
    *c = (struct row_counts){.arena = a};
    enum profd_status status = counts_decode(row->counts, row->counts_size, (uint32_t)row->build_count, &c->counts, e);
    if (!status) {
        arena_defer(a, &c->deferred, free_counts, &c->counts);
        return PROFD_OK;
    }
    /* The row's number counts the uploads of all users: it is not for every reader. profctl verify names the row. */
    return profd_error_wrap(e, status == PROFD_NO_MEMORY ? status : PROFD_DAMAGED, "a stored upload cannot be read");
}

void row_close_counts(struct row_counts *c)
{
    arena_undefer(c->arena, &c->deferred);
}

/* Series that map alike are added up in their own numbers of builds, as the rolled rows below. */
struct sharing {
    const uint32_t *map;
    struct counts first; /* the first sum, with its spread: often the only one */
    struct counts_shares first_spread;
    bool any;
    struct rollup_sum *sums;                  /* of all sums; NULL: there is at most one */
    struct rollup_sum *groups[RANDOM_GROUPS]; /* of the uploads of each group; likewise */
};

struct load_shares {
    struct arena *arena, *scratch; /* of the sums, the caller's; of a row that is decoded */
    struct set maps;
    struct sharing *sums;
    uint32_t capacity;
};

/* Lives in the arena, with the shares. Ended by load_shares_done. */
static struct load_shares *load_shares_new(struct arena *a)
{
    struct load_shares *l = ARENA_NEW(a, struct load_shares);
    *l = (struct load_shares){.arena = a, .scratch = arena_new_child(a, 0)};
    set_init(&l->maps, a);
    return l;
}

/* Accepts NULL. The shares stay. */
static void load_shares_done(struct load_shares *l)
{
    if (l) {
        arena_free(l->scratch);
    }
}

static enum profd_status decode_sum(struct arena *a, const struct store_row *row, struct counts *r,
                                    struct counts_shares *spread, struct profd_error *e)
{
    enum profd_status status = rollup_decode(a, row->counts, row->counts_size, (uint32_t)row->build_count, false, r, e);
    if (!status) {
        status = rollup_decode_spread(a, r, row->spread, row->spread_size, spread, e);
    }
    r->tree_count = r->node_count = 0; /* shares are of bins and arcs */
    return !status ? status : profd_error_wrap(e, status, "a stored sum cannot be read");
}

static enum profd_status share_sum(struct load_shares *l, const struct store_row *row, struct sharing *s,
                                   struct profd_error *e)
{
    struct counts r;
    struct counts_shares spread;
    if (!s->any) {
        s->any = true;
        return decode_sum(l->arena, row, &s->first, &s->first_spread, e);
    }
    if (!s->sums) {
        s->sums = rollup_sum_new(l->arena);
        TRY(rollup_sum_add(s->sums, &s->first, &s->first_spread, e));
    }
    arena_reset(l->scratch);
    TRY(decode_sum(l->scratch, row, &r, &spread, e));
    return rollup_sum_add(s->sums, &r, &spread, e);
}

/* Sums without spread take an eighth of the memory: an upload is of one group. */
static enum profd_status share_upload(struct load_shares *l, const struct store_row *row, struct sharing *s,
                                      struct profd_error *e)
{
    struct row_counts c;
    struct rollup_sum **sum = &s->groups[row->group % RANDOM_GROUPS];
    *sum = *sum != NULL ? *sum : rollup_sum_new_plain(l->arena);
    enum profd_status status = row_open_counts(row, l->arena, &c, e);
    if (!status) {
        c.counts.tree_count = c.counts.node_count = 0;
        status = rollup_sum_add_upload(*sum, &c.counts, row->commit, 0, e);
        row_close_counts(&c);
    }
    return status;
}

/* Adds a row that was read with its spread; map as for profile_sum_add, and as long-lived as the load. DAMAGED names
 * the rule. */
static enum profd_status load_shares_add(struct load_shares *l, const struct store_row *row, const uint32_t *map,
                                         struct profd_error *e)
{
    bool added;
    const uint32_t number = set_add(&l->maps, map, row->build_count * sizeof *map, &added);
    if (added) {
        l->sums = arena_extend(l->arena, l->sums, number, &l->capacity, sizeof *l->sums);
        l->sums[number] = (struct sharing){.map = map};
    }
    struct sharing *s = &l->sums[number];
    if (row->rolled && !row->spread) {
        return PROFD_OK;
    }
    return row->rolled ? share_sum(l, row, s, e) : share_upload(l, row, s, e);
}

/* The rows of a spread that can be the shares as they are: those of the only sum. NULL: there is none. */
static uint64_t *find_rows(const struct load_shares *l, const struct profile *p, bool alone)
{
    const struct sharing *s = l->sums;
    bool uploads = false;
    for (uint32_t g = 0; l->maps.count == 1 && g < RANDOM_GROUPS; g++) {
        uploads |= s->groups[g] != NULL;
    }
    return l->maps.count == 1 && !uploads && s->any && !s->sums && shares_has_arcs(p, &s->first, s->map, alone)
               ? s->first_spread.arcs
               : NULL;
}

/* All rows were added, and p is their sum: its shares. alone: as load_request. */
static enum profd_status load_shares_finish(struct load_shares *l, const struct profile *p, bool alone,
                                            struct shares *out, struct profd_error *e)
{
    struct counts r;
    struct counts_shares spread;
    enum profd_status status = PROFD_OK;
    shares_new(l->arena, p, find_rows(l, p, alone), out);
    for (uint32_t i = 0; !status && i < l->maps.count; i++) {
        const struct sharing *s = &l->sums[i];
        if (s->any && !s->sums) {
            shares_add(out, &s->first, &s->first_spread, 0, s->map, alone);
        }
        if (s->sums && (status = rollup_sum_finish(s->sums, &r, &spread, e)) == PROFD_OK) {
            shares_add(out, &r, &spread, 0, s->map, alone);
        }
        for (uint32_t g = 0; !status && g < RANDOM_GROUPS; g++) {
            if (s->groups[g] && (status = rollup_sum_finish(s->groups[g], &r, NULL, e)) == PROFD_OK) {
                shares_add(out, &r, NULL, g, s->map, alone);
            }
        }
    }
    return status;
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

/* Gives the entry of this key to a function, if there is one. *found says whether. Returns its status, or OK. */
static enum profd_status cache_use(struct query_cache *c, const void *key, size_t size,
                                   enum profd_status (*use)(void *context, const struct counts *r,
                                                            const uint64_t *shares, struct profd_error *e),
                                   void *context, bool *found, struct profd_error *e)
{
    enum profd_status status = PROFD_OK;
    lru_lock(&c->lru);
    struct cached_sum *entry = lru_find(&c->lru, key, size);
    *found = entry;
    c->found += entry != NULL;
    if (entry) {
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
    return !shares ? 0 : (size_t)r->node_count * TREE_GROUPS * sizeof *shares;
}

static size_t entry_size(const struct counts *r, const uint64_t *shares)
{
    return shares_size(r, shares) + sizeof(struct cached_sum) + r->histogram_count * sizeof *r->histograms +
           (size_t)r->bin_count * 12 + (size_t)r->arc_count * 44 + r->tree_count * sizeof *r->trees +
           (size_t)r->node_count * 22 + 16 * 8;
}

static struct cached_sum *copy_entry(const struct counts *r, const uint64_t *shares, size_t size)
{
    unsigned char *block = malloc(size);
    size_t at = sizeof(struct cached_sum), n = r->arc_count;
    if (!block) {
        return NULL;
    }
    struct cached_sum *entry = (struct cached_sum *)(void *)block;
    *entry = (struct cached_sum){.r = *r};
    entry->shares = !shares ? NULL : append(block, &at, shares, shares_size(r, shares));
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
    struct cached_sum *entry = bytes <= c->lru.limit / 4 ? copy_entry(r, shares, bytes) : NULL;
    lru_lock(&c->lru);
    c->missed++;
    /* Another reader may have put the same sum meanwhile. */
    bool kept = entry && lru_find(&c->lru, key, size) == NULL && lru_put(&c->lru, key, size, entry, bytes);
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

/* Lives in the arena, but must be ended by rolled_done. */
static struct rolled *rolled_new(struct arena *a, const struct rolled_config *config)
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

static void rolled_done(struct rolled *r)
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
    if (!status && row->spread && decoded.tree_count > 0) { /* the groups of stacks only */
        status = rollup_decode_spread(r->scratch, &decoded, row->spread, row->spread_size, &spread, e);
    }
    if (status) {
        return profd_error_wrap(e, status, "a stored sum cannot be read");
    }
    if (b->stacks) {
        const struct tree_addend stacks = {.list = {decoded.trees, COUNTS_NODES(&decoded), decoded.tree_count},
                                           .group = TREE_GROUPS,
                                           .shares = spread.nodes};
        status = tree_sum_add(b->stacks, &stacks, e);
    }
    decoded.tree_count = decoded.node_count = 0;
    return !status ? rollup_sum_add(b->rows, &decoded, NULL, e) : status;
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
    if (j->r->config.stacks) {
        const struct tree_addend stacks = {.list = {total->trees, COUNTS_NODES(total), total->tree_count},
                                           .map = j->group->map,
                                           .alone = j->r->config.alone,
                                           .group = TREE_GROUPS,
                                           .shares = shares};
        TRY(profile_sum_add_stacks(j->r->config.sum, &stacks, UINT64_MAX, e));
    }
    rows.tree_count = rows.node_count = 0;
    return rollup_sum_add(j->group->sum, &rows, NULL, e);
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
    if (b.stacks) {
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
    if (r->config.cache) {
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
    int last = !r->config.cache ? -1 : r->config.arcs_only ? 1 : 0;
    arena_reset(r->block);
    for (int arcs_only = 0; arcs_only <= last; arcs_only++) {
        for (enum content has = wanted_content(r); !status && !found && has <= CONTENT_SHARES; has++) {
            uint64_t *key = make_key(r, rows, n, arcs_only == 1, has);
            status = cache_use(r->config.cache, key, (2 * (size_t)n + 1) * sizeof *key, join_block, &j, &found, e);
        }
    }
    return !status && !found ? add_fresh(r, rows, n, &j, e) : status;
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
    for (uint32_t i = 0; !status && i < n;) {
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

/* Adds a sum's row. map as for profile_sum_add; in alone mode, COUNTS_NOWHERE stands for builds that are left out. map
 * must live as long as the load. DAMAGED names the row. */
static enum profd_status rolled_add(struct rolled *r, const struct store_row *row, const uint32_t *map,
                                    struct profd_error *e)
{
    const uint32_t group = find_group(r, map, (uint32_t)row->build_count);
    if (arena_used(r->bytes) + row->counts_size > ROLLED_WAITING) {
        TRY(add_waiting(r, e));
    }
    r->waiting = arena_extend(r->arena, r->waiting, r->waiting_count, &r->waiting_capacity, sizeof *r->waiting);
    const char *bytes = arena_copy(r->bytes, (const char *)row->counts, row->counts_size);
    const bool spread = r->config.shares && row->spread;
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

/* All rows were added: adds up the rest, and sets the first occurrence of each build in the sum. */
static enum profd_status rolled_close(struct rolled *r, struct profile_sum *sum, struct profd_error *e)
{
    TRY(add_waiting(r, e));
    for (uint32_t i = 0; i < r->maps.count; i++) {
        TRY(rollup_sum_finish(r->groups[i].sum, &r->groups[i].total, NULL, e));
        note_orders(r, &r->groups[i], sum);
    }
    return PROFD_OK;
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

/* Adds everything but stacks to a finished profile of the same builds. */
static enum profd_status rolled_join(struct rolled *r, struct profile *p, struct profd_error *e)
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

struct loading {
    const struct load_request *request;
    struct arena *arena;
    struct profile_sum *sum;
    struct rolled *rolled;
    struct load_shares *shares; /* NULL: not wanted */
    struct set series, hosts, host_labels, users;
    const uint32_t **maps; /* per series: the sum's index of each build of its uploads */
    uint32_t map_capacity;
    const char **names; /* per build of the sum */
    uint32_t name_capacity;
    struct provenance provenance;
};

static uint32_t add_build(struct loading *l, const struct store_build *build)
{
    const uint32_t index = profile_sum_build(l->sum, build->id.text);
    l->names = arena_extend(l->arena, l->names, index, &l->name_capacity, sizeof *l->names);
    if (!l->names[index]) {
        const char *name = build->name ? build->name : "";
        l->names[index] = arena_copy(l->arena, name, strlen(name));
    }
    return index;
}

/* When only one build is wanted, nothing may point at the others any more: they get the index COUNTS_NOWHERE. */
static const uint32_t *make_map(struct loading *l, const struct store_row *row)
{
    uint32_t *map = ARENA_ARRAY(l->arena, row->build_count + 1, uint32_t);
    for (size_t i = 0; i < row->build_count; i++) {
        const bool left_out = l->request->alone && strcmp(row->builds[i].id.text, l->request->filter.build_id) != 0;
        map[i] = left_out ? COUNTS_NOWHERE : add_build(l, &row->builds[i]);
    }
    return map;
}

static void add_host(struct set *to, const char *host)
{
    bool added;
    if (host && *host) {
        set_add(to, host, strlen(host), &added);
    }
}

static const uint32_t *find_map(struct loading *l, const struct store_row *row)
{
    bool added;
    const uint32_t number = set_add(&l->series, &row->series, sizeof row->series, &added);
    l->maps = arena_extend(l->arena, l->maps, number, &l->map_capacity, sizeof *l->maps);
    if (added) {
        add_host(&l->host_labels, row_find_label(row, "host"));
        l->maps[number] = make_map(l, row);
        if (!l->request->alone) { /* a series is first seen with the number of its earliest upload */
            profile_sum_load_order(l->sum, l->maps[number], (uint32_t)row->build_count, row->commit);
        }
    }
    return l->maps[number];
}

/* The collector's counters describe whole processes: they stay with the requested build. */
static void counts_keep_histograms(struct counts *c, const uint32_t *map, uint32_t builds)
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
}

/* Drops what does not touch the wanted build, in place; ends elsewhere lose their addresses, so that they add up. */
static void counts_keep_alone(struct counts *c, const uint32_t *map, uint32_t builds)
{
    uint32_t n = 0;
    counts_keep_histograms(c, map, builds);
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

static void add_source(struct loading *l, const struct store_row *row)
{
    struct provenance *p = &l->provenance;
    bool added, first = p->uploads == 0;
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
}

static enum profd_status take_counts(struct loading *l, const struct store_row *row, const uint32_t *map,
                                     struct profd_error *e)
{
    struct row_counts opened;
    struct counts *c = &opened.counts;
    enum profd_status status = row_open_counts(row, l->arena, &opened, e);
    if (status) {
        return status;
    }
    if (l->request->alone) {
        counts_keep_alone(c, map, (uint32_t)row->build_count);
    }
    profile_sum_add(l->sum, c, map, row->commit, l->request->arcs_only);
    if (l->request->stacks != LOAD_STACKS_NONE) {
        const struct tree_addend stacks = {.list = {c->trees, COUNTS_NODES(c), c->tree_count},
                                           .map = map,
                                           .alone = l->request->alone,
                                           .group = row->group};
        status = profile_sum_add_stacks(l->sum, &stacks, row->commit, e);
    }
    row_close_counts(&opened);
    return status;
}

static enum profd_status take_row(void *context, const struct store_row *row, struct profd_error *e)
{
    struct loading *l = context;
    ARENA_BOUNDARY(l->arena, profd_no_memory(e));
    const uint32_t *map = find_map(l, row);
    if (row->uploads == 0) {
        return PROFD_OK;
    }
    add_source(l, row);
    if (l->shares) {
        TRY(load_shares_add(l->shares, row, map, e));
    }
    return row->rolled ? rolled_add(l->rolled, row, map, e) : take_counts(l, row, map, e);
}

static int uid_compare(const void *left, const void *right)
{
    uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
    return a < b ? -1 : a > b;
}

/* Live processes, and those not read since the restart: loaded before the uploads, as store_get_living requires. */
static enum profd_status find_living(struct loading *l, struct profd_error *e)
{
    const struct load_request *r = l->request;
    struct provenance *p = &l->provenance;
    struct store_living unread, read;
    TRY(store_get_living(r->store, STORE_UNREAD, &r->scope, &r->filter, &unread, e));
    TRY(store_get_living(r->store, STORE_READ, &r->scope, &r->filter, &read, e));
    p->unread = unread.processes;
    p->unread_since = unread.earliest;
    p->inexact |= unread.processes > 0 ? (uint32_t)INEXACT_NOT_READ : 0;
    p->live = read.processes;
    p->as_of = read.latest;
    return PROFD_OK;
}

/* Something of what came from hosts, or of local users, is missing. */
static enum profd_status find_marks(struct loading *l, struct profd_error *e)
{
    uint32_t reasons = 0;
    unsigned of = l->users.count == 0 ? STORE_OF_ALL : 0;
    for (uint32_t i = 0; i < l->users.count; i++) {
        uint32_t uid;
        memcpy(&uid, l->users.keys[i].bytes, sizeof uid);
        of |= store_origin_of(uid);
    }
    TRY(store_get_marks(l->request->store, &l->request->scope, &l->request->filter, (enum store_origin)of, &reasons,
                        e));
    l->provenance.inexact |= reasons;
    return PROFD_OK;
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

/* Before the sums are read: they may have more than is said, never less. */
static enum profd_status find_centres(struct loading *l, struct profd_error *e)
{
    struct named_centres named = {.n = 0};
    if (!store_scope_has_tenants(&l->request->scope)) {
        return PROFD_OK;
    }
    TRY(store_each_centre(l->request->store, take_centre, &named, e));
    struct provenance_centre *centres = ARENA_ARRAY(l->arena, named.n + 1, struct provenance_centre);
    for (size_t i = 0; i < named.n; i++) {
        centres[i] =
            (struct provenance_centre){.name = arena_copy(l->arena, named.list[i].name, strlen(named.list[i].name)),
                                       .sealed_to = named.list[i].sealed_to};
    }
    l->provenance.centres = centres;
    l->provenance.centre_count = named.n;
    return PROFD_OK;
}

/* Everything that matches becomes one profile. */
static enum profd_status load_sum(struct loading *l, struct profile **profile, struct shares *shares,
                                  struct profd_error *e)
{
    const struct load_request *request = l->request;
    struct store_filter filter = request->filter;
    filter.spread |= request->stacks == LOAD_STACKS_SHARES;
    filter.arcs_only = request->arcs_only;
    TRY(find_living(l, e));
    TRY(find_centres(l, e));
    TRY(store_each_upload(request->store, &request->scope, &filter, take_row, l, e));
    TRY(find_marks(l, e));
    TRY(store_pattern_judge(&request->filter, e));
    TRY(rolled_close(l->rolled, l->sum, e));
    TRY(profile_sum_finish(l->sum, profile, e));
    TRY(rolled_join(l->rolled, *profile, e));
    return l->shares ? load_shares_finish(l->shares, *profile, request->alone, shares, e) : PROFD_OK;
}

enum profd_status load_profile(const struct load_request *request, struct arena *a, struct load *out,
                               struct profd_error *e)
{
    struct loading l = {.request = request, .arena = a, .sum = profile_sum_new(a)};
    const struct rolled_config rolled = {.cache = request->cache,
                                         .alone = request->alone,
                                         .arcs_only = request->arcs_only,
                                         .stacks = request->stacks != LOAD_STACKS_NONE,
                                         .shares = request->stacks == LOAD_STACKS_SHARES,
                                         .sum = l.sum};
    l.rolled = rolled_new(a, &rolled);
    set_init(&l.series, a);
    set_init(&l.hosts, a);
    set_init(&l.host_labels, a);
    set_init(&l.users, a);
    l.shares = request->shares ? load_shares_new(request->shares) : NULL;
    struct load result = {0};
    if (request->stacks != LOAD_STACKS_NONE) {
        profile_sum_want_stacks(l.sum, request->stacks == LOAD_STACKS_SHARES);
    }
    enum profd_status status = load_sum(&l, &result.profile, &result.shares, e);
    rolled_done(l.rolled);
    load_shares_done(l.shares);
    if (!status && request->downtime) {
        downtime_measure(request->downtime, l.provenance.first, l.provenance.last, &l.provenance.down_count,
                         &l.provenance.down_ns);
    }
    if (!status) {
        uint32_t *uids = ARENA_ARRAY(l.arena, (size_t)l.users.count + 1, uint32_t);
        for (uint32_t i = 0; i < l.users.count; i++) {
            memcpy(&uids[i], l.users.keys[i].bytes, sizeof *uids);
        }
        qsort(uids, l.users.count, sizeof *uids, uid_compare);
        l.provenance.uids = uids;
        l.provenance.uid_count = l.users.count;
        l.provenance.hosts = l.hosts.count;
        l.provenance.host_labels = l.host_labels.count;
        result.names = l.names;
        result.provenance = l.provenance;
        *out = result;
    }
    return status;
}
