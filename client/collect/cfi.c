#include "client/collect/cfi.h"

#include <stddef.h>

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

#define EH_RETURN_DATA 1u /* registers 0 and 1: rax and rdx, x0 and x1 */

/* In parts, because a compiler may implement a large assignment by memcpy. */
static void row_copy(struct cfi_row *to, const struct cfi_row *from)
{
    to->cfa = from->cfa;
    to->cfa_register = from->cfa_register;
    to->cfa_offset = from->cfa_offset;
    to->fp = from->fp;
    to->link = from->link;
    to->replaces = from->replaces;
}

/* NULL for registers that are not tracked. */
static struct cfi_rule *rule_of(const struct cfi_machine *m, struct cfi_row *row, uint64_t reg)
{
    return reg == m->registers.fp ? &row->fp : reg == m->registers.link ? &row->link : NULL;
}

static void rule_set(struct cfi_machine *m, uint64_t reg, enum cfi_kind kind, int64_t offset)
{
    struct cfi_rule *rule = rule_of(m, &m->row, reg);
    m->row.replaces = m->row.replaces || (reg <= EH_RETURN_DATA && kind == CFI_AT);
    if (rule) {
        rule->kind = kind;
        rule->offset = offset;
    }
}

static void rule_restore(struct cfi_machine *m, uint64_t reg)
{
    struct cfi_rule *rule = rule_of(m, &m->row, reg), *first = rule_of(m, &m->initial, reg);
    if (rule && first) {
        *rule = *first;
    }
}

/* Multiplies by the entry's unit; a product that overflows points outside the stack. */
static int64_t scale(const struct cfi_machine *m, uint64_t factor)
{
    return (int64_t)(factor * (uint64_t)m->common->data_unit);
}

/* Returns the beginning of the block. */
static const uint8_t *take_block(struct frame_cursor *c)
{
    const uint8_t *block = c->at;
    uint64_t size = frame_take_unsigned(c);
    while (size-- > 0 && !c->bad) {
        frame_take_byte(c);
    }
    return block;
}

/* Executes an instruction that defines the CFA. False: op is another instruction. */
static bool run_cfa(struct cfi_machine *m, uint8_t op)
{
    struct frame_cursor *c = &m->program;
    switch (op) {
    case CFA_DEF_CFA:
    case CFA_DEF_CFA_SF:
        m->row.cfa = CFI_CFA_REGISTER;
        m->row.cfa_register = frame_take_unsigned(c);
        m->row.cfa_offset =
            op == CFA_DEF_CFA ? (int64_t)frame_take_unsigned(c) : scale(m, (uint64_t)frame_take_signed(c));
        return true;
    case CFA_DEF_CFA_REGISTER:
        m->row.cfa_register = frame_take_unsigned(c);
        return true;
    case CFA_DEF_CFA_OFFSET:
    case CFA_DEF_CFA_OFFSET_SF: {
        int64_t offset =
            op == CFA_DEF_CFA_OFFSET ? (int64_t)frame_take_unsigned(c) : scale(m, (uint64_t)frame_take_signed(c));
        if (m->row.cfa != CFI_CFA_EXPRESSION) {
            m->row.cfa_offset = offset;
        }
        return true;
    }
    case CFA_DEF_CFA_EXPRESSION:
        m->row.cfa = CFI_CFA_EXPRESSION;
        m->row.cfa_expression = take_block(c);
        return true;
    default:
        return false;
    }
}

/* Executes an instruction that defines the location of a register by a block, or in a way that is not supported. */
static bool run_register_rare(struct cfi_machine *m, uint8_t op, uint64_t reg)
{
    struct frame_cursor *c = &m->program;
    struct cfi_rule *rule = rule_of(m, &m->row, reg);
    switch (op) {
    case CFA_EXPRESSION:
    case CFA_VAL_EXPRESSION: {
        const uint8_t *block = take_block(c);
        if (rule) {
            rule->kind = op == CFA_EXPRESSION ? CFI_EXPRESSION : CFI_LOST;
            rule->expression = block;
        }
        return true;
    }
    case CFA_VAL_OFFSET_SF:
        frame_take_signed(c);
        break;
    case CFA_REGISTER:
    case CFA_VAL_OFFSET:
        frame_take_unsigned(c);
        break;
    default:
        return false;
    }
    rule_set(m, reg, CFI_LOST, 0);
    return true;
}

