/* /api/v1/builds/{id}/cycles: the cycles of a report, the arcs inside each, and those that would break it. */
#include "core/cycle_break.h"
#include "proto/sort.h"
#include "query/handlers.h"
#include "query/query.h"
#include "query/work.h"
#include "render/render_cycles.h"

/* The arcs among members, each marked. Members are numbered by number, which has an element for each function. */
static void find_arcs(struct arena *a, const struct report *r, const struct report_cycle *cycle, uint32_t *number,
                      struct render_cycle *out)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < cycle->member_count; i++) {
        number[cycle->members[i].other] = i;
        n += r->functions[cycle->members[i].other].callee_count;
    }
    struct cycle_arc *arcs = ARENA_ARRAY(a, (size_t)n + 1, struct cycle_arc);
    n = 0;
    for (uint32_t i = 0; i < cycle->member_count; i++) {
        const struct report_function *f = &r->functions[cycle->members[i].other];
        for (uint32_t k = 0; k < f->callee_count; k++) {
            if (f->callees[k].inside) {
                arcs[n++] =
                    (struct cycle_arc){.from = i, .to = number[f->callees[k].other], .calls = f->callees[k].calls};
            }
        }
    }
    /* By calls, the most first. */
    struct sort_item *order = ARENA_ARRAY(a, (size_t)n * 2, struct sort_item);
    struct cycle_arc *sorted = ARENA_ARRAY(a, (size_t)n + 1, struct cycle_arc);
    for (uint32_t i = 0; i < n; i++) {
        order[i] = (struct sort_item){~arcs[i].calls, i};
    }
    sort_radix(order, order + n, n);
    for (uint32_t i = 0; i < n; i++) {
        sorted[i] = arcs[order[i].value];
    }
    *out = (struct render_cycle){.cycle = cycle, .arcs = sorted, .arc_count = n};
    cycle_break(a, cycle->member_count, sorted, n);
}

/* The cycles with the most time, at most count. */
static struct render_cycle *find_cycles(struct job *job, const struct report *r, uint32_t count)
{
    struct render_cycle *cycles = ARENA_ARRAY(job->arena, r->cycle_count, struct render_cycle);
    struct sort_item *order = ARENA_ARRAY(job->arena, (size_t)r->cycle_count * 2, struct sort_item);
    uint32_t *number = ARENA_ARRAY(job->arena, r->function_count, uint32_t);
    for (uint32_t i = 0; i < r->cycle_count; i++) {
        order[i] = (struct sort_item){~sort_key_double(r->cycles[i].self + r->cycles[i].children), i};
    }
    sort_radix(order, order + r->cycle_count, r->cycle_count);
    for (uint32_t i = 0; i < count; i++) {
        find_arcs(job->arena, r, &r->cycles[order[i].value], number, &cycles[i]);
    }
    return cycles;
}

enum profd_status cycles_list(struct job *job, struct profd_error *e)
{
    struct work w;
    bool fresh = false;
    size_t limit = 0;
    TRY(work_make_report(job, &w, &limit, &fresh, e));
    if (fresh) {
        return PROFD_OK;
    }
    const uint32_t all = w.report->shown->cycle_count, count = limit < all ? (uint32_t)limit : all;
    const struct render_input in = work_make_input(&w);
    render_cycles(&in, find_cycles(job, w.report->shown, count), count, limit, &job->answer->body);
    return PROFD_OK;
}
