/* The reader of perf script's text: the forms its fields give it, chains to trees, several events, processes and
 * threads. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "import/import_any_internal.h"
#include "proto/limits.h"

static struct arena *arena;
static struct import_perf *perf;

static enum profd_status parse(const char *text, const char *event, uint32_t *count, struct profd_error *e)
{
    arena_free(arena);
    arena = arena_new(64u << 20);
    enum profd_status status = import_perf_new(arena, event, &perf, e);
    uint64_t number = 0;
    while (status == PROFD_OK && *text) {
        size_t n = strcspn(text, "\n");
        status = import_perf_line(perf, text, n, ++number, e);
        text += n + (text[n] == '\n');
    }
    return status == PROFD_OK ? import_perf_finish(perf, UINT64_C(1000) * 1000000000u, count, e) : status;
}

static const struct import_profile *parsed(const char *text, uint32_t processes)
{
    struct profd_error e = {""};
    uint32_t count = 0;
    cr_assert_eq(parse(text, NULL, &count, &e), PROFD_OK, "%s", e.sentence);
    cr_assert_eq(count, processes);
    return import_perf_process(perf, 0);
}

static bool scan_is(struct import_scan s, const char *text)
{
    return import_scan_is(&s, text);
}

Test(perf, headings)
{
    static const struct {
        const char *line, *comm;
        uint64_t pid, tid, time, period;
        const char *event, *place;
    } cases[] = {
        {"t 31892 22760.378733:     250000 cpu-clock:ppp: ", "t", 31892, 31892, 22760378733000, 250000, "cpu-clock:ppp",
         ""},
        {"t 31892/31893 22760.378733:     250000 cpu-clock:ppp: ", "t", 31892, 31893, 22760378733000, 250000,
         "cpu-clock:ppp", ""},
        {"               t  1747 [001] 2.000000001:  99 cycles:u:      7f4faff433e0 f.constprop.0+0x270 (/lib/ld.so)",
         "t", 1747, 1747, 2000000001, 99, "cycles:u", "7f4faff433e0 f.constprop.0+0x270 (/lib/ld.so)"},
        {"Web Content 12/13 1.5: 1 cpu_core/cycles/: ", "Web Content", 12, 13, 1500000000, 1, "cpu_core/cycles/", ""},
        {"pool 2 1234/1235 [000] 1.000000: 7 cycles:", "pool 2", 1234, 1235, 1000000000, 7, "cycles", ""},
        {"kworker/0:1-events     9 5.000000: sched:sched_switch: prev_comm=x ==> next", "kworker/0:1-events", 9, 9,
         5000000000, 0, "sched:sched_switch", "prev_comm=x ==> next"},
        {"t 77 ", "t", 77, 77, 0, 0, "", ""},
        {"t 77 401136 main (/bin/t)", "t", 77, 77, 0, 0, "", "401136 main (/bin/t)"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct perf_heading h;
        cr_assert(perf_heading_parse(import_scan_of(cases[i].line, strlen(cases[i].line)), &h), "case %zu", i);
        cr_expect(scan_is(h.comm, cases[i].comm), "case %zu: \"%.*s\"", i, (int)import_scan_left(&h.comm), h.comm.at);
        cr_expect(h.pid == cases[i].pid && h.tid == cases[i].tid, "case %zu", i);
        cr_expect_eq(h.has_time ? h.time : 0, cases[i].time, "case %zu", i);
        cr_expect_eq(h.has_period ? h.period : 0, cases[i].period, "case %zu", i);
        cr_expect(scan_is(h.event, cases[i].event) && scan_is(h.place, cases[i].place), "case %zu: \"%.*s\" \"%.*s\"",
                  i, (int)import_scan_left(&h.event), h.event.at, (int)import_scan_left(&h.place), h.place.at);
    }
    static const char *const none[] = {"", "t", "123", "hello world", "t 12x 1.0:", "{\"a\": 1}"};
    for (size_t i = 0; i < sizeof none / sizeof none[0]; i++) {
        struct perf_heading h;
        cr_expect(!perf_heading_parse(import_scan_of(none[i], strlen(none[i])), &h), "\"%s\"", none[i]);
    }
}

Test(perf, places)
{
    static const struct {
        const char *line;
        uint64_t address, offset;
        const char *name, *object;
    } cases[] = {
        {"55d0c0de1234 main+0x1f (/usr/bin/x)", 0x55d0c0de1234, 0x1f, "main", "/usr/bin/x"},
        {"1b main (/usr/bin/x)", 0x1b, UINT64_MAX, "main", "/usr/bin/x"},
        {"1b ns::f(int (*)(char), A<(B)1>)+0x2 (/opt/a (b)/x)", 0x1b, 2, "ns::f(int (*)(char), A<(B)1>)",
         "/opt/a (b)/x"},
        {"1b operator+ (/x)", 0x1b, UINT64_MAX, "operator+", "/x"},
        {"1b [unknown] ([unknown])", 0x1b, UINT64_MAX, "", "[unknown]"},
        {"1b f+0x1 (/usr/bin/x (deleted))", 0x1b, 1, "f", "/usr/bin/x (deleted)"},
        {"1b f+0x1 (/usr/bin/x+0x1b)", 0x1b, 1, "f", "/usr/bin/x"},
        {"1b (/usr/bin/x)", 0x1b, UINT64_MAX, "", "/usr/bin/x"},
        {"1b f", 0x1b, UINT64_MAX, "f", ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct perf_place p;
        cr_assert(perf_place_parse(import_scan_of(cases[i].line, strlen(cases[i].line)), &p), "case %zu", i);
        cr_expect_eq(p.address, cases[i].address, "case %zu", i);
        cr_expect_eq(p.has_offset ? p.offset : UINT64_MAX, cases[i].offset, "case %zu", i);
        cr_expect(scan_is(p.name, cases[i].name) && scan_is(p.object, cases[i].object),
                  "case %zu: \"%.*s\" in \"%.*s\"", i, (int)import_scan_left(&p.name), p.name.at,
                  (int)import_scan_left(&p.object), p.object.at);
    }
    struct perf_place p;
    cr_assert(!perf_place_parse(import_scan_of("main.c:12", 9), &p));
    cr_assert(!perf_place_parse(import_scan_of("12345678901234567 f (/x)", 24), &p), "above 64 bits");
}

Test(perf, events)
{
    static const char *const cases[][2] = {{"cycles", "cycles"},
                                           {"cycles:uppp", "cycles"},
                                           {"cpu-clock:pppH", "cpu-clock"},
                                           {"sched:sched_switch", "sched:sched_switch"},
                                           {"cpu_core/cycles/u", "cycles"},
                                           {"cycles:", "cycles"},
                                           {":u", ":u"},
                                           {"", ""}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct import_scan got = perf_event_name(import_scan_of(cases[i][0], strlen(cases[i][0])));
        cr_expect(scan_is(got, cases[i][1]), "%s: %.*s", cases[i][0], (int)import_scan_left(&got), got.at);
    }
}

#define CHAIN(time)                                                                                                    \
    "t 7/7 " time ":  1003009 cpu-clock:ppp: \n\t     116b heavy+0x32 (/bin/t)\n\t     11e0 inl (inlined)\n"           \
    "\t     11e7 mid+0xe (/bin/t)\n\t     1221 main+0x20 (/bin/t)\n\t    0 [unknown] ([unknown])\n\n"

Test(perf, chains_have_places)
{
    const struct import_profile *p = parsed("# a comment\n" CHAIN("1.000000") CHAIN("3.500000"), 1);
    cr_assert_not(p->sampled);
    cr_assert_eq(p->frame_count, 3);
    cr_assert_eq(p->pair_count, 0, "no call was counted");
    cr_assert_eq(p->frames[0].address, 0x116b);
    cr_assert_eq(p->frames[0].offset, 0x32);
    cr_assert_eq(p->frames[0].ticks, 2, "an even clock counts its ticks");
    cr_assert_eq(p->frames[1].address, 0x11e6, "a caller is where it goes on, less one byte");
    cr_assert_eq(p->frames[1].offset, 0xd);
    cr_assert(strcmp(p->dimension, "seconds") == 0 && p->rate == 997);
    cr_assert_eq(p->program_object, p->frames[0].object, "comm is its file's name");
    cr_assert_eq(p->end, UINT64_C(1000000000000));
    cr_assert_eq(p->start, UINT64_C(997500000000));
}

/* The number of the node of a frame below a node. */
static uint32_t node_at(const struct import_profile *p, uint32_t parent, uint32_t frame, bool leaf)
{
    for (uint32_t i = 0; i < p->node_count; i++) {
        if (p->nodes[i].parent == parent && p->nodes[i].frame == frame && p->nodes[i].leaf == leaf) {
            return i;
        }
    }
    cr_assert(false, "no node of frame %u below %u", frame, parent);
    return IMPORT_NONE;
}

