/* Totals by host of the counts that a centre stores without the host. */

#include "proto/sum.h"
#include "store/store_internal.h"

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
    const struct counts *c = &in->counts;
    struct sqlite_sums one, sum;
    uint8_t shares[SQLITE_SHARES_BYTES];
    bool row = false, ignored = false;
    sqlite_incoming_sums(in, &one);
    /* The calls of a build are those of arcs that begin or end in it, as queries about one build count them. */
    for (size_t i = 0; i < one.build_count; i++) {
        one.shares[i].calls = 0;
    }
    for (uint32_t i = 0; i < c->arc_count; i++) {
        const uint32_t from = c->from_build[i], to = c->to_build[i];
        if (from < one.build_count) {
            sum_add(&one.shares[from].calls, c->calls[i], &ignored);
        }
        if (to < one.build_count && to != from) {
            sum_add(&one.shares[to].calls, c->calls[i], &ignored);
        }
    }
    TRY(sqlite_first(s, SQL_HOST_TOTAL_GET, VALUES(INTEGER(series), INTEGER(in->hour), INTEGER(host), INTEGER(late)),
                     &q, &row, e));
    enum profd_status status = PROFD_OK;
    if (row) {
        status = sqlite_sums_read(s, q, one.build_count, &sum, e);
        sqlite_finish(q);
        sqlite_sums_add(&one, &sum);
    }
    TRY(status);
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
    enum profd_status status =
        sqlite_start(s, SQL_HOST_TOTALS, VALUES(INTEGER(series), INTEGER(from), INTEGER(to), INTEGER(before)), &q, e);
    while (sqlite_row(s, q, &status, e)) {
        struct sqlite_host_total x = {.host = sqlite3_column_int64(q, SQLITE_SUM_COLUMNS),
                                      .name = sqlite_text(q, SQLITE_SUM_COLUMNS + 1),
                                      .identity = sqlite_text(q, SQLITE_SUM_COLUMNS + 2)};
        status = sqlite_sums_read(s, q, builds, &x.sums, e);
        status = status ? status : each(context, &x, e);
    }
    return status;
}

/* Totals that are added up by host. */
struct host_sum {
    const char *name, *identity;
    struct sqlite_sums *sums; /* SQLITE_SUMS_SIZE bytes */
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
        const struct host_sum *host = &h.hosts[i];
        const struct sqlite_sums *x = host->sums;
        uint8_t shares[SQLITE_SHARES_BYTES];
        const size_t n = sqlite_shares_encode(x, shares);
        buffer_add(&b, host->identity, strlen(host->identity) + 1);
        buffer_add(&b, host->name, strlen(host->name) + 1);
        const uint64_t numbers[] = {x->uploads,         x->processes,
                                    x->ticks,           x->calls,
                                    (uint64_t)x->first, (uint64_t)x->last - (uint64_t)x->first,
                                    x->inexact,         n};
        for (size_t k = 0; k < sizeof numbers / sizeof numbers[0]; k++) {
            uint8_t bytes[VARINT_MAX];
            buffer_add(&b, bytes, (size_t)(varint_put(bytes, numbers[k]) - bytes));
        }
        buffer_add(&b, shares, n);
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

/* Takes a string that ends with NUL. NULL: the bytes end before. */
static const char *take_string(const uint8_t **at, const uint8_t *end)
{
    const uint8_t *text = *at, *nul = memchr(text, 0, (size_t)(end - text));
    *at = nul ? nul + 1 : end;
    return nul ? (const char *)text : NULL;
}

enum profd_status sqlite_host_totals_decode(struct store *s, const uint8_t *bytes, size_t size, size_t builds,
                                            sqlite_host_total_sink *each, void *context, struct profd_error *e)
{
    const uint8_t *at = bytes, *end = bytes + size;
    while (at < end) {
        struct sqlite_host_total x = {.host = 0};
        uint64_t numbers[8] = {0};
        x.identity = take_string(&at, end);
        x.name = take_string(&at, end);
        bool good = x.identity && x.name;
        for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
            good = varint_get(&at, end, &numbers[i]) && (i > 3 || numbers[i] <= SUM_MAX) && good;
        }
        good = good && numbers[6] <= UINT32_MAX && numbers[7] <= (size_t)(end - at);
        sqlite_sums_init(&x.sums, builds);
        x.sums.uploads = numbers[0];
        x.sums.processes = numbers[1];
        x.sums.ticks = numbers[2];
        x.sums.calls = numbers[3];
        x.sums.first = (int64_t)numbers[4];
        x.sums.last = (int64_t)(numbers[4] + numbers[5]);
        x.sums.inexact = (uint32_t)numbers[6];
        FAIL_IF(!good || !sqlite_shares_decode(at, (size_t)numbers[7], &x.sums), e, PROFD_DAMAGED,
                "database %s: totals by host that the tier gave for it break their rules", s->path);
        at += numbers[7];
        TRY(each(context, &x, e));
    }
    return PROFD_OK;
}
