/* The set of a sender's counted uploads: all sequences up to a mark, and a short list of ranges above it. Uploads may
 * arrive in another order, and a spool may have lost some. */
#ifndef PROFD_STORE_SEQUENCE_H
#define PROFD_STORE_SEQUENCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SEQUENCE_RANGES 1024u
#define SEQUENCE_BYTES (8u * SEQUENCE_RANGES)

struct sequence_range {
    uint32_t low, high; /* both in it */
};

/* Ranges ascend and touch neither each other nor the mark. {0} is the set of an unknown sender. */
struct sequence_set {
    uint32_t mark; /* 1 … mark were counted */
    uint32_t count;
    struct sequence_range ranges[SEQUENCE_RANGES];
};

enum sequence_outcome { SEQUENCE_NEW, SEQUENCE_SEEN, SEQUENCE_FULL };

/* Adds a sequence ≥ 1. FULL: it would need one range too many; the set is unchanged. O(log ranges) to find. */
enum sequence_outcome sequence_add(struct sequence_set *set, uint32_t sequence);

/* Returns whether a sequence was counted. O(log ranges). */
bool sequence_holds(const struct sequence_set *set, uint32_t sequence);

/* Encodes the ranges as pairs of 32-bit little-endian numbers. Returns the number of bytes. */
size_t sequence_encode(const struct sequence_set *set, uint8_t out[SEQUENCE_BYTES]);
/* Decodes the ranges. False if the bytes break the rules above; the set is then undefined. */
bool sequence_decode(struct sequence_set *set, uint32_t mark, const uint8_t *bytes, size_t n);

#endif
