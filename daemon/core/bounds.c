#include "core/bounds.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "proto/bins.h"
#include "proto/collector.h"
#include "proto/counts_tree.h"
#include "proto/limits.h"
#include "proto/sort.h"

#define BUCKET 16 /* bytes of text for which glibc keeps one caller */
#define HEAD 17   /* flag and the two marks */

static void put_u64(uint8_t *out, uint64_t v)
{
    for (unsigned i = 0; i < 8; i++) {
        out[i] = (uint8_t)(v >> (8 * i));
    }
}

static uint64_t get_u64(const uint8_t *in)
{
    uint64_t v = 0;
    for (unsigned i = 8; i-- > 0;) {
        v = v << 8 | in[i];
    }
    return v;
}

static int compare_ranges(const void *a, const void *b)
{
    const struct object_range *x = a, *y = b;
    return (x->low > y->low) - (x->low < y->low);
}

enum profd_status bounds_encode(const struct object *o, struct arena *a, const uint8_t **out, size_t *size,
                                struct profd_error *e)
{
    ARENA_BOUNDARY(a, profd_no_memory(e));
    size_t n = 0;
    struct object_range *ranges = ARENA_ARRAY(a, (size_t)o->range_count + 1, struct object_range);
    uint8_t *bytes = arena_take(a, HEAD + 16 * (size_t)o->range_count);
    for (uint32_t i = 0; i < o->range_count; i++) {
        if (o->ranges[i].low < o->ranges[i].high) {
            ranges[n++] = o->ranges[i];
        }
    }
    qsort(ranges, n, sizeof *ranges, compare_ranges);
    size_t kept = 0;
    for (size_t i = 0; i < n; i++) {
        if (kept > 0 && ranges[i].low <= ranges[kept - 1].high) {
            if (ranges[i].high > ranges[kept - 1].high) {
                ranges[kept - 1].high = ranges[i].high;
            }
        } else {
            ranges[kept++] = ranges[i];
        }
    }
    bytes[0] = o->has_executable_start && o->has_etext;
    put_u64(bytes + 1, o->executable_start);
    put_u64(bytes + 9, o->etext);
    for (size_t i = 0; i < kept; i++) {
        put_u64(bytes + HEAD + 16 * i, ranges[i].low);
        put_u64(bytes + HEAD + 16 * i + 8, ranges[i].high);
    }
    *out = bytes;
    *size = HEAD + 16 * kept;
    return PROFD_OK;
}

bool bounds_open(const uint8_t *bytes, size_t n, struct bounds *b)
{
    if (n < HEAD || (n - HEAD) % 16 != 0 || bytes[0] > 1) {
        return false;
    }
    *b = (struct bounds){.has_marks = bytes[0] != 0,
                         .executable_start = get_u64(bytes + 1),
                         .etext = get_u64(bytes + 9),
                         .count = (n - HEAD) / 16,
                         .ranges = bytes + HEAD};
    return true;
}

/* The first range that ends above low; count if there is none. */
static size_t find_range(const struct bounds *b, uint64_t low)
{
    uint32_t i;
    SORT_SEARCH(i, 0, (uint32_t)b->count, get_u64(b->ranges + 16 * (size_t)i + 8) <= low);
    return i;
}

bool bounds_touch(const struct bounds *b, uint64_t low, uint64_t high)
{
    struct bounds_hint ignored;
    return bounds_touch_hint(b, low, high, &ignored);
}

bool bounds_touch_hint(const struct bounds *b, uint64_t low, uint64_t high, struct bounds_hint *hint)
{
    size_t at = find_range(b, low);
    if (at == b->count || get_u64(b->ranges + 16 * at) >= high) {
        return false;
    }
    *hint = (struct bounds_hint){get_u64(b->ranges + 16 * at), get_u64(b->ranges + 16 * at + 8)};
    return true;
}

static enum profd_status wrong(struct profd_error *e, const struct bounds_build *k, const char *what, uint64_t value)
{
    return profd_error_set(e, PROFD_WRONG_BUILD,
                           "%s 0x%" PRIx64
                           " lies outside the code of build %s (\"%s\"): not the executable that was profiled",
                           what, value, k->id, k->name);
}

static bool touches(struct bounds_build *k, uint64_t low, uint64_t size)
{
    uint64_t high = low + size;
    return bounds_touch_near(k->bounds, low, high > low ? high : UINT64_MAX, &k->hint);
}

/* A caller is told by where its call returns to: behind the code when that ends with a call that never returns. */
static bool caller_touches(struct bounds_build *k, uint64_t from, bool imported)
{
    return imported ? touches(k, from, BUCKET) : from == 0 ? touches(k, 0, 1) : touches(k, from - 1, 2);
}

