#include "proto/late.h"

#include <dlfcn.h>
#include <string.h>

enum profd_status late_load(const char *file, const char *const *names, size_t count, void *functions,
                            struct profd_error *e)
{
    void *library = dlopen(file, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    for (size_t i = 0; library && i < count; i++) {
        void *function = dlsym(library, names[i]);
        if (!function) {
            library = NULL;
            break;
        }
        memcpy((char *)functions + i * sizeof function, &function, sizeof function);
    }
    if (!library) {
        const char *why = dlerror();
        return profd_error_set(e, PROFD_INTERNAL, "the library %s is required for this: %s", file,
                               why ? why : "it has no such functions");
    }
    return PROFD_OK;
}
