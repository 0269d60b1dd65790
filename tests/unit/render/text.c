/* Reports as text: columns, headings, cuts, and names that could move the cursor. */
#include <criterion/criterion.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "render/render_internal.h"
#include "tests/unit/render/cycle.h"

static char *render(const struct render_input *in)
{
    struct arena *a = arena_new(0);
    struct buffer out;
    struct profd_error e;
    buffer_init(&out, 64 << 20);
    cr_assert_eq(render_find("text")->render(in, a, &out, &e), PROFD_OK);
    buffer_add_char(&out, '\0');
    cr_assert(!out.failed);
    arena_free(a);
    return out.data;
}

static void contains(const char *text, const char *part)
{
    cr_assert_not_null(strstr(text, part), "'%s' is not in\n%s", part, text);
}

Test(render_text, names_that_would_move_the_cursor_are_spelt_out)
{
    static const char *const CASES[][2] = {
        {"plain", "plain"},
        {"a\x1b[2Jb", "a\\x1b[2Jb"},
        {"tab\there\n", "tab\\x09here\\x0a"},
        {"\x7f", "\\x7f"},
        {"\xc2\x9b"
         "1m",
         "\\u{009b}1m"},
        {"\xe2\x80\xae"
         "evil",
         "\\u{202e}evil"},
        {"\xe2\x81\xa6x", "\\u{2066}x"},
        {"\xff\xfe", "\\xff\\xfe"},
        {"na\xc3\xafve<T>", "na\xc3\xafve<T>"},
        {"", ""},
    };
    struct arena *a = arena_new(0);
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        cr_assert_str_eq(name_make_safe(a, CASES[i][0]), CASES[i][1]);
    }
    arena_free(a);
}

/* Six functions of one name: told apart by file, by build, and at last by address. */
Test(render_text, equal_names_are_told_apart)
{
    struct report r = cycle_report;
    struct report_function f[6] = {0};
    static const char *const BUILDS[] = {CYCLE_ID, "ab12"};
    static const char *const NAMES[] = {"/srv/bin/cycle", "/lib/libb.so"};
    static const char *const FILES[] = {"src/left.c", "src/right.c", "src/right.c", "", "", ""};
    struct name_list names;
    for (uint32_t i = 0; i < 6; i++) {
        f[i] =
            (struct report_function){.index = i + 1, NAMED("twin"), .build = i < 4 ? 0 : 1, .address = 0x1000 + 16 * i};
        f[i].file = FILES[i];
    }
    f[5].name = "single";
    r.functions = f;
    r.function_count = 6;
    r.builds = BUILDS;
    r.build_names = NAMES;
    r.build_count = 2;
    struct arena *a = arena_new(0);
    name_list_make(&r, false, a, &names);
    cr_assert_str_eq(names.text[0], "twin (left.c)");
    cr_assert_str_eq(names.text[1], "twin (right.c) [0x1010]");
    cr_assert_str_eq(names.text[2], "twin (right.c) [0x1020]");
    cr_assert_str_eq(names.text[3], "twin (cycle)");
    cr_assert_str_eq(names.text[4], "twin (libb.so)");
    cr_assert_str_eq(names.text[5], "single");
    cr_assert_eq(names.length[0], strlen("twin (left.c)"));
    arena_free(a);
}

Test(render_text, columns_never_run_together)
{
    struct report r = cycle_report;
    struct report_function f[CYCLE_FUNCTIONS];
    struct report_arc row = {
        .other = C, .calls = INT64_MAX, .of_calls = INT64_MAX, .self = 123456789.25, .children = 1e9};
    struct render_input in = cycle_input();
    memcpy(f, cycle_functions, sizeof f);
    f[START].index = 100000;
    f[START].self = 123456789.25;
    f[START].callees = &row;
    f[START].calls = f[START].self_calls = INT64_MAX;
    f[START].calls_outside = f[START].calls_inside = INT64_MAX;
    f[C].calls = INT64_MAX;
    r.functions = f;
    r.total = 1123456789.25;
    r.order_count = 6;
    in.report = &r;
    char *text = render(&in);
    contains(text, " 123456789.25 1000000000.00 9223372036854775807/9223372036854775807     0.5 c [6]\n");
    contains(
        text,
        "[100000] 100.00  123456789.25          1.93 9223372036854775807+9223372036854775807     start [100000]\n");
    free(text);
}

