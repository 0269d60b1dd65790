/* Accept-Encoding is parsed as RFC 9110 says: quality values, wildcards, refusals; any bytes are a list or an error. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "core/coding.h"

static struct coding_wish wish_of(const char *field)
{
    struct coding_wish w = {{0}};
    cr_assert(coding_wish_read(&w, field, strlen(field)), "'%s'", field);
    return w;
}

Test(core_coding, what_is_wanted_is_chosen)
{
    static const struct {
        const char *field;
        enum coding coding;
        bool only;
    } rows[] = {
        {"", CODING_IDENTITY, false},
        {"gzip", CODING_GZIP, false},
        {"x-GZIP", CODING_GZIP, false},
        {"zstd", CODING_ZSTD, false},
        {"gzip, zstd", CODING_ZSTD, false},
        {"zstd;q=0.9, gzip", CODING_GZIP, false},
        {"gzip;q=0.001", CODING_GZIP, false},
        {"gzip;q=0", CODING_IDENTITY, false},
        {"gzip;q=0.000, zstd;q=0", CODING_IDENTITY, false},
        {"gzip ; q=0.5 ,\tzstd;Q=0.4", CODING_GZIP, false},
        {"br, deflate, compress", CODING_IDENTITY, false},
        {"gzip, deflate, br, zstd", CODING_ZSTD, false},
        {"*", CODING_ZSTD, false},
        {"*;q=0.1", CODING_ZSTD, false},
        {"gzip, *;q=0", CODING_GZIP, true},
        {"*;q=0, identity", CODING_IDENTITY, false},
        {"zstd;q=0, *", CODING_GZIP, false},
        {"identity", CODING_IDENTITY, false},
        {"identity, gzip", CODING_GZIP, false},
        {"identity, gzip;q=0.9", CODING_IDENTITY, false},
        {"identity;q=0.5, gzip;q=0.5", CODING_GZIP, false},
        {"identity;q=0, gzip", CODING_GZIP, true},
        {"identity;q=0, *", CODING_ZSTD, true},
        {"identity;q=0", CODING_NONE, true},
        {"identity;q=0, br", CODING_NONE, true},
        {"*;q=0", CODING_NONE, true},
        {"gzip;q=0, identity;q=0.0", CODING_NONE, true},
        {", ,gzip,,", CODING_GZIP, false},
        {"gzip;q=1.000", CODING_GZIP, false},
        {"gzip;q=1.", CODING_GZIP, false},
        {"gzip, gzip;q=0", CODING_IDENTITY, false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct coding_wish w = wish_of(rows[i].field);
        cr_assert_eq(coding_choose(&w), rows[i].coding, "'%s' chose %d", rows[i].field, (int)coding_choose(&w));
        cr_assert_eq(coding_refuses_identity(&w), rows[i].only, "'%s'", rows[i].field);
    }
    struct coding_wish nothing = {{0}};
    cr_assert_eq(coding_choose(&nothing), CODING_IDENTITY);
}

Test(core_coding, several_fields_are_one_list)
{
    struct coding_wish w = wish_of("identity;q=0");
    cr_assert(coding_wish_read(&w, "gzip;q=0.3", 10));
    cr_assert_eq(coding_choose(&w), CODING_GZIP);
    cr_assert(coding_refuses_identity(&w));
}

Test(core_coding, what_is_no_list_is_refused)
{
    static const char *const fields[] = {
        "gzip;q=2",   "gzip;q=1.001", "gzip;q=0.1234", "gzip;q=-1",        "gzip;q=",   "gzip;q",
        "gzip;",      "gzip;x=1",     "gzip zstd",     "gzip;q=0.5;q=0.5", "gzip/zstd", "\"gzip\"",
        "gzip;q=nan", "gzip;q=.5",    ";q=1",          "gzip; q = 1",      "(gzip)",    "gzip;q=01"};
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        struct coding_wish w = {{0}};
        cr_assert_not(coding_wish_read(&w, fields[i], strlen(fields[i])), "'%s'", fields[i]);
    }
}

/* Whatever the bytes: an answer, and never one that was refused. */
Test(core_coding, any_bytes_are_a_list_or_not)
{
    static const char pieces[][9] = {"gzip", "zstd", "identity", "*", ";q=", "0",  "1", ".",
                                     "5",    ",",    " ",        ";", "=",   "\t", "x", "\xff"};
    unsigned state = 1;
    unsigned read = 0;
    for (unsigned n = 0; n < 200000; n++) {
        char text[64] = "";
        size_t size = 0;
        for (unsigned k = 0; k < 7; k++) {
            state = state * 1103515245u + 12345u;
            const char *piece = pieces[state >> 16 & 15];
            memcpy(text + size, piece, strlen(piece));
            size += strlen(piece);
        }
        struct coding_wish w = {{0}};
        if (!coding_wish_read(&w, text, size)) {
            continue;
        }
        read++;
        enum coding c = coding_choose(&w);
        cr_assert(c <= CODING_NONE);
        if (c != CODING_NONE) {
            short own = w.thousandths[c], star = w.thousandths[CODING_COUNT];
            cr_assert_neq(own > 0 ? own : star, 1, "'%.*s'", (int)size, text);
        }
    }
    cr_assert_gt(read, 1000);
}
