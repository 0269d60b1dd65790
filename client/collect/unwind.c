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
static bool find_entry(const struct unwind_info *in, uintptr_t pc, struct frame_entry *out)
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

/* Computes the row that is valid at pc. *begin: of its function; *absent: no entry is about this code. */
static bool find_row(const struct unwind_info *in, uintptr_t pc, struct cfi_machine *m, struct frame_common *common,
                     uintptr_t *begin, bool *absent)
{
    struct frame_entry entry;
    *absent = !find_entry(in, pc, &entry);
    if (*absent || !frame_common_read(in->bytes, entry.common, common) || common->is_signal ||
        !cfi_begin(m, &registers, common)) {
        return false;
    }
    *begin = entry.begin;
    cfi_enter(m, entry.program, entry.begin, entry.size);
    while (cfi_next(m)) {
        if (pc < m->next) {
            return true;
        }
    }
    return false;
}

/* Operations of expressions. */
enum { OP_DEREF = 0x06, OP_LITERAL = 0x30, OP_REGISTER = 0x70 };

static struct frame_cursor expression_open(const uint8_t *expression)
{
    struct frame_cursor c = {expression, expression + 10, false};
    uint64_t size = frame_take_unsigned(&c);
    c.end = c.at + size;
    return c;
}

static bool is_over(const struct frame_cursor *c)
{
    return !c->bad && c->at == c->end;
}

/* True if it begins with the frame pointer and an offset. */
static bool take_fp(struct frame_cursor *c, int64_t *offset)
{
    bool same = frame_take_byte(c) == OP_REGISTER + registers.fp;
    *offset = same ? frame_take_signed(c) : 0;
    return same;
}

/* The linker's expression for a procedure linkage table. On x86-64 its entries have 16 bytes: an entry pushes its
 * number with the instruction before byte `after`. */
static bool cfa_is_table(const uint8_t *expression, uintptr_t pc, int64_t *offset)
{
    static const uint8_t begin[] = {0x77, 8, 0x80, 0, 0x3f, 0x1a}, end[] = {0x2a, 0x33, 0x24, 0x22};
    struct frame_cursor c = expression_open(expression);
    bool same = !HAS_LINK;
    for (unsigned i = 0; i < sizeof begin && same; i++) {
        same = frame_take_byte(&c) == begin[i];
    }
    unsigned after = (unsigned)frame_take_byte(&c) - OP_LITERAL;
    for (unsigned i = 0; i < sizeof end && same; i++) {
        same = frame_take_byte(&c) == end[i];
    }
    *offset = 8 + ((pc & 15) >= after ? 8 : 0);
    return same && after < 16 && is_over(&c);
}

static bool cfa_find(const struct cfi_row *row, uintptr_t pc, struct unwind_rule *out, int64_t *offset)
{
    *offset = row->cfa_offset;
    if (row->cfa == CFI_CFA_EXPRESSION) {
        out->cfa = UNWIND_LOADED;
        if (cfa_is_table(row->cfa_expression, pc, offset)) {
            out->cfa = UNWIND_SP;
            return true;
        }
        /* The expression of code that aligns its stack: the CFA was stored in the frame. */
        struct frame_cursor c = expression_open(row->cfa_expression);
        return take_fp(&c, offset) && frame_take_byte(&c) == OP_DEREF && is_over(&c);
    }
    out->cfa = row->cfa_register == registers.sp ? UNWIND_SP : UNWIND_FP;
    return row->cfa == CFI_CFA_REGISTER && (row->cfa_register == registers.sp || row->cfa_register == registers.fp);
}

static uint8_t location_find(const struct cfi_rule *rule, bool is_link, int64_t *offset)
{
    *offset = 0;
    if (rule->kind == CFI_AT) {
        *offset = rule->offset;
        return UNWIND_AT;
    }
    if (rule->kind == CFI_EXPRESSION) {
        struct frame_cursor c = expression_open(rule->expression);
        return take_fp(&c, offset) && is_over(&c) ? UNWIND_AT_FP : UNWIND_LOST;
    }
    return rule->kind == CFI_SAME                   ? UNWIND_SAME
           : rule->kind == CFI_UNDEFINED && is_link ? UNWIND_OUTERMOST
                                                    : UNWIND_LOST;
}

static bool is_small(int64_t offset)
{
    return offset >= INT32_MIN && offset <= INT32_MAX;
}

bool unwind_find(const struct unwind_info *in, uintptr_t pc, bool called, struct unwind_rule *out, bool *absent)
{
    struct cfi_machine m;
    struct frame_common common;
    int64_t cfa, fp, link;
    if (!find_row(in, pc - called, &m, &common, &out->begin, absent) || !cfa_find(&m.row, pc - called, out, &cfa)) {
        return false;
    }
    out->fp = location_find(&m.row.fp, false, &fp);
    out->link = location_find(&m.row.link, true, &link);
    out->replaces = m.row.replaces;
    out->cfa_offset = (int32_t)cfa;
    out->fp_offset = (int32_t)fp;
    out->link_offset = (int32_t)link;
    return is_small(cfa) && is_small(fp) && is_small(link);
}

/* Reads a word of the stack. */
static bool load(uintptr_t at, const struct unwind_frame *f, uintptr_t high, uintptr_t *value)
{
    if (at < f->floor || at % sizeof at || at > high - sizeof at) {
        return false;
    }
    *value = *(const uintptr_t *)at;
    return true;
}

/* Finds the caller's value of a register; *value is what the register contains. */
static bool recover(unsigned kind, int32_t offset, uintptr_t cfa, const struct unwind_frame *f, uintptr_t high,
                    uintptr_t *value)
{
    if (kind == UNWIND_SAME) {
        return true;
    }
    uintptr_t base = kind == UNWIND_AT ? cfa : f->fp;
    return (kind == UNWIND_AT || kind == UNWIND_AT_FP) && load(base + (uintptr_t)(intptr_t)offset, f, high, value);
}

enum unwind_step unwind_apply(const struct unwind_rule *rule, struct unwind_frame *frame, uintptr_t high, bool called)
{
    if (rule->link == UNWIND_OUTERMOST) {
        return UNWIND_END;
    }
    uintptr_t cfa = (rule->cfa == UNWIND_SP ? frame->sp : frame->fp) + (uintptr_t)(intptr_t)rule->cfa_offset;
    if (high < sizeof high || (rule->cfa == UNWIND_LOADED && !load(cfa, frame, high, &cfa))) {
        return UNWIND_STUCK;
    }
    struct unwind_frame caller = {frame->link, cfa, frame->fp, 0, cfa};
    /* Each call uses some of the stack, except that of the innermost function on a machine with a link register. */
    bool further = HAS_LINK && !called ? cfa >= frame->sp : cfa > frame->sp;
    if (!further || cfa > high || !recover(rule->link, rule->link_offset, cfa, frame, high, &caller.pc)) {
        return UNWIND_STUCK;
    }
    if (caller.pc == 0) {
        return UNWIND_END;
    }
    if (!recover(rule->fp, rule->fp_offset, cfa, frame, high, &caller.fp)) {
        caller.fp = 0; /* a CFA that depends on it is then not found */
    }
    *frame = caller;
    return UNWIND_STEPPED;
}
