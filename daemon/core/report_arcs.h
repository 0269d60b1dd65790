/* Arcs between addresses become arcs between owners: of the window, of all time, of the machine code. */
#ifndef PROFD_CORE_REPORT_ARCS_H
#define PROFD_CORE_REPORT_ARCS_H

#include <stdint.h>

#include "core/arena.h"
#include "core/callgraph.h"
#include "core/report.h"
#include "core/report_builds.h"
#include "proto/status.h"

#define REPORT_SEEN 1u  /* an end of some arc */
#define REPORT_ENTRY 2u /* has samples, or calls in or out, in the window */

struct report_arcs {
    struct callgraph_arc *rows; /* ends are owners as report_builds numbers them; pairs may repeat */
    uint32_t count, capacity;
    uint8_t *seen; /* of each owner; samples must have been marked before */
};

/* A call into a PLT slot goes to the function of that name where the report knows it. Static arcs: all of them if the
 * request wants them in the graph, else those with an entry at one end. O(arcs) expected, with a search where addresses
 * jump. */
enum profd_status report_arcs_collect(struct arena *a, const struct report_request *request,
                                      const struct report_builds *b, struct report_arcs *out, struct profd_error *e);

#endif