Test(render_text, heading_says_what_is_missing)
{
    struct report r = cycle_report;
    struct provenance p = cycle_provenance;
    struct render_input in = cycle_input();
    static const uint32_t RATES[] = {100, 250, 1000};
    r.unnamed_builds = 1;
    r.rates = RATES;
    r.rate_count = 3;
    r.saturated = true;
    p.inexact = 0;
    in.report = &r;
    in.provenance = &p;
    in.since = 1795276800000000000;
    in.show.limit = 2;
    in.scope = "everywhere";
    char *text = render(&in);
    contains(text, "\nShown     this build alone, in every process that loaded it; 2026-11-21T16:00:00Z to now; 2 of 5 "
                   "functions, the self time left out of the flat profile is 0.16 seconds, that left out of the call "
                   "graph 1.77 seconds\n");
    contains(text, "Exact     yes");
    contains(text, "Names     missing for 1 of 1 build: addresses are shown");
    contains(text, "193 ticks at 100, 250 and 1000 a second, 16 calls; a sum reached the limit of 2^63-1");
    char *flat = strstr(text, "Flat profile:"), *graph = strstr(text, "Call graph");
    cr_assert(strstr(flat, "  b\n") < graph && strstr(flat, "  a\n") < graph,
              "the flat profile has the functions with most self time");
    cr_assert_null(strstr(text, "\n[4]"), "the cut entry");
    free(text);
}

/* "~" takes the blank before the column where the number fills it. */
Test(render_text, estimated_self_times_are_marked)
{
    struct report r = cycle_report;
    struct report_function f[5];
    struct render_input in = cycle_input();
    memcpy(f, cycle_report.functions, sizeof f);
    for (unsigned i = 0; i < 5; i++) {
        f[i].self_estimated = strcmp(f[i].name, "b") == 0 || strcmp(f[i].name, "a") == 0;
        f[i].self = strcmp(f[i].name, "a") == 0 ? 10000.25 : f[i].self;
    }
    r.functions = f;
    r.total = 10002;
    in.report = &r;
    in.show.view = RENDER_VIEW_FLAT;
    char *text = render(&in);
    contains(text, " 10000.25~10000.25 ");
    contains(text, "    ~1.02 ");
    cr_assert_null(strstr(strstr(text, "~1.02") + 1, "~"), "a third mark");
    free(text);
}

Test(render_text, of_nothing_it_says_only_that)
{
    static const struct report empty = {.dimension = "seconds", .in_seconds = true};
    static const struct provenance none = {0};
    struct render_input in = cycle_input();
    in.report = &empty;
    in.provenance = &none;
    char *text = render(&in);
    contains(text, "From      nothing: no stored upload matches the query\n");
    cr_assert_null(strstr(text, "Exact"), "nothing is not exact");
    cr_assert_null(strstr(text, "Flat profile"));
    free(text);
}

Test(render_text, machines_and_values_of_the_label_host)
{
    struct provenance p = cycle_provenance;
    struct render_input in = cycle_input();
    in.provenance = &p;
    p.host_labels = 4;
    p.first = 1795276800999999999;
    p.last = -1; /* before 1970: still to the second */
    char *text = render(&in);
    contains(text,
             ", 1 machine, 4 values of the label host, uids 0, 1000; 2026-11-21T16:00:00Z to 1969-12-31T23:59:59Z\n");
    free(text);
}

Test(render_text, functions_that_are_no_entries_stand_in_rows_only)
{
    struct report r = cycle_report;
    struct report_function f[CYCLE_FUNCTIONS + 1];
    struct report_arc idle = {.other = CYCLE_FUNCTIONS, .by_name = true}, to_c = {.other = C};
    struct render_input in = cycle_input();
    memcpy(f, cycle_functions, sizeof cycle_functions);
    f[CYCLE_FUNCTIONS] =
        (struct report_function){.index = 0, NAMED("idle"), .static_callees = &to_c, .static_callee_count = 1};
    f[MAIN].static_callees = &idle;
    f[MAIN].static_callee_count = 1;
    r.functions = f;
    r.function_count = CYCLE_FUNCTIONS + 1;
    in.report = &r;
    char *text = render(&in);
    contains(text, "                0.00    0.00       0/0               idle (0)\n");
    cr_assert_null(strstr(text, "\n[0]"));
    cr_assert_null(strstr(text, "Shown"), "what is no entry was not cut");
    free(text);
}

