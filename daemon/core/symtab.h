/* Which function owns an address of one build. Total: every 64-bit address has exactly one owner. */
#ifndef PROFD_CORE_SYMTAB_H
#define PROFD_CORE_SYMTAB_H

#include <stdbool.h>
#include <stdint.h>

#include "core/arena.h"
#include "core/object.h"
#include "proto/status.h"

enum symtab_kind {
    SYMTAB_FUNCTION, /* a symbol */
    SYMTAB_PLT,      /* code of the PLT that no symbol owns */
    SYMTAB_GAP,      /* bytes that no other owner has */
    SYMTAB_ADDRESS,  /* a known entry, or a range's start, in a build without names */
    SYMTAB_UNKNOWN,  /* an entire build without symbols, or everything outside all builds */
};

/* One owner. Owners ascend by address; [gap] is always the first and has address 0. */
struct symtab_owner {
    uint64_t address, size; /* size: as the symbol states it; for others the bytes up to the next owner's range */
    uint32_t symbol;        /* of the object: the winner of those at this address; SYMTAB_NONE if not a symbol */
    uint32_t first, count;  /* sorted[first … first + count): all function symbols at this address */
    uint32_t folded_into;   /* owner of its addresses if it is a .cold or other clone that was folded, else itself */
    uint8_t kind;
};
#define SYMTAB_NONE UINT32_MAX

/* Read only outside symtab*.c. Span i is [span_low[i], span_low[i + 1]), the last one ends with the address space;
 * neighbouring spans have different owners. */
struct symtab {
    const struct object *object; /* NULL if unknown */
    const char *build_id;        /* NULL for what is outside all builds */
    uint32_t owner_count;
    struct symtab_owner *owners;
    uint32_t *sorted; /* function symbols of the object by address */
    uint32_t sorted_count;
    uint32_t span_count;
    uint64_t *span_low;
    uint32_t *span_owner;
    uint32_t *bucket; /* bucket[(address − bucket_low) >> bucket_shift]: span that holds the bucket's start */
    uint32_t bucket_count;
    unsigned bucket_shift;
    uint64_t bucket_low;
    bool named; /* at least one function symbol */
};

struct symtab_request {
    const struct object *object; /* NULL: one owner, "[unknown BUILD]" */
    const char *build_id;        /* NULL: one owner, "[outside]" */
    const uint64_t *entries;     /* ascending, distinct: where functions were seen to be called; used without names */
    uint32_t entry_count;
    bool fold_clones; /* .part .isra .constprop too; .cold always is */
};

/* Builds the table in the arena; object and entries must outlive it. NO_MEMORY or OK.
 * A function owns [address, address + size), cut at the end of its section; size 0 reaches up to the next function
 * symbol or that end. Where several claim a byte, the first in the order of symtab.c has it. O(symbols · log overlap).
 */
enum profd_status symtab_build(struct arena *a, const struct symtab_request *request, struct symtab **out,
                               struct profd_error *e);

/* Span that holds the address. O(1) expected for evenly spread functions, O(log n) at worst. */
uint32_t symtab_find_span(const struct symtab *t, uint64_t address);

/* Owner of the address, folding applied. */
static inline uint32_t symtab_find(const struct symtab *t, uint64_t address)
{
    return t->span_owner[symtab_find_span(t, address)];
}

/* The same when addresses mostly ascend: *span is where the last search ended (start with 0). */
uint32_t symtab_find_next(const struct symtab *t, uint64_t address, uint32_t *span);

/* Name of the imported function that the PLT slot at the address jumps to, NULL if there is none. O(log slots). */
const char *symtab_import(const struct symtab *t, uint64_t address);

/* True for symbols that name a function: executable, typed as one or untyped, and no mapping symbol or section bound.
 */
bool symtab_is_function(const struct object *o, const struct object_symbol *s);

#endif
