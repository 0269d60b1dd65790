/* The inside of struct profd_executable, for the rest of the library. */
#ifndef PROFD_CLIENT_EXECUTABLE_H
#define PROFD_CLIENT_EXECUTABLE_H

#include "profd.h"
#include "core/object.h"
#include "elf/elf_gmon.h"
#include "elf/elf_read.h"

struct gmon_check;

/* Returns the object that was read. It lives as long as x. */
const struct object *executable_object(const struct profd_executable *x);
/* Returns the place of the check of its gmon.out files (import.c), which is kept for the next file. It holds NULL at
 * first, then a block of the arena, which lives as long as x. */
struct gmon_check **executable_gmon_check(const struct profd_executable *x);
struct arena *executable_arena(const struct profd_executable *x);

/* Reads it once more, with other options, into the arena. */
enum profd_status executable_read_object(const struct profd_executable *x, const struct elf_read_options *options,
                                         struct arena *a, struct object **out, struct profd_error *e);
/* Returns whether its instructions are to be stored. */
bool executable_wants_code(const struct profd_executable *x);
/* Reads its PT_LOAD segments. */
enum profd_status executable_read_loads(const struct profd_executable *x, struct arena *a, struct elf_load **out,
                                        uint32_t *count, struct profd_error *e);
/* Returns whether it has function names without its debug file, besides those that the dynamic linker needs. */
bool executable_has_own_names(const struct profd_executable *x);
/* Reads what it says about its gmon.out. Arrays live in the arena. */
enum profd_status executable_read_gmon(const struct profd_executable *x, struct arena *a, struct elf_gmon *out,
                                       struct profd_error *e);
/* Reads n bytes of the file at an offset. False if it has fewer there. */
bool executable_read_bytes(const struct profd_executable *x, uint64_t offset, void *out, size_t n);
/* Returns the modification time of the file in ns since 1970; 0 if unknown. */
uint64_t executable_time(const struct profd_executable *x);

/* Duplicates its descriptors: the executable and, if there is one, its debug file. The caller closes them. */
enum profd_status executable_dup_fds(const struct profd_executable *x, int fds[2], size_t *fd_count,
                                     struct profd_error *e);
void executable_close_fds(const int *fds, size_t fd_count);

#endif
