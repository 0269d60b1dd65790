/* The instructions of a function, the line of each, and the calls that inlining removed above it. */
#ifndef PROFD_CLIENT_ANNOTATE_CODE_H
#define PROFD_CLIENT_ANNOTATE_CODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/status.h"

/* A source line, with where its function was inlined: "" or "inner, inlined at t.c:7 (middle)". */
struct code_place {
    char *file; /* "": unknown */
    char *chain;
    unsigned line;
};

struct code_instruction {
    uint64_t address, bytes;
    char *text;
    size_t place;
};

struct code {
    struct code_instruction *instructions; /* ascending */
    size_t count;
    struct code_place *places; /* none twice, in the order of their first instructions */
    size_t place_count;
};

/* Disassembles [low, high) of an executable, with objdump of binutils. code_done frees, after failure too. NOT_FOUND if
 * objdump is missing, or the file has no code there. */
enum profd_status code_read(const char *path, const char *build_id, uint64_t low, uint64_t high, struct code *out,
                            struct profd_error *e);
void code_done(struct code *c);
/* The number of the instruction that holds the address; count if none does. O(log n). */
size_t code_find(const struct code *c, uint64_t address);
bool code_is_call(const struct code_instruction *i);
/* Where a call goes to that names its target: false if it goes to an address in a register or in memory. */
bool code_find_target(const struct code_instruction *i, uint64_t *target);

#endif
