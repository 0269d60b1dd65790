#include "core/runtime_names.h"

#include <stddef.h>
#include <string.h>

static bool runtime_has(const char *const *names, size_t n, const char *name)
{
    size_t length = strcspn(name, "@");
    for (size_t i = 0; i < n; i++) {
        if (strncmp(names[i], name, length) == 0 && names[i][length] == '\0') {
            return true;
        }
    }
    return false;
}

bool runtime_is_counter(const char *name)
{
    static const char *const names[] = {
        "mcount",
        "_mcount",
        "__mcount",
        "__fentry__",
        "__gnu_mcount_nc",
        "__cyg_profile_func_enter",
        "__cyg_profile_func_exit",
    };
    return (name[0] == '_' || name[0] == 'm') && runtime_has(names, sizeof names / sizeof names[0], name);
}

bool runtime_is_startup(const char *name)
{
    static const char *const names[] = {
        "_start",
        "_init",
        "_fini",
        "frame_dummy",
        "register_tm_clones",
        "deregister_tm_clones",
        "__do_global_dtors_aux",
        "__do_global_ctors_aux",
        "__libc_start_main",
        "__libc_csu_init",
        "__libc_csu_fini",
        "__gmon_start__",
        "__monstartup",
        "_mcleanup",
        "__cxa_finalize",
        "_dl_relocate_static_pie",
        "call_weak_fn",
        "_ITM_registerTMCloneTable",
        "_ITM_deregisterTMCloneTable",
    };
    return strchr("_frdc", name[0]) != NULL && runtime_has(names, sizeof names / sizeof names[0], name);
}
