/* Comparisons with numbers worked out by hand. */
#include <criterion/criterion.h>
#include <math.h>

#include "core/names.h"
#include "core/diff.h"
#include "proto/sort.h"
#include "core/spread.h"
#include "tests/unit/core/fixture.h"

#define K RANDOM_GROUPS

static void near(double got, double want, double error)
{
    cr_assert_float_eq(got, want, error, "%.17g is not %.17g", got, want);
}

Test(diff_stat, student_in_the_middle_and_far_out)
{
    near(student_outside(15, 2.131449545559323), 0.05, 1e-12);
    near(student_outside(1, 1), 0.5, 1e-12);
    near(student_outside(2, 4.302652729749464), 0.05, 1e-12);
    near(student_outside(30, 0), 1, 0);
    near(student_outside(1, 1e12) / (2 / 3.14159265358979323846 * 1e-12), 1, 1e-9);
    near(student_quantile(30, 0.95), 2.042272456301238, 1e-9);
}

/* Groups that are off by ±0.01 in turn: the jackknife's variance is 15 · 0.01². */
Test(diff_stat, two_builds_add_their_variances)
{
    struct diff_logs a = {.freedom = 15}, b = {.of = {0.2}, .freedom = 15};
    const uint16_t all[2] = {0xffff, 0xffff};
    struct diff_estimate x;
    for (unsigned g = 0; g < K; g++) {
        b.of[1 + g] = 0.2 + (g % 2 == 0 ? 0.01 : -0.01);
    }
    diff_stat_compare(&a, &b, all, false, &x);
    near(x.log, 0.2, 1e-15);
    near(x.error, 0.01 * sqrt(15), 1e-15);
    near(x.freedom, 15, 0);
    near(x.high - x.log, 2.131449545559323 * x.error, 1e-8);
    for (unsigned g = 0; g < K; g++) {
        a.of[1 + g] = b.of[1 + g];
    }
    diff_stat_compare(&a, &b, all, false, &x);
    near(x.error, 0.01 * sqrt(30), 1e-15);
    near(x.freedom, 30, 0);
    diff_stat_compare(&a, &b, all, true, &x);
    cr_assert(x.error <= 0 && x.p <= 0, "group by group both vary alike: nothing is chance");
}

Test(diff_stat, few_groups_have_few_degrees_of_freedom)
{
    struct diff_logs a = {.freedom = 15}, b = {.freedom = 3};
    const uint16_t four[2] = {0xffff, 0x000f};
    struct diff_estimate x;
    for (unsigned g = 0; g < 4; g++) {
        b.of[1 + g] = g % 2 == 0 ? 0.1 : -0.1;
    }
    diff_stat_compare(&a, &b, four, false, &x);
    near(x.error, sqrt(0.75 * 0.04), 1e-15);
    near(x.freedom, 3, 0);
    near(x.high, 3.182446305284263 * x.error, 1e-8);
    cr_assert(x.p >= 1);
}

/* One group has half of x, the others a thirtieth each: 1 / (1/4 + 15/900) = 3.75 groups of equal weight. */
Test(diff_stat, a_heavy_group_leaves_few_degrees_of_freedom)
{
    double x[DIFF_VALUES] = {30}, y[DIFF_VALUES];
    struct diff_logs heavy, even;
    for (unsigned k = 0; k < DIFF_VALUES; k++) {
        x[k] = k == 0 ? 30 : k == 5 ? 15 : 29;
        y[k] = k == 0 ? 16 : 15;
    }
    cr_assert(diff_stat_logs(x, y, &heavy) && diff_stat_logs(y, x, &even));
    near(heavy.freedom, 2.75, 1e-12);
    near(heavy.of[5], 0, 1e-12);
    near(even.freedom, 15, 1e-12);
}

Test(diff_stat, false_discoveries)
{
    const double p[] = {0.01, 0.04, 0.03, 0.005}, want[] = {0.02, 0.04, 0.04, 0.02};
    double q[4];
    struct sort_item order[8];
    diff_stat_discover(p, q, 4, order);
    for (int i = 0; i < 4; i++) {
        near(q[i], want[i], 1e-15);
    }
}

