/* Counts and verdicts of the watch list (watches.h). */
#include <stdlib.h>
#include <string.h>

#include "clickhouse/engine_internal.h"

#define COLUMNS "watch (kind, key, number, changed, document, gone)"
#define BATCH_BYTES (64u << 20)
#define PAGE 2000u /* rows of a reply: with the longest documents 16 MB */

static void put_row(struct buffer *b, const struct store_watch_row *r, uint64_t number)
{
    rows_put_u8(b, (uint8_t)r->kind);
    rows_put_text(b, r->key);
    rows_put_u64(b, number);
    rows_put_i64(b, r->changed);
    rows_put_text(b, r->document ? r->document : "");
    rows_put_u8(b, r->document == NULL);
}

/* The verdicts beyond the limit go: those that changed first. Their rows get the next number, so that a verdict that
 * another daemon stores now stays. */
static enum profd_status trim(struct clickhouse_store *s, struct profd_error *e)
{
    struct row_reader rows;
    struct buffer out;
    struct arena *a = arena_new(0);
    enum profd_status status =
        a ? engine_query(s, &rows, e,
                         "SELECT key, number FROM watch FINAL WHERE kind = %u AND gone = 0 ORDER BY changed DESC, key "
                         "DESC LIMIT %u, 1000000",
                         STORE_WATCH_VERDICT, STORE_VERDICTS_MOST)
          : profd_no_memory(e);
    if (status != PROFD_OK) {
        arena_free(a);
        return status;
    }
    buffer_init(&out, BATCH_BYTES);
    while (rows_more(&rows)) {
        const struct store_watch_row gone = {.kind = STORE_WATCH_VERDICT, .key = rows_copy(&rows, a)};
        const uint64_t number = rows_u64(&rows);
        if (!gone.key) {
            out.failed = true;
            break;
        }
        put_row(&out, &gone, number + 1);
    }
    status = engine_rows_check(&rows, "verdicts", e);
    rows_close(&rows);
    if (status == PROFD_OK) {
        status = engine_insert(s, COLUMNS, &out, e);
    }
    buffer_done(&out);
    arena_free(a);
    return status;
}

enum profd_status engine_put_watch_rows(struct store *base, const struct store_watch_row *list, size_t n,
                                        struct profd_error *e)
{
    struct clickhouse_store *s = engine_self(base);
    struct buffer rows;
    uint64_t greatest = 0;
    bool verdicts = false;
    if (n == 0) {
        return PROFD_OK;
    }
    enum profd_status status = engine_query_number(s, &greatest, e, "SELECT max(number) FROM watch");
    if (status != PROFD_OK) {
        return status;
    }
    engine_saw(s, greatest);
    buffer_init(&rows, BATCH_BYTES);
    for (size_t i = 0; i < n && status == PROFD_OK; i++) {
        put_row(&rows, &list[i], engine_number(s));
        verdicts |= list[i].kind == STORE_WATCH_VERDICT && list[i].document;
        if (rows.size > BATCH_BYTES / 2 || i + 1 == n) {
            status = engine_insert(s, COLUMNS, &rows, e);
            rows.size = 0;
        }
    }
    buffer_done(&rows);
    return status == PROFD_OK && verdicts ? trim(s, e) : status;
}

/* Rows behind the key *last, until each or a page ends it. *last, owned by the caller: the key of the last row; NULL:
 * there are no more. */
static enum profd_status read_page(struct clickhouse_store *s, enum store_watch_kind kind, char **last,
                                   bool (*each)(void *context, const struct store_watch_row *row), void *context,
                                   struct profd_error *e)
{
    struct row_reader rows;
    unsigned n = 0;
    bool more = true;
    engine_begin(s);
    buffer_add_format(&s->statement, "SELECT key, changed, document FROM watch FINAL WHERE kind = %u AND gone = 0",
                      kind);
    if (*last) {
        buffer_add_text(&s->statement, " AND key > ");
        engine_put_quoted(&s->statement, *last);
    }
    buffer_add_format(&s->statement, " ORDER BY key LIMIT %u", PAGE);
    struct arena *a = arena_new(0);
    enum profd_status status = a ? engine_query_printed(s, &rows, e) : profd_no_memory(e);
    if (status != PROFD_OK) {
        arena_free(a);
        return status;
    }
    for (; more && status == PROFD_OK && rows_more(&rows); n++) {
        struct store_watch_row row = {.kind = kind, .key = rows_copy(&rows, a)};
        row.changed = rows_i64(&rows);
        row.document = rows_copy(&rows, a);
        status = engine_rows_check(&rows, "the watch list", e);
        if (status == PROFD_OK && n + 1 == PAGE && row.key) {
            free(*last);
            *last = strdup(row.key);
        }
        if (status == PROFD_OK && (!row.key || !row.document || (n + 1 == PAGE && !*last))) {
            status = profd_no_memory(e);
        }
        more = status == PROFD_OK && each(context, &row);
    }
    if (!more || n < PAGE) {
        free(*last);
        *last = NULL;
    }
    rows_close(&rows);
    arena_free(a);
    return status;
}

enum profd_status engine_each_watch_row(struct store *base, enum store_watch_kind kind,
                                        bool (*each)(void *context, const struct store_watch_row *row), void *context,
                                        struct profd_error *e)
{
    char *last = NULL;
    enum profd_status status = PROFD_OK;
    do {
        status = read_page(engine_self(base), kind, &last, each, context, e);
    } while (status == PROFD_OK && last);
    free(last);
    return status;
}
