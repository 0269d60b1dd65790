#include "core/diff.h"

#include <math.h>
#include <string.h>

#include "core/graph.h"
#include "core/report.h"
#include "core/report_graph.h"
#include "proto/sum.h"
#include "proto/collector.h"

#define V DIFF_VALUES
#define NO_NODE UINT32_MAX

struct side_work {
    struct arena *arena, *scratch, *flow; /* of what stays; of what goes with the side, or with the value */
    const struct diff_side_request *request;
    struct report_graph graph;
    struct report_arcs arcs; /* of the window; rows in the order of the profile's arcs */
    uint32_t *node_of_owner; /* NO_NODE: none */
    uint64_t *calls; /* of each arc of the graph: value k at [k·arcs + arc], so that a flow reads them in order */
    uint16_t *arc_groups;
    double *self, *total, *node_calls; /* of each node: [node·V] */
    double *measured;                  /* total of stacks, likewise; NULL if the stacks do not tell it */
    uint16_t *tick_groups, *call_groups;
    struct diff_side *out;
};

/* x becomes the values of a number with these shares, added to what is there. The shares of old sums may be less than
 * their number: what no group is known for is in all values. */
static void side_add_values(double *x, uint64_t all, const uint64_t *shares)
{
    x[0] += (double)all;
    for (uint32_t g = 0; g < RANDOM_GROUPS; g++) {
        x[1 + g] += (double)(all > shares[g] ? all - shares[g] : 0);
    }
}

static uint16_t side_mask(const uint64_t *shares)
{
    uint32_t mask = 0;
    for (uint32_t g = 0; g < RANDOM_GROUPS; g++) {
        mask |= (uint32_t)(shares[g] != 0) << g;
    }
    return (uint16_t)mask;
}

/* Times with callees as stacks have them, as parts of the time of all samples, so that those without stacks are in no
 * function's favour. */
static void side_measure(struct side_work *w)
{
    const struct report_measures *m = w->graph.measures;
    const size_t nodes = w->graph.node_count;
    double shared = 0;
    for (uint32_t g = 0; w->graph.time_measured && g < RANDOM_GROUPS; g++) {
        shared += m->group_seconds[g];
    }
    if (!w->graph.time_measured || !m->node_groups || fabs(shared - m->seconds) > 1e-9 * m->seconds) {
        return; /* the groups of some stacks are not known */
    }
    w->measured = ARENA_ARRAY(w->arena, nodes * V, double);
    for (size_t v = 0; v < nodes; v++) {
        for (uint32_t k = 0; k < V; k++) {
            const double stacks = m->seconds - (k > 0 ? m->group_seconds[k - 1] : 0),
                         mine = m->nodes[v].total - (k > 0 ? m->node_groups[v * RANDOM_GROUPS + k - 1] : 0);
            w->measured[v * V + k] = stacks > 0 && mine > 0 ? mine / stacks * w->out->seconds[k] : 0;
        }
    }
}

/* Adds up calls and their groups, of the graph's arcs and of functions. */
static void side_count_calls(struct side_work *w)
{
    struct report_request window = *w->request->report;
    const struct callgraph *g = w->graph.graph;
    window.ever = NULL;
    window.static_arcs = false;
    struct report_imports imports = {.arena = w->scratch, .builds = &w->graph.builds};
    report_arcs_collect(w->scratch, &window, &w->graph.builds, &imports, &w->arcs);
    for (uint32_t i = 0; i < window.profile->counts.arc_count; i++) {
        const struct callgraph_arc *row = &w->arcs.rows[i];
        const uint64_t *shares = &window.profile->shares.arcs[(size_t)i * RANDOM_GROUPS];
        uint32_t from = w->node_of_owner[row->from], to = w->node_of_owner[row->to];
        uint32_t arc = callgraph_find_arc(g, from, to);
        uint16_t mask = side_mask(shares);
        bool saturated = false;
        sum_add(&w->calls[arc], row->calls, &saturated);
        for (size_t k = 1; k < V; k++) {
            const uint64_t share = shares[k - 1];
            sum_add(&w->calls[k * g->arc_count + arc], row->calls > share ? row->calls - share : 0, &saturated);
        }
        side_add_values(&w->node_calls[(size_t)to * V], row->calls, shares);
        w->arc_groups[arc] |= mask;
        w->call_groups[to] |= mask;
        w->out->groups |= mask;
    }
}

