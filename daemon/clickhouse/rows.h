/* Rows in ClickHouse's format RowBinary: reading those of a reply, writing those of an insert. Pure. */
#ifndef PROFD_CLICKHOUSE_ROWS_H
#define PROFD_CLICKHOUSE_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/arena.h"
#include "core/buffer.h"

/* Rows of a reply that are being read, from left to right and top to bottom. After a read beyond the end, cut is set,
 * and what was read is 0 or empty; look at it once for each row. */
struct row_reader {
    uint8_t *bytes; /* owned */
    const uint8_t *at, *end;
    bool cut;
    void (*freed)(size_t size); /* called when the block is freed, with its size; NULL: nothing is */
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

uint8_t rows_u8(struct row_reader *r);
uint32_t rows_u32(struct row_reader *r);
uint64_t rows_u64(struct row_reader *r);
int64_t rows_i64(struct row_reader *r);
/* FixedString(n). */
void rows_fixed(struct row_reader *r, void *out, size_t n);
/* String: borrowed until rows_close, not NUL-terminated. */
const char *rows_string(struct row_reader *r, size_t *n);
/* The same as a NUL-terminated copy in the arena; NULL: out of memory, or cut. */
const char *rows_copy(struct row_reader *r, struct arena *a);
/* Length of an Array: its elements follow, each of at least `least` bytes; 0 and cut if they cannot be there. */
size_t rows_length(struct row_reader *r, size_t least);
/* Array(UInt16), (UInt32), (UInt64) or (UInt8): an array of *n elements in the arena; NULL: out of memory, or cut. */
uint8_t *rows_array_u8(struct row_reader *r, struct arena *a, size_t *n);
uint16_t *rows_array_u16(struct row_reader *r, struct arena *a, size_t *n);
uint32_t *rows_array_u32(struct row_reader *r, struct arena *a, size_t *n);
uint64_t *rows_array_u64(struct row_reader *r, struct arena *a, size_t *n);

/* Columns of a row, appended. */
void rows_put_u8(struct buffer *b, uint8_t n);
void rows_put_u32(struct buffer *b, uint32_t n);
void rows_put_u64(struct buffer *b, uint64_t n);
void rows_put_i64(struct buffer *b, int64_t n);
void rows_put_fixed(struct buffer *b, const void *bytes, size_t n);
/* String; text may be NULL if n is 0. */
void rows_put_bytes(struct buffer *b, const void *text, size_t n);
void rows_put_text(struct buffer *b, const char *text);
/* Length of an Array, of which the elements follow. */
void rows_put_count(struct buffer *b, size_t n);
void rows_put_array_u32(struct buffer *b, const uint32_t *of, size_t n);
void rows_put_array_u64(struct buffer *b, const uint64_t *of, size_t n);

#endif
