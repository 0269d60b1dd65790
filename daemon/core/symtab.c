#include "core/symtab.h"

#include <string.h>

#include "proto/sort.h"
#include "core/row_table.h"

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

/* True if symbol x goes before y: STT_FUNC and IFUNC before untyped; global > weak > local; fewest leading underscores;
 * shortest; strcmp; the first in the table. */
static bool symtab_rank_before(const struct object *o, uint32_t x, uint32_t y)
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

bool symtab_is_function(const struct object *o, const struct object_symbol *s)
{
    static const char *const BOUNDS[] = {"__executable_start", "etext", "_etext", "__etext"};
    const char *name = object_name(o, s->name);
    if ((s->flags & OBJECT_SYMBOL_EXECUTABLE) == 0 || name[0] == '\0') {
        return false;
    }
    if (symtab_rank_typed(s)) {
        return true;
    }
    /* ARM's and RISC-V's marks of code and data ($x, $d, $t.12), and labels of the assembler. */
    bool is_function = s->type == OBJECT_TYPE_NONE && name[0] != '$' && !(name[0] == '.' && name[1] == 'L');
    for (size_t i = 0; i < sizeof BOUNDS / sizeof *BOUNDS && is_function; i++) {
        is_function = strcmp(name, BOUNDS[i]) != 0;
    }
    return is_function;
}

/* Where the range that holds the address begins and ends; sections before segments. False if none does.
 * Ranges of one kind are taken not to overlap. O(log ranges). */
static bool symtab_rank_range(const struct object *o, uint64_t address, uint64_t *low, uint64_t *high)
{
    for (unsigned kind = OBJECT_RANGE_TEXT; kind <= OBJECT_RANGE_SEGMENT; kind++) {
        uint32_t behind; /* the last range of that kind that begins at or below the address, or all of lower kinds */
        SORT_SEARCH(behind, 0, o->range_count,
                    compare_pairs(o->ranges[behind].kind, kind, o->ranges[behind].low, address) <= 0);
        const struct object_range *range = behind > 0 ? &o->ranges[behind - 1] : NULL;
        if (range != NULL && range->kind == kind && range->low <= address && address < range->high) {
            *low = range->low;
            *high = range->high;
            return true;
        }
    }
    return false;
}

/* [low, high) is claimed by an owner; low < high. */
struct symtab_claim {
    uint64_t low, high;
    uint32_t owner; /* not yet folded: its symbol decides its rank */
};

/* Clones and cold parts go back into the function they were cut from. */

/* Owners by each of their names. */
struct fold_names {
    const struct symtab *table;
    bool clones;
    struct table index;        /* one position in sorted for each name */
    uint32_t *owner;           /* of each position in sorted */
    uint32_t *first, *count;   /* of a position in index: where its name is in by_name */
    struct sort_item *by_name; /* positions by (name, symbol of the object); key is name << 32 | symbol */
};

static const char *fold_name(const struct symtab *t, uint32_t position)
{
    return object_name(t->object, t->object->symbols[t->sorted[position]].name);
}

static bool fold_ends_with(const char *name, size_t n, const char *suffix)
{
    size_t length = strlen(suffix);
    return n > length && memcmp(name + n - length, suffix, length) == 0;
}

/* Length of the name without its last clone suffix; 0 if it has none that may be folded. */
static size_t fold_parent_length(const char *name, size_t n, bool clones)
{
    static const char *const suffixes[] = {".cold", ".part", ".isra", ".constprop"};
    size_t digits = n;
    while (digits > 0 && name[digits - 1] >= '0' && name[digits - 1] <= '9') {
        digits--;
    }
    bool numbered = digits < n && digits > 0 && name[digits - 1] == '.';
    size_t stem = numbered ? digits - 1 : n;
    if (fold_ends_with(name, stem, suffixes[0])) {
        return stem - strlen(suffixes[0]);
    }
    for (size_t i = 1; clones && numbered && i < sizeof suffixes / sizeof *suffixes; i++) {
        if (fold_ends_with(name, stem, suffixes[i])) {
            return stem - strlen(suffixes[i]);
        }
    }
    return 0;
}

