#include <dwarf.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/sort.h"
#include "core/row_table.h"
#include "elf/elf_dwarf.h"
#include "elf/elf_internal.h"
#include "proto/limits.h"

/* A symbol that needs a line. */
struct line_symbol {
    uint64_t address;
    uint32_t symbol;
};

/* The bytes of a table. They are read here and not by libdw, which sorts the rows of a table by address: a row without
 * bytes at the end of a sequence then covers other code (tests/unit/elf/lines.c). Nor does libdw tell the MD5 of a
 * file. Once failed is set, every further read returns 0. */
struct line_cursor {
    const uint8_t *at, *end;
    bool big_endian, failed;
};

static void skip(struct line_cursor *c, uint64_t n)
{
    c->failed |= n > (uint64_t)(c->end - c->at);
    c->at += c->failed ? 0 : n;
}

static uint64_t read_number(struct line_cursor *c, unsigned size)
{
    const uint8_t *p = c->at;
    uint64_t value = 0;
    skip(c, size);
    for (unsigned i = 0; i < size && !c->failed; i++) {
        value |= (uint64_t)p[i] << 8 * (c->big_endian ? size - 1 - i : i);
    }
    return value;
}

/* Reads LEB128; bits above 64 are dropped. */
static uint64_t read_leb(struct line_cursor *c, bool is_signed)
{
    uint64_t value = 0;
    for (unsigned shift = 0;; shift += 7) {
        uint8_t byte = c->at < c->end && !c->failed ? *c->at++ : (uint8_t)read_number(c, 1);
        value |= shift < 64 ? (uint64_t)(byte & 0x7f) << shift : 0;
        if (!(byte & 0x80)) {
            return is_signed && byte & 0x40 && shift + 7 < 64 ? value | ~UINT64_C(0) << (shift + 7) : value;
        }
    }
}

static const char *read_text(struct line_cursor *c)
{
    const uint8_t *text = c->at, *nul = c->failed ? NULL : memchr(text, '\0', (size_t)(c->end - text));
    skip(c, nul == NULL ? UINT64_MAX : (uint64_t)(nul - text) + 1);
    return nul == NULL ? "" : (const char *)text;
}

struct line_name {
    const char *text;
    uint64_t folder;    /* of a file: index */
    const uint8_t *md5; /* of a file: of its text; NULL if not stated */
    uint32_t cached;    /* offset of the whole path among the object's names, 0 before */
};

struct line_names {
    struct line_name *list; /* malloc'd, reused by the next table */
    uint32_t count;
    size_t capacity;
};

struct line_table {
    struct line_cursor program;
    uint16_t version;
    unsigned offset_size, address_size, minimum, line_range, opcode_base;
    int8_t line_base;
    const uint8_t *operand_counts;
    struct line_names folders, files;
};

/* A range of addresses of one line. */
struct line_row {
    uint64_t low, high, file, line;
};

/* A unit of .debug_info, for its compilation directory, which tables before DWARF 5 do not contain. */
struct line_unit {
    uint64_t table; /* offset in .debug_line */
    const char *folder;
};

/* All symbols that need a line, and the current position: rows ascend, so the next one is near. */
struct line_reading {
    struct elf_build *build;
    struct line_symbol *list;
    uint32_t count, near;
    enum elf_line_keep keep;
    bool as_gprof;                      /* for gprof's listings: as BFD reads, if that differs from DWARF */
    struct line_table table;            /* the current one */
    const Elf_Data *texts, *line_texts; /* .debug_str and .debug_line_str, NULL if there are none */
    struct line_unit *units;            /* ascending by table */
    uint32_t unit_count;
    struct object_line *rows;
    uint32_t row_count;
    size_t row_capacity;
    struct set paths;
    uint32_t *path_offsets, path_capacity; /* of each of them */
    struct object_digest *digests;         /* in the object's arena, as they come */
    uint32_t digest_count, digest_capacity;
    bool no_memory, too_many;
    uint32_t damaged; /* tables that could not be read */
};

static int compare_wanted(const void *x, const void *y)
{
    const struct line_symbol *a = x, *b = y;
    return compare_pairs(a->address, b->address, a->symbol, b->symbol);
}

/* Returns the offset of a path among the names. It is stored once, however many units have it. 0 as elf_build_name. */
static uint32_t path_name(struct line_reading *s, const char *path, size_t n)
{
    bool added = false;
    if (n == 0 || !ARENA_EXTEND(s->build->scratch, s->path_offsets, s->paths.count, s->path_capacity)) {
        return elf_build_name(s->build, path, n);
    }
    const uint32_t number = set_add(&s->paths, path, n, &added);
    if (number == SET_FULL) {
        return elf_build_name(s->build, path, n);
    }
    if (added) {
        s->path_offsets[number] = elf_build_name(s->build, path, n);
    }
    return s->path_offsets[number];
}

