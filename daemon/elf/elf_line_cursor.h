/* Reads DWARF's numbers from bytes that may end anywhere. */
#ifndef PROFD_ELF_ELF_LINE_CURSOR_H
#define PROFD_ELF_ELF_LINE_CURSOR_H

#include <stdbool.h>
#include <stdint.h>

#include "elf/elf_file.h"

/* How a value is written (DWARF 5, section 7.5.6): the forms that are read or skipped. */
enum {
    FORM_ADDR = 0x01,
    FORM_BLOCK2 = 0x03,
    FORM_BLOCK4 = 0x04,
    FORM_DATA2 = 0x05,
    FORM_DATA4 = 0x06,
    FORM_DATA8 = 0x07,
    FORM_STRING = 0x08,
    FORM_BLOCK = 0x09,
    FORM_BLOCK1 = 0x0a,
    FORM_DATA1 = 0x0b,
    FORM_FLAG = 0x0c,
    FORM_SDATA = 0x0d,
    FORM_STRP = 0x0e,
    FORM_UDATA = 0x0f,
    FORM_REF_ADDR = 0x10,
    FORM_REF1 = 0x11,
    FORM_REF2 = 0x12,
    FORM_REF4 = 0x13,
    FORM_REF8 = 0x14,
    FORM_REF_UDATA = 0x15,
    FORM_SEC_OFFSET = 0x17,
    FORM_EXPRLOC = 0x18,
    FORM_FLAG_PRESENT = 0x19,
    FORM_DATA16 = 0x1e,
    FORM_LINE_STRP = 0x1f,
    FORM_REF_SIG8 = 0x20
};

/* once failed is set, every further read returns 0 */
struct line_cursor {
    const struct elf_file *file;
    const uint8_t *bytes;
    uint64_t at, end;
    bool failed;
};

static inline bool line_has(struct line_cursor *c, uint64_t n)
{
    if (c->failed || n > c->end - c->at) {
        c->failed = true;
    }
    return !c->failed;
}

static inline void line_skip(struct line_cursor *c, uint64_t n)
{
    if (line_has(c, n)) {
        c->at += n;
    }
}

static inline uint8_t line_u8(struct line_cursor *c)
{
    return line_has(c, 1) ? c->bytes[c->at++] : 0;
}

/* Reads a number of 1, 2, 4 or 8 bytes; other sizes fail. */
static inline uint64_t line_number(struct line_cursor *c, unsigned size)
{
    if (size != 1 && size != 2 && size != 4 && size != 8) {
        c->failed = true;
    }
    if (!line_has(c, size)) {
        return 0;
    }
    const uint8_t *p = c->bytes + c->at;
    c->at += size;
    return size == 1 ? *p : size == 2 ? elf_u16(c->file, p) : size == 4 ? elf_u32(c->file, p) : elf_u64(c->file, p);
}

/* Reads LEB128; bits above 64 are dropped. */
static inline uint64_t line_leb(struct line_cursor *c, bool is_signed)
{
    uint64_t value = 0;
    for (unsigned shift = 0;; shift += 7) {
        uint8_t byte = line_u8(c);
        if (shift < 64) {
            value |= (uint64_t)(byte & 0x7f) << shift;
        }
        if (!(byte & 0x80)) {
            if (is_signed && byte & 0x40 && shift + 7 < 64) {
                value |= ~UINT64_C(0) << (shift + 7);
            }
            return value;
        }
    }
}

/* Skips a value that consists of a length and that number of bytes. False if the form is another one. */
static inline bool line_skip_block(struct line_cursor *c, uint64_t form)
{
    unsigned size = form == FORM_BLOCK1 ? 1 : form == FORM_BLOCK2 ? 2 : form == FORM_BLOCK4 ? 4 : 0;
    if (size == 0 && form != FORM_BLOCK) {
        return false;
    }
    line_skip(c, size == 0 ? line_leb(c, false) : line_number(c, size));
    return true;
}

#endif
