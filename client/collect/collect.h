/* State that the collector's parts share: one process, one region, one switch. Code that may run inside a call of
 * mcount is compiled without vector registers (see the Makefile) and calls no function of libc. The collector does not
 * use malloc, starts no thread, and writes only to its own descriptors. */
#ifndef PROFD_COLLECT_COLLECT_H
#define PROFD_COLLECT_COLLECT_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/attach_memory.h"

enum collect_stage {
    COLLECT_FRESH, /* no function has been called yet */
    COLLECT_BUSY,  /* being started, by this thread or another */
    COLLECT_RUNNING,
    COLLECT_REFUSED, /* permanently off: set-user-id, or no memory */
};

struct collect_state {
    uint32_t on;                  /* the stubs' slow path checks it first */
    uint32_t stage;               /* enum collect_stage */
    struct attach_header *header; /* the region; valid from RUNNING on, its address never changes */
    uint32_t early_lost;          /* calls while BUSY */
    uint32_t copies;              /* other copies of the collector counted instead of this one */
    uint32_t *alone;              /* 1; 0 in a child created without fork(). NULL: the kernel does not support this */
};
extern struct collect_state collect;

/* Adds to a counter of the region. Any thread, any handler. */
static inline void collect_counter_add(enum attach_counter counter, uint64_t n)
{
    __atomic_fetch_add(&collect.header->counters[counter], n, __ATOMIC_RELAXED);
}

/* n functions more are not counted on request. */
static inline void collect_tell_left_out(uint32_t n)
{
    __atomic_fetch_add(&collect.header->counters[ATTACH_COUNTER_LEFT_OUT], n, __ATOMIC_RELEASE);
}

/* Creates the region, registers the program and what learn registers (may be NULL), and sends the descriptor.
 * Idempotent; called from the constructor or the first call, whichever comes first. True if the collector is running.
 * Raw system calls only, except in learn. */
bool collect_start(void (*learn)(void));

/* In a child of fork: creates a region of its own, with counts of zero and a new instance, and sends its descriptor.
 * Raw system calls only. */
void collect_start_child(void);

/* From the slow path: gives a process that shares its parent's region a region of its own. Its earlier calls are in the
 * parent's region. */
void collect_check_alone(void);

/* The slow path: called by the stubs if their table has no slot for the call. */
void collect_slow(uintptr_t from, uintptr_t self);
/* Likewise, for a call that was counted and is frequent, at a site with a thunk. */
void collect_often(uintptr_t from, uintptr_t self);

#endif
