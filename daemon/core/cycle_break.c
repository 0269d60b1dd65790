#include "core/cycle_break.h"

#include "proto/sort.h"

#define NONE UINT32_MAX
#define STEPS_MOST 20000000u /* arcs that are looked at: a tenth of a second */

/* Arcs that were taken stand in lists by their ends. place: an order of the nodes in which all of them ascend. */
struct break_work {
    struct cycle_arc *arcs;
    uint32_t nodes;
    uint32_t *out, *in;           /* of each node: its first arc; NONE */
    uint32_t *next_out, *next_in; /* of each arc */
    uint32_t *place;
    uint32_t *ahead, *behind; /* nodes that were reached */
    uint32_t ahead_count, behind_count;
    bool *reached;
    struct sort_item *order; /* 2 · nodes */
    uint32_t steps;
};

/* Nodes from v on along the arcs taken, with places up to most. False if it reaches the node at that place. The list is
 * its own queue. */
static bool break_go_ahead(struct break_work *w, uint32_t v, uint32_t most)
{
    w->ahead_count = 0;
    w->ahead[w->ahead_count++] = v;
    w->reached[v] = true;
    for (uint32_t i = 0; i < w->ahead_count; i++) {
        for (uint32_t arc = w->out[w->ahead[i]]; arc != NONE; arc = w->next_out[arc]) {
            uint32_t to = w->arcs[arc].to;
            w->steps++;
            if (w->place[to] == most) {
                return false;
            }
            if (!w->reached[to] && w->place[to] < most) {
                w->reached[to] = true;
                w->ahead[w->ahead_count++] = to;
            }
        }
    }
    return true;
}

/* Nodes from which u can be reached, with places from least on. */
static void break_go_behind(struct break_work *w, uint32_t u, uint32_t least)
{
    w->behind_count = 0;
    w->behind[w->behind_count++] = u;
    w->reached[u] = true;
    for (uint32_t i = 0; i < w->behind_count; i++) {
        for (uint32_t arc = w->in [w->behind[i]]; arc != NONE; arc = w->next_in[arc]) {
            uint32_t from = w->arcs[arc].from;
            w->steps++;
            if (!w->reached[from] && w->place[from] > least) {
                w->reached[from] = true;
                w->behind[w->behind_count++] = from;
            }
        }
    }
}

static void break_sort(struct break_work *w, uint32_t *nodes, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        w->order[i] = (struct sort_item){w->place[nodes[i]], nodes[i]};
    }
    sort_radix(w->order, w->order + w->nodes, n);
    for (uint32_t i = 0; i < n; i++) {
        nodes[i] = w->order[i].value;
    }
}

/* The places of all nodes reached go to those behind first, then to those ahead. */
static void break_move(struct break_work *w)
{
    uint32_t n = 0;
    break_sort(w, w->behind, w->behind_count);
    break_sort(w, w->ahead, w->ahead_count);
    for (uint32_t i = 0; i < w->behind_count; i++) {
        w->order[n++] = (struct sort_item){w->place[w->behind[i]], 0};
    }
    for (uint32_t i = 0; i < w->ahead_count; i++) {
        w->order[n++] = (struct sort_item){w->place[w->ahead[i]], 0};
    }
    sort_radix(w->order, w->order + w->nodes, n);
    for (uint32_t i = 0; i < w->behind_count; i++) {
        w->place[w->behind[i]] = (uint32_t)w->order[i].key;
    }
    for (uint32_t i = 0; i < w->ahead_count; i++) {
        w->place[w->ahead[i]] = (uint32_t)w->order[w->behind_count + i].key;
    }
}

/* Takes the arc, unless it closes a cycle. */
static void break_take(struct break_work *w, uint32_t number)
{
    struct cycle_arc *arc = &w->arcs[number];
    bool free = true;
    if (w->place[arc->from] > w->place[arc->to] && w->steps > STEPS_MOST) {
        free = false;
    } else if (w->place[arc->from] > w->place[arc->to]) {
        free = break_go_ahead(w, arc->to, w->place[arc->from]);
        if (free) {
            break_go_behind(w, arc->from, w->place[arc->to]);
            break_move(w);
        }
        for (uint32_t i = 0; i < w->ahead_count; i++) {
            w->reached[w->ahead[i]] = false;
        }
        for (uint32_t i = 0; i < w->behind_count; i++) {
            w->reached[w->behind[i]] = false;
        }
        w->ahead_count = w->behind_count = 0;
    }
    arc->breaks = !free;
    if (free) {
        w->next_out[number] = w->out[arc->from];
        w->next_in[number] = w->in[arc->to];
        w->out[arc->from] = w->in[arc->to] = number;
    }
}

void cycle_break(struct arena *a, uint32_t nodes, struct cycle_arc *arcs, uint32_t count)
{
    struct break_work w = {.arcs = arcs, .nodes = nodes};
    struct sort_item *by_calls = ARENA_ARRAY(a, (size_t)count * 2, struct sort_item);
    w.out = ARENA_ARRAY(a, w.nodes, uint32_t);
    w.in = ARENA_ARRAY(a, w.nodes, uint32_t);
    w.next_out = ARENA_ARRAY(a, count, uint32_t);
    w.next_in = ARENA_ARRAY(a, count, uint32_t);
    w.place = ARENA_ARRAY(a, w.nodes, uint32_t);
    w.ahead = ARENA_ARRAY(a, w.nodes, uint32_t);
    w.behind = ARENA_ARRAY(a, w.nodes, uint32_t);
    w.reached = ARENA_ARRAY(a, w.nodes, bool);
    w.order = ARENA_ARRAY(a, (size_t)w.nodes * 2, struct sort_item);
    for (uint32_t i = 0; i < w.nodes; i++) {
        w.out[i] = w.in[i] = NONE;
        w.place[i] = i;
    }
    for (uint32_t i = 0; i < count; i++) {
        by_calls[i] = (struct sort_item){~arcs[i].calls, i};
    }
    sort_radix(by_calls, by_calls + count, count);
    for (uint32_t i = 0; i < count; i++) {
        const struct cycle_arc *arc = &arcs[by_calls[i].value];
        if (arc->from != arc->to) {
            break_take(&w, by_calls[i].value);
        }
    }
}