/* Returns the offset of the row's path among the names; 0 if it has none. Files are numbered from 1 before DWARF 5,
 * then from 0. */
static uint32_t row_file(struct line_reading *s, const struct line_row *row)
{
    const struct line_table *t = &s->table;
    const uint64_t number = row->file - (t->version < 5);
    if (number >= t->files.count || row->line == 0 || row->line > UINT32_MAX) {
        return 0;
    }
    struct line_name *file = &t->files.list[number];
    if (file->cached != 0) {
        return file->cached;
    }
    char path[LIMIT_SYMBOL_NAME];
    size_t length = 0;
    if (file->text[0] != '\0') {
        const bool whole = file->text[0] == '/';
        const char *folder = !whole && file->folder < t->folders.count ? t->folders.list[file->folder].text : "";
        /* A relative folder is below folder 0, the compilation directory. */
        const char *first = whole || folder[0] == '/' || file->folder == 0 ? "" : t->folders.list[0].text;
        const int n = snprintf(path, sizeof path, "%s%s%s%s%s", first, first[0] == '\0' ? "" : "/", folder,
                               folder[0] == '\0' ? "" : "/", file->text);
        length = n < 0 ? 0 : (size_t)n < sizeof path ? (size_t)n : sizeof path - 1;
    }
    file->cached = path_name(s, path, length);

    /* The MD5 of the file's text, once for each table that names the file. */
    if (file->md5 != NULL && file->cached != 0 && s->keep == ELF_LINE_KEEP_ROWS && s->digest_count < LIMIT_LINES) {
        if (!ARENA_EXTEND(s->build->out, s->digests, s->digest_count, s->digest_capacity)) {
            s->no_memory = true;
        } else {
            s->digests[s->digest_count].file = file->cached;
            memcpy(s->digests[s->digest_count++].md5, file->md5, OBJECT_DIGEST_BYTES);
        }
    }
    return file->cached;
}

static void keep_row(struct line_reading *s, const struct line_row *row)
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
    s->no_memory = !LIST_GROW(s->rows, s->row_count, s->row_capacity);
    if (s->no_memory) {
        return;
    }
    s->rows[s->row_count++] = (struct object_line){row->low, row->high, file, (uint32_t)row->line, 0};
}

static int compare_rows(const void *x, const void *y)
{
    const struct object_line *a = x, *b = y;
    return compare_pairs(a->low, b->low, a->high, b->high);
}

static int compare_digests(const void *x, const void *y)
{
    const struct object_digest *a = x, *b = y;
    const int files = (a->file > b->file) - (a->file < b->file);
    return files != 0 ? files : memcmp(a->md5, b->md5, OBJECT_DIGEST_BYTES);
}

/* Moves the rows, and the digests of their files, into the object; or lets them be split by functions there. */
static enum profd_status rows_finish(struct line_reading *s, const struct elf_dwarf *d, struct profd_error *e)
{
    struct object *o = s->build->object;
    if (s->keep == ELF_LINE_KEEP_NONE || s->row_count == 0) {
        return PROFD_OK;
    }
    FAIL_IF(s->no_memory, e, PROFD_NO_MEMORY, "out of memory for %" PRIu32 " source lines", s->row_count);
    /* They are nearly always sorted, and qsort needs their size again. */
    bool ascend = true;
    for (uint32_t i = 1; i < s->row_count && ascend; i++) {
        ascend = compare_rows(&s->rows[i - 1], &s->rows[i]) <= 0;
    }
    if (!ascend) {
        qsort(s->rows, s->row_count, sizeof *s->rows, compare_rows);
    }
    if (s->keep == ELF_LINE_KEEP_FUNCTIONS) {
        return elf_line_functions_set(s->build, d, s->rows, s->row_count, e);
    }
    if (s->too_many) {
        elf_build_note(s->build, "Source lines are not kept: there are more than %u.", LIMIT_LINES);
        return PROFD_OK;
    }
    o->lines = ARENA_ARRAY(s->build->out, s->row_count, struct object_line);
    FAIL_IF(o->lines == NULL, e, PROFD_NO_MEMORY, "out of memory for %" PRIu32 " source lines", s->row_count);
    memcpy(o->lines, s->rows, s->row_count * sizeof *o->lines);
    o->line_count = s->row_count;

