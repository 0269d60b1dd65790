/* Demangles C++ names by libstdc++, and Rust names by elf_rust.h. */
#ifndef PROFD_ELF_ELF_DEMANGLE_H
#define PROFD_ELF_ELF_DEMANGLE_H

#include <stdbool.h>

#include "elf/elf_build.h"

/* Sets demangled of every symbol and of every function of lines in the object. cxx: names that begin with `_Z` or
 * `_GLOBAL_` + [._$][DI]_, after leading '.' and '$'; these and a trailing `@version` are kept. rust: hash and escapes
 * of Rust's names are removed. A name that cannot be demangled, or of which either form exceeds the build's name_limit,
 * keeps its raw form. */
void elf_demangle_all(struct elf_build *b, bool cxx, bool rust);

#endif
