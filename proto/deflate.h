/* zstd frames, with contexts that are kept between calls, and gzip. The only place that calls libzstd. Safe in any
 * thread. */
#ifndef PROFD_PROTO_DEFLATE_H
#define PROFD_PROTO_DEFLATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/status.h"

/* Returns the most bytes that deflate_pack writes for n bytes. */
size_t deflate_bound(size_t n);

/* Writes one zstd frame of level 1 over n bytes into out (capacity at least deflate_bound(n)), with a checksum over
 * the content, and with the content size in its header if sized. NO_MEMORY, INTERNAL or OK. */
enum profd_status deflate_pack(const uint8_t *in, size_t n, bool sized, uint8_t *out, size_t capacity, size_t *size,
                               struct profd_error *e);

/* Returns the most bytes that a zstd frame of n bytes can hold: a block takes at least 4 bytes and yields at most 128
 * KiB. */
uint64_t deflate_content_max(size_t n);

/* Reads the content size in the header of the one zstd frame that `in` consists of. MALFORMED if it is not stated, or
 * the bytes are not exactly one such frame. */
enum profd_status deflate_stated_size(const uint8_t *in, size_t n, uint64_t *size, struct profd_error *e);

/* Inflates the one zstd frame that `in` consists of. MALFORMED unless exactly size bytes come out and have the frame's
 * checksum. */
enum profd_status deflate_unpack(const uint8_t *in, size_t n, uint8_t *out, size_t size, struct profd_error *e);

/* Reads the content size of a frame of another program, which may have no checksum and state no size: then UINT64_MAX.
 * MALFORMED if the bytes are not exactly one frame. */
enum profd_status deflate_find_size(const uint8_t *in, size_t n, uint64_t *size, struct profd_error *e);
/* Inflates the frame of another program into at most `most` bytes. TOO_LARGE if there are more, MALFORMED if it is
 * damaged. */
enum profd_status deflate_unpack_foreign(const uint8_t *in, size_t n, uint8_t *out, size_t most, size_t *size,
                                         struct profd_error *e);

/* Inflates in, which consists of gzip members, into a new block. TOO_LARGE: more than max bytes; MALFORMED: damaged;
 * NO_MEMORY. */
enum profd_status deflate_gunzip(const uint8_t *in, size_t n, size_t max, uint8_t **out, size_t *size,
                                 struct profd_error *e);
/* Compresses n bytes as one gzip member into a new block. NO_MEMORY. */
enum profd_status deflate_gzip(const void *in, size_t n, uint8_t **out, size_t *size, struct profd_error *e);

#endif
