/* An available executable or library, as imports need it: the address of a function name, and the function at an
 * address. */
#ifndef PROFD_CLIENT_IMPORT_BINARY_H
#define PROFD_CLIENT_IMPORT_BINARY_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/executable.h"
#include "core/symtab.h"

struct import_binary;

/* Opens and reads the file; fails as profd_executable_open does. O(symbols log symbols). */
enum profd_status import_binary_open(const char *path, struct import_binary **out, struct profd_error *e);
/* Accepts NULL. */
void import_binary_free(struct import_binary *b);

const struct profd_executable *import_binary_executable(const struct import_binary *b);
/* The span of its code: [*low, *high). */
void import_binary_span(const struct import_binary *b, uint64_t *low, uint64_t *high);
/* True if the address is code. */
bool import_binary_holds(const struct import_binary *b, uint64_t address);
/* The beginning of the function that owns the address; the address itself if none does. */
uint64_t import_binary_entry(const struct import_binary *b, uint64_t address);
/* The address of what lies at an offset of the file; false if nothing of that is loaded. */
bool import_binary_load(const struct import_binary *b, uint64_t offset, uint64_t *address);

struct import_function {
    uint64_t address, size; /* size: at least 1 */
    bool ambiguous;         /* other functions have the same name, and the file does not tell them apart */
};
/* The function that a tool called so: its symbol or demangled name, with a version ("@@GLIBC_2.34"), a context
 * ("f'main") or a depth ("f'2") behind it; callgrind's "(below main)" and hexadecimal link-time addresses; as profd's
 * exports have it, "[plt]", "[gap]", "f (a.c)" and "f (libx.so) [0x1234]". file (may be NULL) is its source. False if
 * there is none. O(log symbols + namesakes). */
bool import_binary_find(const struct import_binary *b, const char *name, const char *file, struct import_function *out);

#endif
