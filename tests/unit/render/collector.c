/* Coverage, other dimensions than seconds, and calls that were sampled: what each format says of them. */
#include <criterion/criterion.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/render/cycle.h"

static struct coverage counters;
static struct report report;
static struct provenance provenance;
static struct render_input in;

static void setup(void)
{
    counters = (struct coverage){.any = true};
    report = cycle_report;
    provenance = cycle_provenance;
    in = cycle_input();
    in.report = &report;
    in.provenance = &provenance;
    in.coverage = &counters;
    in.show.verbose = 1;
}

TestSuite(render_collector, .init = setup);

static struct buffer render(const char *format)
{
    struct arena *a = arena_new(0);
    struct buffer out;
    struct profd_error e;
    buffer_init(&out, 1 << 20);
    cr_assert_eq(render_find(format)->render(&in, a, &out, &e), PROFD_OK);
    cr_assert(!out.failed);
    arena_free(a);
    return out;
}

static json_t *render_json(void)
{
    struct buffer out = render("json");
    json_t *root = json_loadb(out.data, out.size, JSON_REJECT_DUPLICATES, NULL);
    cr_assert_not_null(root);
    buffer_done(&out);
    return root;
}

/* part stands in the output, or does not. */
static void says(const char *format, const char *part, bool wanted)
{
    struct buffer out = render(format);
    bool found = memmem(out.data, out.size, part, strlen(part)) != NULL;
    buffer_add_char(&out, '\0');
    cr_assert_eq(found, wanted, "%s: '%s' is %s\n%.3000s", format, part, wanted ? "missing" : "there", out.data);
    buffer_done(&out);
}

static void usual(void)
{
    counters.counters[COLLECTOR_PROCESSES] = 2;
    counters.counters[COLLECTOR_CPU_NS] = 2000000000;
    counters.counters[COLLECTOR_SAMPLED_NS] = 1990000000;
    counters.counters[COLLECTOR_INSIDE_NS] = 40000000;
    counters.counters[COLLECTOR_OUTSIDE_NS] = 20000000;
    counters.counters[COLLECTOR_CALLS_LOST] = 3;
    counters.counters[COLLECTOR_PAUSES] = 1;
    counters.counters[63] = 5;
}

Test(render_collector, json_has_every_word_and_what_follows)
{
    usual();
    json_t *root = render_json(), *c = json_object_get(root, "collector");
    const struct {
        const char *name;
        double value;
    } CASES[] = {{"coverage", 1.93 / 1.96},
                 {"overhead", 0.04 / 1.99},
                 {"without_ticks_seconds", 0},
                 {"clock_off_seconds", 0},
                 {"attributed_seconds", 1.93},
                 {"processes", 2},
                 {"cpu_seconds", 2},
                 {"sampled_seconds", 1.99},
                 {"collector_seconds", 0.04},
                 {"outside_seconds", 0.02},
                 {"calls_lost", 3},
                 {"pauses", 1},
                 {"blocked_seconds", 0},
                 {"ends_not_seen", 0}};
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        cr_assert_float_eq(json_number_value(json_object_get(c, CASES[i].name)), CASES[i].value, 1e-12, "%s",
                           CASES[i].name);
    }
    for (uint32_t i = 0; i < COLLECTOR_COUNTERS_MAX; i++) {
        cr_assert(collector_counter_name(i) == NULL || json_is_number(json_object_get(c, collector_counter_name(i))),
                  "%s", collector_counter_name(i));
    }
    cr_assert_eq(json_object_size(c), 6 + 28 + 2);
    cr_assert(json_is_false(json_object_get(c, "wider_than_report")) && json_is_false(json_object_get(c, "saturated")));
    json_decref(root);
    in.scope = "everywhere";
    counters.saturated = true;
    counters.counters[COLLECTOR_CPU_NS] = 0;
    root = render_json();
    c = json_object_get(root, "collector");
    cr_assert(json_is_true(json_object_get(c, "wider_than_report")) && json_is_true(json_object_get(c, "saturated")));
    cr_assert(json_is_null(json_object_get(c, "coverage")), "without CPU time nobody knows it");
    json_decref(root);
}

Test(render_collector, without_words_nothing_is_said)
{
    counters.any = false;
    json_t *root = render_json();
    cr_assert_null(json_object_get(root, "collector"));
    json_decref(root);
    says("text", "Coverage", false);
    says("text", "collector", false);
    in.coverage = NULL;
    says("text", "Coverage", false);
    says("json", "collector", false);
}

