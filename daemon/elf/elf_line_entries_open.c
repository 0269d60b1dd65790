/* Reads what precedes the entries: the headers of units, and the abbreviations, which state the layout of entries. */
#include <inttypes.h>
#include <stdlib.h>

#include "core/compare.h"
#include "elf/elf_line_entries.h"

enum { UNIT_COMPILE = 1, UNIT_TYPE, UNIT_PARTIAL, UNIT_SKELETON, UNIT_SPLIT };

/* Damaged entries may be referenced repeatedly; valid ones have less than this for each byte. */
#define STEPS_PER_BYTE 32

static enum profd_status section_load(const struct elf_file *f, const char *name, struct arena *a,
                                      struct entry_section *out, struct profd_error *e)
{
    const GElf_Shdr *s = elf_file_find(f, name);
    uint8_t *bytes;
    if (s == NULL) {
        return PROFD_OK;
    }
    enum profd_status status = elf_file_load(f, s, a, &bytes, e);
    if (status == PROFD_OK) {
        *out = (struct entry_section){bytes, s->sh_size};
    }
    return status;
}

static enum profd_status sections_load(struct entry_file *d, struct arena *a, struct profd_error *e)
{
    const struct {
        const char *name;
        struct entry_section *section;
    } list[] = {{".debug_info", &d->info},
                {".debug_abbrev", &d->kinds},
                {".debug_str", &d->strings},
                {".debug_line_str", &d->line_strings},
                {".debug_str_offsets", &d->string_offsets},
                {".debug_addr", &d->addresses},
                {".debug_ranges", &d->old_ranges},
                {".debug_rnglists", &d->ranges}};
    enum profd_status status = PROFD_OK;
    for (unsigned i = 0; i < sizeof list / sizeof *list && status == PROFD_OK; i++) {
        status = section_load(d->file, list[i].name, a, list[i].section, e);
    }
    return status;
}

/* Reads the header of the unit at offset at; *next is the offset after it. False if it is damaged. A unit of another
 * kind has no entries. */
static bool unit_head(const struct entry_file *d, uint64_t at, struct entry_unit *out, uint64_t *next)
{
    struct line_cursor c = {.file = d->file, .bytes = d->info.bytes, .at = at, .end = d->info.size};
    struct entry_unit u = {.start = at, .offset_size = 4};
    uint64_t length = line_number(&c, 4);
    if (length == UINT32_MAX) {
        u.offset_size = 8;
        length = line_number(&c, 8);
    }
    if (c.failed || length > c.end - c.at) {
        return false;
    }
    u.end = *next = c.end = c.at + length;
    u.version = (uint16_t)line_number(&c, 2);
    uint8_t type = UNIT_COMPILE;
    if (u.version >= 5) {
        type = line_u8(&c);
        u.address_size = line_u8(&c);
    }
    u.abbreviations = line_number(&c, u.offset_size);
    if (u.version < 5) {
        u.address_size = line_u8(&c);
    }
    if (type == UNIT_SKELETON || type == UNIT_SPLIT) {
        line_skip(&c, 8);
    }
    u.entries = c.at;
    if (c.failed || u.version < 2 || u.version > 5 || (u.address_size != 4 && u.address_size != 8) ||
        type == UNIT_TYPE || type > UNIT_SPLIT) {
        u.entries = u.end;
    }
    *out = u;
    return true;
}

/* Reads the kinds of entries at the cursor up to their end; if list is NULL, only counts them. */
static uint32_t kinds_read(struct line_cursor *c, struct entry_kind *list)
{
    uint32_t n = 0;
    for (;;) {
        uint64_t code = line_leb(c, false);
        if (code == 0 || c->failed) {
            return n;
        }
        struct entry_kind kind = {.code = code, .tag = line_leb(c, false)};
        line_u8(c); /* has children; not needed, because entries are read in sequence */
        kind.attributes = c->at;
        uint64_t name, form;
        do {
            name = line_leb(c, false);
            form = line_leb(c, false);
            if (form == 0x21) { /* its constant */
                line_leb(c, true);
            }
        } while (!c->failed && (name != 0 || form != 0));
        if (c->failed) {
            return n;
        }
        if (list != NULL) {
            list[n] = kind;
        }
        n++;
    }
}

static int kind_compare(const void *x, const void *y)
{
    const struct entry_kind *a = x, *b = y;
    return compare_pairs(a->code, b->code, a->attributes, b->attributes);
}

static int unit_compare(const void *x, const void *y)
{
    const struct entry_unit *const *a = x, *const *b = y;
    return compare_u64((*a)->abbreviations, (*b)->abbreviations);
}

/* Reads the kinds of entries of each unit; units with the same list share it. Lists that begin inside others would need
 * quadratic time, so their units get none. */
