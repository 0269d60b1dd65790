#include "core/report_measure.h"

#include <math.h>

#include "core/spread.h"
#include "core/sum.h"

#define K COUNTS_GROUPS
#define NONE UINT32_MAX
#define CONFIDENCE 0.95
#define NORMAL 1.959963984540054 /* P(|Z| ≤ z) = 0.95 */

/* Rows have the functions first, then the components, then the arcs. */
struct measure_work {
    struct arena *arena;
    const struct report_stacks *s;
    const struct callgraph *g;
    const struct scc *c;
    uint32_t *node;         /* of the graph, of each node of the tree */
    uint32_t *arc;          /* of the graph, from the parent; NONE */
    uint32_t *child, *next; /* first child and next sibling in the tree; NONE */
    uint32_t root;
    uint64_t *below;        /* of each node of the tree: ticks of the current rate that end in it or below it */
    uint64_t *groups_below; /* likewise, by group; NULL: not known */
    uint32_t *on_node, *on_component; /* how often they are on the path */
    uint32_t *way;                    /* of each component on the path: the arc by which the path enters it; NONE */
    size_t rows;
    uint64_t *self, *total;           /* of each row, ticks of the current rate */
    uint64_t *group_ticks;            /* of each row, by group */
    double *group_seconds;            /* likewise, of all rates */
    struct report_measured *measured; /* of each row */
    bool saturated;
};

double report_measure_overdispersion(uint32_t rate, double per_tick)
{
    static const double at[] = {99, 250, 1000}, d[] = {1.12, 1.35, 6.3};
    const int i = rate >= at[1];
    const double usual = rate <= at[0]   ? d[0]
                         : rate >= at[2] ? d[2] * rate / at[2]
                                         : d[i] + (d[i + 1] - d[i]) * (rate - at[i]) / (at[i + 1] - at[i]);
    return fmax(usual, 1 / per_tick);
}

void report_measure_wilson(double x, double n, double *low, double *high)
{
    double p = x / n, z2 = NORMAL * NORMAL, middle = p + z2 / (2 * n);
    double half = NORMAL * sqrt(p * (1 - p) / n + z2 / (4 * n * n)), all = 1 + z2 / n;
    *low = x > 0 && middle > half ? (middle - half) / all : 0;
    *high = x < n ? (middle + half) / all : 1;
}

static void measure_link(struct measure_work *w, const uint32_t *node_of_owner)
{
    const struct report_stacks *s = w->s;
    w->root = NONE;
    for (uint32_t i = 0; i < s->count; i++) {
        w->child[i] = NONE;
        w->node[i] = node_of_owner[s->owner[i]];
        w->arc[i] =
            s->parent[i] == REPORT_STACKS_ROOT ? NONE : callgraph_find_arc(w->g, w->node[s->parent[i]], w->node[i]);
    }
    for (uint32_t i = s->count; i-- > 0;) {
        uint32_t *first = s->parent[i] == REPORT_STACKS_ROOT ? &w->root : &w->child[s->parent[i]];
        w->next[i] = *first;
        *first = i;
    }
}

/* Ticks that end below each node: children stand behind their parents. */
static void measure_sum_below(struct measure_work *w, const struct report_stacks_rate *r)
{
    const struct report_stacks *s = w->s;
    for (uint32_t i = 0; i < s->count; i++) {
        w->below[i] = r->self[i];
        sum_add(&w->below[i], r->folded[i], &w->saturated);
        for (unsigned g = 0; w->groups_below != NULL && g < K; g++) {
            w->groups_below[(size_t)i * K + g] = r->shares[(size_t)i * K + g];
        }
    }
    for (uint32_t i = s->count; i-- > 0;) {
        if (s->parent[i] == REPORT_STACKS_ROOT) {
            continue;
        }
        sum_add(&w->below[s->parent[i]], w->below[i], &w->saturated);
        for (unsigned g = 0; w->groups_below != NULL && g < K; g++) {
            sum_add(&w->groups_below[(size_t)s->parent[i] * K + g], w->groups_below[(size_t)i * K + g], &w->saturated);
        }
    }
}

