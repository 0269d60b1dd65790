#include "core/callers.h"

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

void callers_make(struct arena *a, const struct report *r, uint32_t position, enum callers_method want,
                  struct callers *out)
{
    const struct report_function *f = &r->functions[position];
    bool stacks = r->stacks != NULL && (want == CALLERS_STACKS || (want == CALLERS_NONE && r->time_measured));
    *out = (struct callers){.function = f,
                            .method = stacks ? CALLERS_STACKS : CALLERS_CALLS,
                            .rows = ARENA_ARRAY(a, f->caller_count, struct callers_row)};
    if (!stacks && (want == CALLERS_NONE || want == CALLERS_STACKS)) {
        out->stacks_refused = callers_refuse_stacks(a, r);
    }
    for (uint32_t i = 0; i < f->caller_count; i++) {
        out->rows[out->row_count++] = callers_row(r, &f->callers[i], stacks);
    }
    if (out->row_count > 0) {
        qsort(out->rows, out->row_count, sizeof *out->rows, callers_compare);
    }
}
