/* Names of functions that belong to the compiler's and the C library's run-time support, not to the program. */
#ifndef PROFD_CORE_RUNTIME_NAMES_H
#define PROFD_CORE_RUNTIME_NAMES_H

#include <stdbool.h>

/* True for a function that the compiler calls in order to count or trace calls: mcount in its spellings (gcc and clang
 * -pg),
 * __fentry__ (-mfentry), __cyg_profile_func_enter and _exit (-finstrument-functions). A version behind '@' is ignored.
 * O(1). */
bool runtime_is_counter(const char *name);

/* True for the start-up and termination code that the linker adds to every program: _start, _init, frame_dummy and the
 * like. A version behind '@' is ignored. O(1). */
bool runtime_is_startup(const char *name);

#endif
