/* Rust's legacy symbol names ("_ZN … 17h<hash>E"), which look like those of C++. */
#ifndef PROFD_ELF_ELF_RUST_H
#define PROFD_ELF_ELF_RUST_H

#include <stdbool.h>

#include "core/buffer.h"

/* Appends the path without its hash, with escapes decoded. False, and nothing is appended, if it is not such a name.
 * O(length). */
bool elf_rust_demangle(const char *mangled, struct buffer *out);

#endif