/* Computes times of value k: of all samples, or of those without group k - 1. */
static enum profd_status side_add_value(struct side_work *w, uint32_t k, struct profd_error *e)
{
    const struct profile *all = w->request->report->profile;
    struct profile without = *all;
    struct counts *to = &without.counts;
    const struct counts *from = &all->counts;
    struct report_request request = *w->request->report;
    struct report_ticks ticks;
    arena_reset(w->flow);
    double *components = ARENA_ARRAY(w->flow, w->graph.scc->count, double);
    if (k > 0) {
        to->histograms = ARENA_ARRAY(w->flow, from->histogram_count, struct counts_histogram);
        to->bin_index = ARENA_ARRAY(w->flow, from->bin_count, uint32_t);
        to->bin_ticks = ARENA_ARRAY(w->flow, from->bin_count, uint64_t);
        to->bin_count = 0;
    }
    for (uint32_t i = 0; k > 0 && i < from->histogram_count; i++) {
        const struct counts_histogram *h = &from->histograms[i];
        to->histograms[i] = *h;
        to->histograms[i].first = to->bin_count;
        for (uint32_t b = h->first; b < h->first + h->used; b++) {
            uint64_t share = all->shares.bins[(size_t)b * RANDOM_GROUPS + k - 1];
            if (from->bin_ticks[b] > share) {
                to->bin_index[to->bin_count] = from->bin_index[b];
                to->bin_ticks[to->bin_count++] = from->bin_ticks[b] - share;
            }
        }
        to->histograms[i].used = to->bin_count - to->histograms[i].first;
    }
    request.profile = &without;
    request.dimension = w->out->dimension;
    request.dimension_may_lack = true;
    TRY(report_ticks_collect(w->flow, &request, &w->graph.builds, w->arcs.calls, &ticks, e));
    for (uint32_t i = 0; i < ticks.count; i++) {
        const struct report_tick *row = &ticks.rows[i];
        uint32_t node = w->node_of_owner[row->owner];
        if (node == NO_NODE) { /* it has bytes in shared bins, and no ticks */
            continue;
        }
        double seconds = report_tick_seconds(&ticks, row->whole, row->part, row->rate);
        w->self[(size_t)node * V + k] += seconds;
        components[w->graph.scc->component[node]] += seconds;
        w->out->ticks[node] += k == 0 ? (double)row->whole + row->part : 0;
    }
    for (uint32_t i = 0; i < ticks.rate_count; i++) {
        w->out->seconds[k] += (double)ticks.totals[i] / (double)ticks.rates[i];
    }

    /* The graph is the same for all values; its calls and times are those of value k. */
    struct callgraph g = *w->graph.graph;
    g.calls = &w->calls[(size_t)k * g.arc_count];
    const struct propagate *flow = propagate_run(w->flow, &g, w->graph.scc, components);
    for (uint32_t v = 0; v < g.node_count; v++) {
        w->total[(size_t)v * V + k] = w->self[(size_t)v * V + k] + flow->node_children[v];
    }
    return PROFD_OK;
}

/* Only functions with samples or calls stay, and arcs with calls. */
static void side_fill(struct side_work *w)
{
    struct diff_side *out = w->out;
    const struct callgraph *g = w->graph.graph;
    uint32_t nodes = w->graph.node_count;
    uint32_t *number = ARENA_ARRAY(w->scratch, nodes, uint32_t);
    out->functions = ARENA_ARRAY(w->arena, nodes, struct report_function);
    out->from = ARENA_ARRAY(w->arena, g->arc_count, uint32_t);
    out->to = ARENA_ARRAY(w->arena, g->arc_count, uint32_t);
    for (uint32_t v = 0; v < nodes; v++) {
        uint32_t n = out->function_count;
        if (!w->graph.entry[v]) {
            continue;
        }
        report_names_describe(w->arena, &w->graph.builds, w->graph.owner[v], &out->functions[n]);
        memmove(&w->self[(size_t)n * V], &w->self[(size_t)v * V], V * sizeof(double));
        memmove(&w->total[(size_t)n * V], &w->total[(size_t)v * V], V * sizeof(double));
        memmove(&w->node_calls[(size_t)n * V], &w->node_calls[(size_t)v * V], V * sizeof(double));
        if (w->measured != NULL) {
            memmove(&w->measured[(size_t)n * V], &w->measured[(size_t)v * V], V * sizeof(double));
        }
        out->ticks[n] = out->ticks[v];
        w->tick_groups[n] = w->tick_groups[v];
        w->call_groups[n] = w->call_groups[v];
        number[v] = out->function_count++;
    }
    for (uint32_t i = 0; i < g->arc_count; i++) {
        uint32_t n = out->arc_count;
        if (w->calls[i] > 0) {
            for (size_t k = 0; k < V; k++) {
                w->calls[k * g->arc_count + n] = w->calls[k * g->arc_count + i];
            }
            w->arc_groups[n] = w->arc_groups[i];
            out->from[n] = number[g->from[i]];
            out->to[n] = number[g->to[i]];
            out->arc_count++;
        }
    }
    out->self = w->self;
    out->total = w->total;
    out->measured = w->measured;
    out->calls = w->node_calls;
    out->tick_groups = w->tick_groups;
    out->call_groups = w->call_groups;
    out->arc_calls = w->calls;
    out->arc_step = g->arc_count;
    out->arc_groups = w->arc_groups;
}

