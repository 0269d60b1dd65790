/* State of the parser of profile.proto. Private to import_pprof*.c. */
#ifndef PROFD_CLIENT_IMPORT_PPROF_INTERNAL_H
#define PROFD_CLIENT_IMPORT_PPROF_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "import/import_pprof.h"
#include "proto/pprof.h"

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
    uint64_t lowest, highest; /* addresses of its locations; 0: there are none */
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
