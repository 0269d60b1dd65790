#include "compat/compat_run.h"

#include <inttypes.h>
#include <string.h>

/* Halves that are still to be merged: at most one on each level. */
struct half {
    size_t at, n;
    unsigned done; /* of its own two halves */
};

void compat_sort(uint32_t *items, uint32_t *scratch, size_t n, compat_compare *compare, const void *context)
{
    struct half stack[66];
    unsigned depth = 0;
    stack[depth++] = (struct half){0, n, 0};
    while (depth > 0) {
        struct half *h = &stack[depth - 1];
        const size_t middle = h->n / 2;
        if (h->n > 1 && h->done < 2) {
            stack[depth++] =
                h->done++ == 0 ? (struct half){h->at, middle, 0} : (struct half){h->at + middle, h->n - middle, 0};
            continue;
        }
        if (h->n > 1) {
            /* Merges the halves. The remainder of the second half stays in place. */
            uint32_t *list = items + h->at;
            size_t i = 0, j = middle, k = 0;
            while (i < middle && j < h->n) {
                scratch[k++] = compare(context, list[i], list[j]) <= 0 ? list[i++] : list[j++];
            }
            memcpy(scratch + k, list + i, (middle - i) * sizeof *list);
            memcpy(list, scratch, (k + middle - i) * sizeof *list);
        }
        depth--;
    }
}

const char *compat_symbols_file(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

void compat_symbols_name(struct compat_symbols *s, const struct compat_options *options, struct arena *a)
{
    for (uint32_t i = 0; i < s->count; i++) {
        if (options->raw_names || options->traditional) {
            s->name[i] = s->raw[i];
        }
        if ((!options->file_names && !options->lines) || s->file[i][0] == '\0') {
            continue;
        }
        const char *file = options->full_paths ? s->file[i] : compat_symbols_file(s->file[i]);
        if (options->lines) {
            s->name[i] =
                arena_format(a, "%s (%s:%" PRIu32 " @ %" PRIx64 ")", s->name[i], file, s->line[i], s->address[i]);
        } else {
            s->name[i] = arena_format(a, "%s (%s:%" PRIu32 ")", s->name[i], file, s->line[i]);
        }
    }
}

/* The paths that end in one file name, each once, in the order in which gprof finds them. */
struct path_list {
    const char **paths;
    uint32_t count, capacity;
};

static void path_meet(struct path_list *list, const char *path, const char *base, struct arena *a)
{
    if (path[0] == '\0' || strcmp(compat_symbols_file(path), base) != 0) {
        return;
    }
    for (uint32_t i = list->count; i-- > 0;) {
        if (list->paths[i] == path || strcmp(list->paths[i], path) == 0) {
            return;
        }
    }
    list->paths = arena_extend(a, list->paths, list->count, &list->capacity, sizeof *list->paths);
    list->paths[list->count++] = path;
}

void compat_symbols_stripe(struct compat_symbols *s, struct arena *a)
{
    if (s->count == 0) {
        return;
    }
    uint64_t first = s->address[0], span = s->address[s->count - 1] - first;
    unsigned bits = 0;
    while (span >> bits >= s->count) {
        bits++;
    }
    uint32_t stripes = (uint32_t)(span >> bits) + 1;
    uint32_t *before = ARENA_ARRAY(a, (size_t)stripes + 1, uint32_t);
    for (uint32_t v = 0, k = 0; k < stripes; k++) {
        while (v < s->count && (s->address[v] - first) >> bits < k) {
            v++;
        }
        before[k] = v;
    }
    before[stripes] = s->count;
    s->stripe = before;
    s->stripes = stripes;
    s->stripe_bits = bits;
}

uint32_t compat_symbols_find(const struct compat_symbols *s, uint64_t address)
{
    if (s->count == 0 || address < s->address[0]) {
        return COMPAT_NONE;
    }
    uint32_t low = 0, n = s->count; /* the owner is in [low, low + n) */
    if (s->stripe != NULL) {
        uint64_t k = (address - s->address[0]) >> s->stripe_bits;
        k = k < s->stripes ? k : s->stripes - 1;
        low = s->stripe[k] > 0 ? s->stripe[k] - 1 : 0;
        n = s->stripe[k + 1] - low;
    }
    while (n > 1) {
        uint32_t half = n / 2;
        low = s->address[low + half] <= address ? low + half : low;
        n -= half;
    }
    return address <= s->end[low] ? low : COMPAT_NONE;
}

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

/* Lists the addresses at which the line or its function changes, ascending. A range that overlaps the previous one is
 * cut. An entry is local like the entry before it if that is of the same function, otherwise like the symbol that owns
 * the address. */
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
            if (n > 0 && entry_same_function(o, &e, &list[n - 1])) {
                e.local = list[n - 1].local;
            } else {
                const uint32_t owner = compat_symbols_find(s, from);
                e.local = owner == COMPAT_NONE ? 0 : s->flags[owner] & COMPAT_SYMBOL_STATIC;
            }
            list[n++] = e;
        }
        last = e;
    }
    return n;
}

