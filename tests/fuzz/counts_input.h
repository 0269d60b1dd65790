/* Counts from an input: how the fuzz targets of counts read theirs. */
#ifndef PROFD_TESTS_FUZZ_COUNTS_INPUT_H
#define PROFD_TESTS_FUZZ_COUNTS_INPUT_H

#include <stdbool.h>

#include "tests/counts_sections.h"

struct counts_input {
    const uint8_t *bytes; /* an encoding */
    size_t size;
    void *block; /* to be freed */
};

/* The first byte is odd: the rest is an encoding. Otherwise five bytes are sizes, two are the lengths of the first two
 * sections, and the rest is the sections. size ≥ 1. */
static inline struct counts_input input_take(const uint8_t *data, size_t size, bool sorted)
{
    if (data[0] % 2 == 1 || size < 8) {
        return (struct counts_input){data + 1, size - 1, NULL};
    }
    const uint64_t sizes[5] = {data[1], data[2], data[3], data[4], data[5]};
    const uint8_t *at = data + 8;
    size_t left = size - 8, first = data[6] < left ? data[6] : left;
    const size_t second = data[7] < left - first ? data[7] : left - first;
    const struct counts_section s[3] = {
        {at, first}, {at + first, second}, {at + first + second, left - first - second}};
    const unsigned count = sizes[3] > 0 ? 3 : 2;
    uint8_t *bytes;
    const size_t n = sections_wrap(sorted ? 1 : 0, sizes, s, count, sections_total(s, count), &bytes);
    return (struct counts_input){bytes, n, bytes};
}

#endif
