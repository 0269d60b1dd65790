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

void quota_add_user(struct store_totals *t, uint32_t uid, uint64_t bytes)
{
    size_t at = t->largest_count;
    if (bytes == 0) {
        return;
    }
    t->users++;
    for (; at > 0 && t->largest[at - 1].bytes < bytes; at--) {
        if (at < STORE_LARGEST_USERS) {
            t->largest[at] = t->largest[at - 1];
        }
    }
    if (at < STORE_LARGEST_USERS) {
        t->largest[at] = (struct store_user){.uid = uid, .bytes = bytes};
        t->largest_count += t->largest_count < STORE_LARGEST_USERS;
    }
}
