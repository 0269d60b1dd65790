/* format=gprof: what `gprof -b EXE gmon.out…` prints on the same counts. */
#include <inttypes.h>

#include "compat/compat.h"
#include "render/formats.h"

enum profd_status gprof_render(const struct render_input *in, struct arena *a, struct buffer *out,
                               struct profd_error *e)
{
    struct compat_options options = {
        .brief = true,
        .no_flat = in->show.view == RENDER_VIEW_GRAPH,
        .no_graph = in->show.view == RENDER_VIEW_FLAT,
    };
    enum profd_status status = compat_print(&options, in->object, in->counts, a, out, e);
    if (status == PROFD_OK && in->object->unsure_count > 0) {
        buffer_add_format(out,
                          "\nNote: gprof may leave out %" PRIu32
                          " of these functions, local ones with names that end in digits. What decides was "
                          "not kept when this executable was stored. To store it again: profctl symbols FILE\n",
                          in->object->unsure_count);
    }
    return status;
}
