/* A client of ClickHouse's HTTP interface: one statement, one reply.
 *
 * A handle belongs to one thread. Certificates are verified, redirections and the environment's proxies are not
 * followed. */
#ifndef PROFD_CLICKHOUSE_CLIENT_H
#define PROFD_CLICKHOUSE_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "clickhouse/address.h"
#include "proto/status.h"

struct clickhouse;

struct clickhouse_limits {
    unsigned connect_ms; /* for the connection, with the TLS handshake */
    unsigned answer_ms;  /* for all of a statement; the server ends a query then, too */
    size_t reply_bytes;  /* a longer reply is refused */
    /* ms of CLOCK_MONOTONIC, when statements end that are one work together; 0: never. Borrowed; NULL: never. */
    const uint64_t *until;
};

/* Prepares for statements to the first of the address's servers that can be connected to, without connecting. ca: file
 * with the certificates of the CAs that are trusted, NULL: the system's. The strings are copied. NO_MEMORY or OK;
 * clickhouse_close frees *out. */
enum profd_status clickhouse_open(const struct clickhouse_address *address, const char *ca,
                                  const struct clickhouse_limits *limits, struct clickhouse **out,
                                  struct profd_error *e);
void clickhouse_close(struct clickhouse *c);

/* Runs a statement and returns all of its reply in *reply, NUL-terminated; the caller frees it. Connections are kept
 * between calls. On failure *reply is unchanged, and a statement that writes may or may not have run: it must be one
 * that may be repeated.
 *
 * UNAVAILABLE: no connection to any server. TIMEOUT, BUSY, FULL: may succeed later. UNTRUSTED: the certificate.
 * UNAUTHORIZED, FORBIDDEN: the user. TOO_LARGE: the reply. PROTOCOL: what answers is not ClickHouse, or the reply does
 * not say where it ends. REFUSED: any other error of the server, with its sentence and number. An error that follows
 * data with status 200 is one. */
enum profd_status clickhouse_ask(struct clickhouse *c, const char *statement, char **reply, struct profd_error *e);

/* All replies that this process is reading, or keeps, are bounded together: what would go beyond is BUSY. A handle
 * counts a reply until its caller has it. That counts it here, if it may be long: when it is kept, and when it is
 * freed.
 */
void clickhouse_count_reply(size_t bytes, bool kept);

/* Statements without a database in their names are about this address's from now on. */
enum profd_status clickhouse_use(struct clickhouse *c, const struct clickhouse_address *address, struct profd_error *e);

/* As clickhouse_ask, of a query of which the reply is bytes; the caller frees them. PROTOCOL: also a reply of text. */
enum profd_status clickhouse_take(struct clickhouse *c, const char *statement, uint8_t **bytes, size_t *size,
                                  struct profd_error *e);
/* Inserts data in the format that the statement names. On OK every shard has stored its part. Otherwise as
 * clickhouse_ask: some of the data may be stored. PROTOCOL: also a reply with text, which is no acknowledgement. */
enum profd_status clickhouse_insert(struct clickhouse *c, const char *statement, const void *data, size_t size,
                                    struct profd_error *e);

#endif
