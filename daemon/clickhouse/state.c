#include "clickhouse/state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "clickhouse/rows.h"

#define INCARNATION_BYTES 16
#define SALT_BYTES 8

static void put_value(struct buffer *rows, const char *name, const void *value, size_t n)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    rows_put_text(rows, name);
    rows_put_u64(rows, (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec);
    rows_put_bytes(rows, value, n);
}

/* Inserts rows, and frees them. */
static enum profd_status insert(struct clickhouse *c, const struct clickhouse_address *a, struct buffer *rows,
                                struct profd_error *e)
{
    char statement[64 + CLICKHOUSE_NAME_MAX];
    (void)snprintf(statement, sizeof statement, "INSERT INTO %s.state (name, number, value) FORMAT RowBinary",
                   a->database);
    const enum profd_status status =
        rows->failed ? profd_no_memory(e) : clickhouse_insert(c, statement, rows->data, rows->size, e);
    buffer_done(rows);
    return status;
}

enum profd_status clickhouse_renew_state(struct clickhouse *c, const struct clickhouse_address *address,
                                         struct profd_error *e)
{
    uint8_t random[INCARNATION_BYTES + SALT_BYTES];
    struct buffer rows;
    if (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random) {
        return profd_error_set(e, PROFD_INTERNAL, "no random numbers");
    }
    buffer_init(&rows, 1024);
    put_value(&rows, "incarnation", random, INCARNATION_BYTES);
    put_value(&rows, "salt", random + INCARNATION_BYTES, SALT_BYTES);
    return insert(c, address, &rows, e);
}

enum profd_status clickhouse_draw_state(struct clickhouse *c, const struct clickhouse_address *address,
                                        struct profd_error *e)
{
    char statement[80 + CLICKHOUSE_NAME_MAX], *reply = NULL;
    (void)snprintf(statement, sizeof statement, "SELECT count() FROM %s.state WHERE name = 'incarnation'",
                   address->database);
    const enum profd_status status = clickhouse_ask(c, statement, &reply, e);
    const bool has = status == PROFD_OK && strcmp(reply, "0\n") != 0;
    free(reply);
    return status != PROFD_OK || has ? status : clickhouse_renew_state(c, address, e);
}

enum profd_status clickhouse_set_backup(struct clickhouse *c, const struct clickhouse_address *address, int64_t before,
                                        struct profd_error *e)
{
    const uint64_t number = before > 0 ? (uint64_t)before : 0; /* numbers of arrivals are times */
    struct buffer rows;
    buffer_init(&rows, 1024);
    put_value(&rows, "backup", &number, sizeof number);
    return insert(c, address, &rows, e);
}
