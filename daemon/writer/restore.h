/* Replaces the stored data by a backup. Offline: the caller holds the lock of the state directory. The backup is copied
 * into the directory under another name and checked there. Only when the copy is complete, checked and synced is it
 * renamed to profd.db.restored; from then on the restore will happen, and the next start completes it if it is
 * interrupted. The old database is kept as profd.db.before-restore-TIME with its write-ahead log. */
#ifndef PROFD_WRITER_RESTORE_H
#define PROFD_WRITER_RESTORE_H

#include <stdbool.h>
#include <stddef.h>

#include "proto/status.h"
#include "store/store.h"

/* Opens the writing handle of a database file: the engine, and how a whole file is checked. */
struct restore_engine {
    /* Judges a file of size bytes by its header. */
    enum profd_status (*judge)(int fd, const char *path, uint64_t size, struct profd_error *e);
    /* Gives the file the checksums that one made by another program lacks. */
    enum profd_status (*seal)(const char *path, struct profd_error *e);
    enum profd_status (*open)(const char *path, struct store **out, struct profd_error *e);
    /* Calls fault with a sentence for everything wrong with the file's structure. */
    enum profd_status (*check)(struct store *s, void (*fault)(void *context, const char *sentence), void *context,
                               struct profd_error *e);
    /* Called last, for a file without fault: it becomes a database of its own, so that no validator of the other fits
     * it. */
    enum profd_status (*renew)(struct store *s, struct profd_error *e);
};

/* Checks the header of file, then copies and checks all of it; holes are not written. complain is called with a
 * sentence for every fault and mismatch. NO_INPUT: it cannot be read. REFUSED: it is not a backup, or it has faults.
 * NEWER; FULL, IO. On any status but OK nothing has changed. */
enum profd_status restore_prepare(const char *state_dir, const char *file, const struct restore_engine *engine,
                                  void (*complain)(void *context, const char *sentence), void *context,
                                  struct profd_error *e);

/* Finishes a restore that was prepared, if there is one: *kept (of size bytes) is the name of what was there before, ""
 * if there was nothing; *restored says whether there was one. */
enum profd_status restore_finish(const char *state_dir, bool *restored, char *kept, size_t size, struct profd_error *e);

#endif
