#include <stdlib.h>
#include <string.h>

#include "client/collect/cfi.h"
#include "core/arena.h"
#include "core/row_table.h"
#include "elf/elf_file.h"
#include "proto/sort.h"
#include "record/record_internal.h"

/* ---- Entries of .eh_frame and .debug_frame, one after the other ---- */

/* One range of code (an FDE). Positions count from the beginning of its section. */
struct unwind_entry {
    uint64_t begin, size; /* link-time */
    uint32_t common;      /* position of the common part */
    uint32_t program, end;
    bool is_debug; /* of .debug_frame */
};

struct unwind_reader {
    const struct unwind_section *section;
    bool is_debug;
    uint32_t at;
    uint32_t common_at; /* position of common; UINT32_MAX: none was read */
    bool common_good;
    struct frame_common common;
};

#define COMMON_MOST 256u
#define LENGTH_64 0xffffffffu /* announces a length of 8 bytes: no section that is read is so large */
#define DEBUG_COMMON 0xffffffffu

enum { /* DW_EH_PE: format in the lower half, application in the upper */
       FORMAT = 0x0f,
       FORMAT_POINTER = 0x00,
       FORMAT_U4 = 0x03,
       FORMAT_U8 = 0x04,
       FORMAT_S4 = 0x0b,
       FORMAT_S8 = 0x0c,
       RELATIVE = 0x10, /* to the field */
};

static void unwind_reader_init(struct unwind_reader *r, const struct unwind_section *section, bool is_debug)
{
    *r = (struct unwind_reader){.section = section, .is_debug = is_debug, .common_at = UINT32_MAX};
}

/* Sets *c to the bytes behind the length at a position. Returns false if the section ends before. */
static bool entry_at(const struct unwind_reader *r, uint64_t at, struct frame_cursor *c)
{
    const struct unwind_section *s = r->section;
    if (at > s->size || s->size - at < 4) {
        return false;
    }
    *c = (struct frame_cursor){s->bytes + at, s->bytes + s->size, false};
    uint64_t length = frame_take_fixed(c, 4);
    if (length == 0 || length == LENGTH_64 || length > (uint64_t)(c->end - c->at)) {
        return false;
    }
    c->end = c->at + length;
    return true;
}

/* Returns the common part at a position, or NULL if it cannot be read. It is valid until the next call. A common part
 * of more than 256 bytes is not read, so that many entries with one common part cost no more than their own bytes. */
static const struct frame_common *unwind_reader_common(struct unwind_reader *r, uint32_t at)
{
    if (at != r->common_at) {
        struct frame_cursor c;
        r->common_at = at;
        r->common_good = entry_at(r, at, &c) && c.end - c.at <= COMMON_MOST &&
                         frame_take_fixed(&c, 4) == (r->is_debug ? DEBUG_COMMON : 0) && !c.bad &&
                         frame_common_parse(c, &r->common);
    }
    return r->common_good ? &r->common : NULL;
}

/* Takes a number in the format of an encoding. Returns false if it is not supported. */
static bool take_encoded(struct frame_cursor *c, uint8_t encoding, uint64_t *out)
{
    switch (encoding & FORMAT) {
    case FORMAT_U4:
        *out = frame_take_fixed(c, 4);
        return !c->bad;
    case FORMAT_S4:
        *out = (uint64_t)(int64_t)(int32_t)frame_take_fixed(c, 4);
        return !c->bad;
    case FORMAT_POINTER:
    case FORMAT_U8:
    case FORMAT_S8:
        *out = frame_take_fixed(c, 8);
        return !c->bad;
    default:
        return false;
    }
}

/* Reads an entry behind its reference to the common part. */
static bool entry_read(struct unwind_reader *r, struct frame_cursor c, uint64_t common_at, struct unwind_entry *out)
{
    const struct unwind_section *s = r->section;
    const struct frame_common *common = common_at < s->size ? unwind_reader_common(r, (uint32_t)common_at) : NULL;
    uint64_t field = s->address + (uint64_t)(c.at - s->bytes), begin, size;
    if (!common || (common->encoding & ~(unsigned)FORMAT & ~(unsigned)RELATIVE) != 0 ||
        !take_encoded(&c, common->encoding, &begin) || !take_encoded(&c, common->encoding, &size)) {
        return false;
    }
    if (common->has_data) {
        frame_skip(&c, frame_take_unsigned(&c));
    }
    begin += common->encoding & RELATIVE ? field : 0;
    *out = (struct unwind_entry){.begin = begin,
                                 .size = size,
                                 .common = (uint32_t)common_at,
                                 .program = (uint32_t)(c.at - s->bytes),
                                 .end = (uint32_t)(c.end - s->bytes),
                                 .is_debug = r->is_debug};
    /* A linker sets the address of code that it removed to 0. */
    return !c.bad && begin != 0 && size != 0 && begin + size > begin;
}

