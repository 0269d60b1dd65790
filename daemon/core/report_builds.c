#include "core/report_builds.h"

#include <string.h>

#include "proto/sort.h"
#include "core/table.h"

static int report_builds_compare(const void *context, uint32_t x, uint32_t y)
{
    const struct profile *p = context;
    const struct counts_order *a = &p->build_orders[x], *b = &p->build_orders[y];
    if (a->commit != b->commit) {
        return a->commit < b->commit ? -1 : 1;
    }
    if (a->rank != b->rank) {
        return a->rank < b->rank ? -1 : 1;
    }
    return strcmp(p->builds[x], p->builds[y]);
}

static void report_builds_order(struct arena *a, const struct profile *p, struct report_builds *b)
{
    uint32_t n = p->build_count;
    b->count = n;
    b->origin = ARENA_ARRAY(a, (size_t)n * 2, uint32_t);
    b->rank = ARENA_ARRAY(a, (size_t)n + 1, uint32_t);
    b->tables = ARENA_ARRAY(a, (size_t)n + 1, struct symtab *);
    b->first = ARENA_ARRAY(a, (size_t)n + 2, uint32_t);
    for (uint32_t i = 0; i < n; i++) {
        b->origin[i] = i;
    }
    if (p->build_orders != NULL) {
        sort_merge(b->origin, b->origin + n, n, report_builds_compare, p);
    }
    for (uint32_t i = 0; i < n; i++) {
        b->rank[b->origin[i]] = i;
    }
    b->rank[n] = n;
}

struct report_builds_names {
    const struct profile *profile;
};

static uint64_t report_builds_hash(const void *context, uint32_t i)
{
    const struct report_builds_names *names = context;
    return table_hash_text(names->profile->builds[i], '\0', 0);
}

/* Finds the builds of `ever` among the profile's by id. */
static void report_builds_map_ever(struct arena *a, const struct report_request *r, struct report_builds *b)
{
    struct report_builds_names names = {r->profile};
    struct table index = {0};
    b->ever_count = r->ever == NULL ? 0 : r->ever->build_count;
    b->ever_rank = ARENA_ARRAY(a, b->ever_count, uint32_t);
    for (uint32_t i = 0; i < b->count; i++) {
        table_reserve(&index, a, report_builds_hash, &names);
        uint32_t at = table_slot(&index, report_builds_hash(&names, i));
        while (index.slots[at] != 0) {
            at = (at + 1) & index.mask;
        }
        index.slots[at] = i + 1;
        index.used++;
    }
    for (uint32_t i = 0; i < b->ever_count; i++) {
        b->ever_rank[i] = REPORT_BUILDS_ABSENT;
        if (index.slots == NULL) {
            continue;
        }
        uint32_t at = table_slot(&index, table_hash_text(r->ever->builds[i], '\0', 0));
        for (; index.slots[at] != 0; at = (at + 1) & index.mask) {
            if (strcmp(r->profile->builds[index.slots[at] - 1], r->ever->builds[i]) == 0) {
                b->ever_rank[i] = b->rank[index.slots[at] - 1];
            }
        }
    }
}

static const struct object *report_builds_object(const struct report_request *r, const struct report_builds *b,
                                                 uint32_t i)
{
    return r->objects == NULL ? NULL : r->objects[b->origin[i]];
}

static bool report_builds_nameless(const struct object *o)
{
    for (uint32_t i = 0; o != NULL && i < o->symbol_count; i++) {
        if (symtab_is_function(o, &o->symbols[i])) {
            return false;
        }
    }
    return o != NULL;
}

/* Callees of the window and of all time in builds without names, as (address, build). */
static uint32_t report_builds_take_entries(const struct report_request *r, const struct report_builds *b,
                                           const bool *nameless, struct sort_item *items)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < r->profile->arc_count; i++) {
        uint32_t build = report_builds_rank(b, r->profile->arcs[i].to_build);
        if (nameless[build]) {
            items[n++] = (struct sort_item){r->profile->arcs[i].to, build};
        }
    }
    for (uint32_t i = 0; r->ever != NULL && i < r->ever->arc_count; i++) {
        uint32_t build = report_builds_ever_rank(b, r->ever->arcs[i].to_build);
        if (build != REPORT_BUILDS_ABSENT && nameless[build]) {
            items[n++] = (struct sort_item){r->ever->arcs[i].to, build};
        }
    }
    return n;
}

