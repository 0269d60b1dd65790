#include <inttypes.h>
#include <string.h>

#include "render/text_parts.h"

#define INDENT "          "

/* What was lost or not seen, one line each. */
static const struct {
    enum words_word word;
    const char *one, *many;
} REASONS[] = {
    {WORDS_CALLS_LOST, "call lost: no room for it", "calls lost: no room for them"},
    {WORDS_CALLS_JUNK, "call from an address that is no code: counted for the callee, from nowhere",
     "calls from addresses that are no code: counted for the callees, from nowhere"},
    {WORDS_PAIRS_DROPPED, "sampled pair lost: no room for it", "sampled pairs lost: no room for them"},
    {WORDS_THREADS_UNTIMED, "thread could not be given a timer: no ticks of it",
     "threads could not be given timers: no ticks of them"},
    {WORDS_MODULES_LOST, "object without room for it: its addresses stand as outside",
     "objects without room for them: their addresses stand as outside"},
    {WORDS_MODULES_NAMELESS, "object without a build-id: its addresses stand as outside",
     "objects without a build-id: their addresses stand as outside"},
    {WORDS_SIGPROF_FOREIGN, "process uses SIGPROF itself: no ticks from then on",
     "processes use SIGPROF themselves: no ticks from then on"},
    {WORDS_FORKS_UNSEEN, "process had a child that counted in its place: made without fork()",
     "processes had a child that counted in their place: made without fork()"},
    {WORDS_PAUSES, "pause: counting was switched off meanwhile", "pauses: counting was switched off meanwhile"},
    {WORDS_OVERLAPS, "pair of objects whose calls may stand as each other's",
     "pairs of objects whose calls may stand as each other's"},
    {WORDS_END_NOT_SEEN, "process ended while nobody could look: what it counted last is missing",
     "processes ended while nobody could look: what they counted last is missing"},
};

/* Times of ticks that no function has. */
static const struct {
    enum words_word word;
    const char *text;
} LOSSES[] = {
    {WORDS_INSIDE_NS, " s inside the collector"},
    {WORDS_BLOCKED_NS, " s late, the signal being blocked"},
    {WORDS_DROPPED_NS, " s without room"},
    {WORDS_OUTSIDE_NS, " s outside every known object"},
};

static void add_seconds(struct buffer *out, uint64_t nanoseconds)
{
    buffer_add_fixed(out, (double)nanoseconds / 1e9, 0, 2);
}

static void add_share(struct buffer *out, const struct coverage *c)
{
    double share;
    const uint64_t *w = c->words;
    buffer_add_text(out, "Coverage  ");
    if (coverage_share(c, &share)) {
        buffer_add_fixed(out, 100 * share, 0, 2);
        buffer_add_text(out, "% of the CPU time: ");
    } else {
        buffer_add_text(out, w[WORDS_CPU_NS] == 0 ? "unknown, no CPU time was told: "
                                                  : "unknown, ticks count waiting too: ");
    }
    add_seconds(out, coverage_attributed(c));
    buffer_add_text(out, " s in functions of ");
    add_seconds(out, w[WORDS_CPU_NS]);
    buffer_add_format(out, " s in %" PRIu64 " %s\n", w[WORDS_PROCESSES],
                      w[WORDS_PROCESSES] == 1 ? "process" : "processes");
}

static void add_sampled(struct buffer *out, const struct coverage *c)
{
    const char *separator = " sampled: ";
    const uint64_t *w = c->words;
    buffer_add_text(out, INDENT);
    add_seconds(out, w[WORDS_SAMPLED_NS]);
    buffer_add_text(out, " s");
    if (w[WORDS_WALL_NS] != 0) {
        buffer_add_text(out, " of CPU time and ");
        add_seconds(out, w[WORDS_WALL_NS]);
        buffer_add_text(out, " s, waiting included,");
    }
    for (size_t i = 0; i < sizeof LOSSES / sizeof *LOSSES; i++) {
        if (w[LOSSES[i].word] != 0) {
            buffer_add_text(out, separator);
            add_seconds(out, w[LOSSES[i].word]);
            buffer_add_text(out, LOSSES[i].text);
            separator = ", ";
        }
    }
    buffer_add_text(out, separator[0] == ',' ? "\n" : " sampled, all of it in functions\n");
}

void text_add_collector(const struct text_parts *t)
{
    const struct coverage *c = t->in->coverage;
    struct buffer *out = t->out;
    if (c == NULL || !c->any) {
        return;
    }
    add_share(out, c);
    add_sampled(out, c);
    for (size_t i = 0; i < sizeof REASONS / sizeof *REASONS; i++) {
        uint64_t n = c->words[REASONS[i].word];
        if (n != 0) {
            buffer_add_format(out, INDENT "%" PRIu64 " %s\n", n, n == 1 ? REASONS[i].one : REASONS[i].many);
        }
    }
    if (c->saturated) {
        buffer_add_text(out, INDENT "one of these numbers reached 2^63-1 and is larger\n");
    }
    if (strcmp(t->in->scope, "program") != 0) {
        buffer_add_text(out, INDENT "these are of whole processes, the report is of one build\n");
    }
}

void text_add_inside(const struct text_parts *t, int before, int width)
{
    const struct coverage *c = t->in->coverage;
    if (c == NULL || c->words[WORDS_INSIDE_NS] == 0 || !t->in->report->in_seconds || t->in->focus != NULL ||
        strcmp(t->in->scope, "program") != 0) {
        return;
    }
    buffer_add_char(t->out, '\n');
    buffer_add_repeat(t->out, ' ', (size_t)before);
    buffer_add_fixed(t->out, (double)c->words[WORDS_INSIDE_NS] / 1e9, width, 2);
    buffer_add_text(t->out, "  [collector], not in the total: ticks inside it are no function's\n");
}
