/* Names that programs, gcrt1.o and compilers call. All that glibc's gmon.o defines must be here: a static program would
 * pull that in for a missing one, and fail to link. mcount, _mcount, __fentry__ (x86-64) and __cyg_profile_func_enter
 * are in stub_*.S. */
#ifndef PROFD_COLLECT_LIFE_H
#define PROFD_COLLECT_LIFE_H

#include <stdint.h>

/* The process is about to end: sends the executables that the daemon still requests. Raw system calls only. */
void life_end(void);

#pragma GCC visibility push(default)

/* Begin counting, if nothing has yet; the range is ignored: all code counts. */
void __monstartup(uintptr_t low, uintptr_t high);
void monstartup(uintptr_t low, uintptr_t high);
/* Nothing is written: the daemon reads when it likes. */
void _mcleanup(void);
/* 0 switches counting and ticks off for the process, anything else on. */
void moncontrol(int mode);

void __cyg_profile_func_exit(void *function, void *site);

#pragma GCC visibility pop

#endif
