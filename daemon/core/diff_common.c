#include "core/diff_common.h"

#include <math.h>
#include <string.h>

#include "core/sort.h"

#define V DIFF_VALUES
#define ROUNDS 5     /* of leaving out what deviates */
#define DEVIATES 3.0 /* standard errors */

struct common_work {
    const struct diff_common_request *request;
    struct diff_table *table;
    const double *logs;
    double *weight;           /* of each item; 0: it is no part of the mean */
    double sum[2 * V], total; /* Σ weight · logs, Σ weight */
    uint32_t functions;
    struct sort_item *order;
};

static double common_weight(const struct common_work *w, const struct diff_item *x)
{
    double sum = x->ticks[0] + x->ticks[1];
    return !w->request->by_ticks ? 1 : sum > 0 ? x->ticks[0] * x->ticks[1] / sum : 0;
}

static double common_median(const struct common_work *w)
{
    size_t n = 0;
    for (uint32_t i = 0; i < w->table->count; i++) {
        if (w->table->items[i].estimated) {
            w->order[n++] = (struct sort_item){sort_key_double(w->table->items[i].estimate.log), i};
        }
    }
    sort_radix(w->order, w->order + w->table->count, n);
    return n > 0 ? w->table->items[w->order[n / 2].value].estimate.log : 0;
}

/* True if the choice has changed. */
static bool common_choose(struct common_work *w)
{
    double median = common_median(w);
    bool changed = false;
    memset(w->sum, 0, sizeof w->sum);
    w->total = 0;
    w->functions = 0;
    for (uint32_t i = 0; i < w->table->count; i++) {
        const struct diff_item *x = &w->table->items[i];
        bool is_part = x->estimated && fabs(x->estimate.log - median) <= DEVIATES * x->estimate.error + DIFF_ROUNDING;
        double weight = is_part ? common_weight(w, x) : 0;
        changed |= (weight > 0) != (w->weight[i] > 0);
        w->weight[i] = weight;
        w->total += weight;
        w->functions += weight > 0;
        for (uint32_t k = 0; k < 2 * V; k++) {
            w->sum[k] += weight > 0 ? weight * w->logs[(size_t)i * 2 * V + k] : 0;
        }
    }
    return changed;
}

/* Each item against the mean of the others. */
static void common_compare(struct common_work *w)
{
    const struct diff_common_request *r = w->request;
    double without[2 * V];
    for (uint32_t i = 0; i < w->table->count; i++) {
        struct diff_item *x = &w->table->items[i];
        double rest = w->total - w->weight[i];
        if (!x->estimated) {
            continue;
        }
        for (uint32_t k = 0; k < 2 * V; k++) {
            double log = w->logs[(size_t)i * 2 * V + k];
            without[k] = log - (w->sum[k] - (w->weight[i] > 0 ? w->weight[i] * log : 0)) / rest;
        }
        diff_stat_compare(without, without + V, r->groups, r->paired, &x->estimate);
    }
}

bool diff_common_remove(struct arena *a, const struct diff_common_request *r, struct diff_table *t, const double *logs)
{
    struct common_work w = {.request = r, .table = t, .logs = logs};
    double mean[2 * V];
    w.weight = ARENA_ARRAY(a, t->count, double);
    w.order = ARENA_ARRAY(a, (size_t)t->count * 2, struct sort_item);
    if (w.weight == NULL || w.order == NULL) {
        return false;
    }
    for (int round = 0; round < ROUNDS && common_choose(&w); round++) {
        if (w.functions < DIFF_COMMON_LEAST) {
            break;
        }
        common_compare(&w);
    }
    if (w.functions < DIFF_COMMON_LEAST) {
        return true;
    }
    for (uint32_t k = 0; k < 2 * V; k++) {
        mean[k] = w.sum[k] / w.total;
    }
    t->common.functions = w.functions;
    diff_stat_compare(mean, mean + V, r->groups, r->paired, &t->common.estimate);
    return true;
}