Test(clone_names, suffixes)
{
    cr_assert_eq(clone_base("parse"), 5);
    cr_assert_eq(clone_base("parse.isra.0"), 5);
    cr_assert_eq(clone_base("parse.constprop.0.cold"), 5);
    cr_assert_eq(clone_base("parse.lto_priv.12"), 5);
    cr_assert_eq(clone_base("a.b.part.3"), 3);
    cr_assert_eq(clone_base(".part.3"), 7, "nothing would be left");
    cr_assert_eq(clone_base("x.partial"), 9);
}

/* One side: an object, and one process in each group. Functions lie at 0x1000 + 0x100 · i, bins are of 4 bytes. */
struct bed {
    struct fixture fixture;
    const struct object *objects[1];
    const char *ids[1], *paths[1];
    struct report_request report;
    struct random_groups processes;
    struct diff_side side;
};

static void bed_init(struct bed *b, const char *id, const char *const *names, const char *const *files, uint32_t n)
{
    memset(b, 0, sizeof *b);
    fixture_init(&b->fixture, id);
    for (uint32_t i = 0; i < n; i++) {
        struct object_symbol *s =
            fixture_symbol(&b->fixture, names[i], 0x1000 + i * 0x100, 0x100, OBJECT_BIND_LOCAL, OBJECT_TYPE_FUNCTION);
        s->file = files != NULL ? fixture_name(&b->fixture, files[i]) : 0;
    }
    fixture_range(&b->fixture, OBJECT_RANGE_TEXT, 0x1000, 0x1000 + n * 0x100);
    b->objects[0] = &b->fixture.object;
    b->ids[0] = id;
    b->paths[0] = "/srv/bin/shop";
}

typedef void fill(struct upload *u, unsigned group);

static void bed_run(struct bed *b, struct arena *a, fill *one)
{
    static struct upload u;
    struct profd_error e = {""};
    struct profile_sum *sum = profile_sum_new(a);
    struct rollup_sum *groups = rollup_sum_new(a, ROLLUP_ALL);
    struct arena *scratch = arena_new(0);
    struct profile *p;
    struct counts r;
    struct counts_shares spread;
    uint32_t map[1];
    map[0] = profile_sum_build(sum, b->ids[0]);
    for (unsigned g = 0; g < K; g++) {
        upload_init(&u);
        upload_histogram(&u, 0, 0x1000, 0x2000, 0x1000 / 4, 100);
        one(&u, g);
        profile_sum_add(sum, &u.counts, map, g + 1);
        cr_assert_eq(rollup_sum_add_upload(groups, &u.counts, g + 1, g, &e), PROFD_OK);
        b->processes.of[g] = 1;
    }
    cr_assert_eq(profile_sum_finish(sum, &p, &e), PROFD_OK);
    cr_assert_eq(rollup_sum_finish(groups, &r, &spread, &e), PROFD_OK);
    p->shares = spread;
    b->report = (struct report_request){.profile = p, .objects = b->objects, .names = b->paths};
    const struct diff_side_request request = {&b->report, &b->processes};
    cr_assert_eq(diff_side_make(a, scratch, &request, &b->side, &e), PROFD_OK, "%s", e.sentence);
    arena_free(scratch);
}

static const char A[] = "aa112233445566778899aabbccddeeff00112233", B[] = "bb112233445566778899aabbccddeeff00112233";
static struct bed before, after;

static struct diff compare(struct arena *a, struct diff_request r)
{
    struct diff d;
    r.sides[0] = &before.side;
    r.sides[1] = &after.side;
    r.programs[0] = before.ids[0];
    r.programs[1] = after.ids[0];
    r.fdr = 0.05;
    for (int i = 0; i < DIFF_METRIC_COUNT; i++) {
        r.metrics[i] = true;
    }
    diff_make(a, &r, &d);
    return d;
}

