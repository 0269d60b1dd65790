#include "elf/elf_line_entries.h"

#include <inttypes.h>
#include <stdlib.h>

#include "core/compare.h"

/* Entries that give addresses by index are left out, because BFD 2.40 does not read them either. */
enum { RANGE_END = 0, RANGE_OFFSETS = 4, RANGE_BASE = 5, RANGE_PAIR = 6, RANGE_LENGTH = 7 };

typedef bool range_each(void *context, uint64_t low, uint64_t high);

static bool step(struct entry_file *d)
{
    if (d->steps == 0) {
        return false;
    }
    d->steps--;
    return true;
}

static bool old_list(struct entry_file *d, const struct entry_unit *u, uint64_t at, range_each *each, void *context)
{
    if (d->old_ranges.bytes == NULL || at > d->old_ranges.size) {
        return false;
    }
    struct line_cursor c = {.file = d->file, .bytes = d->old_ranges.bytes, .at = at, .end = d->old_ranges.size};
    uint64_t base = u->base, mark = u->address_size == 4 ? UINT32_MAX : UINT64_MAX;
    for (;;) {
        uint64_t low = line_number(&c, u->address_size), high = line_number(&c, u->address_size);
        if (c.failed || !step(d)) {
            return false;
        }
        if (low == 0 && high == 0) {
            return true;
        }
        if (low == mark) {
            base = high;
        } else if (!each(context, base + low, base + high)) {
            return false;
        }
    }
}

static bool new_list(struct entry_file *d, const struct entry_unit *u, uint64_t at, range_each *each, void *context)
{
    if (d->ranges.bytes == NULL || at > d->ranges.size) {
        return false;
    }
    struct line_cursor c = {.file = d->file, .bytes = d->ranges.bytes, .at = at, .end = d->ranges.size};
    uint64_t base = u->base;
    for (;;) {
        uint8_t kind = line_u8(&c);
        uint64_t low = 0, high = 0;
        if (kind == RANGE_BASE) {
            base = line_number(&c, u->address_size);
        } else if (kind == RANGE_OFFSETS) {
            low = base + line_leb(&c, false);
            high = base + line_leb(&c, false);
        } else if (kind == RANGE_PAIR) {
            low = line_number(&c, u->address_size);
            high = line_number(&c, u->address_size);
        } else if (kind == RANGE_LENGTH) {
            low = line_number(&c, u->address_size);
            high = low + line_leb(&c, false);
        } else {
            return kind == RANGE_END && !c.failed;
        }
        if (c.failed || !step(d) || (low < high && !each(context, low, high))) {
            return false;
        }
    }
}

bool entry_ranges(struct entry_file *d, const struct entry_unit *u, const struct entry_value *v, range_each *each,
                  void *context)
{
    if (v->kind != ENTRY_VALUE_NUMBER) {
        return false;
    }
    if (u->version < 5) {
        return old_list(d, u, v->number, each, context);
    }
    /* A list given by its index: BFD 2.40 does not read it, so it is left out here, too. */
    return v->is_index || new_list(d, u, v->number, each, context);
}

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

/* Forms of entries only; the others are in elf_line_cursor.h. */
enum {
    FORM_INDIRECT = 0x16,
    FORM_STRX = 0x1a,
    FORM_ADDRX = 0x1b,
    FORM_REF_SUP4 = 0x1c,
    FORM_STRP_SUP = 0x1d,
    FORM_IMPLICIT_CONST = 0x21,
    FORM_LOCLISTX = 0x22,
    FORM_RNGLISTX = 0x23,
    FORM_REF_SUP8 = 0x24,
    FORM_STRX1 = 0x25,
    FORM_ADDRX1 = 0x29,
    FORM_GNU_REF_ALT = 0x1f20,
    FORM_GNU_STRP_ALT = 0x1f21
};

const struct entry_unit *entry_file_unit(const struct entry_file *d, uint64_t at)
{
    uint32_t low = 0, high = d->unit_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (d->units[middle].end <= at) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < d->unit_count && d->units[low].entries <= at ? &d->units[low] : NULL;
}

