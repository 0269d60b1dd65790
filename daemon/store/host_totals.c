/* Totals by host of the counts that a centre stores without the host. */
#include <string.h>
#include <time.h>

#include "core/buffer.h"
#include "proto/message.h"
#include "proto/sum.h"
#include "proto/varint.h"
#include "store/store_internal.h"

bool incoming_add_touching(const struct counts *r, uint64_t *calls, size_t builds)
{
    bool saturated = false;
    for (uint32_t i = 0; i < r->arc_count; i++) {
        const uint32_t from = r->from_build[i], to = r->to_build[i];
        if (from < builds) {
            sum_add(&calls[from], r->calls[i], &saturated);
        }
        if (to < builds && to != from) {
            sum_add(&calls[to], r->calls[i], &saturated);
        }
    }
    return saturated;
}

void sqlite_incoming_sums(const struct incoming *in, struct sqlite_sums *out)
{
    const struct store_upload *u = &in->upload;
    sqlite_sums_init(out, u->build_count);
    out->uploads = in->uploads;
    out->processes = in->processes;
    out->ticks = u->ticks;
    out->calls = u->calls;
    out->stack_ticks = u->stack_ticks;
    out->first = u->start;
    out->last = u->end;
    out->inexact = u->inexact;
    for (size_t i = 0; i < u->build_count; i++) {
        out->shares[i] = (struct share){.nanoseconds = u->builds[i].nanoseconds, .calls = u->builds[i].calls};
    }
}

enum profd_status sqlite_host_total_add(struct store *s, int64_t series, int64_t host, int64_t late,
                                        const struct incoming *in, struct profd_error *e)
{
    sqlite3_stmt *q;
    const struct store_upload *u = &in->upload;
    struct sqlite_sums one, sum;
    uint8_t shares[SQLITE_SHARES_BYTES];
    uint64_t touching[LIMIT_BUILDS] = {0};
    bool row = false;
    sqlite_incoming_sums(in, &one);
    (void)incoming_add_touching(&in->counts, touching, u->build_count);
    for (size_t i = 0; i < one.build_count; i++) {
        one.shares[i].calls = touching[i];
    }
    TRY(sqlite_first(s, SQL_HOST_TOTAL_GET, VALUES(INTEGER(series), INTEGER(in->hour), INTEGER(host), INTEGER(late)),
                     &q, &row, e));
    enum profd_status status = PROFD_OK;
    if (row) {
        status = sqlite_sums_read(s, q, u->build_count, &sum, e);
        sqlite_finish(q);
        sqlite_sums_add(&one, &sum);
    }
    if (status != PROFD_OK) {
        return status;
    }
    const size_t n = sqlite_shares_encode(&one, shares);
    return sqlite_run(s, SQL_HOST_TOTAL_SET,
                      VALUES(INTEGER(series), INTEGER(in->hour), INTEGER(host), INTEGER(late), INTEGER(one.uploads),
                             INTEGER(one.processes), INTEGER(one.ticks), INTEGER(one.calls), INTEGER(one.first),
                             INTEGER(one.last), INTEGER(one.inexact), BLOB(shares, n)),
                      e);
}

enum profd_status sqlite_host_totals_each(struct store *s, int64_t series, size_t builds, int64_t from, int64_t to,
                                          int64_t before, sqlite_host_total_sink *each, void *context,
                                          struct profd_error *e)
{
    sqlite3_stmt *q;
    TRY(sqlite_start(s, SQL_HOST_TOTALS, VALUES(INTEGER(series), INTEGER(from), INTEGER(to), INTEGER(before)), &q, e));
    enum profd_status status = PROFD_OK;
    while (sqlite_row(s, q, &status, e)) {
        struct sqlite_host_total x = {.host = sqlite3_column_int64(q, SQLITE_SUM_COLUMNS),
                                      .name = sqlite_text(q, SQLITE_SUM_COLUMNS + 1),
                                      .identity = sqlite_text(q, SQLITE_SUM_COLUMNS + 2)};
        status = sqlite_sums_read(s, q, builds, &x.sums, e);
        if (status == PROFD_OK) {
            status = each(context, &x, e);
        }
    }
    return status;
}

/* Totals that are added up by host. */
struct host_sum {
    const char *name, *identity;
    struct sqlite_sums *sums; /* without the builds that are not there */
};

struct adding_hosts {
    struct arena *arena;
    struct hashmap at; /* row of fleet_host → index */
    struct host_sum *hosts;
    uint32_t count, capacity;
};

