#include <inttypes.h>
#include <string.h>

#include "proto/message.h"
#include "proto/noun.h"
#include "proto/collector.h"
#include "render/amount.h"
#include "render/text_internal.h"

#define INDENT "          "
static void add_times(struct buffer *out, const char *what, int64_t from, int64_t to)
{
    char first[40], last[40];
    render_time_second(from, first);
    render_time_second(to, last);
    if (from != 0 && strcmp(first, last) == 0) {
        buffer_add_format(out, "%s%s\n", what, first);
        return;
    }
    buffer_add_format(out, "%s%s to %s\n", what, from == 0 ? "the beginning" : first, to == 0 ? "now" : last);
}

static void add_count(struct buffer *out, uint64_t n, const char *one, const char *many)
{
    buffer_add_format(out, "%" PRIu64 " %s", n, noun_for(n, one, many));
}

static const char *scope_words(const char *scope)
{
    if (strcmp(scope, "build") == 0) {
        return "build: this build alone, in processes of its own program";
    }
    if (strcmp(scope, "everywhere") == 0) {
        return "everywhere: this build alone, in every process that loaded it";
    }
    return "program: all builds together, in processes of this program";
}

/* A live process is stored in slices, which are no uploads to a person: where all processes had a collector or were
 * recorded, their number is left out. */
static void add_processes(struct buffer *out, const struct provenance *p, const struct coverage *c)
{
    const bool live =
        c != NULL && c->any &&
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
}

static void add_sources(struct buffer *out, const struct provenance *p, const struct coverage *c)
{
    add_processes(out, p, c);
    add_count(out, p->hosts, "machine", "machines");
    if (p->host_labels > 0 && p->host_labels != p->hosts) {
        buffer_add_text(out, ", ");
        add_count(out, p->host_labels, "value of the label host", "values of the label host");
    }
    buffer_add_text(out, "\n");
    add_times(out, "Seen      ", p->first, p->last);
    if (p->live > 0) { /* how long ago that was, the reader's clock says: this text may be kept */
        char read[40];
        render_time_second(p->as_of, read);
        buffer_add_format(out, "Live      as of %s: ", read);
        add_count(out, p->live, "process was", "processes were");
        buffer_add_text(out, " still running\n");
    }
    if (p->uid_count > 1) {
        buffer_add_text(out, "Users     ");
        for (uint32_t i = 0; i < p->uid_count; i++) {
            buffer_add_format(out, "%s%" PRIu32, i > 0 ? ", " : "uid ", p->uids[i]);
        }
        buffer_add_text(out, "\n");
    }
}

/* Those that have no line of their own in the heading. */
static void add_meanings(struct buffer *out, uint32_t inexact)
{
    for (uint32_t bit = 1; bit != 0 && bit <= INEXACT_ALL; bit <<= 1) {
        if ((inexact & bit & ~((unsigned)INEXACT_NOT_READ | INEXACT_SAMPLED)) != 0) {
            buffer_add_format(out, "          %-16s %s\n", message_inexact_name(bit), message_inexact_meaning(bit));
        }
    }
}

