/* capstone for the machines that are known. The library is loaded when the first disassembler is opened. */
#ifndef PROFD_ELF_ELF_DISASSEMBLER_H
#define PROFD_ELF_ELF_DISASSEMBLER_H

#include <capstone/capstone.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/status.h"

struct disassembler {
    csh handle;
    cs_insn *instruction; /* the one that disassembler_next has read; NULL: not open */
};

/* True for x86-64, i386 and AArch64. */
bool disassembler_knows(uint16_t machine);

/* Loads the library for all threads; processes that may open no files later inherit it. INTERNAL: it is missing. */
enum profd_status disassembler_load(struct profd_error *e);

/* A disassembler for a machine that is known. text: it writes instructions as objdump does, and what is no instruction
 * becomes .byte. NO_MEMORY, INTERNAL; it is then not open. */
enum profd_status disassembler_open(struct disassembler *d, uint16_t machine, bool text, struct profd_error *e);
/* Reads one instruction at *bytes and moves all three behind it. False: there is none. */
bool disassembler_next(struct disassembler *d, const uint8_t **bytes, size_t *size, uint64_t *address);
/* Accepts one that is not open. */
void disassembler_close(struct disassembler *d);

#endif
