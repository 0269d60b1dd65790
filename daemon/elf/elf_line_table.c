#include "elf/elf_line_table.h"

#include <stdlib.h>

#include "elf/elf_line_cursor.h"

/* Constants of DWARF, which no header of libc has. */
enum { LNCT_PATH = 1, LNCT_DIRECTORY = 2, LNCT_MD5 = 5 };

#define FORMATS_MAX 16

static bool add_name(struct line_name **list, uint32_t *count, uint32_t *capacity, const struct line_name *name)
{
    if (*count == *capacity) {
        uint32_t more = *capacity == 0 ? 64 : *capacity * 2;
        struct line_name *grown = more <= 1u << 24 ? realloc(*list, more * sizeof *grown) : NULL;
        if (grown == NULL) {
            return false;
        }
        *list = grown;
        *capacity = more;
    }
    (*list)[(*count)++] = *name;
    return true;
}

static void skip_string(struct line_cursor *c)
{
    const uint8_t *nul = c->failed ? NULL : memchr(c->bytes + c->at, '\0', (size_t)(c->end - c->at));
    if (nul == NULL) {
        c->failed = true;
    } else {
        c->at = (uint64_t)(nul - c->bytes) + 1;
    }
}

/* Header before DWARF 5: directories, then files, each list ended by an empty name. */
static bool read_old_names(struct line_table *t, struct line_cursor *c)
{
    struct line_name none = {.text = {NULL, t->size}};
    if (!add_name(&t->directories, &t->directory_count, &t->directory_capacity,
                  &none)) { /* 0: the compilation directory, which is not in the table */
        return false;
    }
    while (line_has(c, 1) && c->bytes[c->at] != 0) {
        struct line_name n = {.text = {NULL, c->at}};
        skip_string(c);
        if (c->failed || !add_name(&t->directories, &t->directory_count, &t->directory_capacity, &n)) {
            return false;
        }
    }
    line_skip(c, 1);
    while (line_has(c, 1) && c->bytes[c->at] != 0) {
        struct line_name n = {.text = {NULL, c->at}};
        skip_string(c);
        n.directory = line_leb(c, false);
        line_leb(c, false);
        line_leb(c, false);
        if (c->failed || !add_name(&t->files, &t->file_count, &t->file_capacity, &n)) {
            return false;
        }
    }
    return !c->failed;
}

static uint64_t read_form(const struct line_table *t, struct line_cursor *c, uint64_t form, struct line_string *text)
{
    switch (form) {
    case FORM_STRING:
        *text = (struct line_string){NULL, c->at};
        skip_string(c);
        return 0;
    case FORM_LINE_STRP:
    case FORM_STRP:
        text->section = form == FORM_STRP ? t->strings : t->line_strings;
        text->offset = line_number(c, t->offset_size);
        c->failed |= text->section == NULL;
        return 0;
    case FORM_UDATA:
        return line_leb(c, false);
    case FORM_DATA1:
        return line_number(c, 1);
    case FORM_DATA2:
        return line_number(c, 2);
    case FORM_DATA4:
        return line_number(c, 4);
    case FORM_DATA8:
        return line_number(c, 8);
    case FORM_DATA16:
        line_skip(c, 16);
        return 0;
    default:
        c->failed |= !line_skip_block(c, form);
        return 0;
    }
}

/* Header of DWARF 5: a list, preceded by the description of its columns. */
static bool read_new_names(struct line_table *t, struct line_cursor *c, struct line_name **list, uint32_t *count,
                           uint32_t *capacity)
{
    uint64_t kinds[FORMATS_MAX], forms[FORMATS_MAX];
    unsigned columns = line_u8(c);
    if (columns > FORMATS_MAX) {
        return false;
    }
    for (unsigned i = 0; i < columns; i++) {
        kinds[i] = line_leb(c, false);
        forms[i] = line_leb(c, false);
    }
    uint64_t names = line_leb(c, false);
    for (uint64_t k = 0; k < names; k++) {
        uint64_t before = c->at;
        struct line_name n = {.text = {NULL, t->size}};
        for (unsigned i = 0; i < columns; i++) {
            struct line_string text = n.text;
            const uint8_t *here = c->bytes + c->at;
            uint64_t value = read_form(t, c, forms[i], &text);
            if (kinds[i] == LNCT_PATH) {
                n.text = text;
            } else if (kinds[i] == LNCT_DIRECTORY) {
                n.directory = value;
            } else if (kinds[i] == LNCT_MD5 && forms[i] == FORM_DATA16 && !c->failed) {
                n.md5 = here;
            }
        }
        /* Rows without bytes could be stated by the billion. */
        if (c->failed || c->at == before || !add_name(list, count, capacity, &n)) {
            return false;
        }
    }
    return !c->failed;
}

