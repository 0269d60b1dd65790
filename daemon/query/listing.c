#include "query/listing.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/buffer.h"
#include "core/compare.h"
#include "proto/collector.h"

static int order_compare(const struct counts_order *a, const struct counts_order *b)
{
    return compare_pairs(a->commit, b->commit, a->rank, b->rank);
}

static int arc_compare(const void *left, const void *right)
{
    return order_compare(&((const struct profile_arc *)left)->order, &((const struct profile_arc *)right)->order);
}

static int histogram_compare(const void *left, const void *right)
{
    const struct profile_histogram *a = *(const struct profile_histogram *const *)left;
    const struct profile_histogram *b = *(const struct profile_histogram *const *)right;
    int order = order_compare(&a->order, &b->order);
    return order != 0 ? order : a < b ? -1 : a > b;
}

/* Bytes a bin, as gprof reckons: in units of two bytes, cut to whole ones. */
static double bin_scale(const struct profile_histogram *h)
{
    return (double)((h->high - h->low) / 2) / h->bins;
}

/* What gprof demands of all histograms of a sum, and arithmetic does of their rates; NULL if nothing is broken. */
static const char *find_quarrel(const struct profile_histogram *a, const struct profile_histogram *b)
{
    if (strcmp(a->dimension, b->dimension) != 0 || a->abbreviation != b->abbreviation) {
        return "their units differ";
    }
    if (a->rate != b->rate) {
        return "their rates differ";
    }
    return fabs(bin_scale(a) - bin_scale(b)) > 0.000001 ? "their bins differ in size" : NULL;
}

static void describe(const struct profile_histogram *h, uint32_t number, struct buffer *b)
{
    buffer_add_format(b, "%" PRIu32 ": 0x%" PRIx64 "-0x%" PRIx64 ", %" PRIu32 " bins, %" PRIu32 " ticks a %s", number,
                      h->low, h->high, h->bins, h->rate,
                      strcmp(h->dimension, "seconds") == 0 ? "second" : h->dimension);
}

static enum profd_status refuse_together(const struct profile_histogram *const *list, uint32_t count,
                                         const char *quarrel, uint32_t one, uint32_t other, struct profd_error *e)
{
    struct buffer b;
    buffer_init(&b, 4096);
    describe(list[one], one + 1, &b);
    buffer_add_text(&b, "; ");
    describe(list[other], other + 1, &b);
    enum profd_status status =
        profd_error_set(e, PROFD_CONFLICT,
                        "gprof cannot add up the %" PRIu32
                        " geometries of this sum, %s (%.*s); select one with geometry=N (profctl: --geometry N)",
                        count, quarrel, (int)b.size, b.size > 0 ? b.data : "");
    buffer_done(&b);
    return status;
}

/* The list ascends by range, so overlapping ranges are adjacent. */
static enum profd_status check_together(const struct profile_histogram *const *list, uint32_t count,
                                        struct profd_error *e)
{
    for (uint32_t i = 1; i < count; i++) {
        const char *quarrel = find_quarrel(list[0], list[i]);
        if (quarrel != NULL) {
            return refuse_together(list, count, quarrel, 0, i, e);
        }
        if (list[i]->low < list[i - 1]->high) {
            return refuse_together(list, count, "their ranges overlap", i - 1, i, e);
        }
    }
    return PROFD_OK;
}

/* The histograms to list, in order of arrival; list has space for all of the profile's. */
static enum profd_status pick_histograms(const struct profile *p, uint32_t build, uint32_t geometry,
                                         const struct profile_histogram **list, uint32_t *out, struct profd_error *e)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < p->histogram_count; i++) {
        if (p->histograms[i].build == build && !collector_is_dimension(p->histograms[i].dimension)) {
            list[count++] = &p->histograms[i];
        }
    }
    if (geometry > count) {
        return profd_error_set(e, PROFD_BAD_QUERY, "geometry=%" PRIu32 ": this sum has geometries 1 to %" PRIu32,
                               geometry, count);
    }
    if (geometry > 0) {
        list[0] = list[geometry - 1];
        count = 1;
    }
    TRY(check_together(list, count, e));
    qsort(list, count, sizeof *list, histogram_compare);
    *out = count;
    return PROFD_OK;
}

