/* What the watch list has counted: part of the contract of store.h, which includes this. */
#ifndef PROFD_STORE_WATCHES_H
#define PROFD_STORE_WATCHES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/status.h"

#define STORE_WATCH_DOCUMENT 8192u /* bytes */

/* The store does not interpret keys and documents. */
struct store_watch_row {
    const char *key;
    int64_t changed;      /* ns */
    const char *document; /* JSON; NULL, to store_put_watch_rows only: the row is removed */
};

struct store;

/* Stores or replaces n rows by key, in one transaction. A document has at most STORE_WATCH_DOCUMENT bytes.
 * Neither deletes nor retention remove rows. On the writing handle. */
enum profd_status store_put_watch_rows(struct store *s, const struct store_watch_row *rows, size_t n,
                                       struct profd_error *e);
/* On any handle: calls each with every row, by ascending key; what it is given is borrowed until it
 * returns. each returns false to stop. */
enum profd_status store_each_watch_row(struct store *s, bool (*each)(void *context, const struct store_watch_row *row),
                                       void *context, struct profd_error *e);

#endif
