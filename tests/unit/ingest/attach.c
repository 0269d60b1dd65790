/* What a harvest brings: each number under its build, once, and how true it is. */
#include "ingest/attach.h"

#include <criterion/criterion.h>
#include <string.h>

#include "tests/unit/ingest/attach_bed.h"
#include "tests/unit/ingest/bed.h"

#define SECOND INT64_C(1000000000)

static struct live live;
static struct ledger ledger;
static struct attach_process *process;

static void enter(void)
{
    attach_bed_open();
    live_open(&live, 8u << 20, 1);
    live_seal(&live);
    memset(&ledger, 0, sizeof ledger);
    process = live_attach(&live, NULL);
}

static void leave(void)
{
    attach_close(process);
    ledger_done(&ledger);
    live_close(&live);
    attach_bed_close();
}

TestSuite(ingest_attach, .init = enter, .fini = leave);

static void harvest(int64_t seconds, enum attach_end end)
{
    cr_assert_eq(live_harvest(process, &ledger, START + seconds * SECOND, end), PROFD_OK, "%s", sentence.sentence);
}

Test(ingest_attach, what_is_new_is_added_once)
{
    live_usual(&live);
    struct attach_chunk *arcs = live_table(&live, ATTACH_KIND_ARCS, 8),
                        *again = live_table(&live, ATTACH_KIND_ARCS, 100);
    struct attach_chunk *ticks = live_table(&live, ATTACH_KIND_SAMPLES, 8);
    live_count(arcs, 3, 1, 0x10, 2, 0x20, 11);
    live_count(again, 99, 1, 0x10, 2, 0x20, 5); /* of another thread */
    live_count(arcs, 4, ATTACH_MODULE_NONE, 0, 1, 0x30, 7);
    live_count(ticks, 1, 0, 0, 1, 0xfffff, 4);
    live_count(ticks, 0, 0, 0, ATTACH_MODULE_NONE, 0, 9);
    live.h->counters[ATTACH_COUNTER_TICKS] = 15;
    live.h->counters[ATTACH_COUNTER_TICKS_INSIDE] = 2;
    harvest(10, ATTACH_LIVES);
    cr_assert_eq(ledger_arc(&ledger, "aa", 0x400010, "bb", 0x20), 16);
    cr_assert_eq(ledger_arc(&ledger, "", 0, "aa", 0x400030), 7);
    cr_assert_eq(ledger_ticks(&ledger, "aa", 0x4fffff), 4);
    cr_assert(ledger.ticks == 4 && ledger.calls == 23 && ledger.processes == 1 && ledger.inexact == 0);
    cr_assert(ledger.start == START && ledger.end == START + 10 * SECOND);
    cr_assert_eq(ledger.counters[COLLECTOR_PROCESSES], 1);
    cr_assert_eq(ledger.counters[COLLECTOR_SAMPLED_NS], 150000000);
    cr_assert_eq(ledger.counters[COLLECTOR_INSIDE_NS], 20000000);
    cr_assert_eq(ledger.counters[COLLECTOR_OUTSIDE_NS], 90000000);
    harvest(20, ATTACH_LIVES); /* nothing new: nothing is stored */
    cr_assert_eq(ledger.uploads, 1);
    live_count(again, 99, 1, 0x10, 2, 0x20, 1);
    harvest(30, ATTACH_ENDED);
    cr_assert_eq(ledger_arc(&ledger, "aa", 0x400010, "bb", 0x20), 17);
    cr_assert(ledger.calls == 24 && ledger.processes == 1 && ledger.counters[COLLECTOR_PROCESSES] == 1 && ledger.ended);
    cr_assert(ledger.start == START + 20 * SECOND && ledger.end == START + 30 * SECOND, "since it was last read");
}

Test(ingest_attach, nothing_is_said_before_the_program_is_known)
{
    harvest(1, ATTACH_LIVES);
    cr_assert_eq(ledger.uploads, 0);
    live_usual(&live);
    harvest(2, ATTACH_LIVES);
    cr_assert(ledger.uploads == 1 && ledger.counters[COLLECTOR_PROCESSES] == 1 && ledger.calls == 0);
}

Test(ingest_attach, an_end_without_news_is_told)
{
    live_usual(&live);
    harvest(1, ATTACH_LIVES);
    harvest(2, ATTACH_ENDED);
    cr_assert(ledger.ended && ledger.uploads == 2 && ledger.counters[COLLECTOR_PROCESSES] == 1);
}

