/* Arcs between addresses become arcs between owners: of the window, of all time, of the machine code. */
#ifndef PROFD_CORE_REPORT_ARCS_H
#define PROFD_CORE_REPORT_ARCS_H

#include <stdbool.h>
#include <stdint.h>

#include "core/arena.h"
#include "core/callgraph.h"
#include "core/report.h"
#include "core/report_builds.h"
#include "core/report_imports.h"
#include "proto/status.h"

#define REPORT_SEEN 1u  /* an end of some arc */
#define REPORT_ENTRY 2u /* has samples, or calls in or out, in the window */

struct report_arcs {
    struct callgraph_arc *rows; /* ends are owners as report_builds numbers them; pairs may repeat */
    uint32_t count, capacity;
    uint8_t *seen;   /* of each owner; zero before */
    uint64_t *calls; /* likewise: calls into it in the window, its own included; at most 2^63-1 */
};

/* A call into a PLT slot goes to the function of that name where the report knows it. A call of a function that was
 * entered by a jump goes out from the function that jumped, where the call instruction names that. The arcs of the
 * machine code are added only if the request asks for them, without those of run-time support (core/runtime_names.h).
 * O(arcs) expected, with a search where addresses jump. */
void report_arcs_collect(struct arena *a, const struct report_request *request, const struct report_builds *b,
                         struct report_imports *imports, struct report_arcs *out);

/* Ensures capacity for n more rows. Amortized O(n). */
void report_arcs_reserve(struct arena *a, struct report_arcs *out, uint32_t n);

#endif
