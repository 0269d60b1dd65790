/* Statements of the engine: printed, sent, and what a failing server means. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "clickhouse/engine_internal.h"
#include "clickhouse/members.h"

#define FORMAT " FORMAT RowBinary"

uint64_t engine_number(struct clickhouse_store *s)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    const uint64_t now = (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
    s->number = now > s->number ? now : s->number + 1;
    return s->number;
}

/* What a failing server means for storing and reading. */
static enum profd_status refuse(enum profd_status status, struct profd_error *e)
{
    return status == PROFD_OK || status == PROFD_FULL || status == PROFD_NO_MEMORY
               ? status
               : profd_error_wrap(e, PROFD_BUSY, "store");
}

void engine_begin(struct clickhouse_store *s)
{
    s->statement.size = 0;
    s->statement.failed = false;
}

static void uncount_reply(size_t size)
{
    clickhouse_count_reply(size, false);
}

enum profd_status engine_query_printed(struct clickhouse_store *s, struct row_reader *rows, struct profd_error *e)
{
    uint8_t *bytes;
    size_t size;
    if (s->base.partial) {
        buffer_add_text(&s->statement, " SETTINGS skip_unavailable_shards = 1");
    }
    buffer_add(&s->statement, FORMAT, sizeof FORMAT);
    if (s->statement.failed) {
        return profd_no_memory(e);
    }
    const enum profd_status status = clickhouse_take(s->server, s->statement.data, &bytes, &size, e);
    s->too_large = status == PROFD_TOO_LARGE;
    if (status == PROFD_OK) {
        rows_open(rows, bytes, size);
        clickhouse_count_reply(size, true);
        rows->freed = uncount_reply;
    }
    return refuse(status, e);
}

/* Appends what the format prints. */
__attribute__((format(printf, 2, 0))) static void print(struct buffer *b, const char *format, va_list arguments)
{
    char *text;
    const int n = vasprintf(&text, format, arguments);
    if (n < 0) {
        b->failed = true;
        return;
    }
    buffer_add(b, text, (size_t)n);
    free(text);
}

enum profd_status engine_query(struct clickhouse_store *s, struct row_reader *rows, struct profd_error *e,
                               const char *format, ...)
{
    va_list arguments;
    engine_begin(s);
    va_start(arguments, format);
    print(&s->statement, format, arguments);
    va_end(arguments);
    return engine_query_printed(s, rows, e);
}

enum profd_status engine_query_number(struct clickhouse_store *s, uint64_t *out, struct profd_error *e,
                                      const char *format, ...)
{
    va_list arguments;
    struct row_reader rows;
    engine_begin(s);
    va_start(arguments, format);
    print(&s->statement, format, arguments);
    va_end(arguments);
    enum profd_status status = engine_query_printed(s, &rows, e);
    if (status == PROFD_OK) {
        *out = rows_u64(&rows);
        status = engine_rows_check(&rows, "a number", e);
        if (status == PROFD_OK && rows_more(&rows)) {
            status =
                profd_error_set(e, PROFD_BUSY, "store: the reply of ClickHouse to a query for a number is no number");
        }
        rows_close(&rows);
    }
    return status;
}

enum profd_status engine_rows_check(const struct row_reader *r, const char *what, struct profd_error *e)
{
    return r->cut ? profd_error_set(e, PROFD_BUSY, "store: the reply of ClickHouse to a query for %s is cut off", what)
                  : PROFD_OK;
}

enum profd_status engine_check_complete(struct clickhouse_store *s, struct profd_error *e)
{
    uint64_t salts = 0;
    const enum profd_status status =
        engine_query_number(s, &salts, e, "SELECT toUInt64(count()) FROM state WHERE name = 'salt'");
    return status != PROFD_OK || salts > 0
               ? status
               : profd_error_set(e, PROFD_BUSY,
                                 "store: the tables of this server of ClickHouse are not complete: run \"profctl "
                                 "clickhouse init\" with all servers");
}

enum profd_status engine_find_missing(struct clickhouse_store *s, bool *missing, struct profd_error *e)
{
    const char *cluster = s->address.cluster;
    uint64_t shards = 0, answering = 0;
    enum profd_status status = PROFD_OK;
    if (cluster[0]) {
        status = engine_query_number(
            s, &shards, e, "SELECT toUInt64(uniqExact(shard_num)) FROM system.clusters WHERE cluster = '%s'", cluster);
    }
    if (cluster[0] && status == PROFD_OK) {
        status =
            engine_query_number(s, &answering, e, "SELECT toUInt64(count()) FROM cluster('%s', system, one)", cluster);
    }
    *missing = answering < shards;
    return status;
}

enum profd_status engine_insert(struct clickhouse_store *s, const char *columns, const struct buffer *rows,
                                struct profd_error *e)
{
    char statement[2048];
    if (rows->failed) {
        return profd_no_memory(e);
    }
    if (rows->size == 0) {
        return PROFD_OK;
    }
    const int n = snprintf(statement, sizeof statement, "INSERT INTO %s" FORMAT, columns);
    if (n < 0 || n >= (int)sizeof statement) {
        return profd_error_set(e, PROFD_INTERNAL, "a statement for ClickHouse has %d bytes", n);
    }
    return refuse(s->address.cluster[0] && !engine_is_spread(columns, strcspn(columns, " ("))
                      ? engine_insert_everywhere(s, statement, rows, e)
                      : clickhouse_insert(s->server, statement, rows->data, rows->size, e),
                  e);
}

const char *engine_name_union(const struct clickhouse_store *s, const char *table, char out[ENGINE_UNION_SIZE])
{
    if (s->address.cluster[0]) {
        (void)snprintf(out, ENGINE_UNION_SIZE, "cluster('%s', %s, %s)", s->address.cluster, s->address.database, table);
    } else {
        (void)snprintf(out, ENGINE_UNION_SIZE, "%s", table);
    }
    return out;
}

void engine_put_quoted(struct buffer *b, const char *text)
{
    buffer_add_char(b, '\'');
    for (; *text; text++) {
        if (*text == '\'' || *text == '\\') {
            buffer_add_char(b, '\\');
        }
        buffer_add_char(b, *text);
    }
    buffer_add_char(b, '\'');
}

void engine_put_unhex(struct buffer *b, const void *bytes, size_t n)
{
    buffer_add_text(b, "unhex('");
    for (size_t i = 0; i < n; i++) {
        buffer_add_format(b, "%02x", ((const uint8_t *)bytes)[i]);
    }
    buffer_add_text(b, "')");
}

void engine_put_scope(struct buffer *b, const struct store_scope *scope)
{
    if (scope->all) {
        buffer_add_text(b, "1");
        return;
    }
    buffer_add_format(b, "uid IN (%u", scope->uid);
    for (uint32_t i = 0; i < scope->other_count; i++) {
        buffer_add_format(b, ",%u", scope->others[i]);
    }
    buffer_add_char(b, ')');
}
