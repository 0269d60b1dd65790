/* The filter in front of terminals. */
#include <criterion/criterion.h>
#include <string.h>

#include "profctl/profctl.h"

static void filters(const char *in, const char *expect)
{
    size_t n = strlen(in);
    for (size_t cut = 1; cut <= n; cut++) {
        struct terminal_filter f = {.held_count = 0};
        char out[512];
        size_t size = terminal_filter_run(&f, in, cut, out);
        if (cut < n) {
            size += terminal_filter_run(&f, in + cut, n - cut, out + size);
        }
        size += terminal_filter_run(&f, NULL, 0, out + size);
        out[size] = '\0';
        cr_assert_str_eq(out, expect, "cut at %zu", cut);
    }
}

Test(profctl_terminal, terminals_get_no_controls)
{
    filters("plain text\n\twith lines", "plain text\n\twith lines");
    filters("a\033]0;title\007b\rc\177", "a\\x1b]0;title\\x07b\\x0dc\\x7f");
    filters("caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80", "caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80");
    filters("c1 \xc2\x9b"
            "31m",
            "c1 \\u{009b}31m");
    filters("bidi \xe2\x80\xae \xe2\x81\xa6 \xe2\x80\x8f \xd8\x9c.", "bidi \\u{202e} \\u{2066} \\u{200f} \\u{061c}.");
    filters("bad \x80 \xff \xe2\x82", "bad \\x80 \\xff \\xe2\\x82");
    filters("cut \xe2\x1b[31m", "cut \\xe2\\x1b[31m");
}
