/* Names as a person may see them on a terminal, and told apart. Internal to render. */
#ifndef PROFD_RENDER_NAME_H
#define PROFD_RENDER_NAME_H

#include <stddef.h>
#include <stdint.h>

#include "core/arena.h"
#include "core/buffer.h"
#include "core/report.h"
#include "proto/status.h"

/* Appends text with everything that could move a cursor or reorder a line spelt out: C0, DEL and bytes that are not
 * UTF-8 as \xNN, C1 and bidirectional controls as \u{NNNN}. */
void name_add_safe(struct buffer *out, const char *text);
/* The same as a string of the arena; text itself when nothing needs spelling out. NULL when exhausted. */
const char *name_make_safe(struct arena *a, const char *text);
/* What follows the last '/'. */
const char *name_find_base(const char *path);

struct name_list {
    const char *const *text; /* one per function of the report */
    const uint32_t *length;
};

/* Safe names of all functions; those of the same name get " (FILE)", else " (BUILD)" when builds differ, and "
 * [0xADDRESS]" where that does not tell them apart either. O(total length). */
enum profd_status name_list_make(const struct report *report, struct arena *a, struct name_list *out,
                                 struct profd_error *e);

#endif
