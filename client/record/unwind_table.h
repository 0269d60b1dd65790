/* A compact table of an ELF object's unwind information: for each address, how to find the caller's frame. It is made
 * once for a build from .eh_frame and .debug_frame, so that no entry is interpreted while stacks are walked. Pure.
 *
 * It is made in the process that walks: the daemon has no use for it, and on its way through the daemon a table would
 * be bytes that another process claims. Instructions of the entries are executed by the collector's code. */
#ifndef PROFD_RECORD_UNWIND_TABLE_H
#define PROFD_RECORD_UNWIND_TABLE_H

#include <stdint.h>

#include "proto/status.h"
#include "record/unwind_entry.h"

#define UNWIND_ROWS (8u << 20)            /* limit of rows of a table */
#define UNWIND_MEMORY ((size_t)128 << 20) /* limit of what making it takes */

enum unwind_machine { UNWIND_X86_64, UNWIND_AARCH64 };

/* CFA: the value of the stack pointer in the caller, before the call on x86-64. */
enum unwind_cfa {
    UNWIND_CFA_ABSENT, /* no function is there */
    UNWIND_CFA_NONE,   /* no information, or a rule that is not supported */
    UNWIND_CFA_SP,     /* stack pointer + cfa_offset */
    UNWIND_CFA_FP,     /* frame pointer (rbp, x29) + cfa_offset */
    UNWIND_CFA_AT_SP,  /* the word at stack pointer + cfa_offset, + cfa_more */
    UNWIND_CFA_AT_FP,  /* the word at frame pointer + cfa_offset, + cfa_more */
    UNWIND_CFA_PLT,    /* stack pointer + cfa_offset, + 8 if the lower four bits of the address are at least cfa_more */
};

/* Location of the caller's value of a register: a word in memory, or the register itself. */
enum unwind_place {
    UNWIND_LOST, /* no information, or a rule that is not supported */
    UNWIND_SAME,
    UNWIND_AT_CFA,
    UNWIND_AT_SP,
    UNWIND_AT_FP,
    UNWIND_OUTERMOST, /* of a return address: the function has no caller */
};

struct unwind_rule {
    int32_t cfa_offset, cfa_more;
    int32_t fp_offset, link_offset; /* of UNWIND_AT_… */
    uint8_t cfa;                    /* enum unwind_cfa */
    uint8_t fp, link;               /* enum unwind_place; link: of the return address */
    uint8_t is_signal;              /* 1: the caller was interrupted, so its address is no return address */
};

/* Valid from base + at to the next row. Rule 0: no function is there. */
struct unwind_row {
    uint32_t at, rule;
};

struct unwind_table {
    enum unwind_machine machine;
    uint64_t base; /* link-time address of the first row */
    uint32_t row_count, rule_count;
    const struct unwind_row *rows; /* ascending; the last has rule 0 */
    const struct unwind_rule *rules;
};

struct unwind_source {
    enum unwind_machine machine;
    struct unwind_section eh_frame, debug_frame;
};

/* Makes the table. Where both sections describe an address, .eh_frame counts. Entries that cannot be read and entries
 * more than 4 GiB behind the first are left out. The caller frees it. LIMIT: a section or the table is too large.
 * NO_MEMORY, also where UNWIND_MEMORY does not do. O(bytes + entries log entries). */
enum profd_status unwind_table_make(const struct unwind_source *in, struct unwind_table **out, struct profd_error *e);
/* Its bytes. */
size_t unwind_table_size(const struct unwind_table *t);
/* Accepts NULL. */
void unwind_table_free(struct unwind_table *t);

/* Returns the rule that is valid at a link-time address; NULL: no function is there. O(log rows). */
const struct unwind_rule *unwind_table_find(const struct unwind_table *t, uint64_t address);

#endif
