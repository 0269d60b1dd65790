/* What the formats of gmon.out share: capacity for arcs and bins, and their sums. */
#include <stdlib.h>
#include <string.h>

#include "compat/compat_gmon_internal.h"

/* A copy of count items with capacity for more; NULL: no memory. */
static void *array_grow(struct arena *a, const void *items, size_t size, uint32_t count, uint32_t room)
{
    void *more = arena_take_array(a, room, size);
    if (more != NULL && count > 0) {
        memcpy(more, items, count * size);
    }
    return more;
}

#define GROW(a, items, count, room) (((items) = array_grow(a, items, sizeof *(items), count, room)) != NULL)

/* The new capacity for that many more; 0: too many. */
static uint32_t room_next(uint32_t count, uint64_t more, uint32_t room)
{
    uint64_t want = count + more, next = (uint64_t)room * 2;
    next = next < want ? want : next;
    next = next < 64 ? 64 : next;
    return want >= UINT32_MAX ? 0 : next >= UINT32_MAX ? UINT32_MAX - 1 : (uint32_t)next;
}

bool gmon_reserve_arcs(struct compat_gmon *g, uint64_t n)
{
    struct counts *c = &g->counts;
    if (n <= g->room_arcs - c->arc_count) {
        return true;
    }
    uint32_t count = c->arc_count, room = room_next(count, n, g->room_arcs);
    g->room_arcs = room;
    return room != 0 && GROW(g->arena, c->from, count, room) && GROW(g->arena, c->to, count, room) &&
           GROW(g->arena, c->calls, count, room) && GROW(g->arena, c->from_build, count, room) &&
           GROW(g->arena, c->to_build, count, room);
}

static bool reserve_bins(struct compat_gmon *g, uint64_t n)
{
    struct counts *c = &g->counts;
    if (n <= g->room_bins - c->bin_count) {
        return true;
    }
    uint32_t count = c->bin_count, room = room_next(count, n, g->room_bins);
    g->room_bins = room;
    return room != 0 && GROW(g->arena, c->bin_index, count, room) && GROW(g->arena, c->bin_ticks, count, room);
}

static bool reserve_histogram(struct compat_gmon *g)
{
    struct counts *c = &g->counts;
    if (c->histogram_count < g->room_histograms) {
        return true;
    }
    g->room_histograms = room_next(c->histogram_count, 1, g->room_histograms);
    return g->room_histograms != 0 && GROW(g->arena, c->histograms, c->histogram_count, g->room_histograms);
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

enum profd_status gmon_no_room(const struct gmon_file *f)
{
    return gmon_complain(f, PROFD_TOO_LARGE, "%s: %s: more records than fit into memory\n", f->g->program, f->name);
}
