#include <dwarf.h>
#include <elf.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "proto/sort.h"
#include "elf/elf_dwarf.h"
#include "elf/elf_internal.h"

/* A function or an inlined copy of one. */
struct line_copy {
    const char *name; /* in the sections; NULL if it has none */
    bool certain;     /* the name is the symbol table's; else it is if no symbol begins where the copy does */
    uint64_t low;     /* of its first range */
    uint32_t named;   /* its name among the object's line_functions; 0 before */
};

struct line_span {
    uint64_t low, high;
    uint32_t copy;
};

struct line_spans {
    struct line_copy *copies; /* malloc'd, in the order of the entries */
    struct line_span *spans;  /* malloc'd, ascending by low */
    uint32_t copy_count, copy_capacity, span_count, span_capacity;
    bool damaged; /* something was left out */
};

/* The entries that are read, and the copy that is made of the current one. */
struct reading {
    struct elf_entries entries;
    struct line_spans *out;
    struct line_copy copy;
    uint32_t first; /* of its spans */
    uint64_t most;  /* spans; damaged entries may reference one list repeatedly */
    uint64_t steps; /* remaining: bounds the work for damaged entries */
    bool no_memory;
};

static bool grow(struct reading *r, void *list, uint32_t count, uint32_t *capacity, size_t size)
{
    if (count < *capacity) {
        return true;
    }
    uint32_t wanted = *capacity * 2 + 256;
    void *more = realloc(*(void **)list, wanted * size);
    r->no_memory |= more == NULL;
    if (more == NULL) {
        return false;
    }
    *(void **)list = more;
    *capacity = wanted;
    return true;
}

/* Adds a range of the current copy; extends an earlier one that it touches. False if no further range may be added. */
static bool span_add(struct reading *r, uint64_t low, uint64_t high)
{
    struct line_spans *s = r->out;
    if (low >= high) {
        return true;
    }
    uint64_t steps = 1 + (s->span_count - r->first) / 16;
    if (r->steps < steps || s->span_count >= r->most) {
        s->damaged = true;
        return false;
    }
    r->steps -= steps;
    if (s->span_count == r->first) {
        r->copy.low = low;
    }
    for (uint32_t i = r->first; i < s->span_count; i++) {
        struct line_span *old = &s->spans[i];
        if (old->high == low) {
            old->high = high;
            return true;
        }
        if (old->low == high) {
            old->low = low;
            r->copy.low = i == r->first ? low : r->copy.low;
            return true;
        }
    }
    if (!grow(r, &s->spans, s->span_count, &s->span_capacity, sizeof *s->spans)) {
        return false;
    }
    s->spans[s->span_count++] = (struct line_span){low, high, s->copy_count};
    return true;
}

/* Reads a function's entry. BFD 2.40 leaves out lists of ranges that are given by an index, so they are left out here,
 * too. */
static void function_read(struct reading *r)
{
    Dwarf_Die *entry = &r->entries.entry;
    Dwarf_Attribute ranges;
    Dwarf_Addr base, low, high;
    ptrdiff_t at = 0;
    r->copy = (struct line_copy){0};
    r->first = r->out->span_count;
    if (dwarf_attr(entry, DW_AT_ranges, &ranges) != NULL && dwarf_whatform(&ranges) == DW_FORM_rnglistx) {
        return;
    }
    while ((at = dwarf_ranges(entry, at, &base, &low, &high)) > 0 && span_add(r, low, high)) {
        continue;
    }
    r->out->damaged |= at < 0 && dwarf_hasattr(entry, DW_AT_ranges);
    if (r->out->span_count == r->first || r->no_memory ||
        !grow(r, &r->out->copies, r->out->copy_count, &r->out->copy_capacity, sizeof r->copy)) {
        return;
    }
    r->copy.name = elf_dwarf_name(entry, &r->copy.certain);
    Dwarf_Die origin;
    if (r->copy.name == NULL) {
        (void)elf_entries_origin(&r->entries, &origin);
    }
    r->out->copies[r->out->copy_count++] = r->copy;
}

static int span_compare(const void *x, const void *y)
{
    const struct line_span *a = x, *b = y;
    int order = compare_pairs(a->low, b->low, a->copy, b->copy);
    return order != 0 ? order : compare_u64(a->high, b->high);
}

