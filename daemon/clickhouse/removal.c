#include "clickhouse/removal.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "clickhouse/everywhere.h"
#include "clickhouse/members.h"
#include "clickhouse/segment.h"

#define STORING_S 60u     /* for which a handle is entered; a batch ends within 25 s of its beginning */
#define RENEWED_MS 25000u /* a handle that stores enters itself again after this time */
#define QUIET_S 60u       /* after this time every handle has seen the day */
#define DAY_S UINT64_C(86400)
#define DELETE_LOOKS 200u /* at what is left, 50 ms apart */

static uint64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

enum profd_status engine_servers_now(struct clickhouse_store *s, uint64_t *seconds, struct profd_error *e)
{
    return engine_query_number(s, seconds, e, "SELECT toUInt64(now())");
}

/* --- Rows of table state --- */

static enum profd_status put_state(struct clickhouse_store *s, const char *name, const void *value, size_t n,
                                   struct profd_error *e)
{
    struct buffer row;
    buffer_init(&row, 512);
    rows_put_text(&row, name);
    rows_put_u64(&row, engine_number(s));
    rows_put_bytes(&row, value, n);
    const enum profd_status status = engine_insert(s, "state (name, number, value)", &row, e);
    buffer_done(&row);
    return status;
}

/* Reads a row, as text: "" if there is none. */
static enum profd_status get_state(struct clickhouse_store *s, const char *name, char *out, size_t size,
                                   struct profd_error *e)
{
    struct row_reader r = {.bytes = NULL};
    out[0] = '\0';
    enum profd_status status =
        engine_query(s, &r, e, "SELECT value, number FROM state WHERE name = '%s' ORDER BY number DESC LIMIT 1", name);
    if (status == PROFD_OK && rows_more(&r)) {
        size_t n;
        const char *value = rows_string(&r, &n);
        engine_saw(s, rows_u64(&r));
        status = engine_rows_check(&r, "what is being removed", e);
        (void)snprintf(out, size, "%.*s", value && n < size ? (int)n : 0, value ? value : "");
    }
    rows_close(&r);
    return status;
}

enum profd_status engine_load_removal(struct clickhouse_store *s, struct engine_removal *out, struct profd_error *e)
{
    char text[64], *end;
    const enum profd_status status = get_state(s, "retiring", text, sizeof text, e);
    *out = (struct engine_removal){.any = text[0] != '\0'};
    if (out->any) {
        out->day = (uint32_t)strtoul(text, &end, 10);
        out->since = strtoull(end, &end, 10);
        out->begun = strcmp(end, " announced") != 0;
    }
    return status;
}

enum profd_status engine_put_removal(struct clickhouse_store *s, const struct engine_removal *x, struct profd_error *e)
{
    char text[64] = "";
    if (x->any) {
        (void)snprintf(text, sizeof text, "%" PRIu32 " %" PRIu64 "%s", x->day, x->since, x->begun ? "" : " announced");
    }
    return put_state(s, "retiring", text, strlen(text), e);
}

/* --- Handles that store --- */

static enum profd_status put_storing(struct clickhouse_store *s, uint64_t until, struct profd_error *e)
{
    char name[64];
    (void)snprintf(name, sizeof name, "storing/%016" PRIx64, s->writer);
    return put_state(s, name, &until, until > 0 ? sizeof until : 0, e);
}

static void end_storing(struct clickhouse_store *s)
{
    struct profd_error ignored;
    if (s->storing_since > 0) {
        s->base.until = now_ms() + 1000;
        (void)put_storing(s, 0, &ignored); /* else it ends by itself */
    }
    s->storing_since = 0;
}

enum profd_status engine_begin_storing(struct clickhouse_store *s, uint32_t *first_day, struct profd_error *e)
{
    struct engine_removal removal = {.any = false};
    uint64_t now = 0;
    enum profd_status status = PROFD_OK;
    if (s->storing_since == 0 || now_ms() - s->storing_since > RENEWED_MS) {
        const uint64_t began = now_ms();
        status = engine_servers_now(s, &now, e);
        if (status == PROFD_OK) {
            status = put_storing(s, now + STORING_S, e);
        }
        s->storing_since = status == PROFD_OK ? began : 0;
        s->end_storing = end_storing;
    }
    if (status == PROFD_OK) {
        status = engine_load_removal(s, &removal, e);
    }
    *first_day = removal.any ? removal.day + 1 : 0;
    return status;
}

