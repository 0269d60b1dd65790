/* A rollup: the sum of many uploads of one series, kept sorted by key so that rollups merge without hashing, together
 * with its spread: the same counts in 16 columns, one per random group of processes. Sums lose time
 * resolution, never a count: adding is associative and commutative down to the bytes, first-arrival order included. */
#ifndef PROFD_CORE_ROLLUP_H
#define PROFD_CORE_ROLLUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/arena.h"
#include "proto/counts.h"
#include "proto/status.h"

/* A sum is sorted counts (proto/counts.h); build numbers are positions in the series' set of builds. Arrays live in an
 * arena.
 * A sum has at most LIMIT_STACK_NODES nodes and LIMIT_STACK_TREES trees. Of more trees the first ones in their order
 * stay, with all their ticks, in whatever order they were added; the stacks of other clocks are left out. One that gets
 * more nodes is folded: again and again the leaf with the fewest ticks (of equal ones the last) goes, and its parent
 * has its ticks and shares in its place; a leaf of depth 0 becomes part of the node {COUNTS_NOWHERE,
 * COUNTS_FRAME_INCOMPLETE, return address}. The ticks of a tree, of each group too, are never changed by that. Which
 * nodes are left depends on the order of adding: sums of sums fold at each level. As long as no sum folds, all orders
 * give the same bytes.
 *
 * A sum in the making lives in its arena. NULL when memory is exhausted and the arena has no boundary. Functions that
 * return a status are boundaries themselves: they may be called outside of jobs. */
struct rollup_sum;
/* Which rows have shares by random group: none, the nodes of stacks, or all. Of others, groups are not looked at. */
enum rollup_shares { ROLLUP_PLAIN, ROLLUP_NODES, ROLLUP_ALL };
struct rollup_sum *rollup_sum_new(struct arena *a, enum rollup_shares shares);
/* From now on the sum has at most LIMIT_SUM_ROWS arcs and bins, and one for each of these: Of more arcs those with the
 * most calls stay, and all others become one arc between addresses ROLLUP_REST of no build, with their calls. Of more
 * bins those with the most ticks stay, and the others of a histogram become one bin of the addresses 0 to
 * ROLLUP_REST of its build. Arcs and bins each have at least half of the rows if they need them. Of more than
 * LIMIT_HISTOGRAMS histograms the first ones in their order stay. */
void rollup_sum_limit(struct rollup_sum *s);
#define ROLLUP_REST UINT64_MAX
/* Adds one upload: its counts (if they are sorted, they take the order of their ranks), its number in order of
 * acceptance, and the group of its process (< COUNTS_GROUPS). O(bins + arcs) expected. After NO_MEMORY the sum is good
 * for nothing more. */
enum profd_status rollup_sum_add_upload(struct rollup_sum *s, const struct counts *c, uint64_t commit, uint32_t group,
                                        struct profd_error *e);
/* Adds a rollup with its shares; neither is looked at after the call. Without shares (NULL, or NULL arrays) its counts
 * are in no group's share. Sorted runs of like size are merged two by two, so that n rollups of m rows cost O(n·m) if
 * their keys are the same, O(n·m log n) if all differ; both kinds may be mixed. */
enum profd_status rollup_sum_add(struct rollup_sum *s, const struct counts *r, const struct counts_shares *shares,
                                 struct profd_error *e);
/* Adds a rollup over a set of builds, which are renumbered: map[i] is the sum's number of build i. alone: a build with
 * the number COUNTS_NOWHERE is left out. Its histograms and the arcs with no other end are dropped. Arc ends in it lose
 * their addresses, like ends outside every build, so that such arcs add up. Only stacks that end at a program counter
 * in a build that stays count, as its histograms do; return addresses in other builds become COUNTS_FRAME_OUTSIDE,
 * several in sequence one. The collector's counters belong to whole processes: they stay, with the first build that
 * stays. O(n) if the map ascends and all builds stay, else O(n log n). */
enum profd_status rollup_sum_add_mapped(struct rollup_sum *s, const struct counts *r,
                                        const struct counts_shares *shares, const uint32_t *map, uint32_t builds,
                                        bool alone, struct profd_error *e);
/* The sum, sorted, in the arena. O(n log n) in what uploads brought, O(n) in rollups. shares may be NULL: not wanted.
 */
enum profd_status rollup_sum_finish(struct rollup_sum *s, struct counts *out, struct counts_shares *shares,
                                    struct profd_error *e);

/* The sum of two uploads of one process, as one upload that grows: of more, which came later, what is
 * new is behind what old has in order of first arrival. Either may be sorted; out is, with the ranks of its rows as
 * their order. It lives in the arena scratch, which is reset. TOO_LARGE: it exceeds the limits of an upload. */
enum profd_status rollup_grow(struct arena *scratch, const struct counts *old, const struct counts *more,
                              struct counts *out, struct profd_error *e);
/* The orders of first arrival of a sum's arcs and histograms become their positions in it, as if all had come with
 * upload 0: so equal sums have equal bytes. The arena is for arrays meanwhile. O(n) for each byte in which the orders
 * differ. */
void rollup_rank(struct counts *r, struct arena *a);

/* Decodes a single upload into the arena, as counts_decode. */
enum profd_status rollup_decode_upload(struct arena *a, const uint8_t *in, size_t n, uint32_t builds,
                                       struct counts *out, struct profd_error *e);
/* Decodes a stored sum into the arena, as counts_decode_parts; builds is the size of the series' set. arcs_only leaves
 * histograms and stacks empty. DAMAGED with the rule and the value, NO_MEMORY or OK. */
enum profd_status rollup_decode(struct arena *a, const uint8_t *in, size_t n, uint32_t builds, bool arcs_only,
                                struct counts *out, struct profd_error *e);
/* Its shares, as counts_decode_shares. Likewise. */
enum profd_status rollup_decode_spread(struct arena *a, const struct counts *r, const uint8_t *in, size_t n,
                                       struct counts_shares *out, struct profd_error *e);

#endif
