#include "elf/elf_inlined.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/compare.h"
#include "elf/elf_line_entries.h"
#include "proto/limits.h"

enum { AT_INLINE = 0x20, INLINED = 1, DECLARED_INLINED = 3 };
#define REFERENCES_MAX 8

struct inlined_list {
    struct entry_file file;
    const char **names;
    uint32_t count, capacity;
    uint64_t *origins; /* of inlined copies: a compiler that decides at link time marks no function as inlined */
    size_t origin_count, origin_capacity;
    bool no_memory;
};

/* An entry's attributes, as far as they say which function it is. */
struct inlined_entry {
    const char *name, *linkage_name;
    uint64_t reference; /* to an entry that says more; UINT64_MAX: none */
    bool inlined;
};

/* Leaves the entry's values behind its last attribute. */
static void entry_take(struct inlined_list *l, struct entry *entry, struct inlined_entry *out)
{
    uint64_t name;
    struct entry_value v;
    while (entry_next(&l->file, entry, &name, &v)) {
        if (name == AT_INLINE && v.kind == ENTRY_VALUE_NUMBER) {
            out->inlined = v.number == INLINED || v.number == DECLARED_INLINED;
        } else if (v.kind == ENTRY_VALUE_TEXT && (name == AT_LINKAGE_NAME || name == AT_MIPS_LINKAGE_NAME)) {
            out->linkage_name = v.text;
        } else if (v.kind == ENTRY_VALUE_TEXT && name == AT_NAME) {
            out->name = v.text;
        } else if (v.kind == ENTRY_VALUE_REFERENCE && (name == AT_SPECIFICATION || name == AT_ABSTRACT_ORIGIN)) {
            out->reference = v.number;
        }
    }
}

static void inlined_add(struct inlined_list *l, const char *name)
{
    if (l->count == l->capacity) {
        uint32_t capacity = l->capacity * 2 + 256;
        const char **more = capacity <= LIMIT_SYMBOLS ? realloc(l->names, capacity * sizeof *more) : NULL;
        l->no_memory = more == NULL;
        if (more == NULL) {
            return;
        }
        l->names = more;
        l->capacity = capacity;
    }
    l->names[l->count++] = name;
}

/* Adds the name of a function, as it is known so far. A member function has its linkage name in its class, where it is
 * declared. */
static void function_add(struct inlined_list *l, struct inlined_entry *f)
{
    for (unsigned i = 0; i < REFERENCES_MAX && f->linkage_name == NULL && f->reference != UINT64_MAX; i++) {
        const struct entry_unit *u = entry_file_unit(&l->file, f->reference);
        struct entry more;
        if (u == NULL || !entry_open(&l->file, u, f->reference, &more)) {
            break;
        }
        f->reference = UINT64_MAX;
        entry_take(l, &more, f);
    }
    const char *name = f->linkage_name != NULL ? f->linkage_name : f->name;
    if (name != NULL) {
        inlined_add(l, name);
    }
}

static void function_read(struct inlined_list *l, struct entry *entry)
{
    struct inlined_entry own = {.reference = UINT64_MAX};
    entry_take(l, entry, &own);
    if (own.inlined && !entry->values.failed) {
        function_add(l, &own);
    }
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

static void copy_read(struct inlined_list *l, struct entry *entry)
{
    struct inlined_entry own = {.reference = UINT64_MAX};
    entry_take(l, entry, &own);
    if (own.reference == UINT64_MAX || entry->values.failed) {
        return;
    }
    if (l->origin_count == l->origin_capacity) {
        origins_join(l);
    }
    if (l->origin_count > l->origin_capacity / 2 || l->origin_capacity == 0) {
        const size_t capacity = l->origin_capacity * 2 + 256;
        uint64_t *more = realloc(l->origins, capacity * sizeof *more);
        l->no_memory = more == NULL;
        if (more == NULL) {
            return;
        }
        l->origins = more;
        l->origin_capacity = capacity;
    }
    l->origins[l->origin_count++] = own.reference;
}

static void origins_add(struct inlined_list *l)
{
    origins_join(l);
    for (size_t i = 0; i < l->origin_count && !l->no_memory; i++) {
        struct inlined_entry f = {.reference = l->origins[i]};
        function_add(l, &f);
    }
}

static bool unit_read(struct inlined_list *l, const struct entry_unit *u)
{
    uint64_t at = u->entries;
    while (at < u->end && !l->no_memory) {
        struct entry entry;
        if (entry_open(&l->file, u, at, &entry)) {
            uint64_t name;
            struct entry_value v;
            if (entry.kind->tag == TAG_SUBPROGRAM) {
                function_read(l, &entry);
            } else if (entry.kind->tag == TAG_INLINED) {
                copy_read(l, &entry);
            } else {
                while (entry_next(&l->file, &entry, &name, &v)) {
                    continue;
                }
            }
        }
        if (entry.values.failed) {
            return false;
        }
        at = entry.values.at;
    }
    return true;
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

enum profd_status elf_inlined_read(struct elf_build *b, const struct elf_file *f, const struct elf_file *debug,
                                   struct profd_error *e)
{
    struct inlined_list l = {0};
    const GElf_Shdr *info = elf_file_find(f, ".debug_info");
    const struct elf_file *from = info != NULL || debug == NULL ? f : debug;
    info = elf_file_find(from, ".debug_info");
    const GElf_Shdr *strings = elf_file_find(from, ".debug_str");
    if (info == NULL) {
        return PROFD_OK;
    }
    if (info->sh_size > LIMIT_INLINED_BYTES || (strings != NULL && strings->sh_size > LIMIT_INLINED_BYTES)) {
        elf_build_note(b, "Inlined functions are not known: the debug information is larger than %u MiB.",
                       (unsigned)(LIMIT_INLINED_BYTES >> 20));
        return PROFD_OK;
    }
    enum profd_status status = entry_file_open(from, b->scratch, &l.file, e);
    bool good = status == PROFD_OK && l.file.unit_count > 0;
    for (uint32_t i = 0; good && i < l.file.unit_count && !l.no_memory; i++) {
        good = unit_read(&l, &l.file.units[i]);
    }
    if (status == PROFD_OK && good) {
        origins_add(&l);
        status = names_keep(b, &l, e);
    }
    free(l.names);
    free(l.origins);
    return status;
}
