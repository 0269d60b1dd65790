/* The constructor, the destructor, and the functions that gcrt1.o and programs call. */
#include <link.h>
#include <pthread.h>

#include "client/collect/collect.h"
#include "client/collect/handover.h"
#include "client/collect/life.h"
#include "client/collect/module.h"
#include "client/collect/rewrite.h"
#include "client/collect/pause.h"
#include "client/collect/raw.h"
#include "client/collect/sample.h"
#include "client/collect/stub.h"
#include "client/collect/thread.h"

/* The first copy in the process's search order counts, because calls reach it; every other copy is off. (A program
 * linked with the archive exports its mcount because libc has one.) */
extern void mcount(void);
extern void profd_collect_mcount(void)
    __attribute__((visibility("hidden"))); /* our own function, even if the name is bound to another */

/* Registers all objects in load order, at a time when blocking is acceptable. */
static int object_learn(struct dl_phdr_info *info, size_t size, void *context)
{
    (void)size;
    (void)context;
    for (unsigned i = 0; i < info->dlpi_phnum; i++) {
        if (info->dlpi_phdr[i].p_type == PT_LOAD && info->dlpi_phdr[i].p_flags & PF_X) {
            module_find((uintptr_t)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr));
            break;
        }
    }
    return 0;
}

static void objects_learn(void)
{
    dl_iterate_phdr(object_learn, NULL);
}

#if defined __x86_64__
extern void __fentry__(void);

static void rewriting_begin(void)
{
    void (*volatile first)(void) = __fentry__;
    rewrite_begin(profd_collect_stub, first == profd_collect_stub[1].entry); /* mcount's is known to be */
}
#else
static void rewriting_begin(void)
{
}
#endif

__attribute__((constructor(101))) static void life_begin(void)
{
    static uint32_t begun;
    void (*volatile first)(void) = mcount, (*volatile mine)(void) = profd_collect_mcount;
    if (__atomic_exchange_n(&begun, 1, __ATOMIC_ACQ_REL)) {
        return;
    }
    collect.copies = first != mine;
    if (!collect_start(objects_learn)) {
        return;
    }
    objects_learn(); /* only if the first call was earlier; otherwise nothing is new */
    pthread_atfork(NULL, NULL, collect_start_child);
    thread_prepare();
    thread_begin();
    rewriting_begin();
    sample_prepare();
    if (collect.early_lost) {
        collect_counter_add(ATTACH_COUNTER_CALLS_LOST, collect.early_lost);
    }
}

void life_end(void)
{
    /* A child of vfork() that ends runs in its parent's memory, but is not the parent. */
    if (collect.stage != COLLECT_RUNNING || (uint32_t)raw_call(SYS_getpid, 0, 0, 0, 0) != collect.header->pid) {
        return;
    }
    sample_settle();
    collect.header->counters[ATTACH_COUNTER_ENDED] = 1;
    handover_look_last();
}

__attribute__((destructor(101))) static void life_end_object(void)
{
    life_end();
}

/* gcrt1.o begins and ends profiling by these functions. The constructor has already begun it, and it needs no end. */
void __monstartup(uintptr_t low, uintptr_t high)
{
    (void)low;
    (void)high;
    life_begin();
}

void monstartup(uintptr_t low, uintptr_t high)
{
    __monstartup(low, high);
}

void _mcleanup(void)
{
    if (collect.stage == COLLECT_RUNNING) {
        handover_look();
    }
}

void moncontrol(int mode)
{
    pause_set(PAUSE_BY_PROGRAM, mode == 0);
}

/* Called by -finstrument-functions at the end of a function; calls are counted at its beginning. */
void __cyg_profile_func_exit(void *function, void *site)
{
    (void)function;
    (void)site;
}
