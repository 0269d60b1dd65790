#include "proto/late.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* The first function is written last: if it is there, all are. */
static bool load(const char *file, const char *const *names, size_t count, char *functions)
{
    void *function = NULL;
    memcpy(&function, functions, sizeof function);
    if (function) {
        return true;
    }
    void *library = dlopen(file, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    for (size_t i = count; library && i-- > 0;) {
        function = dlsym(library, names[i]);
        if (!function) {
            return false;
        }
        memcpy(functions + i * sizeof function, &function, sizeof function);
    }
    return library != NULL;
}

enum profd_status late_load(const char *file, const char *const *names, size_t count, void *functions,
                            struct profd_error *e)
{
    (void)pthread_mutex_lock(&lock);
    const bool loaded = load(file, names, count, functions);
    const char *why = loaded ? NULL : dlerror();
    (void)pthread_mutex_unlock(&lock);
    return loaded ? PROFD_OK
                  : profd_error_set(e, PROFD_INTERNAL, "the library %s is required for this: %s", file,
                                    why ? why : "it has no such functions");
}
