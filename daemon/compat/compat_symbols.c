#include "compat/compat_symbols.h"

#include <string.h>

#include "compat/compat_sort.h"

/* What the rules look at. */
struct choosing {
    const struct object *object;
    const struct compat_options *options;
};

/* S2–S4. */
static bool symbol_counts(const struct choosing *c, const struct object_symbol *s)
{
    if ((s->flags & (OBJECT_SYMBOL_DYNAMIC | OBJECT_SYMBOL_DEBUG)) != 0) {
        return false;
    }
    if (s->type == OBJECT_TYPE_IFUNC || s->bind == OBJECT_BIND_UNIQUE) {
        return false;
    }
    if (c->options->no_static && s->bind == OBJECT_BIND_LOCAL) {
        return false;
    }
    if (s->bind == OBJECT_BIND_WEAK) {
        return s->type != OBJECT_TYPE_DATA;
    }
    if ((s->flags & OBJECT_SYMBOL_EXECUTABLE) == 0) {
        return false;
    }
    if (s->bind == OBJECT_BIND_GLOBAL) {
        return true;
    }
    if (c->options->only_functions && s->type != OBJECT_TYPE_FUNCTION) {
        return false;
    }
    return (s->flags & OBJECT_SYMBOL_UNLISTED) == 0;
}

static bool is_function(const struct object_symbol *s)
{
    return s->type == OBJECT_TYPE_FUNCTION;
}

static bool is_static(const struct object_symbol *s)
{
    return s->bind == OBJECT_BIND_LOCAL;
}

static int symbol_compare(const void *context, uint32_t a, uint32_t b)
{
    const struct choosing *c = context;
    const struct object_symbol *x = &c->object->symbols[a], *y = &c->object->symbols[b];
    if (x->address != y->address) {
        return x->address < y->address ? -1 : 1;
    }
    if (is_function(x) != is_function(y)) {
        return is_function(x) ? -1 : 1;
    }
    if (is_static(x) != is_static(y)) {
        return is_static(x) ? 1 : -1;
    }
    return 0;
}

/* S6: true if the new symbol replaces the one kept so far at its address. */
static bool symbol_replaces(const struct choosing *c, const struct object_symbol *newcomer,
                            const struct object_symbol *kept)
{
    const struct object *o = c->object;
    if (is_static(newcomer) != is_static(kept)) {
        return is_static(kept);
    }
    if (is_function(newcomer) != is_function(kept)) {
        return is_function(newcomer);
    }
    const char *n = object_name(o, newcomer->name), *k = object_name(o, kept->name);
    if (n[0] != '_' || k[0] != '_') {
        return n[0] != '_' && k[0] == '_';
    }
    return n[1] != '_' && k[1] == '_';
}

/* Sorts the symbols and keeps one for each address. Returns how many are left. */
static uint32_t symbols_unique(const struct choosing *c, uint32_t *list, uint32_t *scratch, uint32_t n)
{
    const struct object *o = c->object;
    compat_sort(list, scratch, n, symbol_compare, c);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < n; i++) {
        const struct object_symbol *s = &o->symbols[list[i]];
        if (kept == 0 || o->symbols[list[kept - 1]].address != s->address) {
            list[kept++] = list[i];
        } else if (symbol_replaces(c, s, &o->symbols[list[kept - 1]])) {
            list[kept - 1] = list[i];
        }
    }
    return kept;
}

