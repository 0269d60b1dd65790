#include "core/diff_arcs.h"

#include "proto/sort.h"

#define V DIFF_VALUES

/* Arcs of one side, ascending by (caller, callee); those of clones have one key. A function's number in keys is that of
 * its row's first member on side A, so that both sides' values are read nearly in their order. */
struct arc_list {
    struct sort_item *items;
    uint32_t count;
};

static bool is_wanted(const struct diff_arcs_request *r, uint32_t s, uint32_t caller, uint32_t callee)
{
    const struct diff_row *rows = r->match->rows;
    return rows[caller].count[1 - s] > 0 && rows[callee].count[1 - s] > 0 &&
           (r->is_watched == NULL || r->is_watched[callee]) && r->calls[0][(size_t)caller * V] > 0 &&
           r->calls[1][(size_t)caller * V] > 0;
}

static void list_arcs(struct arena *a, const struct diff_arcs_request *r, uint32_t s, struct arc_list *out)
{
    const struct diff_side *side = r->sides[s];
    const struct diff_match *match = r->match;
    out->items = ARENA_ARRAY(a, (size_t)side->arc_count * 2, struct sort_item);
    for (uint32_t i = 0; i < side->arc_count; i++) {
        const uint32_t caller = match->row_of[s][side->from[i]], callee = match->row_of[s][side->to[i]];
        if (is_wanted(r, s, caller, callee)) {
            const uint32_t from = match->member[0][match->rows[caller].first[0]],
                           to = match->member[0][match->rows[callee].first[0]];
            out->items[out->count++] = (struct sort_item){(uint64_t)from << 32 | to, i};
        }
    }
    sort_radix(out->items, out->items + side->arc_count, out->count);
}

/* Calls and groups of the arcs of a key, which begin at *at, behind them. False: the side has none. */
static bool take_arc(const struct diff_side *side, const struct arc_list *list, uint64_t key, uint32_t *at,
                     double calls[V], uint16_t *groups)
{
    const uint32_t first = *at;
    for (; *at < list->count && list->items[*at].key == key; ++*at) {
        const uint32_t arc = list->items[*at].value;
        for (uint32_t k = 0; k < V; k++) {
            calls[k] += (double)side->arc_calls[k * side->arc_step + arc];
        }
        *groups |= side->arc_groups[arc];
    }
    return *at > first;
}

/* The item of a key. at[s]: where its arcs begin in the list of side s, if it has any; moves behind them. */
static void make_item(const struct diff_arcs_request *r, const struct arc_list *lists, uint32_t at[2], uint64_t key,
                      struct diff_item *item)
{
    const uint32_t caller = r->match->row_of[0][key >> 32];
    struct diff_logs logs[2];
    bool enough = true;
    *item = (struct diff_item){.row = r->match->row_of[0][(uint32_t)key], .caller = caller, .verdict = DIFF_TOO_FEW};
    for (uint32_t s = 0; s < 2; s++) {
        const double *y = &r->calls[s][(size_t)caller * V];
        double x[V] = {0};
        uint16_t groups = 0;
        const bool here = take_arc(r->sides[s], &lists[s], key, &at[s], x, &groups);
        item->ratio[s] = here ? x[0] / y[0] : 0;
        item->verdict = here ? item->verdict : s == 0 ? DIFF_ONLY_B : DIFF_ONLY_A;
        enough = enough && here && diff_stat_count(groups) >= DIFF_GROUPS_LEAST && diff_stat_logs(x, y, &logs[s]);
    }
    item->estimated = enough;
    if (enough) {
        diff_stat_compare(&logs[0], &logs[1], r->groups, r->paired, &item->estimate);
    }
}

static uint64_t next_key(const struct arc_list *list, uint32_t at)
{
    return at < list->count ? list->items[at].key : UINT64_MAX;
}

void diff_arcs_make(struct arena *a, const struct diff_arcs_request *r, struct diff_table *t)
{
    struct arc_list lists[2] = {{0}, {0}};
    uint32_t at[2] = {0, 0};
    list_arcs(a, r, 0, &lists[0]);
    list_arcs(a, r, 1, &lists[1]);
    t->items = ARENA_ARRAY(a, (size_t)lists[0].count + lists[1].count, struct diff_item);
    while (at[0] < lists[0].count || at[1] < lists[1].count) {
        const uint64_t left = next_key(&lists[0], at[0]), right = next_key(&lists[1], at[1]);
        make_item(r, lists, at, left < right ? left : right, &t->items[t->count++]);
    }
}