/* ---- The table ---- */

static const struct cfi_registers registers_of[] = {
    [UNWIND_X86_64] = {.fp = 6, .sp = 7, .link = 16},
    [UNWIND_AARCH64] = {.fp = 29, .sp = 31, .link = 30},
};

enum { /* DWARF 5, 7.7.1; OP_BREG: and the register's number */
       OP_DEREF = 0x06,
       OP_AND = 0x1a,
       OP_PLUS = 0x22,
       OP_PLUS_UCONST = 0x23,
       OP_SHL = 0x24,
       OP_GE = 0x2a,
       OP_LIT0 = 0x30,
       OP_BREG = 0x70,
};
#define RIP 16 /* DWARF's number */

struct maker {
    struct arena *arena;
    const struct unwind_source *in;
    struct cfi_registers registers;
    struct unwind_entry *entries;
    uint32_t entry_count, entry_capacity;
    uint64_t base, end; /* end: of the code that has rows */
    struct unwind_row *rows;
    uint32_t row_count, row_capacity;
    struct table_rule *rules;
    struct table rule_table;
};

/* Finds or adds a rule. Returns false if memory is exhausted. */
static bool take_rule(struct maker *m, const struct table_rule *rule, uint32_t *out)
{
    return TABLE_TAKE_NUMBER(&m->rule_table, m->arena, m->rules, *rule, out);
}

static bool fits(int64_t value, int32_t *out)
{
    *out = (int32_t)value;
    return *out == value;
}

/* Takes a register's value and an offset. */
static bool take_base(struct frame_cursor *c, uint64_t *reg, int32_t *offset)
{
    *reg = (uint64_t)frame_take_byte(c) - OP_BREG;
    return fits(frame_take_signed(c), offset) && !c->bad && *reg <= 31;
}

/* The block's bytes were checked when its instruction was executed. */
static struct frame_cursor expression_of(const uint8_t *block)
{
    struct frame_cursor c = {block, block + 10, false}; /* an unsigned LEB128 has at most 10 bytes */
    uint64_t size = frame_take_unsigned(&c);
    c.end = c.at + size;
    return c;
}

/* Returns whether the rest is that of a PLT entry, whose rule depends on the address: "rip, 15, and, N, ge, 3, shl,
 * plus". */
static bool is_plt(struct frame_cursor c, int32_t *n)
{
    uint64_t reg;
    int32_t zero;
    if (!take_base(&c, &reg, &zero) || reg != RIP || zero != 0 || frame_take_byte(&c) != OP_LIT0 + 15 ||
        frame_take_byte(&c) != OP_AND) {
        return false;
    }
    *n = frame_take_byte(&c) - OP_LIT0;
    return *n >= 0 && *n <= 15 && frame_take_byte(&c) == OP_GE && frame_take_byte(&c) == OP_LIT0 + 3 &&
           frame_take_byte(&c) == OP_SHL && frame_take_byte(&c) == OP_PLUS && c.at == c.end && !c.bad;
}

static uint8_t cfa_by_expression(const struct maker *m, const uint8_t *block, struct table_rule *out)
{
    struct frame_cursor c = expression_of(block);
    uint64_t reg;
    if (!take_base(&c, &reg, &out->cfa_offset) || (reg != m->registers.sp && reg != m->registers.fp)) {
        return UNWIND_CFA_NONE;
    }
    if (m->in->machine == UNWIND_X86_64 && reg == m->registers.sp && is_plt(c, &out->cfa_more)) {
        return UNWIND_CFA_PLT;
    }
    if (c.at < c.end && *c.at == OP_DEREF) {
        frame_take_byte(&c);
        if (c.at < c.end && frame_take_byte(&c) == OP_PLUS_UCONST &&
            !fits((int64_t)frame_take_unsigned(&c), &out->cfa_more)) {
            return UNWIND_CFA_NONE;
        }
        return c.at != c.end || c.bad ? UNWIND_CFA_NONE : reg == m->registers.sp ? UNWIND_CFA_AT_SP : UNWIND_CFA_AT_FP;
    }
    return c.at != c.end ? UNWIND_CFA_NONE : reg == m->registers.sp ? UNWIND_CFA_SP : UNWIND_CFA_FP;
}

