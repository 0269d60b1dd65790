/* Whether a gmon.out can be of an executable, beyond where its addresses lie (core/bounds.h). */
#ifndef PROFD_CLIENT_GMON_CHECK_H
#define PROFD_CLIENT_GMON_CHECK_H

#include "core/arena.h"
#include "lib/executable.h"
#include "proto/counts.h"

/* WRONG_BUILD unless the executable is linked with -pg and, if it is stripped, each histogram spans what glibc's gmon
 * writes for it; both as far as its symbols and sections tell. O(symbols + sections). */
enum profd_status gmon_check_executable(const struct profd_executable *x, const struct counts *c, struct arena *a,
                                        struct profd_error *e);

/* WRONG_BUILD unless each callee that is code of the executable is the start of a function or the address behind a call
 * of mcount or __fentry__, which is what glibc records. Only on x86 and AArch64, and only if the functions are known.
 * Two builds for which all of that is the same cannot be told apart. O(arcs + symbols log symbols). */
enum profd_status gmon_check_callees(const struct profd_executable *x, const struct counts *c, struct arena *a,
                                     struct profd_error *e);

#endif
