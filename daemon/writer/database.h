/* Opens the database for writing. A damaged database of profd is put aside for a new one. */
#ifndef PROFD_WRITER_DATABASE_H
#define PROFD_WRITER_DATABASE_H

#include "store/store.h"
#include "writer/aside.h"

/* The state directory: its files and its lock. */

/* Makes the directory if it is missing, and locks it. BUSY if another daemon has locked it. The caller closes *lock,
 * the lock file, and *directory, which may be −1. The kernel releases the locks when the process ends. */
enum profd_status state_dir_lock(const char *state_dir, int *lock, int *directory, struct profd_error *e);
/* Write the path of the lock file, or of the database. TOO_LARGE if it does not fit. */
enum profd_status state_dir_lock_path(const char *state_dir, char *path, size_t size, struct profd_error *e);
enum profd_status state_dir_database_path(const char *state_dir, char *path, size_t size, struct profd_error *e);

/* Every writing verb of the store checks the store's files. While nothing is written, this does it every few seconds,
 * so that /readyz of an idle daemon reports a removed database. */

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

/* Returns the number of damaged databases that were put aside in the state directory, at the latest look. *latest is
 * the name of the latest one, "" if there is none, valid until the loop continues. */
size_t file_check_count_damaged(const struct file_check *c, const char **latest);

/* Opens the database of the state directory, or makes it; statuses as of store_sqlite_open_writer. lock_fd is the lock
 * file, which records which file was this daemon's database, and whether damage was found in it: then the whole file is
 * read first. A database that is put aside is logged.
 * *salt is for store_set_salt of every handle that gives epochs. It is not 0 if the database may differ from the one
 * that was closed last, and no new salt could be stored in it, because the disk is full or another program has locked
 * the database. */
enum profd_status database_open(const char *state_dir, int lock_fd, struct store **out, uint64_t *salt,
                                struct profd_error *e);
/* Records the state of the store, so that the next start can tell whether something is missing. After the last commit,
 * before store_close. salt: of database_open. */
void database_note_end(const char *state_dir, int lock_fd, struct store *store, uint64_t salt);
/* Records damage of the open database. unwritable: nothing can be stored in it any more. */
void database_mark_damaged(const char *state_dir, int lock_fd, bool unwritable);

#endif
