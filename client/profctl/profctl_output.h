/* Where a report goes: a terminal, a pipe, or a file that appears whole or not at all. */
#ifndef PROFD_CLIENT_PROFCTL_OUTPUT_H
#define PROFD_CLIENT_PROFCTL_OUTPUT_H

#include <stdbool.h>
#include <stdio.h>

#include "profctl/profctl_paint.h"
#include "profctl/profctl_pager.h"
#include "profctl/terminal.h"
#include "proto/status.h"

struct output {
    FILE *stream;
    char *path, *part; /* part is renamed to path at the end; both NULL on stdout */
    bool terminal;
    struct terminal_filter filter;
    struct paint *paint;       /* NULL: text goes out as it is */
    const char *pager_command; /* NULL, or what is started before the first byte */
    struct pager pager;
    bool left; /* the reader has seen enough: writing failed for that, and it is no error */
};

/* path NULL is stdout. An existing regular file is replaced at the end; a device or FIFO is written to as it is.
 * CANT_CREATE. */
enum profd_status output_open(const char *path, struct output *out, struct profd_error *e);
/* Of stdout, before the first byte: through paint (NULL: none, else it outlives out), and to a pager (NULL: none). */
void output_dress(struct output *out, struct paint *paint, const char *pager_command);
/* IO if it cannot be written, or the reader has closed the pipe (out->left). On a terminal control characters are
 * replaced. */
enum profd_status output_write(struct output *out, const void *bytes, size_t n, struct profd_error *e);
/* Finishes the output; with keep false the file is removed. */
enum profd_status output_close(struct output *out, bool keep, struct profd_error *e);

#endif
