#include "proto/bins.h"

/* As glibc computes it, in float; 0 where the geometry is not one of glibc's. A count of at least span bins is none:
 * those are exact addresses. */
static uint32_t glibc_scale(uint64_t low, uint64_t span, uint32_t count)
{
    uint64_t bytes = (span / 2 + 7) & ~UINT64_C(7);
    if (low % 4 != 0 || span % 4 != 0 || span > INT32_MAX || count != bytes / 2 || count >= span) {
        return 0;
    }
    if (bytes >= span) {
        return 65536;
    }
    float quotient = (float)bytes / (float)(int32_t)span;
    return (uint32_t)(quotient * 65536.0f);
}

struct bins bins_make(uint64_t low, uint64_t high, uint32_t count)
{
    struct bins b = {.low = low, .span = high - low, .count = count, .unit = 1};
    b.scale = glibc_scale(low, b.span, count);
    if (b.scale == 0 && b.span % count != 0) {
        b.unit = count;
    }
    return b;
}

bins_offset bins_start(const struct bins *b, uint32_t i)
{
    if (b->scale != 0) {
        return 2 * (((bins_offset)i * 65536 + b->scale - 1) / b->scale);
    }
    return b->unit == 1 ? (bins_offset)(b->span / b->count) * i : (bins_offset)b->span * i;
}

uint64_t bins_find(const struct bins *b, uint64_t offset)
{
    if (b->scale != 0) {
        return (uint64_t)((bins_offset)(offset / 2) * b->scale / 65536);
    }
    return offset >= b->span ? b->count : (uint64_t)((bins_offset)offset * b->count / b->span);
}

void bins_range(const struct bins *b, uint32_t i, uint64_t *low, uint64_t *high)
{
    uint64_t first = (uint64_t)(bins_start(b, i) / b->unit);
    uint64_t end = (uint64_t)((bins_start(b, i + 1) + b->unit - 1) / b->unit);
    end = end > first ? end : first + 1;
    *low = b->low + first;
    *high = __builtin_add_overflow(b->low, end, &end) ? UINT64_MAX : end;
}
