#include "core/symtab.h"

#include <string.h>

#include "core/sort.h"
#include "core/symtab_fold.h"
#include "core/symtab_rank.h"
#include "core/symtab_span.h"

static struct symtab_owner *symtab_add(struct symtab *t, uint64_t address, uint64_t size, enum symtab_kind kind)
{
    struct symtab_owner *owner = &t->owners[t->owner_count];
    *owner = (struct symtab_owner){
        .address = address, .size = size, .symbol = SYMTAB_NONE, .folded_into = t->owner_count, .kind = (uint8_t)kind};
    t->owner_count++;
    return owner;
}

/* Where the PLT begins: the first range or slot; false if there is none. */
static bool symtab_plt_start(const struct object *o, uint64_t *start)
{
    bool found = o->plt_count > 0;
    uint64_t low = found ? o->plt[0].address : UINT64_MAX;
    for (uint32_t i = 0; i < o->range_count; i++) {
        if (o->ranges[i].kind == OBJECT_RANGE_PLT) {
            found = true;
            low = o->ranges[i].low < low ? o->ranges[i].low : low;
        }
    }
    *start = low;
    return found;
}

/* An owner for every address where function symbols are: the best of them, with the longest size any of its class
 * states. */
static void symtab_add_symbols(struct symtab *t, uint32_t *next, uint64_t below)
{
    const struct object *o = t->object;
    while (*next < t->sorted_count && o->symbols[t->sorted[*next]].address < below) {
        uint32_t first = *next, best = t->sorted[first];
        uint64_t address = o->symbols[best].address, size = 0;
        for (; *next < t->sorted_count && o->symbols[t->sorted[*next]].address == address; ++*next) {
            if (symtab_rank_before(o, t->sorted[*next], best)) {
                best = t->sorted[*next];
            }
        }
        bool typed = o->symbols[best].type != OBJECT_TYPE_NONE;
        for (uint32_t i = first; i < *next; i++) {
            const struct object_symbol *s = &o->symbols[t->sorted[i]];
            if ((s->type != OBJECT_TYPE_NONE) == typed && s->size > size) {
                size = s->size;
            }
        }
        struct symtab_owner *owner = symtab_add(t, address, size, SYMTAB_FUNCTION);
        owner->symbol = best;
        owner->first = first;
        owner->count = *next - first;
    }
}

static int symtab_compare_addresses(const void *context, uint32_t x, uint32_t y)
{
    const uint64_t *starts = context;
    return starts[x] < starts[y] ? -1 : starts[x] > starts[y];
}

/* Owners of a build without names: each known entry inside a range, and the start of each range but the PLT's. The
 * PLT's owner is put among them where has_plt. */
static bool symtab_add_entries(struct symtab *t, struct arena *a, const struct symtab_request *r, bool has_plt,
                               uint64_t plt)
{
    const struct object *o = t->object;
    uint32_t n = 0, capacity = r->entry_count + o->range_count;
    uint64_t *starts = ARENA_ARRAY(a, capacity, uint64_t), low, high;
    uint32_t *order = ARENA_ARRAY(a, (size_t)capacity * 2, uint32_t);
    if (starts == NULL || order == NULL) {
        return false;
    }
    bool sections = o->range_count > 0 && o->ranges[0].kind != OBJECT_RANGE_SEGMENT;
    for (uint32_t i = 0; i < o->range_count; i++) {
        if (o->ranges[i].low < o->ranges[i].high && o->ranges[i].kind != OBJECT_RANGE_PLT &&
            !(sections && o->ranges[i].kind == OBJECT_RANGE_SEGMENT)) {
            starts[n++] = o->ranges[i].low;
        }
    }
    for (uint32_t i = 0; i < r->entry_count; i++) {
        if (o->range_count == 0 || symtab_rank_range(o, r->entries[i], &low, &high)) {
            starts[n++] = r->entries[i];
        }
    }
    for (uint32_t i = 0; i < n; i++) {
        order[i] = i;
    }
    sort_merge(order, order + capacity, n, symtab_compare_addresses, starts);
    for (uint32_t i = 0; i < n; i++) {
        if (has_plt && plt <= starts[order[i]]) {
            symtab_add(t, plt, 0, SYMTAB_PLT);
            has_plt = false;
        }
        if (i == 0 || starts[order[i]] != starts[order[i - 1]]) {
            symtab_add(t, starts[order[i]], 0, SYMTAB_ADDRESS);
        }
    }
    if (has_plt) {
        symtab_add(t, plt, 0, SYMTAB_PLT);
    }
    return true;
}

/* All owners, ascending by address. */
static bool symtab_add_owners(struct symtab *t, struct arena *a, const struct symtab_request *r)
{
    const struct object *o = t->object;
    if (!symtab_rank_collect(a, o, &t->sorted, &t->sorted_count)) {
        return false;
    }
    t->named = t->sorted_count > 0;
    size_t capacity = t->named ? t->sorted_count : (size_t)r->entry_count + o->range_count;
    t->owners = ARENA_ARRAY(a, capacity + 2, struct symtab_owner);
    if (t->owners == NULL) {
        return false;
    }
    symtab_add(t, 0, 0, SYMTAB_GAP);
    uint64_t plt;
    bool has_plt = symtab_plt_start(o, &plt);
    uint32_t next = 0;
    if (!t->named) {
        return symtab_add_entries(t, a, r, has_plt, plt);
    }
    if (has_plt) {
        symtab_add_symbols(t, &next, plt);
        symtab_add(t, plt, 0, SYMTAB_PLT);
    }
    symtab_add_symbols(t, &next, UINT64_MAX);
    return true;
}

