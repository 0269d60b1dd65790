#include "core/diff.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#include "core/names.h"
#include "proto/sort.h"

#define V DIFF_VALUES

const char *diff_metric_name(enum diff_metric metric)
{
#define X(name, text) text,
    static const char *const NAMES[] = {DIFF_METRICS(X)};
#undef X
    return (unsigned)metric < DIFF_METRIC_COUNT ? NAMES[metric] : NULL;
}

const char *diff_verdict_name(enum diff_verdict verdict)
{
    static const char *const NAMES[DIFF_VERDICTS] = {"changed",   "constant-changed", "only-in-a", "only-in-b",
                                                     "uncertain", "not-significant",  "constant",  "too-few"};
    return NAMES[verdict];
}

const char *diff_needs_name(enum diff_needs needs)
{
    static const char *const NAMES[DIFF_NEEDS] = {"nothing", "data", "processes", "too-much"};
    return NAMES[needs];
}

#define FREEDOMS (2 * RANDOM_GROUPS - 1)
#define PLAN_STEPS 4u  /* in which the number of tests doubles: an effect takes long to compute, and hardly grows */
#define LEVELS 96u     /* n · 2^24 */
#define PLAN_ROUNDS 16 /* of plans, each with the tests of the one before */

struct plan_work {
    const struct diff_plan_request *request;
    uint32_t tested, waiting;
    struct sort_item *order; /* by how many times more data the waiting ones are tested, ascending */
    double *effects;         /* [freedom · LEVELS + step]; 0: not computed */
};

/* The smallest change, in standard errors, that is found when the tests have doubled step / PLAN_STEPS times. */
static double plan_effect(const struct plan_work *w, double freedom, uint32_t step)
{
    const struct diff_plan_request *r = w->request;
    double *effect = &w->effects[(size_t)freedom * LEVELS + step];
    if (!(*effect > 0)) {
        const double n = w->tested * exp2((double)step / PLAN_STEPS);
        *effect = diff_stat_effect(freedom, r->confidence > 0 ? 1 - r->confidence : r->fdr / n);
    }
    return *effect;
}

/* The multiple of the data with which the planned increase is found. More data brings more tests, which ask for more
 * data again, until the number of tests stays in its step. */
