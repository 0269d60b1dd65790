/* What the columns of the listings mean, in our own words: gprof explains them at the same places. */
#ifndef PROFD_COMPAT_COMPAT_PROSE_H
#define PROFD_COMPAT_COMPAT_PROSE_H

#include "core/buffer.h"

/* Both begin with an empty line. */
void compat_prose_flat(struct buffer *out);
void compat_prose_graph(struct buffer *out);
/* With -T's title: it stands in front of the call graph's page. */
void compat_prose_graph_old(struct buffer *out);

#endif