static uint32_t *fold_slot(struct fold_names *names, const char *name, size_t n)
{
    uint32_t at = table_slot(&names->index, table_hash_bytes(name, n, (uintptr_t)names->owner));
    for (; names->index.slots[at] != 0; at = (at + 1) & names->index.mask) {
        const char *other = fold_name(names->table, names->index.slots[at] - 1);
        if (strncmp(other, name, n) == 0 && other[n] == '\0') {
            break;
        }
    }
    return &names->index.slots[at];
}

static void fold_index(struct fold_names *names, struct arena *a)
{
    const struct symtab *t = names->table;
    uint32_t n = t->sorted_count;
    /* All rows are known now; a table of twice as many slots never has to grow. */
    uint64_t slots = 64;
    while (slots < (uint64_t)n * 2) {
        slots *= 2;
    }
    names->index = (struct table){ARENA_ARRAY(a, slots, uint32_t), (uint32_t)(slots - 1), 0, 0};
    names->owner = ARENA_ARRAY(a, n, uint32_t);
    names->first = ARENA_ARRAY(a, n, uint32_t);
    names->count = ARENA_ARRAY(a, n, uint32_t);
    names->by_name = ARENA_ARRAY(a, (size_t)n * 2, struct sort_item);
    for (uint32_t i = 0; i < t->owner_count; i++) {
        for (uint32_t k = 0; k < t->owners[i].count; k++) {
            names->owner[t->owners[i].first + k] = i;
        }
    }
    for (uint32_t p = 0; p < n; p++) {
        const char *name = fold_name(t, p);
        uint32_t *slot = fold_slot(names, name, strlen(name));
        if (*slot == 0) {
            *slot = p + 1;
        }
        names->by_name[p] = (struct sort_item){(uint64_t)(*slot - 1) << 32 | t->sorted[p], p};
        names->count[*slot - 1]++;
    }
    sort_radix(names->by_name, names->by_name + n, n);
    for (uint32_t i = n; i-- > 0;) {
        names->first[names->by_name[i].key >> 32] = i;
    }
}

/* Finds the function from which a part was split. Local symbols of one file are adjacent, so the only candidates are
 * the symbols next to the part in the symbol table: the one of its file, otherwise the nearer one. */
static uint32_t fold_find(struct fold_names *names, const char *name, size_t n, uint32_t part, size_t part_length)
{
    const struct symtab *t = names->table;
    const struct object_symbol *symbols = t->object->symbols;
    uint32_t symbol = t->owners[part].symbol, slot = *fold_slot(names, name, n);
    if (slot == 0) {
        return SYMTAB_NONE;
    }
    uint32_t low = names->first[slot - 1], end = low + names->count[slot - 1], best = SYMTAB_NONE;
    SORT_SEARCH(low, low, end, (uint32_t)names->by_name[low].key < symbol); /* the first candidate behind the part */
    for (uint32_t i = low > names->first[slot - 1] ? low - 1 : low; i < end && i <= low; i++) {
        const uint32_t other = (uint32_t)names->by_name[i].key, owner = names->owner[names->by_name[i].value];
        if (owner == part || t->owners[owner].symbol == SYMTAB_NONE) {
            continue;
        }
        /* An owner that is a part itself must have a shorter name, so that no chain of parts can close. */
        const char *winner = object_name(t->object, symbols[t->owners[owner].symbol].name);
        const size_t length = strlen(winner);
        if (length >= part_length && fold_parent_length(winner, length, names->clones) > 0) {
            continue;
        }
        bool file = symbols[other].file != 0 && symbols[other].file == symbols[symbol].file;
        if (best == SYMTAB_NONE || file ||
            (other - symbol < symbol - (uint32_t)names->by_name[best].key &&
             (symbols[names->by_name[best].key & UINT32_MAX].file != symbols[symbol].file ||
              symbols[symbol].file == 0))) {
            best = i;
        }
    }
    return best == SYMTAB_NONE ? SYMTAB_NONE : names->owner[names->by_name[best].value];
}

/* Sets folded_into of owners named X.cold[.N] (with clones also X.part.N, X.isra.N, X.constprop.N) to X's owner, where
 * there is one; of several X the one of the same source file, then the nearest in the symbol table. Owners must be
 * complete but for spans. O(symbols) expected. */