bool line_table_open(struct line_table *t, const uint8_t *bytes, uint64_t size, uint8_t offset_size)
{
    struct line_cursor c = {.file = t->file, .bytes = bytes, .end = size};
    t->bytes = bytes;
    t->size = size;
    t->offset_size = offset_size;
    t->directory_count = t->file_count = 0;
    t->version = (uint16_t)line_number(&c, 2);
    t->address_size = t->file->bits / 8;
    if (t->version >= 5) {
        t->address_size = line_u8(&c);
        line_u8(&c); /* segment selectors, which no compiler uses */
    }
    uint64_t header = line_number(&c, offset_size);
    if (c.failed || t->version < 2 || t->version > 5 || header > c.end - c.at ||
        (t->address_size != 4 && t->address_size != 8)) {
        return false;
    }
    t->program = c.at + header;
    t->minimum = line_u8(&c);
    if (t->version >= 4) {
        line_u8(&c); /* operations per instruction: 1 on every machine that profd reads */
    }
    line_u8(&c);
    t->line_base = (int8_t)line_u8(&c);
    t->line_range = line_u8(&c);
    t->opcode_base = line_u8(&c);
    if (c.failed || t->line_range == 0 || t->opcode_base == 0) {
        return false;
    }
    t->operand_counts = bytes + c.at;
    line_skip(&c, t->opcode_base - 1u);
    if (t->version < 5) {
        return read_old_names(t, &c);
    }
    return read_new_names(t, &c, &t->directories, &t->directory_count, &t->directory_capacity) &&
           read_new_names(t, &c, &t->files, &t->file_count, &t->file_capacity);
}

void line_table_done(struct line_table *t)
{
    free(t->directories);
    free(t->files);
    t->directories = t->files = NULL;
}

/* The registers of the line program's machine. */
struct registers {
    uint64_t address, file, line;
};

/* The machine, and the last row. */
struct machine {
    const struct line_table *table;
    struct line_cursor c;
    struct registers now, row;
    bool has_row;
    void (*each)(void *context, const struct line_row *row);
    void *context;
};

/* A row ends the range of the row before it; of rows with the same address the last one is used, as in BFD. */
static void emit_row(struct machine *m)
{
    if (m->has_row && m->row.address < m->now.address) {
        struct line_row r = {m->row.address, m->now.address, m->row.file, m->row.line};
        m->each(m->context, &r);
    }
    m->row = m->now;
    m->has_row = true;
}

static void start_sequence(struct machine *m)
{
    m->now = (struct registers){.file = m->table->first_is_zero ? 0 : 1, .line = 1};
    m->has_row = false;
}

static void run_extended(struct machine *m)
{
    struct line_cursor *c = &m->c;
    uint64_t length = line_leb(c, false);
    if (length == 0 || !line_has(c, length)) {
        return;
    }
    uint64_t next = c->at + length;
    uint8_t opcode = line_u8(c);
    if (opcode == 1) {
        emit_row(m);
        start_sequence(m);
    } else if (opcode == 2) {
        m->now.address = line_number(c, m->table->address_size);
        /* Addresses ascend within a sequence; a new sequence makes no range with the previous row. */
        if (m->has_row && m->now.address < m->row.address) {
            m->has_row = false;
        }
    }
    c->at = next;
}

