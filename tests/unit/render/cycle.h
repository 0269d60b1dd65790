/* The cycle example of gprof's manual as a finished report, by hand: what renderers are given. */
#ifndef PROFD_TESTS_RENDER_CYCLE_H
#define PROFD_TESTS_RENDER_CYCLE_H

#include "core/report.h"
#include "proto/message.h"
#include "render/render.h"

enum { START, MAIN, A, B, C, CYCLE_FUNCTIONS };
#define CYCLE_ID "4f2a91c0d3e8b7a65f4e3d2c1b0a998877665544"

static const struct report_arc start_callees[] = {
    {.other = MAIN, .calls = 1, .of_calls = 1, .self = 0.16, .children = 1.77}};
static const struct report_arc main_callers[] = {
    {.other = START, .calls = 1, .of_calls = 1, .self = 0.16, .children = 1.77}};
static const struct report_arc main_callees[] = {{.other = A, .calls = 1, .of_calls = 1, .self = 1.77}};
static const struct report_arc a_callers[] = {{.other = B, .calls = 2, .inside = true},
                                              {.other = MAIN, .calls = 1, .of_calls = 1, .self = 1.77}};
static const struct report_arc a_callees[] = {{.other = C, .calls = 3, .of_calls = 6},
                                              {.other = B, .calls = 3, .inside = true}};
static const struct report_arc b_callers[] = {{.other = A, .calls = 3, .inside = true}};
static const struct report_arc b_callees[] = {{.other = C, .calls = 3, .of_calls = 6},
                                              {.other = A, .calls = 2, .inside = true}};
static const struct report_arc c_callers[] = {{.other = A, .calls = 3, .of_calls = 6},
                                              {.other = B, .calls = 3, .of_calls = 6}};
static const struct report_arc cycle_members[] = {{.other = B, .calls = 3, .self = 1.02},
                                                  {.other = A, .calls = 2, .self = 0.75}};
static const struct report_arc cycle_callers[] = {{.other = MAIN, .calls = 1, .of_calls = 1, .self = 1.77}};
static const struct report_arc cycle_callees[] = {{.other = C, .calls = 6, .of_calls = 6}};

#define ROWS(kind, list) .kind##s = (list), .kind##_count = sizeof(list) / sizeof *(list)
#define NAMED(text) .kind = REPORT_FUNCTION, .name = (text), .raw = (text), .file = ""
static const struct report_function cycle_functions[CYCLE_FUNCTIONS] = {
    [START] = {.index = 2,
               NAMED("start"),
               .address = 0x401000,
               .size = 16,
               .children = 1.93,
               .percent = 100,
               .spontaneous = true,
               ROWS(callee, start_callees)},
    [MAIN] = {.index = 1,
              NAMED("main"),
              .address = 0x401010,
              .size = 16,
              .ticks_total = 16,
              .self = 0.16,
              .children = 1.77,
              .percent = 100,
              .calls = 1,
              .calls_outside = 1,
              ROWS(caller, main_callers),
              ROWS(callee, main_callees)},
    [A] = {.index = 5,
           NAMED("a"),
           .address = 0x401020,
           .size = 16,
           .ticks_total = 75,
           .self = 0.75,
           .percent = 100 * 0.75 / 1.93,
           .calls = 3,
           .calls_outside = 1,
           .calls_inside = 2,
           .cycle = 1,
           ROWS(caller, a_callers),
           ROWS(callee, a_callees)},
    [B] = {.index = 4,
           NAMED("b"),
           .address = 0x401030,
           .size = 16,
           .ticks_total = 102,
           .self = 1.02,
           .percent = 100 * 1.02 / 1.93,
           .calls = 3,
           .calls_inside = 3,
           .cycle = 1,
           ROWS(caller, b_callers),
           ROWS(callee, b_callees)},
    [C] = {.index = 6,
           NAMED("c"),
           .address = 0x401040,
           .size = 16,
           .calls = 6,
           .calls_outside = 6,
           ROWS(caller, c_callers)},
};
static const struct report_cycle cycle_cycles[] = {{.index = 3,
                                                    .number = 1,
                                                    .self = 1.77,
                                                    .percent = 100 * 1.77 / 1.93,
                                                    .calls_outside = 1,
                                                    .calls_inside = 5,
                                                    .closed = true,
                                                    ROWS(member, cycle_members),
                                                    ROWS(caller, cycle_callers),
                                                    ROWS(callee, cycle_callees)}};
static const uint32_t cycle_order[] = {MAIN, START, REPORT_CYCLE | 0, B, A, C};
static const uint32_t cycle_rates[] = {100};
static const char *const cycle_builds[] = {CYCLE_ID};
static const char *const cycle_names[] = {"/srv/bin/cycle"};
static const uint32_t cycle_uids[] = {0, 1000};

static const struct report cycle_report = {
    .function_count = CYCLE_FUNCTIONS,
    .cycle_count = 1,
    .functions = cycle_functions,
    .cycles = cycle_cycles,
    .dimension = "seconds",
    .in_seconds = true,
    .order = cycle_order,
    .order_count = 6,
    .total = 1.93,
    .ticks = 193,
    .calls = 16,
    .rate_count = 1,
    .rates = cycle_rates,
    .builds = cycle_builds,
    .build_names = cycle_names,
    .build_count = 1,
};
static const struct provenance cycle_provenance = {
    .uploads = 3,
    .processes = 2,
    .hosts = 1,
    .first = 1795276800000000000,
    .last = 1795276801500000000,
    .inexact = INEXACT_THREADS_UNKNOWN | INEXACT_CALLER_BUCKET,
    .uid_count = 2,
    .uids = cycle_uids,
};

static inline struct render_input cycle_input(void)
{
    return (struct render_input){.report = &cycle_report,
                                 .provenance = &cycle_provenance,
                                 .build_id = CYCLE_ID,
                                 .build_name = "/srv/bin/cycle",
                                 .scope = "program"};
}

#endif
