/* All suffixes of a string table judged at once, against reading each of them from its first byte on. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "core/names.h"

#define SIZE 60

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Reads a name, and, behind digits that reach its NUL, the strings that follow. */
static bool read_name(const char *table, size_t size, size_t at)
{
    while (at < size && table[at] != '\0') {
        if (table[at] == '$') {
            return false;
        }
        if (table[at] != '.') {
            at++;
            continue;
        }
        size_t begin = at + 1;
        if (strncmp(&table[at], ".clone.", 7) == 0 && table[at + 7] != '\0') {
            begin = at + 7;
        } else if (strncmp(&table[at], ".constprop.", 11) == 0 && table[at + 11] != '\0') {
            begin = at + 11;
        }
        at = begin;
        while (is_digit(table[at])) {
            at++;
        }
        if (table[at] == '\0') {
            at++;
        } else if (table[at] != '.' || at == begin) {
            return false;
        }
    }
    return true;
}

Test(local_names, equal_reading_from_the_first_byte)
{
    static const char *const pieces[] = {
        "", "", "", ".", "1", "23", "f", "$", ".clone.", ".constprop.", ".clone", "x.4", ".constprop.0"};
    srand(7);
    unsigned listed = 0, all = 0;
    for (unsigned round = 0; round < 20000; round++) {
        char table[SIZE + 1] = "";
        size_t size = 0;
        while (size + 13 < SIZE) {
            const char *piece = pieces[(unsigned)rand() % (sizeof pieces / sizeof *pieces)];
            size_t n = strlen(piece) + (piece[0] == '\0');
            memcpy(&table[size], piece, n);
            size += n;
        }
        uint8_t bits[LOCAL_NAMES_BYTES(SIZE)];
        local_names_judge(table, size, bits);
        for (size_t i = 0; i < size; i++) {
            bool expected = table[i] != '\0' && read_name(table, size, i);
            cr_assert_eq(local_names_listed(table, i, bits), expected, "round %u, byte %zu", round, i);
            all++;
            listed += expected;
        }
    }
    cr_expect(listed > all / 10 && listed < all - all / 10, "%u of %u", listed, all);
}