static uint8_t cfa_of(const struct maker *m, const struct cfi_row *row, struct table_rule *out)
{
    if (row->cfa == CFI_CFA_EXPRESSION) {
        return cfa_by_expression(m, row->cfa_expression, out);
    }
    if (row->cfa == CFI_CFA_UNKNOWN || !fits(row->cfa_offset, &out->cfa_offset)) {
        return UNWIND_CFA_NONE;
    }
    return row->cfa_register == m->registers.sp   ? UNWIND_CFA_SP
           : row->cfa_register == m->registers.fp ? UNWIND_CFA_FP
                                                  : UNWIND_CFA_NONE;
}

static uint8_t place_of(const struct maker *m, const struct cfi_rule *rule, int32_t *offset)
{
    struct frame_cursor c;
    uint64_t reg;
    switch (rule->kind) {
    case CFI_SAME:
        return UNWIND_SAME;
    case CFI_AT:
        return fits(rule->offset, offset) ? UNWIND_AT_CFA : UNWIND_LOST;
    case CFI_EXPRESSION:
        c = expression_of(rule->expression);
        if (!take_base(&c, &reg, offset) || c.at != c.end) {
            return UNWIND_LOST;
        }
        return reg == m->registers.sp ? UNWIND_AT_SP : reg == m->registers.fp ? UNWIND_AT_FP : UNWIND_LOST;
    case CFI_UNDEFINED:
        return UNWIND_OUTERMOST;
    default:
        return UNWIND_LOST;
    }
}

/* Equal rules have equal bytes: offsets that mean nothing are 0. */
static struct table_rule rule_of(const struct maker *m, const struct cfi_row *row, const struct frame_common *common)
{
    struct table_rule r = {.is_signal = common->is_signal};
    r.cfa = cfa_of(m, row, &r);
    r.fp = place_of(m, &row->fp, &r.fp_offset);
    r.link = common->link == m->registers.link ? place_of(m, &row->link, &r.link_offset) : UNWIND_LOST;
    if (r.fp == UNWIND_OUTERMOST) { /* undefined */
        r.fp = UNWIND_LOST;
    }
    if (r.link == UNWIND_SAME && m->in->machine == UNWIND_X86_64) { /* it has no such register */
        r.link = UNWIND_LOST;
    }
    r.cfa_offset = r.cfa == UNWIND_CFA_NONE ? 0 : r.cfa_offset;
    r.cfa_more = r.cfa < UNWIND_CFA_AT_SP ? 0 : r.cfa_more;
    r.fp_offset = r.fp == UNWIND_LOST ? 0 : r.fp_offset;
    r.link_offset = r.link == UNWIND_LOST ? 0 : r.link_offset;
    return r;
}

/* Adds a row. If it has the rule of the row before, that row is extended instead. */
static bool add_row(struct maker *m, uint64_t address, uint32_t rule)
{
    if (m->row_count > 0 && m->rows[m->row_count - 1].rule == rule) {
        return true;
    }
    if (m->row_count == UNWIND_ROWS) {
        return false;
    }
    if (!ARENA_EXTEND(m->arena, m->rows, m->row_count, m->row_capacity)) {
        return false;
    }
    m->rows[m->row_count++] = (struct unwind_row){(uint32_t)(address - m->base), rule};
    return true;
}

/* Adds the rows of an entry, except for code that earlier entries describe. Returns false if memory or rows are
 * exhausted. */
