/* Reading uploads back: order, scope, windows, labels. */
#include <stdio.h>
#include <string.h>

#include "tests/contract/store/fixture.h"

STORE_TEST(uploads_come_in_order_of_commit_over_series)
{
    struct made m;
    for (uint32_t i = 1; i <= 6; i++) {
        make_upload(&m, 1000 + i % 2, 1, i);
        if (i % 3 == 0) {
            add_label(&m, "service", "web");
        }
        put(f, &m);
    }
    cr_assert_str_eq(list_all(f, everybody),
                     "1:u1001 s1 n1 2:u1000 s1 n2 3:u1001 s1 n3 4:u1000 s1 n4 5:u1001 s1 n5 6:u1000 s1 n6 ");
    cr_assert_str_eq(list_all(f, only(1000)), "2:u1000 s1 n2 4:u1000 s1 n4 6:u1000 s1 n6 ");
    cr_assert_str_eq(list_all(f, only(5)), "");
}

struct seen {
    int count;
    uint64_t series[4];
    struct profd_error *e;
};

static enum profd_status check_row(void *context, const struct store_row *row, struct profd_error *e)
{
    (void)e;
    struct seen *s = context;
    s->series[s->count++] = row->series;
    cr_assert_eq(row->commit, (uint64_t)s->count);
    cr_assert_eq(row->uid, 42);
    cr_assert_str_eq(row->host, "0123456789abcdef0123456789abcdef");
    cr_assert_eq(row->start, NOON - 5);
    cr_assert_eq(row->end, NOON + 6);
    cr_assert_eq(row->inexact, INEXACT_CLOCK | INEXACT_CALLS_LOST);
    cr_assert_eq(row->processes_started, 1);
    cr_assert_eq(row->program, 1);
    cr_assert_eq(row->build_count, 2);
    cr_assert_str_eq(row->builds[0].id.text, full_id("aa01"));
    cr_assert_str_eq(row->builds[0].name, "/usr/bin/program");
    cr_assert_str_eq(row->builds[1].id.text, full_id("bb02"));
    cr_assert_str_eq(row->builds[1].name, "libone.so");
    cr_assert_eq(row->builds[0].nanoseconds + row->builds[1].calls, 0);
    return PROFD_OK;
}

STORE_TEST(row_says_everything_that_was_put)
{
    struct made m;
    struct seen seen = {.count = 0};
    for (uint32_t i = 1; i <= 3; i++) {
        make_upload(&m, 42, 1, i);
        m.u.program = 1;
        m.u.start = NOON - 5;
        m.u.end = NOON + 6;
        m.u.inexact = INEXACT_CLOCK | INEXACT_CALLS_LOST;
        m.u.processes_started = 1;
        if (i == 2) {
            add_label(&m, "version", "2");
        }
        put(f, &m);
    }
    OK(f, store_each_upload(f->r, &everybody, &(struct store_filter){.build_id = full_id("bb02"), .as_program = true},
                            check_row, &seen, &f->e));
    cr_assert_eq(seen.count, 3);
    cr_assert_eq(seen.series[0], seen.series[2]);
    cr_assert_neq(seen.series[0], seen.series[1]);
}

STORE_TEST(as_program_leaves_out_processes_that_only_load_it)
{
    struct made m;
    make_upload(&m, 1, 1, 1);
    put(f, &m);
    make_upload(&m, 1, 1, 2);
    m.u.program = 1;
    put(f, &m);
    struct store_filter filter = {.build_id = full_id("aa01"), .as_program = true};
    cr_assert_str_eq(list_uploads(f, everybody, &filter), "1:u1 s1 n1 ");
    filter.as_program = false;
    cr_assert_str_eq(list_uploads(f, everybody, &filter), "1:u1 s1 n1 2:u1 s1 n2 ");
    filter.build_id = full_id("cc");
    cr_assert_str_eq(list_uploads(f, everybody, &filter), "");
}

static const char *window(struct fixture *f, int64_t since, int64_t until)
{
    return list_uploads(f, everybody,
                        &(struct store_filter){.build_id = full_id("aa01"), .since = since, .until = until});
}