/* Row of a thing gets the ticks of a node of the tree and of all below. */
static void measure_add(struct measure_work *w, size_t row, uint32_t at)
{
    sum_add(&w->total[row], w->below[at], &w->saturated);
    for (unsigned g = 0; w->groups_below != NULL && g < K; g++) {
        sum_add(&w->group_ticks[row * K + g], w->groups_below[(size_t)at * K + g], &w->saturated);
    }
}

static void measure_enter(struct measure_work *w, const struct report_stacks_rate *r, uint32_t at)
{
    uint32_t v = w->node[at], c = w->c->component[v];
    size_t components = w->g->node_count, arcs = components + w->c->count;
    if (w->on_node[v]++ == 0) {
        measure_add(w, v, at);
    }
    if (w->on_component[c]++ == 0) {
        measure_add(w, components + c, at);
        w->way[c] = w->arc[at];
        if (w->way[c] != NONE) {
            measure_add(w, arcs + w->way[c], at);
        }
    }
    sum_add(&w->self[v], r->self[at], &w->saturated);
    sum_add(&w->self[components + c], r->self[at], &w->saturated);
    if (w->way[c] != NONE) {
        sum_add(&w->self[arcs + w->way[c]], r->self[at], &w->saturated);
    }
}

static void measure_leave(struct measure_work *w, uint32_t at)
{
    w->on_node[w->node[at]]--;
    w->on_component[w->c->component[w->node[at]]]--;
}

/* Depth first: down, else right, else up and right. */
static void measure_walk(struct measure_work *w, const struct report_stacks_rate *r)
{
    uint32_t at = w->root;
    while (at != NONE) {
        measure_enter(w, r, at);
        if (w->child[at] != NONE) {
            at = w->child[at];
            continue;
        }
        while (at != NONE && w->next[at] == NONE) {
            measure_leave(w, at);
            at = w->s->parent[at];
        }
        if (at != NONE) {
            measure_leave(w, at);
            at = w->next[at];
        }
    }
}

/* Ticks of one rate become seconds. */
static void measure_flush(struct measure_work *w, uint32_t rate)
{
    for (size_t i = 0; i < w->rows; i++) {
        struct report_measured *m = &w->measured[i];
        m->self += (double)w->self[i] / rate;
        m->total += (double)w->total[i] / rate;
        sum_add(&m->samples, w->total[i], &w->saturated);
        w->self[i] = w->total[i] = 0;
        for (unsigned g = 0; w->groups_below != NULL && g < K; g++) {
            w->group_seconds[i * K + g] += (double)w->group_ticks[i * K + g] / rate;
            w->group_ticks[i * K + g] = 0;
        }
    }
}

/* Sums over all stacks, and by group. */
static void measure_whole(const struct measure_work *w, struct report_measures *out, unsigned groups)
{
    unsigned present = 0;
    double shared = 0;
    for (uint32_t r = 0; r < w->s->rate_count; r++) {
        const struct report_stacks_rate *rate = &w->s->rates[r];
        uint64_t ticks = 0, of[K] = {0};
        for (uint32_t i = 0; i < w->s->count; i++) {
            sum_add(&ticks, rate->self[i], &out->saturated);
            sum_add(&ticks, rate->folded[i], &out->saturated);
            for (unsigned g = 0; rate->shares != NULL && g < K; g++) {
                sum_add(&of[g], rate->shares[(size_t)i * K + g], &out->saturated);
            }
        }
        out->ticks += (double)ticks;
        out->seconds += (double)ticks / rate->rate;
        for (unsigned g = 0; g < K; g++) {
            out->group_seconds[g] += (double)of[g] / rate->rate;
        }
    }
    for (unsigned g = 0; g < K; g++) {
        shared += out->group_seconds[g];
        present += out->group_seconds[g] > 0;
    }
    out->groups = groups != 0 ? groups : present;
    /* Not if the groups of some ticks are not known. */
    out->by_groups = out->groups >= 2 && present >= 2 && fabs(shared - out->seconds) <= 1e-9 * out->seconds;
}