static const struct diff_item *find(const struct diff *d, enum diff_metric metric, const char *name)
{
    const struct diff_table *t = &d->tables[metric];
    for (uint32_t i = 0; i < t->count; i++) {
        if (strcmp(diff_function(d, t->items[i].row)->name, name) == 0) {
            return &t->items[i];
        }
    }
    cr_assert_fail("no row %s", name);
    return NULL;
}

static const char *const NAMES[] = {"main", "parse", "print"};

/* main 300 ticks, parse 100 + g; parse is called 10 times by main, print twice. */
static void fill_before(struct upload *u, unsigned g)
{
    upload_bin(u, 0, 300);
    upload_bin(u, 0x100 / 4, 100 + g);
    upload_arc(u, COUNTS_NOWHERE, 0, 0, 0x1000, 1);
    upload_arc(u, 0, 0x1010, 0, 0x1100, 10);
    upload_arc(u, 0, 0x1020, 0, 0x1200, 2);
}

static void fill_after(struct upload *u, unsigned g)
{
    upload_bin(u, 0, 300);
    upload_bin(u, 0x100 / 4, 130 + g * 7 % 16);
    upload_arc(u, COUNTS_NOWHERE, 0, 0, 0x1000, 1);
    upload_arc(u, 0, 0x1010, 0, 0x1100, 11);
    upload_arc(u, 0, 0x1020, 0, 0x1200, 2);
}

/* Parse, and the code that calls into other objects, "[plt]". */
static void fill_plt(struct upload *u, unsigned g)
{
    fill_after(u, g);
    upload_bin(u, 0x300 / 4, g < 4 ? 1 : 0);
}

Test(diff, a_class_of_addresses_is_no_new_function)
{
    struct arena *a = arena_new(0);
    bed_init(&before, A, NAMES, NULL, 3);
    bed_init(&after, B, NAMES, NULL, 3);
    fixture_range(&after.fixture, OBJECT_RANGE_PLT, 0x1300, 0x1340);
    bed_run(&before, a, fill_before);
    bed_run(&after, a, fill_plt);
    const struct diff d = compare(a, (struct diff_request){.fdr = 0});
    const struct diff_item *x = find(&d, DIFF_SELF, "[plt]");
    cr_assert_eq(x->verdict, DIFF_TOO_FEW, "4 ticks");
    cr_assert(d.match.rows[x->row].idle && d.only_count[1] == 0, "it is not listed as a function of B alone");
    arena_free(a);
}

Test(diff, a_slower_function_that_is_called_once_more)
{
    struct arena *a = arena_new(0);
    bed_init(&before, A, NAMES, NULL, 3);
    bed_init(&after, B, NAMES, NULL, 3);
    bed_run(&before, a, fill_before);
    bed_run(&after, a, fill_after);
    struct diff d = compare(a, (struct diff_request){.judge = true, .judge_metric = DIFF_SELF, .threshold = 0.1});
    const struct diff_item *x = find(&d, DIFF_SELF, "parse");
    near(x->ratio[0], 1720.0 / 6520, 1e-15);
    near(x->ratio[1], 2200.0 / 7000, 1e-15);
    near(x->estimate.log, 0.17509729642215688, 1e-12);
    near(x->estimate.error, 0.010083432038000864, 1e-12);
    near(x->estimate.freedom, 27, 0);
    cr_assert_eq(x->verdict, DIFF_CHANGED);
    cr_assert_eq(d.judgement, DIFF_ABOVE);
    cr_assert_eq(d.above, 1);
    x = find(&d, DIFF_TOTAL, "main");
    cr_assert_eq(x->verdict, DIFF_CONSTANT, "all time passes in main");
    near(x->ratio[0], 1, 1e-12);
    x = find(&d, DIFF_PARENT, "parse");
    cr_assert_eq(x->verdict, DIFF_CONSTANT_CHANGED);
    near(x->ratio[0], 10, 0);
    near(x->ratio[1], 11, 0);
    cr_assert_eq(find(&d, DIFF_PARENT, "print")->verdict, DIFF_CONSTANT);
    cr_assert_eq(find(&d, DIFF_CALLS, "parse")->verdict, DIFF_CONSTANT_CHANGED);
    near(find(&d, DIFF_CALLS, "parse")->ratio[1], 11, 0);
    near(find(&d, DIFF_TIME, "parse")->ratio[0], 17.20 / 160, 1e-15);
    cr_assert_eq(d.tables[DIFF_TIME].common.functions, 0, "two functions stand for no others");
    cr_assert_eq(d.tables[DIFF_SELF].items[0].verdict, DIFF_CHANGED, "changed ones first");
    cr_assert_eq(d.only_count[0] + d.only_count[1], 0);
    d = compare(a, (struct diff_request){.judge = true, .judge_metric = DIFF_SELF, .threshold = 0.19});
    cr_assert_eq(d.judgement, DIFF_UNKNOWN, "0.19 lies in the interval");
    d = compare(a, (struct diff_request){.judge = true, .judge_metric = DIFF_SELF, .threshold = 0.5});
    cr_assert_eq(d.judgement, DIFF_BELOW);
    arena_free(a);
}