STORE_TEST(windows_are_half_open_to_the_nanosecond)
{
    static const int64_t starts[] = {NOON, NOON + HOUR, NOON - 30 * HOUR, NOON + 2 * HOUR};
    static const int64_t ends[] = {NOON + HOUR, NOON + HOUR, NOON + 30 * HOUR, NOON + 3 * HOUR};
    struct made m;
    for (uint32_t i = 0; i < 4; i++) {
        make_upload(&m, 1, 1, i + 1);
        m.u.start = starts[i];
        m.u.end = ends[i];
        put(f, &m);
    }
    cr_assert_str_eq(window(f, 0, 0), "1:u1 s1 n1 2:u1 s1 n2 3:u1 s1 n3 4:u1 s1 n4 ");
    cr_assert_str_eq(window(f, NOON + HOUR, 0), "1:u1 s1 n1 2:u1 s1 n2 3:u1 s1 n3 4:u1 s1 n4 ", "ends at since: in it");
    cr_assert_str_eq(window(f, NOON + HOUR + 1, 0), "3:u1 s1 n3 4:u1 s1 n4 ");
    cr_assert_str_eq(window(f, 0, NOON + HOUR), "", "ends at until: not in it");
    cr_assert_str_eq(window(f, 0, NOON + HOUR + 1), "1:u1 s1 n1 2:u1 s1 n2 ");
    cr_assert_str_eq(window(f, NOON + 30 * HOUR, NOON + 40 * HOUR), "3:u1 s1 n3 ", "where it began does not matter");
    cr_assert_str_eq(window(f, NOON + 30 * HOUR + 1, INT64_MAX), "");
    cr_assert_str_eq(window(f, 1, NOON - 30 * HOUR), "");
}

static const char *matching(struct fixture *f, size_t n, const struct store_matcher *matchers)
{
    return list_uploads(f, everybody,
                        &(struct store_filter){.build_id = full_id("aa01"), .matcher_count = n, .matchers = matchers});
}

STORE_TEST(matchers_treat_an_absent_label_as_empty)
{
    struct made m;
    make_upload(&m, 1, 1, 1);
    put(f, &m);
    make_upload(&m, 1, 1, 2);
    add_label(&m, "host", "a");
    put(f, &m);
    make_upload(&m, 1, 1, 3);
    add_label(&m, "host", "b");
    add_label(&m, "service", "web");
    put(f, &m);
    struct store_matcher q[] = {{.name = "host", .value = "a"}, {.name = "service", .value = ""}};
    cr_assert_str_eq(matching(f, 1, q), "2:u1 s1 n2 ");
    q[0].match = STORE_MATCH_NOT_EQUAL;
    cr_assert_str_eq(matching(f, 1, q), "1:u1 s1 n1 3:u1 s1 n3 ");
    cr_assert_str_eq(matching(f, 2, q), "1:u1 s1 n1 ");
    q[1].match = STORE_MATCH_NOT_EQUAL;
    cr_assert_str_eq(matching(f, 2, q), "3:u1 s1 n3 ");
    q[0] = (struct store_matcher){.name = "service", .value = "we"};
    cr_assert_str_eq(matching(f, 1, q), "", "a value is compared whole");
    q[0] = (struct store_matcher){.name = "servic", .value = "eweb"};
    cr_assert_str_eq(matching(f, 1, q), "", "name and value do not run into each other");
}

static enum profd_status stop_at_second(void *context, const struct store_row *row, struct profd_error *e)
{
    ++*(int *)context;
    return row->commit == 2 ? profd_error_set(e, PROFD_TIMEOUT, "enough") : PROFD_OK;
}

STORE_TEST(reader_may_stop_and_go_on)
{
    struct made m;
    int calls = 0;
    for (uint32_t i = 1; i <= 3; i++) {
        make_upload(&m, 1, 1, i);
        put(f, &m);
    }
    struct store_filter filter = {.build_id = full_id("aa01")};
    FAILS(f, PROFD_TIMEOUT, store_each_upload(f->r, &everybody, &filter, stop_at_second, &calls, &f->e));
    cr_assert_str_eq(f->e.sentence, "enough");
    cr_assert_eq(calls, 2);
    make_upload(&m, 1, 1, 4);
    put(f, &m);
    cr_assert_str_eq(list_all(f, everybody), "1:u1 s1 n1 2:u1 s1 n2 3:u1 s1 n3 4:u1 s1 n4 ");
}

