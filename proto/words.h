/* What a collector knows beside ticks and calls: CPU time, losses, what it could not see. These words are kept as one
 * histogram of dimension "collector" among the counts of an upload, bin i counting word i, so that they add up over
 * hours, processes and hosts like everything else. They are no samples: whoever adds up ticks leaves that histogram
 * out. Pure. Its geometry is always build = the program, low 0, high and bins WORDS_ROOM, rate 1, abbreviation 'c'. */
#ifndef PROFD_PROTO_WORDS_H
#define PROFD_PROTO_WORDS_H

#include <stdbool.h>
#include <stdint.h>

#define WORDS_DIMENSION "collector"
#define WORDS_ROOM 64u

/* X(NAME, number, JSON name, text). Numbers are never reused. Times are ns: ticks of whatever rate times their period.
 */
#define WORDS_LIST(X)                                                                                                  \
    X(PROCESSES, 0, "processes", "processes that counted with a collector")                                            \
    X(CPU_NS, 1, "cpu_seconds", "their CPU time")                                                                      \
    X(SAMPLED_NS, 2, "sampled_seconds", "CPU time that ticks stand for: all that follow, and those of functions")      \
    X(WALL_NS, 3, "wall_seconds", "the same where ticks count time, waiting included")                                 \
    X(INSIDE_NS, 4, "collector_seconds", "of the ticks, inside the collector itself")                                  \
    X(BLOCKED_NS, 5, "blocked_seconds", "of the ticks, late because the signal was blocked: nobody knows where")       \
    X(DROPPED_NS, 6, "dropped_seconds", "of the ticks, without room for them")                                         \
    X(OUTSIDE_NS, 7, "outside_seconds", "of the ticks, outside every object with a build-id")                          \
    X(CALLS_LOST, 8, "calls_lost", "calls without room for them")                                                      \
    X(CALLS_JUNK, 9, "calls_junk", "calls whose caller was no code: counted for the callee, from nowhere")             \
    X(PAIRS_DROPPED, 10, "pairs_dropped", "sampled pairs without room for them")                                       \
    X(THREADS, 11, "threads", "threads that counted")                                                                  \
    X(THREADS_UNTIMED, 12, "threads_untimed", "threads that could not be given a timer: no ticks of theirs")           \
    X(MODULES_LOST, 13, "modules_lost", "objects without room for them: their addresses stand as outside")             \
    X(MODULES_NAMELESS, 14, "modules_without_build_id",                                                                \
      "objects without a build-id: their addresses stand as outside")                                                  \
    X(SIGPROF_FOREIGN, 15, "processes_with_own_sigprof",                                                               \
      "processes that use SIGPROF themselves: no ticks from then on")                                                  \
    X(FORKS_UNSEEN, 16, "processes_with_unseen_forks",                                                                 \
      "processes with a child that counted in their place: made without fork()")                                       \
    X(PAUSES, 17, "pauses", "times that counting was switched off")                                                    \
    X(OVERLAPS, 18, "overlaps", "pairs of objects whose calls may stand as each other's")                              \
    X(END_NOT_SEEN, 19, "ends_not_seen",                                                                               \
      "processes that ended while nobody could look: what they counted last is missing")

enum words_word {
#define X(name, number, json, text) WORDS_##name = number,
    WORDS_LIST(X)
#undef X
};

/* Is it the collector's words and not samples? By its dimension alone. */
bool words_are(const char *dimension);
/* A geometry as described above, without bins (proto/counts_words.c). */
struct counts_histogram;
void words_make_histogram(struct counts_histogram *h, uint32_t program);
/* Does the word count ns? Its JSON name says seconds. */
bool words_is_time(uint32_t word);
/* The JSON name and the text of a word; NULL for a number that is none. */
const char *words_name(uint32_t word);
const char *words_text(uint32_t word);

#endif
