/* How many processes of a sum are in each of the 16 random groups (schema/spread.md): calls per process have an
 * interval with them. */
#ifndef PROFD_CORE_RANDOM_GROUPS_H
#define PROFD_CORE_RANDOM_GROUPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/varint.h"

#define RANDOM_GROUPS 16u
#define RANDOM_GROUPS_BYTES ((RANDOM_GROUPS + 1) * (size_t)VARINT_MAX)

/* Sums stop at 2^63−1. known + unknown processes are all processes of the sum, where no number stopped. */
struct random_groups {
    uint64_t of[RANDOM_GROUPS];
    uint64_t unknown; /* processes of sums that were made before groups were counted: their numbers are known for the
                         others only */
};

void random_groups_add(struct random_groups *to, const struct random_groups *more);
/* Processes of all groups together, the unknown ones not among them. */
uint64_t random_groups_known(const struct random_groups *g);
/* The stored encoding: 17 LEB128 numbers. Returns its size, at most RANDOM_GROUPS_BYTES. */
size_t random_groups_encode(const struct random_groups *g, uint8_t *out);
/* False if the bytes are none; *out is then unchanged. */
bool random_groups_decode(const uint8_t *in, size_t n, struct random_groups *out);

#endif
