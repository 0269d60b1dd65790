/* State of the parser of profile.proto. Private to import_pprof*.c. */
#ifndef PROFD_CLIENT_IMPORT_PPROF_INTERNAL_H
#define PROFD_CLIENT_IMPORT_PPROF_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "import/import_pprof.h"
#include "proto/pprof.h"
#include "proto/varint.h"

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

#define PPROF_TYPES 64 /* limit of sample types of one profile */

struct pprof_string {
    const char *text;
    size_t size;
};

struct pprof_type {
    uint64_t type, unit; /* strings */
};

struct pprof_mapping {
    uint64_t id, start, limit, offset, filename, build_id;
    uint32_t inside, outside; /* locations with addresses inside and outside [start, limit) */
};

struct pprof_location {
    uint64_t id, mapping, address;
    uint32_t frame; /* of the profile */
};

/* Rows by id; ids may be any numbers. */
struct pprof_ids {
    struct table table;
    const void *rows; /* each begins with its id */
    size_t size;      /* of a row */
};

struct pprof {
    struct arena *arena;
    const uint8_t *file, *profile_end;
    struct import_profile profile;
    struct import_texts texts;
    struct pprof_string *strings;
    struct pprof_mapping *mappings;
    struct pprof_location *locations;
    uint64_t *comments; /* strings */
    uint32_t string_count, string_capacity, mapping_count, mapping_capacity, location_count, location_capacity,
        comment_count, comment_capacity;
    struct pprof_ids mapping_ids, location_ids;
    struct pprof_type types[PPROF_TYPES], period_type;
    uint32_t type_count;
    uint64_t period, time, duration, default_type;
    uint32_t sample_count;
    uint32_t *chain, chain_capacity; /* frames of the sample that is being read, the leaf first */
    /* Columns of a sample's values that are imported; PPROF_TYPES: none. */
    uint32_t ticks, calls;
    bool own;     /* an export of profd: calls are exact */
    bool derived; /* its stacks were never observed */
};

/* Rows of every kind but samples. */
enum profd_status pprof_tables_read(struct pprof *p, const uint8_t *in, size_t n, struct profd_error *e);
/* Returns the row of an id; NULL if there is none. */
const void *pprof_ids_find(const struct pprof_ids *ids, uint64_t id);

/* Converts mappings to objects and locations to frames. */
enum profd_status pprof_places_make(struct pprof *p, struct profd_error *e);

/* Returns the string of that index, or "" if it does not exist. */
struct pprof_string pprof_string_at(const struct pprof *p, uint64_t index);
bool pprof_string_is(const struct pprof *p, uint64_t index, const char *text);

enum profd_status pprof_broken(const struct pprof *p, const uint8_t *at, const char *what, struct profd_error *e);

#endif
