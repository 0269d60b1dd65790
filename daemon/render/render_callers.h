/* The callers of a function, as JSON. */
#ifndef PROFD_RENDER_RENDER_CALLERS_H
#define PROFD_RENDER_RENDER_CALLERS_H

#include <stddef.h>

#include "core/buffer.h"
#include "core/callers.h"
#include "render/render.h"

/* limit: of rows. */
void render_callers(const struct render_input *in, const struct callers *c, size_t limit, struct buffer *out);

#endif
