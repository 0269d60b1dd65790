/* The tree of stacks in the region, shared by all threads (proto/attach_memory.h, STACKS).
 *
 * A node is claimed by setting its key from 0 with a compare-and-swap, then its identity is written, its module last;
 * counts are added atomically. A chunk that gets crowded stays as it is and a larger one is begun with a tree of its
 * own: nothing is ever rehashed, a path is looked up in one chunk, and the reader adds up. The last chunk has no
 * successor: what does not fit is counted at its parent. */
#ifndef PROFD_COLLECT_STACK_TREE_H
#define PROFD_COLLECT_STACK_TREE_H

#include <stdbool.h>
#include <stdint.h>

#define STACK_TREE_FRAMES_MAX 128u /* of one stack: return addresses, and the program counter */

/* Adds weight to the node of a stack. pcs[0] is where the tick found the thread, pcs[1 … n − 1] are return addresses,
 * the innermost first. complete: the last one has no caller. False: a frame had no node, for want of memory, and the
 * innermost of its callers that has one was counted instead, if any. begin(pc, called) is where the function at pc
 * begins by its unwind information, 0 if that is not known; it is called for new nodes only. Lock-free. O(n). */
bool stack_tree_count(const uintptr_t *pcs, unsigned n, bool complete, uint64_t weight,
                      uintptr_t (*begin)(uintptr_t, bool));

/* Invalidates the keys of all nodes of module id, as count_table_retire_module. O(nodes). */
void stack_tree_retire_module(uint16_t id);

/* In a child of fork: there is no tree. */
void stack_tree_reset(void);

#endif
