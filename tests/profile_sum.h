/* A profile from uploads, for tests: all rows are kept, sorted at the end, and equal ones added up. */
#ifndef PROFD_TESTS_PROFILE_SUM_H
#define PROFD_TESTS_PROFILE_SUM_H

#include <stdlib.h>
#include <string.h>

#include "core/arena.h"
#include "core/profile.h"
#include "proto/collector.h"
#include "proto/sort.h"
#include "proto/status.h"
#include "proto/sum.h"

#define PROFILE_SUM_BUILDS 64

struct profile_sum_arc {
    uint32_t from_build, to_build;
    uint64_t from, to, calls;
    struct counts_order order;
};

struct profile_sum_bin {
    struct counts_histogram head; /* of its histogram */
    uint32_t index;
    uint64_t ticks;
    bool any; /* else it stands for the histogram alone */
};

struct profile_sum {
    struct arena *arena;
    const char *builds[PROFILE_SUM_BUILDS];
    struct counts_order orders[PROFILE_SUM_BUILDS];
    struct profile_sum_arc *arcs;
    struct profile_sum_bin *bins;
    uint32_t build_count, arc_count, arc_capacity, bin_count, bin_capacity;
};

static inline struct profile_sum *profile_sum_new(struct arena *a)
{
    struct profile_sum *s = ARENA_NEW(a, struct profile_sum);
    s->arena = a;
    return s;
}

static inline uint32_t profile_sum_build(struct profile_sum *s, const char *id)
{
    uint32_t i = 0;
    while (i < s->build_count && strcmp(s->builds[i], id) != 0) {
        i++;
    }
    if (i == s->build_count) {
        s->builds[i] = arena_copy(s->arena, id, strlen(id));
        s->orders[s->build_count++] = (struct counts_order){UINT64_MAX, UINT32_MAX};
    }
    return i;
}

static inline void profile_sum_load_order(struct profile_sum *s, const uint32_t *map, uint32_t n, uint64_t commit)
{
    for (uint32_t i = 0; i < n; i++) {
        counts_order_lower(&s->orders[map[i]], (struct counts_order){commit, i});
    }
}

static inline uint32_t profile_sum_end(struct profile_sum *s, uint32_t build, const uint32_t *map, uint64_t commit)
{
    if (build != COUNTS_NOWHERE) {
        counts_order_lower(&s->orders[map[build]], (struct counts_order){commit, build});
    }
    return build == COUNTS_NOWHERE ? build : map[build];
}

static inline void profile_sum_add(struct profile_sum *s, const struct counts *c, const uint32_t *map, uint64_t commit)
{
    for (uint32_t i = 0; i < c->histogram_count; i++) {
        const struct counts_histogram *h = &c->histograms[i];
        struct profile_sum_bin bin = {.head = *h};
        bin.head.order = (struct counts_order){commit, c->sorted ? h->order.rank : i};
        bin.head.build = map[h->build];
        if (!collector_is_dimension(h->dimension)) {
            profile_sum_end(s, h->build, map, commit);
        }
        for (uint32_t k = 0; k <= h->used; k++) {
            s->bins = arena_extend(s->arena, s->bins, s->bin_count, &s->bin_capacity, sizeof *s->bins);
            s->bins[s->bin_count++] = bin;
            if (k < h->used) {
                bin.any = true;
                bin.index = c->bin_index[h->first + k];
                bin.ticks = c->bin_ticks[h->first + k];
            }
        }
    }
    for (uint32_t i = 0; i < c->arc_count; i++) {
        s->arcs = arena_extend(s->arena, s->arcs, s->arc_count, &s->arc_capacity, sizeof *s->arcs);
        s->arcs[s->arc_count++] = (struct profile_sum_arc){profile_sum_end(s, c->from_build[i], map, commit),
                                                           profile_sum_end(s, c->to_build[i], map, commit),
                                                           c->from[i],
                                                           c->to[i],
                                                           c->calls[i],
                                                           {commit, c->sorted ? c->rank[i] : i}};
    }
}

