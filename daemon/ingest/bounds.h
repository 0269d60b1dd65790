/* Where an executable has code, in few bytes: what addresses of uploads are checked against on the writer thread,
 * without decoding the whole object. Kept beside the object in the store. */
#ifndef PROFD_INGEST_BOUNDS_H
#define PROFD_INGEST_BOUNDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/arena.h"
#include "core/object.h"
#include "proto/status.h"

/* A view of encoded bounds. */
struct bounds {
    bool has_marks; /* __executable_start and etext are known */
    uint64_t executable_start, etext;
    size_t count;          /* of ranges, ascending, apart from each other */
    const uint8_t *ranges; /* pairs of 64-bit little-endian numbers: [low, high) */
};

/* Encodes the union of the object's ranges. Lives in the arena. NO_MEMORY or OK. O(ranges log ranges). */
enum profd_status bounds_encode(const struct object *o, struct arena *a, const uint8_t **out, size_t *size,
                                struct profd_error *e);
/* False if the bytes are not what bounds_encode makes. They must outlive the view. */
bool bounds_open(const uint8_t *bytes, size_t n, struct bounds *b);
/* True if a range has an address in [low, high). O(log ranges). */
bool bounds_touch(const struct bounds *b, uint64_t low, uint64_t high);

/* The range that was touched last: most addresses of an upload lie in one. */
struct bounds_hint {
    uint64_t low, high;
};
/* bounds_touch, which also fills in the hint. Begin with a zeroed one. */
bool bounds_touch_hint(const struct bounds *b, uint64_t low, uint64_t high, struct bounds_hint *hint);
/* The same, without a search when the hint suffices. */
static inline bool bounds_touch_near(const struct bounds *b, uint64_t low, uint64_t high, struct bounds_hint *hint)
{
    return (low < hint->high && hint->low < high) || bounds_touch_hint(b, low, high, hint);
}

#endif
