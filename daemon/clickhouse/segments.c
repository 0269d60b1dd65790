#include "clickhouse/segments.h"

#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clickhouse/client.h"
#include "core/buffer.h"

#define INSERT_BYTES (64u << 20) /* of one statement, about: what a centre stores at once is one */
#define REPLY_BYTES (256u << 20)
#define CONNECT_MS 3000
#define ANSWER_MS 20000 /* of storing, too: the writer does nothing else meanwhile, and its watchdog waits */

/* In this order a row is inserted. Those from epoch on, but tenant and sums, are read. */
#define INSERTED                                                                                                       \
    "program, sent, epoch, sequence, number, series, hour, tenant, host, first, last, inexact, uploads, ticks, "       \
    "calls, "                                                                                                          \
    "bytes"
#define READ "epoch, sequence, number, series, hour, host, first, last, inexact, bytes"
#define READ_LEAST (SEGMENT_EPOCH_SIZE + 8 + 8 + REMOTE_SERIES_SIZE + 4 + STORE_HOST_SIZE + 8 + 8 + 4 + 1)

struct segments {
    struct remote base;
    const struct clickhouse_segments_maker *maker;
    struct clickhouse *clickhouse;
    struct buffer data;      /* of a statement */
    struct remote_row *rows; /* that were read last */
};

static void put_number(struct buffer *b, uint64_t n, size_t bytes)
{
    uint8_t out[8];
    for (size_t i = 0; i < bytes; i++) {
        out[i] = (uint8_t)(n >> 8 * i);
    }
    buffer_add(b, out, bytes);
}

static void put_text(struct buffer *b, const void *text, size_t n)
{
    size_t left = n;
    for (; left >= 128; left >>= 7) {
        put_number(b, (left & 127) | 128, 1);
    }
    put_number(b, left, 1);
    buffer_add(b, text, n);
}

static void put_row(struct buffer *b, const struct remote_row *r)
{
    put_text(b, r->program, strlen(r->program));
    put_number(b, r->sent * UINT64_C(3600), 4);
    buffer_add(b, r->epoch, sizeof r->epoch);
    put_number(b, r->sequence, 8);
    put_number(b, r->number, 8);
    buffer_add(b, r->series, sizeof r->series);
    put_number(b, r->hour, 4);
    put_number(b, r->uid, 4);
    buffer_add(b, r->host, sizeof r->host);
    put_number(b, (uint64_t)r->first, 8);
    put_number(b, (uint64_t)r->last, 8);
    put_number(b, r->inexact, 4);
    put_number(b, r->uploads, 8);
    put_number(b, r->ticks, 8);
    put_number(b, r->calls, 8);
    put_text(b, r->bytes, r->size);
}

static enum profd_status segments_put(struct remote *base, const struct remote_row *rows, size_t n,
                                      struct profd_error *e)
{
    struct segments *s = (struct segments *)base;
    char statement[400];
    enum profd_status status = PROFD_OK;
    (void)snprintf(statement, sizeof statement, "INSERT INTO %s.segment (" INSERTED ") FORMAT RowBinary",
                   s->maker->address.database);
    for (size_t i = 0; i < n && status == PROFD_OK;) {
        s->data.size = 0;
        while (i < n && s->data.size < INSERT_BYTES) {
            put_row(&s->data, &rows[i++]);
        }
        status = s->data.failed ? profd_no_memory(e)
                                : clickhouse_insert(s->clickhouse, statement, s->data.data, s->data.size, e);
    }
    return status;
}

/* The query for the rows of these hours. */
static enum profd_status query_print(struct segments *s, const struct remote_hour *hours, size_t n, unsigned part,
                                     unsigned parts, struct profd_error *e)
{
    struct buffer *b = &s->data;
    uint32_t from = UINT32_MAX, to = 0;
    b->size = 0;
    buffer_add_format(b, "SELECT " READ " FROM %s.segment FINAL WHERE program IN (", s->maker->address.database);
    for (size_t i = 0; i < n; i++) {
        buffer_add_format(b, "%s'%s'", i > 0 ? "," : "", hours[i].program);
        from = hours[i].sent_from < from ? hours[i].sent_from : from;
        to = hours[i].sent_to > to ? hours[i].sent_to : to;
    }
    buffer_add_format(b, ") AND sent >= toDateTime(%llu) AND sent <= toDateTime(%llu) AND (hour, series) IN (",
                      from * 3600ULL, to * 3600ULL);
    for (size_t i = 0; i < n; i++) {
        buffer_add_format(b, "%s(%u,unhex('", i > 0 ? "," : "", hours[i].hour);
        for (size_t k = 0; k < sizeof hours[i].series; k++) {
            buffer_add_format(b, "%02x", hours[i].series[k]);
        }
        buffer_add_format(b, "'))");
    }
    buffer_add_format(b, ")");
    if (parts > 1) {
        buffer_add_format(b, " AND cityHash64(epoch, sequence) %% %u = %u", parts, part);
    }
    buffer_add_format(b, " ORDER BY hour, series, epoch, sequence, number DESC FORMAT RowBinary");
    buffer_add(b, "", 1);
    return b->failed ? profd_no_memory(e) : PROFD_OK;
}

