/* Colours of reports. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profctl/profctl.h"

/* A caller with hardly any time of its own has the colour of its callees' time. */
Test(profctl_paint, small_numbers_are_numbers)
{
    static const char REPORT[] = "Total     2.00 seconds\n\t\t\tCall graph\n\n"
                                 "index % time    self  children    called     name\n"
                                 "               <0.01    0.10       1/1           main [1]\n"
                                 "[2]      5.00   <0.01    0.10       1         work [2]\n"
                                 "                0.10   <0.01       1/1           leaf [3]\n"
                                 "               <0.01   <0.01       1/1           nothing [4]\n";
    const struct look look = {.terminal = true, .colour = true, .shades = true, .dots = "..."};
    static struct paint paint;
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    cr_assert_not_null(out);
    paint_init(&paint, &look);
    paint_run(&paint, REPORT, sizeof REPORT - 1, out);
    paint_end(&paint, out);
    cr_assert_eq(fclose(out), 0);
    const char *warm = look_heat(&look, 5);
    cr_assert_neq(warm[0], '\0');
    static const char *const LINES[] = {"               <0.01    0.10       1/1           main [1]\033",
                                        "                0.10   <0.01       1/1           leaf [3]\033"};
    for (size_t i = 0; i < 2; i++) {
        char line[200];
        snprintf(line, sizeof line, "%s%s", warm, LINES[i]);
        cr_assert_not_null(strstr(text, line), "'%s' is not in\n%s", line, text);
    }
    cr_assert_not_null(strstr(text, "\n               <0.01   <0.01       1/1           nothing [4]\n"), "%s", text);
    free(text);
}

/* A name on a terminal of 48 columns, of which it has 24. */
static void cuts(const char *name, const char *expected)
{
    const struct look look = {.terminal = true, .columns = 48, .dots = "…"};
    static struct paint paint;
    char *text = NULL, line[256];
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    cr_assert_not_null(out);
    int n = snprintf(line, sizeof line, "Flat profile:\n\n%23s\n%23s name\n%24s%s\n", "%", "time", "", name);
    paint_init(&paint, &look);
    paint_run(&paint, line, (size_t)n, out);
    paint_end(&paint, out);
    cr_assert_eq(fclose(out), 0);
    snprintf(line, sizeof line, "name\n%24s%s\n", "", expected);
    cr_assert_not_null(strstr(text, line), "'%s' is not in\n%s", expected, text);
    free(text);
}

Test(profctl_paint, a_cut_name_keeps_the_name_of_the_function)
{
    cuts("insert(int, char) [123]", "insert(int, char) [123]");
    cuts("shop::insert(int, char) [12]", "shop::insert(int,…) [12]");
    cuts("shop::inventory::insert(int) [12]", "…ventory::insert(…) [12]");
    cuts("inventory<…>::row<…>::insert() [12]", "…::row<…>::insert() [12]");
    cuts("shop::iterator::operator*() const [12]", "…::operator*() const [12]");
    cuts("std::operator< <char>(char, int)", "std::operator< <char>(…)");
    cuts("f::{lambda(int, char)#1}::operator()(int) const", "…1}::operator()(…) const");
    cuts("(anonymous namespace)::inventory::insert", "(anonymous n…ory::insert");
    cuts("a_long_name_of_a_c_function_without_arguments", "a_long_name_…t_arguments");
}
