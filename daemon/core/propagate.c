#include "core/propagate.h"

#include "core/sum.h"

static bool propagate_take(struct propagate *p, struct arena *a, const struct callgraph *g, const struct scc *s)
{
    p->node_children = ARENA_ARRAY(a, g->node_count, double);
    p->component_children = ARENA_ARRAY(a, s->count, double);
    p->arc_self = ARENA_ARRAY(a, g->arc_count, double);
    p->arc_children = ARENA_ARRAY(a, g->arc_count, double);
    p->node_outside = ARENA_ARRAY(a, g->node_count, uint64_t);
    p->node_inside = ARENA_ARRAY(a, g->node_count, uint64_t);
    p->node_self = ARENA_ARRAY(a, g->node_count, uint64_t);
    p->component_outside = ARENA_ARRAY(a, s->count, uint64_t);
    p->component_inside = ARENA_ARRAY(a, s->count, uint64_t);
    return p->node_children != NULL && p->component_children != NULL && p->arc_self != NULL &&
           p->arc_children != NULL && p->node_outside != NULL && p->node_inside != NULL && p->node_self != NULL &&
           p->component_outside != NULL && p->component_inside != NULL;
}

/* shares[c]: calls into c from outside as a double, which does not stop at SUM_MAX: shares must add up to 1 even then.
 */
static void propagate_count(struct propagate *p, const struct callgraph *g, const struct scc *s, double *shares)
{
    for (uint32_t i = 0; i < g->arc_count; i++) {
        uint32_t from = g->from[i], to = g->to[i], component = s->component[to];
        if (from == to) {
            sum_add(&p->node_self[to], g->calls[i], &p->saturated);
        } else if (s->component[from] == component) {
            sum_add(&p->node_inside[to], g->calls[i], &p->saturated);
            sum_add(&p->component_inside[component], g->calls[i], &p->saturated);
        } else {
            sum_add(&p->node_outside[to], g->calls[i], &p->saturated);
            sum_add(&p->component_outside[component], g->calls[i], &p->saturated);
            shares[component] += (double)g->calls[i];
        }
    }
}

enum profd_status propagate_run(struct arena *a, const struct callgraph *g, const struct scc *s,
                                const double *component_self, struct propagate **out, struct profd_error *e)
{
    struct propagate *p = ARENA_NEW(a, struct propagate);
    double *shares = ARENA_ARRAY(a, s->count, double);
    if (p == NULL || shares == NULL || !propagate_take(p, a, g, s)) {
        return profd_error_set(e, PROFD_NO_MEMORY, "no memory to propagate along %u arcs", g->arc_count);
    }
    propagate_count(p, g, s, shares);
    for (uint32_t m = 0; m < g->node_count; m++) { /* members of component 0, then of 1, …: callees before callers */
        uint32_t v = s->member[m], component = s->component[v];
        double children = 0;
        for (uint32_t i = g->out_first[v]; i < g->out_first[v + 1]; i++) {
            uint32_t callee = s->component[g->to[i]];
            if (callee == component || g->calls[i] == 0) {
                continue;
            }
            double share = (double)g->calls[i] / shares[callee];
            p->arc_self[i] = component_self[callee] * share;
            p->arc_children[i] = p->component_children[callee] * share;
            children += p->arc_self[i] + p->arc_children[i];
        }
        p->node_children[v] = children;
        p->component_children[component] += children;
    }
    *out = p;
    return PROFD_OK;
}
