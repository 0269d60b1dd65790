#include "elf/elf_inlined.h"

#include <dwarf.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/compare.h"
#include "proto/limits.h"

struct inlined_list {
    const char **names;
    uint32_t count, capacity;
    uint64_t *origins; /* of inlined copies: a compiler that decides at link time marks no function as inlined */
    size_t origin_count, origin_capacity;
    bool no_memory;
};

static void name_add(struct inlined_list *l, Dwarf_Die *function)
{
    bool certain;
    const char *name = elf_dwarf_name(function, &certain);
    if (name == NULL) {
        return;
    }
    if (l->count == l->capacity) {
        uint32_t capacity = l->capacity * 2 + 256;
        const char **more = capacity <= LIMIT_SYMBOLS ? realloc(l->names, capacity * sizeof *more) : NULL;
        l->no_memory |= more == NULL;
        if (more == NULL) {
            return;
        }
        l->names = more;
        l->capacity = capacity;
    }
    l->names[l->count++] = name;
}

static bool is_inlined(Dwarf_Die *function)
{
    Dwarf_Attribute a;
    Dwarf_Word how;
    return dwarf_attr(function, DW_AT_inline, &a) != NULL && dwarf_formudata(&a, &how) == 0 &&
           (how == DW_INL_inlined || how == DW_INL_declared_inlined);
}

static int compare_origins(const void *x, const void *y)
{
    return compare_u64(*(const uint64_t *)x, *(const uint64_t *)y);
}

/* Sorts the origins, and leaves each once. */
static void origins_join(struct inlined_list *l)
{
    size_t n = 0;
    if (l->origin_count > 0) {
        qsort(l->origins, l->origin_count, sizeof *l->origins, compare_origins);
    }
    for (size_t i = 0; i < l->origin_count; i++) {
        if (i == 0 || l->origins[i] != l->origins[n - 1]) {
            l->origins[n++] = l->origins[i];
        }
    }
    l->origin_count = n;
}

static void origin_add(struct inlined_list *l, uint64_t origin)
{
    if (l->origin_count == l->origin_capacity) {
        origins_join(l);
    }
    if (l->origin_count > l->origin_capacity / 2 || l->origin_capacity == 0) {
        const size_t capacity = l->origin_capacity * 2 + 256;
        uint64_t *more = realloc(l->origins, capacity * sizeof *more);
        l->no_memory |= more == NULL;
        if (more == NULL) {
            return;
        }
        l->origins = more;
        l->origin_capacity = capacity;
    }
    l->origins[l->origin_count++] = origin;
}

/* Reads all entries. True if the names are all there are. */
static bool read_all(struct inlined_list *l, const struct elf_dwarf *d, struct elf_build *b)
{
    struct elf_entries w = {.dwarf = d->dwarf};
    bool any = false;
    while (!l->no_memory && elf_entries_next(&w)) {
        Dwarf_Die origin;
        any = true;
        if (w.tag == DW_TAG_subprogram && is_inlined(&w.entry)) {
            name_add(l, &w.entry);
        } else if (w.tag == DW_TAG_inlined_subroutine && elf_entries_origin(&w, &origin)) {
            if (dwarf_cu_getdwarf(origin.cu) == d->dwarf) {
                origin_add(l, dwarf_dieoffset(&origin));
            } else {
                name_add(l, &origin);
            }
        }
    }
    origins_join(l);
    for (size_t i = 0; i < l->origin_count && !l->no_memory; i++) {
        Dwarf_Die origin;
        if (dwarf_offdie(d->dwarf, l->origins[i], &origin) != NULL) {
            name_add(l, &origin);
        }
    }
    return !elf_entries_note(&w, b) && any && !w.damaged;
}

static int compare_names(const void *x, const void *y)
{
    return strcmp(*(const char *const *)x, *(const char *const *)y);
}

static enum profd_status names_keep(struct elf_build *b, struct inlined_list *l, struct profd_error *e)
{
    struct object *o = b->object;
    o->inlined = ARENA_ARRAY(b->out, (size_t)l->count + 1, uint32_t);
    if (o->inlined == NULL || l->no_memory) {
        return profd_error_set(e, PROFD_NO_MEMORY, "out of memory for %" PRIu32 " inlined functions", l->count);
    }
    if (l->count > 0) {
        qsort(l->names, l->count, sizeof *l->names, compare_names);
    }
    for (uint32_t i = 0; i < l->count; i++) {
        if (i == 0 || strcmp(l->names[i], l->names[i - 1]) != 0) {
            o->inlined[o->inlined_count++] = elf_build_name(b, l->names[i], strlen(l->names[i]));
        }
    }
    o->knows_inlined = true;
    return PROFD_OK;
}

enum profd_status elf_inlined_read(struct elf_build *b, const struct elf_dwarf *d, struct profd_error *e)
{
    struct inlined_list l = {0};
    const Elf_Data *info = elf_dwarf_section(d, ".debug_info"), *strings = elf_dwarf_section(d, ".debug_str");
    if (info == NULL) {
        return PROFD_OK;
    }
    if (info->d_size > LIMIT_INLINED_BYTES || (strings != NULL && strings->d_size > LIMIT_INLINED_BYTES)) {
        elf_build_note(b, "Inlined functions are not known: the debug information is larger than %u MiB.",
                       (unsigned)(LIMIT_INLINED_BYTES >> 20));
        return PROFD_OK;
    }
    bool complete = read_all(&l, d, b);
    enum profd_status status = complete || l.no_memory ? names_keep(b, &l, e) : PROFD_OK;
    free(l.names);
    free(l.origins);
    return status;
}
