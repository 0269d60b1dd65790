/* The heading of format=text: what was asked, where the numbers come from, and what is missing. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "proto/collector.h"
#include "proto/message.h"
#include "proto/noun.h"
#include "render/render_internal.h"

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

static void add_count(struct buffer *out, uint64_t n, const char *one, const char *many)
{
    buffer_add_format(out, "%" PRIu64 " %s", n, noun_for(n, one, many));
}

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
    buffer_add_text(out, " in ");
    add_count(out, w[COLLECTOR_PROCESSES], "process", "processes");
}

/* How much of the CPU time is in known objects, and where the ticks are that are not. */
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
    } else { /* there is nothing to divide by, so that only the ticks in known objects are shown */
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
    if (w[COLLECTOR_UNCLOCKED_NS] != 0 && w[COLLECTOR_CPU_NS] != 0) {
        buffer_add_text(out, INDENT);
        add_ticks_time(out, r, w[COLLECTOR_UNCLOCKED_NS]);
        buffer_add_text(out, " more of processes that ended before their CPU time was read\n");
    }

    const char *separator = " sampled: ";
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

/* How much of the CPU time is in functions, and what the collectors lost; nothing where there was none. The first line
 * has the label, unless lines with labels of their own stand above it. */
static void text_add_collector(const struct text_parts *t)
{
    const struct coverage *c = t->in->coverage;
    const struct report *r = t->in->report;
    struct buffer *out = t->out;
    double share = 0, overhead = 0;
    bool share_shown = true;
    const char *label = "Collector ";
    if (!c || !c->any) {
        return;
    }
    const uint64_t *w = c->counters, without = coverage_without_ticks(c);
    if (w[COLLECTOR_SAMPLED_NS] != 0) {
        if (text_wants(t, coverage_overhead(c, &overhead) && overhead >= OVERHEAD_SAID)) {
            add_overhead(out, c, r);
            label = INDENT;
        }
        /* The share is wrong if it is not known, or further from all of the time than 5 % and than chance explains: two
         * standard deviations of the number of samples. */
        bool wrong = !coverage_share(c, &share);
        if (!wrong) {
            const double rate = r->rate_count == 0 ? 0 : r->rates[0];
            const double samples =
                report_samples(r, (double)(w[COLLECTOR_CPU_NS] - w[COLLECTOR_INSIDE_NS]) / 1e9 * rate);
            wrong = samples > 0 && fabs(1 - share) > 0.05 + 2 / sqrt(samples);
        }
        share_shown = text_wants(t, wrong || c->saturated);
        if (share_shown) {
            add_share(out, c, r);
            label = INDENT;
        }
    } else {
        buffer_add_text(out, "Coverage  unknown: no tick in ");
        add_measured(out, w[COLLECTOR_CPU_NS]);
        buffer_add_text(out, " of CPU time");
        add_processes(out, w);
        buffer_add_text(out, ", so no times are known\n");
        label = INDENT;
    }

    if (without == 0 && w[COLLECTOR_UNDELIVERED_NS] > w[COLLECTOR_CPU_NS] / 100 && share_shown) {
        buffer_add_text(out, label);
        label = INDENT;
        if (w[COLLECTOR_SAMPLED_NS] != 0) {
            add_ticks_time(out, r, w[COLLECTOR_UNDELIVERED_NS]);
            buffer_add_text(out, " more without ticks: ");
        }
        buffer_add_text(out, "threads ended before their ticks came\n");
    }
    if (without != 0) {
        buffer_add_text(out, label);
        label = INDENT;
        add_measured(out, without);
        buffer_add_text(out, " without ticks: ");
        coverage_add_why(out, c);
        buffer_add_text(out, "\n" INDENT "(so times of a call are not known)\n");
    }

    /* Above the rate of the kernel's timer a sample stands for several ticks, and the ticks look more certain than they
     * are. */
    const double samples = (double)w[COLLECTOR_SAMPLES];
    const double ticks = (double)w[COLLECTOR_SAMPLED_NS] / 1e9 * (r->rate_count == 1 ? r->rates[0] : 0);
    if (samples > 0 && ticks > SAMPLES_SAID * samples) {
        buffer_add_text(out, label);
        label = INDENT;
        add_count(out, w[COLLECTOR_SAMPLES], "sample", "samples");
        buffer_add_format(out, " stood for %.0f ticks\n", ticks);
    }
    for (size_t i = 0; i < sizeof REASONS / sizeof *REASONS; i++) {
        const uint64_t n = w[REASONS[i].counter];
        if (n != 0) {
            buffer_add_text(out, label);
            label = INDENT;
            add_count(out, n, REASONS[i].one, REASONS[i].many);
            buffer_add_char(out, '\n');
        }
    }
    if (w[COLLECTOR_NOT_COUNTED] != 0) {
        buffer_add_text(out, label);
        label = INDENT;
        buffer_add_text(out, "not counted: ");
        add_count(out, w[COLLECTOR_NOT_COUNTED], "program", "programs");
        buffer_add_text(out, " that processes of profctl run started\n");
    }
    if (c->saturated) {
        buffer_add_text(out, label);
        label = INDENT;
        buffer_add_text(out, "one of these numbers reached the limit of 2^63-1\n");
    }
    if (label[0] == ' ' && strcmp(t->in->scope, "program") != 0) {
        buffer_add_text(out, INDENT "these are for whole processes; the report is for one build\n");
    }
}

void text_add_inside(const struct text_parts *t, int before, int width)
{
    const struct coverage *c = t->in->coverage;
    if (!c || c->counters[COLLECTOR_INSIDE_NS] == 0 || !t->in->report->in_seconds || t->in->show.focus ||
        strcmp(t->in->scope, "program") != 0) {
        return;
    }
    buffer_add_char(t->out, '\n');
    buffer_add_repeat(t->out, ' ', (size_t)before);
    amount_add(t->out, (double)c->counters[COLLECTOR_INSIDE_NS] / 1e9, width);
    buffer_add_text(t->out, "  [collector] (not in the total)\n");
}

static void add_times(struct buffer *out, int64_t from, int64_t to)
{
    char first[40], last[40];
    render_time_second(from, first);
    render_time_second(to, last);
    buffer_add_text(out, from == 0 ? "the beginning" : first);
    if (from == 0 || strcmp(first, last) != 0) {
        buffer_add_format(out, " to %s", to == 0 ? "now" : last);
    }
}

static void add_sources(struct buffer *out, const struct provenance *p, const struct coverage *c)
{
    /* A live process is stored in slices, which are no uploads to a person: where all processes had a collector or were
     * recorded, their number is left out. */
    const bool live =
        c && c->any &&
        (c->counters[COLLECTOR_PROCESSES] == p->processes || c->counters[COLLECTOR_RECORDED] == p->processes);
    buffer_add_text(out, "From      ");
    if (!live) {
        add_count(out, p->uploads, "upload", "uploads");
        buffer_add_text(out, ", ");
    }
    if (live && p->processes == 0) {
        buffer_add_text(out, "processes that started before this time, ");
    } else {
        add_count(out, p->processes, "process started", "processes started");
        buffer_add_text(out, ", ");
    }
    add_count(out, p->hosts, "machine", "machines");
    if (p->host_labels > 0 && p->host_labels != p->hosts) {
        buffer_add_text(out, ", ");
        add_count(out, p->host_labels, "value of the label host", "values of the label host");
    }
    for (uint32_t i = 0; p->uid_count > 1 && i < p->uid_count; i++) {
        buffer_add_format(out, "%s%" PRIu32, i > 0 ? ", " : ", uids ", p->uids[i]);
    }
    buffer_add_text(out, "; ");
    add_times(out, p->first, p->last);
    buffer_add_char(out, '\n');
    for (size_t i = 0; i < p->centre_count; i++) {
        char to[40];
        render_time_second(p->centres[i].sealed_to, to);
        buffer_add_format(out, "%s%s to %.10s",
                          i ? ", " : "Centres   this one, and what others have sealed: ", p->centres[i].name, to);
        buffer_add_text(out, i + 1 < p->centre_count ? "" : "\n");
    }
    if (p->live > 0) { /* how long ago that was, the reader's clock says: this text may be kept */
        char read[40];
        render_time_second(p->as_of, read);
        buffer_add_format(out, "Live      as of %s: ", read);
        add_count(out, p->live, "process was", "processes were");
        buffer_add_text(out, " still running\n");
    }
}

static void add_exactness(struct buffer *out, const struct render_input *in)
{
    const uint32_t inexact = in->provenance->inexact;
    const bool covered = in->coverage && in->coverage->counters[COLLECTOR_PROCESSES] != 0;
    const char *separator = "Exact     no: ";
    for (uint32_t bit = 1; bit != 0 && bit <= INEXACT_ALL; bit <<= 1) {
        const char *name = (inexact & bit) != 0 ? message_inexact_name(bit) : NULL;
        if (name) {
            buffer_add_text(out, separator);
            buffer_add_text(out, name);
            separator = ", ";
        }
    }
    buffer_add_text(out, inexact == 0 && covered ? "Exact     yes: no call was lost\n"
                         : inexact == 0          ? "Exact     yes: no tick or call was lost\n"
                         : (inexact & (INEXACT_CALLS | INEXACT_TICKS)) == 0 ? " (calls and ticks are exact)\n"
                         : (inexact & INEXACT_CALLS) == 0                   ? " (calls are exact, ticks are not)\n"
                         : (inexact & INEXACT_TICKS) == 0                   ? " (ticks are exact, calls are not)\n"
                                                                            : "\n");
    /* Those that have no line of their own in the heading. */
    for (uint32_t bit = 1; bit != 0 && bit <= INEXACT_ALL; bit <<= 1) {
        if ((inexact & bit & ~((unsigned)INEXACT_NOT_READ | INEXACT_SAMPLED)) != 0) {
            buffer_add_format(out, "          %-16s %s\n", message_inexact_name(bit), message_inexact_meaning(bit));
        }
    }
    if (in->provenance->unread > 0) {
        char since[40];
        render_time_second(in->provenance->unread_since, since);
        buffer_add_text(out, "Not read  ");
        add_count(out, in->provenance->unread, "process", "processes");
        buffer_add_format(out, " since %s: later counts are missing until the daemon reads %s\n", since,
                          noun_for(in->provenance->unread, "it", "them"));
    }
    if (in->provenance->down_count > 0) {
        buffer_add_text(out, "Down      profd was not running for ");
        amount_add(out, (double)in->provenance->down_ns / 1e9, 0);
        buffer_add_text(out, " s of this time (");
        add_count(out, in->provenance->down_count, "stop", "stops");
        buffer_add_text(out, "):\n          processes that began and ended then are in no report\n");
    }
    if ((inexact & INEXACT_SAMPLED) != 0 && in->report->calls > 0) {
        buffer_add_text(out,
                        "~calls    sampled, at least in part: where a program does not count its calls, they are the "
                        "ticks that found\n" INDENT "the callee below its caller; counted calls of other uploads "
                        "are in the same sums\n");
    }
}

/* "seconds", "wall seconds", "cycles". */
static void add_unit(struct buffer *out, const struct report *r)
{
    name_add_safe(out, r->dimension);
    buffer_add_text(out, r->in_seconds && strcmp(r->dimension, "seconds") != 0 ? " seconds" : "");
}

/* "1.98 seconds in 198 ticks at 100 a second, 5 calls"; of what is counted one by one, "743628 instructions, …". */
static void add_total(struct buffer *out, const struct report *r, const char *mark)
{
    buffer_add_text(out, "Total     ");
    if (!r->in_seconds && r->rate_count == 1 && r->rates[0] == 1) {
        buffer_add_format(out, "%" PRIu64 " ", r->ticks);
        add_unit(out, r);
    } else {
        amount_add(out, r->total, 0);
        buffer_add_char(out, ' ');
        add_unit(out, r);
        if (r->ticks == 0 && r->total > 0) {
            buffer_add_text(out, ", all outside every known object");
        } else {
            buffer_add_text(out, " in ");
            add_count(out, r->ticks, "tick", "ticks");
            for (uint32_t i = 0; i < r->rate_count; i++) {
                const char *separator = i == 0 ? " at " : i + 1 < r->rate_count ? ", " : " and ";
                buffer_add_format(out, "%s%" PRIu32, separator, r->rates[i]);
            }
            buffer_add_text(out, r->rate_count == 0 ? "" : r->in_seconds ? " a second" : " a unit");
        }
    }
    if (*mark != '\0') { /* the sum of counted calls and of ticks below a caller is no number of calls */
        buffer_add_text(out, r->calls == 0 ? ", calls were not counted" : ", not all calls were counted");
    } else {
        buffer_add_text(out, ", ");
        add_count(out, r->calls, "call", "calls");
    }
    buffer_add_text(out, r->saturated ? "; a sum reached the limit of 2^63-1\n" : "\n");
    if (amount_is_rough(r)) {
        buffer_add_text(out, INDENT "(of so few samples, times and percentages are rough)\n");
    }
    for (uint32_t i = 0; i < r->other_dimension_count; i++) {
        buffer_add_text(out, i == 0 ? "Left out  " : ", ");
        name_add_safe(out, r->other_dimensions[i].name);
        buffer_add_text(out, " (");
        add_count(out, r->other_dimensions[i].ticks, "tick", "ticks");
        buffer_add_char(out, ')');
    }
    if (r->other_dimension_count > 0) {
        buffer_add_text(out, "; select one with --dimension NAME\n");
    }
}

static void add_self_time(const struct text_parts *t, const char *whose, double seconds)
{
    buffer_add_text(t->out, whose);
    amount_add(t->out, seconds, 0);
    buffer_add_char(t->out, ' ');
    add_unit(t->out, t->in->report);
}

/* What of everything is shown, in one line; the line is not there where it is all of it. */
static void add_shown(const struct text_parts *t)
{
    const struct render_input *in = t->in;
    const struct selection *s = t->shown, *flat = t->flat_shown;
    const bool limited = s->hidden > 0 && in->show.view != RENDER_VIEW_NOT_CALLED && in->provenance->uploads > 0;
    const bool parts[] = {
        text_wants(t, strcmp(in->scope, "program") != 0),
        text_wants(t, in->since != 0 || in->until != 0),
        in->match,
        in->show.focus,
        in->report->static_arcs,
        limited,
    };
    const char *separator = "Shown     ";
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        if (!parts[i]) {
            continue;
        }
        buffer_add_text(t->out, separator);
        separator = "; ";
        switch (i) {
        case 0:
            buffer_add_text(
                t->out, strcmp(in->scope, "build") == 0        ? "this build alone, in processes of its own program"
                        : strcmp(in->scope, "everywhere") == 0 ? "this build alone, in every process that loaded it"
                                                               : "all builds together, in processes of this program");
            break;
        case 1: /* the edges that were used */
            if (in->since == 0 && in->until == 0) {
                buffer_add_text(t->out, "all stored time");
            } else {
                add_times(t->out, in->used_since != 0 ? in->used_since : in->since,
                          in->used_until != 0 ? in->used_until : in->until);
            }
            break;
        case 2:
            buffer_add_text(t->out, "uploads with ");
            name_add_safe(t->out, in->match);
            break;
        case 3:
            buffer_add_text(t->out,
                            in->show.view == RENDER_VIEW_NOT_CALLED || render_find_focus(in->report, in->show.focus)
                                ? "functions with "
                                : "no function with calls or time has in its name ");
            name_add_safe(t->out, in->show.focus);
            break;
        case 4:
            buffer_add_text(t->out, "with calls found in the machine code (--static)");
            break;
        default: /* by index and by self time different functions are left out */
            buffer_add_format(t->out, "%" PRIu32 " of %" PRIu32 " functions, ", s->function_count,
                              s->function_count + s->hidden);
            if (in->show.view == RENDER_VIEW_BOTH && flat->hidden_seconds < s->hidden_seconds) {
                add_self_time(t, "the self time left out of the flat profile is ", flat->hidden_seconds);
                add_self_time(t, ", that left out of the call graph ", s->hidden_seconds);
            } else {
                add_self_time(t,
                              noun_for(s->hidden, "the self time of the other is ", "the self time of the others is "),
                              in->show.view == RENDER_VIEW_GRAPH ? s->hidden_seconds : flat->hidden_seconds);
            }
        }
    }
    buffer_add_text(t->out, separator[0] == ';' ? "\n" : "");
    if ((in->used_since != 0 && in->used_since != in->since) || (in->used_until != 0 && in->used_until != in->until)) {
        buffer_add_text(t->out, INDENT "(requested: ");
        add_times(t->out, in->since, in->until);
        buffer_add_text(t->out, "; counts of that time are stored as sums of some minutes or an hour)\n");
    }
}

