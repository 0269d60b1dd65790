#include "ingest/belong.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "ingest/bounds.h"
#include "proto/message.h"

#define BUCKET 16 /* bytes of text for which glibc keeps one caller */

__extension__ typedef unsigned __int128 wide;

/* Bounds of one build of the upload, if its object is known. */
struct known_build {
    bool known, proven; /* proven: the histogram spans what the symbols say */
    struct bounds bounds;
    uint8_t *bytes;
};

static enum profd_status wrong(struct profd_error *e, const struct store_build *b, const char *what, uint64_t value)
{
    return profd_error_set(e, PROFD_WRONG_BUILD, "%s 0x%llx lies outside the code of build %s (\"%s\"): not the executable that was profiled",
                           what, (unsigned long long)value, b->id.text, b->name);
}

/* Copies the bounds: the store lends one at a time. */
static enum profd_status load_build(struct store *s, uint32_t uid, const struct store_build *b, struct known_build *k,
                                    struct profd_error *e)
{
    const uint8_t *bytes;
    size_t n = 0;
    enum profd_status status = store_get_bounds(s, uid, b->id.text, &bytes, &n, e);
    if (status != PROFD_OK || n == 0)
        return status;
    k->bytes = malloc(n);
    if (!k->bytes)
        return profd_error_set(e, PROFD_NO_MEMORY, "no memory to check an upload");
    memcpy(k->bytes, bytes, n);
    /* An object without any code says nothing about addresses. */
    k->known = bounds_open(k->bytes, n, &k->bounds) && k->bounds.count > 0;
    return PROFD_OK;
}

static enum profd_status check_marks(const struct counts_histogram *h, const struct store_build *b, struct known_build *k,
                                     struct profd_error *e)
{
    uint64_t low = k->bounds.executable_start & ~UINT64_C(3), high = (k->bounds.etext + 3) & ~UINT64_C(3);
    if (h->low != low || h->high != high)
        return profd_error_set(e, PROFD_WRONG_BUILD,
                               "the histogram spans 0x%llx-0x%llx, but build %s (\"%s\") has __executable_start and etext for "
                               "0x%llx-0x%llx: not the executable that was profiled",
                               (unsigned long long)h->low, (unsigned long long)h->high, b->id.text, b->name,
                               (unsigned long long)low, (unsigned long long)high);
    k->proven = true;
    return PROFD_OK;
}

static enum profd_status check_bins(const struct counts *c, const struct counts_histogram *h, const struct store_build *b,
                                    const struct known_build *k, struct profd_error *e)
{
    uint64_t span = h->high - h->low;
    if (!bounds_touch(&k->bounds, h->low, h->high))
        return wrong(e, b, "a histogram that begins at", h->low);
    for (uint32_t i = h->first; i < h->first + h->used; i++) {
        uint64_t low = h->low + (uint64_t)((wide)span * c->bin_index[i] / h->bins);
        uint64_t high = h->low + (uint64_t)((wide)span * ((wide)c->bin_index[i] + 1) / h->bins);
        if (!bounds_touch(&k->bounds, low, high > low ? high : low + 1))
            return wrong(e, b, "a bin with ticks at", low);
    }
    return PROFD_OK;
}

static enum profd_status check_arcs(const struct store_upload *u, const struct counts *c, const struct known_build *known,
                                    struct profd_error *e)
{
    bool imported = (u->inexact & INEXACT_CALLER_BUCKET) != 0;
    for (uint32_t i = 0; i < c->arc_count; i++) {
        uint32_t from = c->from_build[i], to = c->to_build[i];
        uint64_t slack = imported ? BUCKET : 1, end = c->from[i] + slack;
        if (from != COUNTS_NOWHERE && known[from].known &&
            !bounds_touch(&known[from].bounds, c->from[i], end > c->from[i] ? end : UINT64_MAX))
            return wrong(e, &u->builds[from], "the caller of an arc at", c->from[i]);
        if (to != COUNTS_NOWHERE && known[to].known && !(imported && known[to].proven) &&
            !bounds_touch(&known[to].bounds, c->to[i], c->to[i] < UINT64_MAX ? c->to[i] + 1 : UINT64_MAX))
            return wrong(e, &u->builds[to], "the callee of an arc at", c->to[i]);
    }
    return PROFD_OK;
}

static enum profd_status check_histograms(const struct store_upload *u, const struct counts *c, struct known_build *known,
                                          struct profd_error *e)
{
    for (uint32_t i = 0; i < c->histogram_count; i++) {
        const struct counts_histogram *h = &c->histograms[i];
        struct known_build *k = &known[h->build];
        enum profd_status status = PROFD_OK;
        if (!k->known)
            continue;
        if ((u->inexact & INEXACT_CALLER_BUCKET) && h->build == u->program && k->bounds.has_marks)
            status = check_marks(h, &u->builds[h->build], k, e);
        if (status == PROFD_OK)
            status = check_bins(c, h, &u->builds[h->build], k, e);
        if (status != PROFD_OK)
            return status;
    }
    return PROFD_OK;
}

enum profd_status belong_check(struct store *s, const struct store_upload *u, const struct counts *c,
                               struct profd_error *e)
{
    struct known_build *known = calloc(u->build_count, sizeof *known);
    if (!known)
        return profd_error_set(e, PROFD_NO_MEMORY, "no memory to check an upload");
    enum profd_status status = PROFD_OK;
    for (size_t i = 0; status == PROFD_OK && i < u->build_count; i++)
        status = load_build(s, u->uid, &u->builds[i], &known[i], e);
    if (status == PROFD_OK)
        status = check_histograms(u, c, known, e);
    if (status == PROFD_OK)
        status = check_arcs(u, c, known, e);
    for (size_t i = 0; i < u->build_count; i++)
        free(known[i].bytes);
    free(known);
    return status;
}