Test(render_collector, the_heading_says_where_the_time_went)
{
    usual();
    says("text",
         "\nOverhead  2% of the ticks were inside the collector, a rough estimate of the time spent counting\n"
         "Coverage  98% of the CPU time outside the collector is in known objects: 1.9s of 1.96s in 2 processes\n"
         "          2s sampled: 40ms inside the collector, 20ms outside every known object\n"
         "          3 calls lost for lack of memory\n"
         "          1 pause of counting\n"
         "Total  ",
         true);
    says("text", "\n\n                     0.04  [collector] (not in the total)", true);
    counters.counters[COLLECTOR_CALLS_LOST] = 1;
    counters.counters[COLLECTOR_INSIDE_NS] = counters.counters[COLLECTOR_OUTSIDE_NS] = 0;
    counters.counters[COLLECTOR_PROCESSES] = 1;
    says("text",
         " in 1 process\n          2s sampled, all of it in known objects\n          1 call lost for lack of memory\n",
         true);
    says("text", "[collector]", false);
    report.ticks = 0;
    counters.counters[COLLECTOR_INSIDE_NS] = counters.counters[COLLECTOR_SAMPLED_NS];
    says("text", "\nOverhead  100% of the ticks were inside the collector, a rough estimate", true); /* 199 ticks */
    usual();
    counters.counters[COLLECTOR_PROCESSES] = 1;
    counters.counters[COLLECTOR_CALLS_LOST] = 1;
    counters.counters[COLLECTOR_INSIDE_NS] = counters.counters[COLLECTOR_OUTSIDE_NS] = 0;
    report.ticks = cycle_report.ticks;
    says("text", "\nOverhead  below 1.56% of the CPU time: no tick was inside the collector\n",
         true); /* no tick of 193 */
    report.ticks = 1000000;
    says("text", "\nOverhead  below 0.01% of the CPU time: no tick was inside the collector\n", true);
    report.ticks = cycle_report.ticks;
    counters.counters[COLLECTOR_CPU_NS] = 10000000000;
    says("text",
         "          8.01s without ticks: counting was paused\n"
         "          (so times of a call are not known)\n",
         true);
    says("text", "1.02     1.02        3                      b\n", true);
    says("text", "Overhead", false); /* what the rest was spent on, nobody knows */
    counters.counters[COLLECTOR_CPU_NS] = 1900000000;
    says("text", "1.02     1.02        3     340ms     340ms  b\n", true);
    says("text", "in known objects: all of 1.9s in 1 process\n", true); /* 104.7 % of 193 ticks */
    report.ticks = 1000;
    says("text", "Coverage  100.00% of the CPU time outside the collector is in known objects: all of 1.9s in ", true);
    says("json", "\"coverage\":1,", true);
    counters.counters[COLLECTOR_CPU_NS] = 1700000000;
    says("text",
         "Coverage  100.00% of the CPU time outside the collector is in known objects: 2s of 1.7s in 1 "
         "process, because a tick stands for a whole period\n",
         true);
    report.ticks = cycle_report.ticks;
    counters.counters[COLLECTOR_CPU_NS] = 0;
    says("text",
         "Coverage  unknown, because no CPU time was recorded: 2s in known objects, 0s of CPU time in 1 process\n",
         true);
    counters.counters[COLLECTOR_INSIDE_NS] = 0;
    says("text", "2s sampled, all of it in known objects\n", true);
}

Test(render_collector, the_time_inside_it_belongs_to_whole_processes)
{
    usual();
    in.scope = "build";
    says("text", "          these are for whole processes; the report is for one build\n", true);
    says("text", "[collector]", false);
    in.scope = "program";
    in.show.focus = "main";
    says("text", "[collector]", false);
}

Test(render_collector, of_recorded_processes)
{
    usual();
    counters = (struct coverage){.any = true};
    counters.counters[COLLECTOR_RECORDED] = 3;
    counters.counters[COLLECTOR_PROCESSES] = 2;
    counters.counters[COLLECTOR_CPU_NS] = 1000000000;
    counters.counters[COLLECTOR_SAMPLED_NS] = 1930000000;
    counters.counters[COLLECTOR_UNCLOCKED_NS] = 980000000;
    says("text",
         "\nCoverage  95% of the CPU time is in known objects: 950ms of 1s in 2 processes\n"
         "          980ms more of processes that ended before their CPU time was read\n",
         true);
    says("text", "Overhead", false);
    json_t *root = render_json(), *c = json_object_get(root, "collector");
    cr_assert_float_eq(json_number_value(json_object_get(c, "coverage")), 0.95, 1e-12);
    cr_assert(json_is_null(json_object_get(c, "overhead")) && json_is_null(json_object_get(c, "overhead_below")));
    json_decref(root);
    counters.counters[COLLECTOR_UNCLOCKED_NS] = 1930000000;
    counters.counters[COLLECTOR_CPU_NS] = counters.counters[COLLECTOR_PROCESSES] = 0;
    says("text",
         "\nCoverage  unknown, because the processes ended before their CPU time was read: 1.9s in known objects\n",
         true);
    counters.counters[COLLECTOR_UNCLOCKED_NS] = 0;
    counters.counters[COLLECTOR_CPU_NS] = 4000000000;
    counters.counters[COLLECTOR_PROCESSES] = 1;
    says("text", "s without ticks: the kernel took no samples\n", true);
    counters.counters[COLLECTOR_KERNEL_UNSEEN] = 1;
    says("text", "s without ticks: time in the kernel was not sampled\n", true);
}

