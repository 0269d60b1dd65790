/* profile.proto of github.com/google/pprof, inflated. Pure. The leaf of each sample has its ticks, each adjacent pair
 * of its stack as many calls as there were samples, which are sampled; but calls of profd's own exports, which are
 * exact. Inlined lines of a location are parts of the function that is at its address. */
#ifndef PROFD_CLIENT_IMPORT_PPROF_H
#define PROFD_CLIENT_IMPORT_PPROF_H

#include "import/import_profile.h"

/* Parses the whole profile into the arena. The values of the sample type event become ticks; NULL: CPU time, else
 * samples and their period, else the default type. MALFORMED, with the byte's offset: not protobuf, or a reference to a
 * message that does not exist. REFUSED: no samples, no such type, negative values (a difference of profiles), or no
 * location with an address (symbolized or generated code cannot be assigned to a build). LIMIT, NO_MEMORY. Expected
 * O(n). */
enum profd_status import_pprof_parse(const uint8_t *in, size_t n, const char *event, struct arena *a,
                                     struct import_profile **out, struct profd_error *e);

#endif
