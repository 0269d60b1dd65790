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
    uint32_t copy_count, span_count;
    size_t copy_capacity, span_capacity;
    bool damaged; /* something was left out */
};

/* The entries that are read, and the copy that is made of the current one. */
struct span_reading {
    struct elf_entries entries;
    struct line_spans *out;
    struct line_copy copy;
    uint32_t first; /* of its spans */
    uint64_t most;  /* spans; damaged entries may reference one list repeatedly */
    uint64_t steps; /* remaining: bounds the work for damaged entries */
    bool no_memory;
};

/* Adds a range of the current copy; extends an earlier one that it touches. False if no further range may be added. */
static bool span_add(struct span_reading *r, uint64_t low, uint64_t high)
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
    if (!LIST_GROW(s->spans, s->span_count, s->span_capacity)) {
        r->no_memory = true;
        return false;
    }
    s->spans[s->span_count++] = (struct line_span){low, high, s->copy_count};
    return true;
}

static int span_compare(const void *x, const void *y)
{
    const struct line_span *a = x, *b = y;
    int order = compare_pairs(a->low, b->low, a->copy, b->copy);
    return order != 0 ? order : compare_u64(a->high, b->high);
}

/* Finds all copies and their spans. The caller frees them, after a failure, too. NO_MEMORY. O(bytes + spans log spans).
 */
static enum profd_status line_spans_find(struct elf_build *b, const struct elf_dwarf *d, struct line_spans *out,
                                         struct profd_error *e)
{
    struct span_reading r = {.entries = {.dwarf = d->dwarf},
                             .out = out,
                             .most = d->bytes / 4 < UINT32_MAX / 4 ? d->bytes / 4 : UINT32_MAX / 4,
                             .steps = d->bytes * 32};
    *out = (struct line_spans){0};
    while (!r.no_memory && elf_entries_next(&r.entries)) {
        if (r.entries.tag != DW_TAG_subprogram && r.entries.tag != DW_TAG_inlined_subroutine &&
            r.entries.tag != DW_TAG_entry_point) {
            continue;
        }
        Dwarf_Die *entry = &r.entries.entry, origin;
        Dwarf_Attribute ranges;
        Dwarf_Addr base, low, high;
        ptrdiff_t at = 0;
        r.copy = (struct line_copy){0};
        r.first = out->span_count;
        /* BFD 2.40 leaves out lists of ranges that are given by an index, so they are left out here, too. */
        if (dwarf_attr(entry, DW_AT_ranges, &ranges) != NULL && dwarf_whatform(&ranges) == DW_FORM_rnglistx) {
            continue;
        }
        while ((at = dwarf_ranges(entry, at, &base, &low, &high)) > 0 && span_add(&r, low, high)) {
            continue;
        }
        out->damaged |= at < 0 && dwarf_hasattr(entry, DW_AT_ranges);
        if (out->span_count == r.first || r.no_memory) {
            continue;
        }
        r.no_memory = !LIST_GROW(out->copies, out->copy_count, out->copy_capacity);
        if (r.no_memory) {
            continue;
        }
        r.copy.name = elf_dwarf_name(entry, &r.copy.certain);
        if (r.copy.name == NULL) {
            (void)elf_entries_origin(&r.entries, &origin); /* it counts names that are in other files */
        }
        out->copies[out->copy_count++] = r.copy;
    }
    FAIL_IF(r.no_memory, e, PROFD_NO_MEMORY, "out of memory for %" PRIu32 " inlined functions", out->span_count);
    out->damaged |= r.entries.damaged;
    elf_entries_note(&r.entries, b);
    if (out->span_count > 0) {
        qsort(out->spans, out->span_count, sizeof *out->spans, span_compare);
    }
    return PROFD_OK;
}

/* A symbol that may own code. */
struct line_owner {
    uint64_t address;
    uint32_t symbol, named; /* its name among the object's line_functions; 0 before */
};

/* State of the walk over the addresses. */
struct painter {
    struct elf_build *build;
    const struct object_line *rows;
    uint32_t row_count;
    struct line_spans spans;
    struct line_owner *owners; /* ascending by address */
    uint32_t owner_count, next_owner;
    struct line_owner *held; /* the symbol found last; like BFD, it is used up to its end, whatever begins there */
    uint64_t low, high;      /* of .text */
    struct heap heap;        /* open spans, the shortest on top; some may have ended */
    uint32_t next_span;
};

static int owner_compare(const void *x, const void *y)
{
    const struct line_owner *a = x, *b = y;
    return compare_pairs(a->address, b->address, a->symbol, b->symbol);
}

static uint64_t owner_end(const struct painter *p, const struct line_owner *owner)
{
    const struct object_symbol *s = &p->build->object->symbols[owner->symbol];
    return s->address + (s->size > 0 ? s->size : 1);
}

