#include "elf/elf_line.h"

#include <elf.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/compare.h"
#include "core/table.h"
#include "elf/elf_line_cursor.h"
#include "elf/elf_line_functions.h"
#include "elf/elf_line_table.h"
#include "proto/limits.h"

/* Compilation units of .debug_info: only their compilation directories, which line tables before DWARF 5 do not
 * contain. */

struct elf_unit {
    uint64_t lines;            /* offset of its table in .debug_line */
    struct line_string folder; /* section NULL if unknown */
};

struct elf_units {
    struct elf_unit *list; /* ascending by lines */
    uint32_t count;
};

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

/* Reads the header of every unit of versions 2 to 4. Damaged ones are left out. NO_MEMORY, IO. O(units log units). */
static enum profd_status elf_units_read(const struct elf_file *f, struct arena *a, struct elf_units *out,
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

/* Returns the compilation directory of the unit with that line table, or NULL. O(log units). */
static const struct line_string *elf_units_folder(const struct elf_units *u, uint64_t lines)
{
    uint32_t at = compare_find_first(u->list, u->count, sizeof *u->list, lines);
    return at < u->count && u->list[at].lines == lines ? &u->list[at].folder : NULL;
}

/* No compiler makes a larger table. */
#define UNIT_MAX (UINT64_C(64) << 20)

/* A symbol that needs a line. */
struct wanted {
    uint64_t address;
    uint32_t symbol;
};

/* All of them, and the current position: rows ascend, so the next one is near. */
struct search {
    struct elf_build *build;
    struct line_table table;
    struct elf_units units; /* empty unless the compilation directory is wanted */
    struct wanted *list;
    uint32_t count, cursor;
    enum elf_line_keep keep;
    bool as_gprof; /* for gprof's listings: as BFD reads, if that differs from DWARF */
    struct object_line *rows;
    uint32_t row_count, row_capacity;
    struct table paths; /* of path_offsets */
    uint32_t *path_offsets, path_count, path_capacity;
    struct object_digest *digests; /* in the object's arena, as they come */
    uint32_t digest_count, digest_capacity;
    bool no_memory, too_many;
    uint32_t damaged; /* tables that could not be read */
};

static int compare_wanted(const void *x, const void *y)
{
    const struct wanted *a = x, *b = y;
    return compare_pairs(a->address, b->address, a->symbol, b->symbol);
}

static void collect(struct search *s, bool all)
{
    const struct object *o = s->build->object;
    for (uint32_t i = 0; i < o->symbol_count; i++) {
        const struct object_symbol *symbol = &o->symbols[i];
        if ((all || symbol->bind == OBJECT_BIND_LOCAL) && symbol->flags & OBJECT_SYMBOL_EXECUTABLE) {
            s->list[s->count++] = (struct wanted){symbol->address, i};
        }
    }
    qsort(s->list, s->count, sizeof *s->list, compare_wanted);
}

/* Moves the cursor to the first wanted address at or above low. */
static void seek(struct search *s, uint64_t low)
{
    uint32_t i = s->cursor;
    if ((i == 0 || s->list[i - 1].address < low) && (i == s->count || s->list[i].address >= low)) {
        return;
    }
    uint32_t first = 0, last = s->count;
    while (first < last) {
        uint32_t middle = first + (last - first) / 2;
        if (s->list[middle].address < low) {
            first = middle + 1;
        } else {
            last = middle;
        }
    }
    s->cursor = first;
}

static uint64_t path_hash(const void *context, uint32_t index)
{
    const struct search *s = context;
    return table_hash_text(s->build->names.data + s->path_offsets[index], 0, 0);
}

/* Offset of a path among the names, where it stands once however many units have it. 0 as elf_build_name. */
static uint32_t path_name(struct search *s, const char *path, size_t n)
{
    struct arena *a = s->build->scratch;
    const char *names = s->build->names.data;
    uint32_t *offsets = arena_extend(a, s->path_offsets, s->path_count, &s->path_capacity, sizeof *offsets);
    if (n == 0 || offsets == NULL || !table_reserve(&s->paths, a, path_hash, s)) {
        return elf_build_name(s->build, path, n);
    }
    s->path_offsets = offsets;
    uint32_t slot = table_slot(&s->paths, table_hash_bytes(path, n, 0));
    for (; s->paths.slots[slot] != 0; slot = (slot + 1) & s->paths.mask) {
        const uint32_t known = offsets[s->paths.slots[slot] - 1];
        if (strncmp(names + known, path, n) == 0 && names[known + n] == '\0') {
            return known;
        }
    }
    const uint32_t added = elf_build_name(s->build, path, n);
    if (added != 0) {
        offsets[s->path_count] = added;
        s->paths.slots[slot] = ++s->path_count;
        s->paths.used++;
    }
    return added;
}

/* Remembers the MD5 of a file that has a path. Once for each table that names the file. */
static void add_digest(struct search *s, const struct line_name *file)
{
    if (file->md5 == NULL || file->cached == 0 || s->keep != ELF_LINE_KEEP_ROWS || s->digest_count == LIMIT_LINES) {
        return;
    }
    struct object_digest *more =
        arena_extend(s->build->out, s->digests, s->digest_count, &s->digest_capacity, sizeof *more);
    s->no_memory |= more == NULL;
    if (more != NULL) {
        s->digests = more;
        more[s->digest_count].file = file->cached;
        memcpy(more[s->digest_count++].md5, file->md5, OBJECT_DIGEST_BYTES);
    }
}

/* Offset of the row's path among the names; 0 if it has none. */
static uint32_t row_file(struct search *s, const struct line_row *row)
{
    struct line_name *file = line_table_file(&s->table, row->file);
    if (file == NULL || row->line == 0 || row->line > UINT32_MAX) {
        return 0;
    }
    if (file->cached == 0) {
        char path[LIMIT_SYMBOL_NAME];
        size_t n = line_table_path(&s->table, file, path, sizeof path);
        file->cached = path_name(s, path, n);
        add_digest(s, file);
    }
    return file->cached;
}

static void keep_row(struct search *s, const struct line_row *row)
{
    uint32_t file = row_file(s, row);
    if (file == 0 || s->no_memory || s->too_many) {
        return;
    }
    if (s->keep == ELF_LINE_KEEP_ROWS && s->row_count > 0) {
        struct object_line *last = &s->rows[s->row_count - 1];
        if (last->high == row->low && last->file == file && last->line == row->line) {
            last->high = row->high;
            return;
        }
        s->too_many = s->row_count == LIMIT_LINES;
        if (s->too_many) {
            return;
        }
    }
    if (s->row_count == s->row_capacity) {
        uint32_t capacity = s->row_capacity < UINT32_MAX / 4 ? s->row_capacity * 2 + 1024 : 0;
        struct object_line *more = capacity == 0 ? NULL : realloc(s->rows, capacity * sizeof *more);
        s->no_memory = more == NULL;
        if (more == NULL) {
            return;
        }
        s->rows = more;
        s->row_capacity = capacity;
    }
    s->rows[s->row_count++] = (struct object_line){row->low, row->high, file, (uint32_t)row->line, 0};
}

static void settle_row(void *context, const struct line_row *row)
{
    struct search *s = context;
    if (s->keep != ELF_LINE_KEEP_NONE) {
        keep_row(s, row);
    }
    seek(s, row->low);
    for (; s->cursor < s->count && s->list[s->cursor].address < row->high; s->cursor++) {
        struct object_symbol *symbol = &s->build->object->symbols[s->list[s->cursor].symbol];
        uint32_t file = symbol->line != 0 ? 0 : row_file(s, row);
        if (file == 0) {
            continue;
        }
        symbol->file = file;
        symbol->line = (uint32_t)row->line;
    }
}

static int compare_rows(const void *x, const void *y)
{
    const struct object_line *a = x, *b = y;
    return compare_pairs(a->low, b->low, a->high, b->high);
}

/* They are nearly always sorted, and qsort needs their size again. */
static bool rows_ascend(const struct search *s)
{
    for (uint32_t i = 1; i < s->row_count; i++) {
        if (compare_rows(&s->rows[i - 1], &s->rows[i]) > 0) {
            return false;
        }
    }
    return true;
}

static int compare_digests(const void *x, const void *y)
{
    const struct object_digest *a = x, *b = y;
    const int files = (a->file > b->file) - (a->file < b->file);
    return files != 0 ? files : memcmp(a->md5, b->md5, OBJECT_DIGEST_BYTES);
}

/* Puts the digests into the object, each once. */
static void digests_finish(struct search *s)
{
    struct object *o = s->build->object;
    if (s->digest_count == 0) {
        return;
    }
    qsort(s->digests, s->digest_count, sizeof *s->digests, compare_digests);
    for (uint32_t i = 0; i < s->digest_count; i++) {
        if (o->digest_count == 0 || compare_digests(&s->digests[o->digest_count - 1], &s->digests[i]) != 0) {
            s->digests[o->digest_count++] = s->digests[i];
        }
    }
    o->digests = s->digests;
}

/* Puts the rows as they are into the object. */
static enum profd_status rows_copy(struct search *s, struct profd_error *e)
{
    struct object *o = s->build->object;
    if (s->too_many) {
        elf_build_note(s->build, "Source lines are not kept: there are more than %u.", LIMIT_LINES);
        return PROFD_OK;
    }
    o->lines = ARENA_ARRAY(s->build->out, s->row_count, struct object_line);
    if (o->lines == NULL) {
        return profd_error_set(e, PROFD_NO_MEMORY, "out of memory for %" PRIu32 " source lines", s->row_count);
    }
    memcpy(o->lines, s->rows, s->row_count * sizeof *o->lines);
    o->line_count = s->row_count;
    digests_finish(s);
    return PROFD_OK;
}

/* Puts the rows, perhaps split by functions, into the object. */
static enum profd_status rows_finish(struct search *s, const struct elf_file *f, struct profd_error *e)
{
    if (s->keep == ELF_LINE_KEEP_NONE || s->row_count == 0) {
        return PROFD_OK;
    }
    if (s->no_memory) {
        return profd_error_set(e, PROFD_NO_MEMORY, "out of memory for %" PRIu32 " source lines", s->row_count);
    }
    if (!rows_ascend(s)) {
        qsort(s->rows, s->row_count, sizeof *s->rows, compare_rows);
    }
    return s->keep == ELF_LINE_KEEP_ROWS ? rows_copy(s, e)
                                         : elf_line_functions_set(s->build, f, s->rows, s->row_count, e);
}

/* Reads one unit, from its version at offset, into *bytes (grown as needed) and runs it. start is the unit's offset in
 * the section. */
static enum profd_status read_unit(struct search *s, uint64_t start, uint64_t offset, uint64_t size,
                                   uint8_t offset_size, uint8_t **bytes, uint64_t *bytes_size, struct profd_error *e)
{
    if (size > *bytes_size) {
        uint8_t *more = realloc(*bytes, (size_t)size);
        if (more == NULL) {
            return profd_error_set(e, PROFD_NO_MEMORY, "out of memory for a line table of %" PRIu64 " bytes", size);
        }
        *bytes = more;
        *bytes_size = size;
    }
    enum profd_status status = elf_file_read(s->table.file, offset, *bytes, size, e);
    if (status != PROFD_OK) {
        return status;
    }
    bool good = line_table_open(&s->table, *bytes, size, offset_size);
    s->table.first_is_zero = good && s->as_gprof && s->table.version >= 5;
    const struct line_string *folder = good && s->table.version < 5 ? elf_units_folder(&s->units, start) : NULL;
    if (folder != NULL) {
        s->table.directories[0].text = *folder;
    }
    if (!good || !line_table_run(&s->table, settle_row, s)) {
        s->damaged++;
    }
    return PROFD_OK;
}

static enum profd_status read_units(struct search *s, const GElf_Shdr *lines, struct profd_error *e)
{
    const struct elf_file *f = s->table.file;
    uint8_t *bytes = NULL;
    uint64_t bytes_size = 0, at = 0;
    enum profd_status status = PROFD_OK;
    while (status == PROFD_OK && lines->sh_size - at > 4) {
        uint8_t raw[12] = {0};
        uint64_t left = lines->sh_size - at;
        status = elf_file_read(f, lines->sh_offset + at, raw, left < sizeof raw ? left : sizeof raw, e);
        if (status != PROFD_OK) {
            break;
        }
        uint64_t length = elf_u32(f, raw);
        bool wide = length == UINT32_MAX; /* the 64-bit format of DWARF */
        if (wide) {
            length = elf_u64(f, raw + 4);
        }
        uint64_t head = wide ? 12 : 4;
        if (head > left || length > left - head || length > UNIT_MAX) {
            s->damaged++;
            break;
        }
        status = read_unit(s, at, lines->sh_offset + at + head, length, wide ? 8 : 4, &bytes, &bytes_size, e);
        at += head + length;
    }
    free(bytes);
    return status;
}

static bool has_compressed(const struct elf_file *f)
{
    for (uint32_t i = 0; i < f->section_count; i++) {
        const char *name = elf_file_section_name(f, &f->sections[i]);
        if (strcmp(name, ".zdebug_line") == 0 ||
            (f->sections[i].sh_flags & SHF_COMPRESSED && strcmp(name, ".debug_line") == 0)) {
            return true;
        }
    }
    return false;
}

enum profd_status elf_line_read(struct elf_build *b, const struct elf_file *f, const struct elf_file *debug, bool all,
                                enum elf_line_keep keep, struct profd_error *e)
{
    const struct elf_file *from = f;
    const GElf_Shdr *lines = elf_file_find(f, ".debug_line");
    if (lines == NULL && debug != NULL) {
        from = debug;
        lines = elf_file_find(debug, ".debug_line");
    }
    if (lines == NULL) {
        if (has_compressed(f) || (debug != NULL && has_compressed(debug))) {
            elf_build_note(b, "Source lines are compressed and were not read.");
        }
        return PROFD_OK;
    }
    struct search s = {.build = b, .table = {.file = from}, .keep = keep, .as_gprof = all};
    s.table.line_strings = elf_file_find(from, ".debug_line_str");
    s.table.strings = elf_file_find(from, ".debug_str");
    s.list = ARENA_ARRAY(b->scratch, (size_t)b->object->symbol_count + 1, struct wanted);
    if (s.list == NULL) {
        return profd_error_set(e, PROFD_NO_MEMORY, "out of memory for the lines of %" PRIu32 " symbols",
                               b->object->symbol_count);
    }
    collect(&s, all);
    enum profd_status status = all ? elf_units_read(from, b->scratch, &s.units, e) : PROFD_OK;
    if (status == PROFD_OK && (s.count > 0 || keep != ELF_LINE_KEEP_NONE)) {
        status = read_units(&s, lines, e);
    }
    line_table_done(&s.table);
    if (status == PROFD_OK) {
        status = rows_finish(&s, from, e);
    }
    free(s.rows);
    if (s.damaged != 0) {
        elf_build_note(b, "%" PRIu32 " tables of source lines are damaged.", s.damaged);
    }
    return status;
}
