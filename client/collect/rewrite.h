/* Call sites of mcount and __fentry__, rewritten: stage two, when PROFD_REWRITE=1.
 *
 * A site, `call *mcount@GOT(%rip)` or `call mcount@plt`, becomes a jump to a thunk of its own in a page near its
 * object, which counts in one of the slots that the site has in the thread's table of sites (for callers that came
 * often; others are in the thread's usual table) and jumps back. Objects with more sites than there are thunks left get
 * direct calls of a near copy of the stub. Either way a site has its opcode in one byte and a 32-bit displacement
 * behind it, so that one byte switches it off: `test $…, %eax`, as long, changes flags alone, which calls change, too.
 * That one store is all that ever happens to code that other threads may be running: no instruction begins elsewhere
 * for it, so that a thread does the old or the new; no trap is needed, and no handler, and what a debugger put on a
 * site stays there.
 *
 * What is a site is not guessed from bytes. A function begins where the unwinder's sorted table says; from there
 * instruction after instruction is decoded (rewrite_decode.h) up to one that calls through exactly a GOT slot that a
 * relocation against the name filled with our function, and no further than the first other call, jump or return. Data
 * is not reached that way, whatever it looks like. A function without unwind information, or whose call is not on that
 * line, keeps its call and is counted as ever.
 *
 * Code is rewritten while the process has one thread: in the constructor, and at the first call of an object that was
 * loaded later, if it still has one. Objects of a process with threads keep their calls. W and X at once may be refused
 * (MemoryDenyWriteExecute, SELinux): nothing is changed then. x86-64 only: elsewhere all of this does nothing. */
#ifndef PROFD_COLLECT_REWRITE_H
#define PROFD_COLLECT_REWRITE_H

#include <stdbool.h>
#include <stdint.h>

/* From the constructor, when the collector runs: rewrites what is loaded. Calls libc's dl_iterate_phdr. O(functions).
 */
void rewrite_begin(void);

/* From the slow path: self lies in that module, which called us. The first time its sites are rewritten, if that is
 * safe. Any thread, any handler; raw. O(1) but for the first time. */
void rewrite_learn(uint16_t module, uintptr_t self);

/* Number + 1 of the site that returns to self, if it has a thunk; otherwise 0. O(objects + log sites). */
uint32_t rewrite_site(uintptr_t self);

/* True for addresses in thunks and copies of the stub. O(objects). */
bool rewrite_contains(uintptr_t pc);

/* Switches the sites: other threads follow within the time that their caches take. Any thread, any handler, but one at
 * a time (pause.c). Where protection cannot be changed any more, sites stay as they are; the tables alone say no
 * then. O(sites). */
void rewrite_switch(bool on);

/* Around dlclose(): no code is touched between; what is gone after it is forgotten. */
void rewrite_close_begin(void);
void rewrite_close_end(void);

/* In a fork's child: what another thread was about is not. */
void rewrite_begin_child(void);

#endif
