/* Ticks: a timer for each thread, on its CPU time or on the wall clock. */
#ifndef PROFD_COLLECT_SAMPLE_H
#define PROFD_COLLECT_SAMPLE_H

#include <signal.h>
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

/* True as long as the collector has ticks. */
bool sample_is_on(void);
/* True as long as the SIGPROF handler is the collector's, even if it is inactive. */
bool sample_has_signal(void);
/* Likewise: what the program does with SIGPROF, as sigaction() does. Its handler takes the signal over: all timers are
 * deleted, so that no tick of the collector reaches that handler. If they must not be, the handler is called by the
 * collector's. */
int sample_set_action(const struct sigaction *act);
void sample_get_action(struct sigaction *out);

#endif
