/* LEB128 varints, as protobuf and the stored encoding of counts use them, and the latter's zigzag numbers. */
#ifndef PROFD_PROTO_VARINT_H
#define PROFD_PROTO_VARINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define VARINT_MAX 10 /* bytes of the longest */

static inline uint8_t *varint_put(uint8_t *out, uint64_t value)
{
    while (value >= 0x80) {
        *out++ = (uint8_t)(value | 0x80);
        value >>= 7;
    }
    *out++ = (uint8_t)value;
    return out;
}

/* Reads one varint at *at and advances past it. False: the bytes end, or the value needs more than 64 bits. */
static inline bool varint_get(const uint8_t **at, const uint8_t *end, uint64_t *value)
{
    const uint8_t *p = *at;
    uint64_t v = 0;
    for (unsigned shift = 0; shift < 64 && p < end; shift += 7) {
        uint8_t byte = *p++;
        if (shift == 63 && byte > 1) {
            return false;
        }
        v |= (uint64_t)(byte & 0x7fu) << shift;
        if (byte < 0x80) {
            *at = p;
            *value = v;
            return true;
        }
    }
    return false;
}

/* Differences modulo 2^64 as small numbers: 0, −1, 1, −2 … become 0, 1, 2, 3 … */
static inline uint64_t varint_zigzag(uint64_t difference)
{
    return difference << 1 ^ (0 - (difference >> 63));
}

static inline uint64_t varint_unzigzag(uint64_t value)
{
    return value >> 1 ^ (0 - (value & 1));
}

#endif
