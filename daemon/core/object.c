#include "core/object.h"

#include <string.h>

#include "proto/sort.h"
#include "core/row_table.h"

/* e_machine */
#define MACHINE_X86_64 62
#define MACHINE_AARCH64 183

#define THROUGH_WORD_BYTES 6u /* call *word(%rip), which arcs have, too */

/* Bytes of a direct call instruction as compilers write it: 4 on AArch64, else 5. */
static uint32_t object_call_bytes(const struct object *o)
{
    return o->machine == MACHINE_AARCH64 ? 4 : 5;
}

static bool object_has_address(const uint64_t *addresses, uint32_t n, uint64_t address)
{
    uint32_t at = compare_find_first(addresses, n, sizeof *addresses, address);
    return at < n && addresses[at] == address;
}

/* The call instruction at the address, NULL if arcs have none. */
static const struct object_arc *object_arc_at(const struct object *o, uint64_t address)
{
    uint32_t i = compare_find_first(o->arcs, o->arc_count, sizeof *o->arcs, address);
    for (; i < o->arc_count && o->arcs[i].from == address; i++) {
        if (o->arcs[i].kind == OBJECT_ARC_CALL) {
            return &o->arcs[i];
        }
    }
    return NULL;
}

enum object_call object_find_call(const struct object *o, uint64_t return_address, const struct object_arc **arc)
{
    const struct object_arc *found = object_arc_at(o, return_address - object_call_bytes(o));
    if (found == NULL && object_has_address(o->returns, o->return_count, return_address)) {
        found = o->machine == MACHINE_X86_64 ? object_arc_at(o, return_address - THROUGH_WORD_BYTES) : NULL;
        if (found == NULL) {
            return OBJECT_CALL_POSSIBLE;
        }
    }
    if (found != NULL) {
        *arc = found;
        return OBJECT_CALL_DIRECT;
    }
    if (object_has_address(o->signal_returns, o->signal_return_count, return_address)) {
        return OBJECT_CALL_SIGNAL;
    }
    return o->knows_returns ? OBJECT_CALL_NONE : OBJECT_CALL_POSSIBLE;
}

bool object_holds(const struct object *o, uint64_t address)
{
    for (uint32_t i = 0; i < o->range_count; i++) {
        if (o->ranges[i].low <= address && address < o->ranges[i].high) {
            return true;
        }
    }
    return false;
}

/* As strncmp, with another character at this place of the name; place ≥ n: with none. */
static int compare_replaced(const char *at, const char *name, size_t n, size_t place, char replacement)
{
    if (place >= n) {
        return strncmp(at, name, n);
    }
    int order = strncmp(at, name, place);
    if (order == 0) {
        order = (unsigned char)at[place] - replacement;
    }
    return order != 0 ? order : strncmp(at + place + 1, name + place + 1, n - place - 1);
}

static bool find_name(const struct object *o, const char *name, size_t n, size_t place)
{
    uint32_t i;
    SORT_SEARCH(i, 0, o->inlined_count, compare_replaced(object_name(o, o->inlined[i]), name, n, place, '4') < 0);
    return i < o->inlined_count && compare_replaced(object_name(o, o->inlined[i]), name, n, place, '4') == 0 &&
           object_name(o, o->inlined[i])[n] == '\0';
}

/* A constructor or destructor has a symbol for each kind (C1, C2, D0, D1, D2), and debug information has one name for
 * all of them (C4, D4). */
bool object_has_inlined(const struct object *o, const char *name, size_t n)
{
    bool found = find_name(o, name, n, n);
    for (size_t i = 3; !found && i + 1 < n && strncmp(name, "_Z", 2) == 0; i++) {
        const bool kind = (name[i - 1] == 'C' || name[i - 1] == 'D') && name[i] >= '0' && name[i] <= '2';
        found = kind && (name[i + 1] == 'E' || name[i + 1] == 'I') && find_name(o, name, n, i);
    }
    return found;
}

static uint64_t hash_symbol(const void *context, uint32_t i)
{
    const struct object *o = context;
    return table_hash_text(object_name(o, o->symbols[i].name), 0, o->symbols[i].address);
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

enum profd_status object_compare_content(const struct object *o, const struct object *more, struct arena *scratch,
                                         bool *adds, struct profd_error *e)
{
    ARENA_BOUNDARY(scratch, profd_no_memory(e));
    struct table t = {.slots = NULL};
    bool held = strcmp(o->id.text, more->id.text) == 0 && o->machine == more->machine && o->bits == more->bits &&
                o->big_endian == more->big_endian && o->position_independent == more->position_independent &&
                same_code(o, more) && o->line_count <= more->line_count && o->digest_count <= more->digest_count &&
                o->inlined_count <= more->inlined_count && o->instruction_count <= more->instruction_count &&
                o->arc_count <= more->arc_count && o->plt_count <= more->plt_count &&
                o->knows_returns <= more->knows_returns && o->knows_inlined <= more->knows_inlined &&
                o->has_names <= more->has_names && count_files(o) <= count_files(more) &&
                (o->symbol_count == 0 || more->symbol_count > 0);
    for (uint32_t i = 0; i < more->symbol_count && held; i++) {
        table_add(&t, scratch, hash_symbol, more);
    }
    for (uint32_t i = 0; i < o->symbol_count && held; i++) {
        const struct object_symbol *symbol = &o->symbols[i];
        held = false;
        for (uint32_t slot = table_slot(&t, hash_symbol(o, i)); t.slots[slot] != 0 && !held;
             slot = (slot + 1) & t.mask) {
            const struct object_symbol *s = &more->symbols[t.slots[slot] - 1];
            held = s->address == symbol->address && s->size == symbol->size &&
                   strcmp(object_name(more, s->name), object_name(o, symbol->name)) == 0;
        }
    }
    *adds = !held;
    return PROFD_OK;
}
