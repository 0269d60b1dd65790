/* A round sends profd's sealed uploads to the centre in batches, and tells profd which uploads the centre has
 * committed. */
#ifndef PROFD_RELAY_ROUND_H
#define PROFD_RELAY_ROUND_H

#include <stdint.h>

#include "base/config.h"
#include "proto/status.h"

#define ROUND_SYMBOL_BYTES (32u << 20) /* sent in one round; the object that exceeds this is the last one */

/* The time of the next round, for wait_round. */
struct round_pause {
    enum {
        ROUND_DONE,   /* the centre has answered: after said_ms */
        ROUND_FAILED, /* a retry may help */
        ROUND_SAID,   /* a retry may help, but not before said_ms */
        ROUND_LONG    /* only an operator can help */
    } kind;
    uint64_t said_ms;
    unsigned failures; /* rounds in a row that failed before this one */
};

struct round_report {
    unsigned batches;            /* answered batches */
    uint64_t delivered, counted; /* uploads in them, and how many of these the centre has counted, now or before */
    struct round_pause pause;
    struct profd_error symbols; /* why symbols did not reach the centre; "": no failure */
};

struct round; /* the state between rounds */

enum profd_status round_new(struct round **out, struct profd_error *e);
/* Accepts NULL. */
void round_free(struct round *r);

/* Fetches uploads from profd, posts them, and tells profd which of them the centre has committed, until there are no
 * more. last_error is the error of the previous round, or ""; profd shows it until the centre answers. If this round
 * fails, profd is told the reason. Unacknowledged uploads stay with profd and are posted again. *out is set on failure,
 * too. */
enum profd_status round_run(struct round *r, const struct config *c, const char *last_error, struct round_report *out,
                            struct profd_error *e);

/* Computes the time until the next connection. Pure. */

/* Returns the milliseconds until the first round: uniformly distributed below the interval and below 10 seconds, so
 * that hosts that start together do not connect together. random is one of 2^32 equally likely numbers. */
uint64_t wait_first(int64_t interval_ns, uint32_t random);

/* Returns the milliseconds until the next round.
 * ROUND_DONE: said_ms, at least 100 and at most a day.
 * ROUND_FAILED: half a second to a second, doubled for each earlier failure in a row, at most 5 minutes.
 * ROUND_SAID: said_ms and up to a quarter more.
 * ROUND_LONG: 2.5 to 5 minutes, because only an operator can help. */
uint64_t wait_round(const struct round_pause *p, uint32_t random);

#endif
