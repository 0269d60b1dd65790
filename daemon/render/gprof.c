/* format=gprof: what `gprof -b EXE gmon.out…` prints on the same counts. */
#include "compat/compat.h"
#include "render/render_internal.h"

enum profd_status gprof_render(const struct render_input *in, struct arena *a, struct buffer *out,
                               struct profd_error *e)
{
    struct compat_options options = {
        .brief = true,
        .no_flat = in->show.view == RENDER_VIEW_GRAPH,
        .no_graph = in->show.view == RENDER_VIEW_FLAT,
    };
    return compat_print(&options, in->object, in->counts, a, out, e);
}
