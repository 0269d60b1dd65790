#include "query/listing.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/buffer.h"

static int order_compare(const struct profile_order *a, const struct profile_order *b)
{
    if (a->commit != b->commit) {
        return a->commit < b->commit ? -1 : 1;
    }
    return a->rank < b->rank ? -1 : a->rank > b->rank;
}

static int arc_compare(const void *left, const void *right)
{
    return order_compare(&((const struct profile_arc *)left)->order, &((const struct profile_arc *)right)->order);
}

static enum profd_status refuse_several(const struct profile *p, uint32_t build, uint32_t count, struct profd_error *e)
{
    struct buffer b;
    uint32_t n = 0;
    buffer_init(&b, 4096);
    for (uint32_t i = 0; i < p->histogram_count && n < 3; i++) {
        const struct profile_histogram *h = &p->histograms[i];
        if (h->build == build) {
            n++;
            buffer_add_format(&b, "%s%" PRIu32 ": 0x%" PRIx64 "-0x%" PRIx64 ", %" PRIu32 " bins, %" PRIu32 " ticks a %s",
                              n > 1 ? "; " : "", n, h->low, h->high, h->bins, h->rate,
                              strcmp(h->dimension, "seconds") == 0 ? "second" : h->dimension);
        }
    }
    enum profd_status status =
        profd_error_set(e, PROFD_CONFLICT, "gprof cannot add up the %" PRIu32 " geometries of this sum (%.*s%s): geometry=N "
                        "picks one", count, (int)b.size, b.size > 0 ? b.data : "", count > n ? "; ..." : "");
    buffer_done(&b);
    return status;
}

static enum profd_status pick_histogram(const struct profile *p, uint32_t build, uint32_t geometry,
                                        const struct profile_histogram **out, struct profd_error *e)
{
    uint32_t count = 0;
    *out = NULL;
    for (uint32_t i = 0; i < p->histogram_count; i++) {
        if (p->histograms[i].build == build && ++count == (geometry == 0 ? 1 : geometry)) {
            *out = &p->histograms[i];
        }
    }
    if (geometry == 0 && count > 1) {
        return refuse_several(p, build, count, e);
    }
    if (geometry > count) {
        return profd_error_set(e, PROFD_BAD_QUERY, "geometry=%" PRIu32 ": this sum has %" PRIu32, geometry, count);
    }
    return PROFD_OK;
}

static bool take_histogram(const struct profile_histogram *h, struct arena *a, struct counts *c)
{
    struct counts_histogram *to = ARENA_NEW(a, struct counts_histogram);
    if (to == NULL) {
        return false;
    }
    *to = (struct counts_histogram){.bins = h->bins, .low = h->low, .high = h->high, .rate = h->rate,
                                    .abbreviation = h->abbreviation, .used = h->used};
    memcpy(to->dimension, h->dimension, sizeof to->dimension);
    c->histogram_count = 1;
    c->histograms = to;
    c->bin_count = h->used;
    c->bin_index = h->index;
    c->bin_ticks = h->ticks;
    return true;
}

static bool take_arcs(const struct profile *p, uint32_t build, struct arena *a, struct counts *c)
{
    struct profile_arc *arcs = ARENA_ARRAY(a, (size_t)p->arc_count + 1, struct profile_arc);
    uint32_t n = 0;
    for (uint32_t i = 0; arcs != NULL && i < p->arc_count; i++) {
        if (p->arcs[i].from_build == build && p->arcs[i].to_build == build) {
            arcs[n++] = p->arcs[i];
        }
    }
    c->from_build = ARENA_ARRAY(a, (size_t)n + 1, uint32_t);
    c->to_build = ARENA_ARRAY(a, (size_t)n + 1, uint32_t);
    c->from = ARENA_ARRAY(a, (size_t)n + 1, uint64_t);
    c->to = ARENA_ARRAY(a, (size_t)n + 1, uint64_t);
    c->calls = ARENA_ARRAY(a, (size_t)n + 1, uint64_t);
    if (arcs == NULL || c->from_build == NULL || c->to_build == NULL || c->from == NULL || c->to == NULL ||
        c->calls == NULL) {
        return false;
    }
    qsort(arcs, n, sizeof *arcs, arc_compare);
    for (uint32_t i = 0; i < n; i++) {
        c->from[i] = arcs[i].from;
        c->to[i] = arcs[i].to;
        c->calls[i] = arcs[i].calls;
    }
    c->arc_count = n;
    return true;
}

enum profd_status listing_make_counts(const struct profile *profile, uint32_t build, uint32_t geometry, struct arena *a,
                                      struct counts *out, struct profd_error *e)
{
    const struct profile_histogram *histogram;
    struct counts c = {0};
    enum profd_status status = pick_histogram(profile, build, geometry, &histogram, e);
    if (status != PROFD_OK) {
        return status;
    }
    if ((histogram != NULL && !take_histogram(histogram, a, &c)) || !take_arcs(profile, build, a, &c)) {
        return profd_error_set(e, PROFD_NO_MEMORY, "no memory for %" PRIu32 " arcs", profile->arc_count);
    }
    *out = c;
    return PROFD_OK;
}
