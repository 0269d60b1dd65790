#include "elf/elf_line_table.h"

#include <stdlib.h>

#include "elf/elf_line_cursor.h"

/* DWARF's numbers, which no header of libc has. */
enum { LNCT_PATH = 1, LNCT_DIRECTORY = 2 };

#define FORMATS_MAX 16

static bool add_name(struct line_name **list, uint32_t *count, uint32_t *room, const struct line_name *name)
{
    if (*count == *room) {
        uint32_t more = *room == 0 ? 64 : *room * 2;
        struct line_name *grown = more <= 1u << 24 ? realloc(*list, more * sizeof *grown) : NULL;
        if (grown == NULL) {
            return false;
        }
        *list = grown;
        *room = more;
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

/* Before DWARF 5: directories, then files, each list ended by an empty name. */
static bool read_old_names(struct line_table *t, struct line_cursor *c)
{
    struct line_name none = {.text = {NULL, t->size}};
    if (!add_name(&t->directories, &t->directory_count, &t->directory_room,
                  &none)) { /* 0: the compilation's, not said here */
        return false;
    }
    while (line_has(c, 1) && c->bytes[c->at] != 0) {
        struct line_name n = {.text = {NULL, c->at}};
        skip_string(c);
        if (c->failed || !add_name(&t->directories, &t->directory_count, &t->directory_room, &n)) {
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
        if (c->failed || !add_name(&t->files, &t->file_count, &t->file_room, &n)) {
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

/* DWARF 5: a list, preceded by the description of its columns. */
static bool read_new_names(struct line_table *t, struct line_cursor *c, struct line_name **list, uint32_t *count,
                           uint32_t *room)
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
            uint64_t value = read_form(t, c, forms[i], &text);
            if (kinds[i] == LNCT_PATH) {
                n.text = text;
            } else if (kinds[i] == LNCT_DIRECTORY) {
                n.directory = value;
            }
        }
        /* Rows without bytes could be claimed by the billion. */
        if (c->failed || c->at == before || !add_name(list, count, room, &n)) {
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
        line_u8(&c); /* segment selectors: not used by any compiler */
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
    return read_new_names(t, &c, &t->directories, &t->directory_count, &t->directory_room) &&
           read_new_names(t, &c, &t->files, &t->file_count, &t->file_room);
}

void line_table_done(struct line_table *t)
{
    free(t->directories);
    free(t->files);
    t->directories = t->files = NULL;
}