/* Returns whether gprof keeps the symbol of the table instead of the line at its address. A function counts as the
 * earlier one of the two. */
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

static void take_columns(struct compat_symbols *s, size_t n, struct arena *a)
{
    s->address = ARENA_ARRAY(a, n, uint64_t);
    s->end = ARENA_ARRAY(a, n, uint64_t);
    s->raw = ARENA_ARRAY(a, n, const char *);
    s->name = ARENA_ARRAY(a, n, const char *);
    s->file = ARENA_ARRAY(a, n, const char *);
    s->line = ARENA_ARRAY(a, n, uint32_t);
    s->flags = ARENA_ARRAY(a, n, uint8_t);
}

/* Adds the entries of -l: one for each change of the source line or its function in [low, high); none of them is a
 * function. The last one ends before end. O(symbols + lines). */
static void lines_add(struct compat_symbols *s, uint64_t low, uint64_t high, uint64_t end, struct arena *a)
{
    const struct object *o = s->object;
    struct entry *list = ARENA_ARRAY(a, o->line_count, struct entry);
    const uint32_t n = entries_fill(s, low, high, list);
    size_t most = (size_t)s->count + o->line_count;
    struct compat_symbols r = *s;
    take_columns(&r, most, a);
    r.count = 0;
    for (uint32_t i = 0, k = 0; i < n || k < s->count; r.count++) {
        const struct entry *e = &list[i];
        const bool both = i < n && k < s->count && e->address == s->address[k];
        const bool line = both ? !symbol_stays(s, k, e) : k == s->count || (i < n && e->address < s->address[k]);
        if (line) {
            r.address[r.count] = e->address;
            r.end[r.count] = 0;
            r.raw[r.count] = entry_raw(o, e);
            r.name[r.count] = object_name(o, o->line_functions[e->function].demangled);
            r.file[r.count] = object_name(o, e->file);
            r.line[r.count] = e->line;
            r.flags[r.count] = e->local;
        } else {
            r.address[r.count] = s->address[k];
            r.end[r.count] = s->end[k];
            r.raw[r.count] = s->raw[k];
            r.name[r.count] = s->name[k];
            r.file[r.count] = s->file[k];
            r.line[r.count] = s->line[k];
            r.flags[r.count] = s->flags[k];
        }
        i += line || both;
        k += !line || both;
    }
    for (uint32_t i = 0; i < r.count; i++) {
        if (r.end[i] == 0) {
            r.end[i] = (i + 1 < r.count ? r.address[i + 1] : end) - 1;
        }
    }
    *s = r;
}

/* What the rules look at. */
struct choosing {
    const struct object *object;
    const struct compat_options *options;
};

/* Returns whether gprof lists the symbol. */
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

