#include "proto/late.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

enum profd_status late_load(const struct late_library *l, struct profd_error *e)
{
    void *function = NULL;
    char *functions = l->functions;
    const char *why = NULL;
    (void)pthread_mutex_lock(&lock);
    memcpy(&function, functions, sizeof function);
    if (!function) {
        void *library = dlopen(l->file, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
        bool loaded = library != NULL;
        /* The first function is written last: if it is there, all are. */
        for (size_t i = l->count; loaded && i-- > 0;) {
            function = dlsym(library, l->names[i]);
            loaded = function != NULL;
            if (loaded) {
                memcpy(functions + i * sizeof function, &function, sizeof function);
            }
        }
        why = loaded ? NULL : dlerror();
        why = loaded || why ? why : "it has no such functions";
    }
    (void)pthread_mutex_unlock(&lock);
    return why ? profd_error_set(e, PROFD_INTERNAL, "the library %s is required for this: %s", l->file, why) : PROFD_OK;
}
