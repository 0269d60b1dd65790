/* The functions of the formats (proto/report_format.h): one file each. Contract: struct render_format. gprof_render
 * needs in->object and in->counts (one build), and view drops the flat profile or the graph. Formats of other tools say
 * "synthetic" in the payload of what is derived and not observed. */
#ifndef PROFD_RENDER_FORMATS_H
#define PROFD_RENDER_FORMATS_H

#include "core/arena.h"
#include "core/buffer.h"
#include "proto/report_format.h"
#include "proto/status.h"
#include "render/render.h"

#define PROTOTYPE(name, word, content_type, wants_report, lists_rows, functions)                                       \
    enum profd_status name##_render(const struct render_input *in, struct arena *a, struct buffer *out,                \
                                    struct profd_error *e);
REPORT_FORMATS(PROTOTYPE)
#undef PROTOTYPE

#endif