static bool differs(const struct report_measured *m)
{
    return m && m->differs;
}

/* True if a time of the graph gets a mark: those of the rows that the graph shows. */
static bool any_marked(const struct text_parts *t)
{
    const struct report *r = t->in->report;
    bool found = false;
    for (uint32_t i = 0; r->time_measured && t->in->show.view != RENDER_VIEW_FLAT && i < t->shown->entry_count; i++) {
        const uint32_t entry = t->shown->entries[i];
        const bool cycle = (entry & REPORT_CYCLE) != 0;
        const struct report_cycle *c = cycle ? &r->cycles[entry & ~REPORT_CYCLE] : NULL;
        const struct report_function *f = cycle ? NULL : &r->functions[entry];
        const struct {
            const struct report_arc *arcs;
            uint32_t count;
        } lists[] = {{cycle ? c->callers : f->callers, cycle ? c->caller_count : f->caller_count},
                     {cycle ? c->members : NULL, cycle ? c->member_count : 0},
                     {cycle ? c->callees : f->callees, cycle ? c->callee_count : f->callee_count}};
        found = found || differs(cycle ? c->measured : f->measured);
        for (size_t k = 0; !found && k < sizeof lists / sizeof *lists; k++) {
            const struct row_cut cut = row_cut_make(lists[k].arcs, lists[k].count, t->in->show.rows, k == 0);
            for (uint32_t j = cut.first; !found && j < cut.first + cut.count; j++) {
                found = differs(lists[k].arcs[j].measured);
            }
        }
    }
    return found;
}

