/* Replaces dlclose(): the counts of an object are stored under its name before its addresses are reused. */
#include <dlfcn.h>
#include <link.h>
#include <stddef.h>

#include "client/collect/collect.h"
#include "client/collect/module.h"
#include "client/collect/rewrite.h"
#include "client/collect/stack.h"
#include "client/collect/count_table.h"
#include "client/collect/stack_tree.h"
#include "client/collect/unload.h"

/* A static program may have neither; then nothing is unloaded, which dlclose() may do. */
#pragma weak dlsym
#pragma weak dlinfo

typedef int close_function(void *);

static void module_retire(uint16_t id)
{
    if (module_is_counted(id)) {
        count_table_retire_module(id);
        stack_tree_retire_module(id);
    }
}

/* Invalidated before libc is called; afterwards the unloaded objects are determined. If an object stays, its slots are
 * used again when their calls are seen again. */
__attribute__((visibility("default"))) int dlclose(void *handle)
{
    static close_function *known;
    close_function *next = __atomic_load_n(&known, __ATOMIC_ACQUIRE);
    if (!next && dlsym) {
        union {
            void *object;
            close_function *function;
        } found = {.object = dlsym(RTLD_NEXT, "dlclose")};
        next = found.function;
        __atomic_store_n(&known, next, __ATOMIC_RELEASE);
    }
    const struct link_map *map = NULL;
    if (!next) {
        return 0;
    }
    if (collect.stage != COLLECT_RUNNING) {
        return next(handle);
    }
    if (dlinfo && dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0 && map && map->l_ld) {
        module_each_gone((uintptr_t)map->l_ld, module_retire);
    }
    unload_begin();
    rewrite_close_begin();
    int failed = next(handle);
    module_each_gone(0, module_retire);
    stack_forget();
    rewrite_close_end();
    unload_end();
    return failed;
}
