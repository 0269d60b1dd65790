/* RowBinary: what is written is read again, and every cut and every length that lies is found. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "tier/row_binary.h"

/* One row of every type. */
static void row_put(struct buffer *b, const char *text, size_t n)
{
    rows_put_u8(b, 200);
    rows_put_u32(b, 4000000000u);
    rows_put_u64(b, UINT64_MAX - 1);
    rows_put_i64(b, -5);
    rows_put_fixed(b, "\0fixed", 6);
    rows_put_bytes(b, text, n);
    rows_put_count(b, 2);
    rows_put_text(b, "a");
    rows_put_text(b, "");
}

/* True if the row is there. */
static bool row_take(struct row_reader *r, const char *text, size_t n)
{
    char fixed[6];
    size_t size, count;
    bool fine = rows_u8(r) == 200;
    fine &= rows_u32(r) == 4000000000u;
    fine &= rows_u64(r) == UINT64_MAX - 1;
    fine &= rows_i64(r) == -5;
    rows_fixed(r, fixed, 6);
    fine &= !memcmp(fixed, "\0fixed", 6);
    const char *at = rows_string(r, &size);
    fine &= size == n && !memcmp(at, text, n);
    count = rows_length(r, 1);
    fine &= count == 2;
    for (size_t i = 0; i < count; i++) {
        at = rows_string(r, &size);
        fine &= size == (i == 0) && (i || *at == 'a');
    }
    return fine && !r->cut;
}

static uint8_t *copy_of(const void *bytes, size_t n)
{
    uint8_t *copy = malloc(n ? n : 1); /* exact, for the address sanitizer */
    memcpy(copy, bytes, n);
    return copy;
}

Test(row_binary, reads_what_it_wrote)
{
    static char text[20000];
    static const size_t lengths[] = {0, 1, 127, 128, 16383, 16384, sizeof text};
    struct row_reader r;
    struct buffer b;
    memset(text, 'x', sizeof text);
    buffer_init(&b, 1u << 20);
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        row_put(&b, text, lengths[i]);
    }
    rows_open(&r, copy_of(b.data, b.size), b.size);
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        cr_assert(rows_more(&r));
        cr_assert(row_take(&r, text, lengths[i]), "%zu", lengths[i]);
    }
    cr_assert(!rows_more(&r) && !r.cut);
    rows_close(&r);
    buffer_done(&b);
}

Test(row_binary, every_cut_is_found)
{
    struct row_reader r;
    struct buffer b;
    buffer_init(&b, 1u << 20);
    row_put(&b, "hello", 5);
    for (size_t n = 0; n < b.size; n++) {
        rows_open(&r, copy_of(b.data, n), n);
        cr_expect(!row_take(&r, "hello", 5) && r.cut && !rows_more(&r), "%zu", n);
        rows_close(&r);
    }
    buffer_done(&b);
}

/* A text with a NUL is a text that cannot be: an error of the reply, not a lack of memory. */
Test(row_binary, texts_with_a_nul)
{
    struct arena *a = arena_new(0);
    struct row_reader r;
    size_t n;
    rows_open(&r,
              copy_of("\x03"
                      "a\0b",
                      4),
              4);
    cr_assert(rows_text(&r, a) && r.cut && !rows_more(&r));
    rows_close(&r);
    rows_open(&r, copy_of("\x02\x01x\x01\0", 5), 5);
    cr_assert(rows_texts(&r, a, &n) && n == 2 && r.cut && !rows_more(&r));
    rows_close(&r);
    rows_open(&r, copy_of("\x02\x01x\x00", 4), 4);
    cr_assert(rows_texts(&r, a, &n) && n == 2 && !r.cut);
    rows_close(&r);
    arena_free(a);
}

Test(row_binary, lengths_that_lie)
{
    static const char *const wrong[] = {"\x02x", "\xff\xff\xff\xff\xff\xff\xff\xff\x7f",
                                        "\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01",
                                        "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", "\x80"};
    struct row_reader r;
    size_t n;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        rows_open(&r, copy_of(wrong[i], strlen(wrong[i])), strlen(wrong[i]));
        rows_string(&r, &n);
        cr_expect(n == 0 && r.cut, "%zu", i);
        cr_expect_eq(rows_u8(&r), 0);
        rows_close(&r);
    }
    rows_open(&r, copy_of("\x02xxx", 4), 4);
    cr_assert(rows_length(&r, 2) == 0 && r.cut); /* 2 elements of 2 bytes in 3 bytes */
    rows_close(&r);
}
