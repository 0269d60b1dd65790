/* Comparing what is stored with what the sums say. Only sqlite_verify*.c include this. */
#ifndef PROFD_STORE_SQLITE_VERIFY_H
#define PROFD_STORE_SQLITE_VERIFY_H

#include "store/sqlite_rollup.h"

struct sqlite_verifying {
    struct store *s;
    struct arena *arena; /* of one piece of work */
    void (*mismatch)(void *context, const char *sentence);
    void *context;
    uint64_t uploads; /* looked at */
};

/* --- sqlite_verify_mismatch.c */

/* Reports a difference. */
void sqlite_verify_tell(struct sqlite_verifying *v, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Says that what is called name is x in one place and y in another, if it is. */
void sqlite_verify_equal(struct sqlite_verifying *v, const char *where, const char *name, const char *in_one,
                         uint64_t x, const char *in_other, uint64_t y);
/* Likewise of three sums; one that stopped is not compared. */
void sqlite_verify_amounts(struct sqlite_verifying *v, const char *where, const char *in_one,
                           const struct store_amount *x, const char *in_other, const struct store_amount *y);
/* A sum's row, decoded. *found is false, and a mismatch is reported, if it cannot be read. */
enum profd_status sqlite_verify_load(struct sqlite_verifying *v, const struct sqlite_identity *series, int level,
                                     int64_t at, struct folded *row, bool *found, struct profd_error *e);

/* --- sqlite_verify_pyramid.c, sqlite_verify_instance.c, sqlite_verify_users.c, sqlite_verify_round.c */

/* The day's row is the sum of its folded hours; the row of all time that of the folded days. */
enum profd_status sqlite_verify_day(struct sqlite_verifying *v, const struct sqlite_identity *series, int64_t day,
                                    struct profd_error *e);
enum profd_status sqlite_verify_all(struct sqlite_verifying *v, const struct sqlite_identity *series,
                                    struct profd_error *e);
/* Live processes and their snapshots. */
enum profd_status sqlite_verify_instances(struct sqlite_verifying *v, struct profd_error *e);
/* What users are charged with is what their rows weigh. O(series + sums), at the end of a round. */
enum profd_status sqlite_verify_users(struct sqlite_verifying *v, struct profd_error *e);
/* What is forwarded: every segment holds what its row says, and together with what was acknowledged and withdrawn they
 * are what was accepted. */
enum profd_status sqlite_verify_segments(struct sqlite_verifying *v, struct profd_error *e);
/* What hosts have sent: the sums of the arrivals' marks are what was counted, and that is what the series of hosts hold
 * and what was removed of them. */
enum profd_status sqlite_verify_arrivals(struct sqlite_verifying *v, struct profd_error *e);
/* The totals, the lists, the live processes, what is forwarded, what hosts have sent, and rows that belong to nothing.
 */
enum profd_status sqlite_verify_round(struct sqlite_verifying *v, struct profd_error *e);

#endif
