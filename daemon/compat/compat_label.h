/* Labels of nodes in the call graph: name, cycle, index. Built once, because most are printed many times. */
#ifndef PROFD_COMPAT_COMPAT_LABEL_H
#define PROFD_COMPAT_COMPAT_LABEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "compat/compat_run.h"
#include "core/arena.h"
#include "core/buffer.h"
#include "proto/status.h"

/* Explanations of the listings' columns, in our own text, at the same places as gprof's. */

/* Both texts begin with an empty line. */
void compat_prose_flat(struct buffer *out);
void compat_prose_graph(struct buffer *out);
/* With the title of -T: it is printed before the page of the call graph. */
void compat_prose_graph_old(struct buffer *out);

#define COMPAT_LABEL_INDEX 16

/* Labels of all symbols: "f <cycle 1> [3]"; the index is in round brackets if the symbol has no entry. */
struct compat_labels {
    const char *text;
    size_t *first; /* label v: text[first[v] … first[v + 1]) */
};

/* Writes "[3]" into text, or "(3)" for a node that is not shown. Returns its length. */
size_t compat_label_index(char text[COMPAT_LABEL_INDEX], uint32_t index, bool shown);

/* Appends one label; if there are no arcs, it has no index. */
void compat_label_add(const struct compat_run *r, uint32_t symbol, struct buffer *out);

/* O(bytes of names). */
enum profd_status compat_labels_build(const struct compat_run *r, struct arena *a, struct compat_labels *out,
                                      struct profd_error *e);

static inline const char *compat_label_text(const struct compat_labels *l, uint32_t symbol)
{
    return l->text + l->first[symbol];
}

static inline size_t compat_label_size(const struct compat_labels *l, uint32_t symbol)
{
    return l->first[symbol + 1] - l->first[symbol];
}

#endif
