#include "core/report_names.h"

#include <string.h>

#include "proto/sort.h"

static int names_compare(const void *context, uint32_t x, uint32_t y)
{
    const struct object *o = context;
    return strcmp(object_name(o, o->symbols[x].name), object_name(o, o->symbols[y].name));
}

/* The other names at the owner's address, each once. */
static void names_aliases(struct arena *a, const struct symtab *t, const struct symtab_owner *owner,
                          struct report_function *f)
{
    if (owner->count <= 1) {
        return;
    }
    uint32_t *symbols = ARENA_ARRAY(a, (size_t)owner->count * 2, uint32_t);
    const char **aliases = ARENA_ARRAY(a, owner->count, const char *);
    memcpy(symbols, t->sorted + owner->first, owner->count * sizeof *symbols);
    sort_merge(symbols, symbols + owner->count, owner->count, names_compare, t->object);
    for (uint32_t i = 0; i < owner->count; i++) {
        const char *name = object_name(t->object, t->object->symbols[symbols[i]].name);
        bool known =
            strcmp(name, f->raw) == 0 || (f->alias_count > 0 && strcmp(name, aliases[f->alias_count - 1]) == 0);
        if (!known) {
            aliases[f->alias_count++] = name;
        }
    }
    f->aliases = aliases;
}

static enum report_kind names_kind(uint8_t kind)
{
    switch ((enum symtab_kind)kind) {
    case SYMTAB_FUNCTION:
        return REPORT_FUNCTION;
    case SYMTAB_PLT:
        return REPORT_PLT;
    case SYMTAB_GAP:
        return REPORT_GAP;
    case SYMTAB_ADDRESS:
        return REPORT_ADDRESS;
    case SYMTAB_UNKNOWN:
        break;
    }
    return REPORT_UNKNOWN;
}

/* Name of an owner that is not a symbol. */
static const char *names_invent(struct arena *a, const struct symtab *t, const struct symtab_owner *owner)
{
    switch ((enum symtab_kind)owner->kind) {
    case SYMTAB_PLT:
        return "[plt]";
    case SYMTAB_GAP:
        return "[gap]";
    case SYMTAB_UNKNOWN:
        return t->build_id == NULL ? "[outside]" : arena_format(a, "[unknown %s]", t->build_id);
    case SYMTAB_ADDRESS:
    case SYMTAB_FUNCTION:
        break;
    }
    return arena_format(a, "0x%llx", (unsigned long long)owner->address);
}

void report_names_describe(struct arena *a, const struct report_builds *b, uint32_t owner, struct report_function *f)
{
    f->file = "";
    if (owner == b->first[b->count + 1]) { /* report_stacks.h */
        f->kind = REPORT_UNKNOWN;
        f->build = b->count;
        f->address = COUNTS_FRAME_INCOMPLETE;
        f->name = f->raw = "[incomplete]";
        return;
    }
    uint32_t build = report_builds_of(b, owner);
    const struct symtab *t = b->tables[build];
    const struct symtab_owner *o = &t->owners[owner - b->first[build]];
    f->kind = names_kind(o->kind);
    f->build = build;
    f->address = o->address;
    f->size = o->size;
    if (o->symbol == SYMTAB_NONE) {
        f->name = f->raw = names_invent(a, t, o);
        return;
    }
    const struct object_symbol *s = &t->object->symbols[o->symbol];
    f->name = object_name(t->object, s->demangled);
    f->raw = object_name(t->object, s->name);
    f->file = object_name(t->object, s->file);
    f->line = s->line;
    f->code = s->code;
    names_aliases(a, t, o, f);
}
