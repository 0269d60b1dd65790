/* A profile: the sum of many uploads' histograms, arcs and stacks, in link-time addresses of builds.
 * Summing is associative and commutative down to the bytes. */
#ifndef PROFD_CORE_PROFILE_H
#define PROFD_CORE_PROFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/arena.h"
#include "core/tree_sum.h"
#include "proto/counts.h"
#include "proto/status.h"

struct profile_histogram {
    COUNTS_WITH_GEOMETRY
    uint32_t used; /* non-zero bins, ascending by index */
    uint32_t *index;
    uint64_t *ticks;
    struct counts_order order;
};

struct profile_arc {
    uint32_t from_build, to_build; /* indices into the profile's builds, or COUNTS_NOWHERE */
    uint64_t from, to;
    uint64_t calls;
    struct counts_order order; /* minimum over all uploads that brought it */
};

/* A finished sum. Arcs ascend by (from_build, from, to_build, to); histograms by (build, low, high, bins, rate,
 * dimension, abbreviation). */
struct profile {
    uint32_t build_count;
    const char *const *builds; /* build-id texts, in the order they were introduced */
    const struct counts_order
        *build_orders; /* commit and place in it of the upload that brought each first: the load
                        * order, whatever the order of introduction. {UINT64_MAX, …}: none is known */
    uint32_t histogram_count, arc_count;
    struct profile_histogram *histograms;
    struct profile_arc *arcs;
    uint32_t tree_count, node_count; /* stacks, as in struct counts; none unless profile_sum_want_stacks */
    struct counts_tree *trees;
    uint8_t *node_depth, *node_kind;
    uint32_t *node_build;
    uint64_t *node_address, *node_ticks;
    uint64_t *node_shares; /* ticks by random group of processes: [node · TREE_GROUPS + group]; NULL: not asked for */
    bool saturated; /* a sum of ticks or calls stopped at 2^63−1; of the collector's counters: core/coverage.h */
    uint64_t ticks, calls; /* totals, of all dimensions; the collector's counters (proto/collector.h) are no ticks */
};

/* A sum in the making; lives in its arena. */
struct profile_sum;

struct profile_sum *profile_sum_new(struct arena *a);
/* Index of a build in this sum, introduced if new. O(1). */
uint32_t profile_sum_build(struct profile_sum *s, const char *build_id);
/* Tells the load order of an upload's builds, those without counts included; profile_sum_add alone learns only of
 * builds that have some. Optional: it decides which library a by-name arc goes to, and the order of builds in a report.
 * O(builds). */
void profile_sum_load_order(struct profile_sum *s, const uint32_t *map, uint32_t builds, uint64_t commit);
/* States the first occurrence of one build (index). For sums of uploads that are no longer stored. O(1). */
void profile_sum_note_order(struct profile_sum *s, uint32_t index, struct counts_order order);
/* Adds an upload. map[i] is this sum's index of the upload's i-th build. arcs_only leaves histograms out
 * (for the arcs ever observed). O(bins + arcs) expected. */
void profile_sum_add(struct profile_sum *s, const struct counts *c, const uint32_t *map, uint64_t commit,
                     bool arcs_only);
/* The profile will have stacks; shares: and node_shares. Called before any is added. */
void profile_sum_want_stacks(struct profile_sum *s, bool shares);
/* Adds the trees of an upload or a sum, as tree_sum_add. Their builds count as first brought by `commit`, unless that
 * is UINT64_MAX. */
enum profd_status profile_sum_add_stacks(struct profile_sum *s, const struct tree_addend *more, uint64_t commit,
                                         struct profd_error *e);
/* Sorts and closes. The profile lives in the arena. O(n log n). */
enum profd_status profile_sum_finish(struct profile_sum *s, struct profile **out, struct profd_error *e);

#endif