/* Which times are in the columns, what they rest on, and what is missing in the stacks. */
static void add_stacks(const struct text_parts *t)
{
    const struct report *r = t->in->report;
    const struct report_stack_facts *s = r->stacks;
    struct buffer *out = t->out;
    if (!s) {
        return;
    }
    const bool by_calls = !r->time_measured && t->in->show.view != RENDER_VIEW_FLAT;
    const bool broken = (double)s->incomplete + (double)s->cut + (double)s->folded > 0.05 * (double)s->ticks;
    if (text_wants(t, by_calls || broken)) {
        buffer_add_text(out, "Stacks    ");
        add_count(out, s->ticks, "stack", "stacks");
        buffer_add_text(out, ", of ");
        amount_add(out, 100 * s->coverage, 0);
        buffer_add_text(out, " % of the ticks: ");
        buffer_add_text(out,
                        r->time_measured
                            ? "children, callers and callees are measured times\n"
                            : "children, callers and callees are times by numbers of calls (--time calls);\n" INDENT
                              "--time measured shows those of the stacks\n");
        const struct {
            uint64_t count;
            const char *what;
        } parts[] = {{s->incomplete, "without the outermost callers"},
                     {s->cut, "of them cut where no call stands before a return address"},
                     {s->folded, "without the innermost frames, which had no space"},
                     {s->inferred, "with a function that only the call instruction names"}};
        const char *separator = INDENT "(";
        for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
            if (parts[i].count > 0) {
                buffer_add_format(out, "%s%" PRIu64 " %s", separator, parts[i].count, parts[i].what);
                separator = ";\n" INDENT " ";
            }
        }
        buffer_add_text(out, separator[0] == ';' ? ")\n" : "");
    }
    if (any_marked(t)) {
        buffer_add_text(
            out,
            "*         marks a measured time; divided by numbers of calls, it would be outside its 95 % interval\n");
    }
}

