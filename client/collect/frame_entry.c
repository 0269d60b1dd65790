#include "client/collect/frame_entry.h"

#include <stddef.h>

#define ENCODED_POINTER 0x1b /* signed 32 bits, relative to the field: the only encoding that gas writes */
#define ENTRY_LEAST 12u      /* bytes after its length: offset of the common entry, function, size */
#define COMMON_LEAST 8u      /* bytes behind its length */

static uint32_t read32(uintptr_t at)
{
    const uint8_t *b = (const uint8_t *)at;
    return (uint32_t)b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
}

uint8_t frame_take_byte(struct frame_cursor *c)
{
    if (c->at >= c->end) {
        c->bad = true;
        return 0;
    }
    return *c->at++;
}

static uint64_t take_leb(struct frame_cursor *c, bool is_signed)
{
    uint64_t value = 0;
    for (unsigned shift = 0;; shift += 7) {
        uint8_t byte = frame_take_byte(c);
        value |= shift < 64 ? (uint64_t)(byte & 0x7f) << shift : 0;
        if (byte & 0x80) {
            continue;
        }
        return is_signed && byte & 0x40 && shift + 7 < 64 ? value | ~0ull << (shift + 7) : value;
    }
}

uint64_t frame_take_unsigned(struct frame_cursor *c)
{
    return take_leb(c, false);
}

int64_t frame_take_signed(struct frame_cursor *c)
{
    return (int64_t)take_leb(c, true);
}

uint64_t frame_take_fixed(struct frame_cursor *c, unsigned bytes)
{
    uint64_t value = 0;
    for (unsigned i = 0; i < bytes; i++) {
        value |= (uint64_t)frame_take_byte(c) << 8 * i;
    }
    return value;
}

void frame_skip(struct frame_cursor *c, uint64_t n)
{
    if (n > (uint64_t)(c->end - c->at)) {
        c->bad = true;
        n = (uint64_t)(c->end - c->at);
    }
    c->at += n;
}

/* Reads the data that the letters of an augmentation announce. */
static bool augmentation_read(const uint8_t *letter, struct frame_cursor data, struct frame_common *out)
{
    for (; *letter && !data.bad; letter++) {
        if (*letter == 'R') {
            out->encoding = frame_take_byte(&data);
        } else if (*letter == 'P') { /* the encoding and a pointer: of 4 bytes, or of 8 */
            uint8_t size = frame_take_byte(&data) & 0x0f;
            frame_skip(&data, size == 0x03 || size == 0x0b                   ? 4
                              : size == 0x00 || size == 0x04 || size == 0x0c ? 8
                                                                             : UINT64_MAX);
        } else if (*letter == 'L') {
            frame_take_byte(&data);
        } else if (*letter == 'S') {
            out->is_signal = true;
        } else if (*letter != 'B') {
            return false;
        }
    }
    return !data.bad;
}

bool frame_common_parse(struct frame_cursor c, struct frame_common *out)
{
    uint8_t version = frame_take_byte(&c);
    const uint8_t *letters = c.at;
    while (frame_take_byte(&c)) {
    }
    if (c.bad || (letters[0] != 'z' && letters[0] != 0) || (version != 1 && version != 3 && version != 4)) {
        return false;
    }
    if (version == 4 && (frame_take_byte(&c) != 8 || frame_take_byte(&c) != 0)) { /* sizes of address and segment */
        return false;
    }
    out->is_signal = false;
    out->has_data = letters[0] == 'z';
    out->encoding = 0;
    out->code_unit = frame_take_unsigned(&c);
    out->data_unit = frame_take_signed(&c);
    out->link = version == 1 ? frame_take_byte(&c) : frame_take_unsigned(&c);
    uint64_t size = out->has_data ? frame_take_unsigned(&c) : 0;
    struct frame_cursor data = c;
    frame_skip(&c, size);
    data.end = c.at;
    out->program = c;
    return !c.bad && (!out->has_data || augmentation_read(letters + 1, data, out));
}

bool frame_common_read(struct frame_bytes in, uintptr_t at, struct frame_common *out)
{
    uint32_t length = frame_has(in, at, 4 + COMMON_LEAST) ? read32(at) : 0;
    if (length < COMMON_LEAST || !frame_has(in, at + 4, length) || read32(at + 4) != 0) {
        return false;
    }
    struct frame_cursor c = {(const uint8_t *)at + 8, (const uint8_t *)at + 4 + length, false};
    return frame_common_parse(c, out) && out->encoding == ENCODED_POINTER;
}

bool frame_entry_read(struct frame_bytes in, uintptr_t at, struct frame_entry *out)
{
    uint32_t length = frame_has(in, at, 4 + ENTRY_LEAST) ? read32(at) : 0;
    if (length < ENTRY_LEAST || !frame_has(in, at + 4, length) || read32(at + 4) == 0) {
        return false;
    }
    struct frame_cursor c = {(const uint8_t *)at + 4 + ENTRY_LEAST, (const uint8_t *)at + 4 + length, false};
    out->common = at + 4 - read32(at + 4);
    out->begin = at + 8 + (uintptr_t)(intptr_t)(int32_t)read32(at + 8);
    out->size = read32(at + 12);
    if (length > ENTRY_LEAST) { /* data for exceptions */
        frame_skip(&c, frame_take_unsigned(&c));
    }
    out->program = c;
    return out->size > 0 && !c.bad;
}

const struct frame_table *frame_table_at(struct frame_bytes in, uintptr_t at)
{
    const struct frame_table *t = (const void *)at;
    bool good = frame_has(in, at, sizeof *t) && at % _Alignof(struct frame_table) == 0 && t->version == 1 &&
                t->count_encoding == FRAME_TABLE_COUNT && t->table_encoding == FRAME_TABLE_ROWS &&
                t->count <= (in.high - at - sizeof *t) / sizeof t->rows[0];
    return good ? t : NULL;
}
