/* Reports as folded stacks, callgrind, DOT and CSV: exact counts, and no time lost or added. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "render/render_internal.h"
#include "tests/unit/render/cycle.h"

static char *render(const char *format, const struct render_input *in)
{
    struct arena *a = arena_new(0);
    struct buffer out;
    struct profd_error e;
    buffer_init(&out, 1 << 24);
    cr_assert_eq(render_find(format)->render(in, a, &out, &e), PROFD_OK);
    cr_assert(!out.failed);
    char *text = strndup(out.data, out.size);
    buffer_done(&out);
    arena_free(a);
    return text;
}

static void expect(const char *text, const char *part)
{
    cr_assert_not_null(strstr(text, part), "no \"%s\" in:\n%s", part, text);
}

Test(render_formats, folded_example)
{
    struct render_input in = cycle_input();
    char *text = render("folded", &in);
    cr_assert_str_eq(text, "[synthetic stacks];start;main 160000\n"
                           "[synthetic stacks];start;main;<cycle 1>;b 1020000\n"
                           "[synthetic stacks];start;main;<cycle 1>;a 750000\n");
    free(text);
}

Test(render_formats, callgrind_example_names_once_and_counts_exactly)
{
    struct render_input in = cycle_input();
    char *text = render("callgrind", &in);
    expect(text, "events: ns\nsummary: 1930000000\n");
    expect(text, "ob=(1) /srv/bin/cycle\nfl=(1) ???\nfn=(1) start\n0x401000 0 0\ncob=(1)\ncfi=(2) ???\ncfn=(2) "
                 "main\ncalls=1 0x401010 0\n0x401000 0 1930000000\n");
    expect(text, "fn=(3)\n0x401020 0 750000000\ncob=(1)\ncfi=(5) ???\ncfn=(5) c\ncalls=3 0x401040 0\n0x401020 0 0\n");
    cr_assert_null(strstr(strstr(text, " main") + 1, " main"), "a name stands once");
    free(text);
}

Test(render_formats, dot_example_has_the_cycle_as_a_cluster)
{
    struct render_input in = cycle_input();
    char *text = render("dot", &in);
    expect(text, "subgraph cluster_1 { label=\"cycle 1: 91.71%\"; style=\"rounded,dashed\"; f3; f2; }");
    expect(text, "f1 -> f2 [label=\"1\"");
    expect(text, "f2 -> f3 [label=\"3\", penwidth=1.00, tooltip=\"0 s\", style=dashed];");
    free(text);
}

Test(render_formats, csv_example)
{
    struct render_input in = cycle_input();
    in.show.limit = 1;
    in.show.sort = RENDER_SORT_SELF;
    char *text = render("csv", &in);
    char *row = strstr(text, "\r\n") + 2;
    cr_assert_str_eq(row,
                     "4,b,b," CYCLE_ID ",/srv/bin/cycle,0x401030,,1.02,0,1.02,52.84974093264249,3,0,0,3,1,3,,,0\r\n");
    free(text);
}

/* As gprof orders its flat profile: self time, then calls, then name. The graph's index, which puts [gap] before all
 * that was called and has no time, is no rule of it. */
static const struct report *all_equal(void)
{
    static const struct report_function functions[] = {
        {.index = 1, .name = "[gap]", .raw = "[gap]", .kind = REPORT_GAP},
        {.index = 2, .name = "rare", .raw = "rare", .calls = 1},
        {.index = 3, .name = "zoo", .raw = "zoo", .calls = 150500},
        {.index = 4, .name = "often", .raw = "often", .calls = 150500},
        {.index = 5, .name = "slow", .raw = "slow", .calls = 1, .self = 0.01},
    };
    static const uint32_t order[] = {0, 1, 2, 3, 4};
    static const char *const ids[] = {CYCLE_ID, ""}, *const names[] = {"/srv/bin/ties", ""};
    static const struct report report = {.functions = functions,
                                         .function_count = 5,
                                         .order = order,
                                         .order_count = 5,
                                         .builds = ids,
                                         .build_names = names,
                                         .build_count = 1,
                                         .total = 0.01,
                                         .ticks = 1,
                                         .dimension = "seconds",
                                         .in_seconds = true};
    return &report;
}

