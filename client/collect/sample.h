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
/* From the slow path, for threads that started unobserved. Pairs are not read there. */
void sample_arm_late(void);
/* At the end of the calling thread: ends its timer, and counts the ticks that were due and did not come. */
void sample_disarm(void);
/* Likewise at the end of the process. The calling thread may run on: its next tick is a period from now. Ticks that
 * other threads lack at that time are not counted. */
void sample_settle(void);
/* In a child of fork: resets the timers, which are not inherited. */
void sample_arm_child(void);

/* The program installs its own SIGPROF handler: deletes all timers, so that no tick of the collector reaches that
 * handler. */
void sample_give_up(void);
/* True as long as the collector has ticks. */
bool sample_is_on(void);
/* True as long as the SIGPROF handler is the collector's, even if it is inactive; and the end of this. */
bool sample_has_signal(void);
void sample_lose_signal(void);

#endif
