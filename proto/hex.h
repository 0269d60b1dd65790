/* Bytes as text. */
#ifndef PROFD_PROTO_HEX_H
#define PROFD_PROTO_HEX_H

#include <stddef.h>
#include <stdint.h>

/* Writes n bytes as 2·n lowercase hexadecimal digits and a NUL. Returns where the NUL stands. */
static inline char *hex_put(char *out, const uint8_t *bytes, size_t n)
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < n; i++) {
        *out++ = digits[bytes[i] >> 4];
        *out++ = digits[bytes[i] & 15u];
    }
    *out = '\0';
    return out;
}

#endif
