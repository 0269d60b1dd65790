/* Counts whose sections are given plainly, wrapped as a sender would wrap them. */
#ifndef PROFD_TESTS_COUNTS_SECTIONS_H
#define PROFD_TESTS_COUNTS_SECTIONS_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "proto/deflate.h"
#include "proto/varint.h"

struct counts_section {
    const uint8_t *raw;
    size_t n;
};

/* sizes: arcs, histograms, bins, trees, nodes. total: what is stated as the size of all sections. In a new block that
 * the caller frees; returns its size. */
static inline size_t sections_wrap(uint8_t flags, const uint64_t sizes[5], const struct counts_section *s,
                                   unsigned count, uint64_t total, uint8_t **out)
{
    size_t capacity = 200;
    for (unsigned i = 0; i < count; i++) {
        capacity += deflate_bound(s[i].n);
    }
    uint8_t *block = malloc(capacity), *frames = malloc(capacity), *p = block, *q = frames;
    *p++ = 1;
    p = varint_put(p, total);
    *p++ = flags;
    for (unsigned i = 0; i < 5; i++) {
        p = varint_put(p, sizes[i]);
    }
    for (unsigned i = 0; i < count; i++) {
        size_t size = 0;
        deflate_pack(s[i].raw, s[i].n, false, q, deflate_bound(s[i].n), &size, NULL);
        p = varint_put(varint_put(p, s[i].n), size);
        q += size;
    }
    const size_t size = (size_t)(q - frames);
    memcpy(p, frames, size);
    free(frames);
    *out = block;
    return (size_t)(p - block) + size;
}

static inline uint64_t sections_total(const struct counts_section *s, unsigned count)
{
    uint64_t total = 0;
    for (unsigned i = 0; i < count; i++) {
        total += s[i].n;
    }
    return total;
}

/* Splits what counts_encode made: decompressed sections in new blocks; returns how many. sizes as above. */
static inline unsigned sections_split(const uint8_t *in, size_t n, uint64_t sizes[5], struct counts_section s[3])
{
    const uint8_t *at = in + 1, *end = in + n;
    uint64_t total, raw[3], packed[3];
    varint_get(&at, end, &total);
    at++;
    for (unsigned i = 0; i < 5; i++) {
        varint_get(&at, end, &sizes[i]);
    }
    const unsigned count = sizes[3] > 0 ? 3 : 2;
    for (unsigned i = 0; i < count; i++) {
        varint_get(&at, end, &raw[i]);
        varint_get(&at, end, &packed[i]);
    }
    for (unsigned i = 0; i < count; at += packed[i++]) {
        uint8_t *block = malloc((size_t)raw[i] + 1);
        deflate_unpack(at, (size_t)packed[i], block, (size_t)raw[i], NULL);
        s[i] = (struct counts_section){block, (size_t)raw[i]};
    }
    return count;
}

#endif
