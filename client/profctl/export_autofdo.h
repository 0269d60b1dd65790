/* Profiles for clang -fprofile-sample-use. */
#ifndef PROFD_CLIENT_EXPORT_AUTOFDO_H
#define PROFD_CLIENT_EXPORT_AUTOFDO_H

#include <stdio.h>

#include "profctl/code_lines.h"
#include "proto/counts.h"
#include "proto/status.h"

/* Writes the ticks of build 0 as LLVM's text format of sample profiles, which llvm-profdata merge --sample reads: the
 * count of a line is that of its instruction with most ticks, times the copies of unrolled code; 0 included in
 * functions that have any; a function's head is the count of the line where it begins; inlined calls are nested. The
 * calls of a call site divide its line's count among callees. Ticks without a line, and those of functions without a
 * name, are left out: *left_out has their number.
 *
 * REFUSED: a histogram counts several addresses in one bin, or there is no tick with a line. NO_MEMORY. */
enum profd_status autofdo_write(const struct counts *c, struct code_lines *lines, FILE *out, uint64_t *left_out,
                                struct profd_error *e);

#endif
