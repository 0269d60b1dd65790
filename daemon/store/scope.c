#include "store/scope.h"

#include <string.h>

bool store_scope_has(const struct store_scope *scope, uint32_t uid)
{
    bool found = scope->all || scope->uid == uid;
    for (uint32_t i = 0; i < scope->other_count && !found; i++) {
        found = scope->others[i] == uid;
    }
    return found;
}

bool store_scope_has_tenants(const struct store_scope *scope)
{
    bool found = scope->all || store_is_tenant(scope->uid);
    for (uint32_t i = 0; i < scope->other_count && !found; i++) {
        found = store_is_tenant(scope->others[i]);
    }
    return found;
}

bool store_scope_equal(const struct store_scope *a, const struct store_scope *b)
{
    if (a->all || b->all) {
        return a->all == b->all;
    }
    return a->uid == b->uid && a->other_count == b->other_count &&
           memcmp(a->others, b->others, a->other_count * sizeof a->others[0]) == 0;
}

uint64_t store_scope_mix(const struct store_scope *scope, uint64_t number, uint32_t uid, uint64_t epoch)
{
    if (scope->other_count == 0) {
        return epoch;
    }
    number ^= epoch + UINT64_C(0x9e3779b97f4a7c15) * ((uint64_t)uid + 1);
    number = (number ^ number >> 30) * UINT64_C(0xbf58476d1ce4e5b9); /* the finalizer of SplitMix64 */
    number = (number ^ number >> 27) * UINT64_C(0x94d049bb133111eb);
    return number ^ number >> 31;
}
