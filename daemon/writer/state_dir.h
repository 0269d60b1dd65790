/* The state directory: which files are in it, and its lock. */
#ifndef PROFD_WRITER_STATE_DIR_H
#define PROFD_WRITER_STATE_DIR_H

#include <stddef.h>

#include "proto/status.h"

/* Makes the directory if need be and locks it: BUSY when another daemon has it. *lock (the lock file) is closed by the
 * caller, and *directory, too, unless it is −1: not every file system locks directories. The kernel releases the locks
 * with the process. */
enum profd_status state_dir_lock(const char *state_dir, int *lock, int *directory, struct profd_error *e);
/* The path of the lock file, and of the database. TOO_LARGE when it does not fit. */
enum profd_status state_dir_lock_path(const char *state_dir, char *path, size_t size, struct profd_error *e);
enum profd_status state_dir_database_path(const char *state_dir, char *path, size_t size, struct profd_error *e);

#endif