    if (s->digest_count > 0) {
        qsort(s->digests, s->digest_count, sizeof *s->digests, compare_digests);
        o->digests = s->digests;
    }
    for (uint32_t i = 0; i < s->digest_count; i++) {
        if (o->digest_count == 0 || compare_digests(&s->digests[o->digest_count - 1], &s->digests[i]) != 0) {
            s->digests[o->digest_count++] = s->digests[i];
        }
    }
    return PROFD_OK;
}

#define NAMES_MOST (1u << 24)

static struct line_name *add_name(struct line_reading *s, struct line_names *names, const char *text)
{
    if (names->count == NAMES_MOST || !LIST_GROW(names->list, names->count, names->capacity)) {
        s->no_memory = true;
        return NULL;
    }
    names->list[names->count] = (struct line_name){.text = text};
    return &names->list[names->count++];
}

/* Reads a value in the header of DWARF 5: a number, or a text (then *text is set). */
static uint64_t read_form(struct line_reading *s, struct line_cursor *c, uint64_t form, const char **text)
{
    const Elf_Data *d = form == DW_FORM_strp ? s->texts : s->line_texts;
    uint64_t offset;
    switch (form) {
    case DW_FORM_string:
        *text = read_text(c);
        return 0;
    case DW_FORM_line_strp:
    case DW_FORM_strp:
        offset = read_number(c, s->table.offset_size);
        c->failed |= d == NULL || offset >= d->d_size ||
                     memchr((const char *)d->d_buf + offset, '\0', d->d_size - offset) == NULL;
        *text = c->failed ? "" : (const char *)d->d_buf + offset;
        return 0;
    case DW_FORM_udata:
        return read_leb(c, false);
    case DW_FORM_data1:
        return read_number(c, 1);
    case DW_FORM_data2:
        return read_number(c, 2);
    case DW_FORM_data4:
        return read_number(c, 4);
    case DW_FORM_data8:
        return read_number(c, 8);
    case DW_FORM_data16:
        skip(c, OBJECT_DIGEST_BYTES);
        return 0;
    case DW_FORM_block:
        skip(c, read_leb(c, false));
        return 0;
    default:
        c->failed = true;
        return 0;
    }
}

/* Header of DWARF 5: a list, preceded by the description of its columns. */
static void read_new_names(struct line_reading *s, struct line_cursor *c, struct line_names *names)
{
    uint64_t kinds[16] = {0}, forms[16] = {0};
    uint64_t columns = read_number(c, 1);
    c->failed |= columns > sizeof kinds / sizeof *kinds;
    for (uint64_t i = 0; i < columns && !c->failed; i++) {
        kinds[i] = read_leb(c, false);
        forms[i] = read_leb(c, false);
    }
    uint64_t left = read_leb(c, false);
    c->failed |= columns == 0 && left != 0; /* rows without bytes could be stated by the billion */
    for (; left > 0 && !c->failed; left--) {
        struct line_name *name = add_name(s, names, "");
        for (uint64_t i = 0; i < columns && name != NULL; i++) {
            const uint8_t *here = c->at;
            const char *text = name->text;
            uint64_t value = read_form(s, c, forms[i], &text);
            if (kinds[i] == DW_LNCT_path) {
                name->text = text;
            } else if (kinds[i] == DW_LNCT_directory_index) {
                name->folder = value;
            } else if (kinds[i] == DW_LNCT_MD5 && forms[i] == DW_FORM_data16 && !c->failed) {
                name->md5 = here;
            }
        }
        c->failed |= name == NULL;
    }
}

/* Parses the header of a table; c holds it from its version to its last byte, and `offset` is where it is in the
 * section. False if it breaks DWARF's rules, or uses a form that line tables do not have. */
