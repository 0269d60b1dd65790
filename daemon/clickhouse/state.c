#include "clickhouse/state.h"

#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "clickhouse/rows.h"

static uint64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void put_value(struct buffer *rows, const char *name, uint64_t number, const void *value, size_t n)
{
    rows_put_text(rows, name);
    rows_put_u64(rows, number);
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

enum profd_status clickhouse_draw_state(struct clickhouse_state *out, struct profd_error *e)
{
    struct clickhouse_state s = {.number = now()};
    if (getrandom(s.incarnation, sizeof s.incarnation, 0) != (ssize_t)sizeof s.incarnation ||
        getrandom(s.salt, sizeof s.salt, 0) != (ssize_t)sizeof s.salt) {
        return profd_error_set(e, PROFD_INTERNAL, "no random numbers");
    }
    *out = s;
    return PROFD_OK;
}

enum profd_status clickhouse_put_state(struct clickhouse *c, const struct clickhouse_address *address,
                                       const struct clickhouse_state *state, struct profd_error *e)
{
    struct buffer rows;
    buffer_init(&rows, 1024);
    put_value(&rows, "incarnation", state->number, state->incarnation, sizeof state->incarnation);
    put_value(&rows, "salt", state->number, state->salt, sizeof state->salt);
    return insert(c, address, &rows, e);
}

enum profd_status clickhouse_get_state(struct clickhouse *c, const struct clickhouse_address *address,
                                       struct clickhouse_state *out, bool *found, struct profd_error *e)
{
    char statement[160 + CLICKHOUSE_NAME_MAX];
    struct row_reader rows;
    uint8_t *bytes;
    size_t size;
    unsigned members = 0;
    (void)snprintf(statement, sizeof statement,
                   "SELECT toUInt8(name = 'salt'), number, value FROM %s.state FINAL WHERE name IN ('incarnation', "
                   "'salt') FORMAT RowBinary",
                   address->database);
    const enum profd_status status = clickhouse_take(c, statement, &bytes, &size, e);
    if (status != PROFD_OK) {
        return status;
    }
    rows_open(&rows, bytes, size);
    while (rows_more(&rows)) {
        const bool salt = rows_u8(&rows) != 0;
        size_t n;
        out->number = rows_u64(&rows);
        const char *value = rows_string(&rows, &n);
        if (n == (salt ? sizeof out->salt : sizeof out->incarnation)) {
            memcpy(salt ? out->salt : out->incarnation, value, n);
            members |= salt ? 2 : 1;
        }
    }
    *found = !rows.cut && members == 3;
    rows_close(&rows);
    return PROFD_OK;
}

enum profd_status clickhouse_put_backup(struct clickhouse *c, const struct clickhouse_address *address, int64_t before,
                                        struct profd_error *e)
{
    const uint64_t number = before > 0 ? (uint64_t)before : 0; /* numbers of arrivals are times */
    struct buffer rows;
    buffer_init(&rows, 1024);
    put_value(&rows, "backup", now(), &number, sizeof number);
    return insert(c, address, &rows, e);
}
