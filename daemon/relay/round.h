/* A round: what profd has sealed goes to the centre in batches, and what the centre has committed is told to profd. */
#ifndef PROFD_RELAY_ROUND_H
#define PROFD_RELAY_ROUND_H

#include <stdint.h>

#include "config/config.h"
#include "proto/status.h"

#define ROUND_SYMBOL_BYTES (32u << 20) /* sent in one round; the object that exceeds it is the last */

/* When to begin the next round: see wait_round. */
struct round_pause {
    enum {
        ROUND_DONE,   /* the centre has answered, and says when */
        ROUND_FAILED, /* it may help to try again */
        ROUND_SAID,   /* so it may, but not before said_ms */
        ROUND_LONG    /* only an operator can help */
    } kind;
    uint64_t said_ms;
    unsigned failures; /* rounds in a row that failed before this one */
};

struct round_report {
    unsigned batches;            /* that were answered */
    uint64_t delivered, counted; /* uploads in them, and those that the centre has counted, now or before */
    struct round_pause pause;
    struct profd_error symbols; /* why symbols did not reach the centre; "": none failed */
};

struct round; /* what is kept from one round to the next */

enum profd_status round_new(struct round **out, struct profd_error *e);
/* Accepts NULL. */
void round_free(struct round *r);

/* Fetches uploads from profd, posts them, and tells profd of each that the centre has committed, until there are no
 * more. last_error: of the round before, or ""; profd is told it until the centre answers. If the centre cannot be
 * reached or refuses, profd is told why. What was not answered stays with profd, and is posted again. *out is set on
 * failure, too. */
enum profd_status round_run(struct round *r, const struct config *c, const char *last_error, struct round_report *out,
                            struct profd_error *e);

#endif