static const struct entry_kind *kind_find(const struct entry_unit *u, uint64_t code)
{
    if (code - 1 < u->kind_count && u->kinds[code - 1].code == code) {
        return &u->kinds[code - 1];
    }
    uint32_t at = compare_find_first(u->kinds, u->kind_count, sizeof *u->kinds, code);
    return at < u->kind_count && u->kinds[at].code == code ? &u->kinds[at] : NULL;
}

bool entry_open(const struct entry_file *d, const struct entry_unit *u, uint64_t at, struct entry *out)
{
    struct entry entry = {.unit = u, .values = {.file = d->file, .bytes = d->info.bytes, .at = at, .end = u->end}};
    uint64_t code = line_leb(&entry.values, false);
    entry.kind = code == 0 || entry.values.failed ? NULL : kind_find(u, code);
    entry.values.failed |= code != 0 && entry.kind == NULL;
    if (entry.kind != NULL) {
        entry.attributes = (struct line_cursor){
            .file = d->file, .bytes = d->kinds.bytes, .at = entry.kind->attributes, .end = d->kinds.size};
    }
    *out = entry;
    return entry.kind != NULL;
}

/* Returns the text at an offset of a section, which ends with a NUL that was added. */
static void text_at(const struct entry_section *s, uint64_t offset, struct entry_value *out)
{
    if (s->bytes == NULL || offset >= s->size) {
        return;
    }
    out->kind = ENTRY_VALUE_TEXT;
    out->text = (const char *)s->bytes + offset;
}

/* Reads the number at an index of a table. False after its end. */
static bool table_number(const struct entry_file *d, const struct entry_section *s, uint64_t base, uint64_t index,
                         unsigned size, uint64_t *out)
{
    if (s->bytes == NULL || base > s->size || index >= (s->size - base) / size) {
        return false;
    }
    struct line_cursor c = {.file = d->file, .bytes = s->bytes, .at = base + index * size, .end = s->size};
    *out = line_number(&c, size);
    return !c.failed;
}

/* Size of a number of this form; 0 if it has no fixed size. */
static unsigned form_size(const struct entry_unit *u, uint64_t form)
{
    switch (form) {
    case FORM_DATA1:
    case FORM_FLAG:
    case FORM_REF1:
        return 1;
    case FORM_DATA2:
    case FORM_REF2:
        return 2;
    case FORM_DATA4:
    case FORM_REF4:
    case FORM_REF_SUP4:
        return 4;
    case FORM_DATA8:
    case FORM_REF8:
    case FORM_REF_SIG8:
    case FORM_REF_SUP8:
        return 8;
    case FORM_REF_ADDR: /* an address in */
        return u->version < 3 ? u->address_size : u->offset_size;
    case FORM_SEC_OFFSET:
    case FORM_GNU_REF_ALT:
        return u->offset_size;
    default:
        return 0;
    }
}

static void value_fixed(const struct entry_unit *u, uint64_t form, uint64_t number, struct entry_value *out)
{
    out->kind = ENTRY_VALUE_NUMBER;
    out->number = number;
    if ((form >= FORM_REF1 && form <= FORM_REF8) || form == FORM_REF_UDATA) {
        out->kind = ENTRY_VALUE_REFERENCE;
        out->number += u->start;
    } else if (form == FORM_REF_ADDR) {
        out->kind = ENTRY_VALUE_REFERENCE;
    } else if (form == FORM_REF_SIG8 || form == FORM_GNU_REF_ALT || form == FORM_REF_SUP4 || form == FORM_REF_SUP8) {
        out->kind = ENTRY_VALUE_OTHER;
    }
}

