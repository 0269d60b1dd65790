/* Trees of stacks (counts.h): their order, making them from unsorted nodes, folding them. Pure. */
#ifndef PROFD_PROTO_COUNTS_TREE_H
#define PROFD_PROTO_COUNTS_TREE_H

#include "proto/counts.h"
#include "proto/sort.h"

/* A frame of a stack. */
struct counts_frame {
    uint64_t address; /* link-time address, or COUNTS_FRAME_… of build COUNTS_NOWHERE */
    uint32_t build;
    uint8_t kind; /* COUNTS_NODE_RETURN or COUNTS_NODE_PC */
};

/* Arrays of nodes, wherever they are. */
struct counts_nodes {
    uint8_t *depth, *kind;
    uint32_t *build;
    uint64_t *address, *ticks;
};
/* The nodes of any struct that has the arrays of struct counts. */
#define COUNTS_NODES(x)                                                                                                \
    ((struct counts_nodes){(x)->node_depth, (x)->node_kind, (x)->node_build, (x)->node_address, (x)->node_ticks})

/* Returns the frame of a node. */
struct counts_frame counts_node_frame(const struct counts_nodes *n, uint32_t at);

/* The order of siblings: by build (COUNTS_NOWHERE last), address, kind. 0: the same frame. */
int counts_compare_frames(const struct counts_frame *a, const struct counts_frame *b);

/* The order of trees: by rate, dimension, abbreviation. 0: trees that can be added up. */
int counts_compare_clocks(const struct counts_tree *a, const struct counts_tree *b);

/* Compares the next nodes i and j of two trees, for a merge in one pass over both. Negative: node i comes first, and b
 * does not have it; positive: node j comes first, and a does not have it; 0: both are the same node. Take the node that
 * comes first, or both, and compare again; if one tree ends, the rest of the other follows. O(n + m) in all. */
static inline int counts_compare_nodes(const struct counts_nodes *a, uint32_t i, const struct counts_nodes *b,
                                       uint32_t j)
{
    if (a->depth[i] != b->depth[j]) { /* the deeper one is still below a node that the other tree has left */
        return a->depth[i] > b->depth[j] ? -1 : 1;
    }
    const int order = compare_pairs(a->build[i], b->build[j], a->address[i], b->address[j]);
    return order != 0 ? order : a->kind[i] - b->kind[j];
}

/* Checks every rule of counts.h and limits.h for trees and their nodes. Build indices must be below builds, or
 * COUNTS_NOWHERE. MALFORMED, TOO_LARGE or OK. O(nodes). */
enum profd_status counts_judge_trees(const struct counts_tree *trees, uint32_t tree_count,
                                     const struct counts_nodes *nodes, uint32_t node_count, uint32_t builds,
                                     struct profd_error *e);

/* A node of a tree in any order, but after its parent. */
struct counts_node {
    uint32_t parent; /* index of a node before this one, or COUNTS_NOWHERE for depth 0 */
    struct counts_frame frame;
    uint64_t ticks; /* that end here */
};

/* Makes one tree: writes its nodes in preorder to out, which has space for n, and their number to *used. Equal siblings
 * become one node, nodes without ticks in and below them are left out, ticks of nodes deeper than LIMIT_STACK_DEPTH are
 * added to their ancestor of the last depth, sums saturate at 2^63−1. place (NULL if not needed) receives for each
 * input node the index in out that its ticks were added to; COUNTS_NOWHERE if it was left out. MALFORMED if a parent is
 * not before its node, a PC has children, or a frame of COUNTS_NOWHERE has another address or depth than counts.h
 * says; NO_MEMORY or OK. O(n log n). */
enum profd_status counts_tree_sort(const struct counts_node *in, uint32_t n, const struct counts_nodes *out,
                                   uint32_t *used, uint32_t *place, struct profd_error *e);

/* Folds trees (as counts_judge_trees has them, but of any number of nodes) in place until at most `most` nodes are
 * left: repeatedly the leaf with the fewest ticks (of equals, the last in order) is removed, and its ticks are added to
 * its parent; those of a leaf at depth 0 to the node COUNTS_FRAME_INCOMPLETE of its tree. Sets first and used of each
 * tree and *node_count. place as above, for the nodes before. most is at least tree_count. Nothing is done if there are
 * no more nodes than that. NO_MEMORY or OK. O(n log n). */
enum profd_status counts_tree_fold(struct counts_tree *trees, uint32_t tree_count, const struct counts_nodes *nodes,
                                   uint32_t *node_count, uint32_t most, uint32_t *place, struct profd_error *e);

/* Collects stacks one by one and makes their trees (counts.h). Pure. */

struct counts_stacks; /* private */

/* Returns an empty collection, which the caller frees with counts_stacks_free; NULL if memory is exhausted. */
struct counts_stacks *counts_stacks_new(void);
/* Accepts NULL. */
void counts_stacks_free(struct counts_stacks *s);

/* Adds ticks that found this stack: n frames, the outermost first, all return addresses except, as a rule, the last.
 * The clock is that of the ticks' histogram. If there are more than LIMIT_STACK_DEPTH frames, the outer ones are
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