/* Finds all copies. NO_MEMORY. O(bytes + spans log spans); line_spans_done is wanted after a failure, too. */
static enum profd_status line_spans_find(struct elf_build *b, const struct elf_dwarf *d, struct line_spans *out,
                                         struct profd_error *e)
{
    struct reading r = {.entries = {.dwarf = d->dwarf},
                        .out = out,
                        .most = d->bytes / 4 < UINT32_MAX / 4 ? d->bytes / 4 : UINT32_MAX / 4,
                        .steps = d->bytes * 32};
    *out = (struct line_spans){0};
    while (!r.no_memory && elf_entries_next(&r.entries)) {
        if (r.entries.tag == DW_TAG_subprogram || r.entries.tag == DW_TAG_inlined_subroutine ||
            r.entries.tag == DW_TAG_entry_point) {
            function_read(&r);
        }
    }
    if (r.no_memory) {
        return profd_error_set(e, PROFD_NO_MEMORY, "out of memory for %" PRIu32 " inlined functions", out->span_count);
    }
    out->damaged |= r.entries.damaged;
    elf_entries_note(&r.entries, b);
    if (out->span_count > 0) {
        qsort(out->spans, out->span_count, sizeof *out->spans, span_compare);
    }
    return PROFD_OK;
}

/* A symbol that may own code. */
struct owner {
    uint64_t address;
    uint32_t symbol, named; /* its name among the object's line_functions; 0 before */
};

/* State of the walk over the addresses. */
struct painter {
    struct elf_build *build;
    const struct object_line *rows;
    uint32_t row_count;
    struct line_spans spans;
    struct owner *owners; /* ascending by address */
    uint32_t owner_count, next_owner;
    struct owner *held; /* the symbol found last; like BFD, it is used up to its end, whatever begins there */
    uint64_t low, high; /* of .text */
    struct heap heap;   /* open spans, the shortest on top; some may have ended */
    uint32_t next_span;
};

static int owner_compare(const void *x, const void *y)
{
    const struct owner *a = x, *b = y;
    return compare_pairs(a->address, b->address, a->symbol, b->symbol);
}

static uint64_t owner_end(const struct painter *p, const struct owner *owner)
{
    const struct object_symbol *s = &p->build->object->symbols[owner->symbol];
    return s->address + (s->size > 0 ? s->size : 1);
}

/* True if the symbol can name code. On AArch64, BFD uses functions and untyped symbols, except mapping symbols ($x, $d)
 * and tags. */
static bool owner_possible(const struct elf_build *b, const struct object_symbol *s)
{
    if (b->object->machine != EM_AARCH64) {
        return s->type != OBJECT_TYPE_DATA;
    }
    const char *name = s->name < b->names.size ? b->names.data + s->name : "";
    bool mark = s->bind == OBJECT_BIND_LOCAL && name[0] == '$' && name[1] != '\0' && strchr("xdmfp", name[1]) != NULL &&
                (name[2] == '\0' || name[2] == '.');
    return (s->type == OBJECT_TYPE_NONE || s->type == OBJECT_TYPE_FUNCTION) && !mark;
}

/* Lists the symbols of .text; of several at one address the longest, and of those the first. */
static bool owners_find(struct painter *p)
{
    const struct object *o = p->build->object;
    for (uint32_t i = 0; i < o->range_count && p->high == 0; i++) {
        if (o->ranges[i].kind == OBJECT_RANGE_TEXT) {
            p->low = o->ranges[i].low;
            p->high = o->ranges[i].high;
        }
    }
    p->owners = ARENA_ARRAY(p->build->scratch, (size_t)o->symbol_count + 1, struct owner);
    if (p->owners == NULL) {
        return false;
    }
    for (uint32_t i = 0; i < o->symbol_count; i++) {
        if (owner_possible(p->build, &o->symbols[i]) && o->symbols[i].address >= p->low &&
            o->symbols[i].address < p->high) {
            p->owners[p->owner_count++] = (struct owner){o->symbols[i].address, i, 0};
        }
    }
    qsort(p->owners, p->owner_count, sizeof *p->owners, owner_compare);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < p->owner_count; i++) {
        if (kept == 0 || p->owners[kept - 1].address != p->owners[i].address) {
            p->owners[kept++] = p->owners[i];
        } else if (owner_end(p, &p->owners[i]) > owner_end(p, &p->owners[kept - 1])) {
            p->owners[kept - 1] = p->owners[i];
        }
    }
    p->owner_count = kept;
    return true;
}

