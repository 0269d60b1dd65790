/* Puts a backup in the place of what is stored. Offline: the caller holds the lock of the state directory.
 *
 * The copy is made and judged beside the database under another name; only when it is whole, checked and synced it gets
 * the name profd.db.restored, and from then on the restore will happen: whoever starts next finishes it. What was there
 * is kept as profd.db.before-restore-TIME with its write-ahead log. */
#ifndef PROFD_ADMIN_RESTORE_H
#define PROFD_ADMIN_RESTORE_H

#include <stdbool.h>
#include <stddef.h>

#include "proto/status.h"
#include "store/store.h"

/* Opens the writing handle of a database file: the engine, and how a whole file is checked. */
struct restore_engine {
    enum profd_status (*open)(const char *path, struct store **out, struct profd_error *e);
    /* Calls fault with a sentence for everything wrong with the file's structure. */
    enum profd_status (*check)(struct store *s, void (*fault)(void *context, const char *sentence), void *context,
                               struct profd_error *e);
};

/* Copies and judges file; complain is called with a sentence for every fault and mismatch that is found. NO_INPUT: it
 * cannot be read; REFUSED: it is not a backup as profctl makes them; NEWER; DAMAGED: faults were found; FULL, IO. After
 * anything but OK all is as before. */
enum profd_status restore_prepare(const char *state_dir, const char *file, const struct restore_engine *engine,
                                  void (*complain)(void *context, const char *sentence), void *context,
                                  struct profd_error *e);

/* Finishes a restore that was prepared, if there is one: *kept (of size bytes) is the name of what was there before, ""
 * if there was nothing; *restored says whether there was one. */
enum profd_status restore_finish(const char *state_dir, bool *restored, char *kept, size_t size, struct profd_error *e);

#endif
