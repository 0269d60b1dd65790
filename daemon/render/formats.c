#include "render/render.h"

#include <string.h>

#include "render/formats.h"

/* A further format is a file and a line here. */
static const struct render_format FORMATS[] = {
    {"json", "application/json", true, json_render_report},
    {"text", "text/plain; charset=utf-8", true, text_render_report},
    {"gprof", "text/plain; charset=utf-8", false, gprof_render_listing},
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
    return "json, text, gprof";
}