Test(ingest_attach, a_failed_commit_is_as_if_nothing_had_been_read)
{
    struct attach_harvest h;
    live_usual(&live);
    struct attach_chunk *arcs = live_table(&live, ATTACH_KIND_ARCS, 8);
    for (int i = 0; i < 3; i++) {
        live_count(arcs, 1, 1, 1, 1, 2, 5);
        cr_assert_eq(attach_harvest(process, checker, 0, START + i, ATTACH_LIVES, &h, &sentence), PROFD_OK);
        cr_assert(h.any && h.put.base == 0 && h.calls == 5u * (i + 1) && h.put.processes_started == 1);
        attach_harvest_done(&h);
    }
    harvest(10, ATTACH_LIVES);
    cr_assert_eq(ledger_arc(&ledger, "aa", 0x400001, "aa", 0x400002), 15);
}

Test(ingest_attach, a_new_daemon_begins_where_the_old_one_stopped)
{
    live_usual(&live);
    struct attach_chunk *arcs = live_table(&live, ATTACH_KIND_ARCS, 8);
    live_count(arcs, 1, 1, 1, 1, 2, 5);
    live.h->counters[ATTACH_COUNTER_CPU_NS] = 1000;
    harvest(1, ATTACH_LIVES);
    attach_close(process);
    live_count(arcs, 1, 1, 1, 1, 2, 6);
    live.h->counters[ATTACH_COUNTER_CPU_NS] = 1500;
    process = live_attach(&live, &ledger);
    harvest(2, ATTACH_LIVES);
    cr_assert(ledger_arc(&ledger, "aa", 0x400001, "aa", 0x400002) == 11 && ledger.counters[COLLECTOR_CPU_NS] == 1500);
    cr_assert(ledger.generation == 2 && ledger.processes == 1 && ledger.start == START + SECOND);
}

/* rate 100: a tick is 10 ms */
Test(ingest_attach, cpu_time_is_the_kernels_or_the_ticks)
{
    struct attach_summary f;
    live_usual(&live);
    live.h->cpu_before = 5 * SECOND;
    live.h->counters[ATTACH_COUNTER_TICKS] = 8;
    attach_set_cpu(process, 6 * SECOND);
    harvest(1, ATTACH_LIVES);
    attach_get_summary(process, &f);
    cr_assert_eq(f.cpu_ns, SECOND);
    attach_set_cpu(process, 6 * SECOND + 9999999);
    harvest(2, ATTACH_LIVES);
    attach_get_summary(process, &f);
    cr_assert_eq(f.cpu_ns, SECOND, "less than 10 ms are no news");
    attach_set_cpu(process, 4 * SECOND);
    live.h->counters[ATTACH_COUNTER_TICKS] = 10;
    live.h->counters[ATTACH_COUNTER_TICKS_UNDELIVERED] = 1;
    harvest(3, ATTACH_LIVES);
    attach_get_summary(process, &f);
    cr_assert_eq(f.cpu_ns, SECOND + 30000000, "the kernel does not know: ticks since");
    live.h->counters[ATTACH_COUNTER_ENDED] = 1;
    live.h->counters[ATTACH_COUNTER_CPU_NS] = SECOND + 31000000;
    attach_set_cpu(process, 9 * SECOND);
    harvest(4, ATTACH_ENDED);
    attach_get_summary(process, &f);
    cr_assert_eq(f.cpu_ns, SECOND + 31000000, "an end by exit states it");
}

Test(ingest_attach, counts_that_go_down_are_no_news)
{
    live_usual(&live);
    struct attach_chunk *arcs = live_table(&live, ATTACH_KIND_ARCS, 8);
    live_count(arcs, 1, 1, 1, 1, 2, 50);
    live.h->counters[ATTACH_COUNTER_CALLS_LOST] = 5;
    harvest(1, ATTACH_LIVES);
    live_slot(arcs, 1)->count = 20;
    live.h->counters[ATTACH_COUNTER_CALLS_LOST] = 2;
    harvest(2, ATTACH_LIVES);
    live_slot(arcs, 1)->count = 0;
    harvest(3, ATTACH_LIVES);
    cr_assert_eq(ledger.uploads, 1);
    live_slot(arcs, 1)->count = 53;
    live.h->counters[ATTACH_COUNTER_CALLS_LOST] = 6;
    harvest(4, ATTACH_LIVES);
    cr_assert(ledger.calls == 53 && ledger.counters[COLLECTOR_CALLS_LOST] == 6);
}

