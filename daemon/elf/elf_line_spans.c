#include <inttypes.h>
#include <stdlib.h>

#include "core/compare.h"
#include "elf/elf_line_functions.h"

/* A longer chain of references is a circle. */
#define ORIGINS_MAX 64

/* What an entry states about itself. */
struct reading {
    struct entry_file *file;
    struct line_spans *out;
    struct line_copy copy;
    uint32_t first; /* of its spans */
    bool no_memory;
};

static bool span_capacity(struct reading *r)
{
    struct line_spans *s = r->out;
    /* A valid range needs more bytes; damaged entries may reference one list repeatedly. */
    uint64_t most = (r->file->info.size + r->file->ranges.size + r->file->old_ranges.size) / 4;
    if (s->span_count >= most || s->span_count > UINT32_MAX / 4) {
        s->damaged = true;
        return false;
    }
    if (s->span_count < s->span_capacity) {
        return true;
    }
    uint32_t capacity = s->span_capacity * 2 + 256;
    struct line_span *more = realloc(s->spans, capacity * sizeof *more);
    r->no_memory = more == NULL;
    if (more == NULL) {
        return false;
    }
    s->spans = more;
    s->span_capacity = capacity;
    return true;
}

/* Adds a range of the current copy; extends an earlier one that it touches. */
static bool span_add(void *context, uint64_t low, uint64_t high)
{
    struct reading *r = context;
    struct line_spans *s = r->out;
    if (low >= high) {
        return true;
    }
    uint64_t steps = 1 + (s->span_count - r->first) / 16;
    if (r->file->steps < steps) {
        s->damaged = true;
        return false;
    }
    r->file->steps -= steps;
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
    if (!span_capacity(r)) {
        return false;
    }
    s->spans[s->span_count++] = (struct line_span){low, high, s->copy_count};
    return true;
}

/* Reads the name of the function from an entry: the first plain name, but always the linkage name. */
static void name_take(const struct entry_unit *u, uint64_t name, const struct entry_value *v, struct line_copy *copy)
{
    if (v->kind != ENTRY_VALUE_TEXT) {
        return;
    }
    if (name == AT_LINKAGE_NAME || name == AT_MIPS_LINKAGE_NAME) {
        copy->name = v->text;
        copy->certain = true;
    } else if (name == AT_NAME && copy->name == NULL) {
        copy->name = v->text;
        copy->certain = copy->certain || u->plain_names;
    }
}

/* Finds the name at the end of the references from at; a name of the function's own entry has priority. */
static void origin_take(struct entry_file *d, uint64_t at, struct line_copy *copy)
{
    for (unsigned i = 0; i < ORIGINS_MAX; i++) {
        const struct entry_unit *u = entry_file_unit(d, at);
        struct entry entry;
        struct entry_value v;
        uint64_t name, next = UINT64_MAX;
        if (u == NULL || !entry_open(d, u, at, &entry)) {
            return;
        }
        while (entry_next(d, &entry, &name, &v)) {
            if ((name == AT_ABSTRACT_ORIGIN || name == AT_SPECIFICATION) && v.kind == ENTRY_VALUE_REFERENCE) {
                next = v.number;
            } else {
                name_take(u, name, &v, copy);
            }
        }
        if (next == UINT64_MAX || copy->certain) {
            return;
        }
        at = next;
    }
}

static bool copy_keep(struct reading *r)
{
    struct line_spans *s = r->out;
    if (s->span_count == r->first) {
        return true;
    }
    if (s->copy_count == s->copy_capacity) {
        uint32_t capacity = s->copy_capacity * 2 + 256;
        struct line_copy *more = realloc(s->copies, capacity * sizeof *more);
        r->no_memory = more == NULL;
        if (more == NULL) {
            return false;
        }
        s->copies = more;
        s->copy_capacity = capacity;
    }
    s->copies[s->copy_count++] = r->copy;
    return true;
}

/* Reads a function's entry. */
static void function_read(struct reading *r, struct entry *entry)
{
    const struct entry_unit *u = entry->unit;
    uint64_t name, low = 0, high = 0, origin = UINT64_MAX;
    bool relative = false;
    struct entry_value v, ranges = {0};
    r->copy = (struct line_copy){0};
    r->first = r->out->span_count;
    while (entry_next(r->file, entry, &name, &v)) {
        name_take(u, name, &v, &r->copy);
        if (name == AT_LOW_PC) {
            (void)entry_address(r->file, u, &v, &low);
        } else if (name == AT_HIGH_PC && v.kind == ENTRY_VALUE_ADDRESS) {
            (void)entry_address(r->file, u, &v, &high);
        } else if (name == AT_HIGH_PC && v.kind == ENTRY_VALUE_NUMBER) {
            relative = true, high = v.number;
        } else if (name == AT_RANGES) {
            ranges = v;
        } else if ((name == AT_ABSTRACT_ORIGIN || name == AT_SPECIFICATION) && v.kind == ENTRY_VALUE_REFERENCE) {
            origin = v.number;
        }
    }
    if (entry->values.failed) {
        return;
    }
    high = relative ? low + high : high;
    if (ranges.kind != ENTRY_VALUE_OTHER && !entry_ranges(r->file, u, &ranges, span_add, r)) {
        r->out->damaged = true;
    }
    if (high != 0) {
        (void)span_add(r, low, high);
    }
    if (r->out->span_count == r->first || r->no_memory) {
        return;
    }
    if (!r->copy.certain && origin != UINT64_MAX) {
        origin_take(r->file, origin, &r->copy);
    }
    (void)copy_keep(r);
}

/* Reads all entries of a unit in sequence. */
static void unit_read(struct reading *r, const struct entry_unit *u)
{
    uint64_t at = u->entries;
    while (at < u->end && !r->no_memory) {
        struct entry entry;
        if (entry_open(r->file, u, at, &entry)) {
            uint64_t tag = entry.kind->tag, name;
            struct entry_value v;
            if (tag == TAG_SUBPROGRAM || tag == TAG_INLINED || tag == TAG_ENTRY_POINT) {
                function_read(r, &entry);
            } else {
                while (entry_next(r->file, &entry, &name, &v)) {
                    continue;
                }
            }
        }
        if (entry.values.failed) {
            r->out->damaged = true;
            return;
        }
        at = entry.values.at;
    }
}

static int span_compare(const void *x, const void *y)
{
    const struct line_span *a = x, *b = y;
    int order = compare_pairs(a->low, b->low, a->copy, b->copy);
    return order != 0 ? order : compare_u64(a->high, b->high);
}

enum profd_status line_spans_find(struct entry_file *d, struct line_spans *out, struct profd_error *e)
{
    struct reading r = {.file = d, .out = out};
    *out = (struct line_spans){0};
    for (uint32_t i = 0; i < d->unit_count && !r.no_memory; i++) {
        unit_read(&r, &d->units[i]);
    }
    if (r.no_memory) {
        return profd_error_set(e, PROFD_NO_MEMORY, "out of memory for %" PRIu32 " inlined functions", out->span_count);
    }
    if (out->span_count > 0) {
        qsort(out->spans, out->span_count, sizeof *out->spans, span_compare);
    }
    return PROFD_OK;
}

void line_spans_done(struct line_spans *s)
{
    free(s->copies);
    free(s->spans);
    s->copies = NULL;
    s->spans = NULL;
}
