/* The list of functions that were never called, as JSON. */
#ifndef PROFD_RENDER_RENDER_NEVER_H
#define PROFD_RENDER_RENDER_NEVER_H

#include <stddef.h>

#include "core/buffer.h"
#include "core/never_called.h"
#include "render/render.h"

void render_never(const struct render_input *in, const struct never_called *never, size_t limit, struct buffer *out);

#endif
