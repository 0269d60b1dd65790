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
    double *measured;                  /* total of stacks, likewise; NULL: diff_side.h */
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

/* The same for an arc: its values stand step apart. They stop at SUM_MAX, as all counts do. */
static void side_add_calls(uint64_t *x, size_t step, uint64_t all, const uint64_t *shares)
{
    bool saturated = false;
    sum_add(&x[0], all, &saturated);
    for (uint32_t g = 0; g < RANDOM_GROUPS; g++) {
        sum_add(&x[(1 + g) * step], all > shares[g] ? all - shares[g] : 0, &saturated);
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

static void side_take(struct side_work *w)
{
    const struct report_graph *g = &w->graph;
    uint32_t owners = g->builds.first[g->builds.count + 1] + 1; /* as report_graph_make numbers them */
    const size_t nodes = g->node_count, arcs = g->graph->arc_count;
    w->node_of_owner = ARENA_ARRAY(w->scratch, owners, uint32_t);
    w->arcs.seen = ARENA_ARRAY(w->scratch, owners, uint8_t);
    w->arcs.calls = ARENA_ARRAY(w->scratch, owners, uint64_t);
    w->calls = ARENA_ARRAY(w->arena, arcs * V, uint64_t);
    w->arc_groups = ARENA_ARRAY(w->arena, arcs, uint16_t);
    w->self = ARENA_ARRAY(w->arena, nodes * V, double);
    w->total = ARENA_ARRAY(w->arena, nodes * V, double);
    w->node_calls = ARENA_ARRAY(w->arena, nodes * V, double);
    w->tick_groups = ARENA_ARRAY(w->arena, nodes, uint16_t);
    w->call_groups = ARENA_ARRAY(w->arena, nodes, uint16_t);
    w->out->ticks = ARENA_ARRAY(w->arena, nodes, double);
}

/* Are the groups of all stacks known? */
static bool side_knows_groups(const struct report_measures *m)
{
    double shared = 0;
    for (uint32_t g = 0; g < RANDOM_GROUPS; g++) {
        shared += m->group_seconds[g];
    }
    return m->node_groups != NULL && fabs(shared - m->seconds) <= 1e-9 * m->seconds;
}

/* Times with callees as stacks have them, as parts of the time of all samples, so that those without stacks are in no
 * function's favour. */
static void side_measure(struct side_work *w)
{
    const struct report_measures *m = w->graph.measures;
    const size_t nodes = w->graph.node_count;
    if (!w->graph.time_measured || !side_knows_groups(m)) {
        return;
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

/* Calls of arcs and functions with their groups. */
static void side_count_calls(struct side_work *w)
{
    struct report_request window = *w->request->report;
    const struct callgraph *g = w->graph.graph;
    window.ever = NULL;
    window.static_arcs = false;
    struct report_imports imports = {.arena = w->scratch, .builds = &w->graph.builds};
    report_arcs_collect(w->scratch, &window, &w->graph.builds, &imports, &w->arcs);
    for (uint32_t i = 0; i < window.profile->arc_count; i++) {
        const struct callgraph_arc *row = &w->arcs.rows[i];
        const uint64_t *shares = &w->request->shares->calls[(size_t)i * RANDOM_GROUPS];
        uint32_t from = w->node_of_owner[row->from], to = w->node_of_owner[row->to];
        uint32_t arc = callgraph_find_arc(g, from, to);
        uint16_t mask = side_mask(shares);
        side_add_calls(&w->calls[arc], g->arc_count, row->calls, shares);
        side_add_values(&w->node_calls[(size_t)to * V], row->calls, shares);
        w->arc_groups[arc] |= mask;
        w->call_groups[to] |= mask;
        w->out->groups |= mask;
    }
}

/* The profile's samples without those of a group. */
static void side_leave_out(const struct side_work *w, uint32_t group, struct profile *p)
{
    const struct profile *all = w->request->report->profile;
    const struct shares *shares = w->request->shares;
    p->histogram_count = all->histogram_count;
    p->histograms = ARENA_ARRAY(w->flow, all->histogram_count, struct profile_histogram);
    for (uint32_t i = 0; i < all->histogram_count; i++) {
        const struct profile_histogram *h = &all->histograms[i];
        struct profile_histogram *to = &p->histograms[i];
        *to = *h;
        to->used = 0;
        to->index = ARENA_ARRAY(w->flow, h->used, uint32_t);
        to->ticks = ARENA_ARRAY(w->flow, h->used, uint64_t);
        for (uint32_t k = 0; k < h->used; k++) {
            uint64_t share = shares->ticks[(shares->first[i] + k) * RANDOM_GROUPS + group];
            if (h->ticks[k] > share) {
                to->index[to->used] = h->index[k];
                to->ticks[to->used++] = h->ticks[k] - share;
            }
        }
    }
}

/* Self times of value k, of nodes and of components. */
static void side_add_self(struct side_work *w, const struct report_ticks *t, uint32_t k, double *components)
{
    for (uint32_t i = 0; i < t->count; i++) {
        uint32_t node = w->node_of_owner[t->rows[i].owner];
        if (node == NO_NODE) { /* it has bytes in shared bins, and no ticks */
            continue;
        }
        double seconds = report_tick_seconds(t, t->rows[i].whole, t->rows[i].part, t->rows[i].rate);
        w->self[(size_t)node * V + k] += seconds;
        components[w->graph.scc->component[node]] += seconds;
        w->out->ticks[node] += k == 0 ? (double)t->rows[i].whole + t->rows[i].part : 0;
    }
    for (uint32_t i = 0; i < t->rate_count; i++) {
        w->out->seconds[k] += (double)t->totals[i] / (double)t->rates[i];
    }
}

static enum profd_status side_add_value(struct side_work *w, uint32_t k, struct profd_error *e)
{
    struct profile without = *w->request->report->profile;
    struct report_request request = *w->request->report;
    struct report_ticks ticks;
    arena_reset(w->flow);
    double *components = ARENA_ARRAY(w->flow, w->graph.scc->count, double);
    if (k > 0) {
        side_leave_out(w, k - 1, &without);
    }
    request.profile = &without;
    request.dimension = w->out->dimension;
    request.dimension_may_lack = true;
    TRY(report_ticks_collect(w->flow, &request, &w->graph.builds, w->arcs.calls, &ticks, e));
    side_add_self(w, &ticks, k, components);
    /* The graph is the same for all values; its calls and times are those of value k. */
    struct callgraph g = *w->graph.graph;
    g.calls = &w->calls[(size_t)k * g.arc_count];
    const struct propagate *flow = propagate_run(w->flow, &g, w->graph.scc, components);
    for (uint32_t v = 0; v < g.node_count; v++) {
        w->total[(size_t)v * V + k] = w->self[(size_t)v * V + k] + flow->node_children[v];
    }
    return PROFD_OK;
}

/* A group that lacks in no process of the side has nothing to leave out: its value is that of all. */
static enum profd_status side_add_values_of_groups(struct side_work *w, struct profd_error *e)
{
    TRY(side_add_value(w, 0, e));
    for (uint32_t k = 1; k < V; k++) {
        if ((w->out->groups >> (k - 1) & 1) != 0) {
            TRY(side_add_value(w, k, e));
            continue;
        }
        for (size_t v = 0; v < w->graph.node_count; v++) {
            w->self[v * V + k] = w->self[v * V];
            w->total[v * V + k] = w->total[v * V];
        }
        w->out->seconds[k] = w->out->seconds[0];
    }
    return PROFD_OK;
}

static void side_count_processes(struct side_work *w)
{
    const struct random_groups *p = w->request->processes;
    const double known = (double)random_groups_known(p);
    w->out->processes[0] = known;
    w->out->processes_unknown = (double)p->unknown;
    w->out->groups |= side_mask(p->of);
    for (uint32_t g = 0; g < RANDOM_GROUPS; g++) {
        w->out->processes[1 + g] = known - (double)p->of[g];
    }
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

static void side_list_builds(struct side_work *w)
{
    const struct report_builds *b = &w->graph.builds;
    const struct report_request *r = w->request->report;
    const char **ids = ARENA_ARRAY(w->arena, (size_t)b->count + 1, const char *);
    const char **names = ARENA_ARRAY(w->arena, (size_t)b->count + 1, const char *);
    const struct object **objects = ARENA_ARRAY(w->arena, (size_t)b->count + 1, const struct object *);
    for (uint32_t i = 0; i < b->count; i++) {
        const char *name = r->names == NULL ? NULL : r->names[b->origin[i]];
        ids[i] = r->profile->builds[b->origin[i]];
        names[i] = name == NULL ? "" : name;
        objects[i] = r->objects == NULL ? NULL : r->objects[b->origin[i]];
    }
    ids[b->count] = names[b->count] = "";
    w->out->builds = ids;
    w->out->build_names = names;
    w->out->objects = objects;
    w->out->build_count = b->count;
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
    out->dimension = w.graph.ticks.dimension;
    out->ticks_total = w.graph.ticks.ticks;
    out->per_tick = w.graph.ticks.per_tick;
    side_take(&w);
    memset(w.node_of_owner, 0xff, w.graph.builds.first[w.graph.builds.count + 1] * sizeof *w.node_of_owner);
    for (uint32_t v = 0; v < w.graph.node_count; v++) {
        w.node_of_owner[w.graph.owner[v]] = v;
    }
    /* Which groups have ticks in a function: a bin that several share has them for all. */
    const struct profile *p = w.request->report->profile;
    const struct shares *shares = w.request->shares;
    for (uint32_t i = 0; i < p->histogram_count; i++) {
        const struct profile_histogram *h = &p->histograms[i];
        for (uint32_t k = 0; k < h->used && strcmp(h->dimension, w.out->dimension) == 0; k++) {
            w.out->groups |= side_mask(&shares->ticks[(shares->first[i] + k) * RANDOM_GROUPS]);
        }
    }
    side_count_processes(&w);
    side_count_calls(&w);
    TRY(side_add_values_of_groups(&w, e));
    side_measure(&w);
    for (size_t v = 0; v < w.graph.node_count; v++) {
        uint32_t mask = 0;
        for (uint32_t g = 0; g < RANDOM_GROUPS; g++) {
            mask |= (uint32_t)(w.self[v * V + 1 + g] < w.self[v * V] * (1 - 1e-12)) << g;
        }
        w.tick_groups[v] = (uint16_t)mask;
    }
    side_fill(&w);
    side_list_builds(&w);
    return PROFD_OK;
}
