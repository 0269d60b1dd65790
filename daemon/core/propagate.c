#include "core/propagate.h"

#include "core/sum.h"

/* shares[c]: calls into c from outside as a double, which does not stop at SUM_MAX: shares must add up to 1 even then.
 */
static void propagate_count(struct propagate *p, const struct callgraph *g, const struct scc *s, double *shares)
{
    for (uint32_t i = 0; i < g->arc_count; i++) {
        uint32_t from = g->from[i], to = g->to[i], component = s->component[to];
        if (from == to) {
            sum_add(&p->node_self[to], g->calls[i], &p->saturated);
            sum_add(&p->component_inside[component], g->calls[i], &p->saturated);
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

static bool propagate_flows(const struct callgraph *g, const struct scc *s, uint32_t arc)
{
    return g->calls[arc] > 0 && s->component[g->from[arc]] != s->component[g->to[arc]];
}

/* Time of the arcs out of v that shape, or of those that do not. */
static double propagate_arcs(struct propagate *p, const struct callgraph *g, const struct scc *s, const double *self,
                             const double *shares, uint32_t v, bool shape)
{
    double children = 0;
    for (uint32_t i = g->out_first[v]; i < g->out_first[v + 1]; i++) {
        uint32_t callee = s->component[g->to[i]];
        if (((g->flags[i] & CALLGRAPH_SHAPES) != 0) != shape || !propagate_flows(g, s, i)) {
            continue;
        }
        double share = (double)g->calls[i] / shares[callee];
        p->arc_self[i] = self[callee] * share;
        p->arc_children[i] = p->component_children[callee] * share;
        children += p->arc_self[i] + p->arc_children[i];
    }
    return children;
}

/* The seconds of v itself that its callers hand over to what it calls, and that so come back to it. part is scratch,
 * one element for each component. */
static double propagate_again(const struct callgraph *g, const struct scc *s, const double *self, const double *shares,
                              uint32_t v, double *part)
{
    uint32_t own = s->component[v];
    double again = 0;
    for (uint32_t c = own; c < s->count; c++) {
        part[c] = c == own ? self[own] : 0;
    }
    for (uint32_t m = s->first[own] + scc_size(s, own); m < g->node_count; m++) { /* callers have higher numbers */
        uint32_t w = s->member[m];
        for (uint32_t i = g->out_first[w]; i < g->out_first[w + 1]; i++) {
            uint32_t callee = s->component[g->to[i]];
            if (callee >= own && (g->flags[i] & CALLGRAPH_SHAPES) != 0 && propagate_flows(g, s, i)) {
                part[s->component[w]] += part[callee] * (double)g->calls[i] / shares[callee];
            }
        }
    }
    for (uint32_t i = g->out_first[v]; i < g->out_first[v + 1]; i++) {
        uint32_t callee = s->component[g->to[i]];
        if (callee > own && propagate_flows(g, s, i)) {
            again += part[callee] * (double)g->calls[i] / shares[callee];
        }
    }
    return again;
}

struct propagate *propagate_run(struct arena *a, const struct callgraph *g, const struct scc *s,
                                const double *component_self)
{
    struct propagate *p = ARENA_NEW(a, struct propagate);
    double *shares = ARENA_ARRAY(a, s->count, double), *part = ARENA_ARRAY(a, s->count, double);
    p->node_children = ARENA_ARRAY(a, g->node_count, double);
    p->component_children = ARENA_ARRAY(a, s->count, double);
    p->arc_self = ARENA_ARRAY(a, g->arc_count, double);
    p->arc_children = ARENA_ARRAY(a, g->arc_count, double);
    p->node_outside = ARENA_ARRAY(a, g->node_count, uint64_t);
    p->node_inside = ARENA_ARRAY(a, g->node_count, uint64_t);
    p->node_self = ARENA_ARRAY(a, g->node_count, uint64_t);
    p->component_outside = ARENA_ARRAY(a, s->count, uint64_t);
    p->component_inside = ARENA_ARRAY(a, s->count, uint64_t);
    propagate_count(p, g, s, shares);
    for (uint32_t m = 0; m < g->node_count; m++) { /* members of component 0, then of 1, …: callees before callers */
        uint32_t v = s->member[m], component = s->component[v];
        p->node_children[v] = propagate_arcs(p, g, s, component_self, shares, v, true);
        p->component_children[component] += p->node_children[v];
    }
    /* What classes of addresses call, when the times of all functions are known. */
    for (uint32_t v = 0; v < g->node_count; v++) {
        double below = propagate_arcs(p, g, s, component_self, shares, v, false);
        if (below > 0 && p->node_outside[v] > 0 && component_self[s->component[v]] > 0) {
            double again = propagate_again(g, s, component_self, shares, v, part);
            below -= again < below ? again : below;
        }
        p->node_children[v] += below;
    }
    return p;
}
