#include "client/collect/stack.h"

#include <signal.h>
#include <ucontext.h>

#include "client/collect/collect.h"
#include "client/collect/module.h"
#include "client/collect/stack_tree.h"
#include "client/collect/unload.h"
#include "client/collect/unwind.h"

#define REPLACING 3u     /* frames that may run while a function replaces what it has saved: copying, and itself */
#define PAGE_ZERO 65536u /* no program has code below */

#if defined __x86_64__
/* Bytes below the stack pointer that signals do not touch. In its epilogue a function has popped what its unwind
 * information says is there. */
#define RED_ZONE 128u

static struct unwind_frame context_read(const void *context)
{
    const ucontext_t *c = context;
    uintptr_t sp = (uintptr_t)c->uc_mcontext.gregs[REG_RSP];
    return (struct unwind_frame){(uintptr_t)c->uc_mcontext.gregs[REG_RIP], sp, (uintptr_t)c->uc_mcontext.gregs[REG_RBP],
                                 0, sp - RED_ZONE};
}

static uintptr_t address_plain(uintptr_t address)
{
    return address;
}

#define CALL_MAX 7u /* bytes of a call instruction, without prefixes */

/* Length of an indirect call of the bytes 0xff, modrm, sib. */
static unsigned call_length(uint8_t modrm, uint8_t sib)
{
    unsigned mode = modrm >> 6, base = modrm & 7, length = mode != 3 && base == 4 ? 3 : 2;
    if (mode == 1) {
        return length + 1;
    }
    bool wide = mode == 2 || (mode == 0 && (base == 5 || (base == 4 && (sib & 7) == 5)));
    return length + (wide ? 4 : 0);
}

static bool is_call_before(const uint8_t *end)
{
    if (end[-5] == 0xe8) {
        return true;
    }
    for (unsigned n = 2; n <= CALL_MAX; n++) {
        const uint8_t *p = end - n;
        if (p[0] == 0xff && (p[1] >> 3 & 7) == 2 && call_length(p[1], n > 2 ? p[2] : 0) == n) {
            return true;
        }
    }
    return false;
}
#else
static struct unwind_frame context_read(const void *context)
{
    const ucontext_t *c = context;
    uintptr_t sp = (uintptr_t)c->uc_mcontext.sp;
    return (struct unwind_frame){(uintptr_t)c->uc_mcontext.pc, sp, (uintptr_t)c->uc_mcontext.regs[29],
                                 (uintptr_t)c->uc_mcontext.regs[30], sp};
}

/* Return addresses may contain a signature. */
static uintptr_t address_plain(uintptr_t address)
{
    register uintptr_t x30 __asm__("x30") = address;
    __asm__("hint 7" : "+r"(x30)); /* xpaclri */
    return x30;
}

#define CALL_MAX 4u

static bool is_call_before(const uint8_t *end)
{
    uint32_t op = (uint32_t)end[-4] | (uint32_t)end[-3] << 8 | (uint32_t)end[-2] << 16 | (uint32_t)end[-1] << 24;
    return (op & 0xfc000000u) == 0x94000000u || (op & 0xfefff800u) == 0xd63f0800u || (op & 0xfffffc1fu) == 0xd63f0000u;
}
#endif

uintptr_t stack_get_pc(const void *context)
{
    return context_read(context).pc;
}

/* --- rules of return addresses that were seen before. Any thread reads and replaces them; an entry is valid if its
 * sequence is even and the same before and after. --- */

#define CACHE_SIZE 4096u
#define CACHE_FACTOR 0x9e3779b97f4a7c15u

static struct cached {
    uint32_t sequence; /* odd: being written */
    uint32_t above;    /* pc − begin */
    uint64_t pc;       /* 0: empty */
    int32_t cfa_offset, fp_offset, link_offset;
    uint8_t cfa, fp, link, replaces;
} cache[CACHE_SIZE];

static struct cached *cached_at(uintptr_t pc)
{
    return &cache[(pc * CACHE_FACTOR >> 32) % CACHE_SIZE];
}

static bool cache_find(uintptr_t pc, struct unwind_rule *out)
{
    const struct cached *c = cached_at(pc);
    uint32_t sequence = __atomic_load_n(&c->sequence, __ATOMIC_ACQUIRE);
    if (__atomic_load_n(&c->pc, __ATOMIC_RELAXED) != pc || sequence % 2) {
        return false;
    }
    out->begin = pc - __atomic_load_n(&c->above, __ATOMIC_RELAXED);
    out->cfa_offset = __atomic_load_n(&c->cfa_offset, __ATOMIC_RELAXED);
    out->fp_offset = __atomic_load_n(&c->fp_offset, __ATOMIC_RELAXED);
    out->link_offset = __atomic_load_n(&c->link_offset, __ATOMIC_RELAXED);
    out->cfa = __atomic_load_n(&c->cfa, __ATOMIC_RELAXED);
    out->fp = __atomic_load_n(&c->fp, __ATOMIC_RELAXED);
    out->link = __atomic_load_n(&c->link, __ATOMIC_RELAXED);
    out->replaces = __atomic_load_n(&c->replaces, __ATOMIC_RELAXED);
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    return __atomic_load_n(&c->sequence, __ATOMIC_RELAXED) == sequence;
}

