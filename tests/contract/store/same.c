/* What readers get of segments is the same from SQLite and from ClickHouse: rows with their bytes, totals, limits of
 * time; before and after upkeep. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/buffer.h"
#include "core/rollup.h"
#include "core/share.h"
#include "tests/contract/store/arrival_fixture.h"

#define NOW (NOON / HOUR * HOUR + 45 * MINUTE)

#define TOTALS 16
#define BUILDS 4

/* Rows as text, which is sorted: equal times of arrival may come in any order. */
struct told {
    char *lines[4096];
    size_t n;
    uint64_t commit;
    struct store_row totals[TOTALS];
    char total_hosts[TOTALS][64];
    struct share total_shares[TOTALS][BUILDS];
    size_t total_count;
};

static void put_hex(struct buffer *b, const uint8_t *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        buffer_add_format(b, "%02x", bytes[i]);
    }
    buffer_add_char(b, ' ');
}

static void put_row(struct buffer *b, const struct store_row *row)
{
    buffer_add_format(b, "%llu+%lld ", (unsigned long long)row->start, (long long)(row->end - row->start));
    buffer_add_format(b, "width %lld commit %llu ", (long long)row->width, (unsigned long long)row->commit);
    buffer_add_format(b, "uploads %llu processes %llu inexact %x uid %u program %u ", (unsigned long long)row->uploads,
                      (unsigned long long)row->processes_started, row->inexact, row->uid, row->program);
    for (unsigned g = 0; g < RANDOM_GROUPS; g++) {
        buffer_add_format(b, "%llu,", (unsigned long long)row->groups.of[g]);
    }
    for (size_t i = 0; i < row->label_count; i++) {
        buffer_add_format(b, " %s=%s", row->labels[i].name, row->labels[i].value);
    }
    for (size_t i = 0; i < row->build_count; i++) {
        buffer_add_format(b, " %s %s", row->builds[i].id.text, row->builds[i].name);
    }
    buffer_add_text(b, " hosts");
    for (size_t i = 0; i < row->host_count; i++) {
        buffer_add_format(b, " %s", row->hosts[i]);
    }
    buffer_add_char(b, ' ');
    put_hex(b, row->counts, row->counts_size);
    put_hex(b, row->spread, row->spread_size);
    buffer_add(b, "", 1);
}

/* Adds a total to the one of its series and host: engines may give them by hours or by days. */
static void add_total(struct told *t, const struct store_row *row)
{
    struct store_row *x = t->totals;
    size_t i = 0;
    while (i < t->total_count && (x[i].series != row->series || strcmp(t->total_hosts[i], row->hosts[0]) != 0)) {
        i++;
    }
    cr_assert(i < TOTALS && row->host_count == 1 && row->build_count <= BUILDS);
    if (i == t->total_count) {
        snprintf(t->total_hosts[i], sizeof t->total_hosts[i], "%s", row->hosts[0]);
        x[i] = (struct store_row){.series = row->series, .uid = row->uid, .start = INT64_MAX};
        t->total_count++;
    }
    x[i].start = row->start < x[i].start ? row->start : x[i].start;
    x[i].end = row->end > x[i].end ? row->end : x[i].end;
    x[i].uploads += row->uploads;
    x[i].processes_started += row->processes_started;
    x[i].inexact |= row->inexact;
    x[i].calls += row->calls;
    for (size_t k = 0; k < row->build_count; k++) {
        t->total_shares[i][k].nanoseconds += row->shares[k].nanoseconds;
        t->total_shares[i][k].calls += row->shares[k].calls;
    }
}

/* The totals as lines. */
static void put_totals(struct told *t)
{
    for (size_t i = 0; i < t->total_count; i++) {
        const struct store_row *x = &t->totals[i];
        struct buffer b;
        buffer_init(&b, SIZE_MAX);
        buffer_add_format(&b, "total of %s: %llu to %llu uploads %llu processes %llu inexact %x uid %u calls %llu",
                          t->total_hosts[i], (unsigned long long)x->start, (unsigned long long)x->end,
                          (unsigned long long)x->uploads, (unsigned long long)x->processes_started, x->inexact, x->uid,
                          (unsigned long long)x->calls);
        for (size_t k = 0; k < BUILDS; k++) {
            buffer_add_format(&b, " %llu %llu", (unsigned long long)t->total_shares[i][k].nanoseconds,
                              (unsigned long long)t->total_shares[i][k].calls);
        }
        buffer_add(&b, "", 1);
        t->lines[t->n++] = b.data;
    }
}

static enum profd_status tell_row(void *context, const struct store_row *row, struct profd_error *e)
{
    struct told *t = context;
    struct buffer b;
    (void)e;
    if (row->shares) {
        add_total(t, row);
        return PROFD_OK;
    }
    cr_assert(row->commit >= t->commit, "rows ascend");
    t->commit = row->commit;
    buffer_init(&b, SIZE_MAX);
    put_row(&b, row);
    cr_assert(!b.failed && t->n < sizeof t->lines / sizeof t->lines[0]);
    t->lines[t->n++] = b.data;
    return PROFD_OK;
}

