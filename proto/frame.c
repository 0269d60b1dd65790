#include "proto/frame.h"

#include <stdlib.h>

#include "proto/deflate.h"
#include "proto/limits.h"

static uint32_t frame_get_u32(const uint8_t *in)
{
    return (uint32_t)in[0] | (uint32_t)in[1] << 8 | (uint32_t)in[2] << 16 | (uint32_t)in[3] << 24;
}

static void frame_put_u32(uint32_t value, uint8_t *out)
{
    for (unsigned i = 0; i < 4; i++) {
        out[i] = (uint8_t)(value >> (8 * i));
    }
}

void frame_encode(const struct frame_header *f, uint8_t out[FRAME_HEADER_SIZE])
{
    frame_put_u32(f->length, out);
    out[4] = f->version;
    out[5] = f->type;
    out[6] = (uint8_t)f->flags;
    out[7] = (uint8_t)(f->flags >> 8);
    frame_put_u32(f->tag, out + 8);
}

const char *frame_type_name(unsigned type)
{
    switch (type) {
#define EMPTY(name, number)                                                                                            \
    case number:                                                                                                       \
        return #name;
#define MESSAGE(name, number, member, type, fields) EMPTY(name, number)
        MESSAGE_LIST(MESSAGE, EMPTY, , , , , , , , , )
#undef MESSAGE
#undef EMPTY
    default:
        return NULL;
    }
}

enum profd_status frame_decode(const uint8_t in[FRAME_HEADER_SIZE], struct frame_header *f, struct profd_error *e)
{
    f->length = frame_get_u32(in);
    f->version = in[4];
    f->type = in[5];
    f->flags = (uint16_t)(in[6] | in[7] << 8);
    f->tag = frame_get_u32(in + 8);
    FAIL_IF(f->length > LIMIT_FRAME_PAYLOAD, e, PROFD_TOO_LARGE, "frame of %u bytes: the limit is %u", f->length,
            LIMIT_FRAME_PAYLOAD);
    FAIL_IF(f->version != FRAME_VERSION, e, PROFD_UNKNOWN_VERSION,
            "protocol version %u: this program supports version %d", f->version, FRAME_VERSION);
    FAIL_IF(frame_type_name(f->type) == NULL, e, PROFD_UNKNOWN_TYPE,
            "message type %u is not known in protocol version %u", f->type, f->version);
    FAIL_IF((f->flags & ~FRAME_FLAGS_KNOWN) != 0, e, PROFD_PROTOCOL,
            "flags 0x%04x of a %s frame: only 0x%04x are known", f->flags, frame_type_name(f->type), FRAME_FLAGS_KNOWN);
    FAIL_IF(frame_fds(f) > LIMIT_FRAME_FDS, e, PROFD_PROTOCOL, "%u descriptors with a %s frame: the limit is %u",
            frame_fds(f), frame_type_name(f->type), LIMIT_FRAME_FDS);
    return PROFD_OK;
}

enum profd_status frame_inflate(const uint8_t *payload, size_t n, size_t limit, uint8_t **out, size_t *out_size,
                                struct profd_error *e)
{
    uint64_t size;
    TRY(deflate_stated_size(payload, n, &size, e));
    FAIL_IF(size > limit, e, PROFD_TOO_LARGE, "payload of %llu bytes when decompressed: the limit is %zu",
            (unsigned long long)size, limit);
    FAIL_IF(size > deflate_content_max(n), e, PROFD_MALFORMED,
            "compressed payload of %zu bytes states a content of %llu, which is impossible", n,
            (unsigned long long)size);
    uint8_t *block = malloc(size == 0 ? 1 : (size_t)size);
    FAIL_IF(block == NULL, e, PROFD_NO_MEMORY, "no memory to inflate a payload of %llu bytes",
            (unsigned long long)size);
    enum profd_status status = deflate_unpack(payload, n, block, (size_t)size, e);
    if (status != PROFD_OK) {
        free(block);
        return status;
    }
    *out = block;
    *out_size = (size_t)size;
    return PROFD_OK;
}