/* The bytes that an owner claims: its size, or up to the next owner; never beyond its range. */
static uint64_t symtab_claim_end(const struct symtab *t, uint32_t i, uint64_t range_high)
{
    const struct symtab_owner *owner = &t->owners[i];
    uint64_t end = range_high, high;
    if (owner->size > 0) {
        end = __builtin_add_overflow(owner->address, owner->size, &high) || high > range_high ? range_high : high;
    } else {
        for (uint32_t k = i + 1; k < t->owner_count; k++) {
            if (t->owners[k].kind == owner->kind && t->owners[k].address > owner->address) {
                end = t->owners[k].address < range_high ? t->owners[k].address : range_high;
                break;
            }
        }
    }
    return end;
}

static uint32_t symtab_claim_owners(const struct symtab *t, struct symtab_claim *claims)
{
    uint32_t n = 0;
    uint64_t low = 0, high = 0;
    for (uint32_t i = 0; i < t->owner_count; i++) {
        const struct symtab_owner *owner = &t->owners[i];
        if (owner->kind != SYMTAB_FUNCTION && owner->kind != SYMTAB_ADDRESS) {
            continue;
        }
        if ((owner->address < low || owner->address >= high) &&
            !symtab_rank_range(t->object, owner->address, &low, &high)) {
            low = 0;
            high = UINT64_MAX;
        }
        uint64_t end = symtab_claim_end(t, i, high);
        if (owner->address < end) {
            claims[n++] = (struct symtab_claim){owner->address, end, i};
        }
    }
    return n;
}

static uint32_t symtab_claim_plt(const struct symtab *t, struct symtab_claim *claims)
{
    const struct object *o = t->object;
    uint32_t n = 0, plt = 0;
    while (plt < t->owner_count && t->owners[plt].kind != SYMTAB_PLT) {
        plt++;
    }
    for (uint32_t i = 0; i < o->range_count; i++) {
        if (o->ranges[i].kind == OBJECT_RANGE_PLT && o->ranges[i].low < o->ranges[i].high) {
            claims[n++] = (struct symtab_claim){o->ranges[i].low, o->ranges[i].high, plt};
        }
    }
    for (uint32_t i = 0; i < o->plt_count; i++) {
        uint64_t end;
        if (o->plt[i].size > 0 && !__builtin_add_overflow(o->plt[i].address, o->plt[i].size, &end)) {
            claims[n++] = (struct symtab_claim){o->plt[i].address, end, plt};
        }
    }
    return n;
}

static bool symtab_claim(struct symtab *t, struct arena *a)
{
    const struct object *o = t->object;
    size_t capacity = (size_t)t->owner_count + o->range_count + o->plt_count;
    struct symtab_claim *claims = ARENA_ARRAY(a, capacity, struct symtab_claim);
    struct symtab_claim *ordered = ARENA_ARRAY(a, capacity, struct symtab_claim);
    struct sort_item *items = ARENA_ARRAY(a, capacity * 2, struct sort_item);
    if (claims == NULL || ordered == NULL || items == NULL) {
        return false;
    }
    uint32_t n = symtab_claim_owners(t, claims);
    n += symtab_claim_plt(t, claims + n);
    for (uint32_t i = 0; i < n; i++) {
        items[i] = (struct sort_item){claims[i].low, i};
    }
    sort_radix(items, items + capacity, n);
    for (uint32_t i = 0; i < n; i++) {
        ordered[i] = claims[items[i].value];
    }
    return symtab_span_sweep(t, a, ordered, n);
}

enum profd_status symtab_build(struct arena *a, const struct symtab_request *request, struct symtab **out,
                               struct profd_error *e)
{
    struct symtab *t = ARENA_NEW(a, struct symtab);
    bool done = t != NULL;
    if (done) {
        t->object = request->object;
        t->build_id = request->build_id;
    }
    if (done && request->object == NULL) {
        t->owners = ARENA_ARRAY(a, 1, struct symtab_owner);
        done = t->owners != NULL;
        if (done) {
            symtab_add(t, 0, 0, SYMTAB_UNKNOWN);
        }
        done = done && symtab_span_sweep(t, a, NULL, 0);
    } else {
        done = done && symtab_add_owners(t, a, request);
        done = done && (!t->named || symtab_fold(t, a, request->fold_clones));
        done = done && symtab_claim(t, a);
    }
    if (!done) {
        return profd_error_set(e, PROFD_NO_MEMORY, "no memory for the symbols of %s",
                               request->build_id == NULL ? "nothing" : request->build_id);
    }
    *out = t;
    return PROFD_OK;
}

const char *symtab_import(const struct symtab *t, uint64_t address)
{
    const struct object *o = t->object;
    uint32_t low = 0, high = o == NULL ? 0 : o->plt_count;
    while (low < high) { /* first slot behind the address */
        uint32_t middle = low + (high - low) / 2;
        if (o->plt[middle].address <= address) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    if (low == 0 || address - o->plt[low - 1].address >= o->plt[low - 1].size || o->plt[low - 1].import == 0) {
        return NULL;
    }
    return object_name(o, o->plt[low - 1].import);
}