static void symtab_fold(struct symtab *t, struct arena *a, bool clones)
{
    struct fold_names names = {.table = t, .clones = clones};
    for (uint32_t i = 0; i < t->owner_count; i++) {
        if (t->owners[i].symbol == SYMTAB_NONE) {
            continue;
        }
        const char *name = object_name(t->object, t->object->symbols[t->owners[i].symbol].name);
        size_t length = strlen(name), n = fold_parent_length(name, length, clones);
        if (n > 0 && names.owner == NULL) {
            fold_index(&names, a);
        }
        for (; n > 0; n = fold_parent_length(name, n, clones)) {
            uint32_t parent = fold_find(&names, name, n, i, length);
            if (parent != SYMTAB_NONE) {
                t->owners[i].folded_into = parent;
                break;
            }
        }
    }
    /* Parts of parts: each step goes to a shorter name, so the chains end. */
    for (uint32_t i = 0; i < t->owner_count; i++) {
        while (t->owners[t->owners[i].folded_into].folded_into != t->owners[i].folded_into) {
            t->owners[i].folded_into = t->owners[t->owners[i].folded_into].folded_into;
        }
    }
}

struct sweep {
    const struct symtab *table;
    const struct symtab_claim *claims;
};

/* Returns whether claim x precedes claim y. */
static bool span_before(const void *context, uint32_t x, uint32_t y)
{
    const struct sweep *h = context;
    const struct symtab_owner *a = &h->table->owners[h->claims[x].owner], *b = &h->table->owners[h->claims[y].owner];
    if (a->symbol == SYMTAB_NONE || b->symbol == SYMTAB_NONE) {
        if ((a->symbol == SYMTAB_NONE) != (b->symbol == SYMTAB_NONE)) {
            return b->symbol == SYMTAB_NONE;
        }
        /* Without symbols the PLT goes before entries, then the innermost before what is around it. */
        if ((a->kind == SYMTAB_PLT) != (b->kind == SYMTAB_PLT)) {
            return a->kind == SYMTAB_PLT;
        }
        return x > y;
    }
    return symtab_rank_before(h->table->object, a->symbol, b->symbol);
}

/* Fills in the spans and buckets of t from n claims ascending by low; unclaimed bytes belong to owner 0. Among claims
 * on one byte, symbols precede others, and among symbols symtab_rank_before decides. O(n log overlap). */
static void symtab_span_sweep(struct symtab *t, struct arena *a, const struct symtab_claim *claims, uint32_t n)
{
    const struct sweep sweep = {t, claims};
    /* Claims that hold the current address; those that have ended are dropped when they come to the top. */
    struct heap heap = {span_before, &sweep, ARENA_ARRAY(a, n, uint32_t), 0};
    /* Each iteration begins or ends a claim, and may leave a gap after it. */
    t->span_low = ARENA_ARRAY(a, (size_t)n * 3 + 2, uint64_t);
    t->span_owner = ARENA_ARRAY(a, (size_t)n * 3 + 2, uint32_t);
    uint32_t next = 0;
    for (uint64_t at = 0;;) {
        while (heap.count > 0 && claims[heap.items[0]].high <= at) {
            heap_pop(&heap);
        }
        while (next < n && claims[next].low == at) {
            heap_push(&heap, next++);
        }
        const uint32_t top = heap.count > 0 ? heap.items[0] : SYMTAB_NONE;
        const uint32_t owner = t->owners[top == SYMTAB_NONE ? 0 : claims[top].owner].folded_into;
        if (t->span_count == 0 || t->span_owner[t->span_count - 1] != owner) {
            t->span_low[t->span_count] = at;
            t->span_owner[t->span_count++] = owner;
        }
        if (top == SYMTAB_NONE && next == n) {
            break;
        }
        uint64_t start = next < n ? claims[next].low : UINT64_MAX;
        at = top != SYMTAB_NONE && claims[top].high < start ? claims[top].high : start;
        if (at == UINT64_MAX) {
            break;
        }
    }

    /* At most four times as many buckets as spans, each as wide as a power of two. */
    const uint64_t low = t->span_count > 1 ? t->span_low[1] : 0, high = t->span_low[t->span_count - 1];
    unsigned shift = 0;
    while ((high - low) >> shift >= (uint64_t)t->span_count * 4) {
        shift++;
    }
    t->bucket_low = low;
    t->bucket_shift = shift;
    t->bucket_count = (uint32_t)((high - low) >> shift) + 1;
    t->bucket = ARENA_ARRAY(a, t->bucket_count, uint32_t);
    for (uint32_t i = 0, span = 0; i < t->bucket_count; i++) {
        uint64_t start = low + ((uint64_t)i << shift);
        while (span + 1 < t->span_count && t->span_low[span + 1] <= start) {
            span++;
        }
        t->bucket[i] = span;
    }
}

