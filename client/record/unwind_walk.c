#include "record/record_internal.h"

#include <string.h>

#define WORD 8u
#define ADDRESS_BITS 48 /* AArch64: the bits above may be a signature */

/* A frame on the way. */
struct walk_frame {
    uint64_t pc, sp, fp, link;
    bool fp_known, link_known;
    bool called;     /* pc is a return address */
    bool on_records; /* fp is that of the thread, or of the records that it leads to */
    bool is_record;  /* the function's record is at fp */
    uint32_t passed;
};

/* Reads a word of the copied stack. */
static bool read_word(const struct unwind_thread *t, uint64_t at, uint64_t *out)
{
    if (at < t->base || at - t->base > t->size || t->size - (at - t->base) < WORD) {
        return false;
    }
    memcpy(out, t->stack + (at - t->base), WORD);
    return true;
}

/* Finds the CFA. pc is a link-time address. */
static enum unwind_end find_cfa(const struct unwind_thread *t, const struct walk_frame *f, const struct table_rule *r,
                                uint64_t pc, uint64_t *cfa)
{
    uint64_t offset = (uint64_t)(int64_t)r->cfa_offset, more = (uint64_t)(int64_t)r->cfa_more, word;
    bool by_fp = r->cfa == UNWIND_CFA_FP || r->cfa == UNWIND_CFA_AT_FP;
    if (r->cfa == UNWIND_CFA_NONE || (by_fp && !f->fp_known)) {
        return UNWIND_NO_RULE;
    }
    *cfa = (by_fp ? f->fp : f->sp) + offset;
    if (r->cfa == UNWIND_CFA_PLT) {
        *cfa += (pc & 15) >= more ? WORD : 0;
    } else if (r->cfa == UNWIND_CFA_AT_SP || r->cfa == UNWIND_CFA_AT_FP) {
        if (!read_word(t, *cfa, &word)) {
            return UNWIND_SHORT;
        }
        *cfa = word + more;
    }
    return UNWIND_COMPLETE;
}

/* Finds the caller's value of a register. here: its value in this frame, if it is known. */
static enum unwind_end find_value(const struct unwind_thread *t, const struct walk_frame *f, uint8_t place,
                                  int32_t offset, uint64_t cfa, bool known, uint64_t here, uint64_t *out)
{
    uint64_t from;
    switch (place) {
    case UNWIND_SAME:
        *out = here;
        return known ? UNWIND_COMPLETE : UNWIND_NO_RULE;
    case UNWIND_AT_CFA:
        from = cfa;
        break;
    case UNWIND_AT_SP:
        from = f->sp;
        break;
    case UNWIND_AT_FP:
        if (!f->fp_known) {
            return UNWIND_NO_RULE;
        }
        from = f->fp;
        break;
    default:
        return UNWIND_NO_RULE;
    }
    return read_word(t, from + (uint64_t)(int64_t)offset, out) ? UNWIND_COMPLETE : UNWIND_SHORT;
}

bool unwind_keeps_record(enum unwind_machine machine, const struct table_rule *r)
{
    return r->fp == UNWIND_AT_CFA && r->link == UNWIND_AT_CFA &&
           (int64_t)r->link_offset == (int64_t)r->fp_offset + WORD &&
           (machine == UNWIND_AARCH64 || (r->cfa == UNWIND_CFA_FP && r->cfa_offset + (int64_t)r->fp_offset == 0));
}

/* Steps to the caller. *outermost is set if there is none. */
static enum unwind_end step(const struct unwind_thread *t, struct walk_frame *f, const struct unwind_object *object,
                            bool *outermost)
{
    uint64_t pc = f->pc - object->bias, cfa;
    const struct table_rule *r = unwind_table_find(object->table, pc - f->called);
    if (!r) {
        return UNWIND_NO_ENTRY;
    }
    if (r->link == UNWIND_OUTERMOST) {
        *outermost = true;
        return UNWIND_COMPLETE;
    }
    f->is_record = f->on_records && unwind_keeps_record(t->machine, r);
    enum unwind_end end = find_cfa(t, f, r, pc, &cfa);
    if (end != UNWIND_COMPLETE) {
        return end;
    }
    struct walk_frame caller = {.sp = cfa, .called = !r->is_signal};
    f->is_record = f->is_record && (!f->fp_known || cfa + (uint64_t)(int64_t)r->fp_offset == f->fp);
    /* Each call uses some of the stack, except that of the innermost function on a machine with a link register. A
     * signal's handler may have a stack of its own. */
    bool further = t->machine == UNWIND_AARCH64 && !f->called ? cfa >= f->sp : cfa > f->sp;
    if (!further && !r->is_signal) {
        return UNWIND_BROKEN;
    }
    end = find_value(t, f, r->link, r->link_offset, cfa, f->link_known, f->link, &caller.pc);
    if (end != UNWIND_COMPLETE) {
        return end;
    }
    if (t->machine == UNWIND_AARCH64) {
        caller.pc &= (UINT64_C(1) << ADDRESS_BITS) - 1;
    }
    /* In its epilogue a function has popped the caller's frame pointer, and compilers write no rule for these last
     * instructions. The place below the stack pointer is not copied, and the register has the value. */
    const bool popped = !f->called && r->fp == UNWIND_AT_CFA && cfa + (uint64_t)(int64_t)r->fp_offset < f->sp;
    caller.fp_known = find_value(t, f, popped ? UNWIND_SAME : r->fp, r->fp_offset, cfa, f->fp_known, f->fp,
                                 &caller.fp) == UNWIND_COMPLETE;
    const bool same = caller.fp_known ? f->fp_known && caller.fp == f->fp : !f->fp_known && r->fp == UNWIND_SAME;
    caller.on_records = f->is_record || (f->on_records && same);
    caller.passed = f->passed + f->is_record;
    *outermost = caller.pc == 0;
    *f = caller;
    return UNWIND_COMPLETE;
}

enum unwind_end unwind_walk(const struct unwind_thread *thread, unwind_find *find, void *context, uint64_t *returns,
                            bool *interrupted, uint32_t *count, struct unwind_records *records)
{
    struct walk_frame f = {.pc = thread->pc,
                           .sp = thread->sp,
                           .fp = thread->fp,
                           .link = thread->link,
                           .fp_known = true,
                           .on_records = true,
                           .link_known = thread->machine == UNWIND_AARCH64};
    struct unwind_object object = {NULL, 0};
    enum unwind_end end = UNWIND_COMPLETE;
    bool outermost = false;
    for (*count = 0;; ++*count) {
        if (!find(context, f.pc - f.called, &object)) {
            end = UNWIND_NO_TABLE;
            break;
        }
        end = step(thread, &f, &object, &outermost);
        if (end == UNWIND_COMPLETE && !outermost && *count == UNWIND_RETURNS) {
            end = UNWIND_DEEP;
        }
        if (end != UNWIND_COMPLETE || outermost) {
            break;
        }
        returns[*count] = f.pc;
        if (interrupted) {
            interrupted[*count] = !f.called;
        }
    }
    if (records) {
        records->passed = f.passed;
        records->next =
            end == UNWIND_NO_TABLE ? f.on_records : (end == UNWIND_SHORT || end == UNWIND_NO_RULE) && f.is_record;
    }
    return end;
}
