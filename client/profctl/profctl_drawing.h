/* A picture of the call graph, drawn by Graphviz's dot in a process of its own. */
#ifndef PROFD_CLIENT_PROFCTL_DRAWING_H
#define PROFD_CLIENT_PROFCTL_DRAWING_H

#include <stdbool.h>

#include "profctl/profctl_output.h"

#define DRAWING_FORMAT "svg"

/* True for this; format may be NULL. */
bool drawing_is_format(const char *format);

/* DOT text on its way to dot. */
struct drawing {
    int fd; /* an unnamed file */
};
/* CANT_CREATE without memory for it. */
enum profd_status drawing_open(struct drawing *d, struct profd_error *e);
enum profd_status drawing_write(struct drawing *d, const void *bytes, size_t n, struct profd_error *e);
/* Draws what was written into out. NOT_FOUND when there is no dot, INTERNAL when it fails. */
enum profd_status drawing_run(struct drawing *d, struct output *out, struct profd_error *e);
void drawing_close(struct drawing *d);

#endif
