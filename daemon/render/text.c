/* format=text: the true-mode tables for people, in the layout that users of gprof know. */
#include "proto/message.h"
#include "render/formats.h"
#include "render/text_parts.h"

int text_width_count(uint64_t value)
{
    int digits = 1;
    while (value >= 10) {
        value /= 10;
        digits++;
    }
    return digits;
}

int text_width_seconds(double value)
{
    struct buffer b;
    buffer_init(&b, 512);
    buffer_add_fixed(&b, value, 0, 2);
    int width = (int)b.size;
    buffer_done(&b);
    return width;
}

const char *text_calls_mark(const struct render_input *in)
{
    return (in->provenance->inexact & INEXACT_SAMPLED) != 0 ? "~" : "";
}

enum profd_status text_render_report(const struct render_input *in, struct arena *a, struct buffer *out,
                                     struct profd_error *e)
{
    struct selection shown;
    struct name_list names;
    enum profd_status status = selection_make(in, a, &shown, e);
    if (status == PROFD_OK) {
        status = name_list_make(in->report, a, &names, e);
    }
    if (status != PROFD_OK) {
        return status;
    }
    struct text_parts t = {in, &shown, &names, a, out};
    text_add_heading(&t);
    if (in->view != RENDER_VIEW_GRAPH) {
        status = text_add_flat(&t, e);
    }
    if (status == PROFD_OK && in->view != RENDER_VIEW_FLAT) {
        status = text_add_graph(&t, e);
    }
    return status;
}