static void add_exactness(struct buffer *out, const struct render_input *in)
{
    const uint32_t inexact = in->provenance->inexact;
    const bool covered = in->coverage != NULL && in->coverage->counters[COLLECTOR_PROCESSES] != 0;
    const char *separator = "Exact     no: ";
    for (uint32_t bit = 1; bit != 0 && bit <= INEXACT_ALL; bit <<= 1) {
        const char *name = (inexact & bit) != 0 ? message_inexact_name(bit) : NULL;
        if (name != NULL) {
            buffer_add_text(out, separator);
            buffer_add_text(out, name);
            separator = ", ";
        }
    }
    buffer_add_text(out, inexact == 0 && covered ? "Exact     yes: no call was lost; for ticks see Coverage\n"
                         : inexact == 0          ? "Exact     yes: no tick or call was lost\n"
                         : (inexact & (INEXACT_CALLS | INEXACT_TICKS)) == 0 ? " (calls and ticks are exact)\n"
                         : (inexact & INEXACT_CALLS) == 0                   ? " (calls are exact, ticks are not)\n"
                         : (inexact & INEXACT_TICKS) == 0                   ? " (ticks are exact, calls are not)\n"
                                                                            : "\n");
    add_meanings(out, inexact);
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

/* "1.98 seconds in 198 ticks at 100 a second"; of what is counted one by one, "743628 instructions". */
static void add_amount(struct buffer *out, const struct report *r)
{
    if (!r->in_seconds && r->rate_count == 1 && r->rates[0] == 1) {
        buffer_add_format(out, "%" PRIu64 " ", r->ticks);
        add_unit(out, r);
        return;
    }
    amount_add(out, r->total, 0);
    buffer_add_char(out, ' ');
    add_unit(out, r);
    buffer_add_text(out, " in ");
    add_count(out, r->ticks, "tick", "ticks");
    for (uint32_t i = 0; i < r->rate_count; i++) {
        buffer_add_format(out, "%s%" PRIu32, i == 0 ? " at " : i + 1 < r->rate_count ? ", " : " and ", r->rates[i]);
    }
    buffer_add_text(out, r->rate_count == 0 ? "" : r->in_seconds ? " a second" : " a unit");
}

static void add_total(struct buffer *out, const struct report *r, const char *mark)
{
    buffer_add_text(out, "Total     ");
    add_amount(out, r);
    if (*mark != '\0' && r->calls == 0) {
        buffer_add_text(out, ", calls were not counted\n");
    } else {
        buffer_add_format(out, ", %s%" PRIu64 " %s%s\n", mark, r->calls, noun_for(r->calls, "call", "calls"),
                          r->saturated ? "; a sum reached the limit of 2^63-1" : "");
    }
    if (amount_is_rough(r)) {
        buffer_add_text(out, INDENT "(of so few ticks, times and percentages are rough)\n");
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

/* A build with a file that can be sent: the vDSO, the kernel, generated code and deleted files have none. NULL if there
 * is none. */
static const char *find_sendable(const struct render_input *in)
{
    for (uint32_t i = 0; in->has_names != NULL && i < in->report->build_count; i++) {
        const char *name = in->report->build_names[i] != NULL ? in->report->build_names[i] : "",
                   *end = strstr(name, " (deleted)");
        if (!in->has_names[i] && name[0] == '/' && end == NULL) {
            return name;
        }
    }
    return NULL;
}

static void add_unnamed(struct buffer *out, const struct render_input *in)
{
    const struct report *r = in->report;
    const char *file = find_sendable(in);
    buffer_add_format(out, "Names     missing for %" PRIu32 " of %" PRIu32 " %s: addresses are shown",
                      r->unnamed_builds, r->build_count, noun_for(r->build_count, "build", "builds"));
    if (file != NULL) {
        buffer_add_text(out, "; `profctl symbols FILE` sends them from the executable or, if it is\n          "
                             "stripped, from its debug file, for example of ");
        name_add_safe(out, file);
    } else if (in->has_names != NULL) {
        buffer_add_text(out, "; they have no file that could be sent");
    }
    buffer_add_char(out, '\n');
}

/* Code that much of the time is in, although no function is known there: of the build with most of it. */
static void add_gap(struct buffer *out, const struct report *r)
{
    const struct report_function *gap = NULL;
    for (uint32_t i = 0; i < r->function_count; i++) {
        const struct report_function *f = &r->functions[i];
        gap = f->kind == REPORT_GAP && 100 * f->self >= r->total && (gap == NULL || f->self > gap->self) ? f : gap;
    }
    if (gap != NULL && gap->self > 0) {
        buffer_add_text(out, "Names     [gap] is code of ");
        name_add_safe(out, name_find_base(r->build_names[gap->build]));
        buffer_add_text(out, " that no function name covers; if the file is stripped, its debug\n" INDENT
                             "file names it: `profctl symbols FILE`\n");
    }
}

static void add_disputed(struct buffer *out, const struct render_input *in)
{
    for (uint32_t i = 0; in->disputed != NULL && i < in->report->build_count; i++) {
        const char *name = in->report->build_names[i] != NULL ? in->report->build_names[i] : "";
        if (in->disputed[i] != NULL) {
            buffer_add_text(out, "Disputed  ");
            name_add_safe(out, *name != '\0' ? name : in->report->builds[i]);
            buffer_add_format(out, ": %s\n", in->disputed[i]);
        }
    }
}

static void add_self_time(const struct text_parts *t, const char *whose, double seconds)
{
    buffer_add_text(t->out, whose);
    amount_add(t->out, seconds, 0);
    buffer_add_char(t->out, ' ');
    add_unit(t->out, t->in->report);
}

/* By index and by self time different functions are left out. */
static void add_shown(const struct text_parts *t)
{
    const struct selection *s = t->shown, *flat = t->flat_shown;
    if (s->hidden == 0 || t->in->show.view == RENDER_VIEW_NOT_CALLED) {
        return;
    }
    buffer_add_format(t->out, "Shown     %" PRIu32 " of %" PRIu32 " functions; ", s->function_count,
                      s->function_count + s->hidden);
    if (t->in->show.view == RENDER_VIEW_BOTH && flat->hidden_seconds < s->hidden_seconds) {
        add_self_time(t, "the self time left out of the flat profile is ", flat->hidden_seconds);
        add_self_time(t, ",\n" INDENT "that left out of the call graph ", s->hidden_seconds);
    } else {
        add_self_time(t, noun_for(s->hidden, "the self time of the other is ", "the self time of the others is "),
                      t->in->show.view == RENDER_VIEW_GRAPH ? s->hidden_seconds : flat->hidden_seconds);
    }
    buffer_add_char(t->out, '\n');
}

static bool any_differs(const struct report *r)
{
    for (uint32_t i = 0; i < r->function_count; i++) {
        const struct report_function *f = &r->functions[i];
        bool differs = f->measured->differs;
        for (uint32_t k = 0; !differs && k < f->caller_count; k++) {
            differs = f->callers[k].measured != NULL && f->callers[k].measured->differs;
        }
        if (differs) {
            return true;
        }
    }
    return false;
}

/* Which times are in the columns, what they rest on, and what is missing in the stacks. */
static void add_stacks(struct buffer *out, const struct report *r)
{
    const struct report_stack_facts *s = r->stacks;
    if (s == NULL) {
        return;
    }
    buffer_add_text(out, "Stacks    ");
    add_count(out, s->ticks, "stack", "stacks");
    buffer_add_text(out, ", of ");
    amount_add(out, 100 * s->coverage, 0);
    buffer_add_text(out, " % of the ticks: ");
    buffer_add_text(out, r->time_measured
                             ? "children, callers and callees are measured times\n"
                             : "children, callers and callees are times by numbers of calls (--time calls);\n" INDENT
                               "--time measured shows those of the stacks\n");
    if (r->time_measured && any_differs(r)) {
        buffer_add_text(out, INDENT
                        "* marks a time for which the division by numbers of calls gives a value outside\n" INDENT
                        "the 95 % interval of the measured time\n");
    }
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

static void add_missing(const struct text_parts *t)
{
    const struct report *r = t->in->report;
    if (r->unnamed_builds > 0) {
        add_unnamed(t->out, t->in);
    }
    add_gap(t->out, r);
    add_disputed(t->out, t->in);
    if (r->counted_functions > 0) {
        buffer_add_format(
            t->out, "Not called %" PRIu32 " of %" PRIu32 " instrumented %s (no call and no tick%s)\n",
            r->not_called_count, r->counted_functions, noun_for(r->counted_functions, "function", "functions"),
            (t->in->provenance->inexact & INEXACT_LEFT_OUT) != 0 ? "; some were left out of counting" : "");
    }
    if (r->static_arcs) {
        buffer_add_text(t->out, "Graph     includes calls found in the machine code (--static)\n");
    }
    add_shown(t);
}

/* The edges that were used, and what was asked for if that is not the same. */
static void add_window(struct buffer *out, const struct render_input *in)
{
    int64_t since = in->used_since != 0 ? in->used_since : in->since,
            until = in->used_until != 0 ? in->used_until : in->until;
    if (in->since == 0 && in->until == 0) {
        buffer_add_text(out, "Window    all stored time\n");
        return;
    }
    add_times(out, "Window    ", since, until);
    if (since != in->since || until != in->until) {
        add_times(out, "Requested ", in->since, in->until);
        buffer_add_text(out, "          (counts of that time are stored as sums of some minutes or an hour)\n");
    }
}

void text_add_heading(const struct text_parts *t)
{
    const struct render_input *in = t->in;
    buffer_add_text(t->out, "Build     ");
    buffer_add_text(t->out, in->build_id);
    buffer_add_text(t->out, " ");
    name_add_safe(t->out, in->build_name);
    buffer_add_format(t->out, "\nScope     %s\n", scope_words(in->scope));
    add_window(t->out, in);
    if (in->match != NULL) {
        buffer_add_text(t->out, "Labels    ");
        name_add_safe(t->out, in->match);
        buffer_add_text(t->out, "\n");
    }
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
    add_stacks(t->out, in->report);
    add_missing(t);
    if (in->show.focus != NULL) {
        buffer_add_text(t->out, "Focus     ");
        name_add_safe(t->out, in->show.focus);
        buffer_add_text(t->out, in->show.view == RENDER_VIEW_NOT_CALLED || render_find_focus(in->report, in->show.focus)
                                    ? "\n"
                                    : ": no function with calls or time has this in its name\n");
    }
}