static void run_special(struct machine *m, uint8_t opcode)
{
    const struct line_table *t = m->table;
    unsigned adjusted = opcode - t->opcode_base;
    m->now.address += (uint64_t)(adjusted / t->line_range) * t->minimum;
    m->now.line += (uint64_t)(int64_t)(t->line_base + (int)(adjusted % t->line_range));
    emit_row(m);
}

static void run_standard(struct machine *m, uint8_t opcode)
{
    const struct line_table *t = m->table;
    struct line_cursor *c = &m->c;
    switch (opcode) {
    case 1: /* copy */
        emit_row(m);
        break;
    case 2:
        m->now.address += line_leb(c, false) * t->minimum;
        break;
    case 3:
        m->now.line += line_leb(c, true);
        break;
    case 4:
        m->now.file = line_leb(c, false);
        break;
    case 8: /* const_add_pc */
        m->now.address += (uint64_t)((255u - t->opcode_base) / t->line_range) * t->minimum;
        break;
    case 9: /* fixed_advance_pc */
        m->now.address += line_number(c, 2);
        break;
    default: /* column, flags, and opcodes of later versions */
        for (uint8_t i = 0; i < t->operand_counts[opcode - 1]; i++) {
            line_leb(c, false);
        }
    }
}

bool line_table_run(const struct line_table *t, void (*each)(void *context, const struct line_row *row), void *context)
{
    struct machine m = {.table = t,
                        .c = {.file = t->file, .bytes = t->bytes, .at = t->program, .end = t->size},
                        .each = each,
                        .context = context};
    start_sequence(&m);
    while (!m.c.failed && m.c.at < m.c.end) {
        uint8_t opcode = line_u8(&m.c);
        if (opcode >= t->opcode_base) {
            run_special(&m, opcode);
        } else if (opcode == 0) {
            run_extended(&m);
        } else {
            run_standard(&m, opcode);
        }
    }
    return !m.c.failed;
}

struct line_name *line_table_file(const struct line_table *t, uint64_t number)
{
    if (t->version < 5) {
        number--;
    }
    return number < t->file_count ? &t->files[number] : NULL;
}

/* Copies a string; 0 if there is none. */
static size_t copy_string(const struct line_table *t, const struct line_string *s, char *out, size_t size)
{
    if (s->section == NULL) {
        if (s->offset >= t->size) {
            return 0;
        }
        uint64_t left = t->size - s->offset;
        size_t n = strnlen((const char *)t->bytes + s->offset, left < size ? (size_t)left : size);
        memcpy(out, t->bytes + s->offset, n);
        return n;
    }
    if (s->offset >= s->section->sh_size) {
        return 0;
    }
    uint64_t left = s->section->sh_size - s->offset;
    size_t n = left < size ? (size_t)left : size;
    if (elf_file_read(t->file, s->section->sh_offset + s->offset, out, n, NULL) != PROFD_OK) {
        return 0;
    }
    return strnlen(out, n);
}

/* Appends a string and a slash; nothing for an empty one. */
static size_t add_directory(const struct line_table *t, uint64_t number, char *out, size_t at, size_t size)
{
    size_t n = number < t->directory_count ? copy_string(t, &t->directories[number].text, out + at, size - 1 - at) : 0;
    at += n;
    if (n != 0 && at < size - 1) {
        out[at++] = '/';
    }
    return at;
}

size_t line_table_path(const struct line_table *t, const struct line_name *file, char *out, size_t size)
{
    char name[4096];
    size_t n = copy_string(t, &file->text, name, sizeof name - 1), at = 0;
    if (n == 0) {
        return 0;
    }
    if (name[0] != '/') {
        at = add_directory(t, file->directory, out, 0, size);
        /* A relative directory is relative to directory 0, the compilation directory, which tables contain since
         * version 5. */
        if (file->directory != 0 && (at == 0 || out[0] != '/')) {
            at = add_directory(t, 0, out, 0, size);
            at = add_directory(t, file->directory, out, at, size);
        }
    }
    if (n > size - 1 - at) {
        n = size - 1 - at;
    }
    memcpy(out + at, name, n);
    out[at + n] = '\0';
    return at + n;
}
