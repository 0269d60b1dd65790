/* Executables and libraries of imported profiles: opened once, kept until the last upload has been sent. */
#ifndef PROFD_CLIENT_IMPORT_SHELF_H
#define PROFD_CLIENT_IMPORT_SHELF_H

#include <stdbool.h>
#include <stdint.h>

#include "core/symtab.h"
#include "import/import_profile.h"
#include "lib/executable.h"

/* Function names and addresses of an executable or library that is available. */

struct import_binary;

/* Opens and reads the file; fails as profd_executable_open does. O(symbols log symbols). */
enum profd_status import_binary_open(const char *path, struct import_binary **out, struct profd_error *e);
/* Accepts NULL. */
void import_binary_free(struct import_binary *b);

const struct profd_executable *import_binary_executable(const struct import_binary *b);
/* Sets [*low, *high) to the range of its code. */
void import_binary_span(const struct import_binary *b, uint64_t *low, uint64_t *high);
/* True if the address is code. */
bool import_binary_holds(const struct import_binary *b, uint64_t address);
/* Returns the first address of the function that owns the address, or the address itself if no function owns it. */
uint64_t import_binary_entry(const struct import_binary *b, uint64_t address);
/* Sets the address at which an offset of the file is loaded; false if it is not loaded. */
bool import_binary_load(const struct import_binary *b, uint64_t offset, uint64_t *address);

struct import_function {
    uint64_t address, size; /* size: at least 1 */
    bool ambiguous;         /* other functions have the same name, and file does not distinguish them */
};
/* Finds the function that a tool calls by this name: its symbol or demangled name, optionally followed by a version
 * ("@@GLIBC_2.34"), a context ("f'main") or a depth ("f'2"); callgrind's "(below main)" and hexadecimal link-time
 * addresses; and the names in profd's exports: "[plt]", "[gap]", "f (a.c)" and "f (libx.so) [0x1234]". file (may be
 * NULL) is its source file. False if there is none. O(log symbols + functions of that name). */
bool import_binary_find(const struct import_binary *b, const char *name, const char *file, struct import_function *out);

struct import_shelf {
    const char *root;               /* prefix of every path; NULL or "": none */
    const char *const *executables; /* locations of executables that are not at their paths, or have changed there */
    size_t executable_count;
    void (*found)(void *context,
                  const struct profd_executable *x); /* called once for each; x lives as long as the shelf */
    void *context;
    struct import_shelved *list;
    size_t count, capacity;
};

void import_shelf_done(struct import_shelf *s);

/* Finds the binary of an object. First, one of the given executables with its build-id or file name. The first given
 * executable that matches no object of the profile by name is the program, unless the profile is one of several
 * processes. Otherwise, the file at its path. time: the profile's end, 0 if unknown. NO_INPUT: no such file.
 * WRONG_BUILD: it has another build-id, or, if no build-id is stated, it was written after the profile. Other statuses
 * as profd_executable_open. */
enum profd_status import_shelf_find(struct import_shelf *s, const struct import_profile *p,
                                    const struct import_object *o, bool is_program, const struct import_binary **out,
                                    struct profd_error *e);

/* Returns the part after the last slash. */
const char *import_shelf_base(const char *path);

#endif
