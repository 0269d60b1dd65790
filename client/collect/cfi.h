/* Executes the programs of unwind entries (call frame instructions, DWARF 5, 6.4). Reads plain memory only; allowed in
 * signal handlers. The collector looks for the row of one address; record builds tables of all rows. */
#ifndef PROFD_COLLECT_CFI_H
#define PROFD_COLLECT_CFI_H

#include <stdbool.h>
#include <stdint.h>

#include "client/collect/frame_entry.h"

#define CFI_STATES 4u /* number of states that an entry may remember at a time: compilers use one */

/* DWARF's numbers of the registers that are tracked. link: the register or column with the return address. */
struct cfi_registers {
    uint64_t fp, sp, link;
};

/* Location of the caller's value of a register. */
enum cfi_kind {
    CFI_SAME,       /* still in the register */
    CFI_AT,         /* in memory, offset bytes from the CFA */
    CFI_EXPRESSION, /* in memory, at the address that the expression yields */
    CFI_UNDEFINED,  /* not available: as a return address the mark of the outermost function */
    CFI_LOST,       /* a rule that is not supported here */
};
struct cfi_rule {
    enum cfi_kind kind;
    union {
        int64_t offset;
        const uint8_t *expression; /* its length as an unsigned LEB128, then its bytes; all can be read */
    };
};

/* A row of the table that an entry's program defines. */
struct cfi_row {
    enum cfi_cfa { CFI_CFA_UNKNOWN, CFI_CFA_REGISTER, CFI_CFA_EXPRESSION } cfa;
    uint64_t cfa_register; /* the CFA is this register and the offset, or what the expression yields */
    union {
        int64_t cfa_offset;
        const uint8_t *cfa_expression; /* as in struct cfi_rule */
    };
    struct cfi_rule fp, link;
    /* It saves registers that callers do not expect back: a function of the C++ runtime that returns into a handler of
     * exceptions (__builtin_eh_return). Shortly before, it replaces what it has saved. */
    bool replaces;
};

struct cfi_machine {
    const struct frame_common *common;
    struct cfi_registers registers;
    struct frame_cursor program;
    uint64_t at, next, end; /* the row is valid in [at, next); end: of the entry's code */
    bool bad;               /* the program has an instruction that is unknown or not allowed there */
    struct cfi_row row, initial, remembered[CFI_STATES];
    unsigned depth;
};

/* Executes the common program; its row is the one at every entry's beginning. common must outlive the machine. False:
 * as bad. */
bool cfi_begin(struct cfi_machine *m, const struct cfi_registers *registers, const struct frame_common *common);

/* Begins an entry over the code [begin, begin + size). A machine executes any number of entries of its common part. */
void cfi_enter(struct cfi_machine *m, struct frame_cursor program, uint64_t begin, uint64_t size);

/* Executes the program up to the next row. False: there is none, or bad is set. O(bytes of the program). */
bool cfi_next(struct cfi_machine *m);

#endif
