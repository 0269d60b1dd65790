/* C++ names for people, by libstdc++'s demangler. */
#ifndef PROFD_ELF_ELF_DEMANGLE_H
#define PROFD_ELF_ELF_DEMANGLE_H

#include "elf/elf_build.h"

/* Sets demangled of every function symbol in the object: names that start `_Z` or `_GLOBAL_` + [._$][DI]_ after leading
 * '.' and '$', which are kept in front, as `@version` is behind. What can't be demangled, or is longer than
 * LIMIT_SYMBOL_NAME either way, keeps its raw name. Rust's names are not unescaped. */
void elf_demangle_all(struct elf_build *b);

#endif