static double plan_needed(const struct plan_work *w, const struct diff_estimate *x)
{
    double needed = 0;
    uint32_t step = 0, before;
    for (int i = 0; i < PLAN_ROUNDS; i++) {
        const double size = plan_effect(w, x->freedom, step) * x->error / w->request->log;
        needed = size * size;
        const uint64_t key = sort_key_double(needed);
        uint32_t joining; /* of the waiting ones, those that are tested with this multiple of the data */
        SORT_SEARCH(joining, 0, w->waiting, w->order[joining].key <= key);
        const double tests = (double)w->tested + joining, steps = ceil(PLAN_STEPS * log2(tests / w->tested));
        before = step;
        step = steps < LEVELS ? (uint32_t)steps : LEVELS - 1;
        if (step <= before) {
            break;
        }
    }
    return needed;
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
        const bool tested = x->estimated && x->estimate.error > 0;
        if (tested) {
            x->estimate.visible = plan_effect(&w, x->estimate.freedom, 0) * x->estimate.error;
            x->needed = r->log > 0 ? plan_needed(&w, &x->estimate) : 0;
        }
        const double times = tested ? x->needed : x->testable;
        if (!tested && x->verdict != DIFF_TOO_FEW) {
            x->needs = DIFF_NEEDS_NOTHING;
        } else if (!tested && (r->few_groups || !(times > 1))) {
            x->needs = DIFF_NEEDS_PROCESSES;
        } else {
            x->needs = times > r->most ? DIFF_NEEDS_TOO_MUCH : times > 1 ? DIFF_NEEDS_DATA : DIFF_NEEDS_NOTHING;
        }
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

struct diff_work {
    struct arena *arena;
    const struct diff_request *request;
    struct diff *out;
    uint16_t groups[2]; /* of the sides, as diff_stat_compare wants them */
    double *ticks[2];
    uint16_t *tick_groups[2], *call_groups[2]; /* of each row */
    bool *is_watched;                          /* of each row; NULL: all are */
    uint32_t *name_rank;                       /* of each row */
    struct diff_logs *logs;                    /* of the items of the current table: [item·2] */
    struct sort_item *order;                   /* scratch */
    size_t order_size;
};

/* Scratch for n items, shared by all tables, because clearing new pages costs more than sorting. */
static struct sort_item *take_order(struct diff_work *w, size_t n)
{
    if (n > w->order_size || w->order == NULL) {
        w->order = ARENA_ARRAY(w->arena, n, struct sort_item);
        w->order_size = n;
    }
    return w->order;
}

const struct report_function *diff_function(const struct diff *d, uint32_t row)
{
    if (row == d->match.row_count) {
        return NULL;
    }
    const struct diff_row *r = &d->match.rows[row];
    uint32_t s = r->count[1] > 0 ? 1 : 0;
    return &d->sides[s]->functions[d->match.member[s][r->first[s]]];
}

static bool is_share(enum diff_metric metric)
{
    return metric == DIFF_SELF || metric == DIFF_TOTAL;
}

static bool is_of_calls(enum diff_metric metric)
{
    return metric == DIFF_CALLS || metric == DIFF_PROCESS_CALLS;
}

static bool is_per_process(enum diff_metric metric)
{
    return is_of_calls(metric) || metric == DIFF_PROCESS_TIME;
}

/* Returns whether one side has none of it; if it is uncertain, too few processes of the other side have it. */
static bool is_one_sided(const struct diff_item *x)
{
    return x->verdict == DIFF_ONLY_A || x->verdict == DIFF_ONLY_B ||
           (x->verdict == DIFF_UNCERTAIN && (x->ratio[0] > 0) != (x->ratio[1] > 0));
}

/* The larger of the row's shares in the time of the two sides. */
static double find_share(const struct diff *d, uint32_t row, bool self)
{
    double most = 0;
    for (uint32_t s = 0; s < 2; s++) {
        double seconds = d->sides[s]->seconds[0];
        double time = self ? d->row_self[s][(size_t)row * V] : d->row_total[s][(size_t)row * V];
        most = fmax(most, seconds > 0 ? time / seconds : 0);
    }
    return most;
}

/* Returns whether a side has any tick or call of a row. */
static bool is_seen(const struct diff_work *w, uint32_t s, uint32_t row)
{
    const struct diff *d = w->out;
    return d->row_calls[s][(size_t)row * V] > 0 || w->ticks[s][row] > 0 ||
           (d->measured[s] && d->row_total[s][(size_t)row * V] > 0);
}

/* Arcs of one side, ascending by (caller, callee); those of clones have one key. A function's number in keys is that of
 * its row's first member on side A, so that both sides' values are read nearly in their order. */
struct arc_list {
    struct sort_item *items;
    uint32_t count;
};

static uint64_t next_key(const struct arc_list *list, uint32_t at)
{
    return at < list->count ? list->items[at].key : UINT64_MAX;
}

/* Fills in the table's items for arcs between functions of both sides if the caller was called on both; they are
 * compared where there is enough. O(arcs). */
static void make_arcs(struct diff_work *w, struct diff_table *t)
{
    const struct diff_match *match = &w->out->match;
    double *const *calls = w->out->row_calls;
    struct arc_list lists[2];
    for (uint32_t s = 0; s < 2; s++) {
        const struct diff_side *side = w->out->sides[s];
        lists[s] = (struct arc_list){ARENA_ARRAY(w->arena, (size_t)side->arc_count * 2, struct sort_item), 0};
        for (uint32_t i = 0; i < side->arc_count; i++) {
            const uint32_t caller = match->row_of[s][side->from[i]], callee = match->row_of[s][side->to[i]];
            const struct diff_row *from = &match->rows[caller], *to = &match->rows[callee];
            if (from->count[1 - s] > 0 && to->count[1 - s] > 0 && (!w->is_watched || w->is_watched[callee]) &&
                calls[0][(size_t)caller * V] > 0 && calls[1][(size_t)caller * V] > 0) {
                const uint64_t high = match->member[0][from->first[0]], low = match->member[0][to->first[0]];
                lists[s].items[lists[s].count++] = (struct sort_item){high << 32 | low, i};
            }
        }
        sort_radix(lists[s].items, lists[s].items + side->arc_count, lists[s].count);
    }

    t->items = ARENA_ARRAY(w->arena, (size_t)lists[0].count + lists[1].count, struct diff_item);
    for (uint32_t at[2] = {0, 0}; at[0] < lists[0].count || at[1] < lists[1].count;) {
        const uint64_t left = next_key(&lists[0], at[0]), right = next_key(&lists[1], at[1]);
        const uint64_t key = left < right ? left : right;
        const uint32_t caller = match->row_of[0][key >> 32], callee = match->row_of[0][(uint32_t)key];
        struct diff_item *item = &t->items[t->count++];
        struct diff_logs logs[2];
        bool enough = true;
        *item = (struct diff_item){.row = callee, .caller = caller, .verdict = DIFF_TOO_FEW};
        item->share = find_share(w->out, callee, false);
        for (uint32_t s = 0; s < 2; s++) {
            const struct diff_side *side = w->out->sides[s];
            const double *y = &calls[s][(size_t)caller * V];
            double x[V] = {0};
            uint16_t groups = 0;
            const bool here = next_key(&lists[s], at[s]) == key;
            for (; next_key(&lists[s], at[s]) == key && at[s] < lists[s].count; at[s]++) {
                const uint32_t arc = lists[s].items[at[s]].value;
                for (uint32_t k = 0; k < V; k++) {
                    x[k] += (double)side->arc_calls[k * side->arc_step + arc];
                }
                groups |= side->arc_groups[arc];
            }
            item->ticks[s] = w->ticks[s][callee];
            item->ratio[s] = here ? x[0] / y[0] : 0;
            item->verdict = here ? item->verdict : s == 0 ? DIFF_ONLY_B : DIFF_ONLY_A;
            enough = enough && here && diff_stat_count(groups) >= DIFF_GROUPS_LEAST && diff_stat_logs(x, y, &logs[s]);
        }
        item->estimated = enough;
        if (enough) {
            diff_stat_compare(&logs[0], &logs[1], w->groups, w->request->paired, &item->estimate);
        }
    }
}

/* Fills in an item of a row; false if neither side has any of it, though both have the function. */
static bool make_item(const struct diff_work *w, enum diff_metric metric, uint32_t row, struct diff_item *item,
                      struct diff_logs *logs)
{
    const struct diff *d = w->out;
    bool both = true, here[2], enough[2];
    double denominators[2], samples = 0;
    *item = (struct diff_item){.row = row, .caller = DIFF_NONE};
    for (uint32_t s = 0; s < 2; s++) {
        const struct diff_side *side = d->sides[s];
        const double *self = &d->row_self[s][(size_t)row * V], *total = &d->row_total[s][(size_t)row * V],
                     *calls = &d->row_calls[s][(size_t)row * V];
        const double *x = metric == DIFF_TOTAL ? total : is_of_calls(metric) ? calls : self;
        const double *y = metric == DIFF_TIME ? calls : is_per_process(metric) ? side->processes : side->seconds;
        here[s] = x[0] > 0 && y[0] > 0;
        item->ratio[s] = y[0] > 0 ? x[0] / y[0] : 0;
        item->ticks[s] = w->ticks[s][row];
        denominators[s] = y[0];
        both = diff_stat_logs(x, y, &logs[s]) && both;
        /* Total time rests on all ticks below a function; it may have none itself. */
        const double below = side->seconds[0] > 0 ? total[0] / side->seconds[0] * (double)side->ticks_total : 0;
        samples += (metric == DIFF_TOTAL ? below : w->ticks[s][row]) * side->per_tick;
    }
    const bool of_self = metric == DIFF_SELF || metric == DIFF_TIME;
    item->share = find_share(d, row, of_self);
    for (uint32_t s = 0; s < 2; s++) {
        const double processes = d->sides[s]->processes[0];
        item->seconds[s] = processes > 0 ? (of_self ? d->row_self : d->row_total)[s][(size_t)row * V] / processes : 0;
    }

    /* The fewest samples that a side would have if the ratio had not changed. The sum of both sides' samples says
     * nothing about the change. The smaller of two numbers of samples does: with a bound for it, functions at the bound
     * were tested only when they happened to be alike (independent filtering: Bourgon, Gentleman and Huber, PNAS 107,
     * 2010). */
    const double sum = denominators[0] + denominators[1];
    const double least = sum > 0 ? samples / sum * fmin(denominators[0], denominators[1]) : 0;
    for (uint32_t s = 0; s < 2; s++) {
        const uint16_t ticks = metric == DIFF_TOTAL ? d->sides[s]->groups : w->tick_groups[s][row];
        const bool timed = diff_stat_count(ticks) >= DIFF_GROUPS_LEAST,
                   called = diff_stat_count(w->call_groups[s][row]) >= DIFF_GROUPS_LEAST;
        item->few[s] = !((is_of_calls(metric) || timed) && (called || (metric != DIFF_TIME && !is_of_calls(metric))));
        enough[s] = !item->few[s] && (is_of_calls(metric) || least >= DIFF_SAMPLES_LEAST);
    }
    item->estimated = both && enough[0] && enough[1];
    item->testable = is_of_calls(metric) || !(least > 0) ? 0 : DIFF_SAMPLES_LEAST / least;

    /* The verdict if there is no test. What is there in 12 of 16 groups of one side and in none of the other is not
     * chance: if the sides were alike, that would happen once in 100,000 times. */
    const bool alone = is_share(metric) && here[0] != here[1] && least >= DIFF_SAMPLES_LEAST;
    item->verdict = alone || (enough[0] != enough[1] && !is_of_calls(metric)) ? DIFF_UNCERTAIN : DIFF_TOO_FEW;
    for (uint32_t s = 0; s < 2 && is_share(metric); s++) {
        const bool absent = d->match.rows[row].count[1 - s] == 0 && !d->match.rows[row].idle;
        if (absent || (here[s] && !here[1 - s] && enough[s])) {
            item->verdict = s == 0 ? DIFF_ONLY_A : DIFF_ONLY_B;
        }
    }
    return here[0] || here[1] || is_one_sided(item);
}

#define COMMON_ROUNDS 5 /* of leaving out what deviates */
#define DEVIATES 3.0    /* standard errors */

struct common_work {
    bool by_ticks;           /* functions count by their samples; else all alike */
    bool *compared;          /* of each item: estimated, and not the same number in every group of both sides */
    double *weight;          /* of each item; 0: it is no part of the mean */
    struct diff_logs sum[2]; /* Σ weight · logs */
    double total;            /* Σ weight */
    uint32_t functions;
};

static void common_add(struct diff_logs to[2], const struct diff_logs from[2], double weight)
{
    for (uint32_t s = 0; s < 2; s++) {
        for (uint32_t k = 0; k < V; k++) {
            to[s].of[k] += weight * from[s].of[k];
        }
        to[s].freedom += weight * from[s].freedom;
    }
}

/* Chooses the items that are near the median, and adds up their logarithms. True if the choice has changed. */
static bool common_choose(struct diff_work *work, struct common_work *w, const struct diff_table *t)
{
    struct sort_item *order = take_order(work, (size_t)t->count * 2);
    size_t n = 0;
    for (uint32_t i = 0; i < t->count; i++) {
        if (w->compared[i]) {
            order[n++] = (struct sort_item){sort_key_double(t->items[i].estimate.log), i};
        }
    }
    sort_radix(order, order + t->count, n);
    double median = n > 0 ? t->items[order[n / 2].value].estimate.log : 0;
    bool changed = false;
    memset(w->sum, 0, sizeof w->sum);
    w->total = 0;
    w->functions = 0;
    for (uint32_t i = 0; i < t->count; i++) {
        const struct diff_item *x = &t->items[i];
        double weight = 0;
        if (w->compared[i] && fabs(x->estimate.log - median) <= DEVIATES * x->estimate.error + DIFF_ROUNDING) {
            const double sum = x->ticks[0] + x->ticks[1];
            weight = !w->by_ticks ? 1 : sum > 0 ? x->ticks[0] * x->ticks[1] / sum : 0;
        }
        changed |= (weight > 0) != (w->weight[i] > 0);
        w->weight[i] = weight;
        w->total += weight;
        w->functions += weight > 0;
        if (weight > 0) {
            common_add(w->sum, &work->logs[(size_t)i * 2], weight);
        }
    }
    return changed;
}

/* Finds the common factor of the estimated items, and compares each of them once more without it. A function deviates
 * if it differs from the median by more than three standard errors; such functions are no part of the mean, and none
 * is a part of the mean that it is compared with. Items that are the same number in every group of both sides, such as
 * one call in each process, stay as they are. */
static void remove_common(struct diff_work *work, bool by_ticks, struct diff_table *t)
{
    struct common_work w = {.by_ticks = by_ticks};
    const bool paired = work->request->paired;
    w.weight = ARENA_ARRAY(work->arena, t->count, double);
    w.compared = ARENA_ARRAY(work->arena, t->count, bool);
    for (uint32_t i = 0; i < t->count; i++) {
        const struct diff_estimate *x = &t->items[i].estimate;
        w.compared[i] = t->items[i].estimated && (x->error > 0 || x->p < 1);
    }
    for (int round = 0; round < COMMON_ROUNDS && common_choose(work, &w, t); round++) {
        if (w.functions < DIFF_COMMON_LEAST) {
            break;
        }
        for (uint32_t i = 0; i < t->count; i++) {
            const struct diff_logs *logs = &work->logs[(size_t)i * 2];
            const double own = w.weight[i], rest = w.total - own;
            struct diff_logs without[2];
            if (!w.compared[i]) {
                continue;
            }
            for (uint32_t s = 0; s < 2; s++) {
                for (uint32_t k = 0; k < V; k++) {
                    const double log = logs[s].of[k];
                    without[s].of[k] = log - (w.sum[s].of[k] - own * log) / rest;
                }
                without[s].freedom = logs[s].freedom;
            }
            diff_stat_compare(&without[0], &without[1], work->groups, paired, &t->items[i].estimate);
        }
    }
    if (w.functions >= DIFF_COMMON_LEAST) {
        struct diff_logs mean[2] = {{.freedom = 0}, {.freedom = 0}};
        common_add(mean, w.sum, 1 / w.total);
        t->common.functions = w.functions;
        diff_stat_compare(&mean[0], &mean[1], work->groups, paired, &t->common.estimate);
    }
}

/* Computes q of all tests of the table, and what they say. */
static void give_verdicts(struct diff_work *w, struct diff_table *t)
{
    uint32_t n = 0;
    double *p = ARENA_ARRAY(w->arena, t->count, double), *q = ARENA_ARRAY(w->arena, t->count, double);
    struct sort_item *order = take_order(w, (size_t)t->count * 2);
    for (uint32_t i = 0; i < t->count; i++) {
        if (t->items[i].estimated && t->items[i].estimate.error > 0) {
            p[n++] = t->items[i].estimate.p;
        }
    }
    diff_stat_discover(p, q, n, order);
    t->tests = n;
    n = 0;
    for (uint32_t i = 0; i < t->count; i++) {
        struct diff_item *item = &t->items[i];
        if (item->estimated && item->estimate.error > 0) {
            item->q = q[n++];
            item->verdict = item->q <= w->request->fdr                          ? DIFF_CHANGED
                            : item->estimate.low > 0 || item->estimate.high < 0 ? DIFF_UNCERTAIN
                                                                                : DIFF_SAME;
        } else if (item->estimated) {
            item->verdict = item->estimate.p < 1 ? DIFF_CONSTANT_CHANGED : DIFF_CONSTANT;
        }
        t->counts[item->verdict]++;
    }
}

static int name_compare(const void *context, uint32_t x, uint32_t y)
{
    return strcmp(diff_function(context, x)->name, diff_function(context, y)->name);
}

struct item_order {
    const struct diff_item *items;
    bool by_seconds; /* for each process; else by the part of the time that came or went */
    const uint32_t *name_rank;
};

/* The least important key first. */
static uint64_t item_key(const void *context, uint32_t value, int key)
{
    const struct item_order *w = context;
    const struct diff_item *x = &w->items[value];
    if (key == 0) {
        return (uint64_t)w->name_rank[x->row] << 32 | (x->caller == DIFF_NONE ? 0 : w->name_rank[x->caller]);
    }
    if (key == 1 && w->by_seconds) {
        return ~sort_key_double(fabs(x->seconds[1] - x->seconds[0]));
    }
    if (key == 1) {
        const double part = x->estimated ? -expm1(-fabs(x->estimate.log)) : 1;
        return ~sort_key_double(part * x->share);
    }
    /* First functions of one side with ticks enough for a test and a share that matters, then other changes, then the
     * others by verdict. */
    const bool first = is_one_sided(x) && x->testable > 0 && x->testable <= 1 && x->share >= DIFF_ALONE_LEAST;
    return first ? 0 : x->verdict <= DIFF_ONLY_B ? 1 : 1 + x->verdict;
}

static void sort_items(struct diff_work *w, enum diff_metric metric, struct diff_table *t)
{
    const struct diff_side *const *sides = w->out->sides;
    const struct item_order by = {
        t->items, is_share(metric) && sides[0]->processes[0] > 0 && sides[1]->processes[0] > 0, w->name_rank};
    struct sort_item *order = take_order(w, (size_t)t->count * 2);
    for (uint32_t i = 0; i < t->count; i++) {
        order[i].value = i;
    }
    sort_keys(order, order + t->count, t->count, 3, item_key, &by);
    /* Items move to their places cycle by cycle, because a copy of all would be as large as the table. */
    for (uint32_t i = 0; i < t->count; i++) {
        const struct diff_item first = t->items[i];
        uint32_t to = i;
        for (uint32_t from = order[i].value; from != i; from = order[to].value) {
            t->items[to] = t->items[from];
            order[to].value = to;
            to = from;
        }
        t->items[to] = first;
        order[to].value = to;
    }
}

/* Why a metric that rests on calls cannot be compared; NULL: it can. */
static const char *find_sampled(const struct diff_request *r, const struct diff *d, enum diff_metric metric)
{
    const bool total = metric == DIFF_TOTAL;
    for (uint32_t s = 0; s < 2; s++) {
        if (total && r->sampled[s] && !d->measured[s]) {
            return s == 0 ? "A has neither stacks of most ticks nor counted calls, so times with callees are not known"
                          : "B has neither stacks of most ticks nor counted calls, so times with callees are not known";
        }
        if (metric != DIFF_SELF && metric != DIFF_PROCESS_TIME && !total && r->sampled[s]) {
            return s == 0 ? "calls of A were not counted, or are sampled, or some processes left functions out"
                          : "calls of B were not counted, or are sampled, or some processes left functions out";
        }
    }
    return total && d->measured[0] != d->measured[1] ? "only one side has stacks of most ticks, and counted no calls"
                                                     : NULL;
}

/* Why a table cannot be made; NULL: it can. */
static const char *find_hindrance(const struct diff_request *r, const struct diff *d, enum diff_metric metric)
{
    for (uint32_t s = 0; s < 2; s++) {
        if (diff_stat_count(d->sides[s]->groups) < 2) {
            return s == 0 ? "A has one random group of processes; 12 are needed, which 60 processes have"
                          : "B has one random group of processes; 12 are needed, which 60 processes have";
        }
        if (is_per_process(metric) && d->sides[s]->processes_unknown > 0) {
            return "for some processes, stored by an older version, the random group is not known";
        }
        if (is_per_process(metric) && !(d->sides[s]->processes[0] > 0)) {
            return s == 0 ? "no process began in the window of A" : "no process began in the window of B";
        }
    }
    return find_sampled(r, d, metric);
}

/* Fills in the table's items, one for each row that a side or both have, and compares those with enough samples. */
static void make_items(struct diff_work *w, enum diff_metric metric, struct diff_table *t)
{
    const struct diff_match *m = &w->out->match;
    const bool whole = metric == DIFF_PROCESS_TIME || metric == DIFF_PROCESS_CALLS;
    t->items = ARENA_ARRAY(w->arena, (size_t)m->row_count + 1, struct diff_item);
    w->logs = w->logs ? w->logs : ARENA_ARRAY(w->arena, ((size_t)m->row_count + 1) * 2, struct diff_logs);
    for (uint32_t i = whole ? m->row_count : 0; i < m->row_count + whole; i++) {
        const uint32_t *count = whole ? NULL : m->rows[i].count;
        struct diff_item *item = &t->items[t->count];
        struct diff_logs *logs = &w->logs[(size_t)t->count * 2];
        if ((whole || (count[0] > 0 && count[1] > 0) || (is_share(metric) && is_seen(w, count[0] > 0 ? 0 : 1, i))) &&
            make_item(w, metric, i, item, logs)) {
            if (t->made && item->estimated) {
                diff_stat_compare(&logs[0], &logs[1], w->groups, w->request->paired, &item->estimate);
            }
            t->count++;
        }
    }
    if (metric == DIFF_TIME || metric == DIFF_CALLS) {
        remove_common(w, metric == DIFF_TIME, t);
    }
    /* Only what is watched stays; of a table that cannot be made, what one side alone has. */
    uint32_t n = 0;
    for (uint32_t i = 0; i < t->count; i++) {
        if ((t->made || is_one_sided(&t->items[i])) && (!w->is_watched || w->is_watched[t->items[i].row])) {
            t->items[n++] = t->items[i];
        }
    }
    t->count = n;
}

static void make_table(struct diff_work *w, enum diff_metric metric)
{
    struct diff_table *t = &w->out->tables[metric];
    const struct diff_request *r = w->request;
    t->why_not = find_hindrance(r, w->out, metric);
    t->made = t->why_not == NULL;
    if (!t->made && (find_sampled(r, w->out, metric) != NULL || !is_share(metric))) {
        return;
    }
    if (metric == DIFF_PARENT) {
        make_arcs(w, t);
    } else {
        make_items(w, metric, t);
    }
    for (uint32_t i = 0; i < t->count && r->confidence > 0; i++) {
        if (t->items[i].estimated) {
            diff_stat_set_confidence(&t->items[i].estimate, r->confidence);
        }
    }
    if (r->confidence > 0 && t->common.functions > 0) {
        diff_stat_set_confidence(&t->common.estimate, r->confidence);
    }
    const bool few_groups =
        diff_stat_count(w->groups[0]) < DIFF_GROUPS_LEAST || diff_stat_count(w->groups[1]) < DIFF_GROUPS_LEAST;
    const struct diff_plan_request plan = {r->fdr, r->confidence, log1p(r->threshold),
                                           r->most_data > 0 ? r->most_data : DIFF_DATA_MOST, few_groups};
    give_verdicts(w, t);
    diff_plan_make(w->arena, &plan, t);
    sort_items(w, metric, t);
}

/* Above: the interval lies above the threshold, and the change is no chance. Without a watch list, functions with too
 * few samples are not judged, because every program has many; but where no function has enough, nothing can be told. */
static void judge(const struct diff_work *w)
{
    const struct diff_request *r = w->request;
    const struct diff_table *t = &w->out->tables[r->judge_metric];
    const double least = log1p(r->threshold);
    const bool whole = r->judge_metric == DIFF_PROCESS_TIME || r->judge_metric == DIFF_PROCESS_CALLS,
               watched = r->watch_count > 0 && !whole;
    bool told = false;
    for (uint32_t i = 0; i < t->count; i++) {
        const struct diff_item *x = &t->items[i];
        told |= x->estimated;
        bool certain = x->verdict == DIFF_CHANGED || x->verdict == DIFF_CONSTANT_CHANGED;
        /* By how much it grew cannot be told if A has not any of it, or too little. Of functions, only those with
         * ticks enough for a test are judged so: every new version has others. */
        bool from_nothing =
            (x->verdict == DIFF_ONLY_B || (x->verdict == DIFF_UNCERTAIN && x->ratio[1] > x->ratio[0])) &&
            (x->caller != DIFF_NONE || x->testable <= 1);
        if (certain && x->estimate.low > least) {
            w->out->above++;
        } else if (x->estimated ? x->estimate.high > least : x->verdict != DIFF_ONLY_A && (watched || from_nothing)) {
            w->out->unknown++;
        }
    }
    for (uint32_t i = 0; i < r->watch_count && watched; i++) {
        w->out->unknown += !w->out->watched[i];
    }
    w->out->unknown += watched ? (is_share(r->judge_metric) ? 0 : w->out->only_count[1])
                       : !told ? t->counts[DIFF_TOO_FEW]
                               : 0;
    bool unknown = w->out->unknown > 0 || !told || !t->made;
    w->out->judgement = w->out->above > 0 ? DIFF_ABOVE : unknown ? DIFF_UNKNOWN : DIFF_BELOW;
}

static void add_values(double *to, const double *from)
{
    for (uint32_t k = 0; k < V; k++) {
        to[k] += from[k];
    }
}

/* Adds up the functions of each row. Behind the last row stands what all functions have together. */
static void sum_rows(struct diff_work *w)
{
    struct diff *d = w->out;
    const uint32_t whole = d->match.row_count, rows = whole + 1;
    for (uint32_t s = 0; s < 2; s++) {
        const struct diff_side *side = d->sides[s];
        const double *total = d->measured[s] ? side->measured : side->total;
        d->row_self[s] = ARENA_ARRAY(w->arena, (size_t)rows * V, double);
        d->row_total[s] = ARENA_ARRAY(w->arena, (size_t)rows * V, double);
        d->row_calls[s] = ARENA_ARRAY(w->arena, (size_t)rows * V, double);
        w->ticks[s] = ARENA_ARRAY(w->arena, rows, double);
        w->tick_groups[s] = ARENA_ARRAY(w->arena, rows, uint16_t);
        w->call_groups[s] = ARENA_ARRAY(w->arena, rows, uint16_t);
        for (uint32_t i = 0; i < side->function_count; i++) {
            size_t row = d->match.row_of[s][i];
            add_values(&d->row_self[s][row * V], &side->self[(size_t)i * V]);
            add_values(&d->row_total[s][row * V], &total[(size_t)i * V]);
            add_values(&d->row_calls[s][row * V], &side->calls[(size_t)i * V]);
            w->ticks[s][row] += side->ticks[i];
            w->tick_groups[s][row] |= side->tick_groups[i];
            w->call_groups[s][row] |= side->call_groups[i];
            add_values(&d->row_calls[s][(size_t)whole * V], &side->calls[(size_t)i * V]);
            w->call_groups[s][whole] |= side->call_groups[i];
        }
        add_values(&d->row_self[s][(size_t)whole * V], side->seconds);
        add_values(&d->row_total[s][(size_t)whole * V], side->seconds);
        w->ticks[s][whole] = (double)side->ticks_total;
        w->tick_groups[s][whole] = side->groups;
    }
}

/* Marks the rows whose function has one of the watched names: its name as shown, with or without parameters, or its raw
 * name without clone suffixes. */
static void find_watched(struct diff_work *w)
{
    const struct diff_request *r = w->request;
    const uint32_t rows = w->out->match.row_count;
    w->out->watched = ARENA_ARRAY(w->arena, (size_t)r->watch_count + 1, bool);
    if (r->watch_count == 0) {
        return;
    }
    w->is_watched = ARENA_ARRAY(w->arena, (size_t)rows + 1, bool);
    for (uint32_t i = 0; i < rows; i++) {
        const struct report_function *f = diff_function(w->out, i);
        for (uint32_t k = 0; k < r->watch_count; k++) {
            const char *name = r->watch[k];
            const size_t n = strlen(name);
            if (strcmp(f->name, name) == 0 || (strncmp(f->name, name, n) == 0 && f->name[n] == '(') ||
                (clone_base(f->raw) == n && strncmp(f->raw, name, n) == 0)) {
                w->is_watched[i] = w->out->watched[k] = true;
            }
        }
    }
    w->is_watched[rows] = true;
}

void diff_make(struct arena *a, const struct diff_request *request, struct diff *out)
{
    struct diff_work w = {.arena = a, .request = request, .out = out};
    *out = (struct diff){.sides = {request->sides[0], request->sides[1]}};
    /* Times of stacks are compared with such only. Where calls say nothing, times by calls are none. */
    const bool has[2] = {request->sides[0]->measured != NULL, request->sides[1]->measured != NULL};
    for (uint32_t s = 0; s < 2; s++) {
        out->measured[s] = has[s] && (has[1 - s] || request->sampled[s]);
        w.groups[s] = request->sides[s]->groups;
    }
    diff_match_make(a, request->sides, request->programs, &out->match);
    sum_rows(&w);
    find_watched(&w);

    const uint32_t rows = out->match.row_count;
    uint32_t *by_name = ARENA_ARRAY(a, (size_t)rows * 2, uint32_t);
    w.name_rank = ARENA_ARRAY(a, (size_t)rows + 1, uint32_t);
    for (uint32_t i = 0; i < rows; i++) {
        by_name[i] = i;
    }
    sort_merge(by_name, by_name + rows, rows, name_compare, out);
    for (uint32_t i = 0; i < rows; i++) {
        w.name_rank[by_name[i]] = i;
    }
    for (uint32_t i = 0; i < DIFF_METRIC_COUNT; i++) {
        if (request->metrics[i]) {
            make_table(&w, (enum diff_metric)i);
        }
    }

    for (uint32_t s = 0; s < 2; s++) { /* rows of one side, by self time */
        struct sort_item *order = take_order(&w, (size_t)rows * 2);
        uint32_t n = 0;
        out->only[s] = ARENA_ARRAY(a, rows, uint32_t);
        for (uint32_t i = 0; i < rows; i++) {
            if (out->match.rows[i].count[1 - s] == 0 && is_seen(&w, s, i) && (!w.is_watched || w.is_watched[i]) &&
                !report_kind_is_class(diff_function(out, i)->kind)) {
                order[n++] = (struct sort_item){~sort_key_double(out->row_self[s][(size_t)i * V]), i};
            }
        }
        sort_radix(order, order + rows, n);
        for (uint32_t i = 0; i < n; i++) {
            out->only[s][i] = order[i].value;
        }
        out->only_count[s] = n;
    }
    if (request->judge) {
        judge(&w);
    }
}
