/* Shared by the readers of all formats: capacity for arcs and bins, and their sums. */
#include <string.h>

#include "compat/compat_gmon_internal.h"

/* Copies count items into a block with capacity for more; NULL: no memory. */
static void *array_grow(struct arena *a, const void *items, size_t size, uint32_t count, uint32_t capacity)
{
    void *more = arena_take_array(a, capacity, size);
    if (more != NULL && count > 0) {
        memcpy(more, items, count * size);
    }
    return more;
}

#define GROW(a, items, count, capacity) (((items) = array_grow(a, items, sizeof *(items), count, capacity)) != NULL)

/* Returns the capacity for more items; 0: too many. */
static uint32_t capacity_next(uint32_t count, uint64_t more, uint32_t capacity)
{
    uint64_t want = count + more, next = (uint64_t)capacity * 2;
    next = next < want ? want : next;
    next = next < 64 ? 64 : next;
    return want >= UINT32_MAX ? 0 : next >= UINT32_MAX ? UINT32_MAX - 1 : (uint32_t)next;
}

bool gmon_reserve_arcs(struct compat_gmon *g, uint64_t n)
{
    struct counts *c = &g->counts;
    if (n <= g->arc_capacity - c->arc_count) {
        return true;
    }
    uint32_t count = c->arc_count, capacity = capacity_next(count, n, g->arc_capacity);
    g->arc_capacity = capacity;
    return capacity != 0 && GROW(g->arena, c->from, count, capacity) && GROW(g->arena, c->to, count, capacity) &&
           GROW(g->arena, c->calls, count, capacity) && GROW(g->arena, c->from_build, count, capacity) &&
           GROW(g->arena, c->to_build, count, capacity);
}

static bool reserve_bins(struct compat_gmon *g, uint64_t n)
{
    struct counts *c = &g->counts;
    if (n <= g->bin_capacity - c->bin_count) {
        return true;
    }
    uint32_t count = c->bin_count, capacity = capacity_next(count, n, g->bin_capacity);
    g->bin_capacity = capacity;
    return capacity != 0 && GROW(g->arena, c->bin_index, count, capacity) &&
           GROW(g->arena, c->bin_ticks, count, capacity);
}

static bool reserve_histogram(struct compat_gmon *g)
{
    struct counts *c = &g->counts;
    if (c->histogram_count < g->histogram_capacity) {
        return true;
    }
    g->histogram_capacity = capacity_next(c->histogram_count, 1, g->histogram_capacity);
    return g->histogram_capacity != 0 && GROW(g->arena, c->histograms, c->histogram_count, g->histogram_capacity);
}

bool gmon_add_bins(struct compat_gmon *g, struct counts_histogram *h, const uint8_t *bins, uint32_t n)
{
    struct counts *c = &g->counts;
    uint32_t used = 0;
    for (uint32_t i = 0; i < n; i++) {
        used += bins[2 * (size_t)i] != 0 || bins[2 * (size_t)i + 1] != 0;
    }
    if (!reserve_histogram(g) || !reserve_bins(g, used)) {
        return false;
    }
    h->first = c->bin_count;
    h->used = used;
    for (uint32_t i = 0; i < n; i++) {
        uint64_t ticks = (uint64_t)bins[2 * (size_t)i] | (uint64_t)bins[2 * (size_t)i + 1] << 8;
        if (ticks == 0) {
            continue;
        }
        c->bin_index[c->bin_count] = i;
        c->bin_ticks[c->bin_count++] = ticks;
    }
    c->histograms[c->histogram_count++] = *h;
    return true;
}

enum profd_status gmon_too_large(const struct gmon_file *f)
{
    return gmon_complain(f, PROFD_TOO_LARGE, "%s: %s: more records than fit into memory\n", f->g->program, f->name);
}
