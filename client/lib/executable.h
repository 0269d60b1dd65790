/* The inside of struct profd_executable, for the rest of the library. */
#ifndef PROFD_CLIENT_EXECUTABLE_H
#define PROFD_CLIENT_EXECUTABLE_H

#include "profd.h"
#include "core/object.h"
#include "elf/elf_read.h"

/* What was read; lives as long as x. */
const struct object *executable_object(const struct profd_executable *x);

/* Reads it once more, with other options, into the arena. */
enum profd_status executable_read_object(const struct profd_executable *x, const struct elf_read_options *options,
                                         struct arena *a, struct object **out, struct profd_error *e);
/* Its PT_LOAD segments. */
enum profd_status executable_read_loads(const struct profd_executable *x, struct arena *a, struct elf_load **out,
                                        uint32_t *count, struct profd_error *e);
/* False: without its debug file it has no function names but those that the dynamic linker needs. */
bool executable_has_own_names(const struct profd_executable *x);
/* Modification time of the file, ns since 1970; 0 if unknown. */
uint64_t executable_time(const struct profd_executable *x);

/* Duplicates of its descriptors: the executable and, if there is one, its debug file. The caller closes them. */
enum profd_status executable_dup_fds(const struct profd_executable *x, int fds[2], size_t *fd_count,
                                     struct profd_error *e);
void executable_close_fds(const int *fds, size_t fd_count);

#endif
