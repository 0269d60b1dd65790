/* Names that are safe on a terminal and distinct. Internal to render. */
#ifndef PROFD_RENDER_NAME_H
#define PROFD_RENDER_NAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/arena.h"
#include "core/buffer.h"
#include "core/report.h"

/* Appends text as utf8_escape shows it: nothing in it moves a cursor, reorders a line or is invisible. */
void name_add_safe(struct buffer *out, const char *text);
/* The same as a string of the arena; text itself when nothing needs spelling out. */
const char *name_make_safe(struct arena *a, const char *text);
/* What follows the last '/'. */
const char *name_find_base(const char *path);

struct name_list {
    const char *const *text; /* one per function of the report */
    const uint32_t *length;
};

/* Safe names of all functions, shortened (name_short.h) if is_short; those of the same name get " (FILE)", else "
 * (BUILD)" when builds differ, and " [0xADDRESS]" where that does not tell them apart either. O(total length). */
void name_list_make(const struct report *report, bool is_short, struct arena *a, struct name_list *out);

#endif