static enum profd_status kinds_load(struct entry_file *d, struct arena *a, struct profd_error *e)
{
    struct entry_unit **order = ARENA_ARRAY(a, d->unit_count, struct entry_unit *);
    if (order == NULL) {
        return profd_error_set(e, PROFD_NO_MEMORY, "out of memory for %" PRIu32 " units", d->unit_count);
    }
    for (uint32_t i = 0; i < d->unit_count; i++) {
        order[i] = &d->units[i];
    }
    qsort(order, d->unit_count, sizeof *order, unit_compare);
    uint64_t end = 0;
    const struct entry_unit *last = NULL;
    for (uint32_t i = 0; i < d->unit_count; i++) {
        struct entry_unit *u = order[i];
        if (last != NULL && u->abbreviations == last->abbreviations) {
            u->kinds = last->kinds;
            u->kind_count = last->kind_count;
        } else if (u->abbreviations >= end && u->abbreviations < d->kinds.size) {
            struct line_cursor c = {.file = d->file,
                                    .bytes = d->kinds.bytes,
                                    .at = u->abbreviations,
                                    .end = d->kinds.size},
                               again = c;
            u->kind_count = kinds_read(&c, NULL);
            end = c.at;
            struct entry_kind *kinds = ARENA_ARRAY(a, (size_t)u->kind_count + 1, struct entry_kind);
            if (kinds == NULL) {
                return profd_error_set(e, PROFD_NO_MEMORY, "out of memory for %" PRIu32 " kinds of entries",
                                       u->kind_count);
            }
            (void)kinds_read(&again, kinds);
            qsort(kinds, u->kind_count, sizeof *kinds, kind_compare);
            u->kinds = kinds;
            last = u;
        }
    }
    return PROFD_OK;
}

/* Languages with the same names for functions in DWARF and in the symbol table. In other languages they may differ. */
static bool language_is_plain(uint64_t language)
{
    switch (language) {
    case 0x01:   /* C89 */
    case 0x02:   /* C */
    case 0x05:   /* Cobol 74 */
    case 0x06:   /* Cobol 85 */
    case 0x07:   /* Fortran 77 */
    case 0x09:   /* Pascal */
    case 0x0c:   /* C99 */
    case 0x0f:   /* PL/I */
    case 0x12:   /* UPC */
    case 0x1d:   /* C11 */
    case 0x8001: /* assembler */
        return true;
    default:
        return false;
    }
}

/* Reads what the first entry states about the whole unit. Twice, because an address may precede the base of its table.
 */
static void unit_describe(struct entry_file *d, struct entry_unit *u)
{
    for (unsigned round = 0; round < 2 && u->entries < u->end; round++) {
        struct entry entry;
        struct entry_value v;
        uint64_t name;
        if (!entry_open(d, u, u->entries, &entry)) {
            return;
        }
        while (entry_next(d, &entry, &name, &v)) {
            if (name == AT_LOW_PC) {
                (void)entry_address(d, u, &v, &u->base);
            }
            if (v.kind != ENTRY_VALUE_NUMBER) {
                continue;
            }
            if (name == AT_LANGUAGE) {
                u->plain_names = language_is_plain(v.number);
            } else if (name == AT_STR_OFFSETS_BASE) {
                u->strings = v.number;
            } else if (name == AT_ADDR_BASE) {
                u->addresses = v.number;
            }
        }
    }
}

enum profd_status entry_file_open(const struct elf_file *f, struct arena *a, struct entry_file *out,
                                  struct profd_error *e)
{
    struct entry_file d = {.file = f};
    enum profd_status status = sections_load(&d, a, e);
    if (status != PROFD_OK) {
        return status;
    }
    struct entry_unit u;
    uint64_t at = 0, next;
    uint32_t count = 0;
    while (at < d.info.size && count < UINT32_MAX && unit_head(&d, at, &u, &next)) {
        count++;
        at = next;
    }
    d.units = ARENA_ARRAY(a, (size_t)count + 1, struct entry_unit);
    if (d.units == NULL) {
        return profd_error_set(e, PROFD_NO_MEMORY, "out of memory for %" PRIu32 " units", count);
    }
    for (at = 0; d.unit_count < count && unit_head(&d, at, &d.units[d.unit_count], &next); at = next) {
        d.unit_count++;
    }
    d.steps = (d.info.size + d.ranges.size + d.old_ranges.size) * STEPS_PER_BYTE;
    status = d.kinds.bytes == NULL ? PROFD_OK : kinds_load(&d, a, e);
    for (uint32_t i = 0; i < d.unit_count && status == PROFD_OK; i++) {
        unit_describe(&d, &d.units[i]);
    }
    if (status == PROFD_OK) {
        *out = d;
    }
    return status;
}
