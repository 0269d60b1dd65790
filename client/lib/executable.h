/* The inside of struct profd_executable, for the rest of the library. */
#ifndef PROFD_CLIENT_EXECUTABLE_H
#define PROFD_CLIENT_EXECUTABLE_H

#include "profd.h"
#include "core/object.h"
#include "elf/elf_gmon.h"
#include "elf/elf_read.h"

struct gmon_check;

struct profd_executable {
    char *path;
    int fd, debug; /* debug: its separate debug file; -1: none */
    bool code;     /* its instructions are to be stored */
    struct arena *arena;
    struct object *object;          /* as it was read */
    struct gmon_check **gmon_check; /* in the arena; import.c keeps it for the next gmon.out */
};

/* Reads it once more, with other options, into the arena. */
enum profd_status executable_read_object(const struct profd_executable *x, const struct elf_read_options *options,
                                         struct arena *a, struct object **out, struct profd_error *e);
/* Reads its PT_LOAD segments. */
enum profd_status executable_read_loads(const struct profd_executable *x, struct arena *a, struct elf_load **out,
                                        uint32_t *count, struct profd_error *e);
/* Returns whether it has function names without its debug file, besides those that the dynamic linker needs. */
bool executable_has_own_names(const struct profd_executable *x);
/* Reads what it says about its gmon.out. Arrays live in the arena. */
enum profd_status executable_read_gmon(const struct profd_executable *x, struct arena *a, struct elf_gmon *out,
                                       struct profd_error *e);
/* Returns the modification time of the file in ns since 1970; 0 if unknown. */
uint64_t executable_time(const struct profd_executable *x);

/* Duplicates its descriptors: the executable and, if there is one, its debug file. The caller closes them. */
enum profd_status executable_dup_fds(const struct profd_executable *x, int fds[2], size_t *fd_count,
                                     struct profd_error *e);
void executable_close_fds(const int *fds, size_t fd_count);

#endif
