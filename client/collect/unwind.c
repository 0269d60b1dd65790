#include "client/collect/unwind.h"

#include <stddef.h>

#if defined __x86_64__
enum { REGISTER_FP = 6, REGISTER_SP = 7, REGISTER_RETURN = 16 };
#else
enum { REGISTER_FP = 29, REGISTER_SP = 31, REGISTER_RETURN = 30 };
#endif

enum { /* DWARF 5, 7.24: the operand of the first three is in the lower six bits */
       CFA_ADVANCE = 0x40,
       CFA_OFFSET = 0x80,
       CFA_RESTORE = 0xc0,
       CFA_NOP = 0,
       CFA_ADVANCE1 = 2,
       CFA_ADVANCE2 = 3,
       CFA_ADVANCE4 = 4,
       CFA_OFFSET_EXTENDED = 5,
       CFA_RESTORE_EXTENDED = 6,
       CFA_UNDEFINED = 7,
       CFA_SAME_VALUE = 8,
       CFA_REGISTER = 9,
       CFA_REMEMBER_STATE = 0x0a,
       CFA_RESTORE_STATE = 0x0b,
       CFA_DEF_CFA = 0x0c,
       CFA_DEF_CFA_REGISTER = 0x0d,
       CFA_DEF_CFA_OFFSET = 0x0e,
       CFA_DEF_CFA_EXPRESSION = 0x0f,
       CFA_EXPRESSION = 0x10,
       CFA_OFFSET_EXTENDED_SF = 0x11,
       CFA_DEF_CFA_SF = 0x12,
       CFA_DEF_CFA_OFFSET_SF = 0x13,
       CFA_VAL_OFFSET = 0x14,
       CFA_VAL_OFFSET_SF = 0x15,
       CFA_VAL_EXPRESSION = 0x16,
       CFA_NEGATE_RA_STATE = 0x2d, /* AArch64: the return address is signed; the reader removes the signature */
       CFA_GNU_ARGS_SIZE = 0x2e,
};

#define STATES 4u /* number of states that an entry may remember at a time: compilers use one */

/* Location of the caller's value of a register. */
enum rule_kind {
    RULE_SAME, /* still in the register */
    RULE_AT,   /* in memory, offset bytes from the CFA */
    RULE_LOST, /* not available, or not supported here */
};
struct rule {
    enum rule_kind kind;
    int64_t offset;
};

/* A row of the table that an entry's program defines. The CFA is a register and an offset. */
struct row {
    bool cfa_known;
    uint64_t cfa_register;
    int64_t cfa_offset;
    struct rule fp, link;
};

struct machine {
    const struct frame_common *common;
    struct frame_cursor program;
    uintptr_t at;    /* first address for which the row is valid */
    uintptr_t begin; /* of the code */
    struct row row, initial, remembered[STATES];
    unsigned depth;
};

/* In parts, because a compiler may implement a large assignment by memcpy. */
static void row_copy(struct row *to, const struct row *from)
{
    to->cfa_known = from->cfa_known;
    to->cfa_register = from->cfa_register;
    to->cfa_offset = from->cfa_offset;
    to->fp = from->fp;
    to->link = from->link;
}

/* NULL for registers that are not tracked. */
static struct rule *rule_of(struct row *row, uint64_t reg)
{
    return reg == REGISTER_FP ? &row->fp : reg == REGISTER_RETURN ? &row->link : NULL;
}

static void rule_set(struct machine *m, uint64_t reg, enum rule_kind kind, int64_t offset)
{
    struct rule *rule = rule_of(&m->row, reg);
    if (rule) {
        *rule = (struct rule){kind, offset};
    }
}

static void rule_restore(struct machine *m, uint64_t reg)
{
    struct rule *rule = rule_of(&m->row, reg), *first = rule_of(&m->initial, reg);
    if (rule && first) {
        *rule = *first;
    }
}