Test(render_collector, every_reason_has_words_for_one_and_for_many)
{
    for (uint32_t i = COLLECTOR_CALLS_LOST; i <= COLLECTOR_KERNEL_UNSEEN; i++) {
        if (i == COLLECTOR_THREADS || i == COLLECTOR_CLOCK_OFF_NS || i == COLLECTOR_UNCLOCKED_NS ||
            i == COLLECTOR_RECORDED) {
            continue; /* not a loss, or a time */
        }
        char one[32], many[32];
        counters = (struct coverage){.any = true};
        counters.counters[i] = 1;
        says("text", "\n          1 ", true);
        snprintf(one, sizeof one, "\n          1 ");
        counters.counters[i] = UINT64_C(1) << 60;
        snprintf(many, sizeof many, "\n          %llu ", 1ULL << 60);
        says("text", many, true);
        says("text", one, false);
    }
}

Test(render_collector, reasons_speak_of_calls_or_of_ticks)
{
    static const struct {
        uint32_t bit;
        bool calls, ticks;
    } CASES[] = {{0, true, true},
                 {INEXACT_THREADS_UNKNOWN, false, true},
                 {INEXACT_CALLER_BUCKET, false, true},
                 {INEXACT_BINS_16_BIT, true, false},
                 {INEXACT_CLOCK, false, false},
                 {INEXACT_SATURATED, false, false},
                 {INEXACT_CALLS_LOST, false, true},
                 {INEXACT_TICKS_LOST, true, false},
                 {INEXACT_END_NOT_SEEN, false, false},
                 {INEXACT_AMBIGUOUS_NAMES, false, false},
                 {INEXACT_SAMPLED, false, true}};
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        provenance.inexact = CASES[i].bit;
        json_t *root = render_json(), *p = json_object_get(root, "provenance");
        cr_assert_eq(json_is_true(json_object_get(p, "exact")), CASES[i].bit == 0);
        cr_assert_eq(json_is_true(json_object_get(p, "calls_exact")), CASES[i].calls, "bit %u", CASES[i].bit);
        cr_assert_eq(json_is_true(json_object_get(p, "ticks_exact")), CASES[i].ticks, "bit %u", CASES[i].bit);
        json_decref(root);
        says("text", "(ticks are exact, calls are not)\n", CASES[i].ticks && !CASES[i].calls);
        says("text", "(calls are exact, ticks are not)\n", CASES[i].calls && !CASES[i].ticks);
        says("pprof", "calls: exact", CASES[i].calls);
    }
    for (uint32_t bit = 1; bit <= INEXACT_ALL; bit <<= 1) {
        cr_assert(bit == INEXACT_LABEL_LEFT_OUT || bit & (INEXACT_CALLS | INEXACT_TICKS), "bit %u speaks of nothing",
                  bit);
    }
}

/* A number of calls that is none does not look like one. */
Test(render_collector, sampled_calls_are_marked)
{
    static const char *const MARKS[][2] = {{"text", "~calls    sampled, at least in part: "},
                                           {"text", "   ~calls  per call"},
                                           {"text", "   ~called"},
                                           {"text", " ticks at 100 a second, not all calls were counted\n"},
                                           {"dot", "\\n~3 calls"},
                                           {"dot", "label=\"~1\""},
                                           {"dot", "// ~: calls were sampled"},
                                           {"callgrind", "\ndesc: Calls: sampled"},
                                           {"pprof", "calls: sampled"},
                                           {"json", "\"inexact_reasons\":[\"sampled\"]"},
                                           {"graph", "\"inexact_reasons\":[\"sampled\"]"}};
    for (size_t i = 0; i < sizeof MARKS / sizeof *MARKS; i++) {
        provenance.inexact = INEXACT_SAMPLED;
        says(MARKS[i][0], MARKS[i][1], true);
        provenance.inexact = INEXACT_THREADS_UNKNOWN;
        says(MARKS[i][0], MARKS[i][1], false);
    }
}