static enum profd_status add_host(void *context, const struct sqlite_host_total *x, struct profd_error *e)
{
    struct adding_hosts *h = context;
    const size_t size = SQLITE_SUMS_SIZE(x->sums.build_count);
    const uint32_t *at = hashmap_find(&h->at, &x->host, sizeof x->host);
    if (at) {
        sqlite_sums_add(h->hosts[*at].sums, &x->sums);
        return PROFD_OK;
    }
    h->hosts = arena_extend(h->arena, h->hosts, h->count, &h->capacity, sizeof *h->hosts);
    struct host_sum one = {.name = arena_copy(h->arena, x->name, strlen(x->name)),
                           .identity = arena_copy(h->arena, x->identity, strlen(x->identity)),
                           .sums = arena_take(h->arena, size)};
    if (!h->hosts || !one.name || !one.identity || !one.sums ||
        !hashmap_put(&h->at, &x->host, sizeof x->host, &h->count, sizeof h->count)) {
        return profd_no_memory(e);
    }
    memcpy(one.sums, &x->sums, size);
    h->hosts[h->count++] = one;
    return PROFD_OK;
}

static void put_number(struct buffer *b, uint64_t n)
{
    uint8_t bytes[VARINT_MAX];
    buffer_add(b, bytes, (size_t)(varint_put(bytes, n) - bytes));
}

static void put_host(struct buffer *b, const struct host_sum *h)
{
    const struct sqlite_sums *x = h->sums;
    uint8_t shares[SQLITE_SHARES_BYTES];
    const size_t n = sqlite_shares_encode(x, shares);
    buffer_add(b, h->identity, strlen(h->identity) + 1);
    buffer_add(b, h->name, strlen(h->name) + 1);
    put_number(b, x->uploads);
    put_number(b, x->processes);
    put_number(b, x->ticks);
    put_number(b, x->calls);
    put_number(b, (uint64_t)x->first);
    put_number(b, (uint64_t)x->last - (uint64_t)x->first);
    put_number(b, x->inexact);
    put_number(b, n);
    buffer_add(b, shares, n);
}

enum profd_status sqlite_host_totals_encode(struct store *s, struct arena *a, int64_t series, size_t builds,
                                            int64_t from, int64_t to, int64_t before, const uint8_t **out, size_t *size,
                                            struct profd_error *e)
{
    struct adding_hosts h = {.arena = a};
    struct buffer b;
    *size = 0;
    hashmap_init(&h.at, 0);
    const enum profd_status status = sqlite_host_totals_each(s, series, builds, from, to, before, add_host, &h, e);
    hashmap_clear(&h.at);
    TRY(status);
    if (h.count == 0) {
        return PROFD_OK;
    }
    buffer_init(&b, SIZE_MAX);
    for (uint32_t i = 0; i < h.count; i++) {
        put_host(&b, &h.hosts[i]);
    }
    uint8_t *copy = b.failed ? NULL : arena_take(a, b.size);
    if (copy) {
        memcpy(copy, b.data, b.size);
        *out = copy;
        *size = b.size;
    }
    buffer_done(&b);
    return copy ? PROFD_OK : profd_no_memory(e);
}

/* A string with its NUL; NULL: the bytes end. */
static const char *take_string(const uint8_t **at, const uint8_t *end)
{
    const uint8_t *text = *at, *nul = memchr(text, 0, (size_t)(end - text));
    *at = nul ? nul + 1 : end;
    return nul ? (const char *)text : NULL;
}

/* Reads one host. False: the bytes are not an encoding. */
static bool take_host(const uint8_t **at, const uint8_t *end, size_t builds, struct sqlite_host_total *x)
{
    uint64_t numbers[8];
    x->identity = take_string(at, end);
    x->name = take_string(at, end);
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        if (!varint_get(at, end, &numbers[i])) {
            return false;
        }
    }
    const uint8_t *shares = *at;
    if (!x->identity || !x->name || numbers[6] > UINT32_MAX || numbers[7] > (size_t)(end - shares)) {
        return false;
    }
    sqlite_sums_init(&x->sums, builds);
    x->sums.uploads = numbers[0];
    x->sums.processes = numbers[1];
    x->sums.ticks = numbers[2];
    x->sums.calls = numbers[3];
    x->sums.first = (int64_t)numbers[4];
    x->sums.last = (int64_t)(numbers[4] + numbers[5]);
    x->sums.inexact = (uint32_t)numbers[6];
    *at += numbers[7];
    return numbers[0] <= SUM_MAX && numbers[1] <= SUM_MAX && numbers[2] <= SUM_MAX && numbers[3] <= SUM_MAX &&
           sqlite_shares_decode(shares, (size_t)numbers[7], &x->sums);
}

enum profd_status sqlite_host_totals_decode(struct store *s, const uint8_t *bytes, size_t size, size_t builds,
                                            sqlite_host_total_sink *each, void *context, struct profd_error *e)
{
    const uint8_t *at = bytes, *end = bytes + size;
    while (at < end) {
        struct sqlite_host_total x = {.host = 0};
        if (!take_host(&at, end, builds, &x)) {
            return profd_error_set(e, PROFD_DAMAGED,
                                   "database %s: totals by host that the tier gave for it break their rules", s->path);
        }
        TRY(each(context, &x, e));
    }
    return PROFD_OK;
}
