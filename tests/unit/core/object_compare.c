/* Which object of a build adds nothing to another. */
#include <criterion/criterion.h>

#include "core/object.h"
#include "tests/unit/core/fixture.h"

static struct fixture one, other;

static void fill(struct fixture *f, const char *before)
{
    fixture_init(f, "0123456789abcdef");
    (void)fixture_name(f, before); /* so that offsets differ */
    fixture_symbol(f, "f", 0x10, 8, OBJECT_BIND_GLOBAL, OBJECT_TYPE_FUNCTION);
    fixture_symbol(f, "g", 0x18, 8, OBJECT_BIND_LOCAL, OBJECT_TYPE_FUNCTION);
    fixture_range(f, OBJECT_RANGE_TEXT, 0x10, 0x20);
    fixture_range(f, OBJECT_RANGE_SEGMENT, 0x10, 0x20);
    fixture_plt(f, 0x20, 16, "puts");
    fixture_arc(f, 0x12, 0x18, NULL);
    fixture_arc(f, 0x14, 0, "puts");
}

static void setup(void)
{
    fill(&one, "a.c");
    fill(&other, "longer/name.c");
}

static bool adds(const struct fixture *f, const struct fixture *to)
{
    struct arena *a = arena_new(0);
    bool result = false;
    cr_assert_eq(object_compare_content(&f->object, &to->object, a, &result, NULL), PROFD_OK);
    arena_free(a);
    return result;
}

Test(object_compare, what_a_copy_lacks, .init = setup)
{
    cr_expect(!adds(&one, &other) && !adds(&other, &one));
    other.object.line_count = 5;
    cr_expect(!adds(&one, &other) && adds(&other, &one), "lines");
    setup();
    one.object.symbol_count = 1;
    cr_expect(!adds(&one, &other) && adds(&other, &one), "a local symbol");
    one.object.digest_count = 1;
    cr_expect(adds(&one, &other) && adds(&other, &one), "each has what the other lacks");
    setup();
    one.symbols[1].size = 4;
    cr_expect(adds(&one, &other), "another symbol");
    setup();
    one.ranges[1].high++;
    cr_expect(adds(&one, &other) && adds(&other, &one), "other code under one id");
    setup();
    one.object.symbol_count = other.object.symbol_count = 0;
    cr_expect(!adds(&one, &other), "no symbol at all");
}
