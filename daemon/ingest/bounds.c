#include "ingest/bounds.h"

#include <stdlib.h>
#include <string.h>

#define HEAD 17 /* flag and the two marks */

static void put_u64(uint8_t *out, uint64_t v)
{
    for (unsigned i = 0; i < 8; i++)
        out[i] = (uint8_t)(v >> (8 * i));
}

static uint64_t get_u64(const uint8_t *in)
{
    uint64_t v = 0;
    for (unsigned i = 8; i-- > 0;)
        v = v << 8 | in[i];
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
    size_t n = 0;
    struct object_range *ranges = ARENA_ARRAY(a, (size_t)o->range_count + 1, struct object_range);
    uint8_t *bytes = arena_take(a, HEAD + 16 * (size_t)o->range_count);
    if (!ranges || !bytes)
        return profd_error_set(e, PROFD_NO_MEMORY, "no memory for the ranges of an executable");
    for (uint32_t i = 0; i < o->range_count; i++)
        if (o->ranges[i].low < o->ranges[i].high)
            ranges[n++] = o->ranges[i];
    qsort(ranges, n, sizeof *ranges, compare_ranges);
    size_t kept = 0;
    for (size_t i = 0; i < n; i++) {
        if (kept > 0 && ranges[i].low <= ranges[kept - 1].high) {
            if (ranges[i].high > ranges[kept - 1].high)
                ranges[kept - 1].high = ranges[i].high;
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
    if (n < HEAD || (n - HEAD) % 16 != 0 || bytes[0] > 1)
        return false;
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
    size_t first = 0, end = b->count;
    while (first < end) {
        size_t middle = first + (end - first) / 2;
        if (get_u64(b->ranges + 16 * middle + 8) <= low)
            first = middle + 1;
        else
            end = middle;
    }
    return first;
}

bool bounds_touch(const struct bounds *b, uint64_t low, uint64_t high)
{
    size_t at = find_range(b, low);
    return at < b->count && get_u64(b->ranges + 16 * at) < high;
}

bool bounds_touch_hint(const struct bounds *b, uint64_t low, uint64_t high, struct bounds_hint *hint)
{
    size_t at = find_range(b, low);
    if (at == b->count || get_u64(b->ranges + 16 * at) >= high)
        return false;
    *hint = (struct bounds_hint){get_u64(b->ranges + 16 * at), get_u64(b->ranges + 16 * at + 8)};
    return true;
}
