#include "record/record_internal.h"

#include <string.h>

#define STACK_CHAIN (2 * LIMIT_STACK_DEPTH) /* addresses of a chain of the kernel and of a walk together, at most */

static const struct counts_frame OUTSIDE = {.build = COUNTS_NOWHERE, .address = COUNTS_FRAME_OUTSIDE};
static const struct counts_frame INCOMPLETE = {.build = COUNTS_NOWHERE, .address = COUNTS_FRAME_INCOMPLETE};

/* Finds the frame of an address. Returns false if the address is not in executable memory. */
static bool frame_find(struct images *images, struct process *p, uint64_t time, uint64_t address,
                       struct counts_frame *out)
{
    const struct process_map *map = process_find_map(p, address);
    if (!map) {
        return false;
    }
    *out = OUTSIDE;
    out->build = process_find_build(images, p, map->file);
    if (out->build == IMAGE_NONE) {
        struct jit_owner owner = {.pid = p->pid, .uid = p->origin.uid};
        memcpy(owner.key, process_get_key(p), sizeof owner.key);
        if (!jit_find(&p->jit, images, &owner, time, address, out)) {
            *out = OUTSIDE;
        }
    } else if (!images_find_address(images, map->file, address - map->start + map->offset, &out->address)) {
        *out = OUTSIDE;
    }
    return true;
}

/* The context of table_find. */
struct table_walk {
    struct images *images;
    const struct process *process;
};

static bool table_find(void *context, uint64_t address, struct unwind_object *out)
{
    const struct table_walk *w = context;
    const struct process_map *map = process_find_map(w->process, address);
    uint64_t link;
    if (!map || process_find_build(w->images, w->process, map->file) == IMAGE_NONE ||
        !images_find_address(w->images, map->file, address - map->start + map->offset, &link)) {
        return false;
    }
    *out = (struct unwind_object){images_find_table(w->images, map->file), address - link};
    return out->table != NULL;
}

#if defined __aarch64__
#define MACHINE UNWIND_AARCH64
#else
#define MACHINE UNWIND_X86_64
#endif

/* Returns whether the kernel's chain can be followed beyond a return address: the function that it returns to must keep
 * a frame record. A function that keeps none may use the frame pointer for something else, and the next record is not
 * its own. A function without a table is assumed to keep one. */
static bool leads_on(struct table_walk *w, uint64_t address)
{
    struct unwind_object object;
    if (!table_find(w, address - 1, &object)) {
        return true;
    }
    const struct table_rule *r = unwind_table_find(object.table, address - 1 - object.bias);
    return r && unwind_keeps_record(MACHINE, r);
}

/* Sets joined to the addresses of a stack, innermost first: those that the walk by tables finds in the copied end of
 * the stack, followed by the kernel's chain of frame records, as far as each is known to be the next. Returns whether
 * the stack is complete: the walk reached the outermost frame, or the chain ends. */
static bool chain_join(struct table_walk *w, const struct event *e, const uint64_t *chain, uint64_t chain_count,
                       uint64_t joined[STACK_CHAIN], uint64_t *count)
{
    const uint64_t *r = e->registers;
    struct unwind_records records;
    uint32_t returns;
#if defined __aarch64__
    const struct unwind_thread t = {.machine = MACHINE,
                                    .fp = r[0],
                                    .link = r[1],
                                    .sp = r[2],
                                    .pc = r[3],
                                    .base = r[2],
                                    .stack = e->stack,
                                    .size = e->stack_size};
#else
    const struct unwind_thread t = {
        .machine = MACHINE, .fp = r[0], .sp = r[1], .pc = r[2], .base = r[1], .stack = e->stack, .size = e->stack_size};
#endif
    joined[0] = t.pc;
    const enum unwind_end end = unwind_walk(&t, table_find, w, joined + 1, NULL, &returns, &records);
    *count = returns + 1;
    if (end == UNWIND_COMPLETE) {
        return true;
    }
    if (!records.next || chain_count == 0 || chain[0] != joined[0]) {
        return false;
    }
    for (uint64_t i = 1 + (uint64_t)records.passed; i < chain_count; i++) {
        if (*count == STACK_CHAIN) {
            return false;
        }
        joined[(*count)++] = chain[i];
        if (i + 1 < chain_count && !leads_on(w, chain[i])) {
            return false;
        }
    }
    return chain_count > 1 && chain_count < LIMIT_STACK_DEPTH - 1;
}

/* Adds the kernel's part, innermost first, and returns its length. The user's address that follows is interrupted, or
 * the address of a system call: it is no return address. A return address belongs to the function one byte before it,
 * so one is added to that address later. */
static uint32_t kernel_frames(const struct kernel *k, const struct event *e, struct sample_stack *out)
{
    uint32_t n = 0;
    bool inside = false;
    for (uint64_t i = 0; i < e->chain_count && n < LIMIT_STACK_DEPTH - 2; i++) {
        if (e->chain[i] >= PERF_CONTEXT_MAX) {
            inside = e->chain[i] == PERF_CONTEXT_KERNEL;
        } else if (inside) {
            kernel_find_frame(k, e->chain[i], &out->frames[n++]);
        }
    }
    if (n == 0 && (e->misc & PERF_RECORD_MISC_CPUMODE_MASK) == PERF_RECORD_MISC_KERNEL) {
        kernel_find_frame(k, 0, &out->frames[n++]); /* chains are without it */
    }
    return n;
}

/* Adds the user's part, and returns whether the outermost frame is known. */
static bool user_frames(struct images *images, struct process *p, const struct event *e, struct sample_stack *out)
{
    uint64_t n = 0, joined[STACK_CHAIN];
    const uint64_t *chain = NULL;
    for (uint64_t i = 0; i < e->chain_count; i++) { /* find the user's part, innermost first */
        if (e->chain[i] >= PERF_CONTEXT_MAX) {      /* a mark */
            chain = e->chain[i] == PERF_CONTEXT_USER ? e->chain + i + 1 : chain;
            n = 0;
        } else {
            n++;
        }
    }
    n = chain ? n : 0;
    bool complete = n > 1 && n < LIMIT_STACK_DEPTH - 1;
    if (e->registers) {
        struct table_walk walk = {images, p};
        complete = chain_join(&walk, e, chain, n, joined, &n);
        chain = joined;
    }
    const uint32_t first = out->count;
    for (uint64_t i = 0; i < n; i++) {
        if (out->count == LIMIT_STACK_DEPTH - 1) {
            return false;
        }
        if (frame_find(images, p, e->time, chain[i], &out->frames[out->count])) {
            out->count++;
        } else if (i == 0) {
            out->frames[out->count++] = OUTSIDE;
        } else {
            return false;
        }
    }
    if (first > 0 && out->count > first && out->frames[first].build != COUNTS_NOWHERE) {
        out->frames[first].address++; /* see kernel_frames */
    }
    return complete;
}

bool stack_find(struct images *images, const struct kernel *k, struct process *p, const struct event *e,
                struct sample_stack *out)
{
    const bool has_user = p->map_count > 0;
    out->count = kernel_frames(k, e, out);
    const bool complete = has_user ? user_frames(images, p, e, out) : out->count > 0;
    if (out->count == 0) {
        return false;
    }
    if (!complete) {
        out->frames[out->count++] = INCOMPLETE;
    }
    out->frames[0].kind = COUNTS_NODE_PC;
    for (uint32_t i = 0, last = out->count - 1; i < last; i++, last--) { /* outermost first */
        const struct counts_frame f = out->frames[i];
        out->frames[i] = out->frames[last];
        out->frames[last] = f;
    }
    return true;
}
