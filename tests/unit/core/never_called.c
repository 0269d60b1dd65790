/* Which functions the list of those that were never called has, and how copies count. */
#include "core/never_called.h"

#include "tests/unit/core/fixture.h"

#define ID "00112233445566778899aabbccddeeff00112233"

static struct fixture fixture;
static struct upload upload;

/* main calls used and sort.part.0. Everything but plain calls mcount, at its first byte. */
static struct never_called example(struct arena *a, const char *build_id)
{
    static const char *const NAMES[] = {"_start",     "main",        "used",        "dead",
                                        "sort",       "sort.part.0", "big",         "big.constprop.0",
                                        "big.isra.1", "cut.part.0",  "tiny.isra.0", "plain"},
                             *const IDS[] = {ID};
    static uint32_t inlined[2];
    static const struct object *objects[1];
    static struct report_request request;
    struct never_called never;
    struct report *r;
    fixture_init(&fixture, ID);
    for (uint32_t i = 0; i < 12; i++) {
        fixture_function(&fixture, NAMES[i], 0x1000 + i * 0x100, 0x10 * (i + 1));
        if (i < 11) {
            fixture_arc(&fixture, 0x1000 + i * 0x100, 0, "mcount");
        }
    }
    fixture_range(&fixture, OBJECT_RANGE_TEXT, 0x1000, 0x2000);
    upload_init(&upload);
    upload_histogram(&upload, 0, 0x1000, 0x2000, 0x1000 / 4, 100);
    upload_bin(&upload, 0x100 / 4, 1);
    upload_arc(&upload, 0, 0x1108, 0, 0x1200, 3);
    upload_arc(&upload, 0, 0x110c, 0, 0x1500, 1);
    inlined[0] = fixture_name(&fixture, "tin");
    inlined[1] = fixture_name(&fixture, "tiny");
    fixture.object.inlined = inlined;
    fixture.object.inlined_count = 2;
    fixture.object.knows_inlined = true;
    objects[0] = &fixture.object;
    request = (struct report_request){.profile = upload_profile(&upload, a, IDS, 1), .objects = objects};
    cr_assert_eq(report_build(a, &request, &r, NULL), PROFD_OK);
    never_called_make(a, r, build_id, objects[0], &never);
    return never;
}

static void row(const struct never_row *x, const char *name, uint64_t bytes, uint32_t copies, bool elsewhere)
{
    cr_assert_str_eq(x->function->raw, name);
    cr_assert_eq(x->bytes, bytes, "%s: %llu bytes", name, (unsigned long long)x->bytes);
    cr_assert_eq(x->copies, copies);
    cr_assert_eq(x->entered_elsewhere, elsewhere);
}

Test(never_called, copies_are_one_function)
{
    struct arena *a = arena_new(0);
    struct never_called never = example(a, ID);
    cr_assert_eq(never.count, 5, "no start-up code, and nothing that does not count: %u", never.count);
    row(&never.rows[0], "big.isra.1", 0x70 + 0x80 + 0x90, 3, false);
    row(&never.rows[1], "dead", 0x40, 1, false);
    row(&never.rows[2], "tiny.isra.0", 0xb0, 1, false);
    row(&never.rows[3], "cut.part.0", 0xa0, 1, false);
    row(&never.rows[4], "sort", 0x50, 1, true);
    cr_assert(never.rows[2].inlined && never.rows[3].inlined, "by debug information, and by what is left of it");
    cr_assert(!never.rows[0].inlined && !never.rows[1].inlined && !never.rows[4].inlined && never.knows_inlined);
    cr_assert_eq(never.functions, 2);
    cr_assert_eq(never.bytes, 0x70 + 0x80 + 0x90 + 0x40);
    cr_assert_eq(never.copy_bytes, 0x50 + 0xb0 + 0xa0);
    cr_assert_eq(never.counted, 11);
    cr_assert(example(a, "another").count == 0 && example(a, "another").counted == 0, "of one build only");
    arena_free(a);
}

/* Debug information calls all kinds of a constructor C4, and symbols are C1 and C2. */
Test(never_called, constructors_are_inlined_by_their_common_name)
{
    static const char *const NAMES[] = {"_ZN3C4EC4IiEET_", "_ZN4TypeC4EPK5Token", "_ZN4TypeD4Ev"};
    static const struct {
        const char *name;
        bool inlined;
    } ASKED[] = {{"_ZN4TypeC1EPK5Token", true},
                 {"_ZN4TypeC2EPK5Token", true},
                 {"_ZN4TypeC4EPK5Token", true},
                 {"_ZN4TypeD0Ev", true},
                 {"_ZN4TypeD2Ev", true},
                 {"_ZN3C4EC2IiEET_", true},
                 {"_ZN4TypeC2EPK5Tokens", false},
                 {"_ZN4TypeC3EPK5Token", false},
                 {"_ZN4TypeC1Ev", false},
                 {"4TypeD1Ev", false},
                 {"D1", false}};
    uint32_t inlined[3];
    fixture_init(&fixture, ID);
    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++) {
        inlined[i] = fixture_name(&fixture, NAMES[i]);
    }
    fixture.object.inlined = inlined;
    fixture.object.inlined_count = 3;
    for (size_t i = 0; i < sizeof ASKED / sizeof *ASKED; i++) {
        cr_expect_eq(object_has_inlined(&fixture.object, ASKED[i].name, strlen(ASKED[i].name)), ASKED[i].inlined, "%s",
                     ASKED[i].name);
    }
}