static bool read_header(struct line_reading *s, struct line_cursor c, uint64_t offset, unsigned offset_size)
{
    struct line_table *t = &s->table;
    t->folders.count = t->files.count = 0;
    t->offset_size = offset_size;
    t->version = (uint16_t)read_number(&c, 2);
    t->address_size = s->build->object->bits / 8;
    if (t->version >= 5) {
        t->address_size = (unsigned)read_number(&c, 1);
        skip(&c, 1); /* segment selectors, which no compiler uses */
    }
    uint64_t header = read_number(&c, offset_size);
    t->program = c;
    skip(&t->program, header);
    t->minimum = (unsigned)read_number(&c, 1);
    skip(&c, t->version >= 4 ? 2 : 1); /* operations per instruction: 1 on every machine that profd reads; is_stmt */
    t->line_base = (int8_t)read_number(&c, 1);
    t->line_range = (unsigned)read_number(&c, 1);
    t->opcode_base = (unsigned)read_number(&c, 1);
    t->operand_counts = c.at;
    if (t->version < 2 || t->version > 5 || (t->address_size != 4 && t->address_size != 8) || t->line_range == 0 ||
        t->opcode_base == 0 || t->program.failed) {
        return false;
    }
    skip(&c, t->opcode_base - 1u);
    if (t->version >= 5) {
        read_new_names(s, &c, &t->folders);
        read_new_names(s, &c, &t->files);
        return !c.failed && t->folders.count > 0;
    }

    /* Before DWARF 5: directories, then files, each list ended by an empty name. Directory 0 is the compilation
     * directory, which only the unit of the table states. */
    const uint32_t unit = compare_find_first(s->units, s->unit_count, sizeof *s->units, offset);
    const bool found = unit < s->unit_count && s->units[unit].table == offset;
    const char *text;
    (void)add_name(s, &t->folders, found ? s->units[unit].folder : "");
    while ((text = read_text(&c))[0] != '\0' && add_name(s, &t->folders, text) != NULL) {
        continue;
    }
    while ((text = read_text(&c))[0] != '\0') {
        struct line_name *file = add_name(s, &t->files, text);
        if (file == NULL) {
            break;
        }
        file->folder = read_leb(&c, false);
        (void)read_leb(&c, false); /* time and size */
        (void)read_leb(&c, false);
    }
    return !c.failed && t->folders.count > 0;
}

/* The registers of the machine that runs a line program. */
struct line_registers {
    uint64_t address, file, line;
};

/* The machine of a line program, and the last row that it made. */
struct line_machine {
    struct line_reading *reading;
    struct line_registers now, row;
    bool has_row;
};

/* A row ends the range of the row before it; of rows with the same address the last one is used, as in BFD. The range
 * is kept, and gives its line to the symbols that begin in it. */
static void emit_row(struct line_machine *m)
{
    struct line_reading *s = m->reading;
    if (m->has_row && m->row.address < m->now.address) {
        const struct line_row row = {m->row.address, m->now.address, m->row.file, m->row.line};
        if (s->keep != ELF_LINE_KEEP_NONE) {
            keep_row(s, &row);
        }
        uint32_t i = s->near; /* rows ascend, so that the next symbol is near */
        if ((i > 0 && s->list[i - 1].address >= row.low) || (i < s->count && s->list[i].address < row.low)) {
            i = compare_find_first(s->list, s->count, sizeof *s->list, row.low);
        }
        for (; i < s->count && s->list[i].address < row.high; i++) {
            struct object_symbol *symbol = &s->build->object->symbols[s->list[i].symbol];
            const uint32_t file = symbol->line != 0 ? 0 : row_file(s, &row);
            if (file != 0) {
                symbol->file = file;
                symbol->line = (uint32_t)row.line;
            }
        }
        s->near = i;
    }
    m->row = m->now;
    m->has_row = true;
}

/* In gprof's listings, a sequence of DWARF 5 begins with file 0, as in BFD 2.40, not with file 1, as in DWARF. */
static void start_sequence(struct line_machine *m)
{
    m->now = (struct line_registers){.file = m->reading->as_gprof && m->reading->table.version >= 5 ? 0 : 1, .line = 1};
    m->has_row = false;
}

/* Runs the table's program. False if it is damaged. */
static bool run_program(struct line_reading *s)
{
    const struct line_table *t = &s->table;
    struct line_machine m = {.reading = s};
    struct line_cursor c = t->program, operand;
    uint64_t length;
    start_sequence(&m);
    while (!c.failed && c.at < c.end) {
        unsigned opcode = *c.at++;
        if (opcode >= t->opcode_base) {
            unsigned adjusted = opcode - t->opcode_base;
            m.now.address += (uint64_t)(adjusted / t->line_range) * t->minimum;
            m.now.line += (uint64_t)(int64_t)(t->line_base + (int)(adjusted % t->line_range));
            emit_row(&m);
            continue;
        }
        switch (opcode) {
        case 0: /* an extended opcode: its length, the opcode, operands */
            length = read_leb(&c, false);
            operand = c;
            skip(&c, length);
            opcode = length == 0 || c.failed ? 0 : (unsigned)read_number(&operand, 1);
            if (opcode == DW_LNE_end_sequence) {
                emit_row(&m);
                start_sequence(&m);
            } else if (opcode == DW_LNE_set_address) {
                m.now.address = read_number(&operand, t->address_size);
                c.failed |= operand.failed;
                /* Addresses ascend within a sequence; a new sequence makes no range with the previous row. */
                m.has_row &= m.now.address >= m.row.address;
            }
            break;
        case DW_LNS_copy:
            emit_row(&m);
            break;
        case DW_LNS_advance_pc:
            m.now.address += read_leb(&c, false) * t->minimum;
            break;
        case DW_LNS_advance_line:
            m.now.line += read_leb(&c, true);
            break;
        case DW_LNS_set_file:
            m.now.file = read_leb(&c, false);
            break;
        case DW_LNS_const_add_pc:
            m.now.address += (uint64_t)((255u - t->opcode_base) / t->line_range) * t->minimum;
            break;
        case DW_LNS_fixed_advance_pc:
            m.now.address += read_number(&c, 2);
            break;
        default: /* column, flags, and opcodes of later versions */
            for (unsigned i = 0; i < t->operand_counts[opcode - 1]; i++) {
                (void)read_leb(&c, false);
            }
        }
    }
    return !c.failed;
}

