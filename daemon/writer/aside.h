/* Puts the database aside under a dated name. The caller holds the lock of the state directory, and no database is
 * open. */
#ifndef PROFD_WRITER_ASIDE_H
#define PROFD_WRITER_ASIDE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "proto/status.h"

#define ASIDE_DATABASE "profd.db"
#define ASIDE_DAMAGED "damaged"
#define ASIDE_LOST "lost"
#define ASIDE_NAME_SIZE 128

/* Renames the database of the directory, and its log, to profd.db.WHY-2026-11-22T15-40-00Z, with .2, .3, … appended if
 * that name or that of its log exists; removes its index. Nothing is overwritten. name receives the new name, even if
 * there was no database. */
enum profd_status aside_move(int dir, const char *why, time_t when, char name[ASIDE_NAME_SIZE], struct profd_error *e);

/* Finishes an interrupted move of the database with this inode: moves the log that was left behind to the database.
 * *moved is set if there was something to move. name is the database's, "" if no file of the directory has this inode.
 */
enum profd_status aside_finish(int dir, uint64_t inode, bool *moved, char name[ASIDE_NAME_SIZE], struct profd_error *e);
/* Notes in a new file profd.db.lost-TIME that something is missing from the database. log: the log is not the
 * database's own, and is kept as profd.db.lost-TIME-wal. */
enum profd_status aside_note(int dir, const char *sentence, bool log, time_t when, char name[ASIDE_NAME_SIZE],
                             struct profd_error *e);

/* Returns whether it is the name of a damaged database that was put aside. */
bool aside_is_damaged(const char *name);

/* Returns the number of damaged databases that were put aside in the directory, and of notes. latest gets the name of
 * the latest one, "" if there is none. */
size_t aside_count_damaged(const char *state_dir, char latest[ASIDE_NAME_SIZE]);

#endif
