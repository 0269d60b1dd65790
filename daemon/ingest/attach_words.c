/* The collector's counters: computes their differences, in units that can be added up. */
#include <string.h>

#include "core/sum.h"
#include "ingest/attach_internal.h"

#define SECOND 1000000000u

__extension__ typedef unsigned __int128 wide;

void attach_words_take(const struct attach_image *image, const struct attach_builds *b, uint64_t outside,
                       const struct attach_snapshot *before, uint64_t out[ATTACH_SNAPSHOT_WORDS])
{
    bool saturated = false;
    memset(out, 0, ATTACH_SNAPSHOT_WORDS * sizeof out[0]);
    for (unsigned i = 0; i < ATTACH_WORD_COUNT; i++) {
        out[i] = image->header.words[i] > SUM_MAX ? SUM_MAX : image->header.words[i];
    }
    out[ATTACH_SNAPSHOT_NAMELESS] = b->nameless;
    out[ATTACH_SNAPSHOT_UNLISTED] = b->unlisted;
    for (unsigned i = 0; i < ATTACH_SNAPSHOT_WORDS; i++) {
        if (out[i] < before->words[i]) {
            out[i] = before->words[i];
        }
    }
    sum_add(&out[ATTACH_SNAPSHOT_OUTSIDE], outside, &saturated);
}

static uint64_t to_ns(uint64_t ticks, uint32_t rate)
{
    wide ns = rate ? (wide)ticks * SECOND / rate : 0;
    return ns > SUM_MAX ? SUM_MAX : (uint64_t)ns;
}

struct pair {
    const struct attach_snapshot *after, *before;
};

static uint64_t grown(const struct pair *p, unsigned word)
{
    return p->after->words[word] - p->before->words[word];
}

/* Ticks as time. Rounded so that the differences add up to the whole's time. */
static uint64_t grown_ns(const struct pair *p, unsigned word)
{
    uint32_t rate = p->after->rate;
    if (p->before->rate != rate) {
        return to_ns(grown(p, word), rate);
    }
    return to_ns(p->after->words[word], rate) - to_ns(p->before->words[word], rate);
}

void attach_words_subtract(const struct attach_snapshot *after, const struct attach_snapshot *before,
                           enum attach_mode mode, bool first, uint64_t out[WORDS_ROOM])
{
    static const struct {
        unsigned word;
        unsigned char from, ns;
    } MAP[] = {
        {WORDS_CPU_NS, ATTACH_WORD_CPU_NS, 0},
        {WORDS_INSIDE_NS, ATTACH_WORD_TICKS_INSIDE, 1},
        {WORDS_BLOCKED_NS, ATTACH_WORD_TICKS_BLOCKED, 1},
        {WORDS_DROPPED_NS, ATTACH_WORD_TICKS_DROPPED, 1},
        {WORDS_OUTSIDE_NS, ATTACH_SNAPSHOT_OUTSIDE, 1},
        {WORDS_CALLS_LOST, ATTACH_WORD_CALLS_LOST, 0},
        {WORDS_CALLS_JUNK, ATTACH_WORD_CALLS_JUNK, 0},
        {WORDS_PAIRS_DROPPED, ATTACH_WORD_PAIRS_DROPPED, 0},
        {WORDS_THREADS, ATTACH_WORD_THREADS, 0},
        {WORDS_THREADS_UNTIMED, ATTACH_WORD_THREADS_UNTIMED, 0},
        {WORDS_MODULES_LOST, ATTACH_WORD_MODULES_LOST, 0},
        {WORDS_MODULES_NAMELESS, ATTACH_SNAPSHOT_NAMELESS, 0},
        {WORDS_SIGPROF_FOREIGN, ATTACH_WORD_FOREIGN_SIGPROF, 0},
        {WORDS_FORKS_UNSEEN, ATTACH_WORD_FORKS_UNSEEN, 0},
        {WORDS_PAUSES, ATTACH_WORD_PAUSES, 0},
        {WORDS_OVERLAPS, ATTACH_WORD_OVERLAPS, 0},
    };
    struct pair p = {after, before};
    bool saturated = false;
    memset(out, 0, WORDS_ROOM * sizeof out[0]);
    for (unsigned i = 0; i < sizeof MAP / sizeof MAP[0]; i++) {
        out[MAP[i].word] = MAP[i].ns ? grown_ns(&p, MAP[i].from) : grown(&p, MAP[i].from);
    }
    out[mode == ATTACH_MODE_WALL ? WORDS_WALL_NS : WORDS_SAMPLED_NS] = grown_ns(&p, ATTACH_WORD_TICKS);
    sum_add(&out[WORDS_MODULES_LOST], grown(&p, ATTACH_SNAPSHOT_UNLISTED), &saturated);
    out[WORDS_PROCESSES] = first;
}

bool attach_words_lose(const struct attach_snapshot *after, const struct attach_snapshot *before)
{
    /* Each of the first was a loss at that time; the others are states, and what goes on in them is lost, too. */
    static const unsigned char LOSSES[] = {ATTACH_WORD_CALLS_LOST, ATTACH_WORD_CALLS_JUNK, ATTACH_WORD_TICKS_DROPPED,
                                           ATTACH_WORD_TICKS_BLOCKED};
    static const unsigned char STATES[] = {ATTACH_WORD_MODULES_LOST,    ATTACH_WORD_FORKS_UNSEEN,
                                           ATTACH_WORD_OVERLAPS,        ATTACH_WORD_THREADS_UNTIMED,
                                           ATTACH_WORD_FOREIGN_SIGPROF, ATTACH_SNAPSHOT_UNLISTED};
    struct pair p = {after, before};
    for (unsigned i = 0; i < sizeof LOSSES; i++) {
        if (grown(&p, LOSSES[i]) > 0) {
            return true;
        }
    }
    for (unsigned i = 0; i < sizeof STATES; i++) {
        if (after->words[STATES[i]] > 0) {
            return true;
        }
    }
    /* Ticks of two rates that cannot be distinguished. */
    return before->rate != 0 && before->rate != after->rate && grown(&p, ATTACH_WORD_TICKS) > 0;
}
