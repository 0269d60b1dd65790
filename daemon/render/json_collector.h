/* What collectors know beside ticks and calls, as JSON. Internal to render. */
#ifndef PROFD_RENDER_JSON_COLLECTOR_H
#define PROFD_RENDER_JSON_COLLECTOR_H

#include "core/buffer.h"
#include "render/render.h"

/* Appends `,"collector":{…}`: every counter by its name, and the values derived from them; nothing if there are none.
 */
void json_add_collector(struct buffer *out, const struct render_input *in);

#endif
