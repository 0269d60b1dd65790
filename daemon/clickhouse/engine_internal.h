/* What the files of the engine share. */
#ifndef PROFD_CLICKHOUSE_ENGINE_INTERNAL_H
#define PROFD_CLICKHOUSE_ENGINE_INTERNAL_H

#include "clickhouse/client.h"
#include "clickhouse/engine.h"
#include "clickhouse/rows.h"
#include "core/buffer.h"
#include "core/hashmap.h"
#include "store/store_ops.h"

#define ENGINE_SERIES_SIZE 16
#define ENGINE_HOUR INT64_C(3600000000000) /* ns */
#define ENGINE_DAY (24 * ENGINE_HOUR)

struct clickhouse_store {
    struct store base;
    struct clickhouse_address address;
    struct clickhouse *server;
    uint64_t writer;         /* random: names the counters of this handle */
    uint64_t number;         /* last number given */
    struct buffer statement; /* that is being printed */
    /* Caches; a handle without them does the same, slower. */
    struct hashmap series;   /* hashes of series that this handle has inserted */
    struct hashmap changes;  /* (series, hour, generation) → count of table change */
    struct hashmap versions; /* (build, uid) → count of table version */
};

static inline struct clickhouse_store *engine_self(struct store *s)
{
    return (struct clickhouse_store *)s;
}

/* A number of table columns `number`: nanoseconds by the clock, greater than the one before. */
uint64_t engine_number(struct clickhouse_store *s);

/* Runs a SELECT, printed from the format and with " FORMAT RowBinary" behind it, and opens its rows; rows_close frees
 * them. Table names need no database. Any failure of the server but FULL and NO_MEMORY is BUSY, "store: …": what the
 * server has stays unknown. */
enum profd_status engine_query(struct clickhouse_store *s, struct row_reader *rows, struct profd_error *e,
                               const char *format, ...) __attribute__((format(printf, 4, 5)));
/* The same of what was appended to s->statement since engine_begin. */
void engine_begin(struct clickhouse_store *s);
enum profd_status engine_query_printed(struct clickhouse_store *s, struct row_reader *rows, struct profd_error *e);
/* A SELECT for one UInt64. */
enum profd_status engine_query_number(struct clickhouse_store *s, uint64_t *out, struct profd_error *e,
                                      const char *format, ...) __attribute__((format(printf, 4, 5)));
/* What the reply lacks if r->cut: PROTOCOL, of which a reader of `what` can tell what was asked. Else OK. */
enum profd_status engine_rows_check(const struct row_reader *r, const char *what, struct profd_error *e);

/* Inserts rows of RowBinary into columns: "table (a, b)". Nothing if there are none. On OK every shard, and with
 * replicas a majority of each shard's, has stored its part. */
enum profd_status engine_insert(struct clickhouse_store *s, const char *columns, const struct buffer *rows,
                                struct profd_error *e);
/* Runs another statement, on every shard for itself if everywhere: with $local(T) for a table's name. */
enum profd_status engine_run(struct clickhouse_store *s, struct profd_error *e, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Literals of SQL: a quoted text, unhex('…'), and a condition on column uid that holds what the scope has. */
void engine_put_quoted(struct buffer *b, const char *text);
void engine_put_unhex(struct buffer *b, const void *bytes, size_t n);
void engine_put_scope(struct buffer *b, const struct store_scope *scope);

/* Adds to the version (table version) of these builds for readers of the uid, and of lists. Called after what answers
 * say was changed, before that is acknowledged. builds may have one more than once. */
struct engine_touch {
    const char *build; /* borrowed */
    uint32_t uid;
};
enum profd_status engine_touch(struct clickhouse_store *s, const struct engine_touch *list, size_t n,
                               struct profd_error *e);

/* The verbs of store.h, engine_NAME, made from the list in store_ops.h. */
#define ENGINE_VERB(name, parameters, arguments) enum profd_status engine_##name parameters;
STORE_VERBS(ENGINE_VERB)
#undef ENGINE_VERB

#endif
