/* The reader of callgrind.out: every form of the format, costs and calls to the last one, and what is refused. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "import/import_any_internal.h"

static struct arena *arena;

static enum profd_status parse(const char *text, const char *event, const struct import_profile **out,
                               struct profd_error *e)
{
    struct import_callgrind *c;
    struct import_profile *p;
    arena_free(arena);
    arena = arena_new(64u << 20);
    enum profd_status status = import_callgrind_new(arena, event, &c, e);
    uint64_t number = 0;
    while (status == PROFD_OK && *text) {
        size_t n = strcspn(text, "\n");
        status = import_callgrind_line(c, text, n, ++number, e);
        text += n + (text[n] == '\n');
    }
    if (status == PROFD_OK && (status = import_callgrind_finish(c, &p, e)) == PROFD_OK) {
        *out = p;
    }
    return status;
}

static const struct import_profile *parsed(const char *text)
{
    const struct import_profile *p = NULL;
    struct profd_error e = {""};
    cr_assert_eq(parse(text, NULL, &p, &e), PROFD_OK, "%s", e.sentence);
    return p;
}

static bool is(const char *a, const char *b)
{
    return (!a && !b) || (a && b && strcmp(a, b) == 0);
}

static uint64_t ticks_of(const struct import_profile *p, const char *name)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < p->frame_count; i++) {
        sum += is(p->frames[i].name, name) ? p->frames[i].ticks : 0;
    }
    return sum;
}

static uint64_t calls_of(const struct import_profile *p, const char *from, const char *to)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < p->pair_count; i++) {
        sum += is(p->frames[p->pairs[i].from].name, from) && is(p->frames[p->pairs[i].to].name, to) ? p->pairs[i].calls
                                                                                                    : 0;
    }
    return sum;
}

static const struct import_frame *frame_of(const struct import_profile *p, const char *name)
{
    for (uint32_t i = 0; i < p->frame_count; i++) {
        if (is(p->frames[i].name, name)) {
            return &p->frames[i];
        }
    }
    cr_assert_fail("no frame of %s", name);
    return NULL;
}

#define HEAD "# callgrind format\nversion: 1\ncreator: test\ncmd:  ./prog -v x\npositions: line\nevents: Ir\n\n"

Test(callgrind, names_costs_and_calls)
{
    const struct import_profile *p =
        parsed(HEAD "ob=(1) /usr/bin/prog\nfl=(1) main.c\nfn=(1) main\n12 10\n13 5\ncob=(2) libfoo.so\n"
                    "cfi=(2) g.c\ncfn=(2) g\ncalls=2000 40\n13 155\n15 1\n\nob=(2)\nfl=(2)\nfn=(2)\n40 155\n");
    cr_assert_eq(ticks_of(p, "main"), 16);
    cr_assert_eq(ticks_of(p, "g"), 155, "the inclusive cost of a call is nobody's");
    cr_assert_eq(p->pair_count, 1);
    cr_assert_eq(calls_of(p, "main", "g"), 2000);
    cr_assert(is(p->objects[frame_of(p, "g")->object].path, "libfoo.so"));
    cr_assert(is(p->objects[frame_of(p, "main")->object].path, "/usr/bin/prog"));
    cr_assert(is(frame_of(p, "g")->file, "g.c"));
    cr_assert(is(p->program, "./prog"));
    cr_assert(is(p->dimension, "instructions"));
    cr_assert_eq(p->abbreviation, 'I');
    cr_assert_eq(p->rate, 1);
    cr_assert(!p->sampled && p->processes == 1);
    cr_assert_eq(p->frame_count, 2);
}

Test(callgrind, the_called_object_and_file_hold_for_one_call)
{
    const struct import_profile *p =
        parsed(HEAD "ob=prog\nfl=a.c\nfn=main\ncob=lib\ncfl=b.c\ncfn=far\ncalls=1 1\n1 1\ncfn=near\n"
                    "calls=2 1\n1 1\n");
    cr_assert(is(p->objects[frame_of(p, "far")->object].path, "lib"));
    cr_assert(is(p->objects[frame_of(p, "near")->object].path, "prog"));
    cr_assert(is(frame_of(p, "near")->file, "a.c"));
}

Test(callgrind, inlined_files_do_not_move_a_function)
{
    const struct import_profile *p =
        parsed(HEAD "ob=prog\nfl=a.c\nfn=f\n1 1\nfi=inline.h\n9 2\ncfn=g\ncalls=3 1\n9 1\nfe=a.c\n2 4\n"
                    "fn=h\n5 8\n");
    cr_assert_eq(ticks_of(p, "f"), 7);
    cr_assert_eq(p->frame_count, 3);
    cr_assert(is(frame_of(p, "f")->file, "a.c"));
    cr_assert(is(frame_of(p, "g")->file, "inline.h"), "a callee without cfi= is where the code came from");
    cr_assert(is(frame_of(p, "h")->file, "a.c"));
}

Test(callgrind, relative_positions_and_instructions)
{
    const struct import_profile *p =
        parsed("version: 1\npositions: instr line\nevents: Ir Dr\nob=prog\nfn=f\n0x1000 10 3 1\n+4 +2 5\n"
               "* -1 7\n-4 * 1 9\ncfn=g\ncalls=6 0x2000 +5\n+8 * 100\n+1 * 2\n");
    struct {
        uint64_t at, ticks;
    } wanted[] = {{0x1000, 4}, {0x1004, 12}, {0x1009, 2}};
    uint32_t seen = 0;
    for (uint32_t i = 0; i < p->frame_count; i++) {
        for (size_t k = 0; k < 3; k++) {
            if (is(p->frames[i].name, "f") && p->frames[i].has_address && p->frames[i].address == wanted[k].at) {
                cr_assert_eq(p->frames[i].ticks, wanted[k].ticks, "at %llx: %llu", (unsigned long long)wanted[k].at,
                             (unsigned long long)p->frames[i].ticks);
                seen++;
            }
        }
    }
    cr_assert_eq(seen, 3);
    cr_assert_eq(p->frames[p->pairs[0].from].address, 0x1008);
    cr_assert_eq(p->frames[p->pairs[0].to].address, 0x2000);
    cr_assert_eq(p->pairs[0].calls, 6);
    cr_assert_eq(p->objects[0].addressing, IMPORT_MOVED);
}

Test(callgrind, another_event_and_missing_costs)
{
    const char *text = "version: 1\nevents: Ir Dr Dw\nob=p\nfn=f\n1 10 20 30\n2 1\n3\n4 1 2\n";
    const struct import_profile *p;
    cr_assert_eq(parse(text, "Dr", &p, NULL), PROFD_OK);
    cr_assert_eq(ticks_of(p, "f"), 22);
    cr_assert(is(p->dimension, "Dr"));
    cr_assert_eq(p->abbreviation, 'D');
    struct profd_error e = {""};
    cr_assert_eq(parse(text, "Bc", &p, &e), PROFD_REFUSED);
    cr_assert(strstr(e.sentence, "line 2") && strstr(e.sentence, "Bc") && strstr(e.sentence, "Ir Dr Dw"), "%s",
              e.sentence);
}

Test(callgrind, times_are_seconds)
{
    static const struct {
        const char *event;
        uint32_t rate;
    } times[] = {{"ns", 1000000000}, {"us", 1000000}, {"ms", 1000}, {"s", 1}};
    for (size_t i = 0; i < 4; i++) {
        char text[128];
        snprintf(text, sizeof text, "version: 1\nevents: %s\nob=p\nfn=f\n1 10\n", times[i].event);
        const struct import_profile *p = parsed(text);
        cr_assert(is(p->dimension, "seconds"));
        cr_assert_eq(p->rate, times[i].rate);
    }
    cr_assert(
        is(parsed("version: 1\nevents: a_very_long_event_name\nob=p\nfn=f\n1 10\n")->dimension, "a_very_lon~8565"));
}

Test(callgrind, own_exports_say_what_they_hold)
{
    const struct import_profile *p =
        parsed("version: 1\ndesc: Build: 01ab\ndesc: Calls: sampled, not counted\n"
               "event: ns : elapsed time, waiting included, in nanoseconds\nevents: ns\nob=p\nfn=f\n0 10\n");
    cr_assert(p->sampled && is(p->dimension, "wall") && p->rate == 1000000000);
    cr_assert(is(p->program_id, "01ab"));
    p = parsed("version: 1\nevents: instructions\nob=p\nfn=f\n0 10\n");
    cr_assert(!p->sampled && is(p->dimension, "instructions") && p->abbreviation == 'I' && p->rate == 1);
}

/* 1 tick at 99 a second is 10101010.1 ns. */
Test(callgrind, own_exports_keep_their_ticks)
{
    static const char own[] = "version: 1\ndesc: Ticks a second: 99\nevents: ns\nob=p\n";
    char text[400];
    (void)snprintf(text, sizeof text, "%sfn=f\n0 10101010\nfn=g\n0 31010101010\n", own);
    const struct import_profile *p = parsed(text);
    cr_assert(p->rate == 99 && ticks_of(p, "f") == 1 && ticks_of(p, "g") == 3070);
    (void)snprintf(text, sizeof text, "%sfn=f\n0 10101010\n%sfn=f\n0 20202020\n", own, own);
    p = parsed(text);
    cr_assert(p->rate == 99 && ticks_of(p, "f") == 3, "joined exports of one rate");
    (void)snprintf(text, sizeof text, "%sfn=f\n0 10101010\nfn=g\n0 5050505\n", own);
    p = parsed(text);
    cr_assert(p->rate == 1000000000 && ticks_of(p, "g") == 5050505, "a shared tick is not whole");
    (void)snprintf(text, sizeof text, "%sfn=f\n0 10101010\nevents: ns\nfn=f\n0 10101010\n", own);
    p = parsed(text);
    cr_assert(p->rate == 1000000000 && ticks_of(p, "f") == 20202020, "a part that does not say its rate");
    p = parsed("desc: Ticks a second: 99\nevents: Ir\nob=p\nfn=f\n0 10101010\n");
    cr_assert(p->rate == 1 && ticks_of(p, "f") == 10101010, "no time");
}

