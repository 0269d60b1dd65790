/* Rust's symbol names of the old kind ("_ZN … 17h<hash>E"), which look like C++'s. */
#ifndef PROFD_ELF_ELF_RUST_H
#define PROFD_ELF_ELF_RUST_H

#include <stdbool.h>

#include "core/buffer.h"

/* Appends the path without its hash, escapes undone. False and nothing appended if it isn't such a name. O(length). */
bool elf_rust_demangle(const char *mangled, struct buffer *out);

#endif
