/* Opens the database for writing. One that is damaged, and ours, is put aside for a new one (DECISIONS 31). */
#ifndef PROFD_WRITER_DATABASE_H
#define PROFD_WRITER_DATABASE_H

#include <stdbool.h>

#include "proto/status.h"
#include "store/store.h"

/* The state directory is locked by lock_fd, which remembers which file was this daemon's database, and whether damage
 * was met in it: then the whole file is read first. As store_sqlite_open_writer otherwise. What was put aside is
 * logged.
 * *salt: for store_set_salt of every handle that gives epochs. It is not 0 if the database may not be the one that was
 * closed last, and could not be given a new salt: the disk is full, or another program holds the database. */
enum profd_status database_open(const char *state_dir, int lock_fd, struct store **out, uint64_t *salt,
                                struct profd_error *e);
/* Nothing more is committed: notes what is stored, so that the next start can say if that is gone. Before store_close.
 * salt: of database_open. */
void database_note_end(const char *state_dir, int lock_fd, struct store *store, uint64_t salt);
/* Notes that damage was met in the database that is open. unwritable: nothing can be stored in it any more. */
void database_mark_damaged(const char *state_dir, int lock_fd, bool unwritable);

#endif
