/* The text of perf script, line by line: its default output, with and without call chains, and any -F that has ip.
 * Pure. One event's samples become ticks; each adjacent pair of a chain counts as often as it was seen. Event clocks
 * (cpu-clock, task-clock) make seconds of their period, others a dimension of their name. */
#ifndef PROFD_CLIENT_IMPORT_PERF_H
#define PROFD_CLIENT_IMPORT_PERF_H

#include "import/import_profile.h"

struct import_perf;

/* A parser in the arena. It takes the samples of event, a name without modifiers; NULL: of the first event.
 * NO_MEMORY. */
enum profd_status import_perf_new(struct arena *a, const char *event, struct import_perf **out, struct profd_error *e);

/* One line of n bytes without its end; number counts from 1. MALFORMED: neither a sample, a place nor a comment, with
 * the line and what stands there; LIMIT, NO_MEMORY. Expected O(n). */
enum profd_status import_perf_line(struct import_perf *f, const char *line, size_t n, uint64_t number,
                                   struct profd_error *e);

/* *count processes with samples, in order of first appearance. end: when the last sample was taken; their windows are
 * as long before it as the time stamps say. MALFORMED: no samples at all. REFUSED: none of the event. */
enum profd_status import_perf_finish(struct import_perf *f, uint64_t end, uint32_t *count, struct profd_error *e);
const struct import_profile *import_perf_process(const struct import_perf *f, uint32_t index);

/* After finish: a sentence on what was left out and how threads were told apart; "" if there is nothing to say. */
const char *import_perf_words(const struct import_perf *f);

#endif
