/* Rewrites call sites of mcount and __fentry__, if PROFD_REWRITE=1.
 *
 * A site, `call *mcount@GOT(%rip)` or `call mcount@plt`, becomes a jump to its own thunk in a page near its object. The
 * thunk counts in one of the site's slots in the thread's table of sites, if the caller is frequent, otherwise in the
 * thread's usual table; then it jumps back. If an object has more sites than thunks are left, its sites become direct
 * calls of a near copy of the stub. In both cases a site is one opcode byte and a 32-bit displacement, so that storing
 * one byte switches it off: `test $…, %eax` has the same length and changes only flags, which calls change, too. This
 * store is the only change of code that other threads may be running. It moves no instruction's beginning, so a thread
 * executes either the old or the new instruction. No trap and no handler is needed, and a debugger's breakpoint on a
 * site stays there.
 *
 * Sites are not guessed from bytes. The unwinder's sorted table states where functions begin. From there instructions
 * are decoded one by one (rewrite_decode.c) until one calls through a GOT slot that a relocation against the name
 * filled with our function; decoding stops at the first other call, jump or return. Data is never reached that way,
 * whatever it looks like. A function without unwind information, or with its call elsewhere, keeps its call and is
 * counted as usual.
 *
 * Code is rewritten only while the process has one thread: in the constructor, and at the first call in an object that
 * was loaded later. Objects of a process with threads keep their calls. If memory cannot be writable and executable at
 * once (MemoryDenyWriteExecute, SELinux), nothing is changed. x86-64 only: elsewhere these functions do nothing. */
#ifndef PROFD_COLLECT_REWRITE_H
#define PROFD_COLLECT_REWRITE_H

#include <stdbool.h>
#include <stdint.h>

#include "client/collect/stub.h"

/* From the constructor, when the collector runs: rewrites what is loaded. stub: of mcount and of __fentry__, which stay
 * valid; bound: both names are bound to these. Calls libc's dl_iterate_phdr. O(functions). Only x86-64 has it. */
void rewrite_begin(const struct stub_code stub[2], bool bound);

/* Functions that are not counted, because PROFD_LEAVE_OUT names them. */
uint32_t rewrite_left_out(void);

/* From the slow path: rewrites the sites of the module that contains self, at its first call, if that is safe. Any
 * thread, any handler; raw. O(1) except the first time. */
void rewrite_learn(uint16_t module, uintptr_t self);

/* Number + 1 of the site that returns to self, if it has a thunk; otherwise 0. O(objects + log sites). */
uint32_t rewrite_site(uintptr_t self);

/* True for addresses in thunks and copies of the stub. O(objects). */
bool rewrite_contains(uintptr_t pc);

/* Switches the sites on or off. Other threads see this after the delay of their caches. Any thread, any handler, but
 * one at a time (pause.c). If protection cannot be changed any more, sites stay as they are, and the tables alone stop
 * counting. O(sites). */
void rewrite_switch(bool on);

/* Around dlclose(): between the two calls no code is changed; after it, unloaded objects are removed. */
void rewrite_close_begin(void);
void rewrite_close_end(void);

/* In a child of fork: resets what another thread was changing. */
void rewrite_begin_child(void);

#endif
