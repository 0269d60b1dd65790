/* What a harvest adds up: arcs by their ends, ticks by address. */
#include <stdlib.h>

#include "core/sum.h"
#include "ingest/attach_internal.h"

#define PROBES 16u
#define FIRST 64u /* arcs, ticks */

static bool arc_equal(const struct attach_arc *a, const struct attach_arc *b)
{
    return a->from == b->from && a->to == b->to && a->from_build == b->from_build && a->to_build == b->to_build;
}

/* The slot of an arc, or a free one; NULL if neither is near. */
static uint32_t *slot_find(const struct attach_arcs *s, const struct attach_arc *arc)
{
    uint64_t x =
        arc->from * UINT64_C(0x9e3779b97f4a7c15) ^ (arc->to + ((uint64_t)arc->from_build << 32 | arc->to_build));
    x = (x ^ x >> 29) * UINT64_C(0xbf58476d1ce4e5b9);
    uint32_t at = (uint32_t)(x >> 32);
    for (uint32_t i = 0; i < PROBES; i++, at++) {
        uint32_t *slot = &s->slots[at & s->mask];
        if (*slot == 0 || arc_equal(&s->arc[*slot - 1], arc)) {
            return slot;
        }
    }
    return NULL;
}

static enum profd_status no_memory(uint32_t n, struct profd_error *e)
{
    return profd_error_set(e, PROFD_NO_MEMORY, "no memory to add up more than %u counts", n);
}

static enum profd_status arcs_grow(struct attach_arcs *s, struct profd_error *e)
{
    uint32_t capacity = s->capacity ? 4 * s->capacity : FIRST;
    struct attach_arc *arc = realloc(s->arc, capacity * sizeof *arc);
    if (!arc) {
        return no_memory(s->capacity, e);
    }
    s->arc = arc;
    uint32_t *slots = calloc(2 * (size_t)capacity, sizeof *slots);
    if (!slots) {
        return no_memory(s->capacity, e);
    }
    free(s->slots);
    s->slots = slots;
    s->mask = 2 * capacity - 1;
    s->capacity = capacity;
    for (uint32_t i = 0; i < s->count; i++) {
        uint32_t *slot = slot_find(s, &s->arc[i]);
        if (slot && *slot == 0) {
            *slot = i + 1;
        }
    }
    return PROFD_OK;
}

enum profd_status attach_arcs_add(struct attach_arcs *s, const struct attach_arc *arc, struct profd_error *e)
{
    bool saturated = false;
    TRY(s->count == s->capacity ? arcs_grow(s, e) : PROFD_OK);
    uint32_t *slot = slot_find(s, arc);
    if (slot && *slot) {
        sum_add(&s->arc[*slot - 1].calls, arc->calls, &saturated);
        return PROFD_OK;
    }
    s->arc[s->count++] = *arc;
    if (slot) {
        *slot = s->count;
    }
    return PROFD_OK;
}

void attach_arcs_done(struct attach_arcs *s)
{
    free(s->arc);
    free(s->slots);
    *s = (struct attach_arcs){0};
}

enum profd_status attach_ticks_add(struct attach_ticks *s, const struct attach_tick *tick, struct profd_error *e)
{
    if (s->count == s->capacity) {
        uint32_t capacity = s->capacity ? 2 * s->capacity : FIRST;
        struct attach_tick *grown = realloc(s->tick, capacity * sizeof *grown);
        if (!grown) {
            return no_memory(s->capacity, e);
        }
        s->tick = grown;
        s->capacity = capacity;
    }
    s->tick[s->count++] = *tick;
    return PROFD_OK;
}

static int compare_ticks(const void *a, const void *b)
{
    const struct attach_tick *x = a, *y = b;
    return x->build != y->build ? (x->build > y->build) - (x->build < y->build)
                                : (x->index > y->index) - (x->index < y->index);
}

void attach_ticks_sort(struct attach_ticks *s)
{
    uint32_t kept = 0;
    bool saturated = false;
    if (s->count == 0) {
        return;
    }
    qsort(s->tick, s->count, sizeof *s->tick, compare_ticks);
    for (uint32_t i = 1; i < s->count; i++) {
        if (compare_ticks(&s->tick[kept], &s->tick[i]) == 0) {
            sum_add(&s->tick[kept].ticks, s->tick[i].ticks, &saturated);
        } else {
            s->tick[++kept] = s->tick[i];
        }
    }
    s->count = kept + 1;
}

void attach_ticks_done(struct attach_ticks *s)
{
    free(s->tick);
    *s = (struct attach_ticks){0};
}
