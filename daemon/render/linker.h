/* What lists for compilers and linkers share: the functions of the one build that is linked, by the names that stand in
 * its symbol table, and comments that say where the numbers come from. Internal to render. */
#ifndef PROFD_RENDER_LINKER_H
#define PROFD_RENDER_LINKER_H

#include <stdbool.h>
#include <stdint.h>

#include "core/arena.h"
#include "core/buffer.h"
#include "proto/status.h"
#include "render/render.h"

#define LINKER_LEFT_OUT UINT32_MAX

struct linker_list {
    uint32_t count;
    uint32_t *functions;        /* positions in the report, ascending */
    uint32_t *numbers;          /* of each position: index into functions, or LINKER_LEFT_OUT */
    uint32_t unusable;          /* functions of the build with a name that is not unique, or no word of a line */
    uint64_t calls, calls_here; /* of the report between functions; of them, with both ends in the list */
};

/* Functions of the build that in is about, which are entries of its report. BAD_QUERY naming the format if no call into
 * them is counted. O(functions log functions + arcs). */
enum profd_status linker_list_make(const struct render_input *in, const char *format, struct arena *a,
                                   struct linker_list *out, struct profd_error *e);

/* Calls into a function, its own among them. */
uint64_t linker_calls(const struct report_function *f);

/* Comment lines: the build, whether its calls are exact, and what is not in the list. what: "Symbol order (C3)". */
void linker_add_heading(struct buffer *out, const struct render_input *in, const struct linker_list *list,
                        const char *what, struct arena *a);

#endif
