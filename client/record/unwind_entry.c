#include "record/unwind_entry.h"

#define COMMON_MOST 256u
#define LENGTH_64 0xffffffffu /* announces a length of 8 bytes: no section that is read is so large */
#define DEBUG_COMMON 0xffffffffu

enum { /* DW_EH_PE: format in the lower half, application in the upper */
       FORMAT = 0x0f,
       FORMAT_POINTER = 0x00,
       FORMAT_U4 = 0x03,
       FORMAT_U8 = 0x04,
       FORMAT_S4 = 0x0b,
       FORMAT_S8 = 0x0c,
       RELATIVE = 0x10, /* to the field */
};

void unwind_reader_init(struct unwind_reader *r, const struct unwind_section *section, bool is_debug)
{
    *r = (struct unwind_reader){.section = section, .is_debug = is_debug, .common_at = UINT32_MAX};
}

/* Sets *c to the bytes behind the length at a position. False: the section ends before. */
static bool entry_at(const struct unwind_reader *r, uint64_t at, struct frame_cursor *c)
{
    const struct unwind_section *s = r->section;
    if (at > s->size || s->size - at < 4) {
        return false;
    }
    *c = (struct frame_cursor){s->bytes + at, s->bytes + s->size, false};
    uint64_t length = frame_take_fixed(c, 4);
    if (length == 0 || length == LENGTH_64 || length > (uint64_t)(c->end - c->at)) {
        return false;
    }
    c->end = c->at + length;
    return true;
}

const struct frame_common *unwind_reader_common(struct unwind_reader *r, uint32_t at)
{
    if (at != r->common_at) {
        struct frame_cursor c;
        r->common_at = at;
        r->common_good = entry_at(r, at, &c) && c.end - c.at <= COMMON_MOST &&
                         frame_take_fixed(&c, 4) == (r->is_debug ? DEBUG_COMMON : 0) && !c.bad &&
                         frame_common_parse(c, &r->common);
    }
    return r->common_good ? &r->common : NULL;
}

/* Takes a number in the format of an encoding. False: not supported. */
static bool take_encoded(struct frame_cursor *c, uint8_t encoding, uint64_t *out)
{
    switch (encoding & FORMAT) {
    case FORMAT_U4:
        *out = frame_take_fixed(c, 4);
        return !c->bad;
    case FORMAT_S4:
        *out = (uint64_t)(int64_t)(int32_t)frame_take_fixed(c, 4);
        return !c->bad;
    case FORMAT_POINTER:
    case FORMAT_U8:
    case FORMAT_S8:
        *out = frame_take_fixed(c, 8);
        return !c->bad;
    default:
        return false;
    }
}

/* Reads an entry behind its reference to the common part. */
static bool entry_read(struct unwind_reader *r, struct frame_cursor c, uint64_t common_at, struct unwind_entry *out)
{
    const struct unwind_section *s = r->section;
    const struct frame_common *common = common_at < s->size ? unwind_reader_common(r, (uint32_t)common_at) : NULL;
    uint64_t field = s->address + (uint64_t)(c.at - s->bytes), begin, size;
    if (!common || (common->encoding & ~(unsigned)FORMAT & ~(unsigned)RELATIVE) != 0 ||
        !take_encoded(&c, common->encoding, &begin) || !take_encoded(&c, common->encoding, &size)) {
        return false;
    }
    if (common->has_data) {
        frame_skip(&c, frame_take_unsigned(&c));
    }
    begin += common->encoding & RELATIVE ? field : 0;
    *out = (struct unwind_entry){.begin = begin,
                                 .size = size,
                                 .common = (uint32_t)common_at,
                                 .program = (uint32_t)(c.at - s->bytes),
                                 .end = (uint32_t)(c.end - s->bytes),
                                 .is_debug = r->is_debug};
    /* A linker sets the address of code that it removed to 0. */
    return !c.bad && begin != 0 && size != 0 && begin + size > begin;
}

bool unwind_reader_next(struct unwind_reader *r, struct unwind_entry *out)
{
    struct frame_cursor c;
    while (entry_at(r, r->at, &c)) {
        uint64_t here = (uint64_t)(c.at - r->section->bytes), id = frame_take_fixed(&c, 4);
        r->at = (uint32_t)(c.end - r->section->bytes);
        bool is_common = id == (r->is_debug ? DEBUG_COMMON : 0);
        if (!c.bad && !is_common && entry_read(r, c, r->is_debug ? id : here - id, out)) {
            return true;
        }
    }
    return false;
}
