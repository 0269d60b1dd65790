/* Stored uploads and sums become one profile: single uploads, sums that are added up by blocks of hours or days, and
 * the shares of the random groups. */
#include <stdlib.h>
#include <string.h>

#include "core/rollup.h"
#include "proto/collector.h"
#include "proto/message.h"
#include "proto/sum.h"
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
    struct counts r; /* its arrays are in the same block */
    struct counts_shares shares;
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
    const size_t share_bytes = shares ? (size_t)r->node_count * COUNTS_GROUPS * sizeof *shares : 0;
    size_t size = sizeof(struct cached_sum) + share_bytes, at = sizeof(struct cached_sum);
    for (const struct counts_column *k = counts_columns; k < counts_columns + COUNTS_COLUMNS; k++) {
        size += (rows[k->kind] * k->size + 7) & ~(size_t)7; /* arrays begin at multiples of 8 */
    }
    char *block = size <= c->lru.limit / 4 ? malloc(size) : NULL;
    struct cached_sum *entry = (struct cached_sum *)(void *)block;
    if (entry) {
        *entry = (struct cached_sum){.r = *r, .shares.nodes = shares ? (uint64_t *)(void *)(block + at) : NULL};
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
struct load_group {
    const uint32_t *map;
    uint32_t builds;
    struct rollup_sum *sum;
    struct counts total;
    struct counts_shares shares;
};

struct profile_load {
    const struct load_request *request;
    struct arena *arena, *sums; /* sums: of counts */
    enum rollup_shares shares;
    struct set builds, series, hosts, host_labels, users, *rows;
    const uint32_t **maps; /* per series: the number of each build of its uploads among all */
    uint32_t map_capacity;
    struct load_build {
        const char *id, *name;
        struct counts_order order;
    } * list; /* of builds, by number */
    uint32_t list_capacity;
    struct provenance provenance;
    struct set group_maps;
    struct load_group *groups; /* by number of group_maps */
    uint32_t group_capacity;
    /* rolled rows */
    struct arena *bytes, *scratch, *block; /* of waiting rows; of one that is decoded; of a block's sum */
    struct waiting *waiting;
    uint32_t waiting_count, waiting_capacity;
};

/* The group of a row; map is as long-lived as the load. In alone mode, COUNTS_NOWHERE stands for builds that are left
 * out. */
static uint32_t find_group(struct profile_load *l, const struct store_row *row, const uint32_t *map)
{
    bool added;
    const uint32_t group = set_add(&l->group_maps, map, row->build_count * sizeof *map, &added);
    if (added) {
        l->groups = arena_extend(l->arena, l->groups, group, &l->group_capacity, sizeof *l->groups);
        l->groups[group] = (struct load_group){
            .map = map, .builds = (uint32_t)row->build_count, .sum = rollup_sum_new(l->sums, l->shares)};
    }
    return group;
}

/* Leaves of decoded counts what the load asks for. */
static void keep_asked(const struct profile_load *l, struct counts *c)
{
    if (l->request->arcs_only) {
        c->histogram_count = c->bin_count = 0;
    }
    if (l->request->stacks == LOAD_STACKS_NONE) {
        c->tree_count = c->node_count = 0;
    }
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

/* Adds a finished block to its group. */
static enum profd_status join_block(struct profile_load *l, const struct load_group *group, struct counts total,
                                    const struct counts_shares *shares, struct profd_error *e)
{
    ARENA_BOUNDARY(l->arena, profd_no_memory(e)); /* the cache may be locked */
    keep_asked(l, &total);
    return rollup_sum_add(group->sum, &total, shares, e);
}

/* Adds up a block that is not in the cache, and keeps it there. */
static enum profd_status add_fresh(struct profile_load *l, const struct waiting *rows, uint32_t n, const uint64_t *key,
                                   struct profd_error *e)
{
    const struct load_group *group = &l->groups[rows[0].group];
    struct rollup_sum *sum = rollup_sum_new(l->block, l->shares);
    struct counts total;
    struct counts_shares shares;
    for (const struct waiting *row = rows; row < rows + n; row++) {
        struct counts decoded;
        struct counts_shares spread = {0};
        arena_reset(l->scratch);
        enum profd_status status =
            rollup_decode(l->scratch, row->bytes, row->size, group->builds, l->request->arcs_only, &decoded, e);
        if (!status && row->spread && (l->shares == ROLLUP_ALL || decoded.tree_count > 0)) {
            status = rollup_decode_spread(l->scratch, &decoded, row->spread, row->spread_size, &spread, e);
        }
        if (status) {
            return profd_error_wrap(e, status, "a stored sum cannot be read");
        }
        keep_asked(l, &decoded);
        TRY(rollup_sum_add(sum, &decoded, &spread, e));
    }
    TRY(rollup_sum_finish(sum, &total, &shares, e));
    if (l->request->cache && l->shares != ROLLUP_ALL) {
        cache_put(l->request->cache, key, (2 * (size_t)n + 1) * sizeof *key, &total, shares.nodes);
    }
    return join_block(l, group, total, &shares, e);
}

/* Adds n rows of one block of a group, from the cache if it is there. A sum that has more than is needed can also be
 * used. */
static enum profd_status add_block(struct profile_load *l, const struct waiting *rows, uint32_t n,
                                   struct profd_error *e)
{
    struct query_cache *cache = l->shares == ROLLUP_ALL ? NULL : l->request->cache;
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
                status = join_block(l, &l->groups[rows[0].group], entry->r, &entry->shares, e);
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

/* Lets a sum's row wait for its block. */
static enum profd_status add_rolled(struct profile_load *l, const struct store_row *row, uint32_t group,
                                    struct profd_error *e)
{
    if (arena_used(l->bytes) + row->counts_size > ROLLED_WAITING) {
        TRY(add_waiting(l, e));
    }
    l->waiting = arena_extend(l->arena, l->waiting, l->waiting_count, &l->waiting_capacity, sizeof *l->waiting);
    const char *bytes = arena_copy(l->bytes, (const char *)row->counts, row->counts_size);
    const bool spread = l->shares != ROLLUP_PLAIN && row->spread;
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
static void note_orders(struct profile_load *l, const struct load_group *g)
{
    const struct counts *t = &g->total;
    uint64_t *first = ARENA_ARRAY(l->arena, g->builds, uint64_t);
    memset(first, 0xff, g->builds * sizeof *first);
    for (uint32_t i = 0; i < t->histogram_count; i++) {
        uint64_t *at = &first[t->histograms[i].build];
        if (!collector_is_dimension(t->histograms[i].dimension) && t->histograms[i].order.commit < *at) {
            *at = t->histograms[i].order.commit;
        }
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
            counts_order_lower(&l->list[g->map[i]].order, (struct counts_order){first[i], i});
        }
    }
}

/* All groups as one sum, in numbers of all builds. */
static enum profd_status join_groups(struct profile_load *l, struct profile *p, struct profd_error *e)
{
    const uint32_t n = l->group_maps.count;
    for (struct load_group *g = l->groups; g < l->groups + n; g++) {
        TRY(rollup_sum_finish(g->sum, &g->total, &g->shares, e));
        note_orders(l, g);
    }
    bool whole = n == 1 && !l->request->alone; /* a single group with the same numbers is the usual case */
    for (uint32_t i = 0; whole && i < l->groups->builds; i++) {
        whole = l->groups->map[i] == i;
    }
    if (whole) {
        p->counts = l->groups->total;
        p->shares = l->groups->shares;
    } else {
        struct rollup_sum *sum = rollup_sum_new(l->sums, l->shares);
        for (const struct load_group *g = l->groups; g < l->groups + n; g++) {
            TRY(rollup_sum_add_mapped(sum, &g->total, &g->shares, g->map, g->builds, l->request->alone, e));
        }
        TRY(rollup_sum_finish(sum, &p->counts, &p->shares, e));
    }
    /* What saturated may have been left out since (another build, the histograms). */
    counts_totals(&p->counts, &p->ticks, &p->calls);
    p->counts.saturated &= p->ticks == SUM_MAX || p->calls == SUM_MAX;
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
        map[i] = set_add(&l->builds, build->id.text, strlen(build->id.text), &added);
        struct load_build *b = l->list = arena_extend(l->arena, l->list, map[i], &l->list_capacity, sizeof *l->list);
        b += map[i];
        if (added) {
            const char *name = build->name ? build->name : "";
            *b = (struct load_build){
                l->builds.keys[map[i]].bytes, arena_copy(l->arena, name, strlen(name)), {UINT64_MAX, UINT32_MAX}};
        }
        if (!l->request->alone) { /* a series is first seen with the number of its earliest upload */
            counts_order_lower(&b->order, (struct counts_order){row->commit, (uint32_t)i});
        }
    }
    return l->maps[number] = map;
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
    const uint32_t group = find_group(l, row, map);
    if (row->rolled) {
        return add_rolled(l, row, group, e);
    }

    struct counts c;
    TRY(row_decode_counts(row, l->scratch, &c, e));
    keep_asked(l, &c);
    return rollup_sum_add_upload(l->groups[group].sum, &c, row->commit, row->group % COUNTS_GROUPS, e);
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
static enum profd_status load_sum(struct profile_load *l, struct profile *p, struct profd_error *e)
{
    const struct load_request *r = l->request;
    TRY(r->row ? take_row(l, r->row, e) : take_matching(l, e));
    TRY(add_waiting(l, e));
    return join_groups(l, p, e);
}

enum profd_status load_profile(const struct load_request *request, struct arena *a, struct load *out,
                               struct profd_error *e)
{
    struct profile_load l = {.request = request,
                             .arena = a,
                             .sums = request->shares ? request->shares : a,
                             .shares = request->shares                         ? ROLLUP_ALL
                                       : request->stacks == LOAD_STACKS_SHARES ? ROLLUP_NODES
                                                                               : ROLLUP_PLAIN,
                             .rows = request->loaded ? request->loaded : ARENA_NEW(a, struct set),
                             .bytes = arena_new_child(a, LIMIT_QUERY_MEMORY),
                             .scratch = arena_new_child(a, LIMIT_QUERY_MEMORY),
                             .block = arena_new_child(a, LIMIT_QUERY_MEMORY)};
    struct profile *profile = ARENA_NEW(a, struct profile);
    if (!request->loaded) {
        set_init(l.rows, a);
    }
    set_init(&l.builds, a);
    set_init(&l.series, a);
    set_init(&l.hosts, a);
    set_init(&l.host_labels, a);
    set_init(&l.users, a);
    set_init(&l.group_maps, a);
    enum profd_status status = load_sum(&l, profile, e);
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
    const char **builds = ARENA_ARRAY(a, l.builds.count, const char *),
               **names = ARENA_ARRAY(a, l.builds.count, const char *);
    struct counts_order *orders = ARENA_ARRAY(a, l.builds.count, struct counts_order);
    for (uint32_t i = 0; i < l.builds.count; i++) {
        builds[i] = l.list[i].id;
        names[i] = l.list[i].name;
        orders[i] = l.list[i].order;
    }
    profile->build_count = l.builds.count;
    profile->builds = builds;
    profile->build_orders = orders;
    *out = (struct load){.profile = profile, .names = names, .provenance = *p, .rows = l.rows};
    return PROFD_OK;
}