static bool add_entry(struct maker *m, const struct unwind_entry *entry, struct cfi_machine *machine,
                      const struct frame_common *common)
{
    const struct unwind_section *s = entry->is_debug ? &m->in->debug_frame : &m->in->eh_frame;
    uint64_t end = entry->begin + entry->size;
    if (entry->begin - m->base > UINT32_MAX || end - m->base > UINT32_MAX || end <= m->end) {
        return true;
    }
    if (entry->begin > m->end) {
        if (!add_row(m, m->end, 0)) {
            return false;
        }
        m->end = entry->begin;
    }
    cfi_enter(machine, (struct frame_cursor){s->bytes + entry->program, s->bytes + entry->end, false}, entry->begin,
              entry->size);
    while (cfi_next(machine)) {
        uint64_t from = machine->at > m->end ? machine->at : m->end;
        uint32_t index;
        if (machine->next <= m->end) {
            continue;
        }
        const struct table_rule rule = rule_of(m, &machine->row, common);
        if (!take_rule(m, &rule, &index) || !add_row(m, from, index)) {
            return false;
        }
        m->end = machine->next;
    }
    if (m->end < end) { /* the rest of the program is not supported */
        const struct table_rule none = {.cfa = UNWIND_CFA_NONE};
        uint32_t index;
        if (!take_rule(m, &none, &index) || !add_row(m, m->end, index)) {
            return false;
        }
        m->end = end;
    }
    return true;
}

/* Adds all entries that can be read. Returns false if memory is exhausted. */
static bool collect(struct maker *m, struct unwind_reader *r)
{
    struct frame_cursor c;
    while (entry_at(r, r->at, &c)) {
        const uint64_t here = (uint64_t)(c.at - r->section->bytes), id = frame_take_fixed(&c, 4);
        const bool is_common = id == (r->is_debug ? DEBUG_COMMON : 0);
        struct unwind_entry entry;
        r->at = (uint32_t)(c.end - r->section->bytes);
        if (c.bad || is_common || !entry_read(r, c, r->is_debug ? id : here - id, &entry)) {
            continue;
        }
        if (!ARENA_EXTEND(m->arena, m->entries, m->entry_count, m->entry_capacity)) {
            return false;
        }
        m->entries[m->entry_count++] = entry;
    }
    return true;
}

static int entry_compare(const void *context, uint32_t a, uint32_t b)
{
    const struct unwind_entry *x = &((const struct unwind_entry *)context)[a],
                              *y = &((const struct unwind_entry *)context)[b];
    return x->begin != y->begin ? (x->begin < y->begin ? -1 : 1) : (int)x->is_debug - (int)y->is_debug;
}

/* Adds the rows of all entries by ascending address. */
static bool add_entries(struct maker *m, struct unwind_reader readers[2])
{
    uint32_t *order = ARENA_ARRAY(m->arena, (size_t)m->entry_count * 2 + 1, uint32_t);
    struct cfi_machine machine;
    const struct frame_common *common = NULL;
    const struct unwind_entry *last = NULL;
    bool good = false;
    if (!order) {
        return false;
    }
    for (uint32_t i = 0; i < m->entry_count; i++) {
        order[i] = i;
    }
    sort_merge(order, order + m->entry_count, m->entry_count, entry_compare, m->entries);
    for (uint32_t i = 0; i < m->entry_count; i++) {
        const struct unwind_entry *entry = &m->entries[order[i]];
        if (i == 0) {
            m->base = m->end = entry->begin;
        }
        if (!last || last->common != entry->common || last->is_debug != entry->is_debug) {
            common = unwind_reader_common(&readers[entry->is_debug], entry->common);
            good = common && cfi_begin(&machine, &m->registers, common);
            last = entry;
        }
        if (good && !add_entry(m, entry, &machine, common)) {
            return false;
        }
    }
    return m->entry_count == 0 || add_row(m, m->end, 0);
}