/* The first owner after the address. */
static uint32_t owner_above(const struct painter *p, uint64_t address)
{
    return compare_find_first(p->owners, p->owner_count, sizeof *p->owners, address + 1);
}

/* Returns the number of its name, which is assigned on first use. */
static uint32_t owner_name(struct painter *p, struct owner *owner)
{
    struct object *o = p->build->object;
    if (owner == NULL) {
        return 0;
    }
    if (owner->named == 0) {
        const struct object_symbol *s = &o->symbols[owner->symbol];
        owner->named = o->line_function_count;
        o->line_functions[o->line_function_count++] = (struct object_line_function){s->name, s->demangled};
    }
    return owner->named;
}

/* A copy without a known name has the name of the symbol that begins at its address. */
static bool copy_name_symbol(struct painter *p, struct line_copy *copy)
{
    uint32_t above = owner_above(p, copy->low);
    if (copy->certain || above == 0 || p->owners[above - 1].address != copy->low) {
        return false;
    }
    copy->named = owner_name(p, &p->owners[above - 1]);
    return true;
}

/* Names all copies. Each text is stored once, because many copies share it. */
static bool copies_name(struct painter *p, uint64_t most)
{
    struct object *o = p->build->object;
    struct line_spans *s = &p->spans;
    struct sort_item *items = ARENA_ARRAY(p->build->scratch, (size_t)s->copy_count * 2 + 1, struct sort_item);
    if (items == NULL) {
        return false;
    }
    for (uint32_t i = 0; i < s->copy_count; i++) {
        items[i] = (struct sort_item){(uint64_t)(uintptr_t)s->copies[i].name, i};
    }
    sort_radix(items, items + s->copy_count, s->copy_count);
    const char *text = NULL;
    uint32_t named = 0;
    for (uint32_t i = 0; i < s->copy_count; i++) {
        struct line_copy *copy = &s->copies[items[i].value];
        if (copy->name == NULL || copy_name_symbol(p, copy)) {
            continue;
        }
        if (copy->name != text) {
            text = copy->name;
            size_t n = strlen(text);
            /* Texts may share their ends: many names of a damaged file would be longer than the file. */
            s->damaged |= n > most;
            uint32_t name = n > most ? 0 : elf_build_name(p->build, text, n);
            most -= n > most ? 0 : n;
            named = name == 0 ? 0 : o->line_function_count++;
            if (named != 0) {
                o->line_functions[named] = (struct object_line_function){name, name};
            }
        }
        copy->named = named;
    }
    return true;
}

static bool span_before(const void *context, uint32_t x, uint32_t y)
{
    const struct line_span *a = &((const struct painter *)context)->spans.spans[x];
    const struct line_span *b = &((const struct painter *)context)->spans.spans[y];
    uint64_t m = a->high - a->low, n = b->high - b->low;
    return m != n ? m < n : a->copy != b->copy ? a->copy > b->copy : x < y;
}

/* Returns the symbol that owns the address, and in *end where that may change. Addresses must ascend from call to call.
 */
static struct owner *owner_at(struct painter *p, uint64_t address, uint64_t *end)
{
    while (p->next_owner < p->owner_count && p->owners[p->next_owner].address <= address) {
        p->next_owner++;
    }
    if (p->held == NULL || owner_end(p, p->held) <= address) {
        p->held = p->next_owner > 0 ? &p->owners[p->next_owner - 1] : NULL;
    }
    uint64_t until = p->held != NULL ? owner_end(p, p->held) : 0;
    if (until <= address) {
        until = p->next_owner < p->owner_count ? p->owners[p->next_owner].address : UINT64_MAX;
    }
    *end = until;
    return p->held;
}

/* Returns the function that owns the address, and in *end where that may change. Addresses must ascend from call to
 * call. */
