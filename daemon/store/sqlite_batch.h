/* What one transaction of uploads and harvests adds to sums and lists. Only sqlite*.c include this. */
#ifndef PROFD_STORE_SQLITE_BATCH_H
#define PROFD_STORE_SQLITE_BATCH_H

#include "store/sqlite_sums.h"

struct sqlite_batch {
    struct store *s;
    struct hashmap shares; /* user → bytes that it may still store (sqlite_users.h) */
    struct buffer touched; /* of these series, reports change: a JSON array */
    struct hashmap hours;  /* series, hour → struct sqlite_sums: what is added */
    bool changed;
};

void sqlite_batch_init(struct sqlite_batch *b, struct store *s);
void sqlite_batch_done(struct sqlite_batch *b);
/* Gives the next number to what is stored now. */
int64_t sqlite_batch_number(struct sqlite_batch *b);
/* Adds what a row of table upload holds, or has gained, to all sums: of the hour in which its window ends, its series
 * and everything, and to what is forwarded. one: how much of u is new; u->counts are these counts. */
enum profd_status sqlite_batch_add(struct sqlite_batch *b, const struct store_upload *u,
                                   const struct sqlite_series *series, const struct sqlite_sums *one,
                                   struct profd_error *e);
/* Writes all of it. */
enum profd_status sqlite_batch_flush(struct sqlite_batch *b, struct profd_error *e);

#endif
