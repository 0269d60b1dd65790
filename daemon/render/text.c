/* format=text: the true-mode tables for people, in the layout that users of gprof know. */
#include "render/formats.h"
#include "render/text_internal.h"

enum profd_status text_render(const struct render_input *in, struct arena *a, struct buffer *out, struct profd_error *e)
{
    struct selection shown, flat_shown;
    struct name_list names;
    struct render_input flat = *in; /* limit cuts the flat profile by its own order, and the graph by the index */
    flat.show.sort = in->show.sort == RENDER_SORT_INDEX ? RENDER_SORT_SELF : in->show.sort;
    enum profd_status status = selection_make(in, a, &shown, e);
    if (status == PROFD_OK) {
        status = selection_make(&flat, a, &flat_shown, e);
    }
    if (status == PROFD_OK) {
        status = name_list_make(in->report, in->show.short_names, a, &names, e);
    }
    if (status != PROFD_OK) {
        return status;
    }
    struct text_parts t = {in, &shown, &flat_shown, &names, a, out};
    text_add_heading(&t);
    if (in->provenance->uploads == 0) {
        return PROFD_OK;
    }
    if (in->show.view != RENDER_VIEW_GRAPH) {
        status = text_add_flat(&t, e);
    }
    if (status == PROFD_OK && in->show.view != RENDER_VIEW_FLAT) {
        status = text_add_graph(&t, e);
    }
    return status;
}
