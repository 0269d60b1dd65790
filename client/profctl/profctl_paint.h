/* A report's text on its way to a person: shares in colour, long names cut. The daemon's text itself has
 * neither. */
#ifndef PROFD_CLIENT_PROFCTL_PAINT_H
#define PROFD_CLIENT_PROFCTL_PAINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "profctl/profctl_look.h"

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

#endif