Test(render_text, lists_are_cut_to_their_heaviest_rows)
{
    struct render_input in = cycle_input();
    in.show.rows = 1;
    char *text = render(&in);
    contains(text, "(members: 1 more, with 2 calls and 0.75 seconds)\n");
    contains(text,
             "(callers: 1 more, with 2 calls and 0.00 seconds)\n                1.77    0.00       1/1             1 "
             "main [1]\n[5]");
    contains(text, "(callees: 1 more, with 3 calls and 0.00 seconds)\n");
    free(text);
}

/* Each cell of the columns "per call" has a unit of its own: three significant digits at most, as wide as its column.
 */
Test(render_text, time_of_a_call_has_a_unit_of_its_own)
{
    static const struct {
        double self, children;
        uint64_t calls;
        const char *cells;
    } CASES[] = {
        {0.35, 0, 1000000, "     350ns     350ns"},      {0.012, 0.0333, 10000, "     1.2us    4.53us"},
        {0, 0.0453, 10, "              4.53ms"},         {4, 0.2, 2, "        2s      2.1s"},
        {0.0009997, 12345.4, 1, "       1ms    12345s"}, {1e-12, 1e-9, 1, "  <0.01ns       1ns"},
        {999.5, 0.9995, 1, "     1000s     1000s"},      {0.9996, 0.1, 1, "        1s      1.1s"},
        {99.94, 0.02, 1, "     99.9s      100s"},        {9.994, 0.002, 1, "     9.99s       10s"},
        {0.35e-9, 0, 1, "    0.35ns    0.35ns"},         {0.5, 1e9, 0, "                    "},
    };
    struct report r = cycle_report;
    struct report_function f[CYCLE_FUNCTIONS];
    struct render_input in = cycle_input();
    memcpy(f, cycle_functions, sizeof f);
    r.functions = f;
    r.ticks = UINT64_C(1) << 60;
    in.report = &r;
    in.show.view = RENDER_VIEW_FLAT;
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        char line[64];
        f[MAIN].self = CASES[i].self;
        f[MAIN].children = CASES[i].children;
        f[MAIN].calls = CASES[i].calls;
        snprintf(line, sizeof line, "%s  main\n", CASES[i].cells);
        char *text = render(&in);
        contains(text, "  %   cumulative   self               self      total\n"
                       " time   seconds   seconds    calls  per call  per call  name\n");
        contains(text, line);
        free(text);
    }
    f[MAIN].calls = 1;
    f[MAIN].children = 12345678901;
    char *text = render(&in);
    contains(text, "calls     per call     per call  name\n");
    contains(text, "        500ms 12345678902s  main\n");
    contains(text, "        340ms        340ms  b\n");
    free(text);
}

/* 1 digit below 10 ticks, 2 below 1,000; of less than 30 ticks in all, the heading says so. */
Test(render_text, times_have_the_digits_of_their_ticks)
{
    static const struct {
        double self, children;
        uint64_t calls;
        const char *cells;
    } CASES[] = {{0.0123, 0, 1, "      10ms      10ms"},    {0.09, 0.0098, 1, "      90ms     100ms"},
                 {0.1234, 9.5, 10, "      12ms     960ms"}, {9.996, 0.1, 8, "      1.2s     1.26s"},
                 {0.0123, 0, 1000, "      10us      10us"}, {0.08, 0, 3000000, "      30ns      30ns"}};
    struct report r = cycle_report;
    struct report_function f[CYCLE_FUNCTIONS];
    struct render_input in = cycle_input();
    memcpy(f, cycle_functions, sizeof f);
    r.functions = f;
    r.total = 100;
    r.ticks = 10000;
    in.report = &r;
    in.show.view = RENDER_VIEW_FLAT;
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        char line[64];
        f[MAIN].self = CASES[i].self;
        f[MAIN].children = CASES[i].children;
        f[MAIN].calls = CASES[i].calls;
        snprintf(line, sizeof line, "%s  main\n", CASES[i].cells);
        char *text = render(&in);
        contains(text, line);
        cr_assert_null(strstr(text, "so few samples"));
        free(text);
    }
    r.ticks = 29;
    char *text = render(&in);
    contains(text, " calls\n          (of so few samples, times and percentages are rough)\n");
    free(text);
    r.ticks = 119;
    r.per_tick = 0.25; /* a sample brought four ticks */
    text = render(&in);
    contains(text, " calls\n          (of so few samples, times and percentages are rough)\n");
    free(text);
}

