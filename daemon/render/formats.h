/* The formats' functions, for the table in render.c. Contract: struct render_format. */
#ifndef PROFD_RENDER_FORMATS_H
#define PROFD_RENDER_FORMATS_H

#include "core/arena.h"
#include "core/buffer.h"
#include "proto/status.h"
#include "render/render.h"

enum profd_status json_render_report(const struct render_input *in, struct arena *a, struct buffer *out,
                                     struct profd_error *e);
enum profd_status text_render_report(const struct render_input *in, struct arena *a, struct buffer *out,
                                     struct profd_error *e);
/* Needs in->object and in->counts (one build); view drops the flat profile or the graph. */
enum profd_status gprof_render_listing(const struct render_input *in, struct arena *a, struct buffer *out,
                                       struct profd_error *e);
/* Of other tools; what is derived and not observed says "synthetic" in the payload. */
enum profd_status pprof_render_profile(const struct render_input *in, struct arena *a, struct buffer *out,
                                       struct profd_error *e);
enum profd_status callgrind_render_graph(const struct render_input *in, struct arena *a, struct buffer *out,
                                         struct profd_error *e);
enum profd_status folded_render_stacks(const struct render_input *in, struct arena *a, struct buffer *out,
                                       struct profd_error *e);
enum profd_status speedscope_render_stacks(const struct render_input *in, struct arena *a, struct buffer *out,
                                           struct profd_error *e);
enum profd_status dot_render_graph(const struct render_input *in, struct arena *a, struct buffer *out,
                                   struct profd_error *e);
enum profd_status csv_render_functions(const struct render_input *in, struct arena *a, struct buffer *out,
                                       struct profd_error *e);
enum profd_status flamegraph_render_rows(const struct render_input *in, struct arena *a, struct buffer *out,
                                         struct profd_error *e);
enum profd_status nodegraph_render_frames(const struct render_input *in, struct arena *a, struct buffer *out,
                                          struct profd_error *e);

#endif
