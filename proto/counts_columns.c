#include "proto/counts_columns.h"

#include <string.h>

static unsigned column_width(const uint64_t *values, size_t n, unsigned least)
{
    uint64_t all = 0;
    unsigned width = 0;
    for (size_t i = 0; i < n; i++) {
        all |= values[i];
    }
    for (; all != 0; all >>= 8) {
        width++;
    }
    return width < least ? least : width;
}

uint8_t *counts_column_put(uint8_t *out, const uint64_t *values, size_t n, unsigned least)
{
    for (size_t at = 0; at < n; at += COUNTS_CHUNK) {
        size_t count = n - at < COUNTS_CHUNK ? n - at : COUNTS_CHUNK;
        unsigned width = column_width(values + at, count, least);
        *out++ = (uint8_t)width;
        for (unsigned plane = 0; plane < width; plane++) {
            for (size_t i = 0; i < count; i++) {
                *out++ = (uint8_t)(values[at + i] >> 8 * plane);
            }
        }
    }
    return out;
}

/* The usual widths have loops of their own, which read every plane once. */
static void column_unpack(const uint8_t *p, unsigned width, uint64_t *out, size_t n)
{
    switch (width) {
    case 0:
        memset(out, 0, n * sizeof *out);
        return;
    case 1:
        for (size_t i = 0; i < n; i++) {
            out[i] = p[i];
        }
        return;
    case 2:
        for (size_t i = 0; i < n; i++) {
            out[i] = (uint64_t)p[i] | (uint64_t)p[n + i] << 8;
        }
        return;
    case 3:
        for (size_t i = 0; i < n; i++) {
            out[i] = (uint64_t)p[i] | (uint64_t)p[n + i] << 8 | (uint64_t)p[2 * n + i] << 16;
        }
        return;
    default:
        for (size_t i = 0; i < n; i++) {
            out[i] =
                (uint64_t)p[i] | (uint64_t)p[n + i] << 8 | (uint64_t)p[2 * n + i] << 16 | (uint64_t)p[3 * n + i] << 24;
        }
        for (unsigned plane = 4; plane < width; plane++) {
            for (size_t i = 0; i < n; i++) {
                out[i] |= (uint64_t)p[plane * n + i] << 8 * plane;
            }
        }
    }
}

bool counts_column_get(const uint8_t **at, const uint8_t *end, uint64_t *values, size_t n)
{
    const uint8_t *p = *at;
    for (size_t i = 0; i < n; i += COUNTS_CHUNK) {
        size_t count = n - i < COUNTS_CHUNK ? n - i : COUNTS_CHUNK;
        if (p == end || *p > 8 || (size_t)(end - p) - 1 < *p * count) {
            return false;
        }
        unsigned width = *p++;
        column_unpack(p, width, values + i, count);
        p += width * count;
    }
    *at = p;
    return true;
}