Test(diff, only_what_is_watched)
{
    static const char *const WATCH[] = {"print", "nobody"};
    struct arena *a = arena_new(0);
    bed_init(&before, A, NAMES, NULL, 3);
    bed_init(&after, B, NAMES, NULL, 3);
    bed_run(&before, a, fill_before);
    bed_run(&after, a, fill_after);
    struct diff d = compare(
        a, (struct diff_request){
               .watch = WATCH, .watch_count = 2, .judge = true, .judge_metric = DIFF_PARENT, .threshold = 0.02});
    cr_assert_eq(d.tables[DIFF_SELF].count, 0, "print has no ticks");
    cr_assert_eq(d.tables[DIFF_PARENT].count, 1);
    cr_assert(d.watched[0] && !d.watched[1]);
    cr_assert_eq(d.judgement, DIFF_UNKNOWN, "nothing is known of nobody");
    arena_free(a);
}

/* Each function 100 ticks and a call from main. */
static uint32_t functions;
static void fill_even(struct upload *u, unsigned g)
{
    (void)g;
    for (uint32_t i = 0; i < functions; i++) {
        upload_bin(u, i * 0x100 / 4, 100);
    }
    for (uint32_t i = 1; i < functions; i++) {
        upload_arc(u, 0, 0x1000 + 4 * i, 0, 0x1000 + 0x100 * i, 1);
    }
}

Test(diff_match, names_files_and_clones)
{
    static const char *const OLD[] = {"main", "init", "init", "sum.constprop.0", "sum", "gone", "moved", "put.isra.0"};
    static const char *const OLD_FILES[] = {"",
                                            "/old/src/a.c",
                                            "/old/src/b.c",
                                            "/old/src/s.c",
                                            "/old/src/s.c",
                                            "/old/src/g.c",
                                            "/old/src/m.c",
                                            "/old/src/p.c"};
    static const char *const NEW[] = {"main", "init", "init", "sum.part.1", "put", "fresh", "moved"};
    static const char *const NEW_FILES[] = {
        "", "/new/src/b.c", "/new/src/a.c", "/new/src/s.c", "/new/src/p.c", "/new/src/f.c", "/new/lib/other.c"};
    struct arena *a = arena_new(0);
    bed_init(&before, A, OLD, OLD_FILES, functions = 8);
    bed_run(&before, a, fill_even);
    bed_init(&after, B, NEW, NEW_FILES, functions = 7);
    bed_run(&after, a, fill_even);
    struct diff d = compare(a, (struct diff_request){.fdr = 0});
    cr_assert_eq(d.only_count[0], 1);
    cr_assert_str_eq(diff_function(&d, d.only[0][0])->name, "gone");
    cr_assert_eq(d.only_count[1], 1);
    cr_assert_str_eq(diff_function(&d, d.only[1][0])->name, "fresh");
    cr_assert_eq(d.match.row_count, 8);
    for (uint32_t i = 0; i < d.match.row_count; i++) {
        const struct diff_row *row = &d.match.rows[i];
        if (row->count[0] == 0 || row->count[1] == 0) {
            continue;
        }
        const char *x = before.side.functions[d.match.member[0][row->first[0]]].file,
                   *y = after.side.functions[d.match.member[1][row->first[1]]].file;
        bool moved = strcmp(diff_function(&d, i)->name, "moved") == 0;
        cr_assert(moved ||
                      strcmp(strrchr(x, '\0') - (x[0] != '\0' ? 3 : 0), strrchr(y, '\0') - (y[0] != '\0' ? 3 : 0)) == 0,
                  "%s is not %s", x, y);
    }
    arena_free(a);
}

