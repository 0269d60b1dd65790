#include "core/report_frames.h"

#include "proto/sort.h"
#include "core/sum.h"

#define NONE REPORT_STACKS_ROOT

struct frames_work {
    const struct report_stacks *s;
    struct report_frame *frames; /* in the order of the stacks */
    uint32_t *child, *next;      /* first child and next sibling; NONE */
};

static int frames_compare(const void *context, uint32_t x, uint32_t y)
{
    const struct frames_work *w = context;
    const struct report_frame *a = &w->frames[x], *b = &w->frames[y];
    if (a->parent != b->parent) {
        return a->parent < b->parent ? -1 : 1;
    }
    if (a->total > b->total || a->total < b->total) {
        return a->total > b->total ? -1 : 1;
    }
    if (a->function != b->function) {
        return a->function < b->function ? -1 : 1;
    }
    return (int)a->inferred - (int)b->inferred;
}

/* Ticks are added up before they become seconds, so that the order of nodes does not matter. below: scratch. */
static void frames_fill(const struct report_graph *g, struct frames_work *w, uint64_t *below)
{
    const struct report_stacks *s = w->s;
    bool saturated = false; /* the report says it */
    for (uint32_t i = 0; i < s->count; i++) {
        struct report_frame *f = &w->frames[i];
        f->parent = s->parent[i];
        f->function = g->position[g->node_of_owner[s->owner[i]]];
        f->depth = f->parent == NONE ? 0 : w->frames[f->parent].depth + 1;
        f->inferred = s->inferred[i] != 0;
    }
    for (uint32_t r = 0; r < s->rate_count; r++) {
        for (uint32_t i = 0; i < s->count; i++) {
            below[i] = s->rates[r].self[i];
            sum_add(&below[i], s->rates[r].folded[i], &saturated);
            sum_add(&w->frames[i].ticks, below[i], &saturated);
            w->frames[i].self += (double)below[i] / s->rates[r].rate;
        }
        for (uint32_t i = s->count; i-- > 0;) {
            w->frames[i].total += (double)below[i] / s->rates[r].rate;
            if (w->frames[i].parent != NONE) {
                sum_add(&below[w->frames[i].parent], below[i], &saturated);
            }
        }
    }
}

/* Links siblings in order. Returns the first root. */
static uint32_t frames_link(struct frames_work *w, uint32_t *order)
{
    uint32_t n = w->s->count, root = NONE;
    for (uint32_t i = 0; i < n; i++) {
        order[i] = i;
        w->child[i] = NONE;
    }
    sort_merge(order, order + n, n, frames_compare, w);
    for (uint32_t i = n; i-- > 0;) {
        uint32_t at = order[i], parent = w->frames[at].parent, *first = parent == NONE ? &root : &w->child[parent];
        w->next[at] = *first;
        *first = at;
    }
    return root;
}

/* Depth first: down, else right, else up and right. place: of each node in out. */
static void frames_list(const struct frames_work *w, uint32_t at, uint32_t *place, struct report_frame *out)
{
    uint32_t n = 0;
    while (at != NONE) {
        out[n] = w->frames[at];
        if (out[n].parent != NONE) {
            out[n].parent = place[out[n].parent];
        }
        place[at] = n++;
        if (w->child[at] != NONE) {
            at = w->child[at];
            continue;
        }
        while (at != NONE && w->next[at] == NONE) {
            at = w->frames[at].parent;
        }
        at = at == NONE ? NONE : w->next[at];
    }
}

void report_frames_make(struct arena *a, const struct report_graph *g, struct report *r)
{
    const struct report_stacks *s = &g->stacks;
    uint32_t n = s->count;
    if (g->measures == NULL) {
        return;
    }
    struct report_stack_facts *facts = ARENA_NEW(a, struct report_stack_facts);
    struct frames_work w = {.s = s,
                            .frames = ARENA_ARRAY(a, n, struct report_frame),
                            .child = ARENA_ARRAY(a, n, uint32_t),
                            .next = ARENA_ARRAY(a, n, uint32_t)};
    uint32_t *order = ARENA_ARRAY(a, (size_t)n * 2, uint32_t);
    struct report_frame *frames = ARENA_ARRAY(a, n, struct report_frame);
    uint64_t *below = ARENA_ARRAY(a, n, uint64_t);
    frames_fill(g, &w, below);
    frames_list(&w, frames_link(&w, order), order, frames);
    *facts = (struct report_stack_facts){.ticks = s->ticks,
                                         .coverage = g->coverage,
                                         .inferred = s->inferred_ticks,
                                         .cut = s->cut,
                                         .folded = s->folded,
                                         .incomplete = s->unknown,
                                         .by_groups = g->measures->by_groups,
                                         .groups = g->measures->groups,
                                         .overdispersion = g->measures->overdispersion,
                                         .frame_count = n,
                                         .frames = frames};
    r->stacks = facts;
    r->time_measured = g->time_measured;
}