Test(ingest_attach, losses_are_told_when_they_happen_and_states_as_long_as_they_last)
{
    static const struct {
        enum attach_counter counter;
        bool state;
        uint32_t why;
    } cases[] = {{ATTACH_COUNTER_CALLS_LOST, false, INEXACT_CALLS_LOST},
                 {ATTACH_COUNTER_CALLS_JUNK, false, INEXACT_CALLS_LOST},
                 {ATTACH_COUNTER_TICKS_DROPPED, false, INEXACT_TICKS_LOST},
                 {ATTACH_COUNTER_TICKS_BLOCKED, false, INEXACT_TICKS_LOST},
                 {ATTACH_COUNTER_PAUSES, false, INEXACT_PAUSED},
                 {ATTACH_COUNTER_MODULES_LOST, true, INEXACT_CALLS_LOST | INEXACT_TICKS_LOST},
                 {ATTACH_COUNTER_FORKS_UNSEEN, true, INEXACT_CALLS_LOST},
                 {ATTACH_COUNTER_OVERLAPS, true, INEXACT_CALLS_LOST},
                 {ATTACH_COUNTER_THREADS_UNTIMED, true, INEXACT_TICKS_LOST},
                 {ATTACH_COUNTER_FOREIGN_SIGPROF, true, INEXACT_TICKS_LOST}};
    live_usual(&live);
    struct attach_chunk *arcs = live_table(&live, ATTACH_KIND_ARCS, 8);
    for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        for (unsigned step = 0; step < 3; step++) {
            ledger.inexact = 0;
            live_count(arcs, 1, 1, 1, 1, 2, 1);
            live.h->counters[cases[i].counter] += step == 1;
            harvest(3 * i + step, ATTACH_LIVES);
            cr_assert_eq(ledger.inexact & (INEXACT_CALLS_LOST | INEXACT_TICKS_LOST | INEXACT_PAUSED),
                         step == 1 || (step == 2 && cases[i].state) ? cases[i].why : 0, "%s, step %u",
                         attach_counter_name(cases[i].counter), step);
        }
        live.h->counters[cases[i].counter] = 0;
        ledger_done(&ledger);
        attach_close(process);
        process = live_attach(&live, NULL);
        ledger.inexact = 0;
    }
}

Test(ingest_attach, undelivered_ticks_are_counted_and_told_beyond_the_error_of_the_sample)
{
    live_usual(&live);
    struct attach_chunk *arcs = live_table(&live, ATTACH_KIND_ARCS, 8);
    for (unsigned step = 0; step < 3; step++) {
        ledger.inexact = 0;
        live_count(arcs, 1, 1, 1, 1, 2, 1);
        live.h->counters[ATTACH_COUNTER_TICKS_UNDELIVERED] += step == 1 ? 2 * live.h->rate : 0;
        harvest(step, ATTACH_LIVES);
        cr_assert_eq(ledger.inexact & (INEXACT_CALLS_LOST | INEXACT_TICKS_LOST), step == 1 ? INEXACT_TICKS_LOST : 0,
                     "step %u", step);
        cr_assert_eq(ledger.counters[COLLECTOR_UNDELIVERED_NS], step == 0 ? 0 : UINT64_C(2000000000));
    }
}

Test(ingest_attach, functions_left_out_make_all_later_calls_inexact)
{
    live_usual(&live);
    struct attach_chunk *arcs = live_table(&live, ATTACH_KIND_ARCS, 8);
    live.h->counters[ATTACH_COUNTER_LEFT_OUT] = 3;
    for (unsigned step = 0; step < 2; step++) {
        ledger.inexact = 0;
        live_count(arcs, 1, 1, 1, 1, 2, 1);
        harvest(step, ATTACH_LIVES);
        cr_assert_eq(ledger.inexact, INEXACT_LEFT_OUT, "step %u: %x", step, ledger.inexact);
    }
    cr_assert(ledger.counters[COLLECTOR_LEFT_OUT] == 3 && ledger.counters[COLLECTOR_OVERLAPS] == 0);
    live.h->counters[ATTACH_COUNTER_OVERLAPS] = 1;
    live_count(arcs, 1, 1, 1, 1, 2, 1);
    harvest(2, ATTACH_LIVES);
    cr_assert(ledger.inexact == (INEXACT_LEFT_OUT | INEXACT_CALLS_LOST) && ledger.counters[COLLECTOR_OVERLAPS] == 1);
}

