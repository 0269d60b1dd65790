/* What rows of an older schema version lack is filled in while uploads go on. Only sqlite*.c include this.
 *
 * How to add a step: a function of the type below in a file of its own (sqlite_migrate_NAME.c), declared here,
 * and one row in the table of sqlite_migrate.c. Rows written by this version have the new columns from the beginning;
 * the step brings up the older ones. Both may meet in one row: a slice must leave alone what it finds filled in. */
#ifndef PROFD_STORE_SQLITE_MIGRATE_H
#define PROFD_STORE_SQLITE_MIGRATE_H

#include "store/sqlite_rollup.h"

/* Input and output of a slice. */
struct sqlite_migrating {
    struct sqlite_budget budget; /* stop soon after it is spent; at least one row has to be done */
    int64_t
        cursor;    /* in: where to begin, 0 at first; out: where the next slice begins. Its meaning is the step's own */
    uint64_t rows; /* out: how many rows this slice looked at */
    bool more;     /* out: call again; false at first */
};

/* Does one slice in the open write transaction (s->state is loaded, and saved afterwards if it changed). A row that
 * cannot be decoded is skipped; verification reports it. A failed slice is rolled back and repeated later. */
typedef enum profd_status sqlite_migration_slice(struct sqlite_store *s, struct sqlite_migrating *m,
                                                 struct profd_error *e);

/* The steps. Live processes' uploads of an older version get slices: */
sqlite_migration_slice sqlite_slice_migrate;
/* What an older version stored is charged to its users: */
sqlite_migration_slice sqlite_migrate_users;
/* The ledger of an older version learns the ticks of stacks: */
sqlite_migration_slice sqlite_migrate_stacks;

/* Notes which steps a database of this version needs. Inside the transaction that brings it to SQLITE_SCHEMA_VERSION.
 */
enum profd_status sqlite_migration_enter(sqlite3 *db, int64_t version, struct profd_error *e);

#endif
