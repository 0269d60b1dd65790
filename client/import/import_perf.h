/* Parses the text of perf script, line by line: its default output, with or without call chains, and every -F that
 * includes ip. Pure. The samples of one event become ticks, and their chains stacks. Clock events (cpu-clock,
 * task-clock) become seconds of their period, other events a dimension with their name. */
#ifndef PROFD_CLIENT_IMPORT_PERF_H
#define PROFD_CLIENT_IMPORT_PERF_H

#include "import/import_profile.h"

struct import_perf;

/* Creates a parser in the arena. event is a name without modifiers; NULL: the event of the first sample. NO_MEMORY. */
enum profd_status import_perf_new(struct arena *a, const char *event, struct import_perf **out, struct profd_error *e);

/* Parses one line of n bytes without its end; number counts from 1. MALFORMED: neither a sample, a location nor a
 * comment; the sentence quotes the line. LIMIT, NO_MEMORY. Expected O(n). */
enum profd_status import_perf_line(struct import_perf *f, const char *line, size_t n, uint64_t number,
                                   struct profd_error *e);

/* Ends parsing: *count processes with samples, in order of first appearance. end is the time of the last sample; the
 * length of the windows before it is that of the time stamps. MALFORMED: no samples. REFUSED: no samples of the event.
 */
enum profd_status import_perf_finish(struct import_perf *f, uint64_t end, uint32_t *count, struct profd_error *e);
const struct import_profile *import_perf_process(const struct import_perf *f, uint32_t index);

/* After finish: a sentence about what was left out and how threads were distinguished; "": nothing to report. */
const char *import_perf_words(const struct import_perf *f);

#endif