enum profd_status unwind_table_make(const struct unwind_source *in, struct unwind_table **out, struct profd_error *e)
{
    struct unwind_reader readers[2];
    struct maker m = {.in = in, .registers = registers_of[in->machine]};
    const struct table_rule absent = {.cfa = UNWIND_CFA_ABSENT};
    struct unwind_table *t = NULL;
    uint32_t zero;
    size_t most = in->eh_frame.size > in->debug_frame.size ? in->eh_frame.size : in->debug_frame.size;
    FAIL_IF(most > UNWIND_SECTION, e, PROFD_LIMIT, "a section of unwind information has %zu bytes; at most %u are read",
            most, UNWIND_SECTION);
    m.arena = arena_new(UNWIND_MEMORY);
    unwind_reader_init(&readers[0], &in->eh_frame, false);
    unwind_reader_init(&readers[1], &in->debug_frame, true);
    if (m.arena && take_rule(&m, &absent, &zero) && collect(&m, &readers[0]) && collect(&m, &readers[1]) &&
        add_entries(&m, readers)) {
        const size_t rows = m.row_count * sizeof *m.rows, rules = m.rule_table.used * sizeof *m.rules;
        t = malloc(sizeof *t + rows + rules);
        if (t) {
            uint8_t *at = (uint8_t *)(t + 1);
            if (rows > 0) {
                memcpy(at, m.rows, rows);
            }
            memcpy(at + rows, m.rules, rules);
            *t = (struct unwind_table){.machine = in->machine,
                                       .base = m.base,
                                       .row_count = m.row_count,
                                       .rule_count = m.rule_table.used,
                                       .rows = (const void *)at,
                                       .rules = (const void *)(at + rows)};
        }
    }
    arena_free(m.arena);
    if (t) {
        *out = t;
        return PROFD_OK;
    }
    return m.row_count == UNWIND_ROWS
               ? profd_error_set(e, PROFD_LIMIT, "its unwind information has more than %u rows", UNWIND_ROWS)
               : profd_error_set(e, PROFD_NO_MEMORY, "no memory for the unwind information of %u functions",
                                 m.entry_count);
}

size_t unwind_table_size(const struct unwind_table *t)
{
    return sizeof *t + t->row_count * sizeof *t->rows + t->rule_count * sizeof *t->rules;
}

void unwind_table_free(struct unwind_table *t)
{
    free(t);
}

const struct table_rule *unwind_table_find(const struct unwind_table *t, uint64_t address)
{
    uint32_t behind;
    if (address < t->base || address - t->base > UINT32_MAX) {
        return NULL;
    }
    SORT_SEARCH(behind, 0, t->row_count, t->rows[behind].at <= address - t->base);
    return behind > 0 && t->rows[behind - 1].rule != 0 ? &t->rules[t->rows[behind - 1].rule] : NULL;
}

/* ---- Of an ELF file ---- */

#define MEMORY_MAX (2 * (size_t)UNWIND_SECTION) /* for sections and headers of a file */

/* Reads a section; without it, *out stays empty. */
static enum profd_status read_section(const struct elf_file *f, const char *name, struct arena *a,
                                      struct unwind_section *out, struct profd_error *e)
{
    const GElf_Shdr *s = elf_file_find(f, name);
    uint8_t *bytes;
    if (!s) {
        return PROFD_OK;
    }
    FAIL_IF(s->sh_size > UNWIND_SECTION, e, PROFD_LIMIT, "section %s has %llu bytes; at most %u are read", name,
            (unsigned long long)s->sh_size, UNWIND_SECTION);
    TRY(elf_file_load(f, s, a, &bytes, e));
    *out = (struct unwind_section){bytes, (size_t)s->sh_size, s->sh_addr};
    return PROFD_OK;
}

enum profd_status unwind_elf_read(int fd, struct unwind_table **out, struct profd_error *e)
{
    struct unwind_source in = {.machine = UNWIND_X86_64};
    struct elf_file *f = NULL;
    struct arena *a = arena_new(MEMORY_MAX);
    FAIL_IF(!a, e, PROFD_NO_MEMORY, "no memory to read unwind information");
    enum profd_status status = elf_file_open(fd, a, &f, e);
    if (status == PROFD_OK && f->machine == EM_AARCH64) {
        in.machine = UNWIND_AARCH64;
    }
    if (status == PROFD_OK &&
        ((f->machine != EM_X86_64 && f->machine != EM_AARCH64) || f->bits != 64 || f->big_endian)) {
        status = profd_error_set(e, PROFD_REFUSED,
                                 "stacks are unwound on x86-64 and AArch64; this file is for ELF machine %u, %u bits",
                                 f->machine, f->bits);
    }
    status = status ? status : read_section(f, ".eh_frame", a, &in.eh_frame, e);
    status = status ? status : read_section(f, ".debug_frame", a, &in.debug_frame, e);
    status = status ? status : unwind_table_make(&in, out, e);
    elf_file_close(f);
    arena_free(a);
    return status;
}
