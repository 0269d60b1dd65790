#include "clickhouse/rows.h"

#include <stdlib.h>
#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "RowBinary is little-endian, and arrays are copied as they are");

void rows_open(struct row_reader *r, uint8_t *bytes, size_t size)
{
    *r = (struct row_reader){.bytes = bytes, .at = bytes, .end = bytes + size};
}

void rows_close(struct row_reader *r)
{
    if (r->freed) {
        r->freed((size_t)(r->end - r->bytes));
    }
    free(r->bytes);
    *r = (struct row_reader){.bytes = NULL};
}

void rows_fixed(struct row_reader *r, void *out, size_t n)
{
    if ((size_t)(r->end - r->at) < n) {
        r->cut = true;
        memset(out, 0, n);
        return;
    }
    memcpy(out, r->at, n);
    r->at += n;
}

uint8_t rows_u8(struct row_reader *r)
{
    uint8_t n;
    rows_fixed(r, &n, sizeof n);
    return n;
}

uint32_t rows_u32(struct row_reader *r)
{
    uint32_t n;
    rows_fixed(r, &n, sizeof n);
    return n;
}

uint64_t rows_u64(struct row_reader *r)
{
    uint64_t n;
    rows_fixed(r, &n, sizeof n);
    return n;
}

int64_t rows_i64(struct row_reader *r)
{
    int64_t n;
    rows_fixed(r, &n, sizeof n);
    return n;
}

size_t rows_length(struct row_reader *r, size_t least)
{
    uint64_t n = 0;
    for (unsigned shift = 0; shift < 63 && r->at < r->end; shift += 7) {
        const uint8_t byte = *r->at++;
        n |= (uint64_t)(byte & 127) << shift;
        if (byte < 128) {
            if (n > (size_t)(r->end - r->at) / (least > 0 ? least : 1)) {
                break;
            }
            return (size_t)n;
        }
    }
    r->cut = true;
    return 0;
}

const char *rows_string(struct row_reader *r, size_t *n)
{
    *n = rows_length(r, 1);
    const char *text = (const char *)r->at;
    r->at += *n;
    return text;
}

const char *rows_copy(struct row_reader *r, struct arena *a)
{
    size_t n;
    const char *text = rows_string(r, &n);
    return r->cut ? NULL : arena_copy(a, text, n);
}

#define ROWS_ARRAY(bits)                                                                                               \
    uint##bits##_t *rows_array_u##bits(struct row_reader *r, struct arena *a, size_t *n)                               \
    {                                                                                                                  \
        *n = rows_length(r, sizeof(uint##bits##_t));                                                                   \
        uint##bits##_t *out = ARENA_ARRAY(a, *n + 1, uint##bits##_t);                                                  \
        if (!out || r->cut) {                                                                                          \
            *n = 0;                                                                                                    \
            return NULL;                                                                                               \
        }                                                                                                              \
        rows_fixed(r, out, *n * sizeof *out);                                                                          \
        return out;                                                                                                    \
    }
ROWS_ARRAY(8)
ROWS_ARRAY(16)
ROWS_ARRAY(32)
ROWS_ARRAY(64)

void rows_put_fixed(struct buffer *b, const void *bytes, size_t n)
{
    buffer_add(b, bytes, n);
}

void rows_put_u8(struct buffer *b, uint8_t n)
{
    buffer_add(b, &n, sizeof n);
}

void rows_put_u32(struct buffer *b, uint32_t n)
{
    buffer_add(b, &n, sizeof n);
}

void rows_put_u64(struct buffer *b, uint64_t n)
{
    buffer_add(b, &n, sizeof n);
}

void rows_put_i64(struct buffer *b, int64_t n)
{
    buffer_add(b, &n, sizeof n);
}

void rows_put_count(struct buffer *b, size_t n)
{
    uint64_t left = n;
    for (; left >= 128; left >>= 7) {
        rows_put_u8(b, (uint8_t)((left & 127) | 128));
    }
    rows_put_u8(b, (uint8_t)left);
}

void rows_put_bytes(struct buffer *b, const void *text, size_t n)
{
    rows_put_count(b, n);
    if (n > 0) {
        buffer_add(b, text, n);
    }
}

void rows_put_text(struct buffer *b, const char *text)
{
    rows_put_bytes(b, text, strlen(text));
}

void rows_put_array_u32(struct buffer *b, const uint32_t *of, size_t n)
{
    rows_put_count(b, n);
    if (n > 0) {
        buffer_add(b, of, n * sizeof *of);
    }
}

void rows_put_array_u64(struct buffer *b, const uint64_t *of, size_t n)
{
    rows_put_count(b, n);
    if (n > 0) {
        buffer_add(b, of, n * sizeof *of);
    }
}
