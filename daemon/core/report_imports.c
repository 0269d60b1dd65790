#include "core/report_imports.h"

#include <string.h>

static uint64_t imports_hash(const void *context, uint32_t i)
{
    const struct report_imports *imports = context;
    return table_hash_text(imports->names[i], '@', 0);
}

static bool imports_same(const char *a, const char *b)
{
    while (*a != '\0' && *a != '@' && *a == *b) {
        a++;
        b++;
    }
    return (*a == '\0' || *a == '@') && (*b == '\0' || *b == '@');
}

/* Visible to other builds, in its default version ("name" or "name@@VERSION"). */
static bool imports_exported(const struct object *o, const struct object_symbol *s)
{
    const char *version = strchr(object_name(o, s->name), '@');
    return s->bind != OBJECT_BIND_LOCAL && s->type != OBJECT_TYPE_NONE && (version == NULL || version[1] == '@');
}

static uint32_t *imports_slot(const struct report_imports *imports, const char *name)
{
    const struct table *t = &imports->table;
    uint32_t at = table_slot(t, table_hash_text(name, '@', 0));
    while (t->slots[at] != 0 && !imports_same(imports->names[t->slots[at] - 1], name)) {
        at = (at + 1) & t->mask;
    }
    return &t->slots[at];
}

static void imports_add_build(struct arena *a, const struct symtab *t, uint32_t base, struct report_imports *imports)
{
    for (uint32_t i = 0; i < t->owner_count; i++) {
        const struct symtab_owner *owner = &t->owners[i];
        for (uint32_t k = 0; k < owner->count; k++) {
            const struct object_symbol *s = &t->object->symbols[t->sorted[owner->first + k]];
            if (!imports_exported(t->object, s)) {
                continue;
            }
            table_reserve(&imports->table, a, imports_hash, imports);
            const char *name = object_name(t->object, s->name);
            uint32_t *slot = imports_slot(imports, name);
            if (*slot != 0) {
                continue;
            }
            imports->names[imports->table.used] = name;
            imports->owners[imports->table.used] = base + owner->folded_into;
            *slot = ++imports->table.used;
        }
    }
}

uint32_t report_imports_find(struct report_imports *imports, const char *name)
{
    if (!imports->made) {
        /* Collects the global and weak function symbols of all builds. O(symbols) expected. */
        struct arena *a = imports->arena;
        const struct report_builds *b = imports->builds;
        size_t capacity = 0;
        for (uint32_t i = 0; i < b->count; i++) {
            capacity += b->tables[i]->sorted_count;
        }
        imports->made = true;
        imports->names = ARENA_ARRAY(a, capacity, const char *);
        imports->owners = ARENA_ARRAY(a, capacity, uint32_t);
        for (uint32_t i = 0; i < b->count; i++) {
            imports_add_build(a, b->tables[i], b->first[i], imports);
        }
    }
    uint32_t slot = imports->table.slots == NULL ? 0 : *imports_slot(imports, name);
    return slot == 0 ? SYMTAB_NONE : imports->owners[slot - 1];
}

uint32_t report_imports_callee(struct report_imports *imports, uint32_t build, const struct object_arc *arc,
                               uint32_t *span, bool *by_name)
{
    const struct symtab *t = imports->builds->tables[build];
    const char *name = NULL;
    *by_name = true;
    if (arc->import != 0) {
        return report_imports_find(imports, object_name(t->object, arc->import));
    }
    uint32_t local = symtab_find_next(t, arc->to, span);
    if (t->owners[local].kind == SYMTAB_PLT && (name = symtab_import(t, arc->to)) != NULL) {
        return report_imports_find(imports, name);
    }
    *by_name = false;
    return imports->builds->first[build] + local;
}
