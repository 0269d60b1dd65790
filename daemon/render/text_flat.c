#include <string.h>

#include "render/amount.h"
#include "render/text_internal.h"

struct flat_layout {
    int cumulative, self, calls, per_call;
    int recursion; /* width of "+182104"; 0 if no function calls itself */
    const char *dimension, *mark;
    bool timed; /* seconds divided by calls are the time of a call */
};

/* Of a time that is part of the report's total. */
static int flat_digits(const struct report *r, double seconds)
{
    return amount_digits(report_samples(r, (double)r->ticks) * seconds / r->total);
}

/* Time of a call has a unit in each cell: calls of one program last from nanoseconds to hours. 0 is not known: a call
 * takes time, but no tick found it. What else is sampled is counted in its own unit and may be 0. */
static int flat_width_per_call(const struct report *r, double all, double calls)
{
    return !r->in_seconds ? amount_width(all / calls)
           : all > 0      ? amount_duration_width(all / calls, flat_digits(r, all))
                          : 0;
}

static void flat_add_per_call(const struct text_parts *t, const struct flat_layout *l, double all, double calls)
{
    const double each = all / calls;
    buffer_add_char(t->out, ' ');
    if (!t->in->report->in_seconds) {
        amount_add(t->out, each, l->per_call);
    } else if (each > 0) {
        amount_add_duration(t->out, each, flat_digits(t->in->report, all), l->per_call);
    } else {
        buffer_add_repeat(t->out, ' ', (size_t)l->per_call);
    }
}

/* Seconds that the calls of a function caused: of a class of addresses no more than its own (report.h). */
static double flat_caused(const struct report_function *f)
{
    return f->self + (report_kind_is_class(f->kind) ? 0 : f->children);
}

static struct flat_layout flat_measure(const struct text_parts *t, const uint32_t *list, uint32_t n)
{
    struct flat_layout l = {.cumulative = 9,
                            .self = 8,
                            .calls = 8,
                            .per_call = 9,
                            .mark = text_calls_mark(t->in),
                            .timed = !t->in->report->in_seconds || t->in->coverage == NULL ||
                                     coverage_without_ticks(t->in->coverage) == 0,
                            .dimension = name_make_safe(t->arena, t->in->report->dimension)};
    int seconds = amount_width(t->in->report->total), name = (int)strlen(l.dimension);
    seconds = name > seconds ? name : seconds;
    l.cumulative = seconds > l.cumulative ? seconds : l.cumulative;
    l.self = seconds > l.self ? seconds : l.self;
    for (uint32_t i = 0; i < n; i++) {
        const struct report_function *f = &t->in->report->functions[list[i]];
        int width = amount_count_width(f->calls);
        l.calls = width > l.calls ? width : l.calls;
        uint64_t recursive = f->self_calls;
        width = recursive == 0      ? 0
                : recursive < 10000 ? 5
                                    : 1 + amount_count_width(recursive); /* at least of "+self" */
        l.recursion = width > l.recursion ? width : l.recursion;
        width = f->calls == 0 ? 0 : flat_width_per_call(t->in->report, flat_caused(f), (double)f->calls);
        l.per_call = width > l.per_call ? width : l.per_call;
    }
    return l;
}

/* "1+182104": calls from others, and calls of itself, as the graph has them. */
static void flat_add_calls(struct buffer *out, const struct flat_layout *l, const struct report_function *f)
{
    buffer_add_u64(out, f->calls, l->calls);
    if (f->self_calls > 0) {
        buffer_add_char(out, '+');
        buffer_add_u64(out, f->self_calls, 1 - l->recursion);
    } else {
        buffer_add_repeat(out, ' ', (size_t)l->recursion);
    }
}

static void flat_add_line(const struct text_parts *t, const struct flat_layout *l, uint32_t position, double cumulative)
{
    const struct report_function *f = &t->in->report->functions[position];
    double total = t->in->report->total;
    struct buffer *out = t->out;
    amount_add(out, total > 0 ? 100 * f->self / total : 0, 6);
    buffer_add_char(out, ' ');
    amount_add(out, cumulative, l->cumulative);
    /* "~0.46" where it is an estimate: in its column and the blank before it. */
    size_t width = (size_t)l->self + 1, size = (size_t)amount_width(f->self) + (f->self_estimated ? 1 : 0);
    buffer_add_repeat(out, ' ', width > size ? width - size : 0);
    buffer_add_text(out, f->self_estimated ? "~" : "");
    amount_add(out, f->self, 0);
    if (f->calls > 0 || f->self_calls > 0) {
        double calls = (double)f->calls;
        buffer_add_char(out, ' ');
        flat_add_calls(out, l, f);
        if (l->mark[0] != '\0' || !l->timed || f->calls == 0) { /* time per sampled call would mean nothing */
            buffer_add_repeat(out, ' ', (size_t)(2 * l->per_call + 2));
        } else {
            flat_add_per_call(t, l, f->self, calls);
            flat_add_per_call(t, l, flat_caused(f), calls);
        }
    } else {
        buffer_add_repeat(out, ' ', (size_t)(l->calls + l->recursion + 2 * l->per_call + 3));
    }
    buffer_add(out, "  ", 2);
    buffer_add(out, t->names->text[position], t->names->length[position]);
    buffer_add_char(out, '\n');
}

void text_add_flat(const struct text_parts *t)
{
    const struct selection *s = t->flat_shown;
    uint32_t *list = ARENA_ARRAY(t->arena, (size_t)s->function_count + 1, uint32_t), n = 0;
    for (uint32_t i = 0; i < s->entry_count; i++) {
        if (!(s->entries[i] & REPORT_CYCLE)) {
            list[n++] = s->entries[i];
        }
    }
    struct flat_layout l = flat_measure(t, list, n);
    buffer_add_text(t->out, "\nFlat profile:\n\n");
    if (!(t->in->report->total > 0)) {
        buffer_add_format(t->out, " no %s accumulated\n\n", t->in->report->in_seconds ? "time" : l.dimension);
    }
    buffer_add_format(t->out, "%5s %*s %*s %*s %*s %*s\n", "%  ", l.cumulative + 1, "cumulative", l.self, "self  ",
                      l.calls + l.recursion, "", l.per_call, "self  ", l.per_call - 1,
                      "total"); /* each over its column, none ends in blanks */
    buffer_add_format(t->out, "%5s %*s  %*s %*s%s%-*s %*s %*s  name\n", "time", l.cumulative, l.dimension, l.self,
                      l.dimension, l.calls - 5, l.mark, "calls", l.recursion, l.recursion > 0 ? "+self" : "",
                      l.per_call, "per call", l.per_call, "per call");
    double cumulative = 0;
    for (uint32_t i = 0; i < n && !t->out->failed; i++) {
        cumulative += t->in->report->functions[list[i]].self;
        flat_add_line(t, &l, list[i], cumulative);
    }
    text_add_inside(t, 8 + l.cumulative, l.self);
}
