#include "elf/elf_line_units.h"

#include <stdlib.h>

#include "core/compare.h"
#include "elf/elf_line_cursor.h"

#define HEAD_MAX 2048 /* bytes of a unit: its header and first entry */
#define UNITS_MAX 4000000u

enum { AT_STMT_LIST = 0x10, AT_COMP_DIR = 0x1b };

/* The first entry of a unit, being read. */
struct head {
    struct line_cursor c; /* at the entry's values */
    struct line_cursor abbreviations;
    uint64_t at; /* offset of c's bytes in .debug_info */
    unsigned offset_size, address_size;
    const GElf_Shdr *info, *strings;
};

/* Reads a value: a number, or the location of a string. */
static uint64_t value_read(struct head *h, uint64_t form, struct line_string *text)
{
    struct line_cursor *c = &h->c;
    switch (form) {
    case FORM_ADDR:
        return line_number(c, h->address_size);
    case FORM_DATA1:
    case FORM_FLAG:
    case FORM_REF1:
        return line_number(c, 1);
    case FORM_DATA2:
    case FORM_REF2:
        return line_number(c, 2);
    case FORM_DATA4:
    case FORM_REF4:
        return line_number(c, 4);
    case FORM_DATA8:
    case FORM_REF8:
    case FORM_REF_SIG8:
        return line_number(c, 8);
    case FORM_SDATA:
    case FORM_UDATA:
    case FORM_REF_UDATA:
        return line_leb(c, false);
    case FORM_SEC_OFFSET:
    case FORM_REF_ADDR:
        return line_number(c, h->offset_size);
    case FORM_STRP:
        *text = (struct line_string){h->strings, line_number(c, h->offset_size)};
        return 0;
    case FORM_STRING:
        *text = (struct line_string){h->info, h->at + c->at};
        while (line_u8(c) != 0) {
            continue;
        }
        return 0;
    case FORM_FLAG_PRESENT: /* has no bytes */
        return 0;
    default:
        c->failed |= !line_skip_block(c, form == FORM_EXPRLOC ? FORM_BLOCK : form);
        return 0;
    }
}

/* Moves the abbreviations' cursor to the attributes of that code. */
static bool abbreviation_find(struct line_cursor *c, uint64_t code)
{
    for (;;) {
        uint64_t here = line_leb(c, false);
        if (c->failed || here == 0) {
            return false;
        }
        line_leb(c, false); /* tag */
        line_u8(c);         /* has children */
        if (here == code) {
            return !c->failed;
        }
        uint64_t name, form;
        do {
            name = line_leb(c, false);
            form = line_leb(c, false);
        } while (!c->failed && (name != 0 || form != 0));
    }
}

/* False unless the unit names its line table and its directory. */
static bool entry_read(struct head *h, struct elf_unit *out)
{
    bool has_lines = false;
    uint64_t code = line_leb(&h->c, false);
    if (h->c.failed || !abbreviation_find(&h->abbreviations, code)) {
        return false;
    }
    for (;;) {
        uint64_t name = line_leb(&h->abbreviations, false), form = line_leb(&h->abbreviations, false);
        struct line_string text = {NULL, 0};
        if (h->abbreviations.failed || (name == 0 && form == 0)) {
            break;
        }
        uint64_t value = value_read(h, form, &text);
        if (h->c.failed) {
            break;
        }
        if (name == AT_STMT_LIST) {
            has_lines = true;
            out->lines = value;
        } else if (name == AT_COMP_DIR) {
            out->folder = text;
        }
    }
    return has_lines && out->folder.section != NULL;
}

/* Reads one unit; at is the offset of its version. */
static bool unit_read(const struct elf_file *f, struct head *h, uint64_t size, unsigned offset_size,
                      struct elf_unit *out)
{
    uint8_t bytes[HEAD_MAX];
    uint64_t n = size < sizeof bytes ? size : sizeof bytes;
    if (elf_file_read(f, h->info->sh_offset + h->at, bytes, n, NULL) != PROFD_OK) {
        return false;
    }
    h->c = (struct line_cursor){.file = f, .bytes = bytes, .end = n};
    h->offset_size = offset_size;
    uint64_t version = line_number(&h->c, 2), table = line_number(&h->c, offset_size);
    h->address_size = line_u8(&h->c);
    if (h->c.failed || version < 2 || version > 4 || table > h->abbreviations.end) {
        return false;
    }
    h->abbreviations.at = table;
    h->abbreviations.failed = false;
    *out = (struct elf_unit){0};
    return entry_read(h, out);
}

static int unit_compare(const void *x, const void *y)
{
    const struct elf_unit *a = x, *b = y;
    return a->lines < b->lines ? -1 : a->lines > b->lines;
}

/* Walks all units; if list is NULL, only counts them. */
static uint32_t units_walk(const struct elf_file *f, struct head *h, struct elf_unit *list)
{
    uint32_t n = 0;
    uint64_t at = 0;
    while (h->info->sh_size - at > 12 && n < UNITS_MAX) {
        uint8_t raw[12];
        if (elf_file_read(f, h->info->sh_offset + at, raw, sizeof raw, NULL) != PROFD_OK) {
            break;
        }
        uint64_t length = elf_u32(f, raw);
        bool wide = length == UINT32_MAX;
        length = wide ? elf_u64(f, raw + 4) : length;
        at += wide ? 12 : 4;
        if (length > h->info->sh_size - at) {
            break;
        }
        h->at = at;
        at += length;
        if (list == NULL) {
            n++;
        } else {
            n += unit_read(f, h, length, wide ? 8 : 4, &list[n]);
        }
    }
    return n;
}

enum profd_status elf_units_read(const struct elf_file *f, struct arena *a, struct elf_units *out,
                                 struct profd_error *e)
{
    struct head h = {.info = elf_file_find(f, ".debug_info"), .strings = elf_file_find(f, ".debug_str")};
    const GElf_Shdr *abbreviations = elf_file_find(f, ".debug_abbrev");
    *out = (struct elf_units){0};
    if (h.info == NULL || abbreviations == NULL) {
        return PROFD_OK;
    }
    uint8_t *bytes;
    enum profd_status status = elf_file_load(f, abbreviations, a, &bytes, e);
    if (status != PROFD_OK) {
        return status;
    }
    h.abbreviations = (struct line_cursor){.file = f, .bytes = bytes, .end = abbreviations->sh_size};
    uint32_t n = units_walk(f, &h, NULL);
    out->list = ARENA_ARRAY(a, (size_t)n + 1, struct elf_unit);
    if (out->list == NULL) {
        return profd_error_set(e, PROFD_NO_MEMORY, "out of memory for %u units of debug information", n);
    }
    out->count = units_walk(f, &h, out->list);
    qsort(out->list, out->count, sizeof *out->list, unit_compare);
    return PROFD_OK;
}

const struct line_string *elf_units_folder(const struct elf_units *u, uint64_t lines)
{
    uint32_t at = compare_find_first(u->list, u->count, sizeof *u->list, lines);
    return at < u->count && u->list[at].lines == lines ? &u->list[at].folder : NULL;
}
