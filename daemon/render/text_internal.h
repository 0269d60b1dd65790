/* The parts of format=text. Columns are those of gprof's listing, widened as the numbers require and always separated
 * by a blank. Internal to render. */
#ifndef PROFD_RENDER_TEXT_INTERNAL_H
#define PROFD_RENDER_TEXT_INTERNAL_H

#include "core/buffer.h"
#include "render/name.h"
#include "render/render.h"
#include "render/select.h"

struct text_parts {
    const struct render_input *in;
    const struct selection *shown;      /* in the graph */
    const struct selection *flat_shown; /* in the flat profile */
    const struct name_list *names;
    struct arena *arena;
    struct buffer *out;
};

/* What was asked, where the numbers come from, and what is missing. At most six lines, unless something is wrong: each
 * further line says what is, or is there because the query says verbose. */
void text_add_heading(const struct text_parts *t);
/* True if a line of the heading that is of interest only where something is wrong is to be there. */
static inline bool text_wants(const struct text_parts *t, bool wrong)
{
    return wrong || t->in->show.verbose != 0;
}
/* Adds such a line, "Label     sentence". label: at most nine characters, "" for a line below another. */
void text_add_wrong(const struct text_parts *t, bool wrong, const char *label, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* How much of the CPU time is in functions, and what the collectors lost; nothing where there was none. */
void text_add_collector(const struct text_parts *t);
/* The line below the flat profile with the time inside the collector: width of its number, and of the following blanks;
 * nothing if there was none. */
void text_add_inside(const struct text_parts *t, int before, int width);
void text_add_flat(const struct text_parts *t);
void text_add_graph(const struct text_parts *t);
/* Lines of the heading on what its rows leave open. */
void text_add_graph_notes(const struct text_parts *t);
/* "~" where calls were sampled and not counted, else "": before a number of calls, or the heading of their column. */
const char *text_calls_mark(const struct render_input *in);

#endif
