/* Invisible characters are escaped, and the ranges of UTF-8 end where they should. */
#include "proto/utf8.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

static void shows(const char *text, const char *expected)
{
    const size_t n = strlen(text);
    uint8_t *copy = malloc(n); /* so that a sanitizer sees its end */
    char out[512];
    size_t written = 0, taken;

    memcpy(copy, text, n);
    for (size_t at = 0; at < n; at += taken) {
        const size_t size = utf8_escape(copy + at, n - at, out + written, &taken);

        cr_assert(taken > 0 && size <= 4 * taken && size <= UTF8_ESCAPE_SIZE);
        written += size;
    }
    out[written] = 0;
    cr_assert_str_eq(out, expected);
    free(copy);
}

Test(utf8, what_is_not_seen_is_escaped)
{
    shows("plain <T> \xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80", "plain <T> \xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80");
    shows("\n\t\x1b\x7f", "\\x0a\\x09\\x1b\\x7f");
    shows("\x80\xff\xe2\x82", "\\x80\\xff\\xe2\\x82");
    shows("\xc2\x9b\xc2\xad", "\\u{009b}\\u{00ad}");
    shows("a\xe2\x80\x8b"
          "b\xe2\x80\xae"
          "c\xe2\x81\xa6\xef\xbb\xbf",
          "a\\u{200b}b\\u{202e}c\\u{2066}\\u{feff}");
    shows("\xe2\x81\xa0\xe2\x81\xa4\xe2\x80\xa8\xd8\x9c", "\\u{2060}\\u{2064}\\u{2028}\\u{061c}");
    shows("\xf3\xa0\x80\x81\xf3\xa0\x81\xbf\xf0\x9d\x85\xb3",
          "\\u{e0001}\\u{e007f}\\u{1d173}");                 /* tags; musical formatting */
    shows("\xe3\x85\xa4\xef\xb8\x8f", "\\u{3164}\\u{fe0f}"); /* fillers and variation selectors */
}

/* The neighbours of each range are seen. */
Test(utf8, the_ranges_end_where_they_should)
{
    static const uint32_t seen[] = {0x20,   0x7e,   0xa0,   0xac,    0xae,    0x5ff,   0x606,   0x61b,
                                    0x61d,  0x200a, 0x2010, 0x2027,  0x202f,  0x205f,  0x2070,  0xfefe,
                                    0xff00, 0xfffc, 0xfffd, 0x1d172, 0x1d17b, 0xdffff, 0xe1000, 0x10ffff};
    static const uint32_t unseen[] = {0,      0x1f,   0x7f,   0x80,    0x9f,    0xad,    0x600,  0x605,
                                      0x61c,  0x200b, 0x200f, 0x2028,  0x202a,  0x202e,  0x2060, 0x2066,
                                      0x206f, 0xfeff, 0xfff9, 0xe0000, 0xe0001, 0xe007f, 0xe0fff};

    for (size_t i = 0; i < sizeof seen / sizeof *seen; i++) {
        cr_assert_not(utf8_unseen(seen[i]), "U+%04X", seen[i]);
    }
    for (size_t i = 0; i < sizeof unseen / sizeof *unseen; i++) {
        cr_assert(utf8_unseen(unseen[i]), "U+%04X", unseen[i]);
    }
}
