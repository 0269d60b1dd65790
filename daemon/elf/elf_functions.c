#include "core/compare.h"
#include "elf/elf_symbols.h"

#include <inttypes.h>
#include <stdlib.h>

/* foo.cold, foo.cold.3: parts that gcc and clang expect to run rarely. */
static bool is_cold(const char *name)
{
    const char *p = strstr(name, ".cold");
    return p != NULL && p != name && (p[5] == '\0' || p[5] == '.');
}

/* A marker of the linker script marks an end of code, not a function. */
static bool is_marker(const char *name)
{
    static const char *const markers[] = {"etext", "_etext", "__etext", "__executable_start", "__bss_start", "_edata",
                                          "edata", "_end",   "end"};
    for (size_t i = 0; i < sizeof markers / sizeof *markers; i++) {
        if (strcmp(name, markers[i]) == 0) {
            return true;
        }
    }
    return false;
}

static bool is_function(const struct object_symbol *s, const char *name)
{
    if (!(s->flags & OBJECT_SYMBOL_EXECUTABLE)) {
        return false;
    }
    if (s->type == OBJECT_TYPE_FUNCTION || s->type == OBJECT_TYPE_IFUNC) {
        return true;
    }
    return s->type == OBJECT_TYPE_NONE && s->bind != OBJECT_BIND_LOCAL && !is_marker(name);
}

static int compare_functions(const void *x, const void *y)
{
    const struct elf_function *a = x, *b = y;
    return compare_pairs(a->address, b->address, a->first, b->first);
}

/* Makes one entry for each address, with the longest extent. An entry that is also the name of a complete function is
 * not cold. */
static uint32_t collapse(struct elf_function *list, uint32_t *symbols, uint32_t n)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < n; i++) {
        symbols[i] = list[i].first;
        list[i].first = i;
        if (kept == 0 || list[kept - 1].address != list[i].address) {
            list[kept++] = list[i];
            continue;
        }
        struct elf_function *f = &list[kept - 1];
        f->aliases++;
        if (list[i].end > f->end) {
            f->end = list[i].end;
        }
        f->cold = f->cold && list[i].cold;
    }
    for (uint32_t i = 0; i < kept; i++) {
        if (list[i].end == list[i].address) {
            list[i].end = i + 1 < kept ? list[i + 1].address : UINT64_MAX;
        }
    }
    return kept;
}

enum profd_status elf_functions_make(struct elf_build *b, struct elf_functions *out, struct profd_error *e)
{
    const struct object *o = b->object;
    const char *names = b->names.data; /* not yet moved into the object */
    uint32_t n = 0;
    for (uint32_t i = 0; i < o->symbol_count; i++) {
        n += is_function(&o->symbols[i], names + o->symbols[i].name);
    }
    struct elf_function *list = ARENA_ARRAY(b->scratch, (size_t)n + 1, struct elf_function);
    uint32_t *symbols = ARENA_ARRAY(b->scratch, (size_t)n + 1, uint32_t);
    if (list == NULL || symbols == NULL) {
        return profd_error_set(e, PROFD_NO_MEMORY, "out of memory for %" PRIu32 " functions", n);
    }
    n = 0;
    for (uint32_t i = 0; i < o->symbol_count; i++) {
        const struct object_symbol *s = &o->symbols[i];
        if (is_function(s, names + s->name)) {
            list[n++] = (struct elf_function){s->address, s->address + s->size, i, 1, is_cold(names + s->name)};
        }
    }
    qsort(list, n, sizeof *list, compare_functions);
    out->list = list;
    out->symbols = symbols;
    out->count = collapse(list, symbols, n);
    return PROFD_OK;
}

uint32_t elf_functions_from(const struct elf_functions *f, uint64_t address)
{
    return compare_find_first(f->list, f->count, sizeof *f->list, address);
}

const struct elf_function *elf_functions_at(const struct elf_functions *f, uint64_t address)
{
    uint32_t i = elf_functions_from(f, address);
    return i < f->count && f->list[i].address == address ? &f->list[i] : NULL;
}

const struct elf_function *elf_functions_holding(const struct elf_functions *f, uint64_t address)
{
    uint32_t i = elf_functions_from(f, address);
    if (i < f->count && f->list[i].address == address) {
        return &f->list[i];
    }
    /* Entries inside a function are rare and few: the outer one is at most eight entries before. */
    for (uint32_t back = 0; back < 8 && i > 0; back++) {
        if (f->list[--i].end > address) {
            return &f->list[i];
        }
    }
    return NULL;
}
