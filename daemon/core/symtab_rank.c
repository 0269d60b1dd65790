#include "core/symtab_rank.h"

#include <string.h>

#include "proto/sort.h"

static unsigned symtab_rank_bind(const struct object_symbol *s)
{
    if (s->bind == OBJECT_BIND_GLOBAL || s->bind == OBJECT_BIND_UNIQUE) {
        return 0;
    }
    return s->bind == OBJECT_BIND_WEAK ? 1 : 2;
}

static bool symtab_rank_typed(const struct object_symbol *s)
{
    return s->type == OBJECT_TYPE_FUNCTION || s->type == OBJECT_TYPE_IFUNC;
}

bool symtab_rank_before(const struct object *o, uint32_t x, uint32_t y)
{
    const struct object_symbol *a = &o->symbols[x], *b = &o->symbols[y];
    if (symtab_rank_typed(a) != symtab_rank_typed(b)) {
        return symtab_rank_typed(a);
    }
    if (symtab_rank_bind(a) != symtab_rank_bind(b)) {
        return symtab_rank_bind(a) < symtab_rank_bind(b);
    }
    const char *p = object_name(o, a->name), *q = object_name(o, b->name);
    size_t under_p = strspn(p, "_"), under_q = strspn(q, "_");
    if (under_p != under_q) {
        return under_p < under_q;
    }
    size_t length_p = strlen(p), length_q = strlen(q);
    if (length_p != length_q) {
        return length_p < length_q;
    }
    int order = strcmp(p, q);
    return order != 0 ? order < 0 : x < y;
}

/* ARM's and RISC-V's marks of code and data ($x, $d, $t.12), and labels of the assembler. */
static bool symtab_rank_is_mark(const char *name)
{
    return name[0] == '\0' || name[0] == '$' || (name[0] == '.' && name[1] == 'L');
}

static bool symtab_rank_is_bound(const char *name)
{
    static const char *const bounds[] = {"__executable_start", "etext", "_etext", "__etext"};
    for (size_t i = 0; i < sizeof bounds / sizeof *bounds; i++) {
        if (strcmp(name, bounds[i]) == 0) {
            return true;
        }
    }
    return false;
}

bool symtab_is_function(const struct object *o, const struct object_symbol *s)
{
    if ((s->flags & OBJECT_SYMBOL_EXECUTABLE) == 0) {
        return false;
    }
    const char *name = object_name(o, s->name);
    if (symtab_rank_typed(s)) {
        return name[0] != '\0';
    }
    return s->type == OBJECT_TYPE_NONE && !symtab_rank_is_mark(name) && !symtab_rank_is_bound(name);
}

/* Index behind the last range of that kind that begins at or below the address, or behind all of lower kinds. */
static uint32_t symtab_rank_behind(const struct object *o, unsigned kind, uint64_t address)
{
    uint32_t low = 0, high = o->range_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        const struct object_range *range = &o->ranges[middle];
        if (range->kind < kind || (range->kind == kind && range->low <= address)) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

bool symtab_rank_range(const struct object *o, uint64_t address, uint64_t *low, uint64_t *high)
{
    for (unsigned kind = OBJECT_RANGE_TEXT; kind <= OBJECT_RANGE_SEGMENT; kind++) {
        uint32_t behind = symtab_rank_behind(o, kind, address);
        if (behind == 0) {
            continue;
        }
        const struct object_range *range = &o->ranges[behind - 1];
        if (range->kind == kind && range->low <= address && address < range->high) {
            *low = range->low;
            *high = range->high;
            return true;
        }
    }
    return false;
}

void symtab_rank_collect(struct arena *a, const struct object *o, uint32_t **sorted, uint32_t *count)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < o->symbol_count; i++) {
        n += symtab_is_function(o, &o->symbols[i]);
    }
    struct sort_item *items = ARENA_ARRAY(a, (size_t)n * 2, struct sort_item);
    uint32_t *result = ARENA_ARRAY(a, n, uint32_t);
    uint32_t all = n;
    uint64_t low = 0, high = 0; /* symbols of one section mostly stand together: the last range is asked first */
    n = 0;
    for (uint32_t i = 0; i < o->symbol_count; i++) {
        const struct object_symbol *s = &o->symbols[i];
        if (!symtab_is_function(o, s)) {
            continue;
        }
        if (o->range_count > 0 && (s->address < low || s->address >= high) &&
            !symtab_rank_range(o, s->address, &low, &high)) {
            continue;
        }
        items[n++] = (struct sort_item){s->address, i};
    }
    sort_radix(items, items + all, n);
    for (uint32_t i = 0; i < n; i++) {
        result[i] = items[i].value;
    }
    *sorted = result;
    *count = n;
}
