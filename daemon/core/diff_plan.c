#include "core/diff_plan.h"

#include <math.h>
#include <string.h>

#include "proto/sort.h"

#define FREEDOMS (2 * RANDOM_GROUPS - 1)
#define STEPS 4u   /* in which the number of tests doubles: an effect takes long to compute, and hardly grows */
#define LEVELS 96u /* n · 2^24 */
#define ROUNDS 16  /* of plans, each with the tests of the one before */

struct plan_work {
    const struct diff_plan_request *request;
    uint32_t tested, waiting;
    struct sort_item *order; /* by how many times more data the waiting ones are tested, ascending */
    double *effects;         /* [freedom · LEVELS + step]; 0: not computed */
};

static double plan_effect(const struct plan_work *w, double freedom, uint32_t step)
{
    const struct diff_plan_request *r = w->request;
    double *effect = &w->effects[(size_t)freedom * LEVELS + step];
    if (!(*effect > 0)) {
        const double n = w->tested * exp2((double)step / STEPS);
        *effect = diff_stat_effect(freedom, r->confidence > 0 ? 1 - r->confidence : r->fdr / n);
    }
    return *effect;
}

/* How many of the waiting ones are tested with this multiple of the data. */
static uint32_t plan_count(const struct plan_work *w, double times)
{
    const uint64_t key = sort_key_double(times);
    uint32_t low = 0, high = w->waiting;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (w->order[middle].key <= key) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static uint32_t plan_step(const struct plan_work *w, double times)
{
    const double n = (double)w->tested + plan_count(w, times);
    const double step = ceil(STEPS * log2(n / w->tested));
    return step < LEVELS ? (uint32_t)step : LEVELS - 1;
}

static double plan_needed(const struct plan_work *w, const struct diff_estimate *x)
{
    double needed = 0;
    uint32_t step = 0, before;
    for (int i = 0; i < ROUNDS; i++) {
        const double size = plan_effect(w, x->freedom, step) * x->error / w->request->log;
        needed = size * size;
        before = step;
        step = plan_step(w, needed);
        if (step <= before) {
            break;
        }
    }
    return needed;
}

static enum diff_needs plan_needs(const struct diff_plan_request *r, const struct diff_item *x)
{
    const bool tested = x->estimated && x->estimate.error > 0;
    const double times = tested ? x->needed : x->testable;
    if (!tested && x->verdict != DIFF_TOO_FEW) {
        return DIFF_NEEDS_NOTHING;
    }
    if (!tested && (r->few_groups || !(times > 1))) {
        return DIFF_NEEDS_PROCESSES;
    }
    return times > r->most ? DIFF_NEEDS_TOO_MUCH : times > 1 ? DIFF_NEEDS_DATA : DIFF_NEEDS_NOTHING;
}

void diff_plan_make(struct arena *a, const struct diff_plan_request *r, struct diff_table *t)
{
    struct plan_work w = {.request = r};
    w.order = ARENA_ARRAY(a, (size_t)t->count * 2, struct sort_item);
    w.effects = ARENA_ARRAY(a, (size_t)FREEDOMS * LEVELS, double);
    for (uint32_t i = 0; i < t->count; i++) {
        const struct diff_item *x = &t->items[i];
        w.tested += x->estimated && x->estimate.error > 0;
        if (x->verdict == DIFF_TOO_FEW && x->testable > 1) {
            w.order[w.waiting++] = (struct sort_item){sort_key_double(x->testable), i};
        }
    }
    sort_radix(w.order, w.order + t->count, w.waiting);
    for (uint32_t i = 0; i < t->count; i++) {
        struct diff_item *x = &t->items[i];
        if (x->estimated && x->estimate.error > 0) {
            x->estimate.visible = plan_effect(&w, x->estimate.freedom, 0) * x->estimate.error;
            x->needed = r->log > 0 ? plan_needed(&w, &x->estimate) : 0;
        }
        x->needs = plan_needs(r, x);
    }
    uint32_t n = 0;
    for (uint32_t i = 0; i < t->count; i++) {
        if (t->items[i].estimated && t->items[i].estimate.error > 0) {
            w.order[n++] = (struct sort_item){sort_key_double(t->items[i].estimate.visible), i};
        }
    }
    sort_radix(w.order, w.order + t->count, n);
    t->visible = n > 0 ? t->items[w.order[n / 2].value].estimate.visible : 0;
}