/* Builds and code without names, functions without calls, and what the rows of the graph leave open. */
static void add_missing(const struct text_parts *t)
{
    const struct render_input *in = t->in;
    const struct report *r = in->report;
    if (r->unnamed_builds > 0) {
        /* A build with a file that can be sent: the vDSO, the kernel, generated code and deleted files have none. */
        const char *file = NULL;
        for (uint32_t i = 0; in->has_names && !file && i < r->build_count; i++) {
            const char *name = r->build_names[i] ? r->build_names[i] : "";
            file = !in->has_names[i] && name[0] == '/' && !strstr(name, " (deleted)") ? name : NULL;
        }
        buffer_add_format(t->out, "Names     missing for %" PRIu32 " of %" PRIu32 " %s: addresses are shown",
                          r->unnamed_builds, r->build_count, noun_for(r->build_count, "build", "builds"));
        if (file) {
            buffer_add_text(t->out, "; `profctl symbols FILE` sends them from the executable or, if it is\n          "
                                    "stripped, from its debug file, for example of ");
            name_add_safe(t->out, file);
        } else if (in->has_names) {
            buffer_add_text(t->out, "; they have no file that could be sent");
        }
        buffer_add_char(t->out, '\n');
    }

    /* Code that much of the time is in, although no function is known there: of the build with most of it. */
    const struct report_function *gap = NULL;
    for (uint32_t i = 0; i < r->function_count; i++) {
        const struct report_function *f = &r->functions[i];
        gap = f->kind == REPORT_GAP && 100 * f->self >= r->total && (!gap || f->self > gap->self) ? f : gap;
    }
    if (gap && gap->self > 0) {
        buffer_add_text(t->out, "Names     [gap] is code of ");
        name_add_safe(t->out, name_find_base(r->build_names[gap->build]));
        buffer_add_text(t->out, " that no function name covers; if the file is stripped, its debug\n" INDENT
                                "file names it: `profctl symbols FILE`\n");
    }
    for (uint32_t i = 0; in->disputed && i < r->build_count; i++) {
        const char *name = r->build_names[i] ? r->build_names[i] : "";
        if (in->disputed[i]) {
            buffer_add_text(t->out, "Disputed  ");
            name_add_safe(t->out, *name != '\0' ? name : r->builds[i]);
            buffer_add_text(t->out, ": ");
            name_add_safe(t->out, in->disputed[i]);
            buffer_add_text(t->out, "\n");
        }
    }

    const bool left_out = (in->provenance->inexact & INEXACT_LEFT_OUT) != 0;
    if (r->counted_functions > 0 && text_wants(t, left_out || in->show.view == RENDER_VIEW_NOT_CALLED)) {
        buffer_add_format(t->out, "Not called %" PRIu32 " of %" PRIu32 " instrumented %s (no call and no tick%s)\n",
                          r->not_called_count, r->counted_functions,
                          noun_for(r->counted_functions, "function", "functions"),
                          left_out ? "; some were left out of counting" : "");
    }
    const bool graph = in->show.view == RENDER_VIEW_BOTH || in->show.view == RENDER_VIEW_GRAPH;
    if (graph && r->jumped_functions > 0) {
        buffer_add_format(t->out,
                          "^calls    %" PRIu32
                          " %s also entered by jumps at the end of others, and may count as called by "
                          "the callers of these\n",
                          r->jumped_functions, noun_for(r->jumped_functions, "function is", "functions are"));
    }
    if (graph && r->open_cycles > 0) {
        buffer_add_format(t->out,
                          "Cycles    are those of all stored time: the calls of this report alone do not close %" PRIu32
                          " of %" PRIu32 "\n",
                          r->open_cycles, r->cycle_count);
    }
}

void text_add_heading(const struct text_parts *t)
{
    const struct render_input *in = t->in;
    buffer_add_text(t->out, "Build     ");
    buffer_add_text(t->out, in->build_id);
    buffer_add_text(t->out, " ");
    name_add_safe(t->out, in->build_name);
    buffer_add_char(t->out, '\n');
    add_shown(t);
    if (in->provenance->uploads == 0) { /* of nothing there is nothing to say, least of all that it is exact */
        buffer_add_text(t->out, "From      nothing: no stored upload matches the query\n");
        if (in->provenance->inexact != 0) {
            add_exactness(t->out, in);
        }
        return;
    }
    add_sources(t->out, in->provenance, in->coverage);
    add_exactness(t->out, in);
    text_add_collector(t);
    add_total(t->out, in->report, text_calls_mark(in));
    add_stacks(t);
    add_missing(t);
}