static void expect_order(const char *text, const char *const *names, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        const char *at = strstr(text, names[i]);
        cr_assert_not_null(at, "%s is missing, or stands before %s:\n%s", names[i], i > 0 ? names[i - 1] : "all", text);
        text = at;
    }
}

Test(render_formats, ties_in_the_flat_profile)
{
    static const char *const BY_SELF[] = {"slow", "often", "zoo", "rare", "[gap]"};
    static const char *const BY_CALLS[] = {"often", "zoo", "slow", "rare", "[gap]"};
    static const char *const FORMATS[] = {"text", "csv", "json"};
    struct render_input in = cycle_input();
    in.report = all_equal();
    in.show.view = RENDER_VIEW_FLAT;
    for (uint32_t i = 0; i < 3; i++) {
        in.show.sort = RENDER_SORT_SELF;
        char *text = render(FORMATS[i], &in);
        expect_order(text, BY_SELF, 5);
        free(text);
        in.show.sort = RENDER_SORT_TOTAL;
        text = render(FORMATS[i], &in);
        expect_order(text, BY_SELF, 5);
        free(text);
        in.show.sort = RENDER_SORT_CALLS;
        text = render(FORMATS[i], &in);
        expect_order(text, BY_CALLS, 5);
        free(text);
    }
}

/* Ackermann's function: called once, and by itself 182,104 times. */
Test(render_formats, recursion_counts_in_flat_lists)
{
    static const struct report_function functions[] = {
        {.index = 1, .name = "ack", .raw = "ack", .calls = 1, .calls_outside = 1, .self_calls = 182104, .self = 0.5},
        {.index = 2, .name = "main", .raw = "main", .calls = 1, .calls_outside = 1},
    };
    static const uint32_t order[] = {0, 1};
    static const char *const ids[] = {CYCLE_ID, ""}, *const names[] = {"/srv/bin/ack", ""};
    static const struct report report = {.functions = functions,
                                         .function_count = 2,
                                         .order = order,
                                         .order_count = 2,
                                         .builds = ids,
                                         .build_names = names,
                                         .build_count = 1,
                                         .total = 0.5,
                                         .ticks = 50,
                                         .dimension = "seconds",
                                         .in_seconds = true};
    struct render_input in = cycle_input();
    in.report = &report;
    in.show.view = RENDER_VIEW_FLAT;
    char *text = render("text", &in);
    expect(text, "  %   cumulative   self                      self      total\n"
                 " time   seconds   seconds    calls+self    per call  per call  name\n"
                 "100.00      0.50     0.50        1+182104     500ms     500ms  ack\n"
                 "  0.00      0.50     0.00        1                             main\n");
    free(text);
    text = render("csv", &in);
    expect(text, "calls,self_calls,calls_outside,calls_inside,cycle,all_calls,self_least,self_most,"
                 "calls_sampled\r\n1,ack,ack,");
    expect(text, ",1,182104,1,0,0,182105,,,0\r\n");
    free(text);
}

/* main calls work once and close_all nine times; work enters the cycle {run, step} once, close_all nine times. The time
 * of the cycle is work's in truth, and gprof's rule gives nine tenths of it to close_all. run calls leaf, outside of
 * the cycle. */
enum { ROOT, WORK, CLOSE_ALL, RUN, STEP, LEAF, ENTRIES };

