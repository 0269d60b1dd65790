#include "tier/fetch.h"

#include <inttypes.h>
#include <stdlib.h>

#include "net/loop.h"
#include "tier/clickhouse.h"
#include "tier/row_binary.h"
#include "tier/statement.h"

#define BATCH_STUBS 2000u
#define BATCH_BYTES (64u << 20)
#define STATEMENT_BYTES (8u << 20)
#define REPLY_BYTES (512u << 20)  /* a sum may be larger than a batch */
#define MEMORY_BYTES (4ull << 30) /* of the server, for one statement */
#define CONNECT_MS 3000u
#define ANSWER_MS 60000u /* one statement */
#define FETCH_MS 120000u /* all statements of a query */
#define AWAY_MS 2000u    /* after a failure to connect, queries fail at once for this time */
#define CLIENTS_IDLE 8u  /* connections that are kept */

/* One handle of ClickHouse, of one query at a time. */
struct fetch_client {
    struct fetcher *fetcher;
    struct clickhouse *handle;
    uint64_t until; /* ms of loop_now */
};

struct fetcher {
    const struct clickhouse_address *address;
    const char *ca;
    struct store_archive archive;
    atomic_bool ended;
    struct lock *lock; /* of what follows */
    struct fetch_client *idle[CLIENTS_IDLE];
    size_t idle_count;
    uint64_t away_until; /* ms of loop_now */
    struct profd_error away;
};

/* Of the query that this thread runs. */
static _Thread_local const atomic_bool *fetch_cancelled; /* NULL: it cannot be */
static _Thread_local bool fetch_lacked;

/* A query. */
struct fetch {
    struct fetcher *fetcher;
    const struct store_stub *stubs; /* the store's */
    bool *seen;                     /* of the batch */
    enum store_archive_part part;
    enum profd_status (*each)(void *context, size_t stub, const struct store_bulk *bulk, struct profd_error *e);
    void *each_context;
    enum profd_status failed_each; /* what it returned last */
    struct arena *arena;           /* of a row */
};

static void fetch_client_free(struct fetch_client *c)
{
    if (c) {
        clickhouse_close(c->handle);
    }
    free(c);
}

static bool fetch_client_stopped(void *context)
{
    const struct fetch_client *c = context;

    return atomic_load(&c->fetcher->ended) || loop_now() > c->until ||
           (fetch_cancelled && atomic_load(fetch_cancelled));
}

static enum profd_status fetch_client_open(struct fetcher *f, struct fetch_client **out, struct profd_error *e)
{
    struct fetch_client *c = calloc(1, sizeof *c);
    const struct clickhouse_limits limits = {.connect_ms = CONNECT_MS,
                                             .answer_ms = ANSWER_MS,
                                             .reply_bytes = REPLY_BYTES,
                                             .memory_bytes = MEMORY_BYTES,
                                             .stopped = fetch_client_stopped,
                                             .context = c};

    TRY(c ? PROFD_OK : profd_no_memory(e));
    c->fetcher = f;
    const enum profd_status status = clickhouse_open(f->address, f->ca, &limits, &c->handle, e);
    if (status) {
        fetch_client_free(c);
        return status;
    }
    *out = c;
    return PROFD_OK;
}

/* UNAVAILABLE: ClickHouse was away just now. */
static enum profd_status fetcher_take(struct fetcher *f, struct fetch_client **out, struct profd_error *e)
{
    struct fetch_client *c = NULL;
    enum profd_status status = PROFD_OK;

    lock_take(f->lock);
    if (loop_now() < f->away_until) {
        *e = f->away;
        status = PROFD_UNAVAILABLE;
    } else if (f->idle_count) {
        c = f->idle[--f->idle_count];
    }
    lock_give(f->lock);
    if (!status && !c) {
        status = fetch_client_open(f, &c, e);
    }
    if (!status) {
        c->until = loop_now() + FETCH_MS;
        *out = c;
    }
    return status;
}

static void fetcher_give(struct fetcher *f, struct fetch_client *c, enum profd_status status,
                         const struct profd_error *e)
{
    lock_take(f->lock);
    bool kept = f->idle_count < CLIENTS_IDLE;
    if (kept) {
        f->idle[f->idle_count++] = c;
    }
    if (status == PROFD_UNAVAILABLE) {
        f->away_until = loop_now() + AWAY_MS;
        f->away = *e;
    }
    lock_give(f->lock);
    if (!kept) {
        fetch_client_free(c);
    }
}

