#include <string.h>

#include "core/buffer_number.h"
#include "render/text_internal.h"

struct flat_layout {
    int cumulative, self, calls, per_call;
    int recursion;    /* width of "+182104"; 0 if no function calls itself */
    double scale;     /* calls of this many seconds are shown as 1 */
    const char *unit; /* "ms/call" */
    const char *dimension, *mark;
};

/* The unit that brings the longest call between 1 and 1000. */
static void flat_choose_unit(const struct text_parts *t, const uint32_t *list, uint32_t n, struct flat_layout *l)
{
    static const struct {
        double scale;
        const char *unit;
    } UNITS[] = {{1, "s/call"}, {1e3, "ms/call"}, {1e6, "us/call"}, {1e9, "ns/call"}};
    double longest = 0;
    for (uint32_t i = 0; i < n; i++) {
        const struct report_function *f = &t->in->report->functions[list[i]];
        double each = f->calls > 0 ? (f->self + f->children) / (double)f->calls : 0;
        longest = each > longest ? each : longest;
    }
    size_t u = 0;
    while (t->in->report->in_seconds && longest > 0 && longest * UNITS[u].scale < 1 &&
           u + 1 < sizeof UNITS / sizeof *UNITS) {
        u++;
    }
    l->scale = UNITS[u].scale;
    l->unit = t->in->report->in_seconds ? UNITS[u].unit : "per call";
    int width = text_width_seconds(longest * l->scale);
    l->per_call = width > 8 ? width : 8;
}

/* The name of the unit over its columns. */
static const char *flat_unit(const struct report *r, struct arena *a)
{
    const char *name = name_make_safe(a, r->dimension);
    return name != NULL ? name : "units";
}

static struct flat_layout flat_measure(const struct text_parts *t, const uint32_t *list, uint32_t n)
{
    struct flat_layout l = {.cumulative = 9,
                            .self = 8,
                            .calls = 8,
                            .mark = text_calls_mark(t->in),
                            .dimension = flat_unit(t->in->report, t->arena)};
    int seconds = text_width_seconds(t->in->report->total), name = (int)strlen(l.dimension);
    seconds = name > seconds ? name : seconds;
    l.cumulative = seconds > l.cumulative ? seconds : l.cumulative;
    l.self = seconds > l.self ? seconds : l.self;
    for (uint32_t i = 0; i < n; i++) {
        int width = text_width_count(t->in->report->functions[list[i]].calls);
        l.calls = width > l.calls ? width : l.calls;
        uint64_t recursive = t->in->report->functions[list[i]].self_calls;
        width = recursive == 0 ? 0 : recursive < 10000 ? 5 : 1 + text_width_count(recursive); /* at least of "+self" */
        l.recursion = width > l.recursion ? width : l.recursion;
    }
    flat_choose_unit(t, list, n, &l);
    return l;
}

static void flat_add_header(struct buffer *out, const struct flat_layout *l)
{
    buffer_add_format(out, "%5s %*s %*s %*s %*s %*s\n", "%  ", l->cumulative + 1, "cumulative", l->self, "self  ",
                      l->calls + l->recursion, "", l->per_call, "self  ", l->per_call - 1,
                      "total"); /* each over its column, none ends in blanks */
    buffer_add_format(out, "%5s %*s  %*s %*s%s%-*s %*s %*s  name\n", "time", l->cumulative, l->dimension, l->self,
                      l->dimension, l->calls - 5, l->mark, "calls", l->recursion, l->recursion > 0 ? "+self" : "",
                      l->per_call, l->unit, l->per_call, l->unit);
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

/* "~0.46" where it is an estimate: in its column and the blank before it. */
static void flat_add_self(struct buffer *out, const struct flat_layout *l, const struct report_function *f)
{
    char digits[BUFFER_FIXED_MOST];
    size_t width = (size_t)l->self + 1, size = (size_t)(buffer_put_fixed(digits, f->self, 0, 2) - digits);
    buffer_add_repeat(out, ' ', width - size - (f->self_estimated ? 1 : 0));
    buffer_add_text(out, f->self_estimated ? "~" : "");
    buffer_add(out, digits, size);
}

static void flat_add_line(const struct text_parts *t, const struct flat_layout *l, uint32_t position, double cumulative)
{
    const struct report_function *f = &t->in->report->functions[position];
    double total = t->in->report->total;
    struct buffer *out = t->out;
    buffer_add_fixed(out, total > 0 ? 100 * f->self / total : 0, 6, 2);
    buffer_add_char(out, ' ');
    buffer_add_fixed(out, cumulative, l->cumulative, 2);
    flat_add_self(out, l, f);
    if (f->calls > 0 || f->self_calls > 0) {
        double calls = (double)f->calls;
        buffer_add_char(out, ' ');
        flat_add_calls(out, l, f);
        if (l->mark[0] != '\0' || f->calls == 0) { /* time per sampled call would mean nothing */
            buffer_add_repeat(out, ' ', (size_t)(2 * l->per_call + 2));
        } else {
            buffer_add_char(out, ' ');
            buffer_add_fixed(out, l->scale * f->self / calls, l->per_call, 2);
            buffer_add_char(out, ' ');
            buffer_add_fixed(out, l->scale * (f->self + f->children) / calls, l->per_call, 2);
        }
    } else {
        buffer_add_repeat(out, ' ', (size_t)(l->calls + l->recursion + 2 * l->per_call + 3));
    }
    buffer_add(out, "  ", 2);
    buffer_add(out, t->names->text[position], t->names->length[position]);
    buffer_add_char(out, '\n');
}

enum profd_status text_add_flat(const struct text_parts *t, struct profd_error *e)
{
    const struct selection *s = t->flat_shown;
    uint32_t *list = ARENA_ARRAY(t->arena, (size_t)s->function_count + 1, uint32_t), n = 0;
    if (list == NULL) {
        return profd_error_set(e, PROFD_NO_MEMORY, "no memory to list %u functions", s->function_count);
    }
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
    flat_add_header(t->out, &l);
    double cumulative = 0;
    for (uint32_t i = 0; i < n && !t->out->failed; i++) {
        cumulative += t->in->report->functions[list[i]].self;
        flat_add_line(t, &l, list[i], cumulative);
    }
    text_add_inside(t, 8 + l.cumulative, l.self);
    return PROFD_OK;
}
