/* Reads fields of protobuf messages, one after the other. Pure. */
#ifndef PROFD_CLIENT_IMPORT_PPROF_FIELD_H
#define PROFD_CLIENT_IMPORT_PPROF_FIELD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/varint.h"

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
