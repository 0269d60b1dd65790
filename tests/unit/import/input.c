/* Reading files of other tools: lines of any length, gzip, and what a beginning says about a format. */
#include <criterion/criterion.h>
#include <libdeflate.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "import/import_any.h"
#include "import/import_any_internal.h"
#include "proto/deflate.h"

static char folder[64];

static const char *file_of(const void *bytes, size_t n)
{
    static char path[96];
    if (!folder[0]) {
        snprintf(folder, sizeof folder, "/tmp/profd-import-XXXXXX");
        cr_assert_not_null(mkdtemp(folder));
    }
    snprintf(path, sizeof path, "%s/file", folder);
    FILE *f = fopen(path, "wb");
    cr_assert_eq(fwrite(bytes, 1, n, f), n);
    fclose(f);
    return path;
}

static void leave(void)
{
    char path[96];
    snprintf(path, sizeof path, "%s/file", folder);
    unlink(path);
    rmdir(folder);
}

struct seen {
    char text[512];
    uint64_t lines;
    size_t longest;
};

static enum profd_status see(void *context, const char *line, size_t n, uint64_t number, struct profd_error *e)
{
    struct seen *s = context;
    (void)e;
    cr_assert_eq(number, ++s->lines);
    s->longest = n > s->longest ? n : s->longest;
    size_t at = strlen(s->text);
    snprintf(s->text + at, sizeof s->text - at, "%.*s|", (int)(n < 100 ? n : 100), line);
    return PROFD_OK;
}

static enum profd_status lines_of(const void *bytes, size_t n, struct seen *s, struct profd_error *e)
{
    struct import_input in;
    *s = (struct seen){.lines = 0};
    cr_assert_eq(import_input_open(file_of(bytes, n), &in, e), PROFD_OK);
    enum profd_status status = import_input_each_line(&in, see, s, e);
    import_input_close(&in);
    return status;
}

Test(input, lines, .fini = leave)
{
    struct seen s;
    cr_assert_eq(lines_of("one\ntwo\r\n\nlast", 14, &s, NULL), PROFD_OK);
    cr_assert_str_eq(s.text, "one|two||last|");
    cr_assert_eq(lines_of("", 0, &s, NULL), PROFD_OK);
    cr_assert_eq(s.lines, 0);
    cr_assert_eq(lines_of("\n", 1, &s, NULL), PROFD_OK);
    cr_assert_str_eq(s.text, "|");
}

Test(input, long_lines_have_an_end, .fini = leave)
{
    char *text = malloc(IMPORT_LINE_MAX + 10);
    struct seen s;
    struct profd_error e = {""};
    memset(text, 'x', IMPORT_LINE_MAX + 10);
    text[1] = '\n';
    text[IMPORT_LINE_MAX - 2] = '\n';
    cr_assert_eq(lines_of(text, IMPORT_LINE_MAX + 10, &s, NULL), PROFD_OK);
    cr_assert_eq(s.lines, 3);
    cr_assert_eq(s.longest, IMPORT_LINE_MAX - 4);
    text[IMPORT_LINE_MAX - 2] = 'x';
    cr_assert_eq(lines_of(text, IMPORT_LINE_MAX + 10, &s, &e), PROFD_TOO_LARGE);
    cr_assert(strstr(e.sentence, "line 2"), "%s", e.sentence);
    free(text);
}

Test(input, peeked_bytes_are_still_there, .fini = leave)
{
    size_t n = 300000, got;
    uint8_t *bytes = malloc(n), *all;
    struct import_input in;
    const uint8_t *beginning;
    for (size_t i = 0; i < n; i++) {
        bytes[i] = (uint8_t)(i * 7 + i / 256);
    }
    cr_assert_eq(import_input_open(file_of(bytes, n), &in, NULL), PROFD_OK);
    cr_assert_eq(import_input_peek(&in, &beginning, &got, NULL), PROFD_OK);
    cr_assert(got == IMPORT_INPUT_PEEK && memcmp(beginning, bytes, got) == 0);
    cr_assert_eq(import_input_take_all(&in, n, &all, &got, NULL), PROFD_OK);
    cr_assert(got == n && memcmp(all, bytes, n) == 0);
    free(all);
    import_input_close(&in);
    struct profd_error e = {""};
    cr_assert_eq(import_input_open(file_of(bytes, n), &in, NULL), PROFD_OK);
    cr_assert_eq(import_input_take_all(&in, n - 1, &all, &got, &e), PROFD_TOO_LARGE, "%s", e.sentence);
    import_input_close(&in);
    free(bytes);
}