/* Reads strings, and values in other sections. False if the form is another one. */
static bool value_elsewhere(const struct entry_file *d, const struct entry_unit *u, uint64_t form,
                            struct line_cursor *c, struct entry_value *out)
{
    static const uint8_t sizes[] = {1, 2, 3, 4}; /* sizes of FORM_STRX1, FORM_ADDRX1 and the forms after them */
    bool short_text = form >= FORM_STRX1 && form < FORM_STRX1 + 4;
    if (form == FORM_STRP || form == FORM_LINE_STRP) {
        uint64_t offset = line_number(c, u->offset_size);
        text_at(form == FORM_STRP ? &d->strings : &d->line_strings, offset, out);
    } else if (form == FORM_STRP_SUP || form == FORM_GNU_STRP_ALT) {
        line_skip(c, u->offset_size);
    } else if (form == FORM_STRING) {
        text_at(&d->info, c->at, out);
        while (line_u8(c) != 0) {
            continue;
        }
    } else if (form == FORM_STRX || form == FORM_ADDRX || form == FORM_RNGLISTX || form == FORM_LOCLISTX ||
               short_text || (form >= FORM_ADDRX1 && form < FORM_ADDRX1 + 4)) {
        uint64_t index = 0, offset;
        if (form < FORM_STRX1) {
            index = line_leb(c, false);
        } else {
            for (unsigned i = 0; i < sizes[(form - FORM_STRX1) % 4]; i++) {
                index |= (uint64_t)line_u8(c)
                         << 8 * (d->file->big_endian ? sizes[(form - FORM_STRX1) % 4] - 1u - i : i);
            }
        }
        if (form == FORM_STRX || short_text) {
            if (table_number(d, &d->string_offsets, u->strings, index, u->offset_size, &offset)) {
                text_at(&d->strings, offset, out);
            }
            return true;
        }
        out->kind = form == FORM_RNGLISTX || form == FORM_LOCLISTX ? ENTRY_VALUE_NUMBER : ENTRY_VALUE_ADDRESS;
        out->number = index;
        out->is_index = true;
    } else {
        return false;
    }
    return true;
}

static void value_read(const struct entry_file *d, struct entry *entry, uint64_t form, struct entry_value *out)
{
    struct line_cursor *c = &entry->values;
    const struct entry_unit *u = entry->unit;
    int64_t constant = form == FORM_IMPLICIT_CONST ? (int64_t)line_leb(&entry->attributes, true) : 0;
    *out = (struct entry_value){0};
    if (form == FORM_INDIRECT) {
        form = line_leb(c, false);
        c->failed |= form == FORM_INDIRECT || form == FORM_IMPLICIT_CONST;
    }
    unsigned size = form_size(u, form);
    if (size != 0) {
        value_fixed(u, form, line_number(c, size), out);
    } else if (form == FORM_ADDR) {
        out->kind = ENTRY_VALUE_ADDRESS;
        out->number = line_number(c, u->address_size);
    } else if (form == FORM_UDATA || form == FORM_SDATA || form == FORM_REF_UDATA) {
        value_fixed(u, form, line_leb(c, form == FORM_SDATA), out);
    } else if (form == FORM_IMPLICIT_CONST) {
        value_fixed(u, form, (uint64_t)constant, out);
    } else if (form == FORM_DATA16) {
        line_skip(c, 16);
    } else if (form != FORM_FLAG_PRESENT && !value_elsewhere(d, u, form, c, out)) {
        c->failed |= !line_skip_block(c, form == FORM_EXPRLOC ? FORM_BLOCK : form);
    }
}

bool entry_next(struct entry_file *d, struct entry *entry, uint64_t *name, struct entry_value *out)
{
    if (d->steps == 0) {
        entry->values.failed = true;
    } else {
        d->steps--;
    }
    *name = line_leb(&entry->attributes, false);
    uint64_t form = line_leb(&entry->attributes, false);
    entry->values.failed |= entry->attributes.failed;
    if (entry->values.failed || (*name == 0 && form == 0)) {
        return false;
    }
    value_read(d, entry, form, out);
    return !entry->values.failed;
}

bool entry_address(const struct entry_file *d, const struct entry_unit *u, const struct entry_value *v, uint64_t *out)
{
    if (v->kind != ENTRY_VALUE_ADDRESS) {
        return false;
    }
    if (v->is_index) {
        return table_number(d, &d->addresses, u->addresses, v->number, u->address_size, out);
    }
    *out = v->number;
    return true;
}