/* A renamed function has the code that it had. Code that several functions have says nothing; nor do equal names with
 * other code keep a function from being the same. */
Test(diff_match, the_same_code_under_another_name)
{
    static const char *const OLD[] = {"main", "parse", "twin1", "twin2", "same", "tiny"};
    static const char *const NEW[] = {"main", "parse_all", "twin3", "same"};
    static const uint64_t OLD_CODE[] = {1, 7, 8, 8, 9, 11}, NEW_CODE[] = {1, 7, 8, 10};
    static uint32_t inlined[1];
    struct arena *a = arena_new(0);
    bed_init(&before, A, OLD, NULL, functions = 6);
    for (uint32_t i = 0; i < 6; i++) {
        before.fixture.symbols[i].code = OLD_CODE[i];
    }
    bed_run(&before, a, fill_even);
    bed_init(&after, B, NEW, NULL, functions = 4);
    for (uint32_t i = 0; i < 4; i++) {
        after.fixture.symbols[i].code = NEW_CODE[i];
    }
    inlined[0] = fixture_name(&after.fixture, "tiny");
    after.fixture.object.inlined = inlined;
    after.fixture.object.inlined_count = 1;
    bed_run(&after, a, fill_even);
    struct diff d = compare(a, (struct diff_request){.fdr = 0});
    cr_assert_eq(d.match.row_count, 7, "%u", d.match.row_count);
    const struct diff_row *row = &d.match.rows[find(&d, DIFF_SELF, "parse_all")->row];
    cr_assert(row->renamed && row->count[0] == 1 && row->count[1] == 1);
    cr_assert_str_eq(before.side.functions[d.match.member[0][row->first[0]]].name, "parse");
    cr_assert(!d.match.rows[find(&d, DIFF_SELF, "same")->row].renamed);
    cr_assert_eq(d.only_count[0], 3, "twin1, twin2 and tiny");
    cr_assert_eq(d.only_count[1], 1, "twin3");
    for (uint32_t i = 0; i < 3; i++) {
        bool tiny = strcmp(diff_function(&d, d.only[0][i])->name, "tiny") == 0;
        cr_assert_eq(d.match.rows[d.only[0][i]].inlined, tiny);
    }
    arena_free(a);
}

/* One build before and after: twelve functions, all of them a tenth slower in B but one that is half as fast. */
static bool slow;
static void fill_common(struct upload *u, unsigned g)
{
    for (uint32_t i = 0; i < functions; i++) {
        uint64_t ticks = (1000 + 10 * ((g * 5 + i * 3) % 16)) * (slow ? 11 : 10) / 10;
        upload_bin(u, i * 0x100 / 4, slow && i == 4 ? 2 * ticks : ticks);
    }
    for (uint32_t i = 1; i < functions; i++) {
        upload_arc(u, 0, 0x1000 + 4 * i, 0, 0x1000 + 0x100 * i, (g % 3 + 1) * 100);
    }
    upload_arc(u, COUNTS_NOWHERE, 0, 0, 0x1000, g % 3 + 1);
}

