/* Copies the store in steps while uploads continue. The copy is an unlinked file, so nothing remains if the copy is
 * interrupted. */
#ifndef PROFD_WRITER_BACKUP_H
#define PROFD_WRITER_BACKUP_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/status.h"
#include "store/store.h"

struct backup {
    char path[4096];
    struct store_backup *running; /* NULL: not begun, or done */
    uint64_t done, total;         /* bytes */
    int fd;                       /* the whole copy, open for reading, once done equals total; −1 before */
};

/* Prepares a backup and makes no file. The copy will be in this directory while it is made. number must differ from
 * that of every other backup of this process. TOO_LARGE: the path is too long. */
enum profd_status backup_init(struct backup *b, const char *directory, unsigned number, struct profd_error *e);

/* Checks that a copy of the database fits beside it in this directory, with space to spare for uploads. FULL states how
 * much is free. */
enum profd_status backup_judge_space(const char *directory, struct profd_error *e);

/* Copies about `bytes` more bytes, on the writing handle. *whole is set when the copy in fd is complete. A failed
 * backup cannot be continued. */
enum profd_status backup_step(struct backup *b, struct store *store, uint64_t bytes, bool *whole,
                              struct profd_error *e);

/* Ends the backup on the writing handle's thread, removes the copy and closes fd. May be called more than once. */
void backup_done(struct backup *b);

/* Removes the files that interrupted backups have left in the directory. The caller must hold the lock of the
 * directory. */
void backup_clean(const char *directory);

#endif
