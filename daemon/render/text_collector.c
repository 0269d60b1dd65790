#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "proto/message.h"
#include "proto/noun.h"
#include "render/amount.h"
#include "render/text_internal.h"

#define FEW_TICKS 30
#define INDENT "          "

/* What was lost or not seen, one line each. */
static const struct {
    enum collector_counter counter;
    const char *one, *many;
} REASONS[] = {
    {COLLECTOR_CALLS_LOST, "call lost for lack of memory", "calls lost for lack of memory"},
    {COLLECTOR_CALLS_JUNK, "call from an address outside all code: counted for the callee, with an unknown caller",
     "calls from addresses outside all code: counted for the callees, with an unknown caller"},
    {COLLECTOR_PAIRS_DROPPED, "sampled pair left out (no memory, or dlclose())",
     "sampled pairs left out (no memory, or dlclose())"},
    {COLLECTOR_THREADS_UNTIMED, "thread without a timer: it has no ticks",
     "threads without a timer: they have no ticks"},
    {COLLECTOR_MODULES_LOST, "object lost for lack of memory: its addresses are stored as outside",
     "objects lost for lack of memory: their addresses are stored as outside"},
    {COLLECTOR_MODULES_NAMELESS, "object without a build-id: its addresses are stored as outside",
     "objects without a build-id: their addresses are stored as outside"},
    {COLLECTOR_SIGPROF_FOREIGN, "process with its own SIGPROF handler: no ticks from then on",
     "processes with their own SIGPROF handler: no ticks from then on"},
    {COLLECTOR_FORKS_UNSEEN, "process with a child that counted into its memory, created without fork()",
     "processes with a child that counted into their memory, created without fork()"},
    {COLLECTOR_PAUSES, "pause of counting", "pauses of counting"},
    {COLLECTOR_OVERLAPS, "pair of objects between which calls may be confused",
     "pairs of objects between which calls may be confused"},
    {COLLECTOR_END_NOT_SEEN, "process ended while no daemon could read it: its last counts are missing",
     "processes ended while no daemon could read them: their last counts are missing"},
};

/* Times of ticks that no function has. */
static const struct {
    enum collector_counter counter;
    const char *text;
} LOSSES[] = {
    {COLLECTOR_INSIDE_NS, " inside the collector"},
    {COLLECTOR_BLOCKED_NS, " late because the signal was blocked"},
    {COLLECTOR_DROPPED_NS, " lost for lack of memory"},
    {COLLECTOR_OUTSIDE_NS, " outside every known object"},
};

/* Of three digits, as a short program has them: 20.2ms of 25.2ms is 80 %, 0.02 s of 0.03 s is not. */
static void add_seconds(struct buffer *out, uint64_t nanoseconds)
{
    if (nanoseconds == 0) {
        buffer_add_text(out, "0s");
    } else {
        amount_add_duration(out, (double)nanoseconds / 1e9, 0);
    }
}

static void add_share(struct buffer *out, const struct coverage *c)
{
    double share;
    const uint64_t *w = c->counters;
    const bool known = coverage_share(c, &share);
    buffer_add_text(out, "Coverage  ");
    if (known) {
        amount_add(out, 100 * share, 0);
        buffer_add_text(out, "% of the program's own CPU time: ");
    } else {
        buffer_add_text(out, w[COLLECTOR_WALL_NS] != 0  ? "unknown, because ticks include waiting: "
                             : w[COLLECTOR_CPU_NS] != 0 ? "unknown, because the collector had all ticks: "
                                                        : "unknown, because no CPU time was recorded: ");
    }
    add_seconds(out, coverage_attributed(c));
    buffer_add_text(out, " in functions of ");
    add_seconds(out, w[COLLECTOR_CPU_NS] - (known ? w[COLLECTOR_INSIDE_NS] : 0));
    buffer_add_format(out, " in %" PRIu64 " %s\n", w[COLLECTOR_PROCESSES],
                      noun_for(w[COLLECTOR_PROCESSES], "process", "processes"));
    if (known && share > 1) {
        buffer_add_text(out, INDENT "(it can exceed 100%, because ticks are a sample of the time)\n");
    }
}

/* The ticks of the share: those of functions, and those inside the collector, which are known as time only. Ticks of
 * several rates are taken as of the lowest. */
static double ticks_of_share(const struct coverage *c, const struct report *r)
{
    double rate = r->rate_count == 0 ? 0 : r->rates[0];
    return (double)r->ticks + (double)c->counters[COLLECTOR_INSIDE_NS] / 1e9 * rate;
}

/* Where none of n ticks was inside, the share is below 3/n with a probability of 95 % (the rule of three), rounded up.
 * Of fewer than FEW_TICKS that says nothing. */