static enum profd_status symbols_fill(const struct choosing *c, const uint32_t *list, uint32_t n, uint64_t text_end,
                                      struct arena *a, struct compat_symbols *out)
{
    const struct object *o = c->object;
    struct compat_symbols s = {.count = n, .object = o};
    s.address = ARENA_ARRAY(a, n, uint64_t);
    s.end = ARENA_ARRAY(a, n, uint64_t);
    s.raw = ARENA_ARRAY(a, n, const char *);
    s.name = ARENA_ARRAY(a, n, const char *);
    s.file = ARENA_ARRAY(a, n, const char *);
    s.line = ARENA_ARRAY(a, n, uint32_t);
    s.flags = ARENA_ARRAY(a, n, uint8_t);
    if (s.address == NULL || s.end == NULL || s.raw == NULL || s.name == NULL || s.file == NULL || s.line == NULL ||
        s.flags == NULL) {
        return PROFD_NO_MEMORY;
    }
    for (uint32_t i = 0; i < n; i++) {
        const struct object_symbol *from = &o->symbols[list[i]];
        s.address[i] = from->address;
        s.end[i] = (i + 1 < n ? o->symbols[list[i + 1]].address : text_end) - 1;
        s.raw[i] = object_name(o, from->name);
        s.name[i] = object_name(o, from->demangled);
        s.file[i] = object_name(o, from->file);
        s.line[i] = from->line;
        s.flags[i] =
            (uint8_t)((is_function(from) ? COMPAT_SYMBOL_FUNCTION : 0) | (is_static(from) ? COMPAT_SYMBOL_STATIC : 0));
    }
    /* The table of -l is made from this table, and then omits entries that own no address; the last one may be one of
     * them. */
    if (c->options->lines && n > 0 && s.end[n - 1] < s.address[n - 1]) {
        s.count--;
    }
    *out = s;
    return PROFD_OK;
}

enum profd_status compat_symbols_choose(const struct object *object, const struct compat_options *options,
                                        struct arena *a, struct compat_symbols *out, struct profd_error *e)
{
    const struct object_range *text = NULL;
    for (uint32_t i = 0; i < object->range_count && text == NULL; i++) {
        if (object->ranges[i].kind == OBJECT_RANGE_TEXT) {
            text = &object->ranges[i];
        }
    }
    if (text == NULL) {
        return profd_error_set(e, PROFD_REFUSED, "executable %s has no .text section, which gprof's listing needs",
                               object->id.text);
    }
    uint32_t *list = ARENA_ARRAY(a, object->symbol_count, uint32_t);
    uint32_t *scratch = ARENA_ARRAY(a, object->symbol_count, uint32_t);
    uint32_t *met = ARENA_ARRAY(a, object->symbol_count, uint32_t);
    struct choosing c = {object, options};
    if (object->symbol_count > 0 && (list == NULL || scratch == NULL || met == NULL)) {
        return profd_error_set(e, PROFD_NO_MEMORY, "no memory for %u symbols", object->symbol_count);
    }
    uint32_t n = 0;
    for (uint32_t i = 0; i < object->symbol_count; i++) {
        if (symbol_counts(&c, &object->symbols[i])) {
            list[n++] = i;
        }
    }
    if (n == 0) {
        return profd_error_set(e, PROFD_REFUSED,
                               "executable %s has no symbols: .symtab names no function, and gprof reads nothing else",
                               object->id.text);
    }
    memcpy(met, list, n * sizeof *met);
    uint32_t met_count = n;
    n = symbols_unique(&c, list, scratch, n);
    struct compat_symbols s;
    if (symbols_fill(&c, list, n, text->high, a, &s) != PROFD_OK) {
        return profd_error_set(e, PROFD_NO_MEMORY, "no memory for a table of %u symbols", n);
    }
    uint64_t end = s.count < n ? s.address[s.count] : text->high;
    if (options->lines && object->line_count > 0 &&
        compat_symbols_add_lines(&s, text->low, text->high, end, a) != PROFD_OK) {
        return profd_error_set(e, PROFD_NO_MEMORY, "no memory for a table of %u source lines", object->line_count);
    }
    if (compat_symbols_stripe(&s, a) != PROFD_OK) {
        return profd_error_set(e, PROFD_NO_MEMORY, "no memory for a table of %u symbols", s.count);
    }
    s.met = met;
    s.met_count = met_count;
    *out = s;
    return PROFD_OK;
}
