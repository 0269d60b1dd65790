#include "core/symtab_fold.h"

#include <string.h>

#include "core/sort.h"
#include "core/table.h"

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

static bool fold_take(struct fold_names *names, struct arena *a, uint32_t n)
{
    /* All rows are known now; a table of twice as many slots never has to grow. */
    uint64_t slots = 64;
    while (slots < (uint64_t)n * 2) {
        slots *= 2;
    }
    names->index = (struct table){ARENA_ARRAY(a, slots, uint32_t), (uint32_t)(slots - 1), 0};
    names->owner = ARENA_ARRAY(a, n, uint32_t);
    names->first = ARENA_ARRAY(a, n, uint32_t);
    names->count = ARENA_ARRAY(a, n, uint32_t);
    names->by_name = ARENA_ARRAY(a, (size_t)n * 2, struct sort_item);
    return names->index.slots != NULL && names->owner != NULL && names->first != NULL && names->count != NULL &&
           names->by_name != NULL;
}

static bool fold_index(struct fold_names *names, struct arena *a)
{
    const struct symtab *t = names->table;
    uint32_t n = t->sorted_count;
    if (!fold_take(names, a, n)) {
        return false;
    }
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
    return true;
}

/* True if the position's owner may take in a part named by n bytes: an owner that is a part itself must have a shorter
 * name, so that no chain of parts can close. */
static bool fold_may_own(const struct fold_names *names, uint32_t position, uint32_t part, size_t n)
{
    const struct symtab *t = names->table;
    uint32_t owner = names->owner[position];
    if (owner == part || t->owners[owner].symbol == SYMTAB_NONE) {
        return false;
    }
    const char *winner = object_name(t->object, t->object->symbols[t->owners[owner].symbol].name);
    size_t length = strlen(winner);
    return length < n || fold_parent_length(winner, length, names->clones) == 0;
}

/* Finds the function from which a part was split. Local symbols of one file are adjacent, so the only candidates are
 * the symbols next to the part in the symbol table: the one of its file, otherwise the nearer one. */
static uint32_t fold_find(struct fold_names *names, const char *name, size_t n, uint32_t part, size_t part_length)
{
    const struct object_symbol *symbols = names->table->object->symbols;
    uint32_t symbol = names->table->owners[part].symbol, slot = *fold_slot(names, name, n);
    if (slot == 0) {
        return SYMTAB_NONE;
    }
    uint32_t low = names->first[slot - 1], end = low + names->count[slot - 1], high = end, best = SYMTAB_NONE;
    while (low < high) { /* first candidate behind the part */
        uint32_t middle = low + (high - low) / 2;
        if ((uint32_t)names->by_name[middle].key < symbol) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    for (uint32_t i = low > names->first[slot - 1] ? low - 1 : low; i < end && i <= low; i++) {
        uint32_t other = (uint32_t)names->by_name[i].key;
        if (!fold_may_own(names, names->by_name[i].value, part, part_length)) {
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

bool symtab_fold(struct symtab *t, struct arena *a, bool clones)
{
    struct fold_names names = {.table = t, .clones = clones};
    for (uint32_t i = 0; i < t->owner_count; i++) {
        if (t->owners[i].symbol == SYMTAB_NONE) {
            continue;
        }
        const char *name = object_name(t->object, t->object->symbols[t->owners[i].symbol].name);
        size_t length = strlen(name), n = fold_parent_length(name, length, clones);
        if (n > 0 && names.owner == NULL && !fold_index(&names, a)) {
            return false;
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
    return true;
}
