/* Ticks: a timer for each thread, on its CPU time or on the wall clock. */
#ifndef PROFD_COLLECT_SAMPLE_H
#define PROFD_COLLECT_SAMPLE_H

#include <stdbool.h>
#include <stdint.h>

/* Takes SIGPROF, unless the program has it already or no ticks are wanted, and arms the calling (main) thread. Calls
 * libc. */
void sample_prepare(void);
/* Arms the calling thread's timer, once; stack addresses [low, high) may be read for its pairs, zeros if none may. */
void sample_arm(uintptr_t stack_low, uintptr_t stack_high);
/* From the slow path, for threads whose beginning was not seen: pairs are not read there. */
void sample_arm_late(void);
void sample_disarm(void);
/* In a fork's child: timers are not inherited. */
void sample_arm_child(void);

/* The program takes SIGPROF for itself: all timers go, no tick of ours reaches its handler. */
void sample_give_up(void);
/* True while there are ticks of ours. */
bool sample_is_on(void);
/* True while SIGPROF's handler is ours, though perhaps it does nothing any more; and the end of that. */
bool sample_has_signal(void);
void sample_lose_signal(void);

#endif
