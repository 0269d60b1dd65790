/* Cycles with the arcs inside them, as JSON. */
#ifndef PROFD_RENDER_RENDER_CYCLES_H
#define PROFD_RENDER_RENDER_CYCLES_H

#include <stddef.h>
#include <stdint.h>

#include "core/buffer.h"
#include "core/cycle_break.h"
#include "render/render.h"

/* arcs: by calls, the most first; their ends are places in cycle->members. */
struct render_cycle {
    const struct report_cycle *cycle;
    const struct cycle_arc *arcs;
    uint32_t arc_count;
};

/* cycles: of in->report, count of them. limit: of members, of arcs, and of arcs that break a cycle. */
void render_cycles(const struct render_input *in, const struct render_cycle *cycles, uint32_t count, size_t limit,
                   struct buffer *out);

#endif
