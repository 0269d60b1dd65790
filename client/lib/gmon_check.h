/* Whether a gmon.out can be of an executable, beyond where its addresses lie (core/bounds.h). */
#ifndef PROFD_CLIENT_GMON_CHECK_H
#define PROFD_CLIENT_GMON_CHECK_H

#include "lib/executable.h"
#include "proto/counts.h"

/* What is known of an executable for its gmon.out files: made with the first file, kept with x for the next ones. Not
 * to be freed. O(symbols + sections). */
enum profd_status gmon_check_get(const struct profd_executable *x, struct gmon_check **out, struct profd_error *e);

/* WRONG_BUILD unless the executable is linked with -pg and, if it is stripped, each histogram spans what glibc's gmon
 * writes for it; both as far as its symbols and sections tell. O(histograms × sections). */
enum profd_status gmon_check_executable(const struct gmon_check *k, const struct counts *c, struct profd_error *e);

/* WRONG_BUILD unless each callee that is code of the executable is the start of a function or the address behind a call
 * of mcount or __fentry__, which is what glibc records. Only on x86 and AArch64, and only if the functions are known.
 * Two builds for which all of that is the same cannot be told apart. An address is looked at once, with whichever file
 * has it first: O(arcs), and O(symbols) for each new address that is not behind a call of the usual counter. */
enum profd_status gmon_check_callees(struct gmon_check *k, const struct counts *c, struct profd_error *e);

#endif
