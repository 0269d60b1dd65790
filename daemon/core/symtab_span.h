/* From claims to spans: which symbol owns which bytes when claims overlap. */
#ifndef PROFD_CORE_SYMTAB_SPAN_H
#define PROFD_CORE_SYMTAB_SPAN_H

#include <stdbool.h>
#include <stdint.h>

#include "core/arena.h"
#include "core/symtab.h"

/* [low, high) is claimed by an owner; low < high. */
struct symtab_claim {
    uint64_t low, high;
    uint32_t owner; /* not yet folded: its symbol decides its rank */
};

/* Fills in the spans and buckets of t from n claims ascending by low; unclaimed bytes belong to owner 0. Among claims
 * on one byte, symbols precede others, and among symbols symtab_rank_before decides. False if memory is exhausted. O(n
 * log overlap). */
bool symtab_span_sweep(struct symtab *t, struct arena *a, const struct symtab_claim *claims, uint32_t n);

#endif
