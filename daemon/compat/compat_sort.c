#include "compat/compat_sort.h"

#include <string.h>

#define RUN 12u

static void run_sort(uint32_t *items, size_t n, compat_compare *compare, const void *context)
{
    for (size_t i = 1; i < n; i++) {
        uint32_t item = items[i];
        size_t j = i;
        for (; j > 0 && compare(context, items[j - 1], item) > 0; j--)
            items[j] = items[j - 1];
        items[j] = item;
    }
}

/* Merges the neighbours [0, middle) and [middle, n) of from into to. */
static void run_merge(const uint32_t *from, uint32_t *to, size_t middle, size_t n, compat_compare *compare,
                      const void *context)
{
    size_t i = 0, j = middle, k = 0;
    while (i < middle && j < n)
        to[k++] = compare(context, from[i], from[j]) <= 0 ? from[i++] : from[j++];
    memcpy(to + k, from + i, (middle - i) * sizeof *to);
    k += middle - i;
    memcpy(to + k, from + j, (n - j) * sizeof *to);
}

void compat_sort(uint32_t *items, uint32_t *scratch, size_t n, compat_compare *compare, const void *context)
{
    for (size_t at = 0; at < n; at += RUN)
        run_sort(items + at, n - at < RUN ? n - at : RUN, compare, context);
    uint32_t *from = items, *to = scratch;
    for (size_t width = RUN; width < n; width *= 2) {
        for (size_t at = 0; at < n; at += 2 * width) {
            size_t left = n - at;
            run_merge(from + at, to + at, left < width ? left : width, left < 2 * width ? left : 2 * width, compare, context);
        }
        uint32_t *swap = from;
        from = to;
        to = swap;
    }
    if (from != items)
        memcpy(items, from, n * sizeof *items);
}
