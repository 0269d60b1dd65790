/* format=symbol-order: names of functions, one a line, in the order in which they should lie (core/cluster.h), for
 * --symbol-ordering-file of ld.lld. Comments begin with '#'. Functions with samples but without counted calls come
 * last. */
#include "core/cluster.h"
#include "render/formats.h"
#include "render/linker.h"

/* The arcs between functions of the list. */
static void collect_arcs(const struct report *r, const struct linker_list *list, struct arena *a,
                         struct cluster_arc **out, uint32_t *count)
{
    size_t most = 1;
    for (uint32_t i = 0; i < list->count; i++) {
        most += r->functions[list->functions[i]].callee_count;
    }
    struct cluster_arc *arcs = most <= UINT32_MAX ? ARENA_ARRAY(a, most, struct cluster_arc) : arena_fail(a);
    uint32_t n = 0;
    for (uint32_t i = 0; i < list->count; i++) {
        const struct report_function *f = &r->functions[list->functions[i]];
        for (uint32_t k = 0; k < f->callee_count; k++) {
            const uint32_t to = list->numbers[f->callees[k].other];
            if (to != LINKER_LEFT_OUT) {
                arcs[n++] = (struct cluster_arc){i, to, f->callees[k].calls};
            }
        }
    }
    *out = arcs;
    *count = n;
}

enum profd_status symbol_order_render(const struct render_input *in, struct arena *a, struct buffer *out,
                                      struct profd_error *e)
{
    const struct report *r = in->report;
    struct linker_list list;
    struct cluster_arc *arcs = NULL;
    uint32_t arc_count = 0;
    TRY(linker_list_make(in, "symbol-order", a, &list, e));
    collect_arcs(r, &list, a, &arcs, &arc_count);
    struct cluster_node *nodes = ARENA_ARRAY(a, (size_t)list.count + 1, struct cluster_node);
    uint32_t *order = ARENA_ARRAY(a, (size_t)list.count + 1, uint32_t);
    for (uint32_t i = 0; i < list.count; i++) {
        const struct report_function *f = &r->functions[list.functions[i]];
        nodes[i] = (struct cluster_node){f->size, linker_calls(f)};
    }
    cluster_order(a, nodes, list.count, arcs, arc_count, order);
    linker_add_heading(out, in, &list, "Symbol order (C3) for ld.lld --symbol-ordering-file", a);
    for (uint32_t i = 0; i < list.count && !out->failed; i++) {
        buffer_add_text(out, r->functions[list.functions[order[i]]].raw);
        buffer_add_char(out, '\n');
    }
    return PROFD_OK;
}