static size_t compress(const void *in, size_t n, uint8_t *out, size_t capacity)
{
    struct libdeflate_compressor *c = libdeflate_alloc_compressor(6);
    size_t size = libdeflate_gzip_compress(c, in, n, out, capacity);
    libdeflate_free_compressor(c);
    return size;
}

Test(input, gzip)
{
    size_t n = 1000000, size;
    char *text = malloc(n);
    uint8_t *packed = malloc(2 * n), *out;
    struct profd_error e = {""};
    for (size_t i = 0; i < n; i++) {
        text[i] = (char)('a' + i * i % 17);
    }
    size_t first = compress(text, 400000, packed, n),
           both = first + compress(text + 400000, n - 400000, packed + first, n);
    cr_assert_eq(deflate_gunzip(packed, both, n, &out, &size, &e), PROFD_OK, "%s", e.sentence);
    cr_assert(size == n && memcmp(out, text, n) == 0, "two members");
    free(out);
    cr_assert_eq(deflate_gunzip(packed, both, n - 1, &out, &size, &e), PROFD_TOO_LARGE);
    cr_assert(strstr(e.sentence, "999999"), "%s", e.sentence);
    for (size_t cut = 1; cut < first; cut += 97) {
        cr_assert_eq(deflate_gunzip(packed, cut, n, &out, &size, &e), PROFD_MALFORMED, "cut at %zu", cut);
    }
    packed[first / 2] ^= 1;
    cr_assert_eq(deflate_gunzip(packed, first, n, &out, &size, &e), PROFD_MALFORMED, "%s", e.sentence);
    free(text);
    free(packed);
}

Test(input, formats)
{
    static const struct {
        const char *bytes;
        size_t n;
        enum import_format format;
    } cases[] = {
        {"gmon\1\0\0\0", 8, IMPORT_GMON},
        {"\x1f\x8b\x08\0", 4, IMPORT_PPROF},
        {"\x0a\x04\x08\x01\x10\x02", 6, IMPORT_PPROF},
        {"# callgrind format\nversion: 1\n", 30, IMPORT_CALLGRIND},
        {"version: 1\n", 11, IMPORT_CALLGRIND},
        {"\n\nevents: Ir\n", 13, IMPORT_CALLGRIND},
        {"# ========\n# captured on", 23, IMPORT_PERF},
        {"t 7 1.0: 5 cycles:\n", 19, IMPORT_PERF},
        {"\xc3\xa4 7 1.0: 5 cycles:\n", 20, IMPORT_PERF},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        enum import_format format = IMPORT_AUTO;
        struct profd_error e = {""};
        cr_expect_eq(import_format_detect((const uint8_t *)cases[i].bytes, cases[i].n, &format, &e), PROFD_OK,
                     "case %zu: %s", i, e.sentence);
        cr_expect_eq(format, cases[i].format, "case %zu: %d", i, (int)format);
    }
    static const struct {
        const char *bytes;
        size_t n;
        const char *word;
    } none[] = {
        {"", 0, "empty"},
        {"PERFILE2\0\0", 10, "perf script"},
        {"\177ELF\2\1\1\0", 8, "executable"},
        {"\xff\xfe\0\0", 4, "neither"},
    };
    for (size_t i = 0; i < sizeof none / sizeof none[0]; i++) {
        enum import_format format;
        struct profd_error e = {""};
        cr_expect_eq(import_format_detect((const uint8_t *)none[i].bytes, none[i].n, &format, &e), PROFD_MALFORMED);
        cr_expect(strstr(e.sentence, none[i].word), "%s", e.sentence);
    }
}
