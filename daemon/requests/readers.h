/* Which readers there are (store/readers.h), for HTTP: bearer tokens, and the names that a proxy gives. The list is
 * that of the database; it is replaced when a reader is added or removed, so that the next request knows. On the
 * loop's thread, if nothing else is said. */
#ifndef PROFD_REQUESTS_READERS_H
#define PROFD_REQUESTS_READERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net/http.h"
#include "proto/status.h"
#include "store/store.h"

struct reader_list {
    struct store_reader *items;
    size_t count;
};

struct readers {
    struct reader_list list;
    bool has_proxy; /* a proxy of this user may name readers */
    uint32_t proxy_user;
};

/* Reads all readers, on the thread of the handle. The caller frees items. On failure the list is empty. */
enum profd_status readers_read(struct store *store, struct reader_list *out, struct profd_error *e);
/* Takes over the list. */
void readers_replace(struct readers *all, struct reader_list *list);
void readers_done(struct readers *all);

/* http_admit; the context is a struct readers. O(readers). */
int readers_admit(void *context, const struct http_credentials *c, uint64_t *reader, struct profd_error *e);
/* The reader of this number; NULL: there is none. Borrowed until the list is replaced. */
const struct store_reader *readers_find(const struct readers *all, uint64_t id);
/* What it may see. */
void readers_get_scope(const struct store_reader *reader, struct store_scope *out);

#endif
