/* Rows in ClickHouse's format RowBinary: reading those of a reply, writing those of an insert. Pure. */
#ifndef PROFD_TIER_ROW_BINARY_H
#define PROFD_TIER_ROW_BINARY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "core/arena.h"
#include "core/buffer.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "RowBinary is little-endian");

/* Rows of a reply that are being read, from left to right and top to bottom. After a read beyond the end, cut is set,
 * and what was read is 0 or empty: look at it once for each row. rows_text sets it, too. */
struct row_reader {
    uint8_t *bytes; /* owned */
    const uint8_t *at, *end;
    bool cut;
};

/* Takes over the block. */
void rows_open(struct row_reader *r, uint8_t *bytes, size_t size);
/* Frees the reply. Accepts a zeroed struct. */
void rows_close(struct row_reader *r);
/* True if another row follows. */
static inline bool rows_more(const struct row_reader *r)
{
    return !r->cut && r->at < r->end;
}

/* FixedString(n). */
void rows_fixed(struct row_reader *r, void *out, size_t n);
/* Length of an Array: its elements follow, each of at least `least` bytes; 0 and cut if they cannot be there. */
size_t rows_length(struct row_reader *r, size_t least);
/* String: borrowed until rows_close, not NUL-terminated. */
static inline const char *rows_string(struct row_reader *r, size_t *n)
{
    *n = rows_length(r, 1);
    const char *text = (const char *)r->at;
    r->at += *n;
    return text;
}

/* Copies a String of n bytes into the arena. Returns NULL if out of memory. */
const uint8_t *rows_bytes(struct row_reader *r, struct arena *a, size_t *n);
/* Copies a String into the arena, NUL-terminated. If it contains a NUL, cut is set. Returns NULL if out of memory. */
const char *rows_text(struct row_reader *r, struct arena *a);
/* Copies an Array of n Strings, each as rows_text does. Returns NULL if out of memory. */
const char **rows_texts(struct row_reader *r, struct arena *a, size_t *n);

/* A number of a row, and one that is appended. */
#define ROWS_NUMBER(type, suffix)                                                                                      \
    static inline type rows_##suffix(struct row_reader *r)                                                             \
    {                                                                                                                  \
        type n;                                                                                                        \
        rows_fixed(r, &n, sizeof n);                                                                                   \
        return n;                                                                                                      \
    }                                                                                                                  \
    static inline void rows_put_##suffix(struct buffer *b, type n)                                                     \
    {                                                                                                                  \
        buffer_add(b, &n, sizeof n);                                                                                   \
    }
ROWS_NUMBER(uint8_t, u8)
ROWS_NUMBER(uint32_t, u32)
ROWS_NUMBER(uint64_t, u64)
ROWS_NUMBER(int64_t, i64)
#undef ROWS_NUMBER

/* Other columns of a row, appended. */
static inline void rows_put_fixed(struct buffer *b, const void *bytes, size_t n)
{
    buffer_add(b, bytes, n);
}

/* Length of an Array. Its elements follow. */
void rows_put_count(struct buffer *b, size_t n);
/* String; text may be NULL if n is 0. */
static inline void rows_put_bytes(struct buffer *b, const void *text, size_t n)
{
    rows_put_count(b, n);
    if (n) {
        buffer_add(b, text, n);
    }
}

static inline void rows_put_text(struct buffer *b, const char *text)
{
    rows_put_bytes(b, text, strlen(text));
}

#endif