/* Multiplies by the entry's unit; a product that overflows points outside the stack. */
static int64_t scale(const struct machine *m, uint64_t factor)
{
    return (int64_t)(factor * (uint64_t)m->common->data_unit);
}

static void block_skip(struct frame_cursor *c)
{
    uint64_t size = frame_take_unsigned(c);
    while (size-- > 0 && !c->bad) {
        frame_take_byte(c);
    }
}

static void advance(struct machine *m, unsigned bytes)
{
    uint64_t step = 0;
    for (unsigned i = 0; i < bytes; i++) {
        step |= (uint64_t)frame_take_byte(&m->program) << 8 * i;
    }
    m->at += step * m->common->code_unit;
}

/* Executes an instruction that defines the CFA. False: op is another instruction. */
static bool run_cfa(struct machine *m, uint8_t op)
{
    struct frame_cursor *c = &m->program;
    switch (op) {
    case CFA_DEF_CFA:
    case CFA_DEF_CFA_SF:
        m->row.cfa_known = true;
        m->row.cfa_register = frame_take_unsigned(c);
        m->row.cfa_offset =
            op == CFA_DEF_CFA ? (int64_t)frame_take_unsigned(c) : scale(m, (uint64_t)frame_take_signed(c));
        return true;
    case CFA_DEF_CFA_REGISTER:
        m->row.cfa_register = frame_take_unsigned(c);
        return true;
    case CFA_DEF_CFA_OFFSET:
        m->row.cfa_offset = (int64_t)frame_take_unsigned(c);
        return true;
    case CFA_DEF_CFA_OFFSET_SF:
        m->row.cfa_offset = scale(m, (uint64_t)frame_take_signed(c));
        return true;
    case CFA_DEF_CFA_EXPRESSION:
        m->row.cfa_known = false;
        block_skip(c);
        return true;
    default:
        return false;
    }
}

/* Executes an instruction that defines the location of a register. False: op is another instruction. */
static bool run_register(struct machine *m, uint8_t op)
{
    struct frame_cursor *c = &m->program;
    if (op < CFA_OFFSET_EXTENDED || (op > CFA_REGISTER && op < CFA_EXPRESSION)) {
        return false;
    }
    uint64_t reg = frame_take_unsigned(c);
    switch (op) {
    case CFA_OFFSET_EXTENDED:
        rule_set(m, reg, RULE_AT, scale(m, frame_take_unsigned(c)));
        return true;
    case CFA_OFFSET_EXTENDED_SF:
        rule_set(m, reg, RULE_AT, scale(m, (uint64_t)frame_take_signed(c)));
        return true;
    case CFA_RESTORE_EXTENDED:
        rule_restore(m, reg);
        return true;
    case CFA_SAME_VALUE:
        rule_set(m, reg, RULE_SAME, 0);
        return true;
    case CFA_EXPRESSION:
    case CFA_VAL_EXPRESSION:
        block_skip(c);
        break;
    case CFA_VAL_OFFSET_SF:
        frame_take_signed(c);
        break;
    case CFA_REGISTER:
    case CFA_VAL_OFFSET:
        frame_take_unsigned(c);
        break;
    case CFA_UNDEFINED:
        break;
    default:
        return false;
    }
    rule_set(m, reg, RULE_LOST, 0);
    return true;
}

/* Executes one instruction. False: op is unknown, or not allowed there. */
static bool run_other(struct machine *m, uint8_t op)
{
    switch (op) {
    case CFA_NOP:
    case CFA_NEGATE_RA_STATE:
        return true;
    case CFA_ADVANCE1:
    case CFA_ADVANCE2:
    case CFA_ADVANCE4:
        advance(m, op == CFA_ADVANCE1 ? 1 : op == CFA_ADVANCE2 ? 2 : 4);
        return true;
    case CFA_REMEMBER_STATE:
        if (m->depth == STATES) {
            return false;
        }
        row_copy(&m->remembered[m->depth++], &m->row);
        return true;
    case CFA_RESTORE_STATE:
        if (m->depth == 0) {
            return false;
        }
        row_copy(&m->row, &m->remembered[--m->depth]);
        return true;
    case CFA_GNU_ARGS_SIZE:
        frame_take_unsigned(&m->program);
        return true;
    default:
        return false;
    }
}

