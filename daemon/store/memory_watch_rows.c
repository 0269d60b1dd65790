/* Counters of the watch list, as in sqlite_watch_rows.c. */
#include <stdlib.h>
#include <string.h>

#include "store/memory.h"

static void remove_row(struct memory_store *s, size_t at)
{
    free(s->watch_rows[at].key);
    free(s->watch_rows[at].document);
    s->watch_row_count--;
    memmove(&s->watch_rows[at], &s->watch_rows[at + 1], (s->watch_row_count - at) * sizeof *s->watch_rows);
}

void memory_remove_watch_rows(struct memory_store *s)
{
    while (s->watch_row_count > 0) {
        remove_row(s, s->watch_row_count - 1);
    }
    free(s->watch_rows);
}

/* The place of a row, or where it would be. */
static size_t find_row(const struct memory_store *s, const char *key, bool *found)
{
    size_t at = 0;
    int order = 1;
    while (at < s->watch_row_count && strcmp(s->watch_rows[at].key, key) < 0) {
        at++;
    }
    if (at < s->watch_row_count) {
        order = strcmp(s->watch_rows[at].key, key);
    }
    *found = order == 0;
    return at;
}

static enum profd_status put_row(struct memory_store *s, const struct store_watch_row *r, struct profd_error *e)
{
    bool found;
    enum profd_status status =
        memory_reserve(&s->watch_rows, s->watch_row_count, &s->watch_row_capacity, 1, sizeof *s->watch_rows, e);
    const size_t at = find_row(s, r->key, &found);
    struct memory_watch_row made = {.changed = r->changed};
    if (status != PROFD_OK) {
        return status;
    }
    if (r->document != NULL) {
        made.key = strdup(r->key);
        made.document = strdup(r->document);
        if (made.key == NULL || made.document == NULL) {
            free(made.key);
            free(made.document);
            return profd_no_memory(e);
        }
    }
    if (found) {
        remove_row(s, at);
    }
    if (r->document != NULL) {
        memmove(&s->watch_rows[at + 1], &s->watch_rows[at], (s->watch_row_count - at) * sizeof *s->watch_rows);
        s->watch_rows[at] = made;
        s->watch_row_count++;
    }
    return PROFD_OK;
}

enum profd_status memory_put_watch_rows(struct store *base, const struct store_watch_row *rows, size_t n,
                                        struct profd_error *e)
{
    enum profd_status status = PROFD_OK;
    for (size_t i = 0; status == PROFD_OK && i < n; i++) {
        status = put_row(memory_self(base), &rows[i], e);
    }
    return status;
}

enum profd_status memory_each_watch_row(struct store *base,
                                        bool (*each)(void *context, const struct store_watch_row *row), void *context,
                                        struct profd_error *e)
{
    const struct memory_store *s = memory_self(base);
    bool more = true;
    (void)e;
    for (size_t i = 0; i < s->watch_row_count && more; i++) {
        const struct memory_watch_row *r = &s->watch_rows[i];
        const struct store_watch_row row = {r->key, r->changed, r->document};
        more = each(context, &row);
    }
    return PROFD_OK;
}