Test(perf, chains_become_a_tree)
{
    static const char again[] = "t 7/7 4.000000:  1003009 cpu-clock:ppp: \n\t     11e6 mid+0xd (/bin/t)\n"
                                "\t     1221 main+0x20 (/bin/t)\n"
                                "t 7/7 5.000000:  1003009 cpu-clock:ppp:      116b heavy+0x32 (/bin/t)\n";
    char text[2048];
    snprintf(text, sizeof text, CHAIN("1.000000") CHAIN("3.500000") "%s", again);
    const struct import_profile *p = parsed(text, 1);
    cr_assert_eq(p->frame_count, 3);
    cr_assert_eq(p->frames[0].ticks, 3);
    uint32_t outer = node_at(p, IMPORT_NONE, 2, false), mid = node_at(p, outer, 1, false),
             heavy = node_at(p, mid, 0, true), leaf = node_at(p, outer, 1, true);
    cr_assert_eq(p->node_count, 4, "a sample on the line of its heading has no chain");
    cr_assert(p->nodes[heavy].ticks == 2 && p->nodes[leaf].ticks == 1 && p->nodes[mid].ticks == 0);
    cr_assert_not(p->whole_stacks);
}

Test(perf, long_chains_lose_their_outer_frames)
{
    static char text[65536];
    size_t n = (size_t)snprintf(text, sizeof text, "t 7/7 1.000000:  1003009 cpu-clock:ppp: \n");
    for (unsigned i = 0; i < 300; i++) {
        n += (size_t)snprintf(text + n, sizeof text - n, "\t     %x f%u+0x8 (/bin/t)\n", 0x1000 + 16 * i, i);
    }
    const struct import_profile *p = parsed(text, 1);
    cr_assert_eq(p->node_count, LIMIT_STACK_DEPTH + 1);
    cr_assert(p->nodes[0].frame == IMPORT_CUT && p->nodes[0].parent == IMPORT_NONE);
    cr_assert_eq(p->frames[p->nodes[1].frame].address, 0x1000 + 16 * (LIMIT_STACK_DEPTH - 1) - 1);
    cr_assert(p->nodes[LIMIT_STACK_DEPTH].leaf && p->nodes[LIMIT_STACK_DEPTH].ticks == 1);
}