Test(callgrind, parts_add_up_and_jumps_count_nothing)
{
    const struct import_profile *p =
        parsed(HEAD "part: 1\nob=p\nfl=(1) a.c\nfn=(1) f\n1 10\njump=4 7\n1\njcnd=3/9 5\n+1\njfi=(1)\njfn=(1)\n"
                    "jump=1 1\n2\ncfn=(2) g\ncalls=1 1\n1 1\ntotals: 10\n\npart: 2\nevents: Ir\nfn=(1)\n"
                    "1 5\ncfn=(2)\ncalls=4 1\n1 1\nsummary: 5\n");
    cr_assert_eq(ticks_of(p, "f"), 15);
    cr_assert_eq(calls_of(p, "f", "g"), 5);
    static const struct {
        const char *heads[2];
        uint32_t count;
    } processes[] = {{{"part: 1\n", "part: 2\n"}, 1},
                     {{"part: 2\n", "part: 3\n"}, 0},
                     {{"part: 1\nthread: 2\n", "part: 2\nthread: 2\n"}, 0},
                     {{"part: 1\nthread: 1\n", "part: 1\nthread: 2\n"}, 1},
                     {{"", "part: 2\n"}, 1},
                     {{"pid: 7\npart: 1\n", "pid: 7\npart: 2\n"}, 1},
                     {{"pid: 7\npart: 1\n", "pid: 8\npart: 1\n"}, 2},
                     {{"desc: Processes: 6\n", ""}, 6}};
    for (size_t i = 0; i < sizeof processes / sizeof processes[0]; i++) {
        char text[256];
        snprintf(text, sizeof text, "version: 1\n%sevents: Ir\nob=p\nfn=f\n1 1\n%sevents: Ir\nfn=f\n1 1\n",
                 processes[i].heads[0], processes[i].heads[1]);
        cr_assert_eq(parsed(text)->processes, processes[i].count, "case %zu", i);
    }
}

