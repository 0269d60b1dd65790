/* Reading DWARF's numbers from bytes that may end anywhere. */
#ifndef PROFD_ELF_ELF_LINE_CURSOR_H
#define PROFD_ELF_ELF_LINE_CURSOR_H

#include <stdbool.h>
#include <stdint.h>

#include "elf/elf_file.h"

/* failed sticks: what is read after it is 0. */
struct line_cursor {
    const struct elf_file *file;
    const uint8_t *bytes;
    uint64_t at, end;
    bool failed;
};

static inline bool line_has(struct line_cursor *c, uint64_t n)
{
    if (c->failed || n > c->end - c->at)
        c->failed = true;
    return !c->failed;
}

static inline void line_skip(struct line_cursor *c, uint64_t n)
{
    if (line_has(c, n))
        c->at += n;
}

static inline uint8_t line_u8(struct line_cursor *c)
{
    return line_has(c, 1) ? c->bytes[c->at++] : 0;
}

/* 1, 2, 4 or 8 bytes; other sizes fail. */
static inline uint64_t line_number(struct line_cursor *c, unsigned size)
{
    if (size != 1 && size != 2 && size != 4 && size != 8)
        c->failed = true;
    if (!line_has(c, size))
        return 0;
    const uint8_t *p = c->bytes + c->at;
    c->at += size;
    return size == 1 ? *p : size == 2 ? elf_u16(c->file, p) : size == 4 ? elf_u32(c->file, p) : elf_u64(c->file, p);
}

/* LEB128; bits above 64 are dropped. */
static inline uint64_t line_leb(struct line_cursor *c, bool is_signed)
{
    uint64_t value = 0;
    for (unsigned shift = 0;; shift += 7) {
        uint8_t byte = line_u8(c);
        if (shift < 64)
            value |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80)) {
            if (is_signed && byte & 0x40 && shift + 7 < 64)
                value |= ~UINT64_C(0) << (shift + 7);
            return value;
        }
    }
}

#endif
