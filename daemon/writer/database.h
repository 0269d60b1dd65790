/* Opens the database for writing. One that is damaged, and ours, is put aside for a new one (DECISIONS 31). */
#ifndef PROFD_WRITER_DATABASE_H
#define PROFD_WRITER_DATABASE_H

#include <stdbool.h>
#include <stddef.h>

#include "proto/status.h"
#include "store/store.h"
#include "writer/aside.h"

/* The state directory: which files are in it, and its lock. */

/* Makes the directory if need be and locks it: BUSY when another daemon has it. *lock (the lock file) is closed by the
 * caller, and *directory, too, unless it is −1: not every file system locks directories. The kernel releases the locks
 * with the process. */
enum profd_status state_dir_lock(const char *state_dir, int *lock, int *directory, struct profd_error *e);
/* The path of the lock file, and of the database. TOO_LARGE when it does not fit. */
enum profd_status state_dir_lock_path(const char *state_dir, char *path, size_t size, struct profd_error *e);
enum profd_status state_dir_database_path(const char *state_dir, char *path, size_t size, struct profd_error *e);

/* Every writing verb of the store looks at its files. While nothing is written, this does every few seconds: /readyz of
 * an idle daemon must say that its database was removed. */

struct file_check;
struct loop;
struct writer;

/* state_dir must outlive it. */
enum profd_status file_check_start(struct loop *loop, struct writer *writer, const char *state_dir,
                                   struct file_check **out, struct profd_error *e);
/* Puts no further job. */
void file_check_stop(struct file_check *c);
/* After the writer. Accepts NULL. */
void file_check_free(struct file_check *c);

/* How many databases were put aside in the state directory because they were damaged, at the latest look; *latest is
 * the name of the latest, "" if there is none, valid until the loop goes on. */
size_t file_check_count_damaged(const struct file_check *c, const char **latest);

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