/* Runs a program up to the row that is valid at pc. */
static bool run(struct machine *m, struct frame_cursor program, uintptr_t pc)
{
    m->program = program;
    while (m->program.at < m->program.end) {
        uint8_t op = frame_take_byte(&m->program), low = op & 0x3f;
        uintptr_t before = m->at;
        bool good = true;
        switch (op & 0xc0) {
        case CFA_ADVANCE:
            m->at += low * m->common->code_unit;
            break;
        case CFA_OFFSET:
            rule_set(m, low, RULE_AT, scale(m, frame_take_unsigned(&m->program)));
            break;
        case CFA_RESTORE:
            rule_restore(m, low);
            break;
        default:
            good = run_cfa(m, op) || run_other(m, op) || run_register(m, op);
        }
        if (!good || m->program.bad || m->at < before) {
            return false;
        }
        if (m->at > pc) {
            return true;
        }
    }
    return true;
}

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

/* Computes the row that is valid at pc. */
static bool find_row(const struct unwind_place *in, uintptr_t pc, struct machine *m, struct frame_common *common)
{
    struct frame_entry entry;
    if (!find_entry(in, pc, &entry) || !frame_common_read(in->bytes, entry.common, common) || common->is_signal) {
        return false;
    }
    m->common = common;
    m->at = m->begin = entry.begin;
    m->depth = 0;
    m->row.cfa_known = false;
    m->row.cfa_register = REGISTER_SP;
    m->row.cfa_offset = 0;
    m->row.fp = m->row.link = (struct rule){RULE_SAME, 0};
    row_copy(&m->initial, &m->row);
    if (!run(m, common->program, UINTPTR_MAX)) {
        return false;
    }
    row_copy(&m->initial, &m->row);
    m->at = entry.begin;
    return run(m, entry.program, pc) && m->row.cfa_known;
}

/* Reads the caller's value of a register. */
static bool recover(const struct rule *rule, uintptr_t cfa, const struct unwind_frame *f, uintptr_t high,
                    uintptr_t *value)
{
    uintptr_t at = cfa + (uintptr_t)rule->offset;
    if (rule->kind == RULE_LOST || (rule->kind == RULE_AT && (at < f->sp || at % sizeof at || at > high - sizeof at))) {
        return false;
    }
    if (rule->kind == RULE_AT) {
        *value = *(const uintptr_t *)at;
    }
    return true;
}

bool unwind_step(const struct unwind_place *in, struct unwind_frame *frame, uintptr_t high, bool called)
{
    struct machine m;
    struct frame_common common;
    if (high < sizeof high || !find_row(in, frame->pc - called, &m, &common) ||
        (m.row.cfa_register != REGISTER_SP && m.row.cfa_register != REGISTER_FP)) {
        return false;
    }
    uintptr_t cfa = (m.row.cfa_register == REGISTER_SP ? frame->sp : frame->fp) + (uintptr_t)m.row.cfa_offset;
    struct unwind_frame caller = {frame->link, cfa, frame->fp, 0, m.begin};
    /* Each call uses some of the stack, except that of the innermost function on a machine with a link register. */
    bool further = REGISTER_RETURN == 30 && !called ? cfa >= frame->sp : cfa > frame->sp;
    if (!further || cfa > high || !recover(&m.row.link, cfa, frame, high, &caller.pc) || caller.pc == 0) {
        return false;
    }
    if (!recover(&m.row.fp, cfa, frame, high, &caller.fp)) {
        caller.fp = 0; /* a CFA that depends on it is then not found */
    }
    *frame = caller;
    return true;
}
