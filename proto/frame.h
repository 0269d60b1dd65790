/* Frames of the Unix socket: a 12-byte little-endian header and a payload. Pure: bytes in, frames out.
 * The layout is specified in profd-protocol(7). */
#ifndef PROFD_PROTO_FRAME_H
#define PROFD_PROTO_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/message_list.h"
#include "proto/status.h"

#define FRAME_HEADER_SIZE 12
#define FRAME_VERSION 1

enum frame_type {
#define MESSAGE(name, number, member, type, fields) FRAME_##name = number,
#define EMPTY(name, number) FRAME_##name = number,
    MESSAGE_LIST(MESSAGE, EMPTY, , , , , , , , , )
#undef MESSAGE
#undef EMPTY
};

#define FRAME_FLAG_LAST 0x0001u       /* of a REPLY */
#define FRAME_FLAG_COMPRESSED 0x0002u /* the payload is one zstd frame with its content size in the header */
#define FRAME_FLAG_FDS_SHIFT 8        /* bits 8–11: number of descriptors that belong to the frame */
#define FRAME_FLAG_FDS_MASK 0x0f00u
#define FRAME_FLAGS_KNOWN (FRAME_FLAG_LAST | FRAME_FLAG_COMPRESSED | FRAME_FLAG_FDS_MASK)

struct frame_header {
    uint32_t length; /* of the payload, bytes */
    uint8_t version;
    uint8_t type;
    uint16_t flags;
    uint32_t tag; /* chosen by the sender of a request, repeated in the answer */
};

/* Returns the number of descriptors that belong to the frame. */
static inline unsigned frame_fds(const struct frame_header *f)
{
    return (f->flags & FRAME_FLAG_FDS_MASK) >> FRAME_FLAG_FDS_SHIFT;
}

/* Writes the header. */
void frame_encode(const struct frame_header *f, uint8_t out[FRAME_HEADER_SIZE]);

/* Parses and validates a header. TOO_LARGE: the length is above LIMIT_FRAME_PAYLOAD. UNKNOWN_VERSION, UNKNOWN_TYPE.
 * PROTOCOL: unknown flags, or more than LIMIT_FRAME_FDS descriptors. The sentence names the value. *f is always filled
 * in, so that a NACK can repeat the tag. */
enum profd_status frame_decode(const uint8_t in[FRAME_HEADER_SIZE], struct frame_header *f, struct profd_error *e);

/* Returns the name of a type ("UPLOAD"); NULL if it is not known. */
const char *frame_type_name(unsigned type);

/* Inflates the payload of a COMPRESSED frame into a new block (*out, *out_size; the caller frees it).
 * The stated content size must be there and at most limit, and must be exactly what comes out. */
enum profd_status frame_inflate(const uint8_t *payload, size_t n, size_t limit, uint8_t **out, size_t *out_size,
                                struct profd_error *e);

#endif
