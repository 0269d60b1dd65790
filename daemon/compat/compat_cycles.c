#include "compat/compat_cycles.h"

/* Follows the newest arc of a symbol first. stack is the path of the walk. heads are the symbols on the path that are
 * not part of a cycle's list yet, in the same order. Each head starts a list of members, linked by next. */
struct walk {
    const struct compat_arcs *arcs;
    uint32_t *entered; /* rank of the visit; 0: not visited */
    uint32_t *cursor;  /* place after the next arc */
    uint32_t *next, *tail;
    uint32_t *top;  /* rank of the component, callees first; 0: not finished */
    uint32_t *lead; /* head of the finished component */
    uint32_t *stack, *heads;
    uint32_t depth, head_count, visits, components;
};

static void walk_enter(struct walk *w, uint32_t v)
{
    w->entered[v] = ++w->visits;
    w->cursor[v] = w->arcs->child_first[v + 1];
    w->next[v] = COMPAT_NONE;
    w->tail[v] = v;
    w->stack[w->depth++] = v;
    w->heads[w->head_count++] = v;
}

/* An arc leads back to v: appends all heads above v's head to its list, in the order of the path. */
static void walk_collapse(struct walk *w, uint32_t v)
{
    uint32_t keep = w->head_count - 1;
    while (w->entered[w->heads[keep]] > w->entered[v]) {
        keep--;
    }
    uint32_t head = w->heads[keep];
    for (uint32_t i = keep + 1; i < w->head_count; i++) {
        w->next[w->tail[head]] = w->heads[i];
        w->tail[head] = w->tail[w->heads[i]];
    }
    w->head_count = keep + 1;
}

static void walk_leave(struct walk *w, uint32_t v)
{
    w->depth--;
    if (w->heads[w->head_count - 1] != v) {
        return;
    }
    w->head_count--;
    w->components++;
    for (uint32_t m = v; m != COMPAT_NONE; m = w->next[m]) {
        w->top[m] = w->components;
        w->lead[m] = v;
    }
}

static void walk_from(struct walk *w, uint32_t root)
{
    walk_enter(w, root);
    while (w->depth > 0) {
        uint32_t v = w->stack[w->depth - 1];
        if (w->cursor[v] == w->arcs->child_first[v]) {
            walk_leave(w, v);
            continue;
        }
        uint32_t child = w->arcs->child[--w->cursor[v]];
        if (w->entered[child] == 0) {
            walk_enter(w, child);
        } else if (w->top[child] == 0) {
            walk_collapse(w, child);
        }
    }
}

/* Lists all symbols by component, inside a component in table order; place has one slot more than there are components.
 */
static void order_fill(const struct walk *w, uint32_t symbols, uint32_t *place, uint32_t *order)
{
    for (uint32_t i = 0; i <= w->components; i++) {
        place[i] = 0;
    }
    for (uint32_t v = 0; v < symbols; v++) {
        place[w->top[v]]++;
    }
    for (uint32_t i = 1; i <= w->components; i++) {
        place[i] += place[i - 1];
    }
    for (uint32_t v = symbols; v-- > 0;) {
        order[--place[w->top[v]]] = v;
    }
}

enum profd_status compat_cycles_find(const struct compat_arcs *arcs, uint32_t symbols, struct arena *a,
                                     struct compat_cycles *out, struct profd_error *e)
{
    struct walk w = {.arcs = arcs};
    struct compat_cycles r = {0};
    size_t n = (size_t)symbols + 1;
    uint32_t **const arrays[] = {&w.entered, &w.cursor, &w.next,   &w.tail,         &w.top,     &w.lead,
                                 &w.stack,   &w.heads,  &r.number, &r.member_first, &r.members, &r.order};
    for (unsigned i = 0; i < sizeof arrays / sizeof *arrays; i++) {
        *arrays[i] = ARENA_ARRAY(a, n, uint32_t);
        if (*arrays[i] == NULL) {
            return profd_error_set(e, PROFD_NO_MEMORY, "no memory for the cycles of %u symbols", symbols);
        }
    }
    for (uint32_t v = 0; v < symbols; v++) {
        if (w.entered[v] == 0) {
            walk_from(&w, v);
        }
    }
    /* Numbers the cycles in the table order of their heads, and lists their members. */
    uint32_t at = 0;
    for (uint32_t v = 0; v < symbols; v++) {
        if (w.lead[v] != v || w.next[v] == COMPAT_NONE) {
            continue;
        }
        r.member_first[r.count++] = at;
        for (uint32_t m = v; m != COMPAT_NONE; m = w.next[m]) {
            r.members[at++] = m;
            r.number[m] = r.count;
        }
    }
    r.member_first[r.count] = at;
    order_fill(&w, symbols, w.stack, r.order);
    *out = r;
    return PROFD_OK;
}