static inline int profile_sum_compare_bins(const void *left, const void *right)
{
    const struct profile_sum_bin *a = left, *b = right;
    const int order = counts_compare_geometry(&a->head.geometry, &b->head.geometry);
    return order != 0 ? order : compare_pairs(a->any, b->any, a->index, b->index);
}

static inline int profile_sum_compare_arcs(const void *left, const void *right)
{
    const struct profile_sum_arc *a = left, *b = right;
    const int order = compare_pairs(a->from_build, b->from_build, a->from, b->from);
    return order != 0 ? order : compare_pairs(a->to_build, b->to_build, a->to, b->to);
}

static inline enum profd_status profile_sum_finish(struct profile_sum *s, struct profile **out, struct profd_error *e)
{
    (void)e;
    struct arena *a = s->arena;
    struct profile *p = ARENA_NEW(a, struct profile);
    struct counts *c = &p->counts;
    p->build_count = s->build_count;
    p->builds = s->builds;
    p->build_orders = s->orders;
    c->sorted = true;
    c->histograms = ARENA_ARRAY(a, s->bin_count + 1, struct counts_histogram);
    c->bin_index = ARENA_ARRAY(a, s->bin_count + 1, uint32_t);
    c->bin_ticks = ARENA_ARRAY(a, s->bin_count + 1, uint64_t);
    c->from_build = ARENA_ARRAY(a, s->arc_count + 1, uint32_t);
    c->to_build = ARENA_ARRAY(a, s->arc_count + 1, uint32_t);
    c->from = ARENA_ARRAY(a, s->arc_count + 1, uint64_t);
    c->to = ARENA_ARRAY(a, s->arc_count + 1, uint64_t);
    c->calls = ARENA_ARRAY(a, s->arc_count + 1, uint64_t);
    c->commit = ARENA_ARRAY(a, s->arc_count + 1, uint64_t);
    c->rank = ARENA_ARRAY(a, s->arc_count + 1, uint32_t);
    if (s->bin_count > 0) {
        qsort(s->bins, s->bin_count, sizeof *s->bins, profile_sum_compare_bins);
    }
    for (uint32_t i = 0; i < s->bin_count; i++) {
        const struct profile_sum_bin *bin = &s->bins[i];
        bool full = false, *saturated = collector_is_dimension(bin->head.dimension) ? &full : &c->saturated;
        if (i == 0 || counts_compare_geometry(&bin[-1].head.geometry, &bin->head.geometry) != 0) {
            c->histograms[c->histogram_count] = bin->head;
            c->histograms[c->histogram_count].first = c->bin_count;
            c->histograms[c->histogram_count++].used = 0;
        }
        struct counts_histogram *h = &c->histograms[c->histogram_count - 1];
        counts_order_lower(&h->order, bin->head.order);
        if (!bin->any) {
            continue;
        }
        if (h->used == 0 || c->bin_index[c->bin_count - 1] != bin->index) {
            h->used++;
            c->bin_index[c->bin_count++] = bin->index;
        }
        sum_add(&c->bin_ticks[c->bin_count - 1], bin->ticks, saturated);
    }
    if (s->arc_count > 0) {
        qsort(s->arcs, s->arc_count, sizeof *s->arcs, profile_sum_compare_arcs);
    }
    for (uint32_t i = 0; i < s->arc_count; i++) {
        const struct profile_sum_arc *arc = &s->arcs[i];
        if (i == 0 || profile_sum_compare_arcs(&arc[-1], arc) != 0) {
            const uint32_t n = c->arc_count++;
            c->from_build[n] = arc->from_build;
            c->to_build[n] = arc->to_build;
            c->from[n] = arc->from;
            c->to[n] = arc->to;
            c->commit[n] = arc->order.commit;
            c->rank[n] = arc->order.rank;
        }
        const uint32_t n = c->arc_count - 1;
        struct counts_order order = {c->commit[n], c->rank[n]};
        counts_order_lower(&order, arc->order);
        c->commit[n] = order.commit;
        c->rank[n] = order.rank;
        sum_add(&c->calls[n], arc->calls, &c->saturated);
    }
    counts_totals(c, &p->ticks, &p->calls);
    c->saturated |= p->ticks == SUM_MAX || p->calls == SUM_MAX;
    *out = p;
    return PROFD_OK;
}

#endif
