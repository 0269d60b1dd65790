/* C++ and Rust names for people: libstdc++'s demangler, and our own for Rust. */
#ifndef PROFD_ELF_ELF_DEMANGLE_H
#define PROFD_ELF_ELF_DEMANGLE_H

#include <stdbool.h>

#include "elf/elf_build.h"

/* Sets demangled of every symbol and of every function of lines in the object: names that start `_Z` or `_GLOBAL_` +
 * [._$][DI]_ after leading
 * '.' and '$', which are kept in front, as `@version` is behind (cxx); Rust's names lose hash and escapes (rust). What
 * can't be demangled, or is longer than the build's name_limit either way, keeps its raw name. */
void elf_demangle_all(struct elf_build *b, bool cxx, bool rust);

#endif
