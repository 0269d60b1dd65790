/* Static functions whose files have other directories in other builds. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "query/query_internal.h"

enum { MOST = 80 };

static struct report report_of(const char *const *files, uint32_t n, struct report_function *functions)
{
    for (uint32_t i = 0; i < n; i++) {
        functions[i] = (struct report_function){.kind = REPORT_FUNCTION, .name = "hash", .file = files[i]};
    }
    return (struct report){.functions = functions, .function_count = n};
}

static double first_trend[2]; /* of the first row that remained */

/* Rows of one call each that remain of a report for each directory, all of the object. */
static uint32_t merge(const char *const reports[][3], uint32_t count, struct joined_row *rows,
                      const char *const *object)
{
    struct arena *a = arena_new(0), *scratch = arena_new(0);
    struct joined_files x;
    struct report_function functions[3];
    uint32_t n = 0;
    joined_files_init(&x, a);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t files = 0;
        for (; files < 3 && reports[i][files] != NULL; files++) {
            double *trend = ARENA_ARRAY(a, 2, double);
            trend[i % 2] = 1;
            rows[n++] = (struct joined_row){"hash", reports[i][files], object[i], 1, 2, 1, 0, 1, 1, trend, 0};
        }
        struct report r = report_of(reports[i], files, functions);
        joined_files_add(&x, &r, scratch);
    }
    x.steps = 2;
    joined_files_merge(&x, rows, &n);
    first_trend[0] = n > 0 ? rows[0].trend[0] : 0;
    first_trend[1] = n > 0 ? rows[0].trend[1] : 0;
    arena_free(scratch);
    arena_free(a);
    return n;
}

Test(joined_files, builds_in_other_directories_have_the_same_functions)
{
    static const char *const reports[][3] = {{"/b/shop-1/src/main.c", "/b/shop-1/lib/main.c"},
                                             {"/b/shop-2/src/main.c", "/b/shop-2/lib/main.c"},
                                             {"src/main.c"}};
    static const char *const same[] = {"shop", "shop", "shop"}, *const others[] = {"shop", "tool", "demo"};
    struct joined_row rows[9];
    cr_assert_eq(merge(reports, 3, rows, same), 2);
    cr_assert_str_eq(rows[0].file, "src/main.c");
    cr_assert(rows[0].calls == 3 && rows[0].programs == 3 && rows[0].builds == 3 && rows[0].total == 6);
    cr_assert(first_trend[0] == 2 && first_trend[1] == 1, "steps are added up");
    cr_assert_str_eq(rows[1].file, "lib/main.c");
    cr_assert_eq(rows[1].calls, 2);
    cr_assert_eq(merge(reports, 3, rows, others), 5, "other programs have other functions");
    cr_assert_str_eq(rows[0].file, "/b/shop-1/src/main.c");
}

Test(joined_files, functions_of_one_report_stay_apart)
{
    static const char *const reports[][3] = {{"/a/x/main.c", "/b/x/main.c", "main.c"}, {"/c/x/main.c"}, {"xmain.c"}};
    static const char *const object[] = {"shop", "shop", "shop"};
    struct joined_row rows[9];
    cr_assert_eq(merge(reports, 3, rows, object), 5);
}

Test(joined_files, too_many_files_of_one_name_are_not_compared)
{
    struct arena *a = arena_new(0);
    static char texts[MOST][2][24];
    struct report_function functions[MOST];
    struct joined_row rows[2 * MOST];
    struct joined_files x;
    joined_files_init(&x, a);
    for (uint32_t most = 64, side; most <= MOST; most += MOST - 64) {
        for (side = 0; side < 2; side++) {
            const char *files[MOST];
            for (uint32_t i = 0; i < most; i++) {
                snprintf(texts[i][side], sizeof texts[i][side], "/%u/%u.c", side, i);
                files[i] = texts[i][side];
                rows[side * most + i] = (struct joined_row){.name = "hash", .file = files[i], .object = "shop"};
            }
            struct report r = report_of(files, most, functions);
            joined_files_add(&x, &r, a);
        }
        uint32_t n = 2 * most;
        joined_files_merge(&x, rows, &n);
        cr_assert_eq(n, most == 64 ? 64 : 2 * most);
    }
    arena_free(a);
}
