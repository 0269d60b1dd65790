/* A comparison for people, and as CSV. */
#ifndef PROFD_CLIENT_DIFF_PRINT_H
#define PROFD_CLIENT_DIFF_PRINT_H

#include <jansson.h>
#include <stdbool.h>

struct diff_print {
    bool all;   /* rows without a significant change, too */
    bool plan;  /* how much more data each needs */
    long limit; /* rows of a table */
};

/* diff: the answer of /api/v1/diff. To stdout. */
void diff_print_text(const json_t *diff, const struct diff_print *how);
void diff_print_csv(const json_t *diff);

#endif
