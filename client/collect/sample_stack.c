#include "client/collect/sample_stack.h"

#include <stdbool.h>
#include <ucontext.h>

#include "client/collect/collect.h"
#include "client/collect/module.h"
#include "client/collect/stub.h"
#include "client/collect/table.h"
#include "client/collect/unload.h"

#define FRAMES_MAX 64u

#if defined __x86_64__
static struct unwind_frame context_read(const void *context)
{
    const ucontext_t *c = context;
    return (struct unwind_frame){(uintptr_t)c->uc_mcontext.gregs[REG_RIP], (uintptr_t)c->uc_mcontext.gregs[REG_RSP],
                                 (uintptr_t)c->uc_mcontext.gregs[REG_RBP], 0, 0};
}

static uintptr_t address_plain(uintptr_t address)
{
    return address;
}
#else
static struct unwind_frame context_read(const void *context)
{
    const ucontext_t *c = context;
    return (struct unwind_frame){(uintptr_t)c->uc_mcontext.pc, (uintptr_t)c->uc_mcontext.sp,
                                 (uintptr_t)c->uc_mcontext.regs[29], (uintptr_t)c->uc_mcontext.regs[30], 0};
}

/* Return addresses may contain a signature. */
static uintptr_t address_plain(uintptr_t address)
{
    register uintptr_t x30 __asm__("x30") = address;
    __asm__("hint 7" : "+r"(x30)); /* xpaclri */
    return x30;
}
#endif

uintptr_t sample_stack_pc(const void *context)
{
    return context_read(context).pc;
}

static void pair_count(uintptr_t from, uintptr_t self, const struct module_place *caller,
                       const struct module_place *callee, uint64_t weight)
{
    struct table_entry entry = {stub_key(from, self), {caller->offset, callee->offset, caller->module, callee->module}};
    if (!table_count_shared(ATTACH_KIND_PAIRS, &entry, weight)) {
        collect_counter_add(ATTACH_COUNTER_PAIRS_DROPPED, weight);
    }
}

/* True if the pair was found before in this sample: recursion counts it once. */
static bool is_repeated(const uintptr_t *pcs, unsigned n)
{
    for (unsigned i = 0; i + 2 < n; i++) {
        if (pcs[i] == pcs[n - 2] && pcs[i + 1] == pcs[n - 1]) {
            return true;
        }
    }
    return false;
}

static void pairs_count(struct unwind_frame frame, uintptr_t high, uint64_t weight)
{
    uintptr_t pcs[FRAMES_MAX];
    unsigned n = 1;
    uint32_t known = 0;
    struct unwind_place unwind;
    pcs[0] = frame.pc;
    struct module_place callee = module_find(frame.pc);
    while (n < FRAMES_MAX && callee.module != ATTACH_MODULE_NONE &&
           module_find_unwind(frame.pc - (n > 1), &known, &unwind) && unwind_step(&unwind, &frame, high, n > 1)) {
        frame.pc = address_plain(frame.pc);
        struct module_place caller = module_find(frame.pc);
        if (caller.module == ATTACH_MODULE_NONE) {
            break;
        }
        pcs[n++] = frame.pc;
        if (!is_repeated(pcs, n)) { /* the callee is identified by its first address: without symbols, functions are not
                                       known otherwise */
            struct module_place entry = module_find(frame.left);
            pair_count(frame.pc, frame.left, &caller, entry.module == callee.module ? &entry : &callee, weight);
        }
        callee = caller;
    }
}

void sample_stack_pairs(const void *context, uintptr_t low, uintptr_t high, uint64_t weight)
{
    struct unwind_frame frame = context_read(context);
    if (frame.sp < low || frame.sp >= high) {
        return;
    }
    if (unload_read_begin()) {
        pairs_count(frame, high, weight);
        unload_read_end();
    } else {
        collect_counter_add(ATTACH_COUNTER_PAIRS_DROPPED, weight);
    }
}
