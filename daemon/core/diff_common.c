#include "core/diff_common.h"

#include <math.h>
#include <string.h>

#include "proto/sort.h"

#define V DIFF_VALUES
#define ROUNDS 5     /* of leaving out what deviates */
#define DEVIATES 3.0 /* standard errors */

struct common_work {
    const struct diff_common_request *request;
    struct diff_table *table;
    const struct diff_logs *logs;
    bool *compared;          /* of each item: estimated, and not the same number in every group of both sides */
    double *weight;          /* of each item; 0: it is no part of the mean */
    struct diff_logs sum[2]; /* Σ weight · logs */
    double total;            /* Σ weight */
    uint32_t functions;
    struct sort_item *order;
};

static double common_weight(const struct common_work *w, const struct diff_item *x)
{
    double sum = x->ticks[0] + x->ticks[1];
    return !w->request->by_ticks ? 1 : sum > 0 ? x->ticks[0] * x->ticks[1] / sum : 0;
}

static void common_add(struct diff_logs to[2], const struct diff_logs from[2], double weight)
{
    for (uint32_t s = 0; s < 2; s++) {
        for (uint32_t k = 0; k < V; k++) {
            to[s].of[k] += weight * from[s].of[k];
        }
        to[s].freedom += weight * from[s].freedom;
    }
}

/* True if the choice has changed. */
static bool common_choose(struct common_work *w)
{
    size_t n = 0;
    for (uint32_t i = 0; i < w->table->count; i++) {
        if (w->compared[i]) {
            w->order[n++] = (struct sort_item){sort_key_double(w->table->items[i].estimate.log), i};
        }
    }
    sort_radix(w->order, w->order + w->table->count, n);
    double median = n > 0 ? w->table->items[w->order[n / 2].value].estimate.log : 0;
    bool changed = false;
    memset(w->sum, 0, sizeof w->sum);
    w->total = 0;
    w->functions = 0;
    for (uint32_t i = 0; i < w->table->count; i++) {
        const struct diff_item *x = &w->table->items[i];
        bool is_part = w->compared[i] && fabs(x->estimate.log - median) <= DEVIATES * x->estimate.error + DIFF_ROUNDING;
        double weight = is_part ? common_weight(w, x) : 0;
        changed |= (weight > 0) != (w->weight[i] > 0);
        w->weight[i] = weight;
        w->total += weight;
        w->functions += weight > 0;
        if (weight > 0) {
            common_add(w->sum, &w->logs[(size_t)i * 2], weight);
        }
    }
    return changed;
}

/* Each item against the mean of the others. */
static void common_compare(struct common_work *w)
{
    const struct diff_common_request *r = w->request;
    for (uint32_t i = 0; i < w->table->count; i++) {
        struct diff_item *x = &w->table->items[i];
        const struct diff_logs *logs = &w->logs[(size_t)i * 2];
        const double own = w->weight[i], rest = w->total - own;
        struct diff_logs without[2];
        if (!w->compared[i]) {
            continue;
        }
        for (uint32_t s = 0; s < 2; s++) {
            for (uint32_t k = 0; k < V; k++) {
                const double log = logs[s].of[k];
                without[s].of[k] = log - (w->sum[s].of[k] - own * log) / rest;
            }
            without[s].freedom = logs[s].freedom;
        }
        diff_stat_compare(&without[0], &without[1], r->groups, r->paired, &x->estimate);
    }
}

void diff_common_remove(struct arena *a, const struct diff_common_request *r, struct diff_table *t,
                        const struct diff_logs *logs)
{
    struct common_work w = {.request = r, .table = t, .logs = logs};
    struct diff_logs mean[2] = {{.freedom = 0}, {.freedom = 0}};
    w.weight = ARENA_ARRAY(a, t->count, double);
    w.order = ARENA_ARRAY(a, (size_t)t->count * 2, struct sort_item);
    w.compared = ARENA_ARRAY(a, t->count, bool);
    for (uint32_t i = 0; i < t->count; i++) {
        const struct diff_estimate *x = &t->items[i].estimate;
        w.compared[i] = t->items[i].estimated && (x->error > 0 || x->p < 1);
    }
    for (int round = 0; round < ROUNDS && common_choose(&w); round++) {
        if (w.functions < DIFF_COMMON_LEAST) {
            break;
        }
        common_compare(&w);
    }
    if (w.functions < DIFF_COMMON_LEAST) {
        return;
    }
    common_add(mean, w.sum, 1 / w.total);
    t->common.functions = w.functions;
    diff_stat_compare(&mean[0], &mean[1], r->groups, r->paired, &t->common.estimate);
}
