#include "client/collect/unwind.h"

#include <stddef.h>

#include "client/collect/cfi.h"

#if defined __x86_64__
static const struct cfi_registers registers = {.fp = 6, .sp = 7, .link = 16};
#define HAS_LINK false
#else
static const struct cfi_registers registers = {.fp = 29, .sp = 31, .link = 30};
#define HAS_LINK true
#endif

/* Finds the entry of the code at pc. */
static bool find_entry(const struct unwind_place *in, uintptr_t pc, struct frame_entry *out)
{
    const struct frame_table *t = in->table ? frame_table_at(in->bytes, in->table) : NULL;
    uint32_t from = 0, to = t ? t->count : 0;
    while (from < to) { /* the first row behind pc */
        uint32_t middle = from + (to - from) / 2;
        if (in->table + (uintptr_t)(intptr_t)t->rows[middle].function <= pc) {
            from = middle + 1;
        } else {
            to = middle;
        }
    }
    return from > 0 && frame_entry_read(in->bytes, in->table + (uintptr_t)(intptr_t)t->rows[from - 1].frame, out) &&
           pc >= out->begin && pc - out->begin < out->size;
}

/* Computes the row that is valid at pc. *begin: of its function. */
static bool find_row(const struct unwind_place *in, uintptr_t pc, struct cfi_machine *m, struct frame_common *common,
                     uintptr_t *begin)
{
    struct frame_entry entry;
    if (!find_entry(in, pc, &entry) || !frame_common_read(in->bytes, entry.common, common) || common->is_signal ||
        !cfi_begin(m, &registers, common)) {
        return false;
    }
    *begin = entry.begin;
    cfi_enter(m, entry.program, entry.begin, entry.size);
    while (cfi_next(m)) {
        if (pc < m->next) {
            return m->row.cfa == CFI_CFA_REGISTER;
        }
    }
    return false;
}

/* Reads the caller's value of a register. */
static bool recover(const struct cfi_rule *rule, uintptr_t cfa, const struct unwind_frame *f, uintptr_t high,
                    uintptr_t *value)
{
    uintptr_t at = cfa + (uintptr_t)rule->offset;
    if (rule->kind == CFI_AT && at >= f->sp && at % sizeof at == 0 && at <= high - sizeof at) {
        *value = *(const uintptr_t *)at;
        return true;
    }
    return rule->kind == CFI_SAME;
}

bool unwind_step(const struct unwind_place *in, struct unwind_frame *frame, uintptr_t high, bool called)
{
    struct cfi_machine m;
    struct frame_common common;
    uintptr_t begin;
    if (high < sizeof high || !find_row(in, frame->pc - called, &m, &common, &begin) ||
        (m.row.cfa_register != registers.sp && m.row.cfa_register != registers.fp)) {
        return false;
    }
    uintptr_t cfa = (m.row.cfa_register == registers.sp ? frame->sp : frame->fp) + (uintptr_t)m.row.cfa_offset;
    struct unwind_frame caller = {frame->link, cfa, frame->fp, 0, begin};
    /* Each call uses some of the stack, except that of the innermost function on a machine with a link register. */
    bool further = HAS_LINK && !called ? cfa >= frame->sp : cfa > frame->sp;
    if (!further || cfa > high || !recover(&m.row.link, cfa, frame, high, &caller.pc) || caller.pc == 0) {
        return false;
    }
    if (!recover(&m.row.fp, cfa, frame, high, &caller.fp)) {
        caller.fp = 0; /* a CFA that depends on it is then not found */
    }
    *frame = caller;
    return true;
}
