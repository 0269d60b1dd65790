/* Calls of libc from inside a call of mcount. */
#ifndef PROFD_COLLECT_SAVED_H
#define PROFD_COLLECT_SAVED_H

#include <stdint.h>

/* Calls function(a, b) with all vector state saved before and restored after: libc's code may use any of it, and on
 * x86-64 the program's lives there. Its answer as an int. Needs about 3 KiB of stack. */
int saved_call(void (*function)(void), uintptr_t a, uintptr_t b);

/* The assembly of it. mask: the components of XSAVE; 0: FXSAVE has all there is. */
int profd_collect_call(void (*function)(void), uintptr_t a, uintptr_t b, uint64_t mask);

#endif