static void cache_put(uintptr_t pc, const struct unwind_rule *rule)
{
    struct cached *c = cached_at(pc);
    uint32_t sequence = __atomic_load_n(&c->sequence, __ATOMIC_RELAXED);
    if (sequence % 2 || pc - rule->begin > UINT32_MAX ||
        !__atomic_compare_exchange_n(&c->sequence, &sequence, sequence + 1, false, __ATOMIC_ACQ_REL,
                                     __ATOMIC_RELAXED)) {
        return;
    }
    __atomic_thread_fence(__ATOMIC_RELEASE);
    __atomic_store_n(&c->pc, pc, __ATOMIC_RELAXED);
    __atomic_store_n(&c->above, (uint32_t)(pc - rule->begin), __ATOMIC_RELAXED);
    __atomic_store_n(&c->cfa_offset, rule->cfa_offset, __ATOMIC_RELAXED);
    __atomic_store_n(&c->fp_offset, rule->fp_offset, __ATOMIC_RELAXED);
    __atomic_store_n(&c->link_offset, rule->link_offset, __ATOMIC_RELAXED);
    __atomic_store_n(&c->cfa, rule->cfa, __ATOMIC_RELAXED);
    __atomic_store_n(&c->fp, rule->fp, __ATOMIC_RELAXED);
    __atomic_store_n(&c->link, rule->link, __ATOMIC_RELAXED);
    __atomic_store_n(&c->replaces, rule->replaces, __ATOMIC_RELAXED);
    __atomic_store_n(&c->sequence, sequence + 2, __ATOMIC_RELEASE);
}

void stack_forget(void)
{
    for (unsigned i = 0; i < CACHE_SIZE; i++) {
        if (__atomic_load_n(&cache[i].pc, __ATOMIC_RELAXED)) {
            __atomic_store_n(&cache[i].pc, 0, __ATOMIC_RELEASE);
        }
    }
}

/* --- the walk --- */

enum known { RULE_KNOWN, RULE_ABSENT, RULE_UNUSABLE };

/* Finds the rule for pc. ABSENT: no unwind information speaks of this code. */
static enum known rule_find(uintptr_t pc, bool called, uint32_t *object, struct unwind_rule *rule)
{
    struct unwind_info unwind;
    bool absent = true;
    if (called && cache_find(pc, rule)) {
        return RULE_KNOWN;
    }
    module_find(pc); /* it may be of an object that was not seen before */
    if (!module_find_unwind(pc - called, object, &unwind)) {
        return RULE_ABSENT;
    }
    if (!unwind_find(&unwind, pc, called, rule, &absent)) {
        return absent ? RULE_ABSENT : RULE_UNUSABLE;
    }
    if (called) {
        cache_put(pc, rule);
    }
    return RULE_KNOWN;
}

/* Steps by the frame pointer, which the function may not keep: only to a return address behind a call. */
static bool step_by_pointer(struct unwind_frame *frame, uintptr_t high, uint32_t *object)
{
    uintptr_t at = frame->fp;
    if (high < 2 * sizeof at || at < frame->sp || at % (2 * sizeof at) || at > high - 2 * sizeof at) {
        return false;
    }
    uintptr_t pc = address_plain(((const uintptr_t *)at)[1]);
    module_find(pc); /* it may be of an object that was not seen before */
    if (pc < PAGE_ZERO || !module_has_code(pc - CALL_MAX, pc, object) || !is_call_before((const uint8_t *)pc)) {
        return false;
    }
    uintptr_t sp = at + 2 * sizeof at;
    *frame = (struct unwind_frame){pc, sp, ((const uintptr_t *)at)[0], 0, sp};
    return true;
}

/* Steps to the caller of the frame with `inner` frames below it. */
static enum unwind_step step(struct unwind_frame *frame, uintptr_t high, unsigned inner, uint32_t *object)
{
    struct unwind_rule rule;
    bool called = inner > 0;
    enum known known = rule_find(frame->pc, called, object, &rule);
    if (known == RULE_ABSENT) {
        return step_by_pointer(frame, high, object) ? UNWIND_STEPPED : UNWIND_STUCK;
    }
    if (known == RULE_UNUSABLE || (rule.replaces && inner < REPLACING)) {
        return UNWIND_STUCK;
    }
    enum unwind_step end = unwind_apply(&rule, frame, high, called);
    if (end == UNWIND_STEPPED) {
        frame->pc = address_plain(frame->pc);
    }
    return end;
}

static uintptr_t begin_find(uintptr_t pc, bool called)
{
    struct unwind_rule rule;
    uint32_t object = 0;
    return rule_find(pc, called, &object, &rule) == RULE_KNOWN ? rule.begin : 0;
}

static uintptr_t begin_unknown(uintptr_t pc, bool called)
{
    (void)pc;
    (void)called;
    return 0;
}

void stack_count(const void *context, uintptr_t low, uintptr_t high, uint64_t weight)
{
    struct unwind_frame frame = context_read(context);
    uintptr_t pcs[STACK_TREE_FRAMES_MAX];
    unsigned n = 1;
    bool complete = false, reading = unload_read_begin(), fits;
    pcs[0] = frame.pc;
    if (reading && frame.floor >= low && frame.sp < high) {
        uint32_t object = 0;
        enum unwind_step end;
        while ((end = step(&frame, high, n - 1, &object)) == UNWIND_STEPPED && n < STACK_TREE_FRAMES_MAX &&
               frame.pc >= PAGE_ZERO && (frame.pc < low || frame.pc >= high)) {
            pcs[n++] = frame.pc;
        }
        complete = end == UNWIND_END;
    }
    fits = stack_tree_count(pcs, n, complete, weight, reading ? begin_find : begin_unknown);
    if (reading) {
        unload_read_end();
    }
    if (!fits || !reading) {
        collect_counter_add(ATTACH_COUNTER_PAIRS_DROPPED, weight);
    }
}
