/* Which names of local symbols GNU gprof lists. gprof leaves out a name with '$', and one with a '.' that does not
 * begin ".clone.",
 * ".constprop." or "." and then digits. A name that ends in such digits it does not end at the NUL: it reads on in the
 * string table, and what follows decides. */
#ifndef PROFD_CORE_LOCAL_NAMES_H
#define PROFD_CORE_LOCAL_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes of the bits for a string table of that size. */
#define LOCAL_NAMES_BYTES(size) ((size) / 8 + 1)

/* Judges all suffixes of a string table at once: sets bit offset % 8 of bits[offset / 8] if gprof lists the name that
 * begins at the offset, and clears it if not. A name at the end of the table is listed. strings[size] must be a NUL.
 * bits must have LOCAL_NAMES_BYTES(size). O(size), whatever the names. */
void local_names_judge(const char *strings, size_t size, uint8_t *bits);

/* The answer for the name at the offset, which must be below size. The empty name is never listed. */
bool local_names_listed(const char *strings, size_t offset, const uint8_t *bits);

#endif
