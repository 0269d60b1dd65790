/* Explanations of the listings' columns, in our own text, at the same places as gprof's. */
#ifndef PROFD_COMPAT_COMPAT_PROSE_H
#define PROFD_COMPAT_COMPAT_PROSE_H

#include "core/buffer.h"

/* Both texts begin with an empty line. */
void compat_prose_flat(struct buffer *out);
void compat_prose_graph(struct buffer *out);
/* With the title of -T: it is printed before the page of the call graph. */
void compat_prose_graph_old(struct buffer *out);

#endif
