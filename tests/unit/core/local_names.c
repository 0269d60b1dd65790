/* Which local names gprof lists: by the name, and by what stands behind it in the string table. */
#include <criterion/criterion.h>
#include <string.h>

#include "core/names.h"

/* The answer for the name at the offset of a table whose size includes its last NUL. */
static bool listed_at(const char *table, size_t size, size_t offset)
{
    uint8_t bits[LOCAL_NAMES_BYTES(256)];
    memset(bits, 0xff, sizeof bits);
    cr_assert(size <= 256);
    local_names_judge(table, size, bits);
    return local_names_listed(table, offset, bits);
}

#define EXPECT(expected, table) cr_expect_eq(listed_at(table, sizeof(table) - 1, 0), expected, "%s", #table)

Test(local_names, by_the_name)
{
    static const char *const good[] = {
        "f",  "f.0", "f.1.2", "f.clone.1",       "f.constprop.0", "f.clone.1.constprop.2",
        "f.", ".1",  "a b",   "f.constprop.0.1", "__gnu_compile", "f.clone.0."};
    static const char *const bad[] = {"",           "f$x",      "$",        "f.part.0",         "f.isra.0",
                                      "f.cold",     "f..1",     "f.clone.", "f.constprop.",     "f.9x",
                                      "f.clone.x",  "f.1.cold", "f.1$",     "__gnu_compiled_c", "___gnu_compiled",
                                      "f.clone..1", "f.llvm.7"};
    for (unsigned i = 0; i < sizeof good / sizeof *good; i++) {
        cr_expect(listed_at(good[i], strlen(good[i]), 0), "%s", good[i]);
    }
    for (unsigned i = 0; i < sizeof bad / sizeof *bad; i++) {
        cr_expect_not(listed_at(bad[i], strlen(bad[i]), 0), "%s", bad[i]);
    }
}

Test(local_names, by_what_stands_behind)
{
    EXPECT(true, "f.1\0");
    EXPECT(true, "f.1\0\0$");
    EXPECT(true, "f.1\0g");
    EXPECT(false, "f.1\0$");
    EXPECT(false, "f.1\0g$");
    EXPECT(false, "f.constprop.0\0g.part.0");
    EXPECT(false, "f.clone.1\0g.cold");
    EXPECT(true, "f\0g.cold"); /* no digits, no reading on */
    EXPECT(false, "f.1\0g.2\0h.3\0$");
    EXPECT(true, "f.1\0g.2\0h\0$");
    EXPECT(false, "f.\0$");
    EXPECT(true, "f.1\0.constprop.1\0\0$");
    EXPECT(false, "f.1\0.constprop.");
    EXPECT(true, "f.1\0"
                 "2\0$"); /* digits without a dot are a plain name */
    EXPECT(false, "f.1\0__gnu_compiled.x");
    EXPECT(true, "f.1\0__gnu_compiled");
}

/* A table of symbols may let names begin anywhere. */
Test(local_names, suffixes_of_one_string)
{
    static const char table[] = "a.b.constprop.1\0$";
    for (size_t i = 0; i < 4; i++) {
        cr_expect_eq(listed_at(table, sizeof table - 1, i), false, "%zu", i);
    }
    cr_expect_eq(listed_at("a.b.constprop.1", 15, 2), true);
    cr_expect_eq(listed_at("a.b.constprop.1", 15, 1), false);
    cr_expect_eq(listed_at("a.b.constprop.1", 15, 4), true, "constprop.1");
}
