/* Ticks and calls of addresses become those of instructions and of lines. */
#ifndef PROFD_CLIENT_ANNOTATE_SUM_H
#define PROFD_CLIENT_ANNOTATE_SUM_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "profctl/annotate_code.h"

struct annotate_amount {
    double ticks;     /* a bin over several lines is shared by bytes */
    double low, high; /* 95 % interval: of the ticks that are surely here, and of all that may be */
    bool estimated;   /* ticks of shared bins are in it */
    uint64_t calls;   /* from call sites here */
    double sure, possible;
};

struct annotate_sum {
    struct annotate_amount *instructions; /* ticks of a bin over several instructions stand at the first */
    size_t *span; /* of each instruction: how many the widest bin that begins there covers; 0: none */
    struct annotate_amount *places;
    double ticks;           /* in the function's instructions */
    double shared;          /* of bins with bytes of other functions: at no line */
    uint64_t calls_no_site; /* calls without an instruction that could have made them */
    bool call_sites;        /* false: addresses of callers are rounded, so calls have no line */
};

/* answer: of /addresses. False when memory is exhausted. annotate_sum_done frees, after failure too. */
bool annotate_sum_make(const json_t *answer, const struct code *code, struct annotate_sum *out);
void annotate_sum_done(struct annotate_sum *s);

#endif
