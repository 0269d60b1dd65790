/* The stacks' section of stored sums (rollup_format.h). Private to core/rollup*. */
#ifndef PROFD_CORE_ROLLUP_TREES_FORMAT_H
#define PROFD_CORE_ROLLUP_TREES_FORMAT_H

#include "core/rollup.h"
#include "core/rollup_ends.h"

/* The packed section in a new block that the caller frees. TOO_LARGE, NO_MEMORY or OK. O(nodes). */
enum profd_status rollup_encode_trees(const struct rollup *r, uint8_t **out, size_t *raw_size, size_t *size,
                                      struct profd_error *e);
/* Decodes the raw section into the trees of out, arrays in the arena, and checks every rule on them. DAMAGED, NO_MEMORY
 * or OK. O(bytes). */
enum profd_status rollup_decode_trees(struct rollup_reader *r, uint32_t builds, struct arena *a, struct rollup *out,
                                      struct profd_error *e);

#endif