/* Returns whether the new symbol replaces the one kept so far at its address. */
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

static void symbols_fill(const struct choosing *c, const uint32_t *list, uint32_t n, uint64_t text_end, struct arena *a,
                         struct compat_symbols *out)
{
    const struct object *o = c->object;
    struct compat_symbols s = {.count = n, .object = o};
    take_columns(&s, n, a);
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
    FAIL_IF(text == NULL, e, PROFD_REFUSED, "executable %s has no .text section, which gprof's listing needs",
            object->id.text);
    uint32_t *list = ARENA_ARRAY(a, object->symbol_count, uint32_t);
    uint32_t *scratch = ARENA_ARRAY(a, object->symbol_count, uint32_t);
    uint32_t *met = ARENA_ARRAY(a, object->symbol_count, uint32_t);
    struct choosing c = {object, options};
    uint32_t n = 0;
    for (uint32_t i = 0; i < object->symbol_count; i++) {
        if (symbol_counts(&c, &object->symbols[i])) {
            list[n++] = i;
        }
    }
    FAIL_IF(n == 0, e, PROFD_REFUSED,
            "executable %s has no symbols: .symtab names no function, and gprof reads nothing else", object->id.text);
    memcpy(met, list, n * sizeof *met);
    uint32_t met_count = n;
    compat_sort(list, scratch, n, symbol_compare, &c);
    n = 0;
    for (uint32_t i = 0; i < met_count; i++) {
        const struct object_symbol *one = &object->symbols[list[i]];
        const struct object_symbol *kept = n > 0 ? &object->symbols[list[n - 1]] : NULL;
        if (kept == NULL || kept->address != one->address) {
            list[n++] = list[i];
        } else if (symbol_replaces(&c, one, kept)) {
            list[n - 1] = list[i];
        }
    }
    struct compat_symbols s;
    symbols_fill(&c, list, n, text->high, a, &s);
    uint64_t end = s.count < n ? s.address[s.count] : text->high;
    if (options->lines && object->line_count > 0) {
        lines_add(&s, text->low, text->high, end, a);
    }
    compat_symbols_stripe(&s, a);
    s.met = met;
    s.met_count = met_count;
    *out = s;
    return PROFD_OK;
}

/* One side of a spec. NULL and 0 match everything. */
struct pattern {
    const char *file; /* whole path */
    bool no_file;     /* the file is that of no symbol: matches nothing */
    uint32_t line;
    const char *name; /* as in the symbol table */
};

/* A name, or a line in decimal digits; the largest number if they do not fit. */
static void name_parse(const char *text, struct pattern *p)
{
    if (text[0] >= '0' && text[0] <= '9') {
        uint64_t line = 0;
        for (; *text >= '0' && *text <= '9'; text++) {
            line = line * 10 + (uint64_t)(*text - '0');
            line = line > INT32_MAX ? INT32_MAX : line;
        }
        p->line = (uint32_t)line;
    } else if (text[0] != '\0') {
        p->name = text;
    }
}

static const char *const profiler_names[] = {"_gprof_mcount",     "mcount",    "_mcount", "__mcount",
                                             "__mcount_internal", "__mcleanup"};
#define PROFILER_NAMES (sizeof profiler_names / sizeof *profiler_names)

/* The ranges of one side of a spec, and of its other side if it has one. */
struct matched {
    enum compat_purpose purpose;
    bool exclude;
    struct compat_range *left, *right;
    uint32_t left_count, right_count;
};

/* Lists the ranges of symbols that one side of a spec matches, ascending. The text is split at the last ':'. Without a
 * ':', a text that contains a '.' is a file, and one that begins with a digit is a line. The file is the path that ends
 * in the text's file name; of several, the last one that gprof finds: it searches the symbols, then (with -l) the lines
 * by address. O(symbols × matching paths). */
