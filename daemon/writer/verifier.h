/* Verifies all stored data, a round a day, and at once if an operator asks. On a thread that yields to all others. */
#ifndef PROFD_WRITER_VERIFIER_H
#define PROFD_WRITER_VERIFIER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/buffer.h"
#include "net/work.h"
#include "proto/status.h"
#include "store/store.h"

/* One round of verification: everything stored is added up again and compared, in steps of about 100 ms. */

struct verify {
    struct store_cursor cursor;
    uint64_t steps, uploads; /* done, looked at */
    uint64_t total;          /* uploads to look at, about */
    uint64_t mismatches;
    uint64_t kept; /* of these, sentences in the buffer */
    uint64_t kept_max;
    struct buffer
        sentences; /* each ended by a newline, in the order of discovery; the owner may empty it between steps */
};

/* At most kept_max sentences are kept, the others are counted. */
void verify_init(struct verify *v, uint64_t kept_max);
void verify_done(struct verify *v);

/* Runs the next step, on any handle. cursor.done tells when the round is complete. Statuses of the store are passed on.
 */
enum profd_status verify_step(struct verify *v, struct store *store, struct profd_error *e);

struct verifier;

/* A job of the verifying thread: a round of verification, which is run in steps, or other work that may wait. */
struct verification {
    struct work_item item; /* first; the owner sets uid */
    struct verify verify;
    /* On the thread. NULL: the next step of verify. */
    enum profd_status (*run)(struct verification *v, struct store *store, struct profd_error *e);
    enum profd_status status; /* of the step */
    struct profd_error error;
    void (*done)(struct verification *v); /* on the loop, after each step; or, status STOPPING, instead of it */

    /* the verifier's */
    size_t logged;    /* bytes of sentences that were logged */
    uint64_t counted; /* mismatches that were counted */
};

struct verifier_config {
    struct loop *loop;
    const char *database;                /* path of the database */
    const struct store_archive *archive; /* store_set_archive */
    /* A step met damage or an input/output error: why. On the loop, before the round's own done. */
    void (*failed)(void *context, const char *sentence);
    void *context;
};

enum profd_status verifier_start(const struct verifier_config *config, struct verifier **out, struct profd_error *e);
/* Puts the next step of a round. Returns false if too many wait, or after verifier_stop. */
bool verifier_put(struct verifier *v, struct verification *round);
/* Counts and logs the mismatches that the step has found. Called by done. */
void verifier_note(struct verifier *v, struct verification *round);
bool verifier_is_idle(const struct verifier *v);
bool verifier_is_stopped(const struct verifier *v);
/* Drops the waiting jobs and takes no more. */
void verifier_stop(struct verifier *v);
/* Joins the thread. Accepts NULL. */
void verifier_free(struct verifier *v);

/* Since the start; ended, uploads and round_mismatches are of the latest whole round. */
struct verifier_counts {
    uint64_t mismatches, rounds;
    double ended; /* seconds since the epoch; 0: no round is whole yet */
    uint64_t uploads, round_mismatches;
};
void verifier_get_counts(const struct verifier *v, struct verifier_counts *out);

#endif
