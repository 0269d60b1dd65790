/* Walks a thread's stack by unwind tables: from its registers and a copy of the top of its stack to return addresses.
 * Pure. */
#ifndef PROFD_RECORD_UNWIND_WALK_H
#define PROFD_RECORD_UNWIND_WALK_H

#include <stdbool.h>

#include "record/unwind_table.h"

#define UNWIND_RETURNS 127u /* most return addresses of a stack */

struct unwind_thread {
    enum unwind_machine machine;
    uint64_t pc, sp, fp;
    uint64_t link; /* AArch64: x30 */
    uint64_t base; /* address of the copied stack's first byte */
    const uint8_t *stack;
    size_t size;
};

/* The table of the object at an address of the process, and what to subtract from addresses to get link-time ones. */
struct unwind_object {
    const struct unwind_table *table;
    uint64_t bias;
};
/* Finds it. False: there is none. */
typedef bool unwind_find(void *context, uint64_t address, struct unwind_object *out);

enum unwind_end {
    UNWIND_COMPLETE, /* the outermost frame was reached */
    UNWIND_NO_TABLE, /* an address is in no object with a table */
    UNWIND_NO_ENTRY, /* the object's table has no function at an address */
    UNWIND_NO_RULE,  /* a rule that is not supported */
    UNWIND_SHORT,    /* the stack is larger than its copy */
    UNWIND_DEEP,     /* it has more than UNWIND_RETURNS frames */
    UNWIND_BROKEN,   /* the caller's frame does not lie above that of its callee */
};

/* A frame record is the saved frame pointer of the caller, followed by the return address. The records form a chain
 * that begins at the thread's frame pointer. Functions that keep no record are not in it. This says how far a walk by
 * tables came along that chain. */
struct unwind_records {
    uint32_t passed; /* records of which the walk found the return address */
    bool next;       /* true: the next record belongs to the function at which the walk ended */
};

/* Sets *count return addresses as they are in the process (AArch64: without their signatures), that of the innermost
 * function first; returns holds UNWIND_RETURNS. What was found before an end other than UNWIND_COMPLETE is right as far
 * as it goes. A signal handler's frame is left like a call: the interrupted address is among the return addresses, and
 * interrupted, if not NULL, has a true at its index. records may be NULL. A function without a table is taken to keep a
 * record. O(frames · log rows). */
enum unwind_end unwind_walk(const struct unwind_thread *thread, unwind_find *find, void *context, uint64_t *returns,
                            bool *interrupted, uint32_t *count, struct unwind_records *records);

/* Whether the function at an address keeps a frame record there, as its rule says. */
bool unwind_keeps_record(enum unwind_machine machine, const struct unwind_rule *r);

#endif