Test(render_collector, other_dimensions_are_named)
{
    static const struct report_dimension OTHERS[] = {{"cycles", 7}, {"wall", UINT64_C(1) << 60}};
    says("text", "Left out", false);
    report.other_dimensions = OTHERS;
    report.other_dimension_count = 2;
    says("text", "\nLeft out  cycles (7 ticks), wall (1152921504606846976 ticks); select one with --dimension NAME\n",
         true);
    json_t *root = render_json(), *others = json_object_get(json_object_get(root, "totals"), "other_dimensions");
    cr_assert_eq(json_array_size(others), 2);
    cr_assert_str_eq(json_string_value(json_object_get(json_array_get(others, 1), "dimension")), "wall");
    cr_assert_str_eq(json_string_value(json_object_get(json_array_get(others, 1), "ticks_str")), "1152921504606846976");
    json_decref(root);
}

/* One is followed by the singular; what is counted one by one has no ticks and no rate. */
Test(render_collector, totals_read_as_a_sentence)
{
    static const uint32_t ONE[] = {1};
    report.ticks = report.calls = 1;
    says("text", " in 1 tick at 100 a second, 1 call\n", true);
    report.dimension = "instructions";
    report.in_seconds = false;
    report.rates = ONE;
    report.ticks = 743628;
    says("text", "Total     743628 instructions, 1 call\n", true);
    usual();
}

/* A program may end before its first tick. */
Test(render_collector, without_ticks_no_times_are_known)
{
    usual();
    counters.counters[COLLECTOR_INSIDE_NS] = counters.counters[COLLECTOR_OUTSIDE_NS] = 0;
    counters.counters[COLLECTOR_SAMPLED_NS] = 0;
    counters.counters[COLLECTOR_CPU_NS] = 4000000;
    says("text", "\nCoverage  unknown: no tick in 4ms of CPU time in 2 processes, so no times are known\n", true);
    says("text", "of the CPU time outside", false);
    says("text", "sampled", false);
    says("text", "without ticks", false);
    counters.counters[COLLECTOR_CPU_NS] = 4000000000;
    says("text",
         "          4s without ticks: counting was paused\n"
         "          (so times of a call are not known)\n",
         true);
    counters.counters[COLLECTOR_CLOCK_OFF_NS] = 3000000000;
    counters.counters[COLLECTOR_SIGPROF_FOREIGN] = counters.counters[COLLECTOR_THREADS_UNTIMED] = 1;
    says("text",
         "4s without ticks: the clock was off, counting was paused, the program handles SIGPROF itself, threads have "
         "no timer\n",
         true);
    counters.counters[COLLECTOR_CLOCK_OFF_NS] = counters.counters[COLLECTOR_SIGPROF_FOREIGN] = 0;
    counters.counters[COLLECTOR_THREADS_UNTIMED] = counters.counters[COLLECTOR_PAUSES] = 0;
    says("text", "4s without ticks: threads block SIGPROF or still ran when their process ended\n", true);
    json_t *root = render_json(), *c = json_object_get(root, "collector");
    cr_assert_str_eq(json_string_value(json_object_get(c, "without_ticks_reason")),
                     "threads block SIGPROF or still ran when their process ended");
    cr_assert_float_eq(json_number_value(json_object_get(c, "without_ticks_seconds")), 4, 1e-12);
    json_decref(root);
}

/* What is no time has its own unit everywhere. */
Test(render_collector, units_are_those_of_the_dimension)
{
    report.dimension = "i-cache misses";
    report.in_seconds = false;
    usual();
    says("text", "Total     1.93 i-cache misses in 193 ticks at 100 a unit, 16 calls\n", true);
    says("text",
         "  %        cumulative         self               self      total\n"
         " time i-cache misses  i-cache misses    calls  per call  per call  name\n"
         " 52.85           1.02           1.02        3      0.34      0.34  b\n",
         true);
    says("text", "seconds", false);
    says("text", "[collector]", false);
    says("callgrind", "\nevents: i_cache_misses\nsummary: 2\n", true);
    says("callgrind", "nanoseconds", false);
    says("pprof", "nanoseconds", false);
    says("pprof", "i-cache misses", true);
    says("dot", "(self 1.02 i-cache misses)", true);
    says("speedscope", "\"unit\":\"none\"", true);
    says("tree", "\"dimension\":\"i-cache misses\",\"unit\":\"units\"", true);
    says("folded", ";b 1020000\n", false);
    report.dimension = "wall";
    report.in_seconds = true;
    says("text", "Total     1.93 wall seconds in 193 ticks at 100 a second", true);
    says("callgrind", "event: ns : elapsed time", true);
    says("callgrind", "\nevents: ns\n", true);
    says("pprof", "nanoseconds", true);
    says("pprof", "wall", true);
    says("pprof", "cpu", false);
    says("speedscope", "\"unit\":\"seconds\"", true);
}
