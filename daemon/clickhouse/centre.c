#include "clickhouse/centre.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "clickhouse/ledger.h"
#include "store/outgoing.h"

#define STATE_SECONDS 2   /* for which what names the data is remembered: a restore changes it */
#define SERIES_SECONDS 10 /* for which the number of series is */

static int64_t monotonic_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec;
}

/* --- Numbers of the centre --- */

/* Incarnation and backup. */
static enum profd_status load_state(struct clickhouse_store *s, struct profd_error *e)
{
    struct engine_greeting *g = &s->greeting;
    struct row_reader r = {.bytes = NULL};
    bool found = false;
    if (g->read && monotonic_seconds() - g->since < STATE_SECONDS) {
        return PROFD_OK;
    }
    enum profd_status status = engine_query(
        s, &r, e, "SELECT toUInt8(name = 'backup'), value FROM state FINAL WHERE name IN ('incarnation', 'backup')");
    g->backup = 0;
    while (status == PROFD_OK && rows_more(&r)) {
        size_t size;
        const bool backup = rows_u8(&r) == 1;
        const char *value = rows_string(&r, &size);
        status = engine_rows_check(&r, "the state of the centre", e);
        if (status == PROFD_OK && size == (backup ? sizeof g->backup : sizeof g->incarnation)) {
            memcpy(backup ? (void *)&g->backup : g->incarnation, value, size);
            found |= !backup;
        }
    }
    rows_close(&r);
    if (status == PROFD_OK && !found) {
        return profd_error_set(e, PROFD_BUSY,
                               "store: the tables in ClickHouse have no incarnation: run \"profctl "
                               "clickhouse init\"");
    }
    g->read = status == PROFD_OK;
    g->since = monotonic_seconds();
    return status;
}

/* When a segment came last. */
static enum profd_status load_last(struct clickhouse_store *s, uint64_t *hosts, int64_t *last, struct profd_error *e)
{
    struct row_reader r = {.bytes = NULL};
    enum profd_status status = engine_query(
        s, &r, e, "SELECT toUInt64(count()), toInt64(max(delivered)) FROM (SELECT delivered FROM host FINAL)");
    if (status == PROFD_OK) {
        *hosts = rows_u64(&r);
        *last = rows_i64(&r);
        status = engine_rows_check(&r, "hosts", e);
    }
    rows_close(&r);
    return status;
}

/* Series of each host that have something in one of the two hours until this one, where there are more: those with the
 * host among their labels, and the others once for each host. */
static enum profd_status count_series(struct clickhouse_store *s, int64_t hour, uint64_t *out, struct profd_error *e)
{
    const int64_t before = hour > 0 ? hour - 1 : 0;
    return engine_query_number(
        s, out, e,
        "SELECT toUInt64(max(n)) FROM (SELECT hour, uniqExact(series, host) AS n FROM arrival WHERE hour IN (%" PRId64
        ", %" PRId64 ") AND received >= %" PRId64 " AND program != '' AND generation != %" PRIu32 " GROUP BY hour)",
        before, hour, before * ENGINE_HOUR - STORE_CLOCK_MOST, LEDGER_NEVER);
}

static enum profd_status load_series(struct clickhouse_store *s, int64_t hour, uint64_t *out, struct profd_error *e)
{
    struct engine_greeting *g = &s->greeting;
    enum profd_status status = PROFD_OK;
    if (g->hour != hour || g->counted_since == 0 ||
        (g->added > 0 && monotonic_seconds() - g->counted_since >= SERIES_SECONDS)) {
        status = count_series(s, hour, &g->counted, e);
        g->hour = hour;
        g->added = 0;
        g->counted_since = status == PROFD_OK ? monotonic_seconds() : 0;
    }
    *out = g->counted;
    return status;
}

enum profd_status engine_choose_detail(struct clickhouse_store *s, int64_t received, size_t n, bool *detail,
                                       struct profd_error *e)
{
    struct engine_greeting *g = &s->greeting;
    const struct store_detail *d = &s->base.detail;
    const uint64_t most = d->most > 0 ? d->most : STORE_DETAIL_MOST;
    enum profd_status status = PROFD_OK;
    *detail = d->when != STORE_DETAIL_NEVER;
    if (d->when == STORE_DETAIL_AUTO) {
        uint64_t counted;
        if (g->counted < most && g->counted + g->added >= most) {
            g->counted_since = 0;
        }
        status = load_series(s, received / ENGINE_HOUR, &counted, e);
        *detail = counted < most;
    }
    g->added += n;
    g->last = received > g->last ? received : g->last;
    return status;
}

enum profd_status engine_get_greeting(struct store *base, struct store_centre *out, struct profd_error *e)
{
    struct clickhouse_store *s = engine_self(base);
    struct engine_greeting *g = &s->greeting;
    uint64_t hosts;
    enum profd_status status = load_state(s, e);
    if (status == PROFD_OK && g->last == 0) {
        status = load_last(s, &hosts, &g->last, e);
    }
    *out = (struct store_centre){.backup = g->backup, .number = s->number, .last = g->last};
    memcpy(out->incarnation, g->incarnation, sizeof out->incarnation);
    return status == PROFD_OK ? load_series(s, g->last / ENGINE_HOUR, &out->series, e) : status;
}

/* Does every series that has something in the hour name the host? */
static enum profd_status find_detail(struct clickhouse_store *s, int64_t hour, bool *detail, struct profd_error *e)
{
    uint64_t n = 0;
    enum profd_status status = engine_query_number(
        s, &n, e,
        "SELECT toUInt64(count()) FROM series WHERE NOT has(label_names, 'host') AND series GLOBAL IN "
        "(SELECT series FROM change WHERE hour = %" PRId64 ")",
        hour);
    *detail = n == 0;
    return status;
}

