#include "compat/compat.h"

#include "compat/compat_callgraph.h"
#include "compat/compat_flat.h"
#include "compat/compat_index.h"
#include "compat/compat_run.h"

static enum profd_status run_compute(struct compat_run *r, const struct object *object, const struct counts *counts,
                                     struct arena *a, struct profd_error *e)
{
    enum profd_status status = compat_symbols_choose(object, a, &r->symbols, e);
    if (status == PROFD_OK)
        status = compat_filter_init(&r->symbols, a, &r->filter, e);
    if (status == PROFD_OK)
        status = compat_hist_assign(counts, &r->symbols, &r->filter, a, &r->hist, e);
    if (status == PROFD_OK)
        status = compat_arcs_tally(counts, &r->symbols, a, &r->arcs, e);
    if (status == PROFD_OK)
        status = compat_cycles_find(&r->arcs, r->symbols.count, a, &r->cycles, e);
    if (status == PROFD_OK)
        status = compat_graph_build(&r->symbols, &r->filter, &r->hist, &r->arcs, &r->cycles, a, &r->graph, e);
    return status;
}

enum profd_status compat_print(const struct compat_options *options, const struct object *object,
                               const struct counts *counts, struct arena *a, struct buffer *out, struct profd_error *e)
{
    if (!options->brief)
        return profd_error_set(e, PROFD_REFUSED, "gprof's listing is printed without its explanations only (option brief)");
    bool flat = counts->histogram_count > 0 && !options->no_flat;
    bool graph = counts->arc_count > 0 && !options->no_graph;
    size_t before = out->size;
    struct compat_run r = {.options = *options};
    enum profd_status status = run_compute(&r, object, counts, a, e);
    if (status == PROFD_OK && flat)
        status = compat_flat_print(&r, a, out, e);
    if (status == PROFD_OK && graph) {
        if (flat)
            buffer_add_text(out, "\f\n");
        status = compat_callgraph_print(&r, a, out, e);
    }
    if (status == PROFD_OK && graph) {
        buffer_add_text(out, "\f\n");
        status = compat_index_print(&r, a, out, e);
    }
    if (status == PROFD_OK && out->failed)
        status = profd_error_set(e, PROFD_TOO_LARGE, "the listing does not fit into %zu bytes", out->limit);
    if (status != PROFD_OK)
        out->size = before;
    return status;
}