static uint8_t big[3 << 20];

static enum profd_status check_big(void *context, const struct store_row *row, struct profd_error *e)
{
    (void)e;
    size_t *rows = context;
    cr_assert_eq(row->counts_size, *rows == 0 ? sizeof big : 0);
    cr_assert_eq(memcmp(row->counts, big, row->counts_size), 0);
    ++*rows;
    return PROFD_OK;
}

STORE_TEST(large_and_empty_counts_come_back_whole)
{
    struct made m;
    size_t rows = 0;
    for (size_t i = 0; i < sizeof big; i++) {
        big[i] = (uint8_t)(i * 31 + i / 257 + 1);
    }
    make_upload(&m, 1, 1, 1);
    m.u.counts = big;
    m.u.counts_size = sizeof big;
    put(f, &m);
    make_upload(&m, 1, 1, 2);
    m.u.counts_size = 0;
    put(f, &m);
    fixture_reopen(f);
    OK(f, store_each_upload(f->r, &everybody, &(struct store_filter){.build_id = full_id("aa01")}, check_big, &rows,
                            &f->e));
    cr_assert_eq(rows, 2);
}

static enum profd_status is_relabelled(void *context, const struct store_row *row, struct profd_error *e)
{
    (void)context;
    (void)e;
    cr_assert_eq(row->inexact, INEXACT_LABEL_LEFT_OUT);
    return PROFD_OK;
}

/* A label with too many values makes no series for each of them: not the number of requests, but the limit. */
STORE_TEST(labels_have_so_many_new_values_in_an_hour)
{
    static struct made made[LIMIT_LABEL_VALUES_PER_HOUR];
    static struct store_upload uploads[LIMIT_LABEL_VALUES_PER_HOUR];
    static enum store_outcome outcomes[LIMIT_LABEL_VALUES_PER_HOUR];
    static char values[LIMIT_LABEL_VALUES_PER_HOUR][8];
    struct made m;
    for (uint32_t i = 0; i < LIMIT_LABEL_VALUES_PER_HOUR; i++) {
        make_upload(&made[i], 1, 1, i + 1);
        (void)snprintf(values[i], sizeof values[i], "%u", i);
        add_label(&made[i], "request", values[i]);
        uploads[i] = made[i].u;
        uploads[i].labels = made[i].labels;
    }
    OK(f, store_put_uploads(f->w, uploads, LIMIT_LABEL_VALUES_PER_HOUR, outcomes, &f->e));
    for (uint32_t i = 0; i < LIMIT_LABEL_VALUES_PER_HOUR; i++) {
        cr_assert_eq(outcomes[i], STORE_STORED, "%u", i);
    }
    for (uint32_t i = 0; i < 3; i++) { /* two new values, and one that is known */
        make_upload(&m, 1, 1, LIMIT_LABEL_VALUES_PER_HOUR + 1 + i);
        add_label(&m, "request", i == 0 ? "new" : i == 1 ? "newer" : "7");
        add_label(&m, "service", "web");
        m.u.label_count = i == 2 ? 1 : 2;
        m.u.inexact |= i == 1 ? (uint32_t)INEXACT_LABEL_LEFT_OUT : 0; /* the sender left out another one */
        cr_assert_eq(put(f, &m), i == 2 ? STORE_STORED : STORE_RELABELLED, "%u", i);
    }
    const struct store_matcher other[] = {{.name = "request", .value = STORE_OTHER},
                                          {.name = "service", .value = "web"}};
    cr_assert_str_eq(matching(f, 2, other), "1001:u1 s1 n1001 1002:u1 s1 n1002 ");
    OK(f, store_each_upload(f->r, &everybody,
                            &(struct store_filter){.build_id = full_id("aa01"), .matcher_count = 2, .matchers = other},
                            is_relabelled, NULL, &f->e));
    make_upload(&m, 2, 1, 1); /* another user, */
    add_label(&m, "request", "new");
    cr_assert_eq(put(f, &m), STORE_STORED);
    make_upload(&m, 1, 1, 2000); /* and the next hour */
    m.u.received += HOUR;
    add_label(&m, "request", "newest");
    cr_assert_eq(put(f, &m), STORE_STORED);
}
