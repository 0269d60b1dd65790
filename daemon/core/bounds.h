/* Where an executable has code, in few bytes, and whether counts can be of it. The daemon checks uploads
 * against the bounds that are stored beside the object, without decoding it; the client checks a gmon.out against the
 * file. Pure. */
#ifndef PROFD_CORE_BOUNDS_H
#define PROFD_CORE_BOUNDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/arena.h"
#include "core/object.h"
#include "proto/counts.h"
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

/* One build of counts that are checked. */
struct bounds_build {
    const struct bounds *bounds; /* NULL: its executable is not known, and nothing of it is checked */
    const char *id, *name;       /* for sentences */
    struct bounds_hint hint;     /* zeroed */
    bool proven;                 /* set: a histogram spans exactly what the symbols of the executable say */
};

/* Checks counts against the bounds of their builds:
 * - of an imported gmon.out, if the program has the symbols __executable_start and etext: its histograms span exactly
 *   the first, rounded down to 4, to the second, rounded up to 4;
 * - every other histogram overlaps code, and so does every bin with ticks; the histogram of the collector's counters
 *   has no addresses;
 * - every arc end is in code; a caller may be the address behind it, to which its last call would return. The caller of
 *   an imported arc is rounded down to 16, so up to 15 bytes more are allowed. The callee of an imported arc may lie
 *   outside when the symbols have proven the file to be of this executable: glibc records calls into shared libraries
 *   built with -pg at addresses outside the executable. WRONG_BUILD with the values otherwise. O((bins + arcs) log
 *   ranges), in practice O(bins + arcs). */
enum profd_status bounds_check_counts(struct bounds_build *builds, uint32_t program, bool imported,
                                      const struct counts *c, struct profd_error *e);

/* Checks the stacks. A program counter must be in code (WRONG_BUILD). A return address that is not in code, nor the
 * address behind it, cannot be one: callers were looked for in the wrong place. It and all frames further out become
 * COUNTS_FRAME_INCOMPLETE, in c itself, and *cut becomes true; the ticks of a tree stay the same. O(nodes) if nothing
 * is cut, else expected O(nodes · depth). */
enum profd_status bounds_cut_stacks(struct bounds_build *builds, struct counts *c, bool *cut, struct profd_error *e);

#endif
