#include "elf/elf_line_table.h"

#include "elf/elf_line_cursor.h"

/* The registers of the line program's machine. */
struct registers {
    uint64_t address, file, line;
};

/* The machine, and the last row it made. */
struct machine {
    const struct line_table *table;
    struct line_cursor c;
    struct registers now, row;
    bool has_row;
    void (*each)(void *context, const struct line_row *row);
    void *context;
};

/* A row ends the stretch of the one before; of rows with the same address the last one counts, as for BFD. */
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
        /* Addresses run upward within a sequence; a new start makes no stretch with what was before. */
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
    default: /* column, flags, what later versions add */
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
        /* A relative directory counts from number 0, the compilation's, which tables name since version 5. */
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
