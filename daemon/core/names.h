/* What the names of symbols say: copies that compilers make, run-time support, names that GNU gprof leaves out. */
#ifndef PROFD_CORE_NAMES_H
#define PROFD_CORE_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Names of the copies that compilers make of functions. */

/* Length of a raw name without clone suffixes: .isra .part .constprop .cold .lto_priv .llvm, and what follows one. */
size_t clone_base(const char *raw);

/* Names of functions that belong to the compiler's and the C library's run-time support, not to the program. */

/* True for a function that the compiler calls in order to count or trace calls: mcount in its spellings (gcc and clang
 * -pg), __fentry__ (-mfentry), __cyg_profile_func_enter and _exit (-finstrument-functions). A version behind '@' is
 * ignored. O(1). */
bool runtime_is_counter(const char *name);

/* True for the start-up and termination code that the linker adds to every program: _start, _init, frame_dummy and the
 * like. A version behind '@' is ignored. O(1). */
bool runtime_is_startup(const char *name);

/* Which names of local symbols GNU gprof lists. gprof leaves out a name with '$', and one with a '.' that does not
 * begin ".clone.",
 * ".constprop." or "." and then digits. A name that ends in such digits it does not end at the NUL: it reads on in the
 * string table, and what follows decides. */

/* Bytes of the bits for a string table of that size. */
#define LOCAL_NAMES_BYTES(size) ((size) / 8 + 1)

/* Judges all suffixes of a string table at once: sets bit offset % 8 of bits[offset / 8] if gprof lists the name that
 * begins at the offset, and clears it if not. A name at the end of the table is listed. strings[size] must be a NUL.
 * bits must have LOCAL_NAMES_BYTES(size). O(size), whatever the names. */
void local_names_judge(const char *strings, size_t size, uint8_t *bits);

/* The answer for the name at the offset, which must be below size. The empty name is never listed. */
bool local_names_listed(const char *strings, size_t offset, const uint8_t *bits);

#endif
