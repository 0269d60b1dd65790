#include "compat/compat_filter.h"

#include <string.h>

/* Leading decimal digits; the largest number if they do not fit. */
static uint32_t line_parse(const char *text)
{
    uint64_t line = 0;
    for (; *text >= '0' && *text <= '9'; text++) {
        line = line * 10 + (uint64_t)(*text - '0');
        line = line > INT32_MAX ? INT32_MAX : line;
    }
    return (uint32_t)line;
}

static void name_parse(const char *text, struct compat_pattern *p)
{
    if (text[0] >= '0' && text[0] <= '9') {
        p->line = line_parse(text);
    } else if (text[0] != '\0') {
        p->name = text;
    }
}

static enum profd_status file_parse(const char *file, const struct compat_symbols *s, struct arena *a,
                                    struct compat_pattern *p)
{
    enum profd_status status = compat_symbols_source(s, file, a, &p->file);
    if (status != PROFD_NOT_FOUND) {
        return status;
    }
    p->no_file = true;
    return PROFD_OK;
}

/* Splits text at the last ':'. Without a ':', a spec that contains a '.' is a file, and one that begins with a digit is
 * a line. The file is the path that ends in the spec's file name; of several, the last one in the symbol table.
 * O(symbols) with a file. NO_MEMORY. */
static enum profd_status compat_pattern_parse(const char *text, size_t n, const struct compat_symbols *s,
                                              struct arena *a, struct compat_pattern *out)
{
    struct compat_pattern p = {0};
    char *copy = arena_copy(a, text, n);
    if (copy == NULL) {
        return PROFD_NO_MEMORY;
    }
    char *colon = strrchr(copy, ':');
    enum profd_status status = PROFD_OK;
    if (colon != NULL) {
        *colon = '\0';
        if (colon > copy) {
            status = file_parse(copy, s, a, &p);
        }
        name_parse(colon + 1, &p);
    } else if (strchr(copy, '.') != NULL) {
        status = file_parse(copy, s, a, &p);
    } else {
        name_parse(copy, &p);
    }
    if (status == PROFD_OK) {
        *out = p;
    }
    return status;
}

static bool pattern_matches(const struct compat_pattern *p, const struct compat_symbols *s, uint32_t symbol)
{
    if (p->no_file || (p->line != 0 && p->line != s->line[symbol])) {
        return false;
    }
    const char *name = s->raw[symbol];
    if (p->name != NULL && (p->name[0] != name[0] || strcmp(p->name, name) != 0)) {
        return false;
    }
    const char *file = s->file[symbol];
    return p->file == NULL || p->file == file || (file[0] != '\0' && strcmp(p->file, file) == 0);
}

/* Lists the matches, ascending. O(symbols). NO_MEMORY. */
static enum profd_status compat_pattern_ranges(const struct compat_pattern *p, const struct compat_symbols *s,
                                               struct arena *a, struct compat_range **out, uint32_t *count)
{
    uint32_t n = 0, last = COMPAT_NONE;
    for (uint32_t i = 0; i < s->count; i++) {
        if (!pattern_matches(p, s, i)) {
            continue;
        }
        n += last == COMPAT_NONE || last + 1 != i;
        last = i;
    }
    struct compat_range *ranges = ARENA_ARRAY(a, (size_t)n + 1, struct compat_range);
    if (ranges == NULL) {
        return PROFD_NO_MEMORY;
    }
    n = 0;
    last = COMPAT_NONE;
    for (uint32_t i = 0; i < s->count; i++) {
        if (!pattern_matches(p, s, i)) {
            continue;
        }
        if (last == COMPAT_NONE || last + 1 != i) {
            ranges[n++] = (struct compat_range){s->address[i], s->end[i], i};
        } else {
            ranges[n - 1].high = s->end[i];
        }
        last = i;
    }
    *out = ranges;
    *count = n;
    return PROFD_OK;
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

static enum profd_status side_match(const char *text, size_t n, const struct compat_symbols *s, struct arena *a,
                                    struct compat_range **out, uint32_t *count)
{
    struct compat_pattern p;
    TRY(compat_pattern_parse(text, n, s, a, &p));
    return compat_pattern_ranges(&p, s, a, out, count);
}

static enum profd_status spec_match(const struct compat_spec *spec, const struct compat_symbols *s, struct arena *a,
                                    struct matched *out)
{
    struct matched m = {.purpose = spec->purpose, .exclude = spec->exclude};
    const char *slash = strchr(spec->text, '/');
    size_t n = slash != NULL ? (size_t)(slash - spec->text) : strlen(spec->text);
    TRY(side_match(spec->text, n, s, a, &m.left, &m.left_count));
    if (slash != NULL) {
        TRY(side_match(slash + 1, strlen(slash + 1), s, a, &m.right, &m.right_count));
    }
    *out = m;
    return PROFD_OK;
}

/* Builds the table of one purpose: ranges ascending by address, one for each first symbol. If several specs begin at a
 * symbol, the first one in m is used. owner[i] is the spec of range i. Ranges that own no address are left out. */
struct table {
    struct compat_range *ranges;
    uint32_t *owner;
    uint32_t count;
};

static enum profd_status table_fill(const struct matched *m, uint32_t n, enum compat_purpose purpose, bool exclude,
                                    uint32_t *owner_by_symbol, uint32_t *place, uint32_t symbols, struct arena *a,
                                    struct table *out)
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
    struct table t = {ARENA_ARRAY(a, (size_t)count + 1, struct compat_range),
                      ARENA_ARRAY(a, (size_t)count + 1, uint32_t), 0};
    if (t.ranges == NULL || t.owner == NULL) {
        return PROFD_NO_MEMORY;
    }
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
    *out = t;
    return PROFD_OK;
}

