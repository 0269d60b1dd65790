/* format=lld-callgraph: "FROM TO CALLS" a line, for --call-graph-ordering-file of ld.lld, which orders the sections of
 * functions by it. Comments begin with '#'. */
#include "render/formats.h"
#include "render/linker.h"

enum profd_status lld_callgraph_render(const struct render_input *in, struct arena *a, struct buffer *out,
                                       struct profd_error *e)
{
    const struct report *r = in->report;
    struct linker_list list;
    enum profd_status status = linker_list_make(in, "lld-callgraph", a, &list, e);
    if (status != PROFD_OK) {
        return status;
    }
    linker_add_heading(out, in, &list, "Call graph for ld.lld --call-graph-ordering-file", a);
    for (uint32_t i = 0; i < list.count && !out->failed; i++) {
        const struct report_function *f = &r->functions[list.functions[i]];
        for (uint32_t k = 0; k < f->callee_count; k++) {
            const struct report_arc *arc = &f->callees[k];
            if (arc->calls == 0 || list.numbers[arc->other] == LINKER_LEFT_OUT) {
                continue;
            }
            buffer_add_text(out, f->raw);
            buffer_add_char(out, ' ');
            buffer_add_text(out, r->functions[arc->other].raw);
            buffer_add_char(out, ' ');
            buffer_add_u64(out, arc->calls, 0);
            buffer_add_char(out, '\n');
        }
    }
    return PROFD_OK;
}
