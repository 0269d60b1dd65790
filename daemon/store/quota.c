#include "store/quota.h"

uint64_t quota_most(uint64_t limit, unsigned percent, uint64_t own, uint64_t total)
{
    const uint64_t others = total > own ? total - own : 0;
    const uint64_t left = others < limit ? limit - others : 0;
    if (limit == 0 || percent >= 100) {
        return UINT64_MAX;
    }
    return left / 100 * percent + left % 100 * percent / 100; /* left * percent may be above 2^64 */
}