enum profd_status engine_check_quiet(struct clickhouse_store *s, const struct engine_removal *x, bool *quiet,
                                     struct profd_error *e)
{
    uint64_t now = 0, others = 0;
    enum profd_status status = engine_servers_now(s, &now, e);
    if (status == PROFD_OK && now < x->since + QUIET_S) {
        status = engine_query_number(s, &others, e,
                                     "SELECT toUInt64(count()) FROM state FINAL WHERE name LIKE 'storing/%%' AND name "
                                     "!= 'storing/%016" PRIx64 "' AND reinterpretAsUInt64(value) > %" PRIu64,
                                     s->writer, now);
    }
    *quiet = status == PROFD_OK && others == 0;
    return status;
}

/* --- Partitions --- */

static void name_partition(const char *table, uint32_t day, char out[16])
{
    const time_t t = (time_t)(day * DAY_S);
    struct tm tm;
    if (strcmp(table, "host_day") == 0) {
        (void)snprintf(out, 16, "%" PRIu32, day / ENGINE_HOST_DAYS);
    } else {
        (void)strftime(out, 16, "%Y%m%d", gmtime_r(&t, &tm));
    }
}

/* A row of the partition that counts nowhere: its program is '', its host none. The columns that are not named are
 * empty. Of table segment_group, it is a segment of one row, and that is not its head. */
static const char *put_empty(const char *table, uint32_t day, struct buffer *row)
{
    const char *columns = "program, hour";
    rows_put_text(row, "");
    if (strcmp(table, "host_day") == 0) {
        columns = "program, day";
        rows_put_u32(row, day / ENGINE_HOST_DAYS * ENGINE_HOST_DAYS);
    } else if (strcmp(table, "arrival") == 0) {
        columns = "program, received, outcome";
        rows_put_i64(row, (int64_t)day * ENGINE_DAY);
        rows_put_u8(row, 0);
    } else if (strcmp(table, "segment_group") == 0) {
        columns = "program, sent, group_rows";
        rows_put_u32(row, (uint32_t)(day * DAY_S));
        rows_put_u8(row, 1);
    } else if (strcmp(table, "change") == 0) {
        columns = "program, hour, sent_from";
        rows_put_u32(row, day * 24);
        rows_put_u32(row, UINT32_MAX);
    } else {
        rows_put_u32(row, day * 24);
    }
    return columns;
}

static enum profd_status insert_empty(struct clickhouse_store *s, const char *table, uint32_t day,
                                      struct profd_error *e)
{
    char statement[160];
    struct buffer row;
    buffer_init(&row, 512);
    const char *columns = put_empty(table, day, &row);
    (void)snprintf(statement, sizeof statement, "INSERT INTO %s%s (%s) FORMAT RowBinary", table, engine_local(s, table),
                   columns);
    const enum profd_status status = row.failed ? profd_no_memory(e) : engine_insert_everywhere(s, statement, &row, e);
    buffer_done(&row);
    return status == PROFD_OK || status == PROFD_NO_MEMORY ? status : profd_error_wrap(e, PROFD_BUSY, "store");
}

static void name_drop(const char *table, char out[64])
{
    (void)snprintf(out, 64, "dropping/%s", table);
}

enum profd_status engine_check_replicas(struct clickhouse_store *s, const char *table, struct profd_error *e)
{
    uint64_t missing = 0;
    if (!s->address.replicated) {
        return PROFD_OK;
    }
    const enum profd_status status = engine_sum_everywhere(
        s, &missing, e,
        "SELECT sum(total_replicas - active_replicas) FROM system.replicas WHERE database = '%s' AND table = '%s%s'",
        s->address.database, table, engine_local(s, table));
    return status == PROFD_OK && missing > 0
               ? profd_error_set(e, PROFD_BUSY,
                                 "store: a replica of table %s is away: nothing is removed until it is "
                                 "back",
                                 table)
               : status;
}