Test(callgrind, recursion_is_a_pair_of_its_own)
{
    const struct import_profile *p = parsed(HEAD "ob=p\nfl=a.c\nfn=fib\n1 10\ncfn=fib\ncalls=176 1\n1 5\n");
    cr_assert_eq(p->pair_count, 1);
    cr_assert_eq(p->pairs[0].from, p->pairs[0].to);
    cr_assert_eq(p->pairs[0].calls, 176);
}

#define SLOTS                                                                                                          \
    HEAD "ob=prog\nfn=a\n1 1\ncob=???\ncfi=???\ncfn=0x0000000000109060\ncalls=3 0\n1 9\nfn=b\n1 1\ncob=???\ncfi=???\n" \
         "cfn=0x0000000000109060\ncalls=4 0\n1 9\nob=???\nfl=???\nfn=0x0000000000109060\n0 14\n"

Test(callgrind, unknown_slots_are_joined)
{
    const struct import_profile *p =
        parsed(SLOTS "cob=libc\ncfn=qsort\ncalls=7 0\n0 9\ncob=ld.so\ncfn=_dl_runtime_resolve_xsave\n"
                     "calls=1 0\n0 5\n");
    cr_assert_eq(calls_of(p, "a", "qsort"), 3);
    cr_assert_eq(calls_of(p, "b", "qsort"), 4);
    cr_assert_eq(calls_of(p, "0x0000000000109060", "qsort"), 0);
    cr_assert_eq(calls_of(p, "0x0000000000109060", "_dl_runtime_resolve_xsave"), 1);
    const struct import_profile *uneven = parsed(SLOTS "cob=libc\ncfn=qsort\ncalls=6 0\n0 9\n");
    cr_assert_eq(calls_of(uneven, "a", "0x0000000000109060"), 3, "calls would appear or disappear");
    cr_assert_eq(calls_of(uneven, "0x0000000000109060", "qsort"), 6);
    const struct import_profile *two =
        parsed(SLOTS "cob=libc\ncfn=qsort\ncalls=6 0\n0 9\ncob=libc\ncfn=bsearch\ncalls=1 0\n0 9\n");
    cr_assert_eq(calls_of(two, "a", "0x0000000000109060"), 3, "nobody knows whose calls go where");
}

