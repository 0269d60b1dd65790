/* Which symbols count, which of several names an address has, and who owns an address. */
#include "compat/compat_run.h"

#include <criterion/criterion.h>
#include <string.h>

#include "tests/unit/compat/bed.h"

static struct compat_symbols choose(struct bed *b)
{
    struct compat_symbols s = {0};
    cr_assert_eq(compat_symbols_choose(&b->object, &(struct compat_options){0}, b->arena, &s, &b->error), PROFD_OK,
                 "%s", b->error.sentence);
    return s;
}

/* The name kept when these two stand at one address, in this order. */
static void expect_kept(const char *kept, const char *a, enum object_bind a_bind, enum object_type a_type,
                        const char *c, enum object_bind c_bind, enum object_type c_type)
{
    struct bed *b = bed_new(0x1000, 0x2000);
    bed_symbol(b, a, 0x1000, a_bind, a_type);
    bed_symbol(b, c, 0x1000, c_bind, c_type);
    struct compat_symbols s = choose(b);
    cr_expect_eq(s.count, 1);
    cr_expect_str_eq(s.raw[0], kept);
    bed_free(b);
}

Test(compat_symbols, kinds)
{
    struct bed *b = bed_new(0x1000, 0x2000);
    bed_symbol(b, "ifunc", 0x1010, OBJECT_BIND_GLOBAL, OBJECT_TYPE_IFUNC);
    bed_symbol(b, "unique", 0x1020, OBJECT_BIND_UNIQUE, OBJECT_TYPE_FUNCTION);
    bed_symbol(b, "weak_data", 0x1030, OBJECT_BIND_WEAK, OBJECT_TYPE_DATA);
    bed_symbol(b, "data", 0x1040, OBJECT_BIND_GLOBAL, OBJECT_TYPE_DATA)->flags = 0;
    bed_symbol(b, "dynamic", 0x1050, OBJECT_BIND_GLOBAL, OBJECT_TYPE_FUNCTION)->flags |= OBJECT_SYMBOL_DYNAMIC;
    bed_symbol(b, "debug", 0x1060, OBJECT_BIND_GLOBAL, OBJECT_TYPE_FUNCTION)->flags |= OBJECT_SYMBOL_DEBUG;
    bed_symbol(b, "local.cold", 0x1070, OBJECT_BIND_LOCAL, OBJECT_TYPE_FUNCTION)->flags |= OBJECT_SYMBOL_UNLISTED;
    cr_expect_eq(bed_status(b, &(struct compat_options){.brief = true}), PROFD_REFUSED);
    cr_expect(strstr(b->error.sentence, "no symbols") != NULL, "%s", b->error.sentence);
    bed_symbol(b, "data_start", 0x3000, OBJECT_BIND_WEAK, OBJECT_TYPE_NONE)->flags = 0;
    bed_symbol(b, "global.cold$x", 0x1080, OBJECT_BIND_GLOBAL, OBJECT_TYPE_FUNCTION);
    bed_symbol(b, "label", 0x1090, OBJECT_BIND_GLOBAL, OBJECT_TYPE_NONE);
    bed_symbol(b, "jump_table", 0x10a0, OBJECT_BIND_GLOBAL, OBJECT_TYPE_DATA);
    struct compat_symbols s = choose(b);
    cr_assert_eq(s.count, 4);
    cr_expect_str_eq(s.raw[0], "global.cold$x");
    cr_expect_eq(s.flags[0], COMPAT_SYMBOL_FUNCTION);
    cr_expect_str_eq(s.raw[1], "label");
    cr_expect_eq(s.flags[1], 0);
    cr_expect_str_eq(s.raw[2], "jump_table");
    cr_expect_str_eq(s.raw[3], "data_start");
    bed_free(b);
}

Test(compat_symbols, aliases)
{
    const enum object_bind L = OBJECT_BIND_LOCAL, G = OBJECT_BIND_GLOBAL, W = OBJECT_BIND_WEAK;
    const enum object_type F = OBJECT_TYPE_FUNCTION, N = OBJECT_TYPE_NONE;
    expect_kept("second", "first", L, F, "second", G, F);
    expect_kept("first", "first", G, F, "second", L, F);
    expect_kept("second", "first", L, F, "second", G, N); /* global beats function */
    expect_kept("second", "first", G, N, "second", G, F);
    expect_kept("second", "_first", G, F, "second", G, F);
    expect_kept("_second", "__first", G, F, "_second", G, F);
    expect_kept("_first", "_first", G, F, "__second", G, F);
    expect_kept("first", "first", G, F, "second", G, F); /* equals: the first of the table */
    expect_kept("zzz", "zzz", W, F, "aaa", G, F);        /* weak counts as global */
    expect_kept("first", "first", L, F, "second", L, N);
}

Test(compat_symbols, owners)
{
    struct bed *b = bed_new(0x1000, 0x1100);
    bed_function(b, "b", 0x1040);
    bed_function(b, "a", 0x1010);
    bed_function(b, "c", 0x1080);
    struct compat_symbols s = choose(b);
    cr_expect_eq(compat_symbols_find(&s, 0x100f), COMPAT_NONE);
    cr_expect_eq(compat_symbols_find(&s, 0x1010), 0);
    cr_expect_eq(compat_symbols_find(&s, 0x103f), 0);
    cr_expect_eq(compat_symbols_find(&s, 0x1040), 1);
    cr_expect_eq(compat_symbols_find(&s, 0x10ff), 2);
    cr_expect_eq(compat_symbols_find(&s, 0x1100), COMPAT_NONE); /* behind .text */
    cr_expect_eq(compat_symbols_find(&s, UINT64_MAX), COMPAT_NONE);
    bed_free(b);

    b = bed_new(0x1000, 0x1100); /* a last symbol behind .text owns nothing, not even its address */
    bed_function(b, "a", 0x1000);
    bed_function(b, "late", 0x2000);
    s = choose(b);
    cr_expect_eq(compat_symbols_find(&s, 0x1fff), 0);
    cr_expect_eq(compat_symbols_find(&s, 0x2000), COMPAT_NONE);
    bed_free(b);
}

Test(compat_symbols, no_text)
{
    struct bed *b = bed_new(0x1000, 0x1100);
    bed_function(b, "a", 0x1000);
    b->text.kind = OBJECT_RANGE_EXECUTABLE;
    cr_expect_eq(bed_status(b, &(struct compat_options){.brief = true}), PROFD_REFUSED);
    cr_expect(strstr(b->error.sentence, ".text") != NULL, "%s", b->error.sentence);
    bed_free(b);
}
