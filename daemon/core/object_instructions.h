/* The instructions of an object in their stored form, which core/object_format.h describes. */
#ifndef PROFD_CORE_OBJECT_INSTRUCTIONS_H
#define PROFD_CORE_OBJECT_INSTRUCTIONS_H

#include "core/buffer.h"
#include "core/object.h"

struct object_instruction {
    uint64_t address;
    uint32_t size; /* bytes, > 0 */
    uint32_t text; /* offset into the object's instruction_texts; with a target, the target belongs behind it */
    bool targeted; /* a direct branch */
    uint64_t target;
};

/* Appends an instruction behind *last, which is zero at first, and makes it *last. Addresses ascend. */
void object_instructions_add(struct buffer *rows, struct object_instruction *last, const struct object_instruction *i);

/* Reads all instructions of a decoded object, validates them, and gives those that begin in [low, high), in ascending
 * order, in the arena. *count is 0 if the object has none there. MALFORMED if the bytes break a rule, NO_MEMORY.
 * O(bytes of instructions). */
enum profd_status object_instructions_find(const struct object *o, struct arena *a, uint64_t low, uint64_t high,
                                           struct object_instruction **out, uint32_t *count, struct profd_error *e);

/* Encodes an encoded object again, without its instructions, into a new block that the caller frees. As object_decode
 * and object_encode. */
enum profd_status object_instructions_remove(const uint8_t *in, size_t n, uint8_t **out, size_t *out_size,
                                             struct profd_error *e);

#endif
