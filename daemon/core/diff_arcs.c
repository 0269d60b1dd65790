#include "core/diff_arcs.h"

#include "core/sort.h"

#define V DIFF_VALUES

/* Arcs of one side in rows: sorted by (caller, callee), those of clones added up. */
struct arc_list {
    uint32_t count;
    uint64_t *key;
    const double **calls; /* V values of each */
    uint16_t *groups;
};

static bool is_wanted(const struct diff_arcs_request *r, uint32_t s, uint32_t caller, uint32_t callee)
{
    const struct diff_row *rows = r->match->rows;
    return rows[caller].count[1 - s] > 0 && rows[callee].count[1 - s] > 0 &&
           (r->is_watched == NULL || r->is_watched[callee]) && r->calls[0][(size_t)caller * V] > 0 &&
           r->calls[1][(size_t)caller * V] > 0;
}

/* The sum of two arcs of clones; NULL when memory is exhausted. */
static const double *add_arcs(struct arena *a, const double *x, const double *y)
{
    double *sum = ARENA_ARRAY(a, V, double);
    for (uint32_t k = 0; sum != NULL && k < V; k++) {
        sum[k] = x[k] + y[k];
    }
    return sum;
}

static bool list_arcs(struct arena *a, const struct diff_arcs_request *r, uint32_t s, struct arc_list *out)
{
    const struct diff_side *side = r->sides[s];
    const uint32_t *row_of = r->match->row_of[s];
    struct sort_item *order = ARENA_ARRAY(a, (size_t)side->arc_count * 2, struct sort_item);
    uint32_t n = 0, last = 0;
    out->key = ARENA_ARRAY(a, side->arc_count, uint64_t);
    out->calls = ARENA_ARRAY(a, side->arc_count, const double *);
    out->groups = ARENA_ARRAY(a, side->arc_count, uint16_t);
    if (order == NULL || out->key == NULL || out->calls == NULL || out->groups == NULL) {
        return false;
    }
    for (uint32_t i = 0; i < side->arc_count; i++) {
        uint32_t caller = row_of[side->from[i]], callee = row_of[side->to[i]];
        if (is_wanted(r, s, caller, callee)) {
            order[n++] = (struct sort_item){(uint64_t)caller << 32 | callee, i};
        }
    }
    sort_radix(order, order + side->arc_count, n);
    for (uint32_t i = 0; i < n; i++) {
        const double *from = &side->arc_calls[(size_t)order[i].value * V];
        if (i == 0 || order[i].key != out->key[last]) {
            last = out->count++;
            out->key[last] = order[i].key;
            out->calls[last] = from;
        } else if ((out->calls[last] = add_arcs(a, out->calls[last], from)) == NULL) {
            return false;
        }
        out->groups[last] |= side->arc_groups[order[i].value];
    }
    return true;
}

/* at[s]: place of the arc in the list of side s; the list's count: it is not there. */
static void make_item(const struct diff_arcs_request *r, const struct arc_list *lists, const uint32_t at[2],
                      uint64_t key, struct diff_item *item)
{
    uint32_t caller = (uint32_t)(key >> 32);
    struct diff_logs logs[2];
    bool enough = true;
    *item = (struct diff_item){.row = (uint32_t)key, .caller = caller, .verdict = DIFF_TOO_FEW};
    for (uint32_t s = 0; s < 2; s++) {
        const double *y = &r->calls[s][(size_t)caller * V];
        bool here = at[s] < lists[s].count;
        const double *x = here ? lists[s].calls[at[s]] : NULL;
        item->ratio[s] = here ? x[0] / y[0] : 0;
        item->verdict = here ? item->verdict : s == 0 ? DIFF_ONLY_B : DIFF_ONLY_A;
        enough = enough && here && diff_stat_count(lists[s].groups[at[s]]) >= DIFF_GROUPS_LEAST &&
                 diff_stat_logs(x, y, &logs[s]);
    }
    item->estimated = enough;
    if (enough) {
        diff_stat_compare(&logs[0], &logs[1], r->groups, r->paired, &item->estimate);
    }
}

bool diff_arcs_make(struct arena *a, const struct diff_arcs_request *r, struct diff_table *t)
{
    struct arc_list lists[2] = {{0}, {0}};
    if (!list_arcs(a, r, 0, &lists[0]) || !list_arcs(a, r, 1, &lists[1])) {
        return false;
    }
    t->items = ARENA_ARRAY(a, (size_t)lists[0].count + lists[1].count, struct diff_item);
    for (uint32_t i = 0, k = 0; t->items != NULL && (i < lists[0].count || k < lists[1].count);) {
        uint64_t left = i < lists[0].count ? lists[0].key[i] : UINT64_MAX;
        uint64_t right = k < lists[1].count ? lists[1].key[k] : UINT64_MAX;
        uint64_t key = left < right ? left : right;
        const uint32_t at[2] = {left == key ? i++ : lists[0].count, right == key ? k++ : lists[1].count};
        make_item(r, lists, at, key, &t->items[t->count++]);
    }
    return t->items != NULL;
}