enum profd_status diff_side_make(struct arena *a, struct arena *scratch, const struct diff_side_request *request,
                                 struct diff_side *out, struct profd_error *e)
{
    struct report_request folded = *request->report;
    struct diff_side_request own = *request;
    struct side_work w = {
        .arena = a, .scratch = scratch, .flow = arena_new_child(scratch, 0), .request = &own, .out = out};
    *out = (struct diff_side){.function_count = 0};
    folded.fold_clones = true;
    own.report = &folded;
    TRY(report_graph_make(scratch, &folded, &w.graph, e));
    /* A copy, as of all names: the profile may go before the side. */
    out->dimension = arena_copy(a, w.graph.ticks.dimension, strlen(w.graph.ticks.dimension));
    out->ticks_total = w.graph.ticks.ticks;
    out->per_tick = w.graph.ticks.per_tick;

    const struct report_builds *b = &w.graph.builds;
    const uint32_t owners = b->first[b->count + 1] + 1; /* as report_graph_make numbers them */
    const size_t nodes = w.graph.node_count, arcs = w.graph.graph->arc_count;
    w.node_of_owner = ARENA_ARRAY(scratch, owners, uint32_t);
    w.arcs.seen = ARENA_ARRAY(scratch, owners, uint8_t);
    w.arcs.calls = ARENA_ARRAY(scratch, owners, uint64_t);
    w.calls = ARENA_ARRAY(a, arcs * V, uint64_t);
    w.arc_groups = ARENA_ARRAY(a, arcs, uint16_t);
    w.self = ARENA_ARRAY(a, nodes * V, double);
    w.total = ARENA_ARRAY(a, nodes * V, double);
    w.node_calls = ARENA_ARRAY(a, nodes * V, double);
    w.tick_groups = ARENA_ARRAY(a, nodes, uint16_t);
    w.call_groups = ARENA_ARRAY(a, nodes, uint16_t);
    out->ticks = ARENA_ARRAY(a, nodes, double);
    memset(w.node_of_owner, 0xff, b->first[b->count + 1] * sizeof *w.node_of_owner);
    for (uint32_t v = 0; v < nodes; v++) {
        w.node_of_owner[w.graph.owner[v]] = v;
    }

    /* Which groups have ticks of the dimension, or processes. */
    const struct profile *p = folded.profile;
    for (uint32_t i = 0; i < p->counts.histogram_count; i++) {
        const struct counts_histogram *h = &p->counts.histograms[i];
        for (uint32_t k = h->first; k < h->first + h->used && strcmp(h->dimension, out->dimension) == 0; k++) {
            out->groups |= side_mask(&p->shares.bins[(size_t)k * RANDOM_GROUPS]);
        }
    }
    const double known = (double)random_groups_known(own.processes);
    out->processes[0] = known;
    out->processes_unknown = (double)own.processes->unknown;
    out->groups |= side_mask(own.processes->of);
    for (uint32_t g = 0; g < RANDOM_GROUPS; g++) {
        out->processes[1 + g] = known - (double)own.processes->of[g];
    }
    side_count_calls(&w);

    TRY(side_add_value(&w, 0, e));
    for (uint32_t k = 1; k < V; k++) {
        if ((out->groups >> (k - 1) & 1) != 0) {
            TRY(side_add_value(&w, k, e));
            continue;
        }
        /* The group has nothing to leave out, so the value is that of all. */
        for (size_t v = 0; v < nodes; v++) {
            w.self[v * V + k] = w.self[v * V];
            w.total[v * V + k] = w.total[v * V];
        }
        out->seconds[k] = out->seconds[0];
    }
    side_measure(&w);
    /* A group has ticks in a function if the function's time is less without it. */
    for (size_t v = 0; v < nodes; v++) {
        uint32_t mask = 0;
        for (uint32_t g = 0; g < RANDOM_GROUPS; g++) {
            mask |= (uint32_t)(w.self[v * V + 1 + g] < w.self[v * V] * (1 - 1e-12)) << g;
        }
        w.tick_groups[v] = (uint16_t)mask;
    }
    side_fill(&w);

    const struct object **objects = ARENA_ARRAY(a, (size_t)b->count + 1, const struct object *);
    for (uint32_t i = 0; i < b->count; i++) {
        objects[i] = folded.objects == NULL ? NULL : folded.objects[b->origin[i]];
    }
    report_builds_list(a, &folded, b, &out->builds, &out->build_names);
    out->objects = objects;
    out->build_count = b->count;
    return PROFD_OK;
}