static enum profd_status take_histograms(const struct profile *p, uint32_t build, uint32_t geometry, struct arena *a,
                                         struct counts *c, struct profd_error *e)
{
    const struct profile_histogram **list =
        ARENA_ARRAY(a, (size_t)p->histogram_count + 1, const struct profile_histogram *);
    uint64_t bins = 0;
    TRY(pick_histograms(p, build, geometry, list, &c->histogram_count, e));
    for (uint32_t i = 0; i < c->histogram_count; i++) {
        bins += list[i]->used;
    }
    if (bins > UINT32_MAX) {
        return profd_error_set(e, PROFD_TOO_LARGE, "this sum has %" PRIu64 " non-zero bins", bins);
    }
    c->bin_count = (uint32_t)bins;
    c->histograms = ARENA_ARRAY(a, (size_t)c->histogram_count + 1, struct counts_histogram);
    c->bin_index = ARENA_ARRAY(a, (size_t)bins + 1, uint32_t);
    c->bin_ticks = ARENA_ARRAY(a, (size_t)bins + 1, uint64_t);
    uint32_t first = 0;
    for (uint32_t i = 0; i < c->histogram_count; i++) {
        const struct profile_histogram *h = list[i];
        c->histograms[i] = (struct counts_histogram){.geometry = h->geometry, .first = first, .used = h->used};
        c->histograms[i].build = 0;
        if (h->used > 0) {
            memcpy(c->bin_index + first, h->index, h->used * sizeof *h->index);
            memcpy(c->bin_ticks + first, h->ticks, h->used * sizeof *h->ticks);
        }
        first += h->used;
    }
    return PROFD_OK;
}

static void take_arcs(const struct profile *p, uint32_t build, struct arena *a, struct counts *c)
{
    struct profile_arc *arcs = ARENA_ARRAY(a, (size_t)p->arc_count + 1, struct profile_arc);
    uint32_t n = 0;
    for (uint32_t i = 0; i < p->arc_count; i++) {
        if (p->arcs[i].from_build == build && p->arcs[i].to_build == build) {
            arcs[n++] = p->arcs[i];
        }
    }
    c->from_build = ARENA_ARRAY(a, (size_t)n + 1, uint32_t);
    c->to_build = ARENA_ARRAY(a, (size_t)n + 1, uint32_t);
    c->from = ARENA_ARRAY(a, (size_t)n + 1, uint64_t);
    c->to = ARENA_ARRAY(a, (size_t)n + 1, uint64_t);
    c->calls = ARENA_ARRAY(a, (size_t)n + 1, uint64_t);
    qsort(arcs, n, sizeof *arcs, arc_compare);
    for (uint32_t i = 0; i < n; i++) {
        c->from[i] = arcs[i].from;
        c->to[i] = arcs[i].to;
        c->calls[i] = arcs[i].calls;
    }
    c->arc_count = n;
}

/* Histograms and arcs of the profile's build in order of first arrival, without ends in other builds. Several
 * histograms of one rate, unit and bin size over disjoint ranges are listed together, as gprof accepts them; otherwise
 * CONFLICT naming the rule and two that break it, unless geometry (1…, by range and rate) selects one; BAD_QUERY if
 * that does not exist. Arrays live in the arena. O(n log n). */
static enum profd_status make_counts(const struct profile *profile, uint32_t build, uint32_t geometry, struct arena *a,
                                     struct counts *out, struct profd_error *e)
{
    struct counts c = {0};
    TRY(take_histograms(profile, build, geometry, a, &c, e));
    take_arcs(profile, build, a, &c);
    *out = c;
    return PROFD_OK;
}

enum profd_status listing_load(struct job *job, struct work *w, struct counts *out, const struct object **object,
                               struct profd_error *e)
{
    uint32_t target = 0;
    TRY(work_load(job, w, true, e));
    TRY(work_find_objects(job, w, e));
    const struct profile *p = w->load.profile;
    while (target < p->build_count && strcmp(p->builds[target], w->id.text) != 0) {
        target++;
    }
    if (target == p->build_count) {
        return profd_error_set(e, PROFD_NOT_FOUND, "no upload of build %s is in this window", w->id.text);
    }
    TRY(make_counts(p, target, w->options.geometry, job->arena, out, e));
    *object = w->objects[target];
    return PROFD_OK;
}
