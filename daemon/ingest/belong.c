#include "ingest/belong.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "ingest/bounds.h"
#include "proto/message.h"
#include "proto/words.h"

#define FEW 32    /* builds of a usual upload */
#define BUCKET 16 /* bytes of text for which glibc keeps one caller */

__extension__ typedef unsigned __int128 wide;

/* One build of the upload; bounds NULL: its object is not known. */
struct belong_build {
    const struct bounds *bounds;
    struct bounds_hint hint;
    bool proven; /* the histogram spans what the symbols say */
};

static enum profd_status wrong(struct profd_error *e, const struct store_build *b, const char *what, uint64_t value)
{
    return profd_error_set(e, PROFD_WRONG_BUILD,
                           "%s 0x%llx lies outside the code of build %s (\"%s\"): not the executable that was profiled",
                           what, (unsigned long long)value, b->id.text, b->name);
}

static enum profd_status check_marks(const struct counts_histogram *h, const struct store_build *b,
                                     struct belong_build *k, struct profd_error *e)
{
    uint64_t low = k->bounds->executable_start & ~UINT64_C(3), high = (k->bounds->etext + 3) & ~UINT64_C(3);
    if (h->low != low || h->high != high)
        return profd_error_set(
            e, PROFD_WRONG_BUILD,
            "the histogram spans 0x%llx-0x%llx, but build %s (\"%s\") has __executable_start and etext for "
            "0x%llx-0x%llx: not the executable that was profiled",
            (unsigned long long)h->low, (unsigned long long)h->high, b->id.text, b->name, (unsigned long long)low,
            (unsigned long long)high);
    k->proven = true;
    return PROFD_OK;
}

static enum profd_status check_bins(const struct counts *c, const struct counts_histogram *h,
                                    const struct store_build *b, struct belong_build *k, struct profd_error *e)
{
    uint64_t span = h->high - h->low;
    if (!bounds_touch(k->bounds, h->low, h->high))
        return wrong(e, b, "a histogram that begins at", h->low);
    for (uint32_t i = h->first; i < h->first + h->used; i++) {
        uint64_t low = h->low + (uint64_t)((wide)span * c->bin_index[i] / h->bins);
        uint64_t high = h->low + (uint64_t)((wide)span * ((wide)c->bin_index[i] + 1) / h->bins);
        if (!bounds_touch_near(k->bounds, low, high > low ? high : low + 1, &k->hint))
            return wrong(e, b, "a bin with ticks at", low);
    }
    return PROFD_OK;
}

static bool touches(struct belong_build *k, uint64_t low, uint64_t size)
{
    uint64_t high = low + size;
    return bounds_touch_near(k->bounds, low, high > low ? high : UINT64_MAX, &k->hint);
}

/* A caller is told by where its call returns to: behind the code when that ends with a call that never returns. */
static bool caller_touches(struct belong_build *k, uint64_t from, bool imported)
{
    return imported ? touches(k, from, BUCKET) : from == 0 ? touches(k, 0, 1) : touches(k, from - 1, 2);
}

static enum profd_status check_arcs(const struct store_upload *u, const struct counts *c, struct belong_build *builds,
                                    struct profd_error *e)
{
    bool imported = (u->inexact & INEXACT_CALLER_BUCKET) != 0;
    for (uint32_t i = 0; i < c->arc_count; i++) {
        uint32_t from = c->from_build[i], to = c->to_build[i];
        if (from != COUNTS_NOWHERE && builds[from].bounds && !caller_touches(&builds[from], c->from[i], imported))
            return wrong(e, &u->builds[from], "the caller of an arc at", c->from[i]);
        if (to != COUNTS_NOWHERE && builds[to].bounds && !(imported && builds[to].proven) &&
            !touches(&builds[to], c->to[i], 1))
            return wrong(e, &u->builds[to], "the callee of an arc at", c->to[i]);
    }
    return PROFD_OK;
}

static enum profd_status check_histograms(const struct store_upload *u, const struct counts *c,
                                          struct belong_build *builds, struct profd_error *e)
{
    for (uint32_t i = 0; i < c->histogram_count; i++) {
        const struct counts_histogram *h = &c->histograms[i];
        struct belong_build *k = &builds[h->build];
        enum profd_status status = PROFD_OK;
        if (words_are(h->dimension)) {
            if (h->build != u->program)
                return profd_error_set(e, PROFD_MALFORMED,
                                       "histogram %u of dimension " WORDS_DIMENSION
                                       " is of build number %u: it must be "
                                       "of the program, number %u",
                                       i, h->build, u->program);
            continue; /* they are no samples */
        }
        if (!k->bounds)
            continue;
        if ((u->inexact & INEXACT_CALLER_BUCKET) && h->build == u->program && k->bounds->has_marks)
            status = check_marks(h, &u->builds[h->build], k, e);
        if (status == PROFD_OK)
            status = check_bins(c, h, &u->builds[h->build], k, e);
        if (status != PROFD_OK)
            return status;
    }
    return PROFD_OK;
}

enum profd_status belong_check(struct known *known, const struct store_upload *u, const struct counts *c,
                               struct profd_error *e)
{
    struct belong_build few[FEW] = {{0}}, *builds = few;
    enum profd_status status = PROFD_OK;
    if (u->build_count > FEW)
        builds = calloc(u->build_count, sizeof *builds);
    if (!builds)
        return profd_error_set(e, PROFD_NO_MEMORY, "no memory to check an upload");
    for (size_t i = 0; status == PROFD_OK && i < u->build_count; i++)
        status = known_find_bounds(known, u->uid, u->builds[i].id.text, &builds[i].bounds, e);
    if (status == PROFD_OK)
        status = check_histograms(u, c, builds, e);
    if (status == PROFD_OK)
        status = check_arcs(u, c, builds, e);
    if (builds != few)
        free(builds);
    return status;
}
