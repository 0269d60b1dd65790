#include <string.h>

#include "compat/compat_symbols.h"

/* A future entry: the line of a function at an address. */
struct entry {
    uint64_t address;
    uint32_t file, line, function;
    uint8_t local; /* COMPAT_SYMBOL_STATIC or 0 */
};

static const char *entry_raw(const struct object *o, const struct entry *x)
{
    return object_name(o, o->line_functions[x->function].name);
}

static bool entry_same_function(const struct object *o, const struct entry *x, const struct entry *y)
{
    return (x->function == y->function || strcmp(entry_raw(o, x), entry_raw(o, y)) == 0) &&
           (x->file == y->file || strcmp(object_name(o, x->file), object_name(o, y->file)) == 0);
}

/* Like the entry before it if that is of the same function, otherwise like the symbol that owns the address. */
static uint8_t entry_local(const struct compat_symbols *s, const struct entry *e, const struct entry *front)
{
    if (front != NULL && entry_same_function(s->object, e, front)) {
        return front->local;
    }
    uint32_t owner = compat_symbols_find(s, e->address);
    return owner == COMPAT_NONE ? 0 : s->flags[owner] & COMPAT_SYMBOL_STATIC;
}

/* Lists the addresses at which the line or its function changes, ascending. A range that overlaps the previous one is
 * cut. */
static uint32_t entries_fill(const struct compat_symbols *s, uint64_t low, uint64_t high, struct entry *list)
{
    const struct object *o = s->object;
    uint32_t n = 0;
    uint64_t end = low;
    struct entry last = {0};
    for (uint32_t i = 0; i < o->line_count; i++) {
        const struct object_line *l = &o->lines[i];
        uint64_t from = l->low > end ? l->low : end;
        if (from >= l->high || from >= high || l->function == 0) {
            continue;
        }
        struct entry e = {from, l->file, l->line, l->function, 0};
        end = l->high;
        if (n == 0 || e.line != last.line || !entry_same_function(o, &e, &last)) {
            e.local = entry_local(s, &e, n > 0 ? &list[n - 1] : NULL);
            list[n++] = e;
        }
        last = e;
    }
    return n;
}

static void entry_put(struct compat_symbols *to, const struct compat_symbols *from, const struct entry *e)
{
    uint32_t i = to->count++;
    to->address[i] = e->address;
    to->end[i] = 0;
    to->raw[i] = entry_raw(from->object, e);
    to->name[i] = object_name(from->object, from->object->line_functions[e->function].demangled);
    to->file[i] = object_name(from->object, e->file);
    to->line[i] = e->line;
    to->flags[i] = e->local;
}

static void symbol_put(struct compat_symbols *to, const struct compat_symbols *from, uint32_t k)
{
    uint32_t i = to->count++;
    to->address[i] = from->address[k];
    to->end[i] = from->end[k];
    to->raw[i] = from->raw[k];
    to->name[i] = from->name[k];
    to->file[i] = from->file[k];
    to->line[i] = from->line[k];
    to->flags[i] = from->flags[k];
}

/* True if rule S6 keeps the symbol of the table instead of the line at its address. A function counts as the earlier
 * one of the two. */
static bool symbol_stays(const struct compat_symbols *s, uint32_t k, const struct entry *e)
{
    if ((s->flags[k] & COMPAT_SYMBOL_STATIC) != e->local) {
        return e->local != 0;
    }
    if ((s->flags[k] & COMPAT_SYMBOL_FUNCTION) != 0) {
        return true;
    }
    const char *label = s->raw[k], *line = entry_raw(s->object, e);
    return line[0] == '_' && (label[0] != '_' || (label[1] != '_' && line[1] == '_'));
}

static void tables_merge(const struct compat_symbols *s, const struct entry *list, uint32_t n,
                         struct compat_symbols *to)
{
    uint32_t i = 0, k = 0;
    while (i < n || k < s->count) {
        if (k == s->count || (i < n && list[i].address < s->address[k])) {
            entry_put(to, s, &list[i++]);
        } else if (i == n || s->address[k] < list[i].address) {
            symbol_put(to, s, k++);
        } else if (symbol_stays(s, k, &list[i])) {
            symbol_put(to, s, k++);
            i++;
        } else {
            entry_put(to, s, &list[i++]);
            k++;
        }
    }
}

enum profd_status compat_symbols_add_lines(struct compat_symbols *s, uint64_t low, uint64_t high, uint64_t end,
                                           struct arena *a)
{
    struct entry *list = ARENA_ARRAY(a, s->object->line_count, struct entry);
    size_t most = (size_t)s->count + s->object->line_count;
    struct compat_symbols r = *s;
    r.count = 0;
    r.address = ARENA_ARRAY(a, most, uint64_t);
    r.end = ARENA_ARRAY(a, most, uint64_t);
    r.raw = ARENA_ARRAY(a, most, const char *);
    r.name = ARENA_ARRAY(a, most, const char *);
    r.file = ARENA_ARRAY(a, most, const char *);
    r.line = ARENA_ARRAY(a, most, uint32_t);
    r.flags = ARENA_ARRAY(a, most, uint8_t);
    if (list == NULL || r.address == NULL || r.end == NULL || r.raw == NULL || r.name == NULL || r.file == NULL ||
        r.line == NULL || r.flags == NULL) {
        return PROFD_NO_MEMORY;
    }
    tables_merge(s, list, entries_fill(s, low, high, list), &r);
    for (uint32_t i = 0; i < r.count; i++) {
        if (r.end[i] == 0) {
            r.end[i] = (i + 1 < r.count ? r.address[i + 1] : end) - 1;
        }
    }
    *s = r;
    return PROFD_OK;
}