Test(diff, what_all_have_in_common)
{
    static const char *const TWELVE[] = {"main", "a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k"};
    struct arena *a = arena_new(0);
    functions = 12;
    bed_init(&before, A, TWELVE, NULL, 12);
    bed_init(&after, A, TWELVE, NULL, 12);
    slow = false;
    bed_run(&before, a, fill_common);
    slow = true;
    bed_run(&after, a, fill_common);
    struct diff d = compare(a, (struct diff_request){.paired = true});
    const struct diff_table *t = &d.tables[DIFF_TIME];
    cr_assert_eq(t->common.functions, 11, "%u: d deviates", t->common.functions);
    near(t->common.estimate.log, log(1.1), 1e-4);
    near(find(&d, DIFF_TIME, "d")->estimate.log, log(2), 1e-4);
    cr_assert_leq(find(&d, DIFF_TIME, "d")->verdict, DIFF_CONSTANT_CHANGED);
    cr_assert_eq(t->counts[DIFF_CHANGED] + t->counts[DIFF_CONSTANT_CHANGED], 1, "the others are as all are");
    cr_assert_eq(d.tables[DIFF_CALLS].counts[DIFF_CONSTANT], 12);
    before.side.per_tick = after.side.per_tick = 0.005;
    d = compare(a, (struct diff_request){.paired = true});
    cr_assert_eq(d.tables[DIFF_TIME].tests, 0, "each sample brought 200 ticks: too few of them");
    cr_assert_eq(d.tables[DIFF_TIME].counts[DIFF_TOO_FEW], t->count);
    arena_free(a);
}

/* Two processes' worth of work in B; six functions are called once in each process. */
static void fill_started(struct upload *u, unsigned g)
{
    for (uint32_t i = 1; i < functions; i++) {
        const uint64_t calls = (slow ? 200 : 100) + (g * 7 + i * 5) % 16;
        upload_arc(u, 0, 0x1000 + 4 * i, 0, 0x1000 + 0x100 * i, i <= 6 ? 1 : calls);
    }
    upload_bin(u, 0, 100);
}

Test(diff, what_is_called_once_in_each_process_is_no_part_of_the_common_factor)
{
    static const char *const NAMED[] = {"main", "a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k"};
    struct arena *a = arena_new(0);
    functions = 12;
    bed_init(&before, A, NAMED, NULL, 12);
    bed_init(&after, B, NAMED, NULL, 12);
    slow = false;
    bed_run(&before, a, fill_started);
    slow = true;
    bed_run(&after, a, fill_started);
    struct diff d = compare(a, (struct diff_request){.fdr = 0});
    const struct diff_table *t = &d.tables[DIFF_CALLS];
    cr_assert_eq(t->common.functions, 5, "%u", t->common.functions);
    near(t->common.estimate.log, log(207.5 / 107.5), 0.01);
    cr_assert_eq(t->counts[DIFF_CONSTANT], 6);
    cr_assert_eq(t->counts[DIFF_CHANGED], 0);
    arena_free(a);
}

static void fill_one_group(struct upload *u, unsigned g)
{
    upload_bin(u, 0, 100);
    if (g < 11) {
        upload_bin(u, 0x100 / 4, 1000);
        upload_arc(u, 0, 0x1010, 0, 0x1100, 1);
    }
}

static void fill_few(struct upload *u, unsigned g)
{
    (void)g;
    upload_bin(u, 0x000 / 4, 2);
    upload_bin(u, 0x100 / 4, 3);
}

/* Main has all time but that of print, which only 5 groups have, and none if it was not seen. */
static uint64_t seldom;
static void fill_seldom(struct upload *u, unsigned g)
{
    upload_bin(u, 0, 300 + g);
    upload_bin(u, 0x200 / 4, g < 5 ? seldom : 0);
    upload_arc(u, 0, 0x1010, 0, 0x1100, 1);
}

/* 16 times as many of parse, of 40,000. */
static unsigned rare;
static void fill_rare(struct upload *u, unsigned g)
{
    (void)g;
    upload_bin(u, 0, 2500 - rare);
    upload_bin(u, 0x100 / 4, rare);
    upload_arc(u, 0, 0x1010, 0, 0x1100, 1);
}

