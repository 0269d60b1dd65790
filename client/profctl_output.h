/* Where a report goes: a terminal, a pipe, or a file that appears whole or not at all. */
#ifndef PROFD_CLIENT_PROFCTL_OUTPUT_H
#define PROFD_CLIENT_PROFCTL_OUTPUT_H

#include <stdbool.h>
#include <stdio.h>

#include "client/profctl_paint.h"
#include "client/profctl_pager.h"
#include "client/terminal.h"
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
/* IO when it cannot be written, or nobody reads on (out->left). On a terminal controls are replaced. */
enum profd_status output_write(struct output *out, const void *bytes, size_t n, struct profd_error *e);
/* The end: with keep false nothing is left behind. */
enum profd_status output_close(struct output *out, bool keep, struct profd_error *e);

#endif
