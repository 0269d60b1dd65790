#include "core/random_groups.h"

#include "core/sum.h"

void random_groups_add(struct random_groups *to, const struct random_groups *more)
{
    bool ignored = false;
    for (unsigned g = 0; g < RANDOM_GROUPS; g++) {
        sum_add(&to->of[g], more->of[g], &ignored);
    }
    sum_add(&to->unknown, more->unknown, &ignored);
}

uint64_t random_groups_known(const struct random_groups *g)
{
    bool ignored = false;
    uint64_t sum = 0;
    for (unsigned i = 0; i < RANDOM_GROUPS; i++) {
        sum_add(&sum, g->of[i], &ignored);
    }
    return sum;
}

size_t random_groups_encode(const struct random_groups *g, uint8_t *out)
{
    uint8_t *p = out;
    for (unsigned i = 0; i < RANDOM_GROUPS; i++) {
        p = varint_put(p, g->of[i]);
    }
    p = varint_put(p, g->unknown);
    return (size_t)(p - out);
}

bool random_groups_decode(const uint8_t *in, size_t n, struct random_groups *out)
{
    struct random_groups g = {0};
    const uint8_t *end = in + n;
    for (unsigned i = 0; i <= RANDOM_GROUPS; i++) {
        uint64_t *number = i < RANDOM_GROUPS ? &g.of[i] : &g.unknown;
        if (!varint_get(&in, end, number) || *number > SUM_MAX) {
            return false;
        }
    }
    if (in != end) {
        return false;
    }
    *out = g;
    return true;
}
