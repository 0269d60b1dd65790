/* callgrind.out, as callgrind and others write it ("Callgrind Format Specification" of Valgrind's manual): one line
 * after the other. Pure. Call counts are exact. Frames are functions; instructions where the file was made with
 * --dump-instr=yes. The cost of one event becomes ticks: "instructions" for Ir, "seconds" for times (ns, us, ms, s),
 * else a dimension of the event's name. */
#ifndef PROFD_CLIENT_IMPORT_CALLGRIND_H
#define PROFD_CLIENT_IMPORT_CALLGRIND_H

#include "import/import_profile.h"

struct import_callgrind;

/* A parser in the arena. event names the cost to take; NULL: the first one. NO_MEMORY. */
enum profd_status import_callgrind_new(struct arena *a, const char *event, struct import_callgrind **out,
                                       struct profd_error *e);

/* One line of n bytes without its end; number counts from 1 and stands in the sentence. MALFORMED: not of the format, a
 * number above 64 bits, a cost in front of "events:" or "fn="; REFUSED: a version that is not 1, no such event, parts
 * of different events; LIMIT, NO_MEMORY. Expected O(n). */
enum profd_status import_callgrind_line(struct import_callgrind *c, const char *line, size_t n, uint64_t number,
                                        struct profd_error *e);

/* The whole profile, which lives as long as the arena. Functions without an object or a name that do nothing but call
 * one other function (slots of a PLT that callgrind did not know) are joined with their callers. MALFORMED if there was
 * no "events:". O(frames + pairs). */
enum profd_status import_callgrind_finish(struct import_callgrind *c, struct import_profile **out,
                                          struct profd_error *e);

#endif