static uint64_t take_number(const uint8_t **at, size_t bytes)
{
    uint64_t n = 0;
    for (size_t i = 0; i < bytes; i++) {
        n |= (uint64_t)(*at)[i] << 8 * i;
    }
    *at += bytes;
    return n;
}

static void take_bytes(const uint8_t **at, uint8_t *out, size_t n)
{
    memcpy(out, *at, n);
    *at += n;
}

/* Takes one row; false if the reply ends before it does. */
static bool take_row(const uint8_t **at, const uint8_t *end, struct remote_row *r)
{
    if (end - *at < (ptrdiff_t)READ_LEAST) {
        return false;
    }
    take_bytes(at, r->epoch, sizeof r->epoch);
    r->sequence = take_number(at, 8);
    r->number = take_number(at, 8);
    take_bytes(at, r->series, sizeof r->series);
    r->hour = (uint32_t)take_number(at, 4);
    take_bytes(at, r->host, sizeof r->host);
    r->first = (int64_t)take_number(at, 8);
    r->last = (int64_t)take_number(at, 8);
    r->inexact = (uint32_t)take_number(at, 4);
    r->size = 0;
    for (unsigned shift = 0;; shift += 7) {
        if (*at == end || shift > 28) {
            return false;
        }
        const uint8_t byte = *(*at)++;
        r->size |= (size_t)(byte & 127) << shift;
        if (byte < 128) {
            break;
        }
    }
    if ((size_t)(end - *at) < r->size) {
        return false;
    }
    r->bytes = *at;
    *at += r->size;
    return true;
}

static enum profd_status segments_read(struct remote *base, const struct remote_hour *hours, size_t n, unsigned part,
                                       unsigned parts, const struct remote_row **rows, size_t *count,
                                       struct profd_error *e)
{
    struct segments *s = (struct segments *)base;
    const uint8_t *bytes;
    size_t size, found = 0;
    enum profd_status status = query_print(s, hours, n, part, parts, e);
    if (status == PROFD_OK) {
        status = clickhouse_read(s->clickhouse, s->data.data, &bytes, &size, e);
    }
    if (status != PROFD_OK) {
        return status;
    }
    free(s->rows);
    s->rows = calloc(size / READ_LEAST + 1, sizeof *s->rows);
    if (!s->rows) {
        return profd_no_memory(e);
    }
    for (const uint8_t *at = bytes, *end = bytes + size; at < end; found++) {
        if (!take_row(&at, end, &s->rows[found])) {
            return profd_error_set(e, PROFD_PROTOCOL, "ClickHouse replied with %zu bytes, in which row %zu is cut off",
                                   size, found);
        }
    }
    *rows = s->rows;
    *count = found;
    return PROFD_OK;
}

static void segments_close(struct remote *base)
{
    struct segments *s = (struct segments *)base;
    clickhouse_close(s->clickhouse);
    buffer_done(&s->data);
    free(s->rows);
    free(s);
}

static enum profd_status segments_make(const struct remote_maker *base, struct remote **out, struct profd_error *e)
{
    static const struct remote_ops ops = {segments_put, segments_read, segments_close};
    static const struct clickhouse_limits limits = {
        .connect_ms = CONNECT_MS, .answer_ms = ANSWER_MS, .reply_bytes = REPLY_BYTES};
    struct segments *s = calloc(1, sizeof *s);
    if (!s) {
        return profd_no_memory(e);
    }
    s->base.ops = &ops;
    s->maker = (const struct clickhouse_segments_maker *)base;
    buffer_init(&s->data, REPLY_BYTES);
    const enum profd_status status = clickhouse_open(&s->maker->address, s->maker->ca, &limits, &s->clickhouse, e);
    if (status != PROFD_OK) {
        segments_close(&s->base);
        return status;
    }
    *out = &s->base;
    return PROFD_OK;
}

enum profd_status clickhouse_segments_init(struct clickhouse_segments_maker *m, const char *url, const char *password,
                                           const char *ca, struct profd_error *e)
{
    *m = (struct clickhouse_segments_maker){.base = {segments_make}, .ca = ca};
    enum profd_status status = clickhouse_parse_address(url, &m->address, e);
    if (status == PROFD_OK && password) {
        status = clickhouse_read_password(password, &m->address, e);
    }
    if (status == PROFD_OK && curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
        status = profd_no_memory(e);
    }
    return status == PROFD_USAGE ? PROFD_CONFIG : status;
}
