/* Keys of the uploads of hosts that a block may contain: those that its centre had counted when it opened the block
 * (arrivals.h). They stand in column `keys` of the tier's manifest. If a centre was restored
 * from a backup that is older than the block, it learns from them which uploads it must not count again. Pure.
 *
 * The encoding has a part for each epoch: length and bytes of the tenant's name, the epoch (SEGMENT_EPOCH_SIZE bytes),
 * the number of its ranges of sequences, ≥ 1, and for each range, ascending, its distance from the sequence behind the
 * previous range (behind 0 for the first), and how many sequences follow its first. Numbers are LEB128 varints. */
#ifndef PROFD_STORE_BLOCK_KEYS_H
#define PROFD_STORE_BLOCK_KEYS_H

#include "core/buffer.h"
#include "store/segments.h"

/* Sequences of an epoch; both are in it, and low ≥ 1. */
struct block_keys_range {
    uint64_t low, high;
};

/* Appends an epoch with n ≥ 1 ranges, which ascend and do not touch each other. */
void block_keys_add(struct buffer *b, const char *tenant, const uint8_t epoch[SEGMENT_EPOCH_SIZE],
                    const struct block_keys_range *ranges, size_t n);

/* Calls each with every range, in the order in which they were appended. tenant is NUL-terminated, and lives until each
 * returns. A status other than OK of each ends it, and is returned. PROTOCOL: these bytes are no keys; each may have
 * been called before that is found. */
enum profd_status
block_keys_decode(const uint8_t *bytes, size_t size,
                  enum profd_status (*each)(void *context, const char *tenant, const uint8_t epoch[SEGMENT_EPOCH_SIZE],
                                            const struct block_keys_range *range, struct profd_error *e),
                  void *context, struct profd_error *e);

#endif