/* Low and high in seconds. The number of all ticks is not chance: it is CPU time. The share of them is. */
static void measure_bound(const struct report_measures *all, const double *group_seconds, struct report_measured *m)
{
    struct spread_estimate share;
    double low, high;
    m->by_groups = all->by_groups && (double)m->samples * all->per_tick >= REPORT_MEASURED_FEW &&
                   spread_ratio(group_seconds, all->group_seconds, all->groups, &share) &&
                   spread_interval(&share, CONFIDENCE, &low, &high);
    if (!m->by_groups) {
        double stacks = all->ticks / all->overdispersion, part = m->total / all->seconds;
        report_measure_wilson(part * stacks, stacks, &low, &high);
    }
    m->low = (low > 0 ? low : 0) * all->seconds;
    m->high = (high < 1 ? high : 1) * all->seconds;
}

void report_measure_join(const struct report_measures *m, const struct sort_item *arcs, uint32_t n,
                         struct report_measured *out)
{
    double groups[K] = {0};
    bool saturated = false;
    *out = (struct report_measured){.samples = 0};
    for (uint32_t i = 0; i < n; i++) {
        const struct report_measured *arc = &m->arcs[arcs[i].value];
        out->self += arc->self;
        out->total += arc->total;
        sum_add(&out->samples, arc->samples, &saturated);
        for (unsigned g = 0; m->arc_groups != NULL && g < K; g++) {
            groups[g] += m->arc_groups[(size_t)arcs[i].value * K + g];
        }
    }
    measure_bound(m, groups, out);
}

#define ROUNDING 1e-6

void report_measure_compare(struct report_measured *m, double seconds, double coverage)
{
    double part = seconds * coverage, least = ROUNDING * (part > m->high ? part : m->high);
    m->differs = part < m->low - least || part > m->high + least;
}

static void measure_take(struct measure_work *w)
{
    struct arena *a = w->arena;
    uint32_t n = w->s->count;
    w->rows = (size_t)w->g->node_count + w->c->count + w->g->arc_count;
    w->node = ARENA_ARRAY(a, n, uint32_t);
    w->arc = ARENA_ARRAY(a, n, uint32_t);
    w->child = ARENA_ARRAY(a, n, uint32_t);
    w->next = ARENA_ARRAY(a, n, uint32_t);
    w->below = ARENA_ARRAY(a, n, uint64_t);
    w->on_node = ARENA_ARRAY(a, w->g->node_count, uint32_t);
    w->on_component = ARENA_ARRAY(a, w->c->count, uint32_t);
    w->way = ARENA_ARRAY(a, w->c->count, uint32_t);
    w->self = ARENA_ARRAY(a, w->rows, uint64_t);
    w->total = ARENA_ARRAY(a, w->rows, uint64_t);
    w->measured = ARENA_ARRAY(a, w->rows, struct report_measured);
    if (w->s->rates[0].shares == NULL) {
        return;
    }
    w->groups_below = ARENA_ARRAY(a, (size_t)n * K, uint64_t);
    w->group_ticks = ARENA_ARRAY(a, w->rows * K, uint64_t);
    w->group_seconds = ARENA_ARRAY(a, w->rows * K, double);
}

struct report_measures *report_measure(struct arena *a, const struct report_stacks *s, const uint32_t *node_of_owner,
                                       const struct callgraph *g, const struct scc *c, unsigned groups, double per_tick)
{
    struct measure_work w = {.arena = a, .s = s, .g = g, .c = c};
    struct report_measures *out = ARENA_NEW(a, struct report_measures);
    measure_take(&w);
    measure_link(&w, node_of_owner);
    for (uint32_t i = 0; i < s->rate_count; i++) {
        measure_sum_below(&w, &s->rates[i]);
        measure_walk(&w, &s->rates[i]);
        measure_flush(&w, s->rates[i].rate);
    }
    out->saturated = w.saturated;
    out->per_tick = per_tick;
    out->overdispersion = report_measure_overdispersion(s->rates[s->rate_count - 1].rate, per_tick);
    measure_whole(&w, out, groups);
    for (size_t i = 0; i < w.rows && out->ticks > 0; i++) {
        measure_bound(out, w.group_seconds == NULL ? NULL : w.group_seconds + i * K, &w.measured[i]);
    }
    size_t arcs = (size_t)g->node_count + c->count;
    out->nodes = w.measured;
    out->components = w.measured + g->node_count;
    out->arcs = w.measured + arcs;
    out->node_groups = w.group_seconds;
    out->arc_groups = w.group_seconds == NULL ? NULL : w.group_seconds + arcs * K;
    return out;
}
