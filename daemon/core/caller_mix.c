#include "core/caller_mix.h"

#include <math.h>
#include <string.h>

#include "core/compare.h"
#include "core/report_arcs.h"
#include "core/report_graph.h"
#include "core/report_imports.h"
#include "proto/bins.h"
#include "proto/collector.h"

#define NO_NODE UINT32_MAX

struct mix_work {
    struct arena *arena;
    const struct report_request *request;
    struct report_graph graph;
    uint32_t node;           /* the function's */
    uint32_t *node_of_owner; /* NO_NODE: none */
    double *part;            /* of each component: how much of its time the function is given */
    struct caller_mix *out;
};

static enum profd_status mix_no_memory(struct profd_error *e)
{
    return profd_error_set(e, PROFD_NO_MEMORY, "no memory for the callers of a function");
}

static bool mix_number_owners(struct mix_work *w)
{
    const struct report_graph *g = &w->graph;
    uint32_t owners = g->builds.first[g->builds.count + 1] + 1; /* as report_graph_make numbers them */
    w->node_of_owner = ARENA_ARRAY(w->arena, owners, uint32_t);
    if (w->node_of_owner == NULL) {
        return false;
    }
    memset(w->node_of_owner, 0xff, owners * sizeof *w->node_of_owner);
    for (uint32_t v = 0; v < g->node_count; v++) {
        w->node_of_owner[g->owner[v]] = v;
    }
    return true;
}

/* How much of each component's time reaches the function: downwards, as time flows upwards. Classes of addresses hand
 * over nothing but their own. */
static bool mix_spread(struct mix_work *w)
{
    const struct callgraph *g = w->graph.graph;
    const struct scc *s = w->graph.scc;
    uint32_t top = s->component[w->node];
    w->part = ARENA_ARRAY(w->arena, s->count, double);
    if (w->part == NULL) {
        return false;
    }
    w->part[top] = 1;
    for (uint32_t m = s->first[top] + 1; m-- > 0;) { /* callees have lower numbers */
        uint32_t v = s->member[m], own = s->component[v];
        for (uint32_t i = g->out_first[v]; w->part[own] > 0 && i < g->out_first[v + 1]; i++) {
            uint32_t below = s->component[g->to[i]];
            const uint64_t all = w->graph.flow->component_outside[below];
            if (below == own || g->calls[i] == 0 || (v != w->node && (g->flags[i] & CALLGRAPH_SHAPES) == 0)) {
                continue;
            }
            w->part[below] += w->part[own] * ((double)g->calls[i] / (double)all);
            w->out->shared_below |= g->calls[i] < all;
        }
    }
    return true;
}

struct mix_part {
    double own, doubtful; /* of the function; of it, or of others, as numbers of calls have it */
};

/* The part of a bin's ticks that is time of the function: by bytes, those of no function only where there are no
 * others. */
static struct mix_part mix_weigh(const struct mix_work *w, uint32_t build, uint64_t low, uint64_t high)
{
    const struct symtab *t = w->graph.builds.tables[build];
    struct mix_part sum = {0, 0};
    double all = 0, gap = 0;
    for (uint32_t s = symtab_find_span(t, low); s < t->span_count && t->span_low[s] < high; s++) {
        uint64_t first = t->span_low[s] > low ? t->span_low[s] : low;
        uint64_t last = s + 1 < t->span_count && t->span_low[s + 1] < high ? t->span_low[s + 1] : high;
        uint32_t node = w->node_of_owner[w->graph.builds.first[build] + t->span_owner[s]];
        double part = node == NO_NODE ? 0 : w->part[w->graph.scc->component[node]];
        if (t->owners[t->span_owner[s]].kind == SYMTAB_GAP) {
            gap = part;
        } else {
            all += (double)(last - first);
            sum.own += (double)(last - first) * part;
            sum.doubtful += (double)(last - first) * fmax(0, fmin(part, 1 - part));
        }
    }
    return all > 0 ? (struct mix_part){sum.own / all, sum.doubtful / all} : (struct mix_part){gap, fmin(gap, 1 - gap)};
}

static bool mix_take_histograms(struct mix_work *w)
{
    const struct profile *p = w->request->profile;
    struct caller_mix *out = w->out;
    const char *dimension = w->graph.ticks.dimension;
    double all = 0, doubtful = 0;
    out->histograms = ARENA_ARRAY(w->arena, p->histogram_count, struct caller_mix_histogram);
    for (uint32_t i = 0; out->histograms != NULL && i < p->histogram_count; i++) {
        const struct profile_histogram *h = &p->histograms[i];
        if (strcmp(h->dimension, dimension) != 0 || collector_is_dimension(dimension)) {
            continue;
        }
        const struct bins bins = bins_make(h->low, h->high, h->bins);
        double *seconds = ARENA_ARRAY(w->arena, h->used, double);
        if (seconds == NULL) {
            return false;
        }
        for (uint32_t k = 0; k < h->used; k++) {
            uint64_t low, high;
            bins_range(&bins, h->index[k], &low, &high);
            struct mix_part part = mix_weigh(w, report_builds_rank(&w->graph.builds, h->build), low, high);
            seconds[k] = part.own / h->rate;
            all += (double)h->ticks[k] * seconds[k];
            doubtful += (double)h->ticks[k] * part.doubtful / h->rate;
        }
        out->histograms[out->histogram_count++] = (struct caller_mix_histogram){
            .geometry = h->geometry, .used = h->used, .index = h->index, .seconds = seconds};
    }
    out->shared = all > 0 ? doubtful / all : 0;
    return out->histograms != NULL;
}