Test(render_text, a_gap_is_explained)
{
    static const char *const NAMES[] = {"/usr/lib/libx.so.1", ""};
    struct report r = cycle_report;
    struct report_function f[CYCLE_FUNCTIONS];
    struct render_input in = cycle_input();
    memcpy(f, cycle_functions, sizeof f);
    r.functions = f;
    r.build_names = NAMES;
    in.report = &r;
    char *text = render(&in);
    cr_assert_null(strstr(text, "[gap]"));
    free(text);
    f[C].kind = REPORT_GAP;
    f[C].self = 0.0194;
    text = render(&in);
    contains(text, "\nNames     [gap] is code of libx.so.1 that no function name covers; if the file is stripped, its "
                   "debug\n          file names it: `profctl symbols FILE`\n");
    free(text);
    f[C].self = 0.019;
    text = render(&in);
    cr_assert_null(strstr(text, "[gap] is code"), "less than a hundredth");
    free(text);
}

Test(render_text, functions_that_were_not_called_are_a_view)
{
    static const struct report_function idle[] = {{NAMED("idle"), .address = 0x401050},
                                                  {NAMED("unused"), .address = 0x401060},
                                                  {NAMED("unused"), .address = 0x401070}};
    struct report r = cycle_report;
    struct render_input in = cycle_input();
    r.not_called = idle;
    r.not_called_count = 3;
    r.counted_functions = 8;
    in.report = &r;
    in.show.view = RENDER_VIEW_NOT_CALLED;
    char *text = render(&in);
    contains(text, "\nNot called 3 of 8 instrumented functions (no call and no tick)\n\nNot called:\n\n"
                   "idle\nunused [0x401060]\nunused [0x401070]\n");
    cr_assert(strstr(text, "Flat profile") == NULL && strstr(text, "Call graph") == NULL);
    free(text);
    in.show.limit = 1;
    text = render(&in);
    contains(text, "\nNot called:\n\nidle\n(2 more)\n");
    free(text);
    in.show.focus = "unu";
    text = render(&in);
    contains(text, "\nNot called 3 of 8 instrumented functions (no call and no tick)\n\nNot called:\n\nunused "
                   "[0x401060]\n(1 more)\n");
    contains(text, "\nShown     functions with unu\n");
    free(text);
}

/* 0.00 is 0. What is above 0 and would read so is "<0.01", as wide as its column. */
Test(render_text, nothing_above_0_reads_0)
{
    struct report r = cycle_report;
    struct report_function f[CYCLE_FUNCTIONS];
    struct report_cycle cycle = cycle_cycles[0];
    struct report_arc rows[] = {{.other = MAIN, .calls = 1, .of_calls = 1, .self = 0.0049, .children = 1e-9},
                                {.other = C, .calls = 1, .of_calls = 1, .self = 0.005}};
    struct provenance p = cycle_provenance;
    struct render_input in = cycle_input();
    memcpy(f, cycle_functions, sizeof f);
    f[START].callees = rows;
    f[START].callee_count = 2;
    f[START].percent = 0.003;
    f[START].self = f[START].children = 1e-5;
    f[START].self_estimated = true;
    f[C].self = cycle.children = 0.004;
    cycle.percent = 1e-7;
    r.functions = f;
    r.cycles = &cycle;
    p.down_count = 1;
    p.down_ns = 4000000;
    in.report = &r;
    in.provenance = &p;
    char *text = render(&in);
    contains(text, "\nDown      profd was not running for <0.01 s of this time (1 stop):\n");
    contains(text, "  0.21      1.93    <0.01        6     700us     700us  c\n");
    contains(text, " <0.01      1.93   ~<0.01                               start\n");
    contains(text, "[2]    <0.01   <0.01   <0.01                     start [2]\n"
                   "               <0.01   <0.01       1/1               main [1]\n"
                   "                0.01    0.00       1/1               c [6]\n");
    contains(text, "[3]    <0.01    1.77   <0.01       1+5           <cycle 1 as a whole> [3]\n");
    free(text);
    in.show.rows = 1;
    in.show.limit = 4;
    in.show.sort = RENDER_SORT_CALLS;
    in.show.view = RENDER_VIEW_FLAT;
    text = render(&in);
    contains(text, "\nShown     4 of 5 functions, the self time of the other is <0.01 seconds\n");
    free(text);
    r.total = 0.001;
    in.show = cycle_input().show;
    text = render(&in);
    contains(text, "Total     <0.01 seconds in ");
    free(text);
}