static const struct report *two_callers(void)
{
    static const struct report_arc main_down[] = {{.other = WORK, .calls = 1, .self = 1, .children = 2},
                                                  {.other = CLOSE_ALL, .calls = 9, .self = 1, .children = 18}},
                                   work_up[] = {{.other = ROOT, .calls = 1, .self = 1, .children = 2}},
                                   work_down[] = {{.other = RUN, .calls = 1, .self = 1.5, .children = .5}},
                                   close_up[] = {{.other = ROOT, .calls = 9, .self = 1, .children = 18}},
                                   close_down[] = {{.other = RUN, .calls = 9, .self = 13.5, .children = 4.5}},
                                   run_down[] = {{.other = LEAF, .calls = 1, .self = 5},
                                                 {.other = STEP, .calls = 5, .inside = true}},
                                   step_down[] = {{.other = RUN, .calls = 5, .inside = true}},
                                   leaf_up[] = {{.other = RUN, .calls = 1, .self = 5}},
                                   members[] = {{.other = RUN, .calls = 5, .self = 10, .children = 5},
                                                {.other = STEP, .calls = 5, .self = 5}},
                                   cycle_up[] = {{.other = WORK, .calls = 1, .self = 1.5, .children = .5},
                                                 {.other = CLOSE_ALL, .calls = 9, .self = 13.5, .children = 4.5}},
                                   cycle_down[] = {{.other = LEAF, .calls = 1, .self = 5}};
    static const struct report_function f[ENTRIES] = {
        [ROOT] = {.index = 1, NAMED("main"), .children = 22, ROWS(callee, main_down)},
        [WORK] = {.index = 2, NAMED("work"), .self = 1, .children = 2, ROWS(caller, work_up), ROWS(callee, work_down)},
        [CLOSE_ALL] = {.index = 3,
                       NAMED("close_all"),
                       .self = 1,
                       .children = 18,
                       ROWS(caller, close_up),
                       ROWS(callee, close_down)},
        [RUN] = {.index = 5, NAMED("run"), .self = 10, .children = 5, .cycle = 1, ROWS(callee, run_down)},
        [STEP] = {.index = 6, NAMED("step"), .self = 5, .cycle = 1, ROWS(callee, step_down)},
        [LEAF] = {.index = 7, NAMED("leaf"), .self = 5, ROWS(caller, leaf_up)},
    };
    static const struct report_cycle cycles[] = {{.index = 4,
                                                  .number = 1,
                                                  .self = 15,
                                                  .children = 5,
                                                  .calls_outside = 10,
                                                  .calls_inside = 10,
                                                  ROWS(member, members),
                                                  ROWS(caller, cycle_up),
                                                  ROWS(callee, cycle_down)}};
    static const uint32_t order[] = {ROOT, WORK, CLOSE_ALL, REPORT_CYCLE, RUN, STEP, LEAF};
    static const struct report r = {.function_count = ENTRIES,
                                    .functions = f,
                                    .cycle_count = 1,
                                    .cycles = cycles,
                                    .order = order,
                                    .order_count = 7,
                                    .total = 22,
                                    .dimension = "seconds",
                                    .in_seconds = true,
                                    .builds = cycle_builds,
                                    .build_names = cycle_names,
                                    .build_count = 1};
    return &r;
}

Test(render_formats, a_cycle_with_several_callers_is_not_divided_among_them)
{
    struct render_input in = cycle_input();
    in.report = two_callers();
    char *text = render("folded", &in);
    cr_assert_str_eq(text, "[synthetic stacks];main;<cycle 1>;run 10000000\n"
                           "[synthetic stacks];main;<cycle 1>;step 5000000\n"
                           "[synthetic stacks];main;<cycle 1>;leaf 5000000\n"
                           "[synthetic stacks];main;work 1000000\n"
                           "[synthetic stacks];main;close_all 1000000\n");
    free(text);
    text = render("tree", &in);
    expect(text, "\"undivided\":[{\"cycle\":1,\"total_seconds\":20,\"callers\":[\"work\",\"close_all\"],"
                 "\"callers_not_named\":"
                 "0,\"below\":\"main\"}]");
    free(text);
}

