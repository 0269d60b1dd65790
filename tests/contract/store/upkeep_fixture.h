/* Uploads with real counts, and what is asked of them after upkeep. */
#ifndef PROFD_TESTS_STORE_UPKEEP_FIXTURE_H
#define PROFD_TESTS_STORE_UPKEEP_FIXTURE_H

#include "tests/contract/store/fixture.h"

#define DAY (24 * HOUR)
#define MIDNIGHT (NOON / DAY * DAY)

/* An upload as make_upload's whose numbers are those of its counts: ticks of one histogram and calls of one arc, which
 * stands for its number n. All ticks, n + 1, have stacks. Freed by put_counted. */
void make_counted(struct made *m, uint32_t uid, unsigned sender, uint32_t sequence, int64_t end, uint64_t n);
enum store_outcome put_counted(struct fixture *f, struct made *m);

/* Sums over what matches, raw and rolled alike. */
struct seen {
    uint64_t rows, rolled, uploads, processes, ticks, calls, hosts;
    int64_t first, last;
    uint32_t inexact;
    uint64_t arcs;    /* of all rows */
    uint64_t stacks;  /* ticks of stacks, of all rows */
    uint64_t commits; /* Σ of the rows' */
    struct random_groups groups;
};
struct seen look(struct fixture *f, struct store_scope scope, const struct store_filter *filter);
struct seen look_window(struct fixture *f, int64_t since, int64_t until);

/* Until there is nothing more to do. Returns the uploads of all calls. */
uint64_t compact_all(struct fixture *f, int64_t raw_age, uint64_t raw_bytes, int64_t now);
uint64_t retire_all(struct fixture *f, int64_t keep_age, uint64_t keep_bytes, int64_t now);
/* A whole round finds nothing. */
void expect_clean(struct fixture *f);
/* Sentences of a whole round, one after the other. */
const char *verify_all(struct fixture *f);

#endif
