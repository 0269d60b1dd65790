#include "render/render.h"

#include <string.h>

#include "render/formats.h"

/* A further format is a file and a line here. */
static const struct render_format FORMATS[] = {
    {"json", "application/json", true, 0, json_render_report},
    {"text", "text/plain; charset=utf-8", true, 0, text_render_report},
    {"gprof", "text/plain; charset=utf-8", false, 0, gprof_render_listing},
    {"pprof", "application/vnd.google.protobuf", true, 0, pprof_render_profile},
    {"callgrind", "text/plain; charset=utf-8", true, 0, callgrind_render_graph},
    {"folded", "text/plain; charset=utf-8", true, 0, folded_render_stacks},
    {"speedscope", "application/json", true, 0, speedscope_render_stacks},
    {"dot", "text/vnd.graphviz; charset=utf-8", true, 80, dot_render_graph},
    {"csv", "text/csv; charset=utf-8; header=present", true, 0, csv_render_functions},
    {"flamegraph", "application/json", true, 0, flamegraph_render_rows},
    {"nodegraph", "application/json", true, 200, nodegraph_render_frames},
};

const struct render_format *render_find(const char *name)
{
    for (size_t i = 0; i < sizeof FORMATS / sizeof *FORMATS; i++) {
        if (strcmp(FORMATS[i].name, name) == 0) {
            return &FORMATS[i];
        }
    }
    return NULL;
}

const char *render_names(void)
{
    return "json, text, gprof, pprof, callgrind, folded, speedscope, dot, csv, flamegraph, nodegraph";
}
