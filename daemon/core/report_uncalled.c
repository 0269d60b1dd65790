#include "core/report_uncalled.h"

#include "core/report_arcs.h"
#include "core/runtime_names.h"

/* Marks the owners that are counters: in a statically linked program they are functions of the same object. */
static bool *uncalled_counters(struct arena *a, const struct symtab *t)
{
    bool *counter = ARENA_ARRAY(a, t->owner_count, bool);
    for (uint32_t i = 0; counter != NULL && i < t->owner_count; i++) {
        const struct symtab_owner *o = &t->owners[i];
        for (uint32_t k = 0; o->kind == SYMTAB_FUNCTION && k < o->count; k++) {
            const struct object_symbol *s = &t->object->symbols[t->sorted[o->first + k]];
            counter[i] = counter[i] || runtime_is_counter(object_name(t->object, s->name));
        }
    }
    return counter;
}

static bool uncalled_is_counter(const struct symtab *t, const bool *counter, const struct object_arc *arc,
                                uint32_t *span)
{
    if (arc->import != 0) {
        return runtime_is_counter(object_name(t->object, arc->import));
    }
    uint32_t owner = symtab_find_next(t, arc->to, span);
    const char *name = t->owners[owner].kind == SYMTAB_PLT ? symtab_import(t, arc->to) : NULL;
    return name != NULL ? runtime_is_counter(name) : counter[owner];
}

/* Marks those owners of one build that call a counter. Arcs ascend by caller, so the search continues where it
 * stopped. */
static bool uncalled_mark(struct arena *a, const struct symtab *t, bool *counts)
{
    const bool *counter = uncalled_counters(a, t);
    uint32_t from_span = 0, to_span = 0;
    for (uint32_t i = 0; counter != NULL && i < t->object->arc_count; i++) {
        const struct object_arc *arc = &t->object->arcs[i];
        if (uncalled_is_counter(t, counter, arc, &to_span)) {
            uint32_t owner = symtab_find_next(t, arc->from, &from_span);
            counts[owner] = t->owners[owner].kind == SYMTAB_FUNCTION && !counter[owner];
        }
    }
    return counter != NULL;
}

bool report_uncalled_find(struct arena *a, const struct report_builds *b, const uint8_t *seen,
                          struct report_uncalled *out)
{
    uint32_t owners = b->first[b->count + 1];
    bool *counts = ARENA_ARRAY(a, owners, bool);
    for (uint32_t i = 0; counts != NULL && i < b->count; i++) {
        if (b->tables[i]->object != NULL && !uncalled_mark(a, b->tables[i], counts + b->first[i])) {
            return false;
        }
    }
    for (uint32_t i = 0; counts != NULL && i < owners; i++) {
        out->counted += counts[i];
        out->count += counts[i] && (seen[i] & REPORT_ENTRY) == 0;
    }
    out->owners = ARENA_ARRAY(a, out->count, uint32_t);
    if (counts == NULL || out->owners == NULL) {
        return false;
    }
    for (uint32_t i = 0, n = 0; i < owners; i++) {
        if (counts[i] && (seen[i] & REPORT_ENTRY) == 0) {
            out->owners[n++] = i;
        }
    }
    return true;
}