Test(ingest_attach, modules_without_an_id_are_outside_and_twins_are_one)
{
    live_usual(&live);
    uint32_t nameless = live_module(&live, 0, 0, 0, 0x1000, "jit"),
             twin = live_module(&live, 0xbb, 20, 0, 0x2000, "/copy/libx.so");
    struct attach_chunk *arcs = live_table(&live, ATTACH_KIND_ARCS, 8),
                        *ticks = live_table(&live, ATTACH_KIND_SAMPLES, 8);
    live_count(arcs, 1, nameless, 0x10, 2, 0x20, 1);
    live_count(arcs, 2, nameless, 0x20, twin, 0x20, 2);
    live_count(arcs, 3, 1, 0x20, nameless, 0x20, 4);
    live_count(ticks, 1, 0, 0, nameless, 5, 3);
    live_count(ticks, 2, 0, 0, twin, 5, 3);
    live_count(ticks, 3, 0, 0, 2, 5, 4);
    harvest(1, ATTACH_LIVES);
    cr_assert_eq(ledger_arc(&ledger, "", 0, "bb", 0x20), 3);
    cr_assert_eq(ledger_arc(&ledger, "aa", 0x400020, "", 0), 4);
    cr_assert_eq(ledger_ticks(&ledger, "bb", 5), 7);
    cr_assert(ledger.counters[COLLECTOR_OUTSIDE_NS] == 30000000 && ledger.counters[COLLECTOR_MODULES_NAMELESS] == 1);
    live_module(&live, 0, 0, 0, 0x1000, "another");
    harvest(2, ATTACH_LIVES);
    cr_assert_eq(ledger.counters[COLLECTOR_MODULES_NAMELESS], 2);
}

Test(ingest_attach, what_is_not_yet_there_comes_with_the_next_harvest)
{
    live_usual(&live);
    struct attach_chunk *arcs = live_table(&live, ATTACH_KIND_ARCS, 8);
    live_count(arcs, 1, 1, 0x10, 3, 0x20, 3); /* its row is being written */
    live_count(arcs, 2, 1, 0x10, 2, 0x20, 3);
    live_identity(arcs, 2)->self_module = 0;
    harvest(1, ATTACH_LIVES);
    cr_assert(ledger.calls == 0 && ledger.inexact == 0);
    live_module(&live, 0xcc, 20, 0, 0x1000, "late");
    live_identity(arcs, 2)->self_module = 2;
    harvest(2, ATTACH_LIVES);
    cr_assert(ledger_arc(&ledger, "aa", 0x400010, "cc", 0x20) == 3 &&
              ledger_arc(&ledger, "aa", 0x400010, "bb", 0x20) == 3);
    live_count(arcs, 3, 1, 0x10, 4, 0x20, 3);
    harvest(3, ATTACH_ENDED); /* it never will */
    cr_assert(ledger.inexact == (INEXACT_CALLS_LOST | INEXACT_TICKS_LOST) && ledger.calls == 6);
}

Test(ingest_attach, a_build_has_one_geometry_however_large_it_is)
{
    live_module(&live, 0xaa, 20, 0x1000, 0x1000 + 0xffffffffull, "huge");
    struct attach_chunk *ticks = live_table(&live, ATTACH_KIND_SAMPLES, 8);
    live_count(ticks, 1, 0, 0, 1, 5, 1);
    live_count(ticks, 2, 0, 0, 1, (1u << 30) - 1, 2);
    live_count(ticks, 3, 0, 0, 1, 1u << 30, 3);
    live_count(ticks, 4, 0, 0, 1, 0xfffffffeu, 4);
    harvest(1, ATTACH_LIVES);
    cr_assert_eq(ledger_ticks(&ledger, "aa", 0x1005), 1);
    cr_assert_eq(ledger_ticks(&ledger, "aa", 0x40000fff), 2);
    cr_assert_eq(ledger_ticks(&ledger, "aa", 0x40001000), 3);
    cr_assert_eq(ledger_ticks(&ledger, "aa", 0x100000ffe), 4);
}

