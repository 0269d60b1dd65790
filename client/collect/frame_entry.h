/* Reads entries of .eh_frame: the code that they describe, and their program for unwinding. Reads plain memory only;
 * allowed in signal handlers. */
#ifndef PROFD_COLLECT_FRAME_ENTRY_H
#define PROFD_COLLECT_FRAME_ENTRY_H

#include <stdbool.h>
#include <stdint.h>

#define FRAME_TABLE_ROWS 0x3b  /* encoding of .eh_frame_hdr's rows: signed 32 bits, above the table */
#define FRAME_TABLE_COUNT 0x03 /* encoding of their number: unsigned 32 bits */

/* .eh_frame_hdr */
struct frame_table {
    uint8_t version, pointer_encoding, count_encoding, table_encoding;
    int32_t pointer;
    uint32_t count;
    struct frame_row {
        int32_t function, frame;
    } rows[]; /* ascending by function */
};

/* Memory that may be read. */
struct frame_bytes {
    uintptr_t low, high;
};

/* True if [at, at + size) is inside. */
static inline bool frame_has(struct frame_bytes in, uintptr_t at, uint64_t size)
{
    return at >= in.low && at < in.high && size <= in.high - at;
}

/* A cursor over bytes; at the end it sets bad and returns zeros. */
struct frame_cursor {
    const uint8_t *at, *end;
    bool bad;
};
uint8_t frame_take_byte(struct frame_cursor *c);
uint64_t frame_take_unsigned(struct frame_cursor *c);
int64_t frame_take_signed(struct frame_cursor *c);
uint64_t frame_take_fixed(struct frame_cursor *c, unsigned bytes); /* little-endian, at most 8 bytes */
void frame_skip(struct frame_cursor *c, uint64_t n);

/* The common part of entries (a CIE). */
struct frame_common {
    uint64_t code_unit;
    int64_t data_unit;
    uint64_t link;               /* column of the return address */
    uint8_t encoding;            /* of pointers in the entries; 0: they are addresses */
    bool has_data;               /* entries have data for exceptions before their program */
    bool is_signal;              /* of a signal frame, which only the kernel calls */
    struct frame_cursor program; /* its program runs before the entry's own */
};
/* Parses its bytes from the version on, of .eh_frame or .debug_frame. False: not of the form of current compilers. */
bool frame_common_parse(struct frame_cursor c, struct frame_common *out);
/* Reads that of .eh_frame at an address. False as above, not in memory, or the entries have other pointers than signed
 * 32 bits relative to the field. */
bool frame_common_read(struct frame_bytes in, uintptr_t at, struct frame_common *out);

/* One range of code (an FDE). */
struct frame_entry {
    uintptr_t begin, common; /* common: position for frame_common_read */
    uint32_t size;           /* of the code */
    struct frame_cursor program;
};
/* Reads it. False as above. Does not check the common part, on which begin and size depend. */
bool frame_entry_read(struct frame_bytes in, uintptr_t at, struct frame_entry *out);

/* Returns the table at an address, if its rows have the known form and all can be read; otherwise NULL. */
const struct frame_table *frame_table_at(struct frame_bytes in, uintptr_t at);

#endif
