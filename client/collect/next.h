/* What a function that the shared library replaces is called by. */
#ifndef PROFD_COLLECT_NEXT_H
#define PROFD_COLLECT_NEXT_H

#include <dlfcn.h>

typedef void any_function(void);

/* The next definition of a name; resolved on first use. */
static inline any_function *next_find(any_function **known, const char *name)
{
    any_function *next = __atomic_load_n(known, __ATOMIC_ACQUIRE);
    if (!next) {
        union {
            void *object;
            any_function *function;
        } found = {.object = dlsym(RTLD_NEXT, name)};
        next = found.function;
        __atomic_store_n(known, next, __ATOMIC_RELEASE);
    }
    return next;
}

#endif