/* As many decimals as make four digits, 4 at most. */
Test(render_text, ratios_of_counts)
{
    static const struct {
        double value;
        const char *text;
    } CASES[] = {
        {1, "     1"},
        {1.0 / 3, "0.3333"},
        {2.0 / 3, "0.6667"},
        {0.99994, "0.9999"},
        {0.99996, "     1"},
        {1.5, "   1.5"},
        {9.9996, "    10"},
        {12.345678, " 12.35"},
        {123.456, " 123.5"},
        {999.94, " 999.9"},
        {999.96, "  1000"},
        {20000, " 20000"},
        {1234567.8, "1234568"},
        {0.00005, "0.0001"},
        {0.00004, "<0.0001"},
        {0.25, "  0.25"},
        {1e18, "1000000000000000000"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct buffer out;
        buffer_init(&out, 100);
        amount_add_ratio(&out, CASES[i].value, 6);
        buffer_add_char(&out, '\0');
        cr_assert_str_eq(out.data, CASES[i].text);
        buffer_done(&out);
    }
}

/* Without calls there is no such column, and the header is gprof's. */
Test(render_text, nothing_called_has_no_calls_per_call)
{
    struct report r = cycle_report;
    struct render_input in = cycle_input();
    in.report = &r;
    r.calls = 0;
    char *text = render(&in);
    contains(text, "Call graph\n\nindex % time    self  children    called     name\n");
    cr_assert_null(strstr(text, "calls/call"));
    free(text);
}

/* The patterns that gprof2dot reads the graph section with (its format is not to be had here): every line between the
 * header and the form feed must be a row, an entry, <spontaneous> or dashes. A row with "<0.01" it leaves out. */
Test(render_text, graph_reads_as_gprof2dot_reads_it)
{
    static const char *const PATTERNS[] = {
        "^ +([0-9]+\\.[0-9]+)? +([0-9]+\\.[0-9]+)? +[0-9]+(/[0-9]+)? +[^ ].*( <cycle [0-9]+>)? \\[[0-9]+\\]$",
        ("^\\[[0-9]+\\]? +[0-9]+\\.[0-9]+ +[0-9]+\\.[0-9]+ +[0-9]+\\.[0-9]+ +([0-9]+(\\+[0-9]+)?)? +[^ ].*( <cycle "
         "[0-9]+>)? \\[[0-9]+\\]$"),
        "^ +<spontaneous> *$",
        "^-----+$",
    };
    struct render_input in = cycle_input();
    char *text = render(&in), *save = NULL;
    char *graph = strstr(text, "\nindex % time    self  children    called             name\n");
    regex_t compiled[4];
    int lines = 0;
    cr_assert_not_null(graph);
    for (int i = 0; i < 4; i++) {
        cr_assert_eq(regcomp(&compiled[i], PATTERNS[i], REG_EXTENDED | REG_NOSUB), 0);
    }
    strtok_r(graph + 1, "\n", &save);
    for (char *line = strtok_r(NULL, "\n", &save); strcmp(line, "\f") != 0;
         line = strtok_r(NULL, "\n", &save), lines++) {
        bool known = false;
        for (int i = 0; i < 4; i++) {
            known |= regexec(&compiled[i], line, 0, NULL, 0) == 0;
        }
        cr_assert(known, "'%s'", line);
    }
    cr_assert_eq(lines, 29);
    for (int i = 0; i < 4; i++) {
        regfree(&compiled[i]);
    }
    free(text);
}

Test(render_formats, table)
{
    cr_assert_null(render_find("yaml"));
    cr_assert_null(render_find(""));
    cr_assert(!render_find("gprof")->wants_report);
    cr_assert_str_eq(render_find("json")->content_type, "application/json");
    char names[200];
    snprintf(names, sizeof names, "%s", render_names());
    for (char *name = strtok(names, ", "); name != NULL; name = strtok(NULL, ", ")) {
        cr_assert_not_null(render_find(name), "%s", name);
    }
}
