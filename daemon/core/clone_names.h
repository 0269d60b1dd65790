/* Names of the copies that compilers make of functions. */
#ifndef PROFD_CORE_CLONE_NAMES_H
#define PROFD_CORE_CLONE_NAMES_H

#include <stddef.h>

/* Length of a raw name without clone suffixes: .isra .part .constprop .cold .lto_priv .llvm, and what follows one. */
size_t clone_base(const char *raw);

#endif
