#include "watch/watch_rows.h"

#include <string.h>

static bool take_row(void *context, const struct store_watch_row *row)
{
    json_t *document = json_loads(row->document, 0, NULL);
    return document == NULL || json_object_set_new(context, row->key, document) == 0;
}

enum profd_status watch_rows_read(struct watch_rows *r, struct arena *a, struct store *s, struct profd_error *e)
{
    enum profd_status status = PROFD_OK;
    *r = (struct watch_rows){.arena = a, .stored = {json_object(), json_object()}};
    for (int kind = 0; status == PROFD_OK && kind < 2; kind++) {
        status = r->stored[kind] == NULL
                     ? profd_no_memory(e)
                     : store_each_watch_row(s, (enum store_watch_kind)kind, take_row, r->stored[kind], e);
    }
    return status;
}

void watch_rows_done(struct watch_rows *r)
{
    json_decref(r->stored[0]);
    json_decref(r->stored[1]);
}

json_t *watch_rows_find(const struct watch_rows *r, enum store_watch_kind kind, const char *key)
{
    return json_object_get(r->stored[kind], key);
}

static enum profd_status add_row(struct watch_rows *r, const struct store_watch_row *row, struct profd_error *e)
{
    struct store_watch_row *rows = arena_extend(r->arena, r->changed, r->count, &r->capacity, sizeof *rows);
    if (rows == NULL || row->key == NULL) {
        return profd_no_memory(e);
    }
    r->changed = rows;
    rows[r->count++] = *row;
    return PROFD_OK;
}

enum profd_status watch_rows_put(struct watch_rows *r, enum store_watch_kind kind, const char *key, int64_t now,
                                 json_t *document, struct profd_error *e)
{
    struct store_watch_row row = {.kind = kind, .key = arena_copy(r->arena, key, strlen(key)), .changed = now};
    struct buffer text;
    if (document == NULL) {
        return add_row(r, &row, e);
    }
    if (json_equal(document, watch_rows_find(r, kind, key))) {
        json_decref(document);
        return PROFD_OK;
    }
    json_incref(document);
    const bool kept = json_object_set_new(r->stored[kind], key, document) == 0; /* for later questions of this look */
    buffer_init(&text, STORE_WATCH_DOCUMENT);
    document_write(document, &text);
    enum profd_status status = !kept         ? profd_no_memory(e)
                               : text.failed ? profd_error_set(e, PROFD_LIMIT, "a row of the watch list is too long")
                                             : PROFD_OK;
    if (status == PROFD_OK) {
        row.document = arena_copy(r->arena, text.data, text.size);
        status = row.document != NULL ? add_row(r, &row, e) : profd_no_memory(e);
    }
    buffer_done(&text);
    return status;
}
