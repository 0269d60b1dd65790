#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "proto/message.h"
#include "proto/noun.h"
#include "render/amount.h"
#include "render/text_internal.h"

#define INDENT "          "
#define OVERHEAD_SAID 0.1 /* from this share of ticks inside the collector on, self times are said to be disturbed */
#define ABOVE 1.05        /* ticks for more than this multiple of the CPU time are stated beside it */
#define SAMPLES_SAID 1.2  /* ticks a sample from which on their number is said */

/* What was lost or not seen, one line each. */
static const struct {
    enum collector_counter counter;
    const char *one, *many;
} REASONS[] = {
    {COLLECTOR_CALLS_LOST, "call lost for lack of memory", "calls lost for lack of memory"},
    {COLLECTOR_CALLS_JUNK, "call from an address outside all code: counted for the callee, with an unknown caller",
     "calls from addresses outside all code: counted for the callees, with an unknown caller"},
    {COLLECTOR_PAIRS_DROPPED, "tick without its whole stack (no memory, or dlclose())",
     "ticks without their whole stack (no memory, or dlclose())"},
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
    {COLLECTOR_LEFT_OUT, "function left out of counting on request: calls into it are unknown",
     "functions left out of counting on request, each once for every process: calls into them are unknown"},
    {COLLECTOR_END_NOT_SEEN, "process that ended unseen: its last counts are missing",
     "processes that ended unseen: their last counts are missing"},
    {COLLECTOR_SAMPLES_LOST, "sample lost by the kernel meanwhile, of this or any other program",
     "samples lost by the kernel meanwhile, of this or any other program"},
    {COLLECTOR_KERNEL_UNSEEN, "process of which time in the kernel was not sampled",
     "processes of which time in the kernel was not sampled"},
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

static void add_seconds(struct buffer *out, uint64_t nanoseconds, int digits)
{
    if (nanoseconds == 0) {
        buffer_add_text(out, "0s");
    } else {
        amount_add_duration(out, (double)nanoseconds / 1e9, digits, 0);
    }
}

/* CPU time is measured, ticks are a sample of it. */
static void add_measured(struct buffer *out, uint64_t nanoseconds)
{
    add_seconds(out, nanoseconds, 3);
}

static void add_ticks_time(struct buffer *out, const struct report *r, uint64_t nanoseconds)
{
    const double rate = r->rate_count == 0 ? 0 : r->rates[0];
    add_seconds(out, nanoseconds, amount_digits(report_samples(r, (double)nanoseconds / 1e9 * rate)));
}

static void add_processes(struct buffer *out, const uint64_t *w)
{
    buffer_add_format(out, " in %" PRIu64 " %s", w[COLLECTOR_PROCESSES],
                      noun_for(w[COLLECTOR_PROCESSES], "process", "processes"));
}

/* Without the CPU time that is known, the ticks in known objects alone. */
static void add_unknown_share(struct buffer *out, const struct coverage *c, const struct report *r)
{
    const uint64_t *w = c->counters;
    buffer_add_text(out, w[COLLECTOR_CPU_NS] != 0 ? "unknown, because the collector had all ticks: "
                         : w[COLLECTOR_UNCLOCKED_NS] != 0
                             ? "unknown, because the processes ended before their CPU time was read: "
                             : "unknown, because no CPU time was recorded: ");
    add_ticks_time(out, r, coverage_attributed(c));
    buffer_add_text(out, " in known objects");
    if (w[COLLECTOR_CPU_NS] != 0 || w[COLLECTOR_UNCLOCKED_NS] == 0) {
        buffer_add_text(out, ", ");
        add_measured(out, w[COLLECTOR_CPU_NS]);
        buffer_add_text(out, " of CPU time");
        add_processes(out, w);
    }
    buffer_add_char(out, '\n');
}

static void add_share(struct buffer *out, const struct coverage *c, const struct report *r)
{
    double share;
    const uint64_t *w = c->counters;
    buffer_add_text(out, "Coverage  ");
    if (coverage_share(c, &share)) {
        const double samples = coverage_samples(c, r);
        const bool above = share > ABOVE;
        amount_add_percent(out, share > 1 ? 100 : 100 * share, samples);
        buffer_add_format(
            out, " of the CPU time%s is in known objects: ", coverage_is_recorded(c) ? "" : " outside the collector");
        if (amount_round_percent(100 * share, samples) >= 99.995 && !above) {
            buffer_add_text(out, "all");
        } else {
            add_ticks_time(out, r, coverage_clocked(c));
        }
        buffer_add_text(out, " of ");
        add_measured(out, w[COLLECTOR_CPU_NS] - w[COLLECTOR_INSIDE_NS]);
        add_processes(out, w);
        buffer_add_text(out, above ? ", because a tick stands for a whole period\n" : "\n");
    } else {
        add_unknown_share(out, c, r);
    }
    if (w[COLLECTOR_UNCLOCKED_NS] != 0 && w[COLLECTOR_CPU_NS] != 0) {
        buffer_add_text(out, INDENT);
        add_ticks_time(out, r, w[COLLECTOR_UNCLOCKED_NS]);
        buffer_add_text(out, " more of processes that ended before their CPU time was read\n");
    }
}

/* The share of ticks is no share of the time: where functions do little but call, the processor executes them while it
 * counts, and the ticks find the collector. */
static void add_overhead(struct buffer *out, const struct coverage *c, const struct report *r)
{
    double share;
    const double samples = coverage_samples(c, r);
    if (coverage_overhead_below(c, r, &share)) {
        buffer_add_text(out, "Overhead  below ");
        amount_add(out, ceil(10000 * share) / 100, 0);
        buffer_add_text(out, "% of the CPU time: no tick was inside the collector\n");
    } else if (c->counters[COLLECTOR_INSIDE_NS] != 0 && coverage_overhead(c, &share)) {
        buffer_add_text(out, "Overhead  ");
        amount_add_percent(out, 100 * share, samples);
        buffer_add_text(out, " of the ticks were inside the collector, a rough estimate of the time spent counting\n");
        if (samples < COVERAGE_SAMPLES_LEAST && !amount_is_rough(r)) {
            buffer_add_text(out, INDENT "(of so few samples, percentages are rough)\n");
        }
    }
}

const char *text_calls_mark(const struct render_input *in)
{
    return (in->provenance->inexact & INEXACT_SAMPLED) != 0 ? "~" : "";
}

static void add_sampled(struct buffer *out, const struct coverage *c, const struct report *r)
{
    const char *separator = " sampled: ";
    const uint64_t *w = c->counters;
    buffer_add_text(out, INDENT);
    add_ticks_time(out, r, w[COLLECTOR_SAMPLED_NS]);
    for (size_t i = 0; i < sizeof LOSSES / sizeof *LOSSES; i++) {
        if (w[LOSSES[i].counter] != 0) {
            buffer_add_text(out, separator);
            add_ticks_time(out, r, w[LOSSES[i].counter]);
            buffer_add_text(out, LOSSES[i].text);
            separator = ", ";
        }
    }
    buffer_add_text(out, separator[0] == ',' ? "\n" : " sampled, all of it in known objects\n");
}

/* The beginning of a line: its label is there once. */
static void add_label(struct buffer *out, const char **label)
{
    buffer_add_text(out, *label);
    *label = INDENT;
}

static void add_without_ticks(struct buffer *out, const struct coverage *c, const struct report *r, bool share_shown,
                              const char **label)
{
    const uint64_t without = coverage_without_ticks(c), undelivered = c->counters[COLLECTOR_UNDELIVERED_NS];
    if (without == 0 && undelivered > c->counters[COLLECTOR_CPU_NS] / 100 && share_shown) {
        add_label(out, label);
        if (c->counters[COLLECTOR_SAMPLED_NS] != 0) {
            add_ticks_time(out, r, undelivered);
            buffer_add_text(out, " more without ticks: ");
        }
        buffer_add_text(out, "threads ended before their ticks came\n");
    }
    if (without != 0) {
        add_label(out, label);
        add_measured(out, without);
        buffer_add_text(out, " without ticks: ");
        coverage_add_why(out, c);
        buffer_add_text(out, "\n" INDENT "(so times of a call are not known)\n");
    }
}

/* Above the rate of the kernel's timer a sample stands for several ticks, and the ticks look more certain than they
 * are.
 */
static void add_samples(struct buffer *out, const struct coverage *c, const struct report *r, const char **label)
{
    const double rate = r->rate_count == 1 ? r->rates[0] : 0, samples = (double)c->counters[COLLECTOR_SAMPLES];
    const double ticks = (double)c->counters[COLLECTOR_SAMPLED_NS] / 1e9 * rate;
    if (samples > 0 && ticks > SAMPLES_SAID * samples) {
        add_label(out, label);
        buffer_add_format(out, "%" PRIu64 " %s stood for %.0f ticks\n", c->counters[COLLECTOR_SAMPLES],
                          noun_for(c->counters[COLLECTOR_SAMPLES], "sample", "samples"), ticks);
    }
}

/* A share of the time that is not known, or is further from all of it than 5 % and than chance explains: two standard
 * deviations of the number of samples. */
static bool share_is_wrong(const struct coverage *c, const struct report *r)
{
    double share;
    if (!coverage_share(c, &share)) {
        return true;
    }
    const double rate = r->rate_count == 0 ? 0 : r->rates[0];
    const double cpu = (double)(c->counters[COLLECTOR_CPU_NS] - c->counters[COLLECTOR_INSIDE_NS]) / 1e9;
    const double samples = report_samples(r, cpu * rate);
    return samples > 0 && fabs(1 - share) > 0.05 + 2 / sqrt(samples);
}

void text_add_collector(const struct text_parts *t)
{
    const struct coverage *c = t->in->coverage;
    struct buffer *out = t->out;
    double overhead = 0;
    bool share_shown = true;
    const char *label = "Collector ";
    if (c == NULL || !c->any) {
        return;
    }
    if (c->counters[COLLECTOR_SAMPLED_NS] != 0) {
        if (text_wants(t, coverage_overhead(c, &overhead) && overhead >= OVERHEAD_SAID)) {
            add_overhead(out, c, t->in->report);
            label = INDENT;
        }
        share_shown = text_wants(t, share_is_wrong(c, t->in->report) || c->saturated);
        if (share_shown) {
            add_share(out, c, t->in->report);
            add_sampled(out, c, t->in->report);
            label = INDENT;
        }
    } else {
        const uint64_t *w = c->counters;
        buffer_add_text(out, "Coverage  unknown: no tick in ");
        add_measured(out, w[COLLECTOR_CPU_NS]);
        buffer_add_text(out, " of CPU time");
        add_processes(out, w);
        buffer_add_text(out, ", so no times are known\n");
        label = INDENT;
    }
    add_without_ticks(out, c, t->in->report, share_shown, &label);
    add_samples(out, c, t->in->report, &label);
    for (size_t i = 0; i < sizeof REASONS / sizeof *REASONS; i++) {
        uint64_t n = c->counters[REASONS[i].counter];
        if (n != 0) {
            add_label(out, &label);
            buffer_add_format(out, "%" PRIu64 " %s\n", n, noun_for(n, REASONS[i].one, REASONS[i].many));
        }
    }
    const uint64_t programs = c->counters[COLLECTOR_NOT_COUNTED];
    if (programs != 0) {
        add_label(out, &label);
        buffer_add_format(out, "not counted: %" PRIu64 " %s that processes of profctl run started\n", programs,
                          noun_for(programs, "program", "programs"));
    }
    if (c->saturated) {
        add_label(out, &label);
        buffer_add_text(out, "one of these numbers reached the limit of 2^63-1\n");
    }
    if (label[0] == ' ' && strcmp(t->in->scope, "program") != 0) {
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
