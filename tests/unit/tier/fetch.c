/* Reading sums that were moved to ClickHouse: each that is asked for comes exactly once, or the answer is an error that
 * names the days. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "core/buffer.h"
#include "tests/unit/tier/fake.h"
#include "tier/fetch.h"
#include "tier/row_binary.h"

#define PROGRAM "abababababababababababababababababababab"

/* Two sums of one block and a later one of the next. */
static struct store_stub stubs[3] = {
    {.block = {.number = 8, .attempt = 2, .day = 20401}, .program = PROGRAM, .series = {1}, .level = 1, .at = 20401},
    {.block = {.number = 7, .attempt = 1, .day = 20400}, .program = PROGRAM, .series = {2}, .level = 0, .at = 489600},
    {.block = {.number = 7, .attempt = 1, .day = 20400}, .program = PROGRAM, .series = {1}, .level = 0, .at = 489601},
};

static void put_row(struct buffer *b, const struct store_stub *s, uint32_t attempt)
{
    rows_put_count(b, 2);
    rows_put_text(b, "host-a");
    rows_put_text(b, "host-b");
    rows_put_bytes(b, "counts", 6);
    rows_put_bytes(b, "spread!", 7);
    rows_put_u32(b, (uint32_t)s->block.number);
    rows_put_u32(b, attempt);
    rows_put_fixed(b, s->series, sizeof s->series);
    rows_put_u8(b, (uint8_t)s->level);
    rows_put_i64(b, s->at);
}

struct given {
    unsigned of[3];
    enum profd_status status;
};

static enum profd_status give(void *context, size_t stub, const struct store_bulk *bulk, struct profd_error *e)
{
    struct given *g = context;
    g->of[stub]++;
    cr_expect(bulk->counts_size == 6 && !memcmp(bulk->counts, "counts", 6));
    cr_expect(bulk->spread_size == 7 && !memcmp(bulk->spread, "spread!", 7));
    cr_expect(bulk->host_count == 2 && !strcmp(bulk->hosts[1], "host-b"));
    return g->status ? profd_error_set(e, g->status, "as the test says") : PROFD_OK;
}

/* Fetches the stubs from a server that replies with these rows, the last `cut` bytes left out. */
static enum profd_status fetch(struct server *s, const struct buffer *rows, size_t cut, struct given *g,
                               struct profd_error *e)
{
    struct buffer reply;
    struct clickhouse_address address;
    struct fetcher *f;
    char url[100];
    buffer_init(&reply, SIZE_MAX);
    buffer_add_format(&reply, OK_HEAD "Content-Length: %zu\r\n\r\n", rows->size - cut);
    buffer_add(&reply, rows->data, rows->size - cut);
    *s = (struct server){
        .settings = ALL_SETTINGS, .replies = (const char *const[]){reply.data}, .sizes = &reply.size, .count = 1};
    server_start(s);
    (void)snprintf(url, sizeof url, "http://127.0.0.1:%u/d", s->port);
    cr_assert(!clickhouse_parse_address(url, &address, e) && !fetcher_new(&address, NULL, &f, e));
    const struct store_archive *a = fetcher_get_archive(f);
    e->sentence[0] = 0;
    const enum profd_status status = a->fetch(a->context, stubs, 3, STORE_ARCHIVE_SPREAD, give, g, e);
    fetcher_free(f);
    server_stop(s);
    buffer_done(&reply);
    return status;
}

/* Rows of these stubs, each with an attempt. */
static struct buffer make_rows(size_t n, const size_t *which, uint32_t other_attempt)
{
    struct buffer b;
    buffer_init(&b, SIZE_MAX);
    for (size_t i = 0; i < n; i++) {
        put_row(&b, &stubs[which[i]], stubs[which[i]].block.attempt + other_attempt);
    }
    return b;
}

Test(fetch, each_sum_once)
{
    struct buffer rows = make_rows(3, (const size_t[]){2, 0, 1}, 0);
    struct given g = {.status = PROFD_OK};
    struct profd_error e;
    struct server s;
    cr_assert_eq(fetch(&s, &rows, 0, &g, &e), PROFD_OK, "%s", e.sentence);
    cr_assert(g.of[0] == 1 && g.of[1] == 1 && g.of[2] == 1);
    cr_assert(strstr(s.request, "day BETWEEN 20400 AND 20401") &&
                  strstr(s.request, "(block = 7 AND attempt = 1 AND level = 0 AND (series, at) IN (('\\x01\\x00") &&
                  strstr(s.request, "counts, spread, block, attempt"),
              "%s", s.request);
    g = (struct given){.status = PROFD_LIMIT}; /* of the caller: it is not ClickHouse's */
    cr_assert_eq(fetch(&s, &rows, 0, &g, &e), PROFD_LIMIT);
    cr_assert_str_eq(e.sentence, "as the test says");
    buffer_done(&rows);
}

Test(fetch, not_each_sum_once)
{
    static const struct {
        size_t n, which[4];
        uint32_t attempt;
        const char *says;
    } wrong[] = {{0, {0}, 0, "has 0 of 3 sums"},
                 {2, {0, 1}, 0, "has 2 of 3 sums"},
                 {4, {0, 1, 2, 1}, 0, "has it twice"},
                 {3, {0, 1, 2}, 1, "not asked for"}};
    struct profd_error e;
    struct server s;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct given g = {.status = PROFD_OK};
        struct buffer rows = make_rows(wrong[i].n, wrong[i].which, wrong[i].attempt);
        cr_expect_eq(fetch(&s, &rows, 0, &g, &e), PROFD_UNAVAILABLE);
        cr_expect(strstr(e.sentence, wrong[i].says) && strstr(e.sentence, "the days 2025-11-08 to 2025-11-09"), "%s",
                  e.sentence);
        buffer_done(&rows);
    }
}

Test(fetch, cut_off_within_a_row)
{
    struct buffer rows = make_rows(3, (const size_t[]){0, 1, 2}, 0);
    struct profd_error e;
    struct server s;
    for (size_t cut = 1; cut < rows.size / 3; cut += 3) {
        struct given g = {.status = PROFD_OK};
        cr_expect_eq(fetch(&s, &rows, cut, &g, &e), PROFD_UNAVAILABLE);
        cr_expect(strstr(e.sentence, "ends within a sum") != NULL && g.of[2] == 0, "%s", e.sentence);
    }
    buffer_done(&rows);
}

Test(fetch, after_a_failure_to_connect_none_is_tried_for_a_while)
{
    struct clickhouse_address address;
    struct server s = {.settings = ALL_SETTINGS, .replies = (const char *const[]){""}, .count = 1};
    struct given g = {.status = PROFD_OK};
    struct profd_error e;
    struct fetcher *f;
    char url[100];
    server_start(&s);
    server_stop(&s); /* nothing listens on its port */
    (void)snprintf(url, sizeof url, "http://127.0.0.1:%u/d", s.port);
    cr_assert(!clickhouse_parse_address(url, &address, &e) && !fetcher_new(&address, NULL, &f, &e));
    const struct store_archive *a = fetcher_get_archive(f);
    for (int i = 0; i < 2; i++) {
        cr_expect_eq(a->fetch(a->context, stubs, 3, STORE_ARCHIVE_SPREAD, give, &g, &e), PROFD_UNAVAILABLE);
        cr_expect(!strncmp(e.sentence, "the days 2025-11-08 to 2025-11-09 cannot be read from ClickHouse now: ", 70),
                  "%s", e.sentence);
    }
    fetcher_free(f);
}
