/* The table of formats. */
#include <string.h>

#include "render/render_internal.h"

#define ROW(name, word, content_type, wants_report, lists_rows, functions)                                             \
    {word, content_type, wants_report, lists_rows, functions, name##_render},
#define NAME(name, word, content_type, wants_report, lists_rows, functions) ", " word

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

enum profd_status render_report(const struct render_format *f, const struct render_input *in, struct arena *a,
                                struct buffer *out, struct profd_error *e)
{
    struct render_input shown = *in;
    if (in->report && f->render != json_render && f->render != csv_render) {
        shown.report = in->report->shown;
    }
    return f->render(&shown, a, out, e);
}

const char *render_names(void)
{
    return &(REPORT_FORMATS(NAME))[2]; /* behind the first comma and blank */
}
