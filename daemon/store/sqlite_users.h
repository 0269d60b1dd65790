/* How many bytes each user stores. Only sqlite*.c include this. */
#ifndef PROFD_STORE_SQLITE_USERS_H
#define PROFD_STORE_SQLITE_USERS_H

#include "store/sqlite.h"

/* From now on every row that this connection changes is noted. */
void sqlite_users_watch(struct store *s);
/* Removes the rows of a series that SQL_ROLLUP_REMOVE names, and notes their bytes from their lengths. The hook would
 * read all of each row for that, which takes longer than removing it. */
enum profd_status sqlite_users_remove_sums(struct store *s, int64_t series, const struct sqlite_value *which,
                                           size_t count, uint64_t *removed, struct profd_error *e);
/* Writes what was noted into table user_bytes, inside the transaction, and forgets it. */
enum profd_status sqlite_users_flush(struct store *s, struct profd_error *e);
/* Forgets what was noted: it was undone. */
void sqlite_users_discard(struct store *s);

/* The bytes that a user may store, if all users store total and the user own: percent of the limit without the bytes of
 * the others. UINT64_MAX: no limit. */
uint64_t sqlite_share_most(const struct store_share *share, uint64_t own, uint64_t total);
/* Reads the bytes of one user and of all, as they were when the transaction began. */
enum profd_status sqlite_get_use(struct store *s, uint32_t uid, uint64_t *bytes, uint64_t *total,
                                 struct profd_error *e);
/* Takes bytes from what the user may still store; *may is false if it would be exceeded. users: of this transaction,
 * uid → uint64_t. */
enum profd_status sqlite_share_take(struct store *s, struct hashmap *users, uint32_t uid, uint64_t bytes, bool *may,
                                    struct profd_error *e);

/* Fills in what users store. */
enum profd_status sqlite_users_list(struct store *s, struct store_totals *t, struct profd_error *e);

/* Takes an object's bytes, or those of all objects of a build, from the user that alone has sent them (sign −1), or
 * gives them to it (1). Before and after its senders change. */
enum profd_status sqlite_count_object(struct store *s, int64_t object, int sign, struct profd_error *e);
enum profd_status sqlite_count_objects_of(struct store *s, int64_t build, int sign, struct profd_error *e);

#endif