Test(callgrind, a_file_without_objects_is_of_the_program)
{
    const struct import_profile *p = parsed("version: 1\ncmd: /opt/x arg\nevents: Ir\nfn=main\n1 7\n");
    cr_assert_eq(p->object_count, 1);
    cr_assert(is(p->objects[0].path, "/opt/x") && !p->objects[0].outside);
    cr_assert_eq(p->program_object, 0);
}

Test(callgrind, bad_files_are_refused_with_line_and_value)
{
    static const struct {
        const char *text;
        enum profd_status status;
        const char *words[3];
    } cases[] = {
        {"", PROFD_MALFORMED, {"events:"}},
        {"version: 2\n", PROFD_REFUSED, {"line 1", "version 1", "\"2\""}},
        {"version: 1\nhello\n", PROFD_MALFORMED, {"line 2", "hello"}},
        {"events: Ir\n1 1\n", PROFD_MALFORMED, {"line 2", "fn="}},
        {"fn=f\n1 1\n", PROFD_MALFORMED, {"line 2", "events:"}},
        {"events: Ir\nfn=(3)\n", PROFD_MALFORMED, {"line 2", "(3)", "not defined"}},
        {"events: Ir\nfn=f\n1 99999999999999999999\n", PROFD_MALFORMED, {"line 3", "99999999999999999999"}},
        {"events: Ir\nfn=f\n1 x\n", PROFD_MALFORMED, {"line 3", "1 x"}},
        {"events: Ir\nfn=f\n+ 1\n", PROFD_MALFORMED, {"line 3", "+ 1"}},
        {"events: Ir\nfn=f\ncalls=1 1\n", PROFD_MALFORMED, {"line 3", "cfn="}},
        {"events: Ir\nfn=f\ncfn=g\ncalls=-1 1\n", PROFD_MALFORMED, {"line 4", "-1 1", "calls"}},
        {"events: Ir\nfn=f\ncfn=g\ncalls=1\n", PROFD_MALFORMED, {"line 4", "position"}},
        {"events: Ir\nfn=f\ncfn=g\ncalls=1 1\nfn=h\n", PROFD_MALFORMED, {"line 5", "cost line"}},
        {"events: Ir\nfn=f\ncfn=g\ncalls=1 1\n", PROFD_MALFORMED, {"ends after", "calls="}},
        {"events: Ir\nfn=f\nwhat=3\n", PROFD_MALFORMED, {"line 3", "what="}},
        {"positions: line instr\n", PROFD_MALFORMED, {"line 1", "line instr"}},
        {"positions:\n", PROFD_MALFORMED, {"line 1", "is empty"}},
        {"events:\n", PROFD_REFUSED, {"line 1", "no event"}},
        {"events: Ir\nevents: Dr\n", PROFD_REFUSED, {"line 2", "Ir", "Dr"}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct import_profile *p;
        struct profd_error e = {""};
        cr_expect_eq(parse(cases[i].text, NULL, &p, &e), cases[i].status, "case %zu: %s", i, e.sentence);
        for (size_t k = 0; k < 3 && cases[i].words[k]; k++) {
            cr_expect(strstr(e.sentence, cases[i].words[k]), "case %zu: \"%s\" lacks %s", i, e.sentence,
                      cases[i].words[k]);
        }
    }
}

Test(callgrind, a_nul_and_an_exhausted_arena)
{
    struct import_callgrind *c;
    struct profd_error e = {""};
    struct arena *small = arena_new(200u << 10);
    cr_assert_eq(import_callgrind_new(small, NULL, &c, &e), PROFD_OK);
    cr_assert_eq(import_callgrind_line(c, "fn=a\0b", 6, 9, &e), PROFD_MALFORMED);
    cr_assert(strstr(e.sentence, "line 9"), "%s", e.sentence);
    enum profd_status status = import_callgrind_line(c, "events: Ir", 10, 1, &e);
    for (unsigned i = 0; status == PROFD_OK && i < 100000; i++) {
        char line[32];
        status = import_callgrind_line(c, line, (size_t)snprintf(line, sizeof line, "fn=(%u) f%u", i, i), i, &e);
    }
    cr_assert_eq(status, PROFD_LIMIT, "%s", e.sentence);
    arena_free(small);
}