/* What was counted is what is stored and what was removed. */
static enum profd_status load_amounts(struct clickhouse_store *s, struct store_centre *out, struct profd_error *e)
{
    struct arena *a = arena_new(0);
    struct ledger ledger;
    struct ledger_stored stored;
    enum profd_status status = a ? ledger_load(s, a, &ledger, e) : profd_no_memory(e);
    if (status == PROFD_OK) {
        status = ledger_load_stored(s, a, &stored, e);
    }
    if (status == PROFD_OK) {
        out->removed = ledger.removed;
        out->counted = ledger.removed;
        outgoing_amount_add(&out->counted, &stored.amount);
    }
    arena_free(a);
    return status;
}

static enum profd_status load_counts(struct clickhouse_store *s, struct store_centre *out, struct profd_error *e)
{
    static const struct {
        const char *query;
        size_t at;
    } counts[] = {
        {"SELECT toUInt64(max(number)) FROM (SELECT max(number) AS number FROM arrival UNION ALL SELECT max(number) "
         "AS number FROM known)",
         offsetof(struct store_centre, number)},
        {"SELECT toUInt64(count()) FROM (SELECT epoch FROM quarantine FINAL)",
         offsetof(struct store_centre, quarantined)},
        {"SELECT toUInt64(sum(size)) FROM (SELECT size FROM quarantine FINAL)",
         offsetof(struct store_centre, quarantine_bytes)}};
    enum profd_status status = PROFD_OK;
    for (size_t i = 0; i < sizeof counts / sizeof counts[0] && status == PROFD_OK; i++) {
        uint64_t n = 0;
        status = engine_query_number(s, &n, e, "%s", counts[i].query);
        memcpy((char *)out + counts[i].at, &n, sizeof n);
    }
    return status;
}

enum profd_status engine_get_centre(struct store *base, struct store_centre *out, struct profd_error *e)
{
    struct clickhouse_store *s = engine_self(base);
    *out = (struct store_centre){.number = 0};
    enum profd_status status = load_state(s, e);
    if (status == PROFD_OK) {
        out->backup = s->greeting.backup;
        memcpy(out->incarnation, s->greeting.incarnation, sizeof out->incarnation);
        status = load_last(s, &out->hosts, &out->last, e);
    }
    if (status == PROFD_OK) {
        status = count_series(s, out->last / ENGINE_HOUR, &out->series, e);
    }
    if (status == PROFD_OK) {
        status = find_detail(s, out->last / ENGINE_HOUR, &out->detail, e);
    }
    if (status == PROFD_OK) {
        status = load_counts(s, out, e);
    }
    return status == PROFD_OK ? load_amounts(s, out, e) : status;
}

/* --- Segments that cannot be read --- */

enum profd_status engine_limit_quarantine(struct clickhouse_store *s, struct profd_error *e)
{
    struct row_reader r = {.bytes = NULL};
    struct buffer rows;
    struct arena *a = arena_new(0);
    uint64_t bytes = 0;
    buffer_init(&rows, 64u << 20);
    enum profd_status status =
        a ? engine_query(s, &r, e,
                         "SELECT epoch, sequence, received, reason, size, number FROM quarantine FINAL "
                         "WHERE size > 0 ORDER BY received DESC, epoch, sequence")
          : profd_no_memory(e);
    while (status == PROFD_OK && rows_more(&r)) {
        uint8_t epoch[SEGMENT_EPOCH_SIZE];
        rows_fixed(&r, epoch, sizeof epoch);
        const uint64_t sequence = rows_u64(&r);
        const int64_t received = rows_i64(&r);
        const char *reason = rows_copy(&r, a);
        bytes += rows_u64(&r);
        engine_saw(s, rows_u64(&r));
        status = engine_rows_check(&r, "segments that cannot be read", e);
        if (status == PROFD_OK && !reason) {
            status = profd_no_memory(e);
        }
        if (status == PROFD_OK && bytes > STORE_QUARANTINE_BYTES) {
            rows_put_fixed(&rows, epoch, sizeof epoch);
            rows_put_u64(&rows, sequence);
            rows_put_u64(&rows, engine_number(s));
            rows_put_i64(&rows, received);
            rows_put_text(&rows, reason);
            rows_put_u64(&rows, 0);
            rows_put_text(&rows, "");
        }
    }
    rows_close(&r);
    if (status == PROFD_OK) {
        status = engine_insert(s, "quarantine (epoch, sequence, number, received, reason, size, bytes)", &rows, e);
    }
    buffer_done(&rows);
    arena_free(a);
    return status;
}

/* --- Epochs of machines that were enrolled again --- */

enum profd_status engine_inherits(struct clickhouse_store *s, const uint8_t from[STORE_HOST_SIZE],
                                  const struct engine_host *to, bool *inherits, struct profd_error *e)
{
    struct engine_host *host;
    struct store_enrolment enrolment;
    size_t n = 0;
    bool enrolled = false;
    struct arena *a = arena_new(0);
    enum profd_status status = a ? engine_load_hosts(s, a, &from, 1, &host, &n, e) : profd_no_memory(e);
    if (status == PROFD_OK) {
        status = engine_find_enrolments(&s->base, from, 1, &enrolment, &enrolled, e);
    }
    *inherits = status == PROFD_OK && ((enrolled && enrolment.revoked != 0) ||
                                       (n > 0 && host[0].machine[0] && strcmp(host[0].machine, to->machine) == 0));
    arena_free(a);
    return status;
}
