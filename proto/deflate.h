/* zstd frames, with contexts that are kept between calls. The only place that calls libzstd. Safe in any thread. */
#ifndef PROFD_PROTO_DEFLATE_H
#define PROFD_PROTO_DEFLATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/status.h"

/* Upper bound of what deflate_pack writes for n bytes. */
size_t deflate_bound(size_t n);

/* Writes one zstd frame of level 1 over n bytes into out (capacity at least deflate_bound(n)), with a checksum over
 * the content, and with the content size in its header if sized. NO_MEMORY, INTERNAL or OK. */
enum profd_status deflate_pack(const uint8_t *in, size_t n, bool sized, uint8_t *out, size_t capacity, size_t *size,
                               struct profd_error *e);

/* Most bytes that a zstd frame of n bytes can hold: a block takes at least 4 bytes and yields at most 128 KiB. */
uint64_t deflate_content_max(size_t n);

/* The content size stated in the header of the one zstd frame that fills in. MALFORMED if there is none, or the
 * bytes are not exactly one such frame. */
enum profd_status deflate_stated_size(const uint8_t *in, size_t n, uint64_t *size, struct profd_error *e);

/* Inflates the one zstd frame that fills in; exactly size bytes must come out, and have the frame's checksum. MALFORMED
 * otherwise. */
enum profd_status deflate_unpack(const uint8_t *in, size_t n, uint8_t *out, size_t size, struct profd_error *e);

/* For a frame of another program, which may lack the checksum and the content size: the stated size, UINT64_MAX: none
 * is stated. MALFORMED if the bytes are not exactly one frame. */
enum profd_status deflate_find_size(const uint8_t *in, size_t n, uint64_t *size, struct profd_error *e);
/* Inflates such a frame into at most `most` bytes. TOO_LARGE if there are more, MALFORMED if it is damaged. */
enum profd_status deflate_unpack_foreign(const uint8_t *in, size_t n, uint8_t *out, size_t most, size_t *size,
                                         struct profd_error *e);

#endif
