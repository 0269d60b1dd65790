/* The slow path: a call for which the stub found no slot. On x86-64 the caller's vector registers contain live values
 * here. */
#include "client/collect/collect.h"
#include "client/collect/handover.h"
#include "client/collect/kin.h"
#include "client/collect/module.h"
#include "client/collect/rewrite.h"
#include "client/collect/sample.h"
#include "client/collect/stub.h"
#include "client/collect/count_table.h"
#include "client/collect/thread.h"

/* A caller on the stack is not code: gcc's -mfentry pushes the static chain of a nested function before the call. */
#define NEAR_STACK (16u << 20)

void collect_slow(uintptr_t from, uintptr_t self)
{
    if (__atomic_load_n(&collect.stage, __ATOMIC_ACQUIRE) != COLLECT_RUNNING && !collect_start(NULL)) {
        __atomic_fetch_add(&collect.early_lost, 1, __ATOMIC_RELAXED);
        return;
    }
    collect_check_alone();
    if (kin_tell(collect.header)) {
        handover_look();
    }
    thread_begin_late();
    sample_arm_late();
    struct module_place callee = module_find(self), caller = module_find(from);
    struct count_table_entry entry = {stub_key(from, self),
                                      {caller.offset, callee.offset, caller.module, callee.module}};
    if (caller.module == ATTACH_MODULE_NONE) {
        collect_counter_add(ATTACH_COUNTER_CALLS_JUNK, 1);
        /* There are as many stack addresses as depths: the slow path uses one slot for all of them. Generated code has
         * its own slots. */
        uintptr_t here = (uintptr_t)__builtin_frame_address(0);
        if (from - here + NEAR_STACK < 2u * NEAR_STACK) {
            entry.key = stub_key(0, self);
        }
    }
    module_set_called(callee.module);
    rewrite_learn(callee.module, self);
    if (!count_table_add_mine(&entry, 1) && !count_table_add_shared(ATTACH_KIND_ARCS, &entry, 1)) {
        collect_counter_add(ATTACH_COUNTER_CALLS_LOST, 1);
    }
}

void collect_often(uintptr_t from, uintptr_t self)
{
    uint32_t site = rewrite_site(self);
    struct module_place callee = module_find(self), caller = module_find(from);
    struct attach_identity id = {caller.offset, callee.offset, caller.module, callee.module};
    if (site && collect.stage == COLLECT_RUNNING) {
        count_table_prefer_site(site - 1, from, &id);
    }
}