static uint32_t function_at(struct painter *p, uint64_t address, uint64_t *end)
{
    const struct line_spans *s = &p->spans;
    for (; p->next_span < s->span_count && s->spans[p->next_span].low <= address; p->next_span++) {
        heap_push(&p->heap, p->next_span);
    }
    while (p->heap.count > 0 && s->spans[p->heap.items[0]].high <= address) {
        heap_pop(&p->heap);
    }
    uint64_t until = p->next_span < s->span_count ? s->spans[p->next_span].low : UINT64_MAX;
    uint32_t named = 0;
    if (p->heap.count > 0) {
        const struct line_span *span = &s->spans[p->heap.items[0]];
        named = s->copies[span->copy].named;
        until = span->high < until ? span->high : until;
    }
    if (named == 0) {
        uint64_t owned;
        named = owner_name(p, owner_at(p, address, &owned));
        until = owned < until ? owned : until;
    }
    *end = until;
    return named;
}

/* Splits the part of line l in [low, high), which is above all earlier ones, into pieces after n others in out; if out
 * is NULL, only counts them. */
static uint32_t line_split(struct painter *p, const struct object_line *l, uint64_t low, uint64_t high,
                           struct object_line *last, struct object_line *out, uint32_t n)
{
    for (uint64_t at = low, end; at < high; at = end) {
        struct object_line piece = {.low = at, .file = l->file, .line = l->line};
        piece.function = function_at(p, at, &end);
        piece.high = end = end < high ? end : high;
        bool more = n > 0 && last->high == at && last->file == l->file && last->line == l->line &&
                    last->function == piece.function;
        if (out != NULL && more) {
            out[n - 1].high = end;
        } else if (out != NULL) {
            out[n] = piece;
        }
        n += !more;
        *last = piece;
    }
    return n;
}

/* Splits all rows. gprof also looks up the addresses between them. */
static uint32_t lines_split(struct painter *p, struct object_line *out)
{
    struct object_line last = {0};
    uint64_t end = p->low, until;
    uint32_t n = 0;
    p->heap.count = p->next_span = p->next_owner = 0;
    p->held = NULL;
    for (uint32_t i = 0; i < p->row_count && end < p->high; i++) {
        const struct object_line *l = &p->rows[i];
        uint64_t high = l->high < p->high ? l->high : p->high;
        for (; end < l->low && end < high; end = until < l->low ? until : l->low) {
            (void)function_at(p, end, &until);
        }
        n = line_split(p, l, end, high, &last, out, n);
        end = high > end ? high : end;
    }
    return n;
}

static enum profd_status paint(struct painter *p, const struct elf_dwarf *d, struct profd_error *e)
{
    struct object *o = p->build->object;
    TRY(line_spans_find(p->build, d, &p->spans, e));
    size_t names = (size_t)p->spans.copy_count + o->symbol_count + 1;
    p->heap =
        (struct heap){span_before, p, ARENA_ARRAY(p->build->scratch, (size_t)p->spans.span_count + 1, uint32_t), 0};
    o->line_functions = ARENA_ARRAY(p->build->out, names, struct object_line_function);
    o->line_function_count = 1;
    if (p->heap.items == NULL || o->line_functions == NULL || !owners_find(p) || !copies_name(p, d->bytes * 4)) {
        return profd_error_set(e, PROFD_NO_MEMORY, "out of memory for the names of %zu functions", names);
    }
    uint32_t n = lines_split(p, NULL);
    struct object_line *lines = ARENA_ARRAY(p->build->out, (size_t)n + 1, struct object_line);
    if (lines == NULL) {
        return profd_error_set(e, PROFD_NO_MEMORY, "out of memory for %" PRIu32 " source lines", n);
    }
    o->line_count = lines_split(p, lines);
    o->lines = lines;
    if (p->spans.damaged) {
        elf_build_note(p->build, "Some inlined functions are damaged and were left out.");
    }
    return PROFD_OK;
}

enum profd_status elf_line_functions_set(struct elf_build *b, const struct elf_dwarf *d, const struct object_line *rows,
                                         uint32_t count, struct profd_error *e)
{
    struct painter p = {.build = b, .rows = rows, .row_count = count};
    enum profd_status status = paint(&p, d, e);
    free(p.spans.copies);
    free(p.spans.spans);
    return status;
}
