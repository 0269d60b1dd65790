/* Parses callgrind.out ("Callgrind Format Specification" of Valgrind's manual), line by line. Pure. Call counts are
 * exact. Frames are functions, or instructions if the file was made with --dump-instr=yes. The cost of one event
 * becomes ticks: "instructions" for Ir, "seconds" for times (ns, us, ms, s), otherwise a dimension with the name of the
 * event. */
#ifndef PROFD_CLIENT_IMPORT_CALLGRIND_H
#define PROFD_CLIENT_IMPORT_CALLGRIND_H

#include "import/import_profile.h"

struct import_callgrind;

/* Creates a parser in the arena. event is the event to import; NULL: the first one. NO_MEMORY. */
enum profd_status import_callgrind_new(struct arena *a, const char *event, struct import_callgrind **out,
                                       struct profd_error *e);

/* Parses one line of n bytes without its end. number is its number from 1, for the sentence. MALFORMED: not of the
 * format, a number above 64 bits, or a cost before "events:" or "fn=". REFUSED: a version other than 1, no such event,
 * or parts with different events. LIMIT, NO_MEMORY. Expected O(n). */
enum profd_status import_callgrind_line(struct import_callgrind *c, const char *line, size_t n, uint64_t number,
                                        struct profd_error *e);

/* Ends parsing. The profile lives as long as the arena. Functions without an object or a name that only call one other
 * function (slots of a PLT that callgrind did not recognize) are merged with their callers. MALFORMED: there was no
 * "events:". O(frames + pairs). */
enum profd_status import_callgrind_finish(struct import_callgrind *c, struct import_profile **out,
                                          struct profd_error *e);

#endif
