/* Functions of many reports, joined by name. */
#ifndef PROFD_QUERY_JOINED_SUM_H
#define PROFD_QUERY_JOINED_SUM_H

#include <stddef.h>
#include <stdint.h>

#include "core/arena.h"
#include "core/report.h"
#include "core/rows.h"
#include "proto/status.h"
#include "query/set.h"

/* Two functions are the same if they have one demangled name and one file, where the symbol table names one, as it does
 * for what a file keeps to itself. If a build has two such, none of that name in it is joined. */
struct joined {
    struct arena *arena;
    struct set names; /* name NUL file NUL */
    struct joined_row *rows;
    uint32_t capacity;
    struct set places;    /* (name, build): how many builds a name is of */
    struct set unnamed;   /* builds without names */
    struct set ambiguous; /* names that were left out somewhere */
    struct joined_rest rest;
};

void joined_init(struct joined *j, struct arena *a);
/* Adds one program's report. scratch: what only this call needs. O(functions) expected. NO_MEMORY or OK. */
enum profd_status joined_add(struct joined *j, const struct report *r, struct arena *scratch, struct profd_error *e);

#endif
