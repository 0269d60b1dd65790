#include "core/shares.h"

#include <string.h>

#include "proto/sort.h"
#include "proto/sum.h"
#include "proto/collector.h"
#include "proto/counts.h"

#define SECOND 1000000000u

bool share_add_counts(struct share *shares, const struct counts *c)
{
    bool saturated = false;
    for (uint32_t i = 0; i < c->histogram_count; i++) {
        const struct counts_histogram *h = &c->histograms[i];
        uint64_t ticks = 0, ns;
        for (uint32_t k = 0; k < h->used && !collector_is_dimension(h->dimension); k++) {
            sum_add(&ticks, c->bin_ticks[h->first + k], &saturated);
        }
        if (strcmp(h->dimension, "seconds") != 0) { /* ticks of anything else are not time */
            continue;
        }
        /* The rate is within limits.h, so that nothing else can overflow. */
        if (__builtin_mul_overflow(ticks / h->rate, (uint64_t)SECOND, &ns)) {
            saturated = true;
            ns = SUM_MAX;
        } else {
            sum_add(&ns, ticks % h->rate * SECOND / h->rate, &saturated);
        }
        sum_add(&shares[h->build].nanoseconds, ns, &saturated);
    }
    for (uint32_t i = 0; i < c->arc_count; i++) {
        if (c->to_build[i] != COUNTS_NOWHERE) {
            sum_add(&shares[c->to_build[i]].calls, c->calls[i], &saturated);
        }
    }
    return saturated;
}

_Static_assert(RANDOM_GROUPS == COUNTS_GROUPS, "a row of the one is a row of the other");

void shares_new(struct arena *a, const struct profile *p, uint64_t *calls, struct shares *out)
{
    uint64_t bins = 0;
    *out = (struct shares){.profile = p, .first = ARENA_ARRAY(a, (size_t)p->histogram_count + 1, uint64_t)};
    for (uint32_t i = 0; i < p->histogram_count; i++) {
        out->first[i] = bins;
        bins += p->histograms[i].used;
    }
    out->ticks = ARENA_ARRAY(a, (size_t)bins * RANDOM_GROUPS, uint64_t);
    out->calls = calls != NULL ? calls : ARENA_ARRAY(a, (size_t)p->arc_count * RANDOM_GROUPS, uint64_t);
}

/* What is added: a rollup with its spread, or that of one group. */
struct shares_from {
    const struct counts *r;
    const struct counts_shares *spread;
    uint32_t group;
};

/* from: the row's spread, NULL: count is the group's. */
static void shares_add_row(const struct shares_from *f, uint64_t *to, const uint64_t *from, uint64_t count)
{
    bool saturated = false;
    if (from == NULL) {
        sum_add(&to[f->group], count, &saturated);
        return;
    }
    for (uint32_t g = 0; g < RANDOM_GROUPS; g++) {
        sum_add(&to[g], from[g], &saturated);
    }
}

/* Adds the shares of a histogram's bins to the profile's histogram of its geometry; both ascend by bin. */
static void shares_add_histogram(struct shares *s, const struct shares_from *f, const struct counts_histogram *from,
                                 uint32_t build)
{
    const struct counts *r = f->r;
    const struct profile *p = s->profile;
    struct counts_geometry geometry = from->geometry;
    geometry.build = build;
    uint32_t at;
    SORT_SEARCH(at, 0, p->histogram_count, counts_compare_geometry(&p->histograms[at].geometry, &geometry) < 0);
    if (at == p->histogram_count || counts_compare_geometry(&p->histograms[at].geometry, &geometry) != 0) {
        return;
    }
    const struct profile_histogram *to = &p->histograms[at];
    for (uint32_t i = from->first, k = 0; i < from->first + from->used; i++) {
        while (k < to->used && to->index[k] < r->bin_index[i]) {
            k++;
        }
        if (k < to->used && to->index[k] == r->bin_index[i]) {
            const uint64_t *row = f->spread != NULL ? &f->spread->bins[(size_t)i * COUNTS_GROUPS] : NULL;
            shares_add_row(f, &s->ticks[(s->first[at] + k) * RANDOM_GROUPS], row, r->bin_ticks[i]);
        }
    }
}

/* As profiles order arcs. */
static int shares_compare_arcs(const struct profile_arc *a, const struct profile_arc *b)
{
    const int order = compare_pairs(a->from_build, b->from_build, a->from, b->from);
    return order != 0 ? order : compare_pairs(a->to_build, b->to_build, a->to, b->to);
}

/* An end outside all builds keeps its address, unless it is outside because one build alone is wanted. */
static void shares_map_end(const uint32_t *map, bool alone, uint32_t *build, uint64_t *address)
{
    *build = *build == COUNTS_NOWHERE ? COUNTS_NOWHERE : map[*build];
    if (alone && *build == COUNTS_NOWHERE) {
        *address = 0;
    }
}

/* Arc i of a rollup, as the profile has it. */
static struct profile_arc shares_arc(const struct counts *r, uint32_t i, const uint32_t *map, bool alone)
{
    struct profile_arc arc = {
        .from_build = r->from_build[i], .to_build = r->to_build[i], .from = r->from[i], .to = r->to[i]};
    shares_map_end(map, alone, &arc.from_build, &arc.from);
    shares_map_end(map, alone, &arc.to_build, &arc.to);
    return arc;
}

bool shares_has_arcs(const struct profile *p, const struct counts *r, const uint32_t *map, bool alone)
{
    bool same = p->arc_count == r->arc_count;
    for (uint32_t i = 0; same && i < r->arc_count; i++) {
        const struct profile_arc arc = shares_arc(r, i, map, alone);
        same = shares_compare_arcs(&p->arcs[i], &arc) == 0;
    }
    return same;
}

void shares_add(struct shares *s, const struct counts *r, const struct counts_shares *spread, uint32_t group,
                const uint32_t *map, bool alone)
{
    const struct shares_from f = {r, spread, group};
    const struct profile *p = s->profile;
    for (uint32_t i = 0; i < r->histogram_count; i++) {
        const struct counts_histogram *h = &r->histograms[i];
        if (!collector_is_dimension(h->dimension) && map[h->build] != COUNTS_NOWHERE) {
            shares_add_histogram(s, &f, h, map[h->build]);
        }
    }
    uint32_t at = 0; /* arcs mostly come in the profile's order: the one behind the last is tried first */
    for (uint32_t i = 0; i < r->arc_count && (spread == NULL || s->calls != spread->arcs); i++) {
        const struct profile_arc arc = shares_arc(r, i, map, alone);
        uint32_t to = at;
        if (to >= p->arc_count || shares_compare_arcs(&p->arcs[to], &arc) != 0) {
            SORT_SEARCH(to, 0, p->arc_count, shares_compare_arcs(&p->arcs[to], &arc) < 0);
        }
        if (to < p->arc_count && shares_compare_arcs(&p->arcs[to], &arc) == 0) {
            const uint64_t *row = spread != NULL ? &spread->arcs[(size_t)i * COUNTS_GROUPS] : NULL;
            shares_add_row(&f, &s->calls[(size_t)to * RANDOM_GROUPS], row, r->calls[i]);
            at = to + 1;
        }
    }
}
