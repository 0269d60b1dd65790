/* Parses profile.proto of github.com/google/pprof, inflated. Pure. The leaf of each sample gets its ticks. Each
 * adjacent pair of its stack gets as many sampled calls as there were samples; calls in exports of profd are exact.
 * Inlined lines of a location belong to the function at its address. */
#ifndef PROFD_CLIENT_IMPORT_PPROF_H
#define PROFD_CLIENT_IMPORT_PPROF_H

#include "import/import_profile.h"

/* Parses the profile into the arena. event is the sample type that becomes ticks; NULL: CPU time, otherwise samples and
 * their period, otherwise the default type. MALFORMED, with the offset of the byte: not protobuf, or a reference to a
 * message that does not exist. REFUSED: no samples, no such type, negative values (a difference of profiles), or no
 * location with an address (symbolized or generated code cannot be assigned to a build). LIMIT, NO_MEMORY. Expected
 * O(n). */
enum profd_status import_pprof_parse(const uint8_t *in, size_t n, const char *event, struct arena *a,
                                     struct import_profile **out, struct profd_error *e);

#endif
