/* The text of the cycle example, byte for byte: the numbers are those of gprof's manual, as true mode says them. */
#include <criterion/criterion.h>
#include <stdio.h>

#include "tests/unit/render/cycle.h"

static const char HEADING[] =
    "Build     " CYCLE_ID " /srv/bin/cycle\n"
    "From      3 uploads, 2 processes started, 1 machine, uids 0, 1000; 2026-11-21T16:00:00Z to 2026-11-21T16:00:01Z\n"
    "Exact     no: threads-unknown, caller-bucket (ticks are exact, calls are not)\n"
    "          threads-unknown  a gmon.out does not say whether calls of several threads were "
    "lost\n"
    "          caller-bucket    a gmon.out rounds callers down to 16 bytes: one may be taken "
    "for the function before it\n"
    "Total     1.93 seconds in 193 ticks at 100 a second, 16 calls\n";

static const char FLAT[] = "\nFlat profile:\n\n"
                           "  %   cumulative   self               self      total\n"
                           " time   seconds   seconds    calls  per call  per call  name\n"
                           " 52.85      1.02     1.02        3     340ms     340ms  b\n"
                           " 38.86      1.77     0.75        3     250ms     250ms  a\n"
                           "  8.29      1.93     0.16        1     160ms      1.9s  main\n"
                           "  0.00      1.93     0.00        6                      c\n"
                           "  0.00      1.93     0.00                               start\n";

static const char GRAPH[] = "\t\t\tCall graph\n\n"
                            "                                          calls/call\n"
                            "index % time    self  children    called             name\n"
                            "                0.16    1.77       1/1               start [2]\n"
                            "[1]   100.00    0.16    1.77       1             main [1]\n"
                            "                1.77    0.00       1/1             1 a <cycle 1> [5]\n"
                            "-----------------------------------------------\n"
                            "                                                     <spontaneous>\n"
                            "[2]   100.00    0.00    1.93                     start [2]\n"
                            "                0.16    1.77       1/1               main [1]\n"
                            "-----------------------------------------------\n"
                            "                1.77    0.00       1/1             1 main [1]\n"
                            "[3]    91.71    1.77    0.00       1+5           <cycle 1 as a whole> [3]\n"
                            "                1.02    0.00       3                 b <cycle 1> [4]\n"
                            "                0.75    0.00       2                 a <cycle 1> [5]\n"
                            "                0.00    0.00       6/6             6 c [6]\n"
                            "-----------------------------------------------\n"
                            "                                   3               1 a <cycle 1> [5]\n"
                            "[4]    52.85    1.02    0.00       0+3           b <cycle 1> [4]\n"
                            "                0.00    0.00       3/6             1 c [6]\n"
                            "                                   2          0.6667 a <cycle 1> [5]\n"
                            "-----------------------------------------------\n"
                            "                                   2          0.6667 b <cycle 1> [4]\n"
                            "                1.77    0.00       1/1             1 main [1]\n"
                            "[5]    38.86    0.75    0.00       1+2           a <cycle 1> [5]\n"
                            "                0.00    0.00       3/6             1 c [6]\n"
                            "                                   3               1 b <cycle 1> [4]\n"
                            "-----------------------------------------------\n"
                            "                0.00    0.00       3/6             1 a <cycle 1> [5]\n"
                            "                0.00    0.00       3/6             1 b <cycle 1> [4]\n"
                            "[6]     0.00    0.00    0.00       6             c [6]\n"
                            "-----------------------------------------------\n"
                            "\f\n";

static void check(enum render_view view, const char *expected)
{
    struct arena *a = arena_new(0);
    struct buffer out;
    struct profd_error e;
    struct render_input in = cycle_input();
    in.show.view = view;
    buffer_init(&out, 1 << 20);
    cr_assert_eq(render_find("text")->render(&in, a, &out, &e), PROFD_OK);
    buffer_add_char(&out, '\0');
    cr_assert(!out.failed);
    size_t same = 0;
    while (out.data[same] != '\0' && out.data[same] == expected[same]) {
        same++;
    }
    cr_assert_str_eq(out.data, expected, "differs at byte %zu: is\n%.200s\nnot\n%.200s", same, out.data + same,
                     expected + same);
    buffer_done(&out);
    arena_free(a);
}

Test(render_text, cycle_example_whole)
{
    static char expected[sizeof HEADING + sizeof FLAT + sizeof GRAPH + 4];
    snprintf(expected, sizeof expected, "%s%s\f\n%s", HEADING, FLAT, GRAPH);
    check(RENDER_VIEW_BOTH, expected);
}

Test(render_text, cycle_example_parts)
{
    static char expected[sizeof HEADING + sizeof FLAT + sizeof GRAPH + 4];
    snprintf(expected, sizeof expected, "%s%s", HEADING, FLAT);
    check(RENDER_VIEW_FLAT, expected);
    snprintf(expected, sizeof expected, "%s\n%s", HEADING, GRAPH);
    check(RENDER_VIEW_GRAPH, expected);
}