/* main and [gap] call f, f calls [gap]. Stacks begin and end in a class of addresses; none goes through it. */
Test(render_formats, stacks_do_not_pass_through_a_class_of_addresses)
{
    static const struct report_arc main_down[] = {{.other = 1, .calls = 1, .of_calls = 4, .self = .5, .children = 1}},
                                   f_up[] = {{.other = 0, .calls = 1, .of_calls = 4, .self = .5, .children = 1},
                                             {.other = 2, .calls = 3, .of_calls = 4, .self = 1.5, .children = 3}},
                                   f_down[] = {{.other = 2, .calls = 2, .of_calls = 2, .self = 4}},
                                   gap_up[] = {{.other = 1, .calls = 2, .of_calls = 2, .self = 4}},
                                   gap_down[] = {{.other = 1, .calls = 3, .of_calls = 4, .self = 1.5, .children = 3}};
    static const struct report_function f[] = {
        {.index = 2, NAMED("main"), .self = 1, .children = 1.5, ROWS(callee, main_down)},
        {.index = 1, NAMED("f"), .self = 2, .children = 4, .calls = 4, ROWS(caller, f_up), ROWS(callee, f_down)},
        {.index = 3,
         .kind = REPORT_GAP,
         .name = "[gap]",
         .raw = "[gap]",
         .file = "",
         .self = 4,
         .children = 1.5,
         .calls = 2,
         ROWS(caller, gap_up),
         ROWS(callee, gap_down)}};
    static const uint32_t order[] = {1, 0, 2}, rates[] = {100};
    static const struct report r = {.function_count = 3,
                                    .functions = f,
                                    .order = order,
                                    .order_count = 3,
                                    .total = 7,
                                    .rate_count = 1,
                                    .rates = rates,
                                    .ticks = 700,
                                    .dimension = "seconds",
                                    .in_seconds = true,
                                    .builds = cycle_builds,
                                    .build_names = cycle_names,
                                    .build_count = 1};
    struct render_input in = cycle_input();
    in.report = &r;
    char *text = render("folded", &in);
    cr_assert_str_eq(text, "[synthetic stacks];[gap];f 1500000\n"
                           "[synthetic stacks];[gap];f;[gap] 3000000\n"
                           "[synthetic stacks];main 1000000\n"
                           "[synthetic stacks];main;f 500000\n"
                           "[synthetic stacks];main;f;[gap] 1000000\n");
    free(text);
    text = render("callgrind", &in);
    expect(text, "\nfl=(3)\nfn=(3)\n0x0 0 4000000000\nob=(1)\nfl=(6) (calls out of it)\nfn=(3)\ncob=(1)\n");
    free(text);
    in.show.view = RENDER_VIEW_FLAT;
    text = render("text", &in);
    expect(text, " 57.14      4.00     4.00        2        2s        2s  [gap]\n");
    free(text);
}

/* A reader of pictures knows by how many ticks a time is known. */
Test(render_formats, pictures_have_the_ticks_of_their_times)
{
    static const char *const FORMATS[] = {"tree", "graph"};
    struct render_input in = cycle_input();
    for (size_t i = 0; i < sizeof FORMATS / sizeof *FORMATS; i++) {
        char *text = render(FORMATS[i], &in);
        expect(text, "\"ticks\":193");
        free(text);
    }
}

/* A random forest of functions that call later ones, with times divided as gprof divides them. */
static void make_random(struct arena *a, struct report *r, uint32_t n, unsigned *seed)
{
    struct report_function *f = ARENA_ARRAY(a, n, struct report_function);
    uint32_t *order = ARENA_ARRAY(a, n, uint32_t);
    double *total = ARENA_ARRAY(a, n, double);
    struct report_arc **callers = ARENA_ARRAY(a, n, struct report_arc *);
    *r = (struct report){.function_count = n,
                         .functions = f,
                         .order = order,
                         .order_count = n,
                         .build_count = 1,
                         .builds = cycle_builds,
                         .build_names = cycle_names};
    for (uint32_t i = 0; i < n; i++) {
        f[i] = (struct report_function){
            .index = i + 1, .kind = REPORT_FUNCTION, .name = arena_format(a, "f%u", i), .file = ""};
        f[i].raw = f[i].name;
        f[i].self = rand_r(seed) % 4 == 0 ? 0 : rand_r(seed) % 1000 / 100.0;
        r->total += f[i].self;
        order[i] = i;
        callers[i] = ARENA_ARRAY(a, 8, struct report_arc);
        f[i].callers = callers[i];
    }
    for (uint32_t i = n; i-- > 0;) { /* callees first: their totals are known */
        struct report_arc *callees = ARENA_ARRAY(a, 8, struct report_arc);
        f[i].callees = callees;
        total[i] = f[i].self;
        for (uint32_t k = 0; k < 8 && i + 1 < n; k++) {
            uint32_t to = i + 1 + (uint32_t)rand_r(seed) % (n - i - 1);
            bool twice = false;
            for (uint32_t j = 0; j < f[i].callee_count; j++) {
                twice |= callees[j].other == to;
            }
            if (twice || f[to].caller_count == 8 || rand_r(seed) % 3 == 0) {
                continue;
            }
            double left = f[to].self + f[to].children;
            for (uint32_t j = 0; j < f[to].caller_count; j++) {
                left -= callers[to][j].self + callers[to][j].children;
            }
            double part = rand_r(seed) % 2 ? left : left / 2;
            callers[to][f[to].caller_count++] = (struct report_arc){.other = i, .calls = 1, .self = part};
            callees[f[i].callee_count++] = (struct report_arc){.other = to, .calls = 1, .self = part};
            f[i].children += part;
        }
    }
}