enum profd_status bounds_check_counts(struct bounds_build *builds, uint32_t program, bool imported,
                                      const struct counts *c, struct profd_error *e)
{
    for (uint32_t i = 0; i < c->histogram_count; i++) {
        const struct counts_histogram *h = &c->histograms[i];
        struct bounds_build *k = &builds[h->build];
        if (k->bounds == NULL || collector_is_dimension(h->dimension)) {
            continue;
        }
        if (imported && h->build == program && k->bounds->has_marks) {
            uint64_t low = k->bounds->executable_start & ~UINT64_C(3), high = (k->bounds->etext + 3) & ~UINT64_C(3);
            FAIL_IF(h->low != low || h->high != high, e, PROFD_WRONG_BUILD,
                    "the histogram spans 0x%" PRIx64 "-0x%" PRIx64
                    ", but build %s (\"%s\") has __executable_start and etext for 0x%" PRIx64 "-0x%" PRIx64
                    ": not the executable that was profiled",
                    h->low, h->high, k->id, k->name, low, high);
            k->proven = true;
            continue;
        }
        if (!bounds_touch(k->bounds, h->low, h->high)) {
            return wrong(e, k, "a histogram that begins at", h->low);
        }
        const struct bins bins = bins_make(h->low, h->high, h->bins);
        for (uint32_t b = h->first; b < h->first + h->used; b++) {
            uint64_t low, high;
            bins_range(&bins, c->bin_index[b], &low, &high);
            if (!bounds_touch_near(k->bounds, low, high, &k->hint)) {
                return wrong(e, k, "a bin with ticks at", low);
            }
        }
    }
    for (uint32_t i = 0; i < c->arc_count; i++) {
        struct bounds_build *from = c->from_build[i] != COUNTS_NOWHERE ? &builds[c->from_build[i]] : NULL;
        struct bounds_build *to = c->to_build[i] != COUNTS_NOWHERE ? &builds[c->to_build[i]] : NULL;
        if (from != NULL && from->bounds != NULL && !caller_touches(from, c->from[i], imported)) {
            return wrong(e, from, "the caller of an arc at", c->from[i]);
        }
        if (to != NULL && to->bounds != NULL && !(imported && to->proven) && !touches(to, c->to[i], 1)) {
            return wrong(e, to, "the callee of an arc at", c->to[i]);
        }
    }
    return PROFD_OK;
}

/* Returns whether the frame can be: it is outside all known builds, or in the code of its build. */
static bool frame_touches(struct bounds_build *builds, const struct counts_frame *f)
{
    struct bounds_build *k = f->build != COUNTS_NOWHERE ? &builds[f->build] : NULL;
    return k == NULL || k->bounds == NULL ||
           (f->kind == COUNTS_NODE_PC ? touches(k, f->address, 1) : caller_touches(k, f->address, false));
}

/* Makes the trees anew without the frames that cannot be. The result has no more nodes than before: each tree that
 * changes loses one at least and has one incomplete node more at most. */
static enum profd_status cut_all(struct bounds_build *builds, struct counts *c, struct profd_error *e)
{
    static const struct counts_frame incomplete = {COUNTS_FRAME_INCOMPLETE, COUNTS_NOWHERE, COUNTS_NODE_RETURN};
    const struct counts_nodes nodes = COUNTS_NODES(c);
    struct counts_frame path[LIMIT_STACK_DEPTH];
    uint32_t known[LIMIT_STACK_DEPTH]; /* at each depth: where the part of the path begins that can be */
    struct counts_sizes sizes = {0};
    struct counts_stacks *s = counts_stacks_new();
    enum profd_status status = s != NULL ? PROFD_OK : profd_no_memory(e);
    for (const struct counts_tree *t = c->trees; t < c->trees + c->tree_count && !status; t++) {
        for (uint32_t i = t->first; i < t->first + t->used && !status; i++) {
            uint32_t depth = nodes.depth[i];
            path[depth] = counts_node_frame(&nodes, i);
            known[depth] = depth == 0 ? 0 : known[depth - 1];
            if (!frame_touches(builds, &path[depth])) {
                path[depth] = incomplete;
                known[depth] = depth;
            }
            status = counts_stacks_add(s, t->rate, t->dimension, t->abbreviation, path + known[depth],
                                       depth + 1 - known[depth], nodes.ticks[i], e);
        }
    }
    if (!status) {
        status = counts_stacks_finish(s, &sizes, e);
    }
    if (!status) {
        counts_stacks_copy(s, c);
        c->tree_count = sizes.trees;
        c->node_count = sizes.nodes;
    }
    counts_stacks_free(s);
    return status;
}

enum profd_status bounds_cut_stacks(struct bounds_build *builds, struct counts *c, bool *cut, struct profd_error *e)
{
    const struct counts_nodes nodes = COUNTS_NODES(c);
    bool any = false;
    for (uint32_t i = 0; i < c->node_count; i++) {
        struct counts_frame f = counts_node_frame(&nodes, i);
        bool good = frame_touches(builds, &f);
        if (!good && f.kind == COUNTS_NODE_PC) {
            return wrong(e, &builds[f.build], "the program counter of a stack at", f.address);
        }
        any |= !good;
    }
    enum profd_status status = any ? cut_all(builds, c, e) : PROFD_OK;
    *cut = any && status == PROFD_OK;
    return status;
}
