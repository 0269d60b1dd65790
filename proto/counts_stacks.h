/* Collects stacks one by one and makes their trees (counts.h). Pure. */
#ifndef PROFD_PROTO_COUNTS_STACKS_H
#define PROFD_PROTO_COUNTS_STACKS_H

#include "proto/counts_tree.h"

struct counts_stacks; /* private */

/* The caller ends it with counts_stacks_free. NULL if memory is exhausted. */
struct counts_stacks *counts_stacks_new(void);
/* Accepts NULL. */
void counts_stacks_free(struct counts_stacks *s);

/* Adds ticks that found this stack: n frames, the outermost first, all return addresses except, as a rule, the last.
 * The clock is that of the histogram in which the ticks are. Of more than LIMIT_STACK_DEPTH frames the outer ones are
 * replaced by COUNTS_FRAME_INCOMPLETE. No frames or no ticks: nothing is added. MALFORMED if a frame above another
 * is a program counter, or one of COUNTS_NOWHERE has an address or place that counts.h does not have; TOO_LARGE if
 * there are LIMIT_STACK_TREES other clocks; NO_MEMORY or OK. O(n) expected; memory is bounded: when four times
 * LIMIT_STACK_NODES nodes of a clock are held, they are folded. */
enum profd_status counts_stacks_add(struct counts_stacks *s, uint32_t rate, const char *dimension, char abbreviation,
                                    const struct counts_frame *frames, uint32_t n, uint64_t ticks,
                                    struct profd_error *e);

/* Makes the trees, folded to LIMIT_STACK_NODES, and stores their sizes in trees and nodes of sizes. What is added later
 * is not in them. NO_MEMORY or OK. O(n log n). */
enum profd_status counts_stacks_finish(struct counts_stacks *s, struct counts_sizes *sizes, struct profd_error *e);

/* Copies the trees to c, which has arrays of these sizes. */
void counts_stacks_copy(const struct counts_stacks *s, struct counts *c);

#endif
