/* Source lines of addresses, with what was inlined there, from an executable's debug information. */
#ifndef PROFD_CLIENT_CODE_LINES_H
#define PROFD_CLIENT_CODE_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/status.h"

#define CODE_LINES_DEPTH 64 /* calls that inlining removed above one instruction; inner ones are left out */

/* A position in a function: that of the instruction, or of the call that was replaced by the frame before. Texts live
 * as long as the lines. */
struct code_frame {
    const char *function; /* as linkers know it; "" if unknown */
    const char *file;     /* the whole path; "" if unknown */
    unsigned line;        /* 0 if unknown */
    unsigned discriminator;
    unsigned first_line; /* of the function */
};

struct code_lines;

/* Opens an executable, or the file with its debug information. *out NULL: it has none, and neither has
 * /usr/lib/debug/.build-id (build_id: hex). code_lines_close frees, NULL too. NO_MEMORY. */
enum profd_status code_lines_open(const char *path, const char *build_id, struct code_lines **out,
                                  struct profd_error *e);
void code_lines_close(struct code_lines *l);
/* Frames of the instruction at an address, innermost first: at most CODE_LINES_DEPTH. 0: nothing is known.
 * O(log functions + size of the function's description). */
size_t code_lines_find(struct code_lines *l, uint64_t address, struct code_frame frames[CODE_LINES_DEPTH]);
/* The bytes of a function that hold the address, and where it begins, perhaps elsewhere: false if none does. */
bool code_lines_range(const struct code_lines *l, uint64_t address, uint64_t *low, uint64_t *high, uint64_t *entry);
/* The first address from here on, below high, where a line begins; high if none does. O(log lines). */
uint64_t code_lines_next(struct code_lines *l, uint64_t address, uint64_t high);

#endif
