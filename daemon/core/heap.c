#include "core/heap.h"

void heap_push(struct heap *h, uint32_t item)
{
    uint32_t at = h->count++;
    for (; at > 0 && h->before(h->context, item, h->items[(at - 1) / 2]); at = (at - 1) / 2) {
        h->items[at] = h->items[(at - 1) / 2];
    }
    h->items[at] = item;
}

uint32_t heap_pop(struct heap *h)
{
    uint32_t top = h->items[0], moved = h->items[--h->count], at = 0;
    for (uint32_t child = 1; child < h->count; child = 2 * at + 1) {
        if (child + 1 < h->count && h->before(h->context, h->items[child + 1], h->items[child])) {
            child++;
        }
        if (!h->before(h->context, h->items[child], moved)) {
            break;
        }
        h->items[at] = h->items[child];
        at = child;
    }
    h->items[at] = moved;
    return top;
}
