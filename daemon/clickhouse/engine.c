#include "clickhouse/engine.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "clickhouse/engine_internal.h"
#include "clickhouse/migrate.h"
#include "proto/hex.h"

#define REPLY_BYTES (512u << 20)
#define STATEMENT_BYTES (64u << 20)
#define CONNECT_MS 3000
#define ANSWER_MS 20000 /* of storing, too: the writer does nothing else meanwhile, and its watchdog waits */
#define CACHE_BYTES (32u << 20)
#define AWAITED_BYTES (96u << 20)
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

enum profd_status engine_query_printed(struct clickhouse_store *s, struct row_reader *rows, struct profd_error *e)
{
    uint8_t *bytes;
    size_t size;
    buffer_add(&s->statement, FORMAT, sizeof FORMAT);
    if (s->statement.failed) {
        return profd_no_memory(e);
    }
    const enum profd_status status = clickhouse_take(s->server, s->statement.data, &bytes, &size, e);
    if (status == PROFD_OK) {
        rows_open(rows, bytes, size);
    }
    return refuse(status, e);
}

/* Appends what the format prints. */
static void print(struct buffer *b, const char *format, va_list arguments)
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
        rows_close(&rows);
    }
    return status;
}

enum profd_status engine_rows_check(const struct row_reader *r, const char *what, struct profd_error *e)
{
    return r->cut ? profd_error_set(e, PROFD_BUSY, "store: the reply of ClickHouse to a query for %s is cut off", what)
                  : PROFD_OK;
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
    return refuse(clickhouse_insert(s->server, statement, rows->data, rows->size, e), e);
}

enum profd_status engine_run(struct clickhouse_store *s, struct profd_error *e, const char *format, ...)
{
    va_list arguments;
    char *reply = NULL;
    engine_begin(s);
    va_start(arguments, format);
    print(&s->statement, format, arguments);
    va_end(arguments);
    buffer_add(&s->statement, "", 1);
    if (s->statement.failed) {
        return profd_no_memory(e);
    }
    const enum profd_status status = clickhouse_ask(s->server, s->statement.data, &reply, e);
    free(reply);
    return refuse(status, e);
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

static void engine_close(struct store *base)
{
    struct clickhouse_store *s = engine_self(base);
    clickhouse_close(s->server);
    buffer_done(&s->statement);
    hashmap_clear(&s->series);
    hashmap_clear(&s->changes);
    hashmap_clear(&s->versions);
    hashmap_clear(&s->tenants);
    hashmap_clear(&s->awaited);
    explicit_bzero(&s->address, sizeof s->address);
    free(s);
}

#define ENGINE_VERB(name, parameters, arguments) .name = engine_##name,
static const struct store_ops engine_ops = {.close = engine_close, STORE_VERBS(ENGINE_VERB)};
#undef ENGINE_VERB

enum profd_status store_clickhouse_open(const struct clickhouse_address *address, const char *ca, bool writable,
                                        struct store **out, struct profd_error *e)
{
    static const struct clickhouse_limits limits = {
        .connect_ms = CONNECT_MS, .answer_ms = ANSWER_MS, .reply_bytes = REPLY_BYTES};
    struct clickhouse_store *s = calloc(1, sizeof *s);
    if (!s) {
        return profd_no_memory(e);
    }
    s->base = (struct store){.ops = &engine_ops, .writable = writable};
    s->address = *address;
    buffer_init(&s->statement, STATEMENT_BYTES);
    hashmap_init(&s->series, CACHE_BYTES);
    hashmap_init(&s->changes, 0);
    hashmap_init(&s->versions, 0);
    hashmap_init(&s->tenants, 0);
    hashmap_init(&s->awaited, AWAITED_BYTES);
    if (getrandom(&s->writer, sizeof s->writer, 0) != (ssize_t)sizeof s->writer) {
        engine_close(&s->base);
        return profd_error_set(e, PROFD_INTERNAL, "no random numbers");
    }
    enum profd_status status = clickhouse_open(address, ca, &limits, &s->server, e);
    if (status == PROFD_OK) {
        status = clickhouse_use(s->server, address, e);
    }
    if (status != PROFD_OK) {
        engine_close(&s->base);
        return status;
    }
    *out = &s->base;
    return PROFD_OK;
}