/* Executes an instruction that defines the location of a register. False: op is another instruction. */
static bool run_register(struct cfi_machine *m, uint8_t op)
{
    struct frame_cursor *c = &m->program;
    if (op < CFA_OFFSET_EXTENDED || (op > CFA_REGISTER && op < CFA_EXPRESSION)) {
        return false;
    }
    uint64_t reg = frame_take_unsigned(c);
    switch (op) {
    case CFA_OFFSET_EXTENDED:
        rule_set(m, reg, CFI_AT, scale(m, frame_take_unsigned(c)));
        return true;
    case CFA_OFFSET_EXTENDED_SF:
        rule_set(m, reg, CFI_AT, scale(m, (uint64_t)frame_take_signed(c)));
        return true;
    case CFA_RESTORE_EXTENDED:
        rule_restore(m, reg);
        return true;
    case CFA_SAME_VALUE:
        rule_set(m, reg, CFI_SAME, 0);
        return true;
    case CFA_UNDEFINED:
        rule_set(m, reg, CFI_UNDEFINED, 0);
        return true;
    default:
        return run_register_rare(m, op, reg);
    }
}

/* Executes one instruction. False: op is unknown, or not allowed there. */
static bool run_other(struct cfi_machine *m, uint8_t op)
{
    switch (op) {
    case CFA_NOP:
    case CFA_NEGATE_RA_STATE:
        return true;
    case CFA_ADVANCE1:
    case CFA_ADVANCE2:
    case CFA_ADVANCE4:
        m->next += frame_take_fixed(&m->program, op == CFA_ADVANCE1   ? 1
                                                 : op == CFA_ADVANCE2 ? 2
                                                                      : 4) *
                   m->common->code_unit;
        return true;
    case CFA_REMEMBER_STATE:
        if (m->depth == CFI_STATES) {
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

/* Executes instructions until the address advances, or the program ends. */
static bool run(struct cfi_machine *m)
{
    m->next = m->at;
    while (m->program.at < m->program.end && m->next == m->at) {
        uint8_t op = frame_take_byte(&m->program), low = op & 0x3f;
        bool good = true;
        switch (op & 0xc0) {
        case CFA_ADVANCE:
            m->next += low * m->common->code_unit;
            break;
        case CFA_OFFSET:
            rule_set(m, low, CFI_AT, scale(m, frame_take_unsigned(&m->program)));
            break;
        case CFA_RESTORE:
            rule_restore(m, low);
            break;
        default:
            good = run_cfa(m, op) || run_other(m, op) || run_register(m, op);
        }
        if (!good || m->program.bad || m->next < m->at) {
            m->bad = true;
            return false;
        }
    }
    return true;
}

bool cfi_begin(struct cfi_machine *m, const struct cfi_registers *registers, const struct frame_common *common)
{
    m->common = common;
    m->registers.fp = registers->fp;
    m->registers.sp = registers->sp;
    m->registers.link = registers->link;
    m->bad = false;
    m->depth = 0;
    m->row.cfa = CFI_CFA_UNKNOWN;
    m->row.cfa_register = registers->sp;
    m->row.cfa_offset = 0;
    m->row.fp.kind = m->row.link.kind = CFI_SAME;
    m->row.fp.offset = m->row.link.offset = 0;
    m->row.replaces = false;
    row_copy(&m->initial, &m->row);
    cfi_enter(m, common->program, 0, UINT64_MAX);
    while (cfi_next(m)) { /* it has no rows of its own */
    }
    row_copy(&m->initial, &m->row);
    return !m->bad;
}

void cfi_enter(struct cfi_machine *m, struct frame_cursor program, uint64_t begin, uint64_t size)
{
    row_copy(&m->row, &m->initial);
    m->program = program;
    m->depth = 0;
    m->bad = false;
    m->at = m->next = begin;
    m->end = begin + size;
}

bool cfi_next(struct cfi_machine *m)
{
    m->at = m->next;
    if (m->at >= m->end || !run(m)) {
        return false;
    }
    m->next = m->next == m->at || m->next > m->end ? m->end : m->next;
    return true;
}
