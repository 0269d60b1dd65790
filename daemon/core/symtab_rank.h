/* DECISIONS 2's order among symbols, and the collection of function symbols by address. */
#ifndef PROFD_CORE_SYMTAB_RANK_H
#define PROFD_CORE_SYMTAB_RANK_H

#include <stdbool.h>
#include <stdint.h>

#include "core/arena.h"
#include "core/object.h"
#include "core/symtab.h"

/* True if symbol x goes before y: STT_FUNC and IFUNC before untyped; global > weak > local; fewest leading underscores;
 * shortest; strcmp; the first in the table. */
bool symtab_rank_before(const struct object *o, uint32_t x, uint32_t y);

/* Function symbols inside an executable range (all, if the object tells no ranges), ascending by address. */
void symtab_rank_collect(struct arena *a, const struct object *o, uint32_t **sorted, uint32_t *count);

/* Where the range that holds the address begins and ends; sections before segments. False if none does.
 * Ranges of one kind are taken not to overlap. O(log ranges). */
bool symtab_rank_range(const struct object *o, uint64_t address, uint64_t *low, uint64_t *high);

#endif
