/* Reads the entries of .eh_frame and .debug_frame one after the other. Pure. */
#ifndef PROFD_RECORD_UNWIND_ENTRY_H
#define PROFD_RECORD_UNWIND_ENTRY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/collect/frame_entry.h"

#define UNWIND_SECTION (64u << 20) /* limit of bytes of a section */

/* Bytes of a section and its link-time address; size 0: absent. */
struct unwind_section {
    const uint8_t *bytes;
    size_t size;
    uint64_t address;
};

/* One range of code (an FDE). Positions count from the beginning of its section. */
struct unwind_entry {
    uint64_t begin, size; /* link-time */
    uint32_t common;      /* position of the common part */
    uint32_t program, end;
    bool is_debug; /* of .debug_frame */
};

struct unwind_reader {
    const struct unwind_section *section;
    bool is_debug;
    uint32_t at;
    uint32_t common_at; /* position of common; UINT32_MAX: none was read */
    bool common_good;
    struct frame_common common;
};

void unwind_reader_init(struct unwind_reader *r, const struct unwind_section *section, bool is_debug);

/* Reads the next entry that can be read. False: there is none. */
bool unwind_reader_next(struct unwind_reader *r, struct unwind_entry *out);

/* Returns the common part at a position; NULL if it cannot be read. It is valid until another is asked for. Common
 * parts of more than 256 bytes are not read, so that many entries of one cost no more than their own bytes. */
const struct frame_common *unwind_reader_common(struct unwind_reader *r, uint32_t at);

#endif