Test(render_formats, stacks_divide_time_without_loss)
{
    unsigned seed = 4711, first = seed;
    struct arena *a = arena_new(0);
    for (int round = 0; round < 400; round++) {
        struct report r;
        struct stack_tree s;
        arena_reset(a);
        uint32_t n = 1 + (uint32_t)rand_r(&seed) % (round % 40 == 0 ? 3000 : 60);
        make_random(a, &r, n, &seed);
        stacks_make(&r, a, &s);
        double *own = ARENA_ARRAY(a, n, double), *below = ARENA_ARRAY(a, s.count + 1, double), cut = 0, sum = 0;
        for (uint32_t i = s.count; i-- > 0;) {
            const struct stack_node *node = &s.nodes[i];
            cr_assert_float_eq(node->total, node->self + below[i], 1e-9 * r.total + 1e-12, "seed %u", first);
            if (node->parent != STACKS_NONE) {
                cr_assert_lt(node->parent, i);
                cr_assert_eq(s.nodes[node->parent].depth + 1, node->depth);
                below[node->parent] += node->total;
            } else {
                sum += node->total;
            }
            if (node->frame == STACKS_CUT) {
                cut += node->self;
            } else {
                own[node->frame] += node->self;
            }
        }
        cr_assert_float_eq(sum, r.total, 1e-9 * r.total + 1e-12, "seed %u: %g of %g", first, sum, r.total);
        cr_assert_float_eq(cut, s.cut, 1e-9 * r.total + 1e-12);
        for (uint32_t i = 0; i < n; i++) {
            cr_assert(own[i] <= r.functions[i].self + 1e-9 * r.total &&
                          own[i] >= r.functions[i].self - s.cut - 1e-9 * r.total,
                      "seed %u: f%u %g of %g", first, i, own[i], r.functions[i].self);
        }
    }
    arena_free(a);
}

Test(render_formats, a_long_chain_is_cut_and_says_so)
{
    enum { LONG = 100000 };
    struct arena *a = arena_new(0);
    struct report_function *f = ARENA_ARRAY(a, LONG, struct report_function);
    uint32_t *order = ARENA_ARRAY(a, LONG, uint32_t);
    struct report r = {.function_count = LONG, .functions = f, .order = order, .order_count = LONG, .total = LONG};
    for (uint32_t i = 0; i < LONG; i++) {
        struct report_arc *rows = ARENA_ARRAY(a, 2, struct report_arc);
        rows[0] = (struct report_arc){.other = i + 1, .calls = 1, .self = 1, .children = LONG - i - 2};
        rows[1] = (struct report_arc){.other = i - 1, .calls = 1, .self = 1, .children = LONG - i - 1};
        f[i] = (struct report_function){.index = i + 1,
                                        .self = 1,
                                        .children = LONG - i - 1,
                                        .callees = rows,
                                        .callee_count = i + 1 < LONG,
                                        .callers = rows + 1,
                                        .caller_count = i > 0};
        order[i] = i;
    }
    struct stack_tree s;
    stacks_make(&r, a, &s);
    cr_assert_eq(s.count, STACKS_DEPTH);
    cr_assert_eq(s.nodes[s.count - 1].frame, STACKS_CUT);
    cr_assert_float_eq(s.cut, LONG - (STACKS_DEPTH - 1), 1e-6);
    cr_assert_float_eq(s.total, LONG, 1e-6);
    arena_free(a);
}
