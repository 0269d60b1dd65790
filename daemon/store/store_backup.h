/* Backup, on the writing handle: a copy that is whole at the moment the last step returns, while uploads go on. */
#ifndef PROFD_STORE_STORE_BACKUP_H
#define PROFD_STORE_STORE_BACKUP_H

#include <stdint.h>

#include "proto/status.h"
#include "store/store.h"

struct store_backup;
/* It ends before the store is closed. path must not exist (CANT_CREATE); the file, of mode 0600, appears under its name
 * when the copy is whole and synced. */
enum profd_status store_backup_begin(struct store *s, const char *path, struct store_backup **out,
                                     struct profd_error *e);
/* Copies about bytes more. *left: bytes to go, 0 when done. */
enum profd_status store_backup_step(struct store_backup *b, uint64_t bytes, uint64_t *left, struct profd_error *e);
/* Ends it; an unfinished file is removed. Accepts NULL. */
void store_backup_end(struct store_backup *b);

#endif