static void add_overhead(struct buffer *out, const struct coverage *c, const struct report *r)
{
    double share, ticks = ticks_of_share(c, r);
    bool none = c->counters[COLLECTOR_INSIDE_NS] == 0;
    if (coverage_overhead(c, &share) && (!none || ticks >= FEW_TICKS)) {
        buffer_add_text(out, none ? "Overhead  below " : "Overhead  ");
        amount_add(out, none ? ceil(30000 / ticks) / 100 : 100 * share, 0);
        buffer_add_text(out, "% of the CPU time was spent counting");
        if (ticks < FEW_TICKS) {
            buffer_add_text(out, ", estimated from few ticks");
        }
        buffer_add_text(out, "\n");
    }
}

const char *text_calls_mark(const struct render_input *in)
{
    return (in->provenance->inexact & INEXACT_SAMPLED) != 0 ? "~" : "";
}

static void add_sampled(struct buffer *out, const struct coverage *c)
{
    const char *separator = " sampled: ";
    const uint64_t *w = c->counters;
    buffer_add_text(out, INDENT);
    add_seconds(out, w[COLLECTOR_SAMPLED_NS]);
    if (w[COLLECTOR_WALL_NS] != 0) {
        buffer_add_text(out, " of CPU time and ");
        add_seconds(out, w[COLLECTOR_WALL_NS]);
        buffer_add_text(out, ", including waiting,");
    }
    for (size_t i = 0; i < sizeof LOSSES / sizeof *LOSSES; i++) {
        if (w[LOSSES[i].counter] != 0) {
            buffer_add_text(out, separator);
            add_seconds(out, w[LOSSES[i].counter]);
            buffer_add_text(out, LOSSES[i].text);
            separator = ", ";
        }
    }
    buffer_add_text(out, separator[0] == ',' ? "\n" : " sampled, all of it in functions\n");
}

static void add_unsampled(struct buffer *out, const struct coverage *c)
{
    const uint64_t *w = c->counters;
    buffer_add_text(out, "Coverage  unknown: no tick in ");
    add_seconds(out, w[COLLECTOR_CPU_NS]);
    buffer_add_format(out, " of CPU time in %" PRIu64 " %s, so no times are known\n", w[COLLECTOR_PROCESSES],
                      noun_for(w[COLLECTOR_PROCESSES], "process", "processes"));
}

static void add_without_ticks(struct buffer *out, const struct coverage *c)
{
    const uint64_t *w = c->counters;
    if (coverage_lacks_ticks(c)) {
        buffer_add_text(out, INDENT);
        add_seconds(out, w[COLLECTOR_CPU_NS] - w[COLLECTOR_SAMPLED_NS]);
        buffer_add_text(out, " without ticks: counting was paused, the clock was off, or threads block SIGPROF\n" INDENT
                             "(so times of a call are not known: calls of that time were counted)\n");
    }
}

void text_add_collector(const struct text_parts *t)
{
    const struct coverage *c = t->in->coverage;
    struct buffer *out = t->out;
    if (c == NULL || !c->any) {
        return;
    }
    if (c->counters[COLLECTOR_SAMPLED_NS] != 0 || c->counters[COLLECTOR_WALL_NS] != 0) {
        add_overhead(out, c, t->in->report);
        add_share(out, c);
        add_sampled(out, c);
    } else {
        add_unsampled(out, c);
    }
    add_without_ticks(out, c);
    for (size_t i = 0; i < sizeof REASONS / sizeof *REASONS; i++) {
        uint64_t n = c->counters[REASONS[i].counter];
        if (n != 0) {
            buffer_add_format(out, INDENT "%" PRIu64 " %s\n", n, noun_for(n, REASONS[i].one, REASONS[i].many));
        }
    }
    if (c->saturated) {
        buffer_add_text(out, INDENT "one of these numbers reached the limit of 2^63-1\n");
    }
    if (strcmp(t->in->scope, "program") != 0) {
        buffer_add_text(out, INDENT "these are for whole processes; the report is for one build\n");
    }
}

void text_add_inside(const struct text_parts *t, int before, int width)
{
    const struct coverage *c = t->in->coverage;
    if (c == NULL || c->counters[COLLECTOR_INSIDE_NS] == 0 || !t->in->report->in_seconds || t->in->show.focus != NULL ||
        strcmp(t->in->scope, "program") != 0) {
        return;
    }
    buffer_add_char(t->out, '\n');
    buffer_add_repeat(t->out, ' ', (size_t)before);
    amount_add(t->out, (double)c->counters[COLLECTOR_INSIDE_NS] / 1e9, width);
    buffer_add_text(t->out, "  [collector] (not in the total)\n");
}
