/* How text looks where a person reads it, colours and widths, and where it goes: a terminal, a pager, a pipe, or a file
 * that appears whole or not at all. */
#ifndef PROFD_CLIENT_PROFCTL_OUTPUT_H
#define PROFD_CLIENT_PROFCTL_OUTPUT_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/types.h>

#include "profctl/profctl.h"
#include "profctl/terminal.h"
#include "proto/status.h"

struct look {
    bool terminal;       /* stdout is one */
    bool colour, shades; /* shades: 256 colours, else the basic ones */
    unsigned columns;    /* columns of a line; 0: lines are not cut */
    const char *dots;    /* replaces the part that was cut */
};

/* From --color and --wide of the call, where its verb has them, and from NO_COLOR, TERM, COLORTERM, COLUMNS and the
 * locale. USAGE for a --color that is none of auto, always, never. */
enum profd_status look_choose(const struct profctl_call *call, struct look *out, struct profd_error *e);

/* The parameter names= for a text: --names of the call, else "short" for a terminal that shows UTF-8, without --wide,
 * else NULL: full names. */
const char *look_names(const struct profctl_call *call, bool terminal);

/* Escape sequence for a share of the total in percent; "" for small shares and without colours. Orange and blue, never
 * red against green; the line always states the number, too. */
const char *look_heat(const struct look *look, double percent);

enum paint_part { PAINT_HEADING, PAINT_FLAT, PAINT_GRAPH };

struct paint {
    const struct look *look;
    enum paint_part part;
    double total;       /* of the heading; 0 before */
    size_t name_column; /* where names begin; 0 before the header of a table */
    bool passing;       /* the rest of a line that is too long to be looked at */
    size_t size;
    char line[8192]; /* its beginning */
};

/* look outlives it. */
void paint_init(struct paint *p, const struct look *look);
/* Takes text that the terminal's filter has passed; whole lines go out. Any way of cutting the text gives the same.
 * O(n). */
void paint_run(struct paint *p, const char *text, size_t n, FILE *out);
/* What was held goes out. */
void paint_end(struct paint *p, FILE *out);

struct pager {
    pid_t pid; /* 0: none runs */
    FILE *stream;
    const char *command;
    struct sigaction interrupt, quit, pipe; /* what signals meant before */
};

/* The command; NULL where there is to be none: an empty one, cat, no less, raised rights, TERM=dumb. */
const char *pager_choose(void);

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