uint32_t symtab_find_span(const struct symtab *t, uint64_t address)
{
    if (address < t->bucket_low) {
        return 0;
    }
    uint64_t bucket = (address - t->bucket_low) >> t->bucket_shift;
    if (bucket >= t->bucket_count) {
        return t->span_count - 1;
    }
    uint32_t low = t->bucket[bucket];
    uint32_t high = bucket + 1 < t->bucket_count ? t->bucket[bucket + 1] + 1 : t->span_count;
    SORT_SEARCH(low, low + 1, high, t->span_low[low] <= address); /* the span is before the first that begins later */
    return low - 1;
}

uint32_t symtab_find_next(const struct symtab *t, uint64_t address, uint32_t *span)
{
    uint32_t at = *span;
    if (t->span_low[at] > address || (at + 1 < t->span_count && t->span_low[at + 1] <= address)) {
        if (at + 2 < t->span_count && t->span_low[at + 1] <= address && address < t->span_low[at + 2]) {
            at++;
        } else {
            at = symtab_find_span(t, address);
        }
        *span = at;
    }
    return t->span_owner[at];
}

static struct symtab_owner *symtab_add(struct symtab *t, uint64_t address, uint64_t size, enum symtab_kind kind)
{
    struct symtab_owner *owner = &t->owners[t->owner_count];
    *owner = (struct symtab_owner){
        .address = address, .size = size, .symbol = SYMTAB_NONE, .folded_into = t->owner_count, .kind = (uint8_t)kind};
    t->owner_count++;
    return owner;
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
static void symtab_add_entries(struct symtab *t, struct arena *a, const struct symtab_request *r, bool has_plt,
                               uint64_t plt)
{
    const struct object *o = t->object;
    uint32_t n = 0, capacity = r->entry_count + o->range_count;
    uint64_t *starts = ARENA_ARRAY(a, capacity, uint64_t), low, high;
    uint32_t *order = ARENA_ARRAY(a, (size_t)capacity * 2, uint32_t);
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
}

/* Collects the function symbols and adds all owners, ascending by address. */
static void symtab_add_owners(struct symtab *t, struct arena *a, const struct symtab_request *r)
{
    const struct object *o = t->object;
    uint32_t most = 0;
    for (uint32_t i = 0; i < o->symbol_count; i++) {
        most += symtab_is_function(o, &o->symbols[i]);
    }
    /* Function symbols inside an executable range (all, if the object tells no ranges), ascending by address. Symbols
     * of one section mostly stand together: the last range is asked first. */
    struct sort_item *items = ARENA_ARRAY(a, (size_t)most * 2, struct sort_item);
    t->sorted = ARENA_ARRAY(a, most, uint32_t);
    uint64_t low = 0, high = 0;
    for (uint32_t i = 0; i < o->symbol_count; i++) {
        const struct object_symbol *s = &o->symbols[i];
        if (symtab_is_function(o, s) && (o->range_count == 0 || (s->address >= low && s->address < high) ||
                                         symtab_rank_range(o, s->address, &low, &high))) {
            items[t->sorted_count++] = (struct sort_item){s->address, i};
        }
    }
    sort_radix(items, items + most, t->sorted_count);
    for (uint32_t i = 0; i < t->sorted_count; i++) {
        t->sorted[i] = items[i].value;
    }
    t->named = t->sorted_count > 0;

    /* The PLT begins with its first range or slot. */
    bool has_plt = o->plt_count > 0;
    uint64_t plt = has_plt ? o->plt[0].address : UINT64_MAX;
    for (uint32_t i = 0; i < o->range_count; i++) {
        if (o->ranges[i].kind == OBJECT_RANGE_PLT) {
            has_plt = true;
            plt = o->ranges[i].low < plt ? o->ranges[i].low : plt;
        }
    }
    size_t capacity = t->named ? t->sorted_count : (size_t)r->entry_count + o->range_count;
    t->owners = ARENA_ARRAY(a, capacity + 2, struct symtab_owner);
    symtab_add(t, 0, 0, SYMTAB_GAP);
    if (!t->named) {
        symtab_add_entries(t, a, r, has_plt, plt);
        return;
    }
    uint32_t next = 0;
    if (has_plt) {
        symtab_add_symbols(t, &next, plt);
        symtab_add(t, plt, 0, SYMTAB_PLT);
    }
    symtab_add_symbols(t, &next, UINT64_MAX);
}

/* Collects the bytes that owners claim, and makes spans of them. */
static void symtab_claim(struct symtab *t, struct arena *a)
{
    const struct object *o = t->object;
    size_t capacity = (size_t)t->owner_count + o->range_count + o->plt_count;
    struct symtab_claim *claims = ARENA_ARRAY(a, capacity, struct symtab_claim);
    struct symtab_claim *ordered = ARENA_ARRAY(a, capacity, struct symtab_claim);
    struct sort_item *items = ARENA_ARRAY(a, capacity * 2, struct sort_item);
    uint32_t n = 0, plt = t->owner_count;
    uint64_t low = 0, high = 0; /* the range of the owner */
    for (uint32_t i = 0; i < t->owner_count; i++) {
        const struct symtab_owner *owner = &t->owners[i];
        plt = owner->kind == SYMTAB_PLT && plt == t->owner_count ? i : plt;
        if (owner->kind != SYMTAB_FUNCTION && owner->kind != SYMTAB_ADDRESS) {
            continue;
        }
        if ((owner->address < low || owner->address >= high) && !symtab_rank_range(o, owner->address, &low, &high)) {
            low = 0;
            high = UINT64_MAX;
        }
        /* Its size, or up to the next owner of its kind; never beyond its range. */
        uint64_t end = high, stated;
        if (owner->size > 0) {
            end = __builtin_add_overflow(owner->address, owner->size, &stated) || stated > high ? high : stated;
        }
        for (uint32_t k = i + 1; owner->size == 0 && k < t->owner_count; k++) {
            if (t->owners[k].kind == owner->kind && t->owners[k].address > owner->address) {
                end = t->owners[k].address < high ? t->owners[k].address : high;
                break;
            }
        }
        if (owner->address < end) {
            claims[n++] = (struct symtab_claim){owner->address, end, i};
        }
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
    for (uint32_t i = 0; i < n; i++) {
        items[i] = (struct sort_item){claims[i].low, i};
    }
    sort_radix(items, items + capacity, n);
    for (uint32_t i = 0; i < n; i++) {
        ordered[i] = claims[items[i].value];
    }
    symtab_span_sweep(t, a, ordered, n);
}

enum profd_status symtab_build(struct arena *a, const struct symtab_request *request, struct symtab **out,
                               struct profd_error *e)
{
    ARENA_BOUNDARY(a, profd_no_memory(e));
    struct symtab *t = ARENA_NEW(a, struct symtab);
    t->object = request->object;
    t->build_id = request->build_id;
    if (request->object == NULL) {
        t->owners = ARENA_ARRAY(a, 1, struct symtab_owner);
        symtab_add(t, 0, 0, SYMTAB_UNKNOWN);
        symtab_span_sweep(t, a, NULL, 0);
    } else {
        symtab_add_owners(t, a, request);
        if (t->named) {
            symtab_fold(t, a, request->fold_clones);
        }
        symtab_claim(t, a);
    }
    *out = t;
    return PROFD_OK;
}

const char *symtab_import(const struct symtab *t, uint64_t address)
{
    const struct object *o = t->object;
    uint32_t low =
        o == NULL ? 0 : compare_find_first(o->plt, o->plt_count, sizeof *o->plt, address + 1); /* slot behind */
    if (low == 0 || address - o->plt[low - 1].address >= o->plt[low - 1].size || o->plt[low - 1].import == 0) {
        return NULL;
    }
    return object_name(o, o->plt[low - 1].import);
}
