#include "core/report_shown.h"

#include <string.h>

/* A copy of rows with measured times; those without any keep theirs. */
static void shown_rows(struct arena *a, const struct report_arc **rows, uint32_t n)
{
    struct report_arc *copy = ARENA_ARRAY(a, n, struct report_arc);
    for (uint32_t i = 0; i < n; i++) {
        copy[i] = (*rows)[i];
        if (copy[i].measured != NULL) {
            copy[i].self = copy[i].measured->self;
            copy[i].children = copy[i].measured->total - copy[i].measured->self;
        }
    }
    *rows = copy;
}

static double shown_percent(const struct report *r, double seconds)
{
    return r->total > 0 ? 100 * seconds / r->total : 0;
}

void report_shown_make(struct arena *a, struct report *r)
{
    r->shown = r;
    if (!r->time_measured) {
        return;
    }
    struct report *copy = ARENA_NEW(a, struct report);
    struct report_function *functions = ARENA_ARRAY(a, r->function_count, struct report_function);
    struct report_cycle *cycles = ARENA_ARRAY(a, r->cycle_count, struct report_cycle);
    memcpy(functions, r->functions, r->function_count * sizeof *functions);
    if (r->cycle_count > 0) {
        memcpy(cycles, r->cycles, r->cycle_count * sizeof *cycles);
    }
    *copy = *r;
    copy->functions = functions;
    copy->cycles = cycles;
    copy->shown = copy;
    r->shown = copy;
    for (uint32_t i = 0; i < copy->function_count; i++) {
        struct report_function *f = &functions[i];
        f->children = f->measured->total - f->measured->self;
        f->percent = shown_percent(copy, f->self + f->children);
        shown_rows(a, &f->callers, f->caller_count);
        shown_rows(a, &f->callees, f->callee_count);
    }
    for (uint32_t i = 0; i < copy->cycle_count; i++) {
        struct report_cycle *c = &cycles[i];
        c->children = c->measured->total - c->measured->self;
        c->percent = shown_percent(copy, c->self + c->children);
        struct report_arc *members = ARENA_ARRAY(a, c->member_count, struct report_arc);
        shown_rows(a, &c->callers, c->caller_count);
        shown_rows(a, &c->callees, c->callee_count);
        for (uint32_t k = 0; k < c->member_count; k++) {
            members[k] = c->members[k];
            members[k].self = functions[members[k].other].self;
            members[k].children = functions[members[k].other].children;
        }
        c->members = members;
    }
}
