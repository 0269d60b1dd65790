/* Amounts in the tables of profctl. */
#include <criterion/criterion.h>

#include "profctl/profctl.h"

static void shows(double value, const char *expected)
{
    char text[40];
    show_amount(value, text, sizeof text);
    cr_assert_str_eq(text, expected);
}

Test(profctl_show, nothing_above_0_reads_0)
{
    shows(0, "0.00");
    shows(1e-300, "<0.01");
    shows(0.0001, "<0.01");
    shows(0.004999, "<0.01");
    shows(0.005, "0.01");
    shows(12.345, "12.35");
    shows(1e12, "1000000000000.00");
}

static void percents(double value, uint64_t ticks, const char *expected)
{
    char text[40];
    show_percent(value, ticks, text, sizeof text);
    cr_assert_str_eq(text, expected);
}

Test(profctl_show, a_percentage_has_the_digits_of_its_ticks)
{
    percents(80.94, 1000, "80.94%");
    percents(80.94, 999, "81%");
    percents(100, 3, "100%");
    percents(9.96, 3, "10%");
    percents(9.94, 3, "9.9%");
    percents(0.257, 3, "0.26%");
    percents(0.0001, 3, "<0.01%");
    percents(0, 0, "0.00%");
}

static void changes(double value, const char *expected)
{
    char text[40];
    show_change(value, text, sizeof text);
    cr_assert_str_eq(text, expected, "%g is %s, not %s", value, text, expected);
}

Test(profctl_show, a_change_that_reads_0_has_no_sign)
{
    changes(0, "0.00%");
    changes(-0.0, "0.00%");
    changes(-0.00004, "0.00%");
    changes(0.00004, "0.00%");
    changes(-0.00006, "-0.01%");
    changes(0.00006, "+0.01%");
    changes(0.0251, "+2.51%");
    changes(0.123, "+12.3%");
    changes(-0.5, "-50.0%");
    changes(-1, "-100.0%");
    changes(9, "10x");
    changes(159437, "159000x");
}

Test(profctl_show, numbers_have_no_exponents)
{
    char text[40];
    static const struct {
        double value;
        int digits;
        const char *rounded;
    } ROUNDED[] = {{7.64, 2, "7.6"}, {521, 2, "520"}, {9.96e5, 2, "1000000"}, {12.34, 3, "12.3"}};
    static const struct {
        double part;
        const char *shown;
    } SHARES[] = {{0, "0%"}, {4.5e-7, "<0.001%"}, {1e-5, "0.001%"}, {0.0474, "4.74%"}, {1, "100%"}};
    for (size_t i = 0; i < sizeof ROUNDED / sizeof *ROUNDED; i++) {
        show_rounded(ROUNDED[i].value, ROUNDED[i].digits, text, sizeof text);
        cr_expect_str_eq(text, ROUNDED[i].rounded);
    }
    for (size_t i = 0; i < sizeof SHARES / sizeof *SHARES; i++) {
        show_share(SHARES[i].part, text, sizeof text);
        cr_expect_str_eq(text, SHARES[i].shown);
    }
}
