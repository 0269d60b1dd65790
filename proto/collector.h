/* Counters of a collector, or of a recorder that samples from outside: CPU time, losses, and what it could not observe.
 * They are one histogram of dimension "collector" among the counts of an upload, bin i for counter i, so that they are
 * added up over hours, processes and hosts like all counts. They are not samples: sums of ticks leave that histogram
 * out. Its geometry is always build = the program, low 0, high and bins COLLECTOR_COUNTERS_MAX, rate 1, abbreviation
 * 'c'. Pure. */
#ifndef PROFD_PROTO_COLLECTOR_H
#define PROFD_PROTO_COLLECTOR_H

#include <stdbool.h>
#include <stdint.h>

#define COLLECTOR_DIMENSION "collector"
#define COLLECTOR_COUNTERS_MAX 64u

/* X(NAME, number, JSON name, text). Numbers are never reused. Times are ns: ticks of whatever rate times their period.
 */
#define COLLECTOR_COUNTER_LIST(X)                                                                                      \
    X(PROCESSES, 0, "processes", "processes of which CPU time is known")                                               \
    X(CPU_NS, 1, "cpu_seconds", "their CPU time")                                                                      \
    X(SAMPLED_NS, 2, "sampled_seconds", "CPU time that all ticks represent, those below and those of functions")       \
    X(INSIDE_NS, 3, "collector_seconds", "of these, ticks inside the collector itself")                                \
    X(BLOCKED_NS, 4, "blocked_seconds",                                                                                \
      "of these, ticks that came late because the signal was blocked, at unknown addresses")                           \
    X(DROPPED_NS, 5, "dropped_seconds", "of these, ticks for which there was no memory")                               \
    X(OUTSIDE_NS, 6, "outside_seconds", "of these, ticks outside every object with a build-id")                        \
    X(CALLS_LOST, 7, "calls_lost", "calls for which there was no memory")                                              \
    X(CALLS_JUNK, 8, "calls_junk",                                                                                     \
      "calls from addresses outside all objects: counted for the callee, with an unknown caller")                      \
    X(PAIRS_DROPPED, 9, "pairs_dropped", "ticks without their whole stack: no memory, or dlclose()")                   \
    X(THREADS, 10, "threads", "threads that counted")                                                                  \
    X(THREADS_UNTIMED, 11, "threads_untimed", "threads for which no timer could be created: they have no ticks")       \
    X(MODULES_LOST, 12, "modules_lost", "objects lost for lack of memory: their addresses are stored as outside")      \
    X(MODULES_NAMELESS, 13, "modules_without_build_id",                                                                \
      "objects without a build-id: their addresses are stored as outside")                                             \
    X(SIGPROF_FOREIGN, 14, "processes_with_own_sigprof",                                                               \
      "processes that installed their own SIGPROF handler: no ticks from then on")                                     \
    X(FORKS_UNSEEN, 15, "processes_with_unseen_forks",                                                                 \
      "processes with a child that counted into their memory, created without fork()")                                 \
    X(PAUSES, 16, "pauses", "number of times that counting was switched off")                                          \
    X(OVERLAPS, 17, "overlaps", "pairs of objects between which calls may be confused")                                \
    X(END_NOT_SEEN, 18, "ends_not_seen", "processes that ended unseen: their last counts are missing")                 \
    X(CLOCK_OFF_NS, 19, "clock_off_seconds", "of the CPU time, that of processes with the clock off: it has no ticks") \
    X(UNCLOCKED_NS, 20, "unclocked_seconds",                                                                           \
      "of the ticks in known objects, those of recorded processes that ended before their CPU time was read")          \
    X(RECORDED, 21, "processes_recorded", "processes that were sampled from outside")                                  \
    X(SAMPLES_LOST, 22, "samples_lost", "samples that the kernel lost meanwhile, of this or any other program")        \
    X(KERNEL_UNSEEN, 23, "processes_without_kernel_time",                                                              \
      "recorded processes of which time in the kernel was not sampled")                                                \
    X(LEFT_OUT, 24, "functions_left_out", "functions of processes that were not counted, on request")                  \
    X(UNDELIVERED_NS, 25, "undelivered_seconds",                                                                       \
      "CPU time of ticks, none of those above, that were due and had not come when their thread ended")                \
    X(SAMPLES, 26, "samples",                                                                                          \
      "samples that brought the ticks: one stands for several above the rate of the kernel's timer")                   \
    X(NOT_COUNTED, 27, "programs_not_counted",                                                                         \
      "programs that the processes of profctl run started and that could not be counted")

enum collector_counter {
#define X(name, number, json, text) COLLECTOR_##name = number,
    COLLECTOR_COUNTER_LIST(X)
#undef X
};

/* Returns whether the dimension is that of the collector's counters. */
bool collector_is_dimension(const char *dimension);
/* Makes a histogram of the geometry that is described above, without bins. */
struct counts_histogram;
void collector_make_histogram(struct counts_histogram *h, uint32_t program);
/* Returns whether the counter is in ns. Its JSON name says seconds. */
bool collector_counter_is_time(uint32_t counter);
/* Returns the JSON name of a counter; NULL if there is none. */
const char *collector_counter_name(uint32_t counter);

#endif