Test(perf, uneven_clocks_and_other_events_have_their_periods)
{
    const struct import_profile *p =
        parsed("t 7 1.0: 1000 task-clock: 11 f+0x1 (/bin/t)\nt 7 1.1: 3000 task-clock: 11 f+0x1 (/bin/t)\n", 1);
    cr_assert_eq(p->frames[0].ticks, 4000);
    cr_assert(strcmp(p->dimension, "seconds") == 0 && p->rate == 1000000000);
    p = parsed("t 7 1.0: 1000 cycles:u: 11 f+0x1 (/bin/t)\nt 7 1.1: 3000 cycles:u: 11 f+0x1 (/bin/t)\n", 1);
    cr_assert_eq(p->frames[0].ticks, 4000);
    cr_assert(strcmp(p->dimension, "cycles") == 0 && p->rate == 1 && p->abbreviation == 'c');
    p = parsed("t 7 11 f+0x1 (/bin/t)\nt 7 11 f+0x1 (/bin/t)\n", 1);
    cr_assert_eq(p->frames[0].ticks, 2);
    cr_assert(strcmp(p->dimension, "samples") == 0);
}

Test(perf, one_event_is_taken)
{
    static const char text[] =
        "t 7 1.0: 5 cycles: 11 f (/bin/t)\nt 7 1.0: 6 instructions: 11 f (/bin/t)\nt 7 1.0: 8 cycles: 11 f (/bin/t)\n";
    cr_assert_eq(parsed(text, 1)->frames[0].ticks, 13);
    cr_assert(strstr(import_perf_words(perf), "1 samples of events other than cycles"), "%s", import_perf_words(perf));
    uint32_t count;
    struct profd_error e = {""};
    cr_assert_eq(parse(text, "instructions", &count, &e), PROFD_OK, "%s", e.sentence);
    cr_assert_eq(import_perf_process(perf, 0)->frames[0].ticks, 6);
    cr_assert_eq(parse(text, "branches", &count, &e), PROFD_REFUSED);
    cr_assert(strstr(e.sentence, "branches"), "%s", e.sentence);
}

