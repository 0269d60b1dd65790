#include <inttypes.h>
#include <string.h>

#include "proto/message.h"
#include "proto/words.h"
#include "render/text_parts.h"

static void add_times(struct buffer *out, const char *what, int64_t from, int64_t to)
{
    char first[40], last[40];
    render_time(from, first);
    render_time(to, last);
    buffer_add_format(out, "%s%s to %s\n", what, from == 0 ? "the beginning" : first, to == 0 ? "now" : last);
}

static void add_plural(struct buffer *out, uint64_t n, const char *one, const char *many)
{
    buffer_add_format(out, "%" PRIu64 " %s", n, n == 1 ? one : many);
}

static const char *scope_words(const char *scope)
{
    if (strcmp(scope, "build") == 0) {
        return "build: this build alone, in processes of its own program";
    }
    if (strcmp(scope, "everywhere") == 0) {
        return "everywhere: this build alone, in every process that had it";
    }
    return "program: all builds together, in processes of this program";
}

static void add_sources(struct buffer *out, const struct provenance *p)
{
    buffer_add_text(out, "From      ");
    add_plural(out, p->uploads, "upload", "uploads");
    buffer_add_text(out, ", ");
    add_plural(out, p->processes, "process started", "processes started");
    buffer_add_text(out, ", ");
    add_plural(out, p->hosts, "host", "hosts");
    buffer_add_text(out, p->uploads == 0 ? ": nothing that is stored matches the question\n" : "\n");
    if (p->uploads > 0) {
        add_times(out, "Seen      ", p->first, p->last);
    }
    if (p->uid_count > 1) {
        buffer_add_text(out, "Users     ");
        for (uint32_t i = 0; i < p->uid_count; i++) {
            buffer_add_format(out, "%s%" PRIu32, i > 0 ? ", " : "uid ", p->uids[i]);
        }
        buffer_add_text(out, "\n");
    }
}

static void add_exactness(struct buffer *out, const struct render_input *in)
{
    const uint32_t inexact = in->provenance->inexact;
    const bool covered = in->coverage != NULL && in->coverage->words[WORDS_PROCESSES] != 0;
    const char *separator = "Exact     no: ";
    for (uint32_t bit = 1; bit != 0 && bit <= INEXACT_ALL; bit <<= 1) {
        const char *name = (inexact & bit) != 0 ? message_inexact_name(bit) : NULL;
        if (name != NULL) {
            buffer_add_text(out, separator);
            buffer_add_text(out, name);
            separator = ", ";
        }
    }
    buffer_add_text(out, inexact == 0 && covered ? "Exact     yes: no call was lost on the way; of ticks see Coverage\n"
                         : inexact == 0          ? "Exact     yes: no tick or call was lost on the way\n"
                         : (inexact & INEXACT_CALLS) == 0 ? " (calls are exact, ticks are not)\n"
                         : (inexact & INEXACT_TICKS) == 0 ? " (ticks are exact, calls are not)\n"
                                                          : "\n");
    if ((inexact & INEXACT_SAMPLED) != 0) {
        buffer_add_text(out, "~calls    sampled: where a program does not count its calls, a number of calls is how "
                             "often a tick found the\n"
                             "          callee below its caller\n");
    }
}

/* "seconds", "wall seconds", "cycles". */
static void add_unit(struct buffer *out, const struct report *r)
{
    name_add_safe(out, r->dimension);
    buffer_add_text(out, r->in_seconds && strcmp(r->dimension, "seconds") != 0 ? " seconds" : "");
}

static void add_total(struct buffer *out, const struct report *r)
{
    buffer_add_text(out, "Total     ");
    buffer_add_fixed(out, r->total, 0, 2);
    buffer_add_char(out, ' ');
    add_unit(out, r);
    buffer_add_format(out, " in %" PRIu64 " ticks", r->ticks);
    for (uint32_t i = 0; i < r->rate_count; i++) {
        buffer_add_format(out, "%s%" PRIu32, i == 0 ? " at " : i + 1 < r->rate_count ? ", " : " and ", r->rates[i]);
    }
    buffer_add_format(out, "%s, %" PRIu64 " calls%s\n",
                      r->rate_count == 0 ? ""
                      : r->in_seconds    ? " a second"
                                         : " a unit",
                      r->calls, r->saturated ? "; a sum reached 2^63-1 and is larger" : "");
    for (uint32_t i = 0; i < r->other_dimension_count; i++) {
        buffer_add_text(out, i == 0 ? "Left out  " : ", ");
        name_add_safe(out, r->other_dimensions[i].name);
        buffer_add_format(out, " (%" PRIu64 " ticks)", r->other_dimensions[i].ticks);
    }
    if (r->other_dimension_count > 0) {
        buffer_add_text(out, ": dimension=NAME shows those\n");
    }
}

static void add_missing(const struct text_parts *t)
{
    const struct report *r = t->in->report;
    const struct selection *s = t->shown;
    if (r->unnamed_builds > 0) {
        buffer_add_format(t->out,
                          "Names     missing for %" PRIu32 " of %" PRIu32 " %s: addresses are shown; "
                          "`profctl symbols EXE` repairs it\n",
                          r->unnamed_builds, r->build_count, r->build_count == 1 ? "build" : "builds");
    }
    if (r->static_arcs) {
        buffer_add_text(t->out, "Graph     with the calls in the machine code, as in 1982 (static=1)\n");
    }
    if (s->hidden > 0) {
        buffer_add_format(t->out, "Shown     %" PRIu32 " of %" PRIu32 " functions; the others have ", s->function_count,
                          s->function_count + s->hidden);
        buffer_add_fixed(t->out, s->hidden_seconds, 0, 2);
        buffer_add_char(t->out, ' ');
        add_unit(t->out, r);
        buffer_add_text(t->out, " of their own\n");
    }
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
        add_times(out, "Asked for ", in->since, in->until);
        buffer_add_text(out, "          (uploads are kept as one sum an hour there)\n");
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
    add_sources(t->out, in->provenance);
    add_exactness(t->out, in);
    text_add_collector(t);
    add_total(t->out, in->report);
    add_missing(t);
    if (in->focus != NULL) {
        buffer_add_text(t->out, "Focus     ");
        name_add_safe(t->out, in->focus);
        buffer_add_text(t->out, "\n");
    }
}
