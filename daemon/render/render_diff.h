/* A comparison as JSON. */
#ifndef PROFD_RENDER_RENDER_DIFF_H
#define PROFD_RENDER_RENDER_DIFF_H

#include <stddef.h>

#include "core/buffer.h"
#include "core/diff.h"
#include "render/render.h"

struct render_diff {
    const struct diff *diff;
    const struct diff_request *request;
    size_t limit;                 /* rows of each list */
    struct render_input sides[2]; /* the report, coverage and choices are not looked at */
};

void render_diff(const struct render_diff *in, struct buffer *out);

#endif