/* Looks up a symbol in the last range that begins at or before it, as gprof does: a short range hides the end of a long
 * one. */
static void table_mark(const struct table *t, const struct compat_symbols *s, uint8_t *bits,
                       enum compat_purpose purpose)
{
    uint32_t next = 0;
    for (uint32_t i = 0; i < s->count && t->count > 0; i++) {
        while (next < t->count && t->ranges[next].low <= s->address[i]) {
            next++;
        }
        if (next > 0 && s->address[i] <= t->ranges[next - 1].high) {
            bits[i] = (uint8_t)(bits[i] | 1u << purpose);
        }
    }
}

static enum profd_status rules_fill(const struct table *t, const struct matched *m, struct arena *a,
                                    struct compat_arc_rules *out)
{
    struct compat_arc_rule *list = ARENA_ARRAY(a, (size_t)t->count + 1, struct compat_arc_rule);
    if (list == NULL) {
        return PROFD_NO_MEMORY;
    }
    for (uint32_t i = 0; i < t->count; i++) {
        list[i] = (struct compat_arc_rule){t->ranges[i], m[t->owner[i]].right, m[t->owner[i]].right_count};
    }
    *out = (struct compat_arc_rules){list, t->count};
    return PROFD_OK;
}

static enum profd_status tables_make(struct compat_filter *f, const struct matched *m, uint32_t n,
                                     const struct compat_symbols *s, struct arena *a)
{
    uint32_t *owner = ARENA_ARRAY(a, s->count, uint32_t), *place = ARENA_ARRAY(a, s->count, uint32_t);
    if (owner == NULL || place == NULL) {
        return PROFD_NO_MEMORY;
    }
    for (unsigned k = 0; k < 2 * COMPAT_PURPOSES; k++) {
        enum compat_purpose purpose = (enum compat_purpose)(k / 2);
        bool exclude = k % 2 != 0;
        struct table t;
        enum profd_status status = table_fill(m, n, purpose, exclude, owner, place, s->count, a, &t);
        if (status == PROFD_OK && purpose == COMPAT_ARCS) {
            status = rules_fill(&t, m, a, exclude ? &f->arcs_excluded : &f->arcs_included);
        }
        if (status != PROFD_OK) {
            return status;
        }
        if (purpose == COMPAT_ARCS) {
            continue;
        }
        table_mark(&t, s, exclude ? f->excluded : f->included, purpose);
        if (!exclude && t.count > 0) {
            f->including = (uint8_t)(f->including | 1u << purpose);
        }
    }
    return PROFD_OK;
}

enum profd_status compat_filter_init(const struct compat_spec *specs, uint32_t spec_count,
                                     const struct compat_symbols *s, struct arena *a, struct compat_filter *out,
                                     struct profd_error *e)
{
    static const enum compat_purpose all[] = {COMPAT_FLAT, COMPAT_GRAPH, COMPAT_TIME};
    struct compat_filter f = {.included = ARENA_ARRAY(a, s->count, uint8_t),
                              .excluded = ARENA_ARRAY(a, s->count, uint8_t)};
    struct matched *m = ARENA_ARRAY(a, (size_t)spec_count + 3 * PROFILER_NAMES, struct matched);
    uint32_t n = 0;
    enum profd_status status = f.included == NULL || f.excluded == NULL || m == NULL ? PROFD_NO_MEMORY : PROFD_OK;
    /* gprof reads its list from the end: first the names that it adds itself, last the first option. */
    for (unsigned i = 0; i < PROFILER_NAMES && status == PROFD_OK; i++) {
        const struct compat_spec own = {COMPAT_FLAT, true, profiler_names[i]};
        status = spec_match(&own, s, a, &m[n]);
        for (unsigned k = 0; k < 3 && status == PROFD_OK; k++) {
            m[n + k] = m[n];
            m[n + k].purpose = all[k];
        }
        n += 3;
    }
    for (uint32_t i = spec_count; i-- > 0 && status == PROFD_OK; n++) {
        status = spec_match(&specs[i], s, a, &m[n]);
    }
    if (status == PROFD_OK) {
        status = tables_make(&f, m, n, s, a);
    }
    if (status != PROFD_OK) {
        return profd_error_set(e, status, "no memory for a filter of %u symbols", s->count);
    }
    *out = f;
    return PROFD_OK;
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