static int compare_lines(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static struct told *tell(struct fixture *f, const struct store_filter *filter)
{
    struct told *t = calloc(1, sizeof *t);
    OK(f, store_each_upload(f->r, &everybody, filter, tell_row, t, &f->e));
    put_totals(t);
    qsort(t->lines, t->n, sizeof t->lines[0], compare_lines);
    return t;
}

static void forget(struct told *t)
{
    for (size_t i = 0; i < t->n; i++) {
        free(t->lines[i]);
    }
    free(t);
}

static void expect_same(struct fixture *f, struct fixture *g, const struct store_filter *filter, size_t least)
{
    int64_t a[2], b[2];
    OK(f, store_get_range(f->r, &everybody, filter, &a[0], &a[1], &f->e));
    OK(g, store_get_range(g->r, &everybody, filter, &b[0], &b[1], &g->e));
    cr_assert(a[0] == b[0] && a[1] == b[1], "%lld %lld, %lld %lld", (long long)(a[0] - NOW), (long long)(a[1] - NOW),
              (long long)(b[0] - NOW), (long long)(b[1] - NOW));
    struct told *x = tell(f, filter), *y = tell(g, filter);
    for (size_t i = 0; i < x->n && i < y->n; i++) {
        cr_assert_str_eq(x->lines[i], y->lines[i]);
    }
    cr_assert(x->n == y->n && x->n >= least, "%zu and %zu rows", x->n, y->n);
    forget(x);
    forget(y);
}

/* Seals what a host has, and delivers it to both. */
static void send(struct fixture *f, struct fixture *g, struct sender *s, int64_t received)
{
    struct store_receipt r[MOST];
    const size_t before = s->n;
    seal(s);
    for (size_t i = before; i < s->n; i++) {
        s->list[i].received = received;
    }
    OK(f, store_put_segments(f->w, s->list + before, s->n - before, r, &f->e));
    OK(g, store_put_segments(g->w, s->list + before, s->n - before, r, &g->e));
}

static void check_all(struct fixture *f, struct fixture *g, size_t least)
{
    static const int64_t windows[][2] = {
        {NOW - 20 * MINUTE, 0},
        {NOW - 15 * MINUTE, 0},
        {NOW - 15 * MINUTE - 1, NOW - 7 * MINUTE},
        {0, NOW - HOUR},
        {NOW - 3 * DAY, NOW - 2 * HOUR},
        {NOW / HOUR * HOUR - HOUR, NOW / HOUR * HOUR},
        {NOW - 190 * MINUTE, 0},
        {1, 2},
        {NOW / DAY * DAY, 0},
    };
    const struct store_matcher m = {.name = "host", .value = "a.example", .match = STORE_MATCH_EQUAL};
    for (size_t i = 0; i < sizeof windows / sizeof windows[0]; i++) {
        for (unsigned way = i == 0 ? 0 : i % 8; way < (i == 0 ? 8 : i % 8 + 1); way++) {
            const struct store_filter filter = {PROGRAM,
                                                .as_program = way % 2 != 0,
                                                .spread = way % 2 == 0,
                                                .by_host = way / 4 != 0,
                                                .since = windows[i][0],
                                                .until = windows[i][1],
                                                .matcher_count = way / 2 % 2,
                                                .matchers = &m};
            expect_same(f, g, &filter, i == 0 && filter.matcher_count == 0 ? least : 0);
        }
    }
}

/* Two hosts, minutes, hours and days. */
static void fill(struct fixture *f, struct fixture *g, struct sender *hosts[2])
{
    for (unsigned k = 0; k < 2; k++) {
        hosts[k] = open_sender((uint8_t)(7 + k));
        admit(f, hosts[k], k == 0 ? "a.example" : "b.example", 0, 90);
        admit(g, hosts[k], k == 0 ? "a.example" : "b.example", 0, 90);
        for (unsigned i = 0; i < 40; i++) {
            put_at(hosts[k], 1 + i % 5, 1 + i / 5, NOW - 4 * DAY + i % 8 * 7 * HOUR + k * MINUTE + i, 5 + i);
        }
        send(f, g, hosts[k], NOW - 2 * HOUR);
        forget_sealed(hosts[k]);
    }
    for (unsigned i = 0; i < 12; i++) {
        const int64_t minute = NOW - (24 - 2 * i) * MINUTE;
        for (unsigned k = 0; k < 3; k++) {
            put_at(hosts[k % 2], 1 + k, 100 + i, minute + k * MINUTE / 3, 5 + k);
        }
        send(f, g, hosts[0], minute + MINUTE);
        send(f, g, hosts[1], minute + MINUTE);
        forget_sealed(hosts[0]);
        forget_sealed(hosts[1]);
    }
}

static void compare_engines(bool detail)
{
    struct fixture f, g;
    struct sender *hosts[2];
    fixture_open(&f, FIXTURE_SQLITE);
    fixture_open(&g, FIXTURE_CLICKHOUSE);
    const struct store_detail d = {.when = detail ? STORE_DETAIL_ALWAYS : STORE_DETAIL_NEVER};
    store_set_detail(f.w, &d);
    store_set_detail(g.w, &d);
    fill(&f, &g, hosts);
    check_all(&f, &g, 2);
    for (int64_t now = NOW; now <= NOW + 2 * HOUR; now += 2 * HOUR) {
        compact_all(&f, DAY * 1000, UINT64_MAX, now);
        cr_assert_gt(compact_all(&g, DAY * 1000, UINT64_MAX, now), 0);
        check_all(&f, &g, 0);
    }
    close_sender(hosts[0]);
    close_sender(hosts[1]);
    fixture_close(&f);
    fixture_close(&g);
}

Test(store_clickhouse, rows_are_those_of_sqlite)
{
    compare_engines(true);
}

Test(store_clickhouse, rows_without_hosts_are_those_of_sqlite)
{
    compare_engines(false);
}