/* A side has 128 ticks. Both together decide: 150 a side, if they were alike. */
Test(diff, what_is_tested_does_not_depend_on_the_change)
{
    static const struct {
        unsigned after;
        enum diff_verdict verdict;
    } CASES[] = {{8, DIFF_TOO_FEW}, {10, DIFF_TOO_FEW}, {11, DIFF_CONSTANT_CHANGED}, {24, DIFF_CONSTANT_CHANGED}};
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct arena *a = arena_new(0);
        bed_init(&before, A, NAMES, NULL, 3);
        bed_init(&after, B, NAMES, NULL, 3);
        rare = 8;
        bed_run(&before, a, fill_rare);
        rare = CASES[i].after;
        bed_run(&after, a, fill_rare);
        struct diff d = compare(a, (struct diff_request){.fdr = 0});
        cr_assert_eq(find(&d, DIFF_SELF, "parse")->verdict, CASES[i].verdict, "%u ticks", 16 * rare);
        cr_assert_eq(find(&d, DIFF_TIME, "parse")->verdict, CASES[i].verdict, "%u ticks", 16 * rare);
        arena_free(a);
    }
}

Test(diff, where_nothing_is_tested_nothing_can_be_told)
{
    struct arena *a = arena_new(0);
    bed_init(&before, A, NAMES, NULL, 3);
    bed_init(&after, B, NAMES, NULL, 3);
    bed_run(&before, a, fill_few);
    bed_run(&after, a, fill_few);
    struct diff d = compare(a, (struct diff_request){.judge = true, .judge_metric = DIFF_SELF, .threshold = 0.02});
    cr_assert_eq(d.tables[DIFF_SELF].counts[DIFF_TOO_FEW], 2);
    cr_assert_eq(d.judgement, DIFF_UNKNOWN);
    cr_assert_eq(d.unknown, 2);
    arena_free(a);
}

/* The function is in the machine code of both sides, has ticks enough for a test, and too few processes have them. */
Test(diff, what_few_processes_of_one_side_have_is_uncertain_and_first)
{
    for (int side = 0; side < 2; side++) {
        struct arena *a = arena_new(0);
        bed_init(&before, A, NAMES, NULL, 3);
        bed_init(&after, B, NAMES, NULL, 3);
        seldom = side == 0 ? 500 : 0;
        bed_run(&before, a, fill_seldom);
        seldom = side == 1 ? 500 : 0;
        bed_run(&after, a, fill_seldom);
        struct diff d = compare(a, (struct diff_request){.judge = true, .judge_metric = DIFF_SELF, .threshold = 0.02});
        const struct diff_item *x = &d.tables[DIFF_SELF].items[0];
        cr_assert_str_eq(diff_function(&d, x->row)->name, "print");
        cr_assert_eq(x->verdict, DIFF_UNCERTAIN);
        cr_assert(!x->estimated && x->few[0] && x->few[1] && x->needs == DIFF_NEEDS_NOTHING);
        cr_assert_eq(d.unknown, (unsigned)side, "what is gone has not grown");
        arena_free(a);
    }
}

Test(diff, too_few_groups_are_no_test)
{
    struct arena *a = arena_new(0);
    bed_init(&before, A, NAMES, NULL, 3);
    bed_init(&after, B, NAMES, NULL, 3);
    bed_run(&before, a, fill_one_group);
    bed_run(&after, a, fill_one_group);
    struct diff d = compare(a, (struct diff_request){.fdr = 0});
    cr_assert_eq(find(&d, DIFF_SELF, "parse")->verdict, DIFF_TOO_FEW);
    cr_assert(!find(&d, DIFF_SELF, "parse")->estimated);
    cr_assert_eq(find(&d, DIFF_CALLS, "parse")->verdict, DIFF_TOO_FEW);
    cr_assert_neq(find(&d, DIFF_SELF, "main")->verdict, DIFF_TOO_FEW);
    before.processes.of[3] = 0;
    after.side.processes_unknown = 1;
    d = compare(a, (struct diff_request){.fdr = 0});
    cr_assert(!d.tables[DIFF_CALLS].made && d.tables[DIFF_CALLS].why_not != NULL && d.tables[DIFF_SELF].made);
    arena_free(a);
}
