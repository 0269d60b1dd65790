#include "compat/compat_symbols.h"

enum profd_status compat_symbols_stripe(struct compat_symbols *s, struct arena *a)
{
    if (s->count == 0) {
        return PROFD_OK;
    }
    uint64_t first = s->address[0], span = s->address[s->count - 1] - first;
    unsigned bits = 0;
    while (span >> bits >= s->count) {
        bits++;
    }
    uint32_t stripes = (uint32_t)(span >> bits) + 1;
    uint32_t *before = ARENA_ARRAY(a, (size_t)stripes + 1, uint32_t);
    if (before == NULL) {
        return PROFD_NO_MEMORY;
    }
    for (uint32_t v = 0, k = 0; k < stripes; k++) {
        while (v < s->count && (s->address[v] - first) >> bits < k) {
            v++;
        }
        before[k] = v;
    }
    before[stripes] = s->count;
    s->stripe = before;
    s->stripes = stripes;
    s->stripe_bits = bits;
    return PROFD_OK;
}

uint32_t compat_symbols_find(const struct compat_symbols *s, uint64_t address)
{
    if (s->count == 0 || address < s->address[0]) {
        return COMPAT_NONE;
    }
    uint32_t low = 0, n = s->count; /* the owner is in [low, low + n) */
    if (s->stripe != NULL) {
        uint64_t k = (address - s->address[0]) >> s->stripe_bits;
        k = k < s->stripes ? k : s->stripes - 1;
        low = s->stripe[k] > 0 ? s->stripe[k] - 1 : 0;
        n = s->stripe[k + 1] - low;
    }
    while (n > 1) {
        uint32_t half = n / 2;
        low = s->address[low + half] <= address ? low + half : low;
        n -= half;
    }
    return address <= s->end[low] ? low : COMPAT_NONE;
}
