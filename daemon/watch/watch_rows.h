/* The stored rows of the watch list in memory: those that were read, and those that a look has changed. */
#ifndef PROFD_WATCH_WATCH_ROWS_H
#define PROFD_WATCH_WATCH_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/arena.h"
#include "proto/status.h"
#include "render/document.h"
#include "store/store.h"

struct watch_rows {
    struct arena *arena;
    json_t *stored[2];               /* by enum store_watch_kind: key → document */
    struct store_watch_row *changed; /* in the arena */
    uint32_t count, capacity;
};

/* Reads all rows. watch_rows_done ends it in any case. */
enum profd_status watch_rows_read(struct watch_rows *r, struct arena *a, struct store *s, struct profd_error *e);
/* The changed rows stay in the arena. */
void watch_rows_done(struct watch_rows *r);

/* The document of a key; NULL: none. Borrowed. */
json_t *watch_rows_find(const struct watch_rows *r, enum store_watch_kind kind, const char *key);
/* Notes a changed document, and takes the reference; NULL: the row goes. Nothing is noted if the document is as it was.
 * LIMIT if it is too long. */
enum profd_status watch_rows_put(struct watch_rows *r, enum store_watch_kind kind, const char *key, int64_t now,
                                 json_t *document, struct profd_error *e);

#endif
