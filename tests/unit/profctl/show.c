/* Amounts in the tables of profctl. */
#include <criterion/criterion.h>

#include "profctl/profctl_show.h"

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
