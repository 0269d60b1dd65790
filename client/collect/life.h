/* Functions that programs, gcrt1.o and compilers call. All names of glibc's gmon.o must be here: otherwise a static
 * program would link gmon.o for the missing one, and fail. mcount, _mcount, __fentry__ (x86-64) and
 * __cyg_profile_func_enter are in stub_*.S. */
#ifndef PROFD_COLLECT_LIFE_H
#define PROFD_COLLECT_LIFE_H

#include <stdint.h>

/* Before the process ends: sends the executables that the daemon still requests. Raw system calls only. */
void life_end(void);

#pragma GCC visibility push(default)

/* Begin counting, unless it has begun. The range is ignored: all code is counted. */
void __monstartup(uintptr_t low, uintptr_t high);
void monstartup(uintptr_t low, uintptr_t high);
/* Does nothing: the daemon reads the memory. */
void _mcleanup(void);
/* 0 switches counting and ticks off for the process, anything else on. */
void moncontrol(int mode);

void __cyg_profile_func_exit(void *function, void *site);

#pragma GCC visibility pop

#endif
