/* How many bytes each user stores. Only sqlite*.c include this. */
#ifndef PROFD_STORE_SQLITE_USERS_H
#define PROFD_STORE_SQLITE_USERS_H

#include "store/sqlite.h"

/* From now on every row that this connection changes is noted. */
void sqlite_users_watch(struct sqlite_store *s);
/* Writes what was noted into table user_bytes, inside the transaction, and forgets it. */
enum profd_status sqlite_users_flush(struct sqlite_store *s, struct profd_error *e);
/* Forgets what was noted: it was undone. */
void sqlite_users_discard(struct sqlite_store *s);

/* Fills in what users store. */
enum profd_status sqlite_users_list(struct sqlite_store *s, struct store_totals *t, struct profd_error *e);

/* Takes an object's bytes, or those of all objects of a build, from the user that alone has sent them (sign −1), or
 * gives them to it (1). Before and after its senders change. */
enum profd_status sqlite_count_object(struct sqlite_store *s, int64_t object, int sign, struct profd_error *e);
enum profd_status sqlite_count_objects_of(struct sqlite_store *s, int64_t build, int sign, struct profd_error *e);

#endif