/* Entries of build i are addresses[start[i] … start[i + 1]), ascending and distinct. */
static void report_builds_entries(struct arena *a, const struct report_request *r, const struct report_builds *b,
                                  uint64_t **addresses, uint32_t **start)
{
    bool *nameless = ARENA_ARRAY(a, (size_t)b->count + 1, bool), any = false;
    *start = ARENA_ARRAY(a, (size_t)b->count + 2, uint32_t);
    for (uint32_t i = 0; i < b->count; i++) {
        any |= nameless[i] = report_builds_nameless(report_builds_object(r, b, i));
    }
    size_t capacity = any ? (size_t)r->profile->arc_count + (r->ever == NULL ? 0 : r->ever->arc_count) : 0;
    struct sort_item *items = ARENA_ARRAY(a, capacity * 2, struct sort_item);
    *addresses = ARENA_ARRAY(a, capacity, uint64_t);
    uint32_t n = any ? report_builds_take_entries(r, b, nameless, items) : 0, kept = 0, last = 0;
    sort_radix(items, items + capacity, n);
    /* Now by build; equal builds keep the order of addresses. The address goes where the build was. */
    uint32_t *order = ARENA_ARRAY(a, n, uint32_t), *cursor = ARENA_ARRAY(a, (size_t)b->count + 2, uint32_t);
    for (uint32_t i = 0; i < n; i++) {
        cursor[items[i].value + 1]++;
    }
    for (uint32_t i = 0; i < b->count; i++) {
        cursor[i + 1] += cursor[i];
    }
    for (uint32_t i = 0; i < n; i++) {
        order[cursor[items[i].value]++] = i;
    }
    for (uint32_t i = 0; i < n; i++) {
        const struct sort_item *item = &items[order[i]];
        for (; last < item->value; last++) {
            (*start)[last + 1] = kept;
        }
        if (kept == (*start)[last] || (*addresses)[kept - 1] != item->key) {
            (*addresses)[kept++] = item->key;
        }
    }
    for (; last <= b->count; last++) {
        (*start)[last + 1] = kept;
    }
}

enum profd_status report_builds_make(struct arena *a, const struct report_request *request, struct report_builds *out,
                                     struct profd_error *e)
{
    uint64_t *entries = NULL;
    uint32_t *start = NULL;
    report_builds_order(a, request->profile, out);
    report_builds_map_ever(a, request, out);
    report_builds_entries(a, request, out, &entries, &start);
    uint64_t owners = 0;
    for (uint32_t i = 0; i <= out->count; i++) {
        bool outside = i == out->count;
        struct symtab_request table = {.object = outside ? NULL : report_builds_object(request, out, i),
                                       .build_id = outside ? NULL : request->profile->builds[out->origin[i]],
                                       .entries = entries + start[i],
                                       .entry_count = start[i + 1] - start[i],
                                       .fold_clones = request->fold_clones};
        TRY(symtab_build(a, &table, &out->tables[i], e));
        out->first[i] = (uint32_t)owners;
        owners += out->tables[i]->owner_count;
        if (owners >= REPORT_CYCLE) {
            return profd_error_set(e, PROFD_LIMIT,
                                   "%llu functions in the report's builds: at most %u can be told apart",
                                   (unsigned long long)owners, REPORT_CYCLE - 1);
        }
    }
    out->first[out->count + 1] = (uint32_t)owners;
    return PROFD_OK;
}

uint32_t report_builds_of(const struct report_builds *b, uint32_t owner)
{
    uint32_t low = 0, high = b->count + 1;
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        if (b->first[middle] <= owner) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return low;
}