static int compare_units(const void *x, const void *y)
{
    const struct line_unit *a = x, *b = y;
    return compare_u64(a->table, b->table);
}

/* Finds the compilation directories of all units. */
static void read_units(struct line_reading *s, const struct elf_dwarf *d)
{
    Dwarf_Die die;
    uint32_t capacity = 0;
    for (Dwarf_CU *unit = NULL; dwarf_get_units(d->dwarf, unit, &unit, NULL, NULL, &die, NULL) == 0;) {
        Dwarf_Attribute a, folder;
        Dwarf_Word table;
        if (dwarf_attr(&die, DW_AT_stmt_list, &a) == NULL || dwarf_formudata(&a, &table) != 0 ||
            dwarf_attr(&die, DW_AT_comp_dir, &folder) == NULL) {
            continue;
        }
        const char *text = elf_dwarf_text(&folder);
        if (!ARENA_EXTEND(s->build->scratch, s->units, s->unit_count, capacity)) {
            s->no_memory = true;
            return;
        }
        s->units[s->unit_count++] = (struct line_unit){table, text == NULL ? "" : text};
    }
    if (s->unit_count > 0) {
        qsort(s->units, s->unit_count, sizeof *s->units, compare_units);
    }
}

enum profd_status elf_line_read(struct elf_build *b, const struct elf_dwarf *d, bool all, enum elf_line_keep keep,
                                struct profd_error *e)
{
    const Elf_Data *bytes = elf_dwarf_section(d, ".debug_line");
    struct line_reading s = {.build = b,
                             .keep = keep,
                             .as_gprof = all,
                             .texts = elf_dwarf_section(d, ".debug_str"),
                             .line_texts = elf_dwarf_section(d, ".debug_line_str")};
    if (bytes == NULL || bytes->d_size == 0) {
        return PROFD_OK;
    }
    set_init(&s.paths, b->scratch);
    const struct object *o = b->object;
    s.list = ARENA_ARRAY(b->scratch, (size_t)o->symbol_count + 1, struct line_symbol);
    FAIL_IF(s.list == NULL, e, PROFD_NO_MEMORY, "out of memory for the lines of %" PRIu32 " symbols", o->symbol_count);
    for (uint32_t i = 0; i < o->symbol_count; i++) {
        const struct object_symbol *symbol = &o->symbols[i];
        if ((all || symbol->bind == OBJECT_BIND_LOCAL) && symbol->flags & OBJECT_SYMBOL_EXECUTABLE) {
            s.list[s.count++] = (struct line_symbol){symbol->address, i};
        }
    }
    qsort(s.list, s.count, sizeof *s.list, compare_wanted);
    if (s.count == 0 && keep == ELF_LINE_KEEP_NONE) {
        return PROFD_OK;
    }

    read_units(&s, d);
    const uint8_t *start = bytes->d_buf;
    struct line_cursor c = {.at = start, .end = start + bytes->d_size, .big_endian = o->big_endian};
    while (c.end - c.at > 4 && !s.no_memory && !c.failed) {
        const uint64_t offset = (uint64_t)(c.at - start);
        uint64_t length = read_number(&c, 4);
        const bool wide = length == UINT32_MAX; /* the 64-bit format of DWARF */
        struct line_cursor table = c;
        length = wide ? read_number(&c, 8) : length;
        table.at = c.at;
        skip(&c, length);
        table.end = c.at;
        if (c.failed || !read_header(&s, table, offset, wide ? 8 : 4) || !run_program(&s)) {
            s.damaged++;
        }
    }
    free(s.table.folders.list);
    free(s.table.files.list);
    enum profd_status status = rows_finish(&s, d, e);
    free(s.rows);
    if (s.damaged != 0) {
        elf_build_note(b, "%" PRIu32 " tables of source lines are damaged.", s.damaged);
    }
    return status;
}
