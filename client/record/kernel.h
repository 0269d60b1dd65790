/* The kernel and its modules as builds: their code has no files, but names in /proc/kallsyms. */
#ifndef PROFD_CLIENT_RECORD_KERNEL_H
#define PROFD_CLIENT_RECORD_KERNEL_H

#include "proto/counts_stacks.h"
#include "record/image.h"

/* Where the kernel describes itself. */
struct kernel_files {
    const char *notes;    /* "/sys/kernel/notes" */
    const char *symbols;  /* "/proc/kallsyms" */
    const char *modules;  /* "/proc/modules"; it may be absent */
    const char *sections; /* "/sys/module": NAME/notes/.note.gnu.build-id */
};

struct kernel;

/* Reads the files (NULL: the usual ones) and adds a build [kernel], and one [NAME] for each module that has a build-id;
 * addresses are relative to _text, or to the start of the module. FORBIDDEN: the addresses are hidden from this user,
 * and what to do. NO_INPUT, MALFORMED. O(symbols log symbols). */
enum profd_status kernel_open(const struct kernel_files *files, struct images *images, struct kernel **out,
                              struct profd_error *e);
/* Without reading anything: adds a build [kernel] of one function, in which all code of the kernel and its modules is.
 */
enum profd_status kernel_make_whole(struct images *images, struct kernel **out, struct profd_error *e);
/* Accepts NULL. */
void kernel_close(struct kernel *k);

/* The build of the kernel itself. */
uint32_t kernel_get_build(const struct kernel *k);
/* True if a build is the kernel or one of its modules. O(modules). */
bool kernel_has_build(const struct kernel *k, uint32_t build);
/* Sets build and address of the frame at an address of the kernel; 0 in the kernel of one function; outside where
 * neither the kernel nor a known module has code. O(modules). */
void kernel_find_frame(const struct kernel *k, uint64_t address, struct counts_frame *out);

#endif
