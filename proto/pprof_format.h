/* profile.proto of github.com/google/pprof, as far as an export and an import must agree on it. */
#ifndef PROFD_PROTO_PPROF_FORMAT_H
#define PROFD_PROTO_PPROF_FORMAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/varint.h"

enum { /* field numbers of message Profile */
       PPROF_SAMPLE_TYPE = 1,
       PPROF_SAMPLE = 2,
       PPROF_MAPPING = 3,
       PPROF_LOCATION = 4,
       PPROF_FUNCTION = 5,
       PPROF_STRING = 6,
       PPROF_TIME_NANOS = 9,
       PPROF_DURATION_NANOS = 10,
       PPROF_PERIOD_TYPE = 11,
       PPROF_PERIOD = 12,
       PPROF_COMMENT = 13,
       PPROF_DEFAULT_SAMPLE_TYPE = 14,
};

/* Comments of profd's exports begin so: by them an import tells which calls are exact and which stacks were never
 * observed. */
#define PPROF_COMMENT_OWN "synthetic: stacks are derived from call counts"
#define PPROF_COMMENT_SEEN "profd: stacks are those that ticks found"
#define PPROF_COMMENT_SAMPLED "calls: sampled"
#define PPROF_COMMENT_LOSSY "calls: counted, but not exact"
#define PPROF_COMMENT_PROCESSES "processes: " /* and how many the counts are of */
#define PPROF_COMMENT_REASONS "not exact: "   /* and the names of the reasons, or "none" */

/* What lines are, at the end of the comment on addresses: as the daemon knows them, and as profctl does. */
#define PPROF_LINES_FUNCTION "lines: the first of each function"
#define PPROF_LINES_DEBUG                                                                                              \
    "lines: of each address, from debug information, in mappings with line numbers; else the first of each function"

/* Reads fields of protobuf messages, one after the other. Pure. */

/* [at, end) is the rest of a message in a file that begins at file. */
struct pprof_cursor {
    const uint8_t *at, *end, *file;
};

enum pprof_wire { PPROF_WIRE_NUMBER = 0, PPROF_WIRE_64 = 1, PPROF_WIRE_BYTES = 2, PPROF_WIRE_32 = 5 };

struct pprof_field {
    uint32_t number;
    unsigned wire;
    uint64_t value;             /* of a PPROF_WIRE_NUMBER */
    struct pprof_cursor inside; /* of PPROF_WIRE_BYTES */
};

/* Reads the next field. False at the end, and if the bytes are not a field; then *broken is set. */
static inline bool pprof_field_next(struct pprof_cursor *c, struct pprof_field *f, bool *broken)
{
    uint64_t key, size = 0;
    const uint8_t *at = c->at;
    if (at >= c->end) {
        return false;
    }
    *broken = true;
    if (!varint_get(&at, c->end, &key) || key >> 3 == 0 || key >> 3 > 0x1fffffff) {
        return false;
    }
    *f = (struct pprof_field){.number = (uint32_t)(key >> 3), .wire = (unsigned)(key & 7)};
    if (f->wire == PPROF_WIRE_NUMBER || f->wire == PPROF_WIRE_BYTES) {
        if (!varint_get(&at, c->end, &size)) {
            return false;
        }
        f->value = size;
        size = f->wire == PPROF_WIRE_NUMBER ? 0 : size;
    } else if (f->wire == PPROF_WIRE_64 || f->wire == PPROF_WIRE_32) {
        size = f->wire == PPROF_WIRE_64 ? 8 : 4;
    } else {
        return false;
    }
    if (size > (uint64_t)(c->end - at)) {
        return false;
    }
    f->inside = (struct pprof_cursor){at, at + size, c->file};
    c->at = at + size;
    *broken = false;
    return true;
}

#endif
