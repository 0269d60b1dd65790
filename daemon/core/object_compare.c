#include "core/object_compare.h"

#include <string.h>

#include "core/table.h"

static bool same_text(const struct object *a, uint32_t x, const struct object *b, uint32_t y)
{
    return strcmp(object_name(a, x), object_name(b, y)) == 0;
}

static bool same_file(const struct object *a, const struct object *b)
{
    return strcmp(a->id.text, b->id.text) == 0 && a->machine == b->machine && a->bits == b->bits &&
           a->big_endian == b->big_endian && a->position_independent == b->position_independent;
}

static uint64_t hash_symbol(const struct object *o, uint32_t i)
{
    return table_hash_text(object_name(o, o->symbols[i].name), 0, o->symbols[i].address);
}

static uint64_t hash_row(const void *context, uint32_t index)
{
    return hash_symbol(context, index);
}

/* Has the other object this symbol of o? */
static bool has_symbol(const struct table *t, const struct object *other, const struct object *o, uint32_t i)
{
    bool found = false;
    uint32_t slot = table_slot(t, hash_symbol(o, i));
    for (; t->slots[slot] != 0 && !found; slot = (slot + 1) & t->mask) {
        const struct object_symbol *s = &other->symbols[t->slots[slot] - 1];
        found = s->address == o->symbols[i].address && s->size == o->symbols[i].size &&
                same_text(other, s->name, o, o->symbols[i].name);
    }
    return found;
}

static uint32_t count_files(const struct object *o)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < o->symbol_count; i++) {
        n += o->symbols[i].file != 0;
    }
    return n;
}

/* The ranges that a file has with and without symbols: of .text and of segments. */
static bool same_code(const struct object *a, const struct object *b)
{
    uint32_t k = 0;
    for (uint32_t i = 0; i < a->range_count; i++) {
        if (a->ranges[i].kind != OBJECT_RANGE_SEGMENT) {
            continue;
        }
        while (k < b->range_count && b->ranges[k].kind != OBJECT_RANGE_SEGMENT) {
            k++;
        }
        if (k == b->range_count || a->ranges[i].low != b->ranges[k].low || a->ranges[i].high != b->ranges[k].high) {
            return false;
        }
        k++;
    }
    return true;
}

static bool has_fewer_parts(const struct object *o, const struct object *more)
{
    return o->line_count <= more->line_count && o->digest_count <= more->digest_count &&
           o->inlined_count <= more->inlined_count && o->instruction_count <= more->instruction_count &&
           o->arc_count <= more->arc_count && o->plt_count <= more->plt_count &&
           o->knows_returns <= more->knows_returns && o->knows_inlined <= more->knows_inlined &&
           o->has_names <= more->has_names && count_files(o) <= count_files(more);
}

enum profd_status object_compare_content(const struct object *o, const struct object *more, struct arena *scratch,
                                         bool *adds, struct profd_error *e)
{
    ARENA_BOUNDARY(scratch, profd_no_memory(e));
    struct table t = {.slots = NULL};
    bool held = same_file(o, more) && same_code(o, more) && has_fewer_parts(o, more);
    for (uint32_t i = 0; i < more->symbol_count && held; i++) {
        table_reserve(&t, scratch, hash_row, more);
        uint32_t slot = table_slot(&t, hash_symbol(more, i));
        while (t.slots[slot] != 0) {
            slot = (slot + 1) & t.mask;
        }
        t.slots[slot] = i + 1;
        t.used++;
    }
    for (uint32_t i = 0; i < o->symbol_count && held; i++) {
        held = more->symbol_count > 0 && has_symbol(&t, more, o, i);
    }
    *adds = !held;
    return PROFD_OK;
}