Test(ingest_attach, executables_that_are_stored_decide)
{
    struct bed_object o;
    bed_object(&o, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa");
    cr_assert_eq(bed_deliver(&o, 0, true, ""), PROFD_OK, "%s", sentence.sentence); /* code at 0x1000 */
    live_module(&live, 0xaa, 20, 0, 0x8000, "/bin/program");
    struct attach_chunk *ticks = live_table(&live, ATTACH_KIND_SAMPLES, 8);
    live_count(ticks, 1, 0, 0, 1, 0x1000, 1);
    harvest(1, ATTACH_LIVES);
    cr_assert_eq(ledger.ticks, 1);
    live_count(ticks, 2, 0, 0, 1, 0x7000, 1);
    cr_assert_eq(live_harvest(process, &ledger, START + 2 * SECOND, ATTACH_LIVES), PROFD_WRONG_BUILD);
    cr_assert(strstr(sentence.sentence, "0x7000"), "%s", sentence.sentence);
}

Test(ingest_attach, executables_are_wanted_until_they_are_there)
{
    struct attach_harvest h;
    struct bed_object o;
    live_usual(&live);
    for (uint64_t generation = 0; generation < 2; generation++) {
        cr_assert_eq(attach_harvest(process, checker, generation, START, ATTACH_ENDED, &h, &sentence), PROFD_OK);
        cr_assert_eq(h.missing_count, 2 - generation);
        cr_assert_str_eq(h.missing[1 - generation].name, "/lib/libx.so");
        attach_harvest_done(&h);
        bed_object(&o, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa");
        cr_assert_eq(bed_deliver(&o, 0, true, ""), PROFD_OK, "%s", sentence.sentence);
    }
}

Test(ingest_attach, the_summary_is_that_of_the_latest_harvest)
{
    struct attach_summary f;
    static const char labels[] = "service=s\0empty=";
    attach_get_summary(process, &f);
    cr_assert(f.pid == 4711 && f.pid_inside == 7 && f.uid == 1000 && f.start == START && f.rate == 100 &&
              f.build_id[0] == 0);
    live_usual(&live);
    live_labels(&live, labels, sizeof labels);
    struct attach_chunk *arcs = live_table(&live, ATTACH_KIND_ARCS, 10);
    live_count(arcs, 1, 1, 1, 2, 2, 5);
    live.h->counters[ATTACH_COUNTER_CPU_NS] = 90000000;
    live.h->counters[ATTACH_COUNTER_TICKS] = 8;
    harvest(1, ATTACH_LIVES);
    live_count(arcs, 1, 1, 1, 2, 2, 6);
    live.h->counters[ATTACH_COUNTER_TICKS_DROPPED] = 1;
    harvest(2, ATTACH_LIVES);
    attach_get_summary(process, &f);
    cr_assert_str_eq(f.build_id, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa");
    cr_assert_str_eq(f.name, "/bin/program");
    cr_assert(f.calls == 11 && f.calls_before == 5 && f.ticks == 8 && f.cpu_ns == 90000000);
    cr_assert(f.harvested == START + 2 * SECOND && f.harvested_before == START + SECOND && f.bytes == live.h->used);
    cr_assert(f.calls_exact && !f.ticks_exact);
    cr_assert_str_eq(f.why, "TICKS_DROPPED");
    cr_assert(f.label_count == 2 && strcmp(f.labels[0].name, "service") == 0 && strcmp(f.labels[0].value, "s") == 0);
}

Test(ingest_attach, labels_and_host_are_the_uploads)
{
    struct attach_harvest h;
    static const char labels[] = "zone=b\0service=s\0empty=";
    live_usual(&live);
    live_labels(&live, labels, sizeof labels);
    cr_assert_eq(attach_harvest(process, checker, 0, START, ATTACH_LIVES, &h, &sentence), PROFD_OK);
    const struct store_upload *u = &h.put;
    cr_assert(u->uid == 1000 && u->build_count == 2 && u->program == 0 && u->label_count == 2 && u->received == START);
    cr_assert_str_eq(u->host, HOST);
    cr_assert_str_eq(u->labels[0].name, "service");
    cr_assert_str_eq(u->builds[1].name, "/lib/libx.so");
    attach_harvest_done(&h);
}