static void side_match(const char *text, size_t n, const struct compat_symbols *s, struct arena *a,
                       struct compat_range **out, uint32_t *count)
{
    struct pattern p = {0};
    char *copy = arena_copy(a, text, n), *colon = strrchr(copy, ':'), *file = NULL;
    if (colon != NULL) {
        *colon = '\0';
        file = colon > copy ? copy : NULL;
        name_parse(colon + 1, &p);
    } else if (strchr(copy, '.') != NULL) {
        file = copy;
    } else {
        name_parse(copy, &p);
    }
    if (file != NULL) {
        struct path_list list = {.paths = NULL};
        for (uint32_t i = 0; i < s->met_count; i++) {
            path_meet(&list, object_name(s->object, s->object->symbols[s->met[i]].file), file, a);
        }
        for (uint32_t i = 0; i < s->count; i++) {
            path_meet(&list, s->file[i], file, a);
        }
        p.file = list.count > 0 ? list.paths[list.count - 1] : NULL;
        p.no_file = p.file == NULL;
    }

    struct compat_range *ranges = NULL;
    uint32_t used = 0, capacity = 0, last = COMPAT_NONE;
    for (uint32_t i = 0; i < s->count; i++) {
        const char *name = s->raw[i], *path = s->file[i];
        if (p.no_file || (p.line != 0 && p.line != s->line[i]) ||
            (p.name != NULL && (p.name[0] != name[0] || strcmp(p.name, name) != 0)) ||
            (p.file != NULL && p.file != path && (path[0] == '\0' || strcmp(p.file, path) != 0))) {
            continue;
        }
        if (last == COMPAT_NONE || last + 1 != i) {
            ranges = arena_extend(a, ranges, used, &capacity, sizeof *ranges);
            ranges[used++] = (struct compat_range){s->address[i], s->end[i], i};
        } else {
            ranges[used - 1].high = s->end[i];
        }
        last = i;
    }
    *out = ranges;
    *count = used;
}

static struct matched spec_match(const struct compat_spec *spec, const struct compat_symbols *s, struct arena *a)
{
    struct matched m = {.purpose = spec->purpose, .exclude = spec->exclude};
    const char *slash = strchr(spec->text, '/');
    side_match(spec->text, slash != NULL ? (size_t)(slash - spec->text) : strlen(spec->text), s, a, &m.left,
               &m.left_count);
    if (slash != NULL) {
        side_match(slash + 1, strlen(slash + 1), s, a, &m.right, &m.right_count);
    }
    return m;
}

/* Builds the table of one purpose: ranges ascending by address, one for each first symbol. If several specs begin at a
 * symbol, the first one in m is used. owner[i] is the spec of range i. Ranges that own no address are left out. */
struct range_table {
    struct compat_range *ranges;
    uint32_t *owner;
    uint32_t count;
};

static struct range_table table_fill(const struct matched *m, uint32_t n, enum compat_purpose purpose, bool exclude,
                                     uint32_t *owner_by_symbol, uint32_t *place, uint32_t symbols, struct arena *a)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < symbols; i++) {
        owner_by_symbol[i] = COMPAT_NONE;
    }
    for (uint32_t k = n; k-- > 0;) {
        if (m[k].purpose != purpose || m[k].exclude != exclude) {
            continue;
        }
        for (uint32_t i = 0; i < m[k].left_count; i++) {
            uint32_t first = m[k].left[i].first;
            count += owner_by_symbol[first] == COMPAT_NONE;
            owner_by_symbol[first] = k;
            place[first] = i;
        }
    }
    struct range_table t = {ARENA_ARRAY(a, (size_t)count + 1, struct compat_range),
                            ARENA_ARRAY(a, (size_t)count + 1, uint32_t), 0};
    for (uint32_t i = 0; i < symbols && count > 0; i++) {
        if (owner_by_symbol[i] == COMPAT_NONE) {
            continue;
        }
        struct compat_range range = m[owner_by_symbol[i]].left[place[i]];
        if (range.high < range.low) {
            continue;
        }
        t.ranges[t.count] = range;
        t.owner[t.count++] = owner_by_symbol[i];
    }
    return t;
}