enum profd_status engine_drop_day(struct clickhouse_store *s, const char *table, uint32_t day, struct profd_error *e)
{
    char statement[160], partition[16], name[64], text[16];
    name_partition(table, day, partition);
    name_drop(table, name);
    (void)snprintf(text, sizeof text, "%" PRIu32, day);
    (void)snprintf(statement, sizeof statement, "ALTER TABLE %s%s DROP PARTITION %s", table, engine_local(s, table),
                   partition);
    enum profd_status status = engine_check_replicas(s, table, e);
    if (status == PROFD_OK && s->address.replicated) {
        status = put_state(s, name, text, strlen(text), e);
    }
    if (status == PROFD_OK) {
        status = engine_run_everywhere(s, statement, e);
    }
    return status == PROFD_OK && s->address.replicated ? engine_complete_drop(s, table, true, e) : status;
}

/* Inserts an empty row into each partition that has rows of the day: ClickHouse 18.16 changes no part of a replicated
 * table that a quorum has stored last in its partition. */
static enum profd_status insert_behind(struct clickhouse_store *s, const char *table, const char *where,
                                       struct profd_error *e)
{
    const char *of = strcmp(table, "host_day") == 0 ? "day" : "toUInt32(intDiv(toUInt32(sent), 86400))";
    struct row_reader rows = {.bytes = NULL};
    enum profd_status status = engine_query(s, &rows, e, "SELECT DISTINCT %s FROM %s WHERE %s", of, table, where);
    while (status == PROFD_OK && rows_more(&rows)) {
        const uint32_t day = rows_u32(&rows);
        status = engine_rows_check(&rows, "partitions", e);
        if (status == PROFD_OK) {
            status = insert_empty(s, table, day, e);
        }
    }
    rows_close(&rows);
    return status;
}

enum profd_status engine_delete_day(struct clickhouse_store *s, const char *table, uint32_t day, bool *done,
                                    struct profd_error *e)
{
    const struct timespec pause = {.tv_nsec = 50000000};
    const char *local = engine_local(s, table);
    char where[96], statement[224];
    uint64_t left = 0;
    if (strcmp(table, "host_day") == 0) {
        (void)snprintf(where, sizeof where, "day = %" PRIu32 " AND " ENGINE_REAL, day);
    } else {
        (void)snprintf(where, sizeof where, "hour >= %" PRIu32 " AND hour <= %" PRIu32 " AND " ENGINE_REAL, day * 24,
                       day * 24 + 23);
    }
    (void)snprintf(statement, sizeof statement, "ALTER TABLE %s%s DELETE WHERE %s", table, local, where);
    enum profd_status status =
        engine_sum_everywhere(s, &left, e, "SELECT count() FROM %s%s WHERE %s", table, local, where);
    *done = left == 0;
    if (status == PROFD_OK && !*done && s->address.replicated) {
        status = insert_behind(s, table, where, e);
    }
    if (status == PROFD_OK && !*done) {
        status = engine_run_everywhere(s, statement, e);
    }
    for (unsigned i = 0; i < DELETE_LOOKS && status == PROFD_OK && !*done; i++) {
        nanosleep(&pause, NULL);
        status = engine_sum_everywhere(s, &left, e, "SELECT count() FROM %s%s WHERE %s", table, local, where);
        *done = left == 0;
    }
    return status;
}

enum profd_status engine_merge_day(struct clickhouse_store *s, const char *table, uint32_t day, struct profd_error *e)
{
    char statement[160], partition[16];
    name_partition(table, day, partition);
    (void)snprintf(statement, sizeof statement, "OPTIMIZE TABLE %s%s PARTITION %s FINAL", table, engine_local(s, table),
                   partition);
    return engine_run_everywhere(s, statement, e);
}

enum profd_status engine_complete_drop(struct clickhouse_store *s, const char *table, bool locked,
                                       struct profd_error *e)
{
    char name[64], text[16];
    name_drop(table, name);
    enum profd_status status = s->address.replicated ? get_state(s, name, text, sizeof text, e) : PROFD_OK;
    if (status == PROFD_OK && s->address.replicated && text[0]) {
        status = insert_empty(s, table, (uint32_t)strtoul(text, NULL, 10), e);
        if (status == PROFD_OK && locked) {
            status = put_state(s, name, "", 0, e);
        }
    }
    return status;
}
