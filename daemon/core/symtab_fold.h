/* Clones and cold parts go back into the function they were cut from. */
#ifndef PROFD_CORE_SYMTAB_FOLD_H
#define PROFD_CORE_SYMTAB_FOLD_H

#include <stdbool.h>

#include "core/arena.h"
#include "core/symtab.h"

/* Sets folded_into of owners named X.cold[.N] (with clones also X.part.N, X.isra.N, X.constprop.N) to X's owner, where
 * there is one; of several X the one of the same source file, then the nearest in the symbol table. Owners must be
 * complete but for spans. False when memory is exhausted. O(symbols) expected. */
bool symtab_fold(struct symtab *t, struct arena *a, bool clones);

#endif
