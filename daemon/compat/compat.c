#include "compat/compat.h"

#include "compat/compat_callgraph.h"
#include "compat/compat_executions.h"
#include "compat/compat_flat.h"
#include "compat/compat_index.h"
#include "compat/compat_prose.h"
#include "compat/compat_run.h"

enum profd_status compat_run_open(struct compat_run *r, const struct compat_options *options,
                                  const struct object *object, struct arena *a, struct profd_error *e)
{
    struct compat_run run = {.options = *options, .object = object};
    enum profd_status status = compat_symbols_choose(object, options, a, &run.symbols, e);
    if (status == PROFD_OK) {
        status = compat_filter_init(options->specs, options->spec_count, &run.symbols, a, &run.filter, e);
    }
    if (status == PROFD_OK) {
        status = compat_symbols_name(&run.symbols, options, a, e);
    }
    if (status == PROFD_OK) {
        *r = run;
    }
    return status;
}

enum profd_status compat_run_count(struct compat_run *r, const struct counts *counts, struct arena *a,
                                   struct profd_error *e)
{
    struct compat_calls calls = {0};
    r->has_histogram = r->has_histogram || counts->histogram_count > 0;
    r->has_arcs = r->has_arcs || counts->arc_count > 0;
    enum profd_status status = compat_hist_assign(counts, &r->symbols, &r->filter, a, &r->hist, e);
    if (status == PROFD_OK && r->options.static_calls && r->has_arcs) {
        status = compat_calls_find(r->object, &r->symbols, &r->hist, a, &calls, e);
    }
    if (status == PROFD_OK) {
        status = compat_arcs_tally(counts, &r->symbols, &r->filter, &calls, a, &r->arcs, e);
    }
    if (status == PROFD_OK) {
        status = compat_cycles_find(&r->arcs, r->symbols.count, a, &r->cycles, e);
    }
    if (status == PROFD_OK) {
        status = compat_graph_build(&r->symbols, &r->filter, &r->hist, &r->arcs, &r->cycles, a, &r->graph, e);
    }
    return status;
}

/* The styles to print. If none was requested, the counts decide. */
static unsigned styles_choose(const struct compat_run *r)
{
    const struct compat_options *o = &r->options;
    if (o->styles != 0) {
        return o->styles;
    }
    unsigned styles = r->has_histogram || r->has_arcs ? 0 : COMPAT_STYLE_COUNTS;
    styles |= r->has_histogram ? COMPAT_STYLE_FLAT : 0;
    styles |= r->has_arcs ? COMPAT_STYLE_GRAPH : 0;
    styles &= ~((o->no_flat ? COMPAT_STYLE_FLAT : 0) | (o->no_graph ? COMPAT_STYLE_GRAPH : 0) |
                (o->no_counts ? COMPAT_STYLE_COUNTS : 0));
    return styles;
}

typedef enum profd_status print_part(const struct compat_run *r, struct arena *a, struct buffer *out,
                                     struct profd_error *e);

enum profd_status compat_run_print(const struct compat_run *r, struct arena *a, struct buffer *out,
                                   struct profd_error *e)
{
    unsigned styles = styles_choose(r);
    if ((styles & COMPAT_STYLE_FLAT) != 0 && !r->has_histogram) {
        return profd_error_set(e, PROFD_REFUSED, "gmon.out file is missing histogram");
    }
    if ((styles & COMPAT_STYLE_GRAPH) != 0 && !r->has_arcs) {
        return profd_error_set(e, PROFD_REFUSED, "gmon.out file is missing call-graph data");
    }
    bool old = r->options.traditional;
    const struct {
        unsigned style;
        print_part *print;
    } parts[] = {{old ? COMPAT_STYLE_GRAPH : 0, compat_callgraph_print},
                 {COMPAT_STYLE_FLAT, compat_flat_print},
                 {old ? 0 : COMPAT_STYLE_GRAPH, compat_callgraph_print},
                 {COMPAT_STYLE_GRAPH, compat_index_print},
                 {COMPAT_STYLE_COUNTS, compat_executions_print}};
    size_t before = out->size;
    uint64_t drained = out->drained;
    bool follows = r->options.follows;
    enum profd_status status = PROFD_OK;
    for (unsigned i = 0; i < sizeof parts / sizeof *parts && status == PROFD_OK; i++) {
        if ((styles & parts[i].style) == 0) {
            continue;
        }
        if (old && !r->options.brief && parts[i].print == compat_callgraph_print) {
            compat_prose_graph_old(out);
        }
        if (follows) {
            buffer_add_text(out, "\f\n");
        }
        follows = true;
        status = parts[i].print(r, a, out, e);
    }
    if (status == PROFD_OK && out->failed && out->drain == NULL) {
        status = profd_error_set(e, PROFD_TOO_LARGE, "the listing does not fit into %zu bytes", out->limit);
    }
    if (status != PROFD_OK && out->drained == drained) {
        out->size = before;
    }
    return status;
}

enum profd_status compat_print(const struct compat_options *options, const struct object *object,
                               const struct counts *counts, struct arena *a, struct buffer *out, struct profd_error *e)
{
    struct compat_run r;
    enum profd_status status = compat_run_open(&r, options, object, a, e);
    if (status == PROFD_OK) {
        status = compat_run_count(&r, counts, a, e);
    }
    return status == PROFD_OK ? compat_run_print(&r, a, out, e) : status;
}
