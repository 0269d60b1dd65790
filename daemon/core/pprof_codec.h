/* The one reader and the one writer of the pprof tool's format (proto/pprof.proto). Pure. */
#ifndef PROFD_CORE_PPROF_CODEC_H
#define PROFD_CORE_PPROF_CODEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/arena.h"
#include "core/buffer.h"
#include "proto/pprof.pb-c.h"
#include "proto/status.h"

#define PPROF_TYPES 64 /* limit of sample types of one profile */

/* Beginnings of the comments in profd's exports. They tell an import which calls are exact and which stacks were never
 * observed. */
#define PPROF_COMMENT_OWN "synthetic: stacks are derived from call counts"
#define PPROF_COMMENT_SEEN "profd: stacks are those that ticks found"
#define PPROF_COMMENT_SAMPLED "calls: sampled"
#define PPROF_COMMENT_LOSSY "calls: counted, but not exact"
#define PPROF_COMMENT_PROCESSES "processes: " /* and how many the counts are of */
#define PPROF_COMMENT_REASONS "not exact: "   /* and the names of the reasons, or "none" */

/* The end of the comment on addresses: which line an address has. */
#define PPROF_LINES_FUNCTION "lines: the first of each function"

/* Unpacks a protobuf message of any type into the arena, whose limit bounds the memory that a hostile message takes.
 * out points to a pointer to the generated struct, which is set only on OK. MALFORMED: the bytes are not such a
 * message. LIMIT or NO_MEMORY: the arena is exhausted. */
enum profd_status pprof_unpack(struct arena *a, const ProtobufCMessageDescriptor *type, const uint8_t *in, size_t n,
                               void *out, struct profd_error *e);

/* Reads a profile, which must be inflated, into the arena and checks it. It must have a sample type and a sample, each
 * sample must have a non-negative value for each type, ids must be unique, and what they refer to must exist.
 * Afterwards, references are indices: location_id of a sample and function_id of a line are indices into the lists of
 * the profile, and mapping_id of a location is such an index plus 1, or 0. MALFORMED, REFUSED, LIMIT, NO_MEMORY.
 * Expected O(n). */
enum profd_status pprof_read(struct arena *a, const uint8_t *in, size_t n, Profd__Pprof__Profile **out,
                             struct profd_error *e);

/* Returns the text with this number, or an empty one if there is none. It is not NUL-terminated. */
ProtobufCBinaryData pprof_text(const Profd__Pprof__Profile *p, int64_t number);
bool pprof_text_is(const Profd__Pprof__Profile *p, int64_t number, const char *text);
/* Returns the nanoseconds of this unit, or 0 if it is not a unit of time. */
uint64_t pprof_unit_nanoseconds(const Profd__Pprof__Profile *p, int64_t unit);
/* The first sample type of that name and unit (NULL: any unit); PPROF_TYPES if there is none. */
uint32_t pprof_find_type(const Profd__Pprof__Profile *p, const char *type, const char *unit);
/* True if the value of one type is, in each sample, its number of samples times the period. */
bool pprof_is_product(const Profd__Pprof__Profile *p, uint32_t samples, uint32_t product);

/* Appends a profile or a part of one. Readers take a sequence of parts as one profile with joined lists. */
void pprof_write(struct buffer *out, const Profd__Pprof__Profile *part);
/* The numbers that are in use while profiles become one. Zeroed is the initial state. */
struct pprof_parts {
    uint64_t next_mapping, next_location, next_function;
    int64_t next_text;
    bool any;
};
/* Appends a whole profile to others of the same sample types. The result has the types, times and period of the first
 * one. */
enum profd_status pprof_append(struct buffer *out, struct arena *a, const uint8_t *in, size_t n,
                               struct pprof_parts *parts, struct profd_error *e);
/* Returns a text for a message. It borrows the characters, which are only read. */
ProtobufCBinaryData pprof_bytes(const char *text, size_t n);

#endif
