/* Entries of .eh_frame: which code they describe, and the program by which the unwinder follows it. Reads plain memory
 * only: allowed in signal handlers. */
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

/* True if [at, at + size) lies in it. */
static inline bool frame_has(struct frame_bytes in, uintptr_t at, uint64_t size)
{
    return at >= in.low && at < in.high && size <= in.high - at;
}

/* Bytes that are read one after the other; bad, and zeros, behind the end. */
struct frame_cursor {
    const uint8_t *at, *end;
    bool bad;
};
uint8_t frame_take_byte(struct frame_cursor *c);
uint64_t frame_take_unsigned(struct frame_cursor *c);
int64_t frame_take_signed(struct frame_cursor *c);

/* What many entries have in common (a CIE). */
struct frame_common {
    uint64_t code_unit;
    int64_t data_unit;
    bool is_signal;              /* of a function that only the kernel "calls" */
    struct frame_cursor program; /* runs before the entry's own */
};
/* False: not of the form that today's compilers write, or not in memory. */
bool frame_common_read(struct frame_bytes in, uintptr_t at, struct frame_common *out);

/* One stretch of code (an FDE). */
struct frame_entry {
    uintptr_t begin, common; /* common: where frame_common_read is to read */
    uint32_t size;           /* of the code */
    struct frame_cursor program;
};
/* False as above. Says nothing of the common entry, on which the meaning of begin and size depends. */
bool frame_entry_read(struct frame_bytes in, uintptr_t at, struct frame_entry *out);

/* The table at an address, if its rows are of the known form and all of them can be read; else NULL. */
const struct frame_table *frame_table_at(struct frame_bytes in, uintptr_t at);

#endif
