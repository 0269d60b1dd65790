/* Items in order of time, then calls; ties keep their order. Keys are gathered once, because comparing would look the
 * same numbers up again and again. */
#ifndef PROFD_CORE_REPORT_PLACE_H
#define PROFD_CORE_REPORT_PLACE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/arena.h"
#include "core/sort.h"

struct report_place {
    uint64_t time, calls; /* ascending in the wanted order */
    uint32_t item;        /* what is put in order */
    uint32_t other;       /* for the caller's use */
    bool inside;          /* likewise */
};

struct report_places {
    struct report_place *places, *sorted;
    struct sort_item *keys, *scratch;
};

/* Ensures capacity for n places. False if memory is exhausted. */
bool report_places_take(struct report_places *p, struct arena *a, uint32_t n);

/* Keys of an item; `down` turns the order round. rank 0, 1: below every time (self arcs, arcs inside a cycle); 2: by
 * time. */
static inline void report_place_set(struct report_place *place, unsigned rank, double time, uint64_t calls, bool down)
{
    uint64_t key = rank < 2 ? rank : sort_key_double(time);
    place->time = down ? ~key : key;
    place->calls = down ? ~calls : calls;
}

/* Sorts the first n of p->places; returns where they are. O(n). */
const struct report_place *report_places_sort(struct report_places *p, uint32_t n);

#endif