Test(perf, processes_threads_and_the_outside)
{
    static const char text[] = "a 1/1 1.0: 5 cycles: 11 f (/bin/a)\na 1/2 1.0: 5 cycles: 11 f (/bin/a)\nb 3/3 1.0: 5 "
                               "cycles: ffff1 k ([kernel.kallsyms])\n"
                               "b 3/3 1.0: 5 cycles: ffff2 l ([kernel.kallsyms])\n";
    const struct import_profile *a = parsed(text, 2), *b = import_perf_process(perf, 1);
    cr_assert_eq(a->frames[0].ticks, 10, "threads of one process");
    cr_assert_str_eq(a->process, "a (1)");
    cr_assert_str_eq(import_perf_words(perf), "");
    cr_assert(b->objects[0].outside);
    cr_assert_eq(b->frame_count, 1, "where it was outside says nothing");
    parsed("a 1 1.0: 5 cycles: 11 f (/bin/a)\na 2 1.0: 5 cycles: 11 f (/bin/a)\n", 2);
    cr_assert(strstr(import_perf_words(perf), "each of 2 threads is stored as a process"), "%s",
              import_perf_words(perf));
    cr_assert(parsed("j 1/1 1.0: 5 cycles: 11 LFoo; (/tmp/perf-1.map)\n", 1)->objects[0].outside);
}

Test(perf, bad_text_is_refused_with_line_and_value)
{
    static const struct {
        const char *text;
        enum profd_status status;
        const char *words[2];
    } cases[] = {
        {"", PROFD_MALFORMED, {"no samples"}},
        {"# only a comment\n", PROFD_MALFORMED, {"no samples"}},
        {"hello world\n", PROFD_MALFORMED, {"line 1", "hello world"}},
        {"{\"a\":\n", PROFD_MALFORMED, {"line 1", "{"}},
        {"t 7 1.0: 5 cycles: \n\t11 f (/bin/t)\n\tnot a place\n", PROFD_MALFORMED, {"line 3", "not a place"}},
        {"\t11 f (/bin/t)\n", PROFD_MALFORMED, {"line 1", "11 f"}},
        {"t 7 1.0: 5 cycles: \n\t11 f\n", PROFD_REFUSED, {"line 2", "dso"}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct profd_error e = {""};
        uint32_t count;
        cr_expect_eq(parse(cases[i].text, NULL, &count, &e), cases[i].status, "case %zu: %s", i, e.sentence);
        for (size_t k = 0; k < 2 && cases[i].words[k]; k++) {
            cr_expect(strstr(e.sentence, cases[i].words[k]), "case %zu: \"%s\" lacks %s", i, e.sentence,
                      cases[i].words[k]);
        }
    }
    uint32_t count;
    cr_assert_eq(parse("t 7 1.0: 5 cycles: \n        11 f (/bin/t)\n  main.c:12\n\nx 7 1.0: PERF_RECORD_LOST lost 4\n",
                       NULL, &count, NULL),
                 PROFD_OK, "source lines and records are passed over");
}
