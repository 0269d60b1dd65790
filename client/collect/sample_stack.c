#include "client/collect/sample_stack.h"

#include <stdbool.h>
#include <ucontext.h>

#include "client/collect/collect.h"
#include "client/collect/module.h"
#include "client/collect/stub.h"
#include "client/collect/table.h"

#define FRAMES_MAX 64u

#if defined __x86_64__
static void context_read(const void *context, uintptr_t *pc, uintptr_t *sp, uintptr_t *fp)
{
    const ucontext_t *c = context;
    *pc = (uintptr_t)c->uc_mcontext.gregs[REG_RIP];
    *sp = (uintptr_t)c->uc_mcontext.gregs[REG_RSP];
    *fp = (uintptr_t)c->uc_mcontext.gregs[REG_RBP];
}

static uintptr_t address_plain(uintptr_t address)
{
    return address;
}
#else
static void context_read(const void *context, uintptr_t *pc, uintptr_t *sp, uintptr_t *fp)
{
    const ucontext_t *c = context;
    *pc = (uintptr_t)c->uc_mcontext.pc;
    *sp = (uintptr_t)c->uc_mcontext.sp;
    *fp = (uintptr_t)c->uc_mcontext.regs[29];
}

/* Return addresses may carry a signature. */
static uintptr_t address_plain(uintptr_t address)
{
    register uintptr_t x30 __asm__("x30") = address;
    __asm__("hint 7" : "+r"(x30)); /* xpaclri */
    return x30;
}
#endif

uintptr_t sample_stack_pc(const void *context)
{
    uintptr_t pc, sp, fp;
    context_read(context, &pc, &sp, &fp);
    return pc;
}

static void pair_count(uintptr_t from, uintptr_t self, const struct module_place *caller,
                       const struct module_place *callee, uint64_t weight)
{
    struct table_entry entry = {stub_key(from, self), {caller->offset, callee->offset, caller->module, callee->module}};
    if (!table_count_shared(ATTACH_KIND_PAIRS, &entry, weight)) {
        collect_word_add(ATTACH_WORD_PAIRS_DROPPED, weight);
    }
}

/* True if the pair stood further down in this sample: recursion counts it once. */
static bool is_repeated(const uintptr_t *pcs, unsigned n)
{
    for (unsigned i = 0; i + 2 < n; i++) {
        if (pcs[i] == pcs[n - 2] && pcs[i + 1] == pcs[n - 1]) {
            return true;
        }
    }
    return false;
}

void sample_stack_pairs(const void *context, uintptr_t low, uintptr_t high, uint64_t weight)
{
    uintptr_t pcs[FRAMES_MAX], sp, fp;
    unsigned n = 1;
    context_read(context, &pcs[0], &sp, &fp);
    if (sp < low || sp >= high) {
        return;
    }
    struct module_place callee = module_find(pcs[0]);
    while (n < FRAMES_MAX && fp >= sp && fp % sizeof fp == 0 && fp < high && high - fp >= 2 * sizeof fp) {
        const uintptr_t *frame = (const uintptr_t *)fp;
        uintptr_t back = address_plain(frame[1]);
        struct module_place caller = module_find(back);
        if (caller.module == ATTACH_MODULE_NONE || callee.module == ATTACH_MODULE_NONE) {
            break; /* not a frame: code without frame pointers keeps anything there */
        }
        pcs[n++] = back;
        if (!is_repeated(pcs, n)) {
            pair_count(back, pcs[n - 2], &caller, &callee, weight);
        }
        callee = caller;
        sp = fp + 1; /* upwards only */
        fp = frame[0];
    }
}