/* Lists the symbols of .text that can name code: the longest at each address, and the first of equally long ones. On
 * AArch64, BFD uses functions and untyped symbols, except mapping symbols ($x, $d) and tags. */
static bool owners_find(struct painter *p)
{
    const struct object *o = p->build->object;
    const struct buffer *names = &p->build->names;
    for (uint32_t i = 0; i < o->range_count && p->high == 0; i++) {
        if (o->ranges[i].kind == OBJECT_RANGE_TEXT) {
            p->low = o->ranges[i].low;
            p->high = o->ranges[i].high;
        }
    }
    p->owners = ARENA_ARRAY(p->build->scratch, (size_t)o->symbol_count + 1, struct line_owner);
    if (p->owners == NULL) {
        return false;
    }
    for (uint32_t i = 0; i < o->symbol_count; i++) {
        const struct object_symbol *s = &o->symbols[i];
        bool possible = s->type != OBJECT_TYPE_DATA;
        if (o->machine == EM_AARCH64) {
            const char *name = s->name < names->size ? names->data + s->name : "";
            const bool mark = s->bind == OBJECT_BIND_LOCAL && name[0] == '$' && name[1] != '\0' &&
                              strchr("xdmfp", name[1]) != NULL && (name[2] == '\0' || name[2] == '.');
            possible = (s->type == OBJECT_TYPE_NONE || s->type == OBJECT_TYPE_FUNCTION) && !mark;
        }
        if (possible && s->address >= p->low && s->address < p->high) {
            p->owners[p->owner_count++] = (struct line_owner){s->address, i, 0};
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

/* Returns the number of the owner's name, which is assigned on first use; 0 for NULL. */
static uint32_t owner_name(struct painter *p, struct line_owner *owner)
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
        if (copy->name == NULL) {
            continue;
        }
        /* A copy without a certain name has the name of the symbol that begins at its address. */
        const uint32_t above = compare_find_first(p->owners, p->owner_count, sizeof *p->owners, copy->low + 1);
        if (!copy->certain && above > 0 && p->owners[above - 1].address == copy->low) {
            copy->named = owner_name(p, &p->owners[above - 1]);
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

/* Returns the function that owns the address, and in *end where that may change. Addresses must ascend from call to
 * call. The shortest copy there owns it; without one, the symbol before it does. */
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
        while (p->next_owner < p->owner_count && p->owners[p->next_owner].address <= address) {
            p->next_owner++;
        }
        if (p->held == NULL || owner_end(p, p->held) <= address) {
            p->held = p->next_owner > 0 ? &p->owners[p->next_owner - 1] : NULL;
        }
        uint64_t owned = p->held != NULL ? owner_end(p, p->held) : 0;
        if (owned <= address) {
            owned = p->next_owner < p->owner_count ? p->owners[p->next_owner].address : UINT64_MAX;
        }
        named = owner_name(p, p->held);
        until = owned < until ? owned : until;
    }
    *end = until;
    return named;
}

/* Splits all rows into pieces of one function, and returns how many there are. out: NULL, or room for them. */
static uint32_t lines_split(struct painter *p, struct object_line *out)
{
    struct object_line last = {0};
    uint64_t end = p->low, until;
    uint32_t n = 0;
    p->heap.count = p->next_span = p->next_owner = 0;
    p->held = NULL;
    for (uint32_t i = 0; i < p->row_count && end < p->high; i++) {
        const struct object_line *l = &p->rows[i];
        const uint64_t high = l->high < p->high ? l->high : p->high;
        /* gprof also looks up the addresses between the rows, so that the owner that is held there may end. */
        for (; end < l->low && end < high; end = until < l->low ? until : l->low) {
            (void)function_at(p, end, &until);
        }
        for (; end < high; end = until) {
            struct object_line piece = {.low = end, .file = l->file, .line = l->line};
            piece.function = function_at(p, end, &until);
            piece.high = until = until < high ? until : high;
            const bool same = n > 0 && last.high == end && last.file == l->file && last.line == l->line &&
                              last.function == piece.function;
            n += !same;
            if (out != NULL && same) {
                out[n - 1].high = until;
            } else if (out != NULL) {
                out[n - 1] = piece;
            }
            last = piece;
        }
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
    FAIL_IF(p->heap.items == NULL || o->line_functions == NULL || !owners_find(p) || !copies_name(p, d->bytes * 4), e,
            PROFD_NO_MEMORY, "out of memory for the names of %zu functions", names);
    uint32_t n = lines_split(p, NULL);
    struct object_line *lines = ARENA_ARRAY(p->build->out, (size_t)n + 1, struct object_line);
    FAIL_IF(lines == NULL, e, PROFD_NO_MEMORY, "out of memory for %" PRIu32 " source lines", n);
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
