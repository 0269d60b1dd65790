/* The inside of struct profd_executable, for the rest of the library. */
#ifndef PROFD_CLIENT_EXECUTABLE_H
#define PROFD_CLIENT_EXECUTABLE_H

#include "client/profd.h"
#include "core/object.h"
#include "elf/elf_read.h"
#include "proto/counts.h"

/* What was read; lives as long as x. */
const struct object *executable_object(const struct profd_executable *x);

/* Reads it once more, with other options, into the arena. */
enum profd_status executable_read_object(const struct profd_executable *x, const struct elf_read_options *options,
                                         struct arena *a, struct object **out, struct profd_error *e);
/* Its PT_LOAD segments. */
enum profd_status executable_read_loads(const struct profd_executable *x, struct arena *a, struct elf_load **out,
                                        uint32_t *count, struct profd_error *e);
/* When the file was last written, ns since 1970; 0 if that cannot be told. */
uint64_t executable_time(const struct profd_executable *x);

/* Duplicates of its descriptors: the executable and, if there is one, its debug file. The caller closes them. */
enum profd_status executable_dup_fds(const struct profd_executable *x, int fds[2], size_t *fd_count,
                                     struct profd_error *e);
void executable_close_fds(const int *fds, size_t fd_count);

/* DECISIONS 13: WRONG_BUILD unless the counts of a gmon.out can be of this executable. The bounds of its histograms
 * must be those that glibc derives from __executable_start and etext; where these symbols are missing, and for arcs
 * always, addresses must lie in executable ranges (a caller may have been rounded down by 15 bytes). A callee outside,
 * where the bounds agree, is in a shared library: its end becomes COUNTS_NOWHERE, since its address means nothing.
 * O((bins + arcs) × ranges). */
enum profd_status executable_check_counts(const struct object *o, const char *path, struct counts *c,
                                          struct profd_error *e);

#endif
