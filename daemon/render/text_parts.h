/* The parts of format=text. Columns are those of gprof's listing, widened as far as the numbers need; a blank
 * always stands between two. Internal to render. */
#ifndef PROFD_RENDER_TEXT_PARTS_H
#define PROFD_RENDER_TEXT_PARTS_H

#include "core/buffer.h"
#include "render/name.h"
#include "render/render.h"
#include "render/select.h"

struct text_parts {
    const struct render_input *in;
    const struct selection *shown;
    const struct name_list *names;
    struct arena *arena;
    struct buffer *out;
};

/* What was asked, where the numbers come from, and what is missing. */
void text_add_heading(const struct text_parts *t);
/* NO_MEMORY or OK, both. */
enum profd_status text_add_flat(const struct text_parts *t, struct profd_error *e);
enum profd_status text_add_graph(const struct text_parts *t, struct profd_error *e);
/* Decimal digits of a count; bytes of a number with two decimals. */
int text_width_count(uint64_t value);
int text_width_seconds(double value);

#endif
