/* The clock of the vDSO: memory that the kernel keeps up to date. */
#ifndef PROFD_COLLECT_VDSO_H
#define PROFD_COLLECT_VDSO_H

#include <stdbool.h>
#include <stdint.h>

/* Finds the clock. Once, before any thread reads it. */
void vdso_prepare(void);
/* Milliseconds of CLOCK_MONOTONIC_COARSE, which no vDSO reads by a system call. False: there is no vDSO. */
bool vdso_now_ms(uint64_t *ms);

#endif
