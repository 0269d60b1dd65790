/* A client of ClickHouse's HTTP interface: one statement, one reply.
 *
 * A handle belongs to one thread. Certificates are verified; redirections and the environment's proxies are not
 * followed. No statement depends on a default of the server that changes what is stored or answered: such settings are
 * sent with each statement. Those that a server does not know are left out, after one look at system.settings. */
#ifndef PROFD_TIER_CLICKHOUSE_H
#define PROFD_TIER_CLICKHOUSE_H

#include "base/clickhouse_address.h"
#include "proto/status.h"
#include "tier/row_binary.h"

struct clickhouse;

struct clickhouse_limits {
    unsigned connect_ms; /* for the connection to one server, with the TLS handshake */
    unsigned answer_ms;  /* for all of a statement on one server, which ends it then, too */
    size_t reply_bytes;  /* a longer reply is refused */
    size_t memory_bytes; /* of the server, for one statement; 0: as its users' settings say */
    /* Asked at least once a second while a statement runs; true cancels it. NULL: it is not asked. */
    bool (*stopped)(void *context);
    void *context;
};

/* Prepares for statements to the first of the address's servers that can be connected to; connects to none yet. With
 * the database "", names in statements need a database. ca: a file with the certificates of trusted CAs, NULL: the
 * system's. The strings are copied. NO_MEMORY or OK; clickhouse_close frees *out. */
enum profd_status clickhouse_open(const struct clickhouse_address *address, const char *ca,
                                  const struct clickhouse_limits *limits, struct clickhouse **out,
                                  struct profd_error *e);
/* Accepts NULL. */
void clickhouse_close(struct clickhouse *c);
/* "https://host:port" of the server that is asked next. */
const char *clickhouse_place(const struct clickhouse *c);

/* Runs a statement and returns all of its reply in *reply, NUL-terminated; the caller frees it. On failure *reply is
 * unchanged, and a statement that writes may or may not have run: it must be one that may be repeated.
 *
 * UNAVAILABLE: no connection to any server, or it broke. TIMEOUT, BUSY, FULL: may succeed later. UNTRUSTED: the
 * certificate. UNAUTHORIZED, FORBIDDEN: the user. TOO_LARGE: the reply. STOPPING: cancelled. PROTOCOL: what answers is
 * not ClickHouse, or the reply does not say where it ends. REFUSED: any other error of the server, with its sentence
 * and number. An error that follows data with status 200 is one, too. */
enum profd_status clickhouse_ask(struct clickhouse *c, const char *statement, char **reply, struct profd_error *e);
/* As clickhouse_ask, of a statement in a buffer, which it ends in any case, without the reply. NO_MEMORY: also if the
 * buffer has failed. */
enum profd_status clickhouse_do(struct clickhouse *c, struct buffer *statement, struct profd_error *e);
/* As clickhouse_ask, of a query that ends with FORMAT RowBinary. The caller ends *reply by rows_close. PROTOCOL: also a
 * reply of another type. */
enum profd_status clickhouse_take(struct clickhouse *c, const char *statement, struct row_reader *reply,
                                  struct profd_error *e);
/* As clickhouse_take, of a query in a buffer, which it ends in any case, and without its FORMAT. NO_MEMORY: also if the
 * buffer has failed. */
enum profd_status clickhouse_read(struct clickhouse *c, struct buffer *statement, struct row_reader *reply,
                                  struct profd_error *e);
/* As clickhouse_take, of a query for one UInt64. */
enum profd_status clickhouse_take_number(struct clickhouse *c, const char *statement, uint64_t *out,
                                         struct profd_error *e);
/* Inserts data in the format that the statement names. On OK every shard has stored its part, with replicas each on at
 * least two. Otherwise as clickhouse_ask: some of the data may be stored. */
enum profd_status clickhouse_insert(struct clickhouse *c, const char *statement, const void *data, size_t size,
                                    struct profd_error *e);
/* As clickhouse_insert, of rows in a buffer, which it ends in any case. NO_MEMORY: also if the buffer has failed. */
enum profd_status clickhouse_write(struct clickhouse *c, const char *statement, struct buffer *rows,
                                   struct profd_error *e);

#endif
