/* A binary heap of numbers: the first by an order is on top. Pushing and popping are O(log n). */
#ifndef PROFD_CORE_HEAP_H
#define PROFD_CORE_HEAP_H

#include <stdbool.h>
#include <stdint.h>

struct heap {
    bool (*before)(const void *context, uint32_t a, uint32_t b); /* a total order */
    const void *context;
    uint32_t *items; /* the caller's, with capacity for all; items[0] is on top */
    uint32_t count;
};

void heap_push(struct heap *h, uint32_t item);
/* Removes the top, which there must be, and returns it. */
uint32_t heap_pop(struct heap *h);

#endif
