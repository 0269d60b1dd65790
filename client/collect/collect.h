/* The collector's state: one process, one region, one switch. What its parts share.
 *
 * Everything that may run inside a call of mcount is compiled without vector registers (see the Makefile) and calls
 * nothing of libc. Nothing here allocates with malloc, starts a thread, or writes to a descriptor that is not ours. */
#ifndef PROFD_COLLECT_COLLECT_H
#define PROFD_COLLECT_COLLECT_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/attach.h"

enum collect_stage {
    COLLECT_FRESH, /* nobody called yet */
    COLLECT_BUSY,  /* being started, by this thread or another */
    COLLECT_RUNNING,
    COLLECT_REFUSED, /* set-user-id, or no memory: for ever off */
};

struct collect_state {
    uint32_t on;                  /* the stubs' slow path asks it first */
    uint32_t stage;               /* enum collect_stage */
    struct attach_header *header; /* the region; valid from RUNNING on, the same address for ever */
    uint32_t early_lost;          /* calls that came while BUSY */
    uint32_t copies;              /* other copies of the collector counted instead of this one */
    uint32_t *alone;              /* 1; a child made without fork() finds 0 there. NULL: the kernel cannot do that */
};
extern struct collect_state collect;

/* Adds to a word of the region; any thread, any handler. */
static inline void collect_word_add(enum attach_word word, uint64_t n)
{
    __atomic_fetch_add(&collect.header->words[word], n, __ATOMIC_RELAXED);
}

/* Makes the region, registers the program, hands it over. Idempotent; from the constructor or the first call, whichever
 * is first. True if the collector is running. Raw system calls only. */
bool collect_start(void);

/* In a fork's child: a region of its own, zero counts, a new name; hands it over. Raw system calls only. */
void collect_start_child(void);

/* From the slow path: a process that shares its parent's region gets its own. What it called before is in the parent's.
 */
void collect_check_alone(void);

/* Counting and ticks on or off for the whole process: moncontrol. Calls of other threads that are just being counted
 * may still land. */
void collect_switch(bool on);

/* The slow path: the stubs come here when their table has no slot for the call. */
void collect_slow(uintptr_t from, uintptr_t self);
/* The same for a call that was counted, and has been made often, by a site that has a thunk. */
void collect_often(uintptr_t from, uintptr_t self);

#endif
