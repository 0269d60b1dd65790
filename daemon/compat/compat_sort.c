#include "compat/compat_sort.h"

#include <string.h>

/* Halves that are still to be merged: at most one on each level. */
struct half {
    size_t at, n;
    unsigned done; /* of its own two halves */
};

/* Merges the adjacent runs [0, middle) and [middle, n). The remainder of the second run stays in place. */
static void halves_merge(uint32_t *items, uint32_t *scratch, size_t middle, size_t n, compat_compare *compare,
                         const void *context)
{
    size_t i = 0, j = middle, k = 0;
    while (i < middle && j < n) {
        scratch[k++] = compare(context, items[i], items[j]) <= 0 ? items[i++] : items[j++];
    }
    memcpy(scratch + k, items + i, (middle - i) * sizeof *items);
    memcpy(items, scratch, (k + middle - i) * sizeof *items);
}

void compat_sort(uint32_t *items, uint32_t *scratch, size_t n, compat_compare *compare, const void *context)
{
    struct half stack[66];
    unsigned depth = 0;
    stack[depth++] = (struct half){0, n, 0};
    while (depth > 0) {
        struct half *h = &stack[depth - 1];
        size_t middle = h->n / 2;
        if (h->n > 1 && h->done < 2) {
            stack[depth++] =
                h->done++ == 0 ? (struct half){h->at, middle, 0} : (struct half){h->at + middle, h->n - middle, 0};
            continue;
        }
        if (h->n > 1) {
            halves_merge(items + h->at, scratch, middle, h->n, compare, context);
        }
        depth--;
    }
}