static int order_numbers(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

/* The sums of one centre, as statement_fetch wants them. */
static int stub_order(const struct store_stub *a, const struct store_stub *b)
{
    int order = order_numbers((int64_t)a->block.number, (int64_t)b->block.number);

    order = order ? order : order_numbers(a->level, b->level);
    order = order ? order : memcmp(a->series, b->series, sizeof a->series);
    return order ? order : order_numbers(a->at, b->at);
}

static int stub_order_by_centre(const void *a, const void *b)
{
    const struct store_stub *x = *(const struct store_stub *const *)a, *y = *(const struct store_stub *const *)b;
    const int order = memcmp(x->block.centre, y->block.centre, sizeof x->block.centre);

    return order ? order : stub_order(x, y);
}

/* Says which days cannot be read. */
static void fetch_name_days(const struct store_stub *const *stubs, size_t n, struct profd_error *e)
{
    int64_t first, last;

    statement_find_days(stubs, n, &first, &last);
    (void)profd_error_wrap(e, PROFD_UNAVAILABLE,
                           first == last ? "the day %s cannot be read from ClickHouse now"
                                         : "the days %s to %s cannot be read from ClickHouse now",
                           statement_format_day(first).text, statement_format_day(last).text);
}

/* The batch is sorted. NULL: the sum was not asked for, or was given before. */
static const struct store_stub *fetch_find(struct fetch *q, const struct store_stub *const *stubs, size_t n,
                                           const struct store_stub *key)
{
    size_t low = 0, high = n;

    while (low < high) {
        const size_t i = low + (high - low) / 2;

        if (stub_order(stubs[i], key) < 0) {
            low = i + 1;
        } else {
            high = i;
        }
    }
    if (low == n || stub_order(stubs[low], key) || stubs[low]->block.attempt != key->block.attempt || q->seen[low]) {
        return NULL;
    }
    q->seen[low] = true;
    return stubs[low];
}

/* Gives one row of a reply to the caller. */
static enum profd_status fetch_row(struct fetch *q, struct row_reader *r, const struct store_stub *const *stubs,
                                   size_t n, struct profd_error *e)
{
    struct store_stub key = {.bytes = 0};
    struct store_bulk bulk = {.counts = NULL};

    if (q->part == STORE_ARCHIVE_TOTALS) {
        bulk.totals = (const uint8_t *)rows_string(r, &bulk.totals_size);
    } else {
        arena_reset(q->arena);
        bulk.hosts = rows_texts(r, q->arena, &bulk.host_count);
        TRY(bulk.hosts ? PROFD_OK : profd_no_memory(e));
        bulk.counts = (const uint8_t *)rows_string(r, &bulk.counts_size);
    }
    if (q->part == STORE_ARCHIVE_SPREAD) {
        bulk.spread = (const uint8_t *)rows_string(r, &bulk.spread_size);
    }
    key.block.number = rows_u32(r);
    key.block.attempt = rows_u32(r);
    rows_fixed(r, key.series, sizeof key.series);
    key.level = rows_u8(r);
    key.at = rows_i64(r);
    FAIL_IF(r->cut, e, PROFD_PROTOCOL, "a reply of ClickHouse ends within a sum, or has a text with a NUL");
    const struct store_stub *stub = fetch_find(q, stubs, n, &key);
    FAIL_IF(!stub, e, PROFD_PROTOCOL,
            "a reply of ClickHouse has a sum of block %" PRIu64 " that was not asked for, or has it twice",
            key.block.number);
    q->failed_each = q->each(q->each_context, (size_t)(stub - q->stubs), &bulk, e);
    return q->failed_each;
}

/* One statement: n sums of one centre. */
static enum profd_status fetch_batch(struct fetch *q, struct clickhouse *handle, const struct store_stub *const *stubs,
                                     size_t n, struct profd_error *e)
{
    struct buffer statement;
    struct row_reader r;
    size_t rows = 0;

    buffer_init(&statement, STATEMENT_BYTES);
    statement_fetch(&statement, stubs, n, q->part);
    enum profd_status status = clickhouse_read(handle, &statement, &r, e);
    if (status) {
        return status;
    }
    memset(q->seen, 0, n * sizeof *q->seen);
    for (; rows_more(&r) && !status; rows++) {
        status = fetch_row(q, &r, stubs, n, e);
    }
    rows_close(&r);
    if (!status && rows < n) {
        fetch_lacked = true;
        status = profd_error_set(e, PROFD_NOT_FOUND, "ClickHouse has %zu of %zu sums that were moved there", rows, n);
    }
    return status;
}

/* The sums of a statement: those of one centre, few, and not too large. */
static size_t fetch_size_batch(const struct store_stub *const *stubs, size_t n)
{
    uint64_t bytes = stubs[0]->bytes;
    size_t i = 1;

    while (i < n && i < BATCH_STUBS && bytes + stubs[i]->bytes <= BATCH_BYTES &&
           !memcmp(stubs[i]->block.centre, stubs[0]->block.centre, sizeof stubs[0]->block.centre)) {
        bytes += stubs[i++]->bytes;
    }
    return i;
}

static enum profd_status fetch_all(struct fetch *q, const struct store_stub **sorted, size_t n, struct profd_error *e)
{
    struct fetch_client *client;
    enum profd_status status = fetcher_take(q->fetcher, &client, e);
    size_t done = 0;

    if (!status) {
        while (done < n && !status) {
            const size_t batch = fetch_size_batch(sorted + done, n - done);

            status = fetch_batch(q, client->handle, sorted + done, batch, e);
            done += status ? 0 : batch;
        }
        fetcher_give(q->fetcher, client, status, e);
    }
    if (!status || status == PROFD_NO_MEMORY || q->failed_each) {
        return status;
    }
    fetch_name_days(sorted + done, n - done, e);
    return PROFD_UNAVAILABLE;
}

static enum profd_status fetcher_fetch(void *context, const struct store_stub *stubs, size_t n,
                                       enum store_archive_part part,
                                       enum profd_status (*each)(void *each_context, size_t stub,
                                                                 const struct store_bulk *bulk, struct profd_error *e),
                                       void *each_context, struct profd_error *e)
{
    struct fetch q = {.fetcher = context, .stubs = stubs, .part = part, .each = each, .each_context = each_context};
    const struct store_stub **sorted;
    enum profd_status status;

    if (n == 0) {
        return PROFD_OK;
    }
    sorted = calloc(n, sizeof *sorted);
    q.seen = calloc(n < BATCH_STUBS ? n : BATCH_STUBS, sizeof *q.seen);
    q.arena = arena_new(0);
    if (sorted && q.seen && q.arena) {
        for (size_t i = 0; i < n; i++) {
            sorted[i] = &stubs[i];
        }
        qsort(sorted, n, sizeof *sorted, stub_order_by_centre);
        status = fetch_all(&q, sorted, n, e);
    } else {
        status = profd_no_memory(e);
    }
    arena_free(q.arena);
    free(q.seen);
    free(sorted);
    return status;
}

enum profd_status fetcher_new(const struct clickhouse_address *address, const char *ca, struct fetcher **out,
                              struct profd_error *e)
{
    struct fetcher *f = calloc(1, sizeof *f);

    if (f) {
        *f = (struct fetcher){.address = address, .ca = ca, .archive = {fetcher_fetch, f}, .lock = lock_new()};
    }
    if (!f || !f->lock) {
        free(f);
        return profd_no_memory(e);
    }
    *out = f;
    return PROFD_OK;
}

const struct store_archive *fetcher_get_archive(const struct fetcher *f)
{
    return &f->archive;
}

void fetcher_set_cancelled(const atomic_bool *cancelled)
{
    fetch_cancelled = cancelled;
    fetch_lacked = false;
}

bool fetcher_lacked(void)
{
    return fetch_lacked;
}

void fetcher_stop(struct fetcher *f)
{
    atomic_store(&f->ended, true);
}

void fetcher_free(struct fetcher *f)
{
    if (!f) {
        return;
    }
    for (size_t i = 0; i < f->idle_count; i++) {
        fetch_client_free(f->idle[i]);
    }
    lock_free(f->lock);
    free(f);
}
