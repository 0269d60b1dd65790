/* format=text: the true-mode tables for people, in the layout that users of gprof know. */
#include <inttypes.h>

#include "render/formats.h"
#include "render/text_internal.h"

/* The functions of the line "Not called", cut by focus and limit as in JSON. */
static void add_not_called(const struct render_input *in, struct arena *a, struct buffer *out)
{
    struct report idle = *in->report;
    struct name_list names;
    uint32_t shown = 0, left = 0;
    idle.functions = idle.not_called;
    idle.function_count = idle.not_called_count;
    name_list_make(&idle, in->show.short_names, a, &names);
    if (in->report->counted_functions == 0) {
        buffer_add_text(out, "\nNot called: unknown, because no function counts its calls (gcc -pg)\n");
        return;
    }
    buffer_add_text(out, "\nNot called:\n\n");
    for (uint32_t i = 0; i < idle.function_count; i++) {
        if (in->show.focus != NULL && !render_has_focus(&idle.functions[i], in->show.focus)) {
            continue;
        }
        if (in->show.limit != 0 && shown == in->show.limit) {
            left++;
            continue;
        }
        shown++;
        buffer_add(out, names.text[i], names.length[i]);
        if (idle.build_count > 1) {
            buffer_add_text(out, "  in ");
            name_add_safe(out, name_find_base(idle.build_names[idle.functions[i].build]));
        }
        buffer_add_char(out, '\n');
    }
    if (left > 0) {
        buffer_add_format(out, "(%" PRIu32 " more)\n", left);
    }
}

enum profd_status text_render(const struct render_input *in, struct arena *a, struct buffer *out, struct profd_error *e)
{
    (void)e;
    struct selection shown, flat_shown;
    struct name_list names;
    struct render_input flat = *in; /* limit cuts the flat profile by its own order, and the graph by the index */
    flat.show.sort = in->show.sort == RENDER_SORT_INDEX ? RENDER_SORT_SELF : in->show.sort;
    selection_make(in, a, &shown);
    selection_make(&flat, a, &flat_shown);
    name_list_make(in->report, in->show.short_names, a, &names);
    struct text_parts t = {in, &shown, &flat_shown, &names, a, out};
    text_add_heading(&t);
    if (in->provenance->uploads == 0) {
        return PROFD_OK;
    }
    if (in->show.view == RENDER_VIEW_NOT_CALLED) {
        add_not_called(in, a, out);
        return PROFD_OK;
    }
    if (in->show.view != RENDER_VIEW_GRAPH) {
        text_add_flat(&t);
    }
    if (in->show.view != RENDER_VIEW_FLAT) {
        text_add_graph(&t);
    }
    return PROFD_OK;
}
