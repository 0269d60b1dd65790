/* A function's lines or instructions with their ticks and calls. */
#ifndef PROFD_CLIENT_ANNOTATE_PRINT_H
#define PROFD_CLIENT_ANNOTATE_PRINT_H

#include <jansson.h>

#include "profctl/annotate_code.h"
#include "profctl/annotate_source.h"
#include "profctl/annotate_sum.h"

struct annotate_print {
    const json_t *answer; /* of /addresses */
    const struct code *code;
    const struct annotate_sum *sum;
    const struct source *sources; /* of each place: the text of its file */
    bool instructions;            /* else lines */
};

void annotate_print_text(const struct annotate_print *p);
void annotate_print_csv(const struct annotate_print *p);
/* NULL when memory is exhausted. */
json_t *annotate_print_json(const struct annotate_print *p);

#endif
