#include "core/callers.h"

#include <math.h>
#include <stdlib.h>

static double callers_time(const struct callers_row *row)
{
    return row->method == CALLERS_NONE ? -1 : row->seconds;
}

static int callers_compare(const void *left, const void *right)
{
    const struct callers_row *a = left, *b = right;
    double x = callers_time(a), y = callers_time(b);
    if (x < y || x > y) {
        return x > y ? -1 : 1;
    }
    if (a->arc->calls != b->arc->calls) {
        return a->arc->calls > b->arc->calls ? -1 : 1;
    }
    return a->arc->other < b->arc->other ? -1 : a->arc->other > b->arc->other;
}

static void callers_sort(struct callers *c)
{
    if (c->row_count > 0) {
        qsort(c->rows, c->row_count, sizeof *c->rows, callers_compare);
    }
}

static struct callers_row callers_row(const struct report *r, const struct report_arc *arc, bool stacks)
{
    const struct report_function *caller = &r->functions[arc->other];
    const double calls = report_all_calls(caller);
    struct callers_row row = {.arc = arc, .per_caller = calls > 0 ? (double)arc->calls / calls : -1, .low = 1};
    if (arc->inside) {
        return row;
    }
    row.method = stacks ? CALLERS_STACKS : CALLERS_CALLS;
    row.seconds = arc->self + arc->children;
    if (stacks) {
        const struct report_measured *m = arc->measured;
        row.seconds = m != NULL ? m->total : 0;
        row.low = m != NULL ? m->low : 1;
        row.high = m != NULL ? m->high : 0;
    }
    return row;
}

static const char *callers_refuse_stacks(struct arena *a, const struct report *r)
{
    if (r->stacks == NULL) {
        return "no stacks were taken";
    }
    return arena_format(a, "only %.1f %% of the ticks have stacks", 100 * r->stacks->coverage);
}

enum profd_status callers_make(struct arena *a, const struct report *r, uint32_t position, enum callers_method want,
                               struct callers *out, struct profd_error *e)
{
    const struct report_function *f = &r->functions[position];
    bool stacks = r->stacks != NULL && (want == CALLERS_STACKS || (want == CALLERS_NONE && r->time_measured));
    *out = (struct callers){.function = f,
                            .method = stacks ? CALLERS_STACKS : CALLERS_CALLS,
                            .rows = ARENA_ARRAY(a, f->caller_count, struct callers_row)};
    if (out->rows == NULL) {
        return profd_error_set(e, PROFD_NO_MEMORY, "no memory for %u callers", f->caller_count);
    }
    if (!stacks && (want == CALLERS_NONE || want == CALLERS_STACKS)) {
        out->stacks_refused = callers_refuse_stacks(a, r);
    }
    for (uint32_t i = 0; i < f->caller_count; i++) {
        out->rows[out->row_count++] = callers_row(r, &f->callers[i], stacks);
    }
    callers_sort(out);
    return PROFD_OK;
}

const char *callers_refuse(const struct report *r, uint32_t position, uint32_t callers, bool in_cycle)
{
    const struct report_function *f = &r->functions[position];
    if (in_cycle || f->cycle != 0) {
        return "the function is in a cycle; times of its members are not told apart";
    }
    if (!(f->self + f->children > 0)) {
        return "no tick is of this function or of what it calls";
    }
    if (callers == 0) {
        return "no call from another function was counted";
    }
    if (callers == 1) {
        return "there is one caller, which has all of the time";
    }
    return callers > REGRESSION_CAUSES ? "there are more than 64 callers" : NULL;
}

static uint64_t callers_calls(const struct callers *c, uint32_t other)
{
    uint64_t calls = 0;
    for (uint32_t i = 0; i < c->row_count; i++) {
        calls = c->rows[i].arc->other == other ? c->rows[i].arc->calls : calls;
    }
    return calls;
}

