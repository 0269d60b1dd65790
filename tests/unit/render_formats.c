#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "render/stacks.h"
#include "tests/unit/render_cycle.h"

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
    expect(text, "ob=(1) /srv/bin/cycle\nfl=(1) ???\nfn=(1) start\n0 0\ncob=(1)\ncfi=(2) ???\ncfn=(2) main\ncalls=1 "
                 "0\n0 1930000000\n");
    expect(text, "fn=(3)\n0 750000000\ncob=(1)\ncfi=(5) ???\ncfn=(5) c\ncalls=3 0\n0 0\n");
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
    in.limit = 1;
    in.sort = RENDER_SORT_SELF;
    char *text = render("csv", &in);
    char *row = strstr(text, "\r\n") + 2;
    cr_assert_str_eq(row, "4,b,b," CYCLE_ID ",/srv/bin/cycle,0x401030,,1.02,0,1.02,52.84974093264249,3,0,0,3,1\r\n");
    free(text);
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
            for (uint32_t j = 0; j < f[i].callee_count; j++)
                twice |= callees[j].other == to;
            if (twice || f[to].caller_count == 8 || rand_r(seed) % 3 == 0)
                continue;
            double left = f[to].self + f[to].children;
            for (uint32_t j = 0; j < f[to].caller_count; j++)
                left -= callers[to][j].self + callers[to][j].children;
            double part = rand_r(seed) % 2 ? left : left / 2;
            callers[to][f[to].caller_count++] = (struct report_arc){.other = i, .calls = 1, .self = part};
            callees[f[i].callee_count++] = (struct report_arc){.other = to, .calls = 1, .self = part};
            f[i].children += part;
        }
    }
}

Test(render_formats, stacks_divide_time_without_loss)
{
    unsigned seed = (unsigned)time(NULL), first = seed;
    struct arena *a = arena_new(0);
    for (int round = 0; round < 400; round++) {
        struct report r;
        struct stacks s;
        arena_reset(a);
        uint32_t n = 1 + (uint32_t)rand_r(&seed) % (round % 40 == 0 ? 3000 : 60);
        make_random(a, &r, n, &seed);
        cr_assert_eq(stacks_make(&r, a, &s, NULL), PROFD_OK);
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
            if (node->frame == STACKS_CUT)
                cut += node->self;
            else
                own[node->frame] += node->self;
        }
        cr_assert_float_eq(sum, r.total, 1e-9 * r.total + 1e-12, "seed %u: %g of %g", first, sum, r.total);
        cr_assert_float_eq(cut, s.cut, 1e-9 * r.total + 1e-12);
        for (uint32_t i = 0; i < n; i++)
            cr_assert(own[i] <= r.functions[i].self + 1e-9 * r.total &&
                          own[i] >= r.functions[i].self - s.cut - 1e-9 * r.total,
                      "seed %u: f%u %g of %g", first, i, own[i], r.functions[i].self);
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
    struct stacks s;
    cr_assert_eq(stacks_make(&r, a, &s, NULL), PROFD_OK);
    cr_assert_eq(s.count, STACKS_DEPTH);
    cr_assert_eq(s.nodes[s.count - 1].frame, STACKS_CUT);
    cr_assert_float_eq(s.cut, LONG - (STACKS_DEPTH - 1), 1e-6);
    cr_assert_float_eq(s.total, LONG, 1e-6);
    arena_free(a);
}