/* Numbers the callers by position in the report. */
static bool mix_number_callers(struct mix_work *w, const struct report_arcs *arcs, uint32_t **number)
{
    const struct report_graph *g = &w->graph;
    const struct profile *p = w->request->profile;
    *number = ARENA_ARRAY(w->arena, g->node_count, uint32_t);
    w->out->callers = ARENA_ARRAY(w->arena, g->node_count, uint32_t);
    if (*number == NULL || w->out->callers == NULL) {
        return false;
    }
    for (uint32_t i = 0; i < p->arc_count; i++) {
        if (w->node_of_owner[arcs->rows[i].to] == w->node && arcs->rows[i].calls > 0) {
            (*number)[w->node_of_owner[arcs->rows[i].from]] = 1;
        }
    }
    (*number)[w->node] = 0; /* direct recursion */
    for (uint32_t v = 0; v < g->node_count; v++) {
        if ((*number)[v] != 0) {
            w->out->callers[w->out->caller_count] = g->position[v];
            (*number)[v] = w->out->caller_count++;
        } else {
            (*number)[v] = CALLER_MIX_NONE;
        }
    }
    return true;
}

static enum profd_status mix_take_arcs(struct mix_work *w, struct profd_error *e)
{
    const struct profile *p = w->request->profile;
    const struct report_graph *g = &w->graph;
    uint32_t owners = g->builds.first[g->builds.count + 1] + 1, *number;
    struct report_request window = *w->request;
    struct report_imports imports = {.arena = w->arena, .builds = &g->builds};
    struct report_arcs arcs = {.seen = ARENA_ARRAY(w->arena, owners, uint8_t),
                               .calls = ARENA_ARRAY(w->arena, owners, uint64_t)};
    window.ever = NULL;
    window.static_arcs = false;
    if (arcs.seen == NULL || arcs.calls == NULL) {
        return mix_no_memory(e);
    }
    enum profd_status status = report_arcs_collect(w->arena, &window, &g->builds, &imports, &arcs, e);
    if (status != PROFD_OK) {
        return status;
    }
    w->out->arcs = ARENA_ARRAY(w->arena, p->arc_count, struct caller_mix_arc);
    if (w->out->arcs == NULL || !mix_number_callers(w, &arcs, &number)) {
        return mix_no_memory(e);
    }
    for (uint32_t i = 0; i < p->arc_count; i++) {
        const struct profile_arc *arc = &p->arcs[i];
        uint32_t from = w->node_of_owner[arcs.rows[i].from];
        if (w->node_of_owner[arcs.rows[i].to] == w->node && number[from] != CALLER_MIX_NONE) {
            w->out->arcs[w->out->arc_count++] =
                (struct caller_mix_arc){arc->from_build, arc->to_build, arc->from, arc->to, number[from]};
        }
    }
    return PROFD_OK;
}

enum profd_status caller_mix_make(struct arena *a, const struct report_request *request, uint32_t function,
                                  struct caller_mix *out, struct profd_error *e)
{
    struct mix_work w = {.arena = a, .request = request, .out = out};
    *out = (struct caller_mix){.caller_count = 0};
    enum profd_status status = report_graph_make(a, request, &w.graph, e);
    if (status != PROFD_OK) {
        return status;
    }
    w.node = w.graph.node_of[function];
    out->in_cycle = scc_size(w.graph.scc, w.graph.scc->component[w.node]) > 1;
    if (out->in_cycle) {
        return PROFD_OK;
    }
    if (!mix_number_owners(&w) || !mix_spread(&w) || !mix_take_histograms(&w)) {
        return mix_no_memory(e);
    }
    return mix_take_arcs(&w, e);
}

static int mix_compare(const struct caller_mix_arc *arc, uint32_t from_build, uint64_t from, uint32_t to_build,
                       uint64_t to)
{
    int order = compare_pairs(arc->from_build, from_build, arc->from, from);
    return order != 0 ? order : compare_pairs(arc->to_build, to_build, arc->to, to);
}

uint32_t caller_mix_find(const struct caller_mix *m, uint32_t from_build, uint64_t from, uint32_t to_build, uint64_t to)
{
    uint32_t low = 0, high = m->arc_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        int order = mix_compare(&m->arcs[middle], from_build, from, to_build, to);
        if (order == 0) {
            return m->arcs[middle].caller;
        }
        if (order < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return CALLER_MIX_NONE;
}

const struct caller_mix_histogram *caller_mix_find_histogram(const struct caller_mix *m,
                                                             const struct counts_geometry *g)
{
    for (uint32_t i = 0; i < m->histogram_count; i++) {
        if (counts_compare_geometry(&m->histograms[i].geometry, g) == 0) {
            return &m->histograms[i];
        }
    }
    return NULL;
}

double caller_mix_seconds(const struct caller_mix_histogram *h, uint32_t bin, uint32_t *place)
{
    while (*place < h->used && h->index[*place] < bin) {
        ++*place;
    }
    return *place < h->used && h->index[*place] == bin ? h->seconds[*place] : 0;
}
