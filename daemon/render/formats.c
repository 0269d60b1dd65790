#include "render/formats.h"

#include <string.h>

#define ROW(name, content_type, wants_report, lists_rows, functions)                                                   \
    {#name, content_type, wants_report, lists_rows, functions, name##_render},
#define NAME(name, content_type, wants_report, lists_rows, functions) ", " #name

static const struct render_format FORMATS[] = {REPORT_FORMATS(ROW)};

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
    return &(REPORT_FORMATS(NAME))[2]; /* behind the first comma and blank */
}