/* The first reason not to use a fit. */
static const char *callers_judge(struct arena *a, const struct report *r, const struct regression *fit,
                                 const struct callers *c, uint32_t worst, uint32_t causes)
{
    switch (fit->verdict) {
    case REGRESSION_FEW:
        return arena_format(a, "%u %s with calls %s too few for %u callers; %u are needed", c->fit.equations,
                            c->fit.equations == 1 ? "process, minute or group of an hour"
                                                  : "processes, minutes or groups of an hour",
                            c->fit.equations == 1 ? "is" : "are", causes, causes + REGRESSION_SPARE);
    case REGRESSION_COLLINEAR:
        return arena_format(a,
                            "the callers' calls rise and fall together: the condition number is %.3g, the limit is %g",
                            fit->condition, REGRESSION_CONDITION);
    case REGRESSION_SINGLE:
        return "one process alone decides on a caller";
    case REGRESSION_FITTED:
        break;
    }
    if (c->fit.worst_error > CALLERS_ERROR_MOST) {
        return arena_format(
            a,
            "the standard error of %.100s is %.0f %% of the function's time, the limit is %.0f %%: more "
            "processes with other mixes are needed",
            r->functions[worst].name, 100 * c->fit.worst_error, 100 * CALLERS_ERROR_MOST);
    }
    return NULL;
}

static bool callers_is_alone(const struct callers_causes *x, uint32_t k)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < x->count; i++) {
        count += x->groups->of[i] == x->groups->of[k];
    }
    return count == 1;
}

static double callers_group_calls(const struct callers *c, const struct callers_causes *x, uint32_t group)
{
    double calls = 0;
    for (uint32_t i = 0; i < x->count; i++) {
        calls += x->groups->of[i] == group ? (double)callers_calls(c, x->callers[i]) : 0;
    }
    return calls;
}

static void callers_give(struct callers *c, const struct regression *fit, const struct callers_causes *x)
{
    for (uint32_t i = 0; i < c->row_count; i++) {
        struct callers_row *row = &c->rows[i];
        for (uint32_t k = 0; k < x->count; k++) {
            if (x->callers[k] == row->arc->other && row->method != CALLERS_NONE) {
                const uint32_t group = x->groups->of[k];
                const bool alone = callers_is_alone(x, k);
                const double calls = (double)row->arc->calls * x->scale;
                row->method = CALLERS_REGRESSION;
                row->seconds = fit->cost[group] * calls;
                row->low = alone ? fit->low[group] * calls : 0;
                row->high = fit->high[group] * (alone ? calls : callers_group_calls(c, x, group) * x->scale);
            }
        }
    }
    c->method = CALLERS_REGRESSION;
    callers_sort(c);
}

/* Names the callers of each group of several: "a, b; c, d". */
static const char *callers_name_groups(struct arena *a, const struct report *r, const struct callers_causes *x)
{
    const char *text = NULL;
    for (uint32_t group = 0; group < x->groups->count; group++) {
        const char *separator = text == NULL ? "" : "; ";
        for (uint32_t k = 0; k < x->count; k++) {
            if (x->groups->of[k] == group && !callers_is_alone(x, k)) {
                text = arena_format(a, "%s%s%.100s", text == NULL ? "" : text, separator,
                                    r->functions[x->callers[k]].name);
                separator = ", ";
            }
        }
    }
    return text == NULL ? NULL
                        : arena_format(a,
                                       "the calls of these callers keep one proportion: their time together is fitted, "
                                       "and divided by numbers of calls; the interval of each reaches from 0 to all "
                                       "of it: %s",
                                       text);
}

enum profd_status callers_apply(struct arena *a, const struct report *r, const struct regression *fit,
                                const struct callers_causes *x, struct callers *c, struct profd_error *e)
{
    const double total = c->function->self + c->function->children;
    uint32_t worst = x->count > 0 ? x->callers[0] : 0;
    c->fit.condition = isfinite(fit->condition) ? fit->condition : 0;
    c->fit.worst_error = -1;
    for (uint32_t k = 0; fit->verdict == REGRESSION_FITTED && k < x->count; k++) {
        const uint32_t group = x->groups->of[k];
        const double error = fit->error[group] * callers_group_calls(c, x, group) * x->scale / total;
        if (error > c->fit.worst_error) {
            c->fit.worst_error = error;
            worst = x->callers[k];
        }
    }
    c->fit.refused = callers_judge(a, r, fit, c, worst, x->groups->count);
    if (c->fit.refused == NULL && (fit->verdict != REGRESSION_FITTED || c->fit.worst_error > CALLERS_ERROR_MOST)) {
        return profd_error_set(e, PROFD_NO_MEMORY, "no memory for a sentence");
    }
    if (c->fit.refused == NULL) {
        c->fit.together = callers_name_groups(a, r, x);
        if (x->groups->count < x->count && c->fit.together == NULL) {
            return profd_error_set(e, PROFD_NO_MEMORY, "no memory for a sentence");
        }
        callers_give(c, fit, x);
    }
    return PROFD_OK;
}