void compat_filter_init(const struct compat_spec *specs, uint32_t spec_count, const struct compat_symbols *s,
                        struct arena *a, struct compat_filter *out)
{
    static const enum compat_purpose all[] = {COMPAT_FLAT, COMPAT_GRAPH, COMPAT_TIME};
    struct matched *m = ARENA_ARRAY(a, (size_t)spec_count + 3 * PROFILER_NAMES, struct matched);
    uint32_t n = 0;
    *out = (struct compat_filter){.included = ARENA_ARRAY(a, s->count, uint8_t),
                                  .excluded = ARENA_ARRAY(a, s->count, uint8_t)};
    /* gprof reads its list from the end: first the names that it adds itself, last the first option. */
    for (unsigned i = 0; i < PROFILER_NAMES; i++) {
        const struct compat_spec own = {COMPAT_FLAT, true, profiler_names[i]};
        const struct matched one = spec_match(&own, s, a);
        for (unsigned k = 0; k < 3; k++) {
            m[n] = one;
            m[n++].purpose = all[k];
        }
    }
    for (uint32_t i = spec_count; i-- > 0;) {
        m[n++] = spec_match(&specs[i], s, a);
    }

    uint32_t *owner = ARENA_ARRAY(a, s->count, uint32_t), *place = ARENA_ARRAY(a, s->count, uint32_t);
    for (unsigned k = 0; k < 2 * COMPAT_PURPOSES; k++) {
        const enum compat_purpose purpose = (enum compat_purpose)(k / 2);
        const bool exclude = k % 2 != 0;
        const struct range_table t = table_fill(m, n, purpose, exclude, owner, place, s->count, a);
        if (purpose == COMPAT_ARCS) {
            struct compat_arc_rule *list = ARENA_ARRAY(a, (size_t)t.count + 1, struct compat_arc_rule);
            for (uint32_t i = 0; i < t.count; i++) {
                list[i] = (struct compat_arc_rule){t.ranges[i], m[t.owner[i]].right, m[t.owner[i]].right_count};
            }
            *(exclude ? &out->arcs_excluded : &out->arcs_included) = (struct compat_arc_rules){list, t.count};
            continue;
        }
        /* A symbol is looked up in the last range that begins at or before it, as gprof does: a short range hides the
         * end of a long one. */
        uint8_t *bits = exclude ? out->excluded : out->included;
        uint32_t next = 0;
        for (uint32_t i = 0; i < s->count && t.count > 0; i++) {
            while (next < t.count && t.ranges[next].low <= s->address[i]) {
                next++;
            }
            if (next > 0 && s->address[i] <= t.ranges[next - 1].high) {
                bits[i] = (uint8_t)(bits[i] | 1u << purpose);
            }
        }
        if (!exclude && t.count > 0) {
            out->including = (uint8_t)(out->including | 1u << purpose);
        }
    }
}

static bool rules_hold(const struct compat_arc_rules *rules, const struct compat_symbols *s, uint32_t from, uint32_t to)
{
    for (uint32_t i = 0; i < rules->count; i++) {
        const struct compat_arc_rule *r = &rules->list[i];
        if (s->address[from] < r->left.low || s->address[from] > r->left.high) {
            continue;
        }
        for (uint32_t k = 0; k < r->right_count; k++) {
            if (s->address[to] >= r->right[k].low && s->end[to] <= r->right[k].high) {
                return true;
            }
        }
    }
    return false;
}

bool compat_filter_arc(const struct compat_filter *f, const struct compat_symbols *s, uint32_t from, uint32_t to)
{
    if (rules_hold(&f->arcs_included, s, from, to)) {
        return true;
    }
    return f->arcs_included.count == 0 && !rules_hold(&f->arcs_excluded, s, from, to);
}
