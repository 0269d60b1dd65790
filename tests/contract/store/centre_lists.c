/* Lists and upkeep of a centre: what hosts of two tenants sent is listed, retired and deleted as it was sent. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/contract/store/arrival_fixture.h"
#include "tests/contract/store/harvest_fixture.h"

#define FIRST STORE_TENANT
#define SECOND (STORE_TENANT - 1)
#define OLDEST (MIDNIGHT - DAY)

static void admit_of(struct fixture *f, const struct sender *s, const char *name, uint32_t tenant)
{
    struct store_arrival a = {.name = name, .number = 99, .now = NOON + DAY, .tenant = tenant};
    struct store_admission admission;
    memcpy(a.host, s->identity, sizeof a.host);
    OK(f, store_admit_hosts(f->w, &a, 1, &admission, &f->e));
}

/* An upload of a program with libone.so, whose labels are env and the host. */
static void put_program(struct sender *s, uint32_t sequence, const char *id, const char *name, int64_t end, uint64_t n)
{
    struct made m;
    make_counted(&m, 1, 1, sequence, end, n);
    make_build(&m.builds[0], id, name);
    m.builds[0].nanoseconds = (n + 1) * 10000000;
    m.builds[0].calls = 2;
    add_label(&m, "env", "prod");
    cr_assert_eq(put_counted(&s->store, &m), STORE_STORED);
}

static void deliver_all(struct fixture *f, struct sender *s)
{
    seal(s);
    for (size_t i = 0; i < s->n; i++) {
        const struct store_receipt r = deliver(f, &s->list[i]);
        cr_assert(!r.unknown && r.outcome == STORE_SEGMENT_COUNTED && !r.again);
    }
    forget_sealed(s);
}

/* Two hosts of two tenants with a program in common, on three days; the first tenant's has another program, too. */
struct centre {
    struct sender *a, *b;
};

static struct centre fill(struct fixture *f)
{
    struct centre c = {open_sender(7), open_sender(9)};
    admit_of(f, c.a, "a.example", FIRST);
    admit_of(f, c.b, "b.example", SECOND);
    for (uint32_t day = 0; day < 3; day++) {
        put_program(c.a, 2 * day + 1, "aa01", "/usr/bin/program", OLDEST + day * DAY + HOUR, 10 + day);
        put_program(c.a, 2 * day + 2, "aa01", "/usr/bin/program", OLDEST + day * DAY + 2 * HOUR, 20);
    }
    put_program(c.a, 7, "cc03", "/usr/bin/other", OLDEST + 2 * DAY + 3 * HOUR, 5);
    deliver_all(f, c.a);
    put_program(c.b, 1, "aa01", "/opt/program", OLDEST + DAY + HOUR, 30);
    deliver_all(f, c.b);
    return c;
}

static void done(struct centre *c)
{
    close_sender(c->a);
    close_sender(c->b);
}

static void copy_row(void *context, const struct build_row *row)
{
    static char name[64];
    struct build_row *out = context;
    *out = *row;
    snprintf(name, sizeof name, "%s", row->name);
    out->name = name;
    cr_assert_str_eq(row->note, "");
}

static struct build_row get(struct fixture *f, struct store_scope scope, const char *id)
{
    struct build_row row = {.uploads = 0};
    OK(f, store_get_build(f->r, &scope, full_id(id), copy_row, &row, &f->e));
    return row;
}

static bool append_label(void *context, const struct label_row *row)
{
    char *text = context;
    const size_t n = strlen(text);
    snprintf(text + n, 512 - n, "%s=%s:%llu ", row->name, row->value, (unsigned long long)row->uploads);
    return strcmp(row->value, "b.example") != 0;
}

static const char *labels(struct fixture *f, struct store_scope scope, const char *build)
{
    static char text[512];
    text[0] = 0;
    OK(f, store_each_label(f->r, &scope, build ? full_id(build) : NULL, append_label, text, &f->e));
    return text;
}

static bool append_companion(void *context, const char *id, const char *name)
{
    char *text = context;
    const size_t n = strlen(text);
    snprintf(text + n, 512 - n, "%.4s=%s ", id, name);
    return true;
}

static const char *companions(struct fixture *f, struct store_scope scope, const char *build)
{
    static char text[512];
    text[0] = 0;
    OK(f, store_each_companion(f->r, &scope, full_id(build), append_companion, text, &f->e));
    return text;
}

static void check_lists(struct fixture *f)
{
    const struct store_scope first = only(FIRST);
    struct buildid id;
    struct build_row r = get(f, everybody, "aa01");
    cr_assert_str_eq(r.name, "/usr/bin/program");
    cr_assert(r.is_program && !r.has_names && r.inexact == 0);
    cr_assert_eq(r.uploads, 7);
    cr_assert_eq(r.processes, 2);
    cr_assert_eq(r.nanoseconds, (11 + 12 + 13 + 3 * 21 + 31) * UINT64_C(10000000));
    cr_assert_eq(r.calls, 14);
    cr_assert_eq(r.first_seen, OLDEST + HOUR - 1000);
    cr_assert_eq(r.last_seen, OLDEST + 2 * DAY + 2 * HOUR);
    r = get(f, everybody, "bb02");
    cr_assert(!r.is_program && r.uploads == 8 && r.nanoseconds == 0 && r.calls == 10 + 11 + 12 + 3 * 20 + 5 + 30);
    r = get(f, only(SECOND), "aa01");
    cr_assert(r.uploads == 1 && r.processes == 1 && strcmp(r.name, "/opt/program") == 0);
    cr_assert_str_eq(list_builds(f, everybody, "", 9),
                     "aa01=/usr/bin/program:7 bb02=libone.so:8 cc03=/usr/bin/other:1 ");
    cr_assert_str_eq(list_builds(f, everybody, full_id("aa01"), 1), "bb02=libone.so:8 ");
    cr_assert_str_eq(list_builds(f, only(SECOND), "", 9), "aa01=/opt/program:1 bb02=libone.so:1 ");
    cr_assert_str_eq(list_builds(f, only(5), "", 9), "");
    OK(f, store_find_build(f->r, &first, "cc03", &id, &f->e));
    cr_assert_str_eq(id.text, full_id("cc03"));
    const struct store_scope second = only(SECOND);
    FAILS(f, PROFD_NOT_FOUND, store_find_build(f->r, &second, "cc03", &id, &f->e));
    FAILS(f, PROFD_NOT_FOUND, store_find_build(f->r, &second, full_id("cc03"), &id, &f->e));
    cr_assert_str_eq(labels(f, everybody, NULL), "env=prod:8 host=a.example:7 host=b.example:1 ");
    cr_assert_str_eq(labels(f, everybody, "cc03"), "env=prod:1 host=a.example:1 ");
    cr_assert_str_eq(labels(f, only(SECOND), NULL), "env=prod:1 host=b.example:1 ");
    cr_assert_str_eq(companions(f, everybody, "bb02"), "aa01=/usr/bin/program cc03=/usr/bin/other ");
    cr_assert_str_eq(companions(f, second, "bb02"), "aa01=/opt/program ");
    cr_assert_str_eq(companions(f, second, "cc03"), "");
}

STORE_TEST(centre_lists_what_was_sent)
{
    struct store_totals t;
    struct store_use use;
    struct centre c = fill(f);
    check_lists(f);
    OK(f, store_get_totals(f->r, &t, &f->e));
    cr_assert(t.builds == 3 && t.builds_without_names == 3 && t.uploads == 8 && t.retired_uploads == 0);
    cr_assert_eq(t.ticks, 11 + 12 + 13 + 3 * 21 + 6 + 31);
    cr_assert_eq(t.calls, 12 + 13 + 14 + 3 * 22 + 7 + 32);
    cr_assert_eq(t.users, 2);
    OK(f, store_get_use(f->r, FIRST, &use, &f->e));
    cr_assert(use.bytes > 0 && use.others > 0);
    compact_all(f, HOUR, UINT64_MAX, OLDEST + 30 * DAY);
    check_lists(f);
    expect_clean(f);
    done(&c);
}

static uint64_t list_epoch(struct fixture *f)
{
    struct store_epoch list;
    OK(f, store_epoch_all(f->r, &everybody, &list, &f->e));
    return list.number;
}

STORE_TEST(centre_retires_whole_days)
{
    struct store_totals t;
    struct centre c = fill(f);
    compact_all(f, HOUR, UINT64_MAX, OLDEST + DAY + HOUR);
    const uint64_t epoch = epoch_of(f, everybody, "aa01"), other = epoch_of(f, everybody, "cc03"), list = list_epoch(f);
    cr_assert_eq(retire_all(f, 2 * DAY, 0, OLDEST + 3 * DAY - 1), 0, "the day did not end two days ago");
    cr_assert_eq(epoch_of(f, everybody, "aa01"), epoch);
    cr_assert_eq(retire_all(f, 2 * DAY, 0, OLDEST + 3 * DAY), 2);
    cr_assert_neq(epoch_of(f, everybody, "aa01"), epoch);
    cr_assert_eq(epoch_of(f, everybody, "cc03"), other, "nothing of it is gone");
    cr_assert_neq(list_epoch(f), list);
    cr_assert_eq(look_window(f, 0, 0).uploads, 5);
    cr_assert_eq(get(f, everybody, "aa01").first_seen, OLDEST + DAY + HOUR - 1000);
    cr_assert_eq(retire_all(f, DAY, 0, OLDEST + 3 * DAY), 3);
    cr_assert_str_eq(list_builds(f, everybody, "", 9),
                     "aa01=/usr/bin/program:2 bb02=libone.so:3 cc03=/usr/bin/other:1 ");
    cr_assert_str_eq(list_builds(f, only(SECOND), "", 9), "", "a build without data is not listed");
    put_program(c.b, 2, "aa01", "/opt/program", OLDEST + 3 * HOUR, 40);
    deliver_all(f, c.b);
    cr_assert_eq(get(f, only(SECOND), "aa01").uploads, 1, "what comes later is stored");
    expect_clean(f);
    OK(f, store_get_totals(f->r, &t, &f->e));
    cr_assert(t.uploads == 9 && t.retired_uploads == 5 && t.retired_ticks == 11 + 12 + 2 * 21 + 31);
    cr_assert_eq(retire_all(f, DAY, 0, OLDEST + 3 * DAY), 1, "until it is removed, too");
    expect_clean(f);
    cr_assert_eq(retire_all(f, 0, 1, OLDEST + 2 * DAY + HOUR), 0, "today stays");
    cr_assert_eq(retire_all(f, 0, 1, OLDEST + 3 * DAY + HOUR), 3, "too much is stored");
    OK(f, store_get_totals(f->r, &t, &f->e));
    cr_assert(t.uploads == 9 && t.retired_uploads == 9 && t.retired_calls == t.calls && t.builds == 0);
    cr_assert_eq(epoch_of(f, everybody, "aa01"), 0);
    expect_clean(f);
    done(&c);
}

STORE_TEST(centre_deletes_a_program_of_a_tenant)
{
    const struct store_scope first = only(FIRST), second = only(SECOND);
    struct made_object o;
    struct store_totals t;
    struct centre c = fill(f);
    uint64_t removed = 0;
    make_object(&o, "aa01", "v", 0, true, "symbols");
    OK(f, store_put_object(f->w, &o.o, &f->e));
    compact_all(f, HOUR, UINT64_MAX, OLDEST + 2 * DAY);
    FAILS(f, PROFD_NOT_FOUND, store_delete_build(f->w, &everybody, full_id("dd"), &removed, &f->e));
    FAILS(f, PROFD_NOT_FOUND, store_delete_build(f->w, &second, full_id("cc03"), &removed, &f->e));
    FAILS(f, PROFD_REFUSED, store_delete_build(f->w, &second, full_id("bb02"), &removed, &f->e));
    cr_assert(strstr(f->e.sentence, full_id("aa01")), "%s", f->e.sentence);
    const uint64_t epoch = epoch_of(f, everybody, "bb02"), theirs = epoch_of(f, second, "aa01");
    OK(f, store_delete_build(f->w, &first, full_id("aa01"), &removed, &f->e));
    cr_assert_eq(removed, 6);
    cr_assert_neq(epoch_of(f, everybody, "bb02"), epoch);
    cr_assert_eq(epoch_of(f, second, "aa01"), theirs);
    cr_assert_str_eq(list_builds(f, first, "", 9), "bb02=libone.so:1 cc03=/usr/bin/other:1 ");
    cr_assert_str_eq(list_builds(f, second, "", 9), "aa01=/opt/program:1 bb02=libone.so:1 ");
    cr_assert_eq(look_window(f, 0, 0).uploads, 1);
    cr_assert_str_eq(get_content(f, "aa01", 1, (uint32_t[]){SECOND}, NULL), "symbols", "somebody still has the build");
    OK(f, store_get_totals(f->r, &t, &f->e));
    cr_assert(t.uploads == 8 && t.retired_uploads == 6 && t.retired_ticks == 11 + 12 + 13 + 3 * 21);
    expect_clean(f);
    FAILS(f, PROFD_NOT_FOUND, store_delete_build(f->w, &first, full_id("aa01"), &removed, &f->e));
    OK(f, store_delete_build(f->w, &everybody, full_id("aa01"), &removed, &f->e));
    cr_assert_eq(removed, 1);
    cr_assert_str_eq(get_content(f, "aa01", 1, (uint32_t[]){SECOND}, NULL), "");
    cr_assert_str_eq(list_builds(f, everybody, "", 9), "bb02=libone.so:1 cc03=/usr/bin/other:1 ");
    OK(f, store_get_totals(f->r, &t, &f->e));
    cr_assert(t.uploads == 8 && t.retired_uploads == 7);
    expect_clean(f);
    done(&c);
}

STORE_TEST(centre_retires_objects_that_nothing_names)
{
    struct made_object o;
    struct centre c = fill(f);
    make_object(&o, "aa01", "v", 0, true, "symbols");
    o.o.received = OLDEST;
    OK(f, store_put_object(f->w, &o.o, &f->e));
    make_object(&o, "ff07", "v", 0, true, "never run");
    o.o.received = OLDEST + 5 * DAY;
    OK(f, store_put_object(f->w, &o.o, &f->e));
    retire_all(f, 7 * DAY, 0, OLDEST + 8 * DAY + 2 * HOUR);
    cr_assert_str_eq(get_content(f, "aa01", 1, (uint32_t[]){FIRST}, NULL), "symbols");
    retire_all(f, 7 * DAY, 0, OLDEST + 11 * DAY);
    cr_assert_eq(look_window(f, 0, 0).uploads, 0);
    cr_assert_str_eq(get_content(f, "aa01", 1, (uint32_t[]){FIRST}, NULL), "");
    cr_assert_str_eq(get_content(f, "ff07", 1, (uint32_t[]){FIRST}, NULL), "never run");
    retire_all(f, 7 * DAY, 0, OLDEST + 13 * DAY);
    cr_assert_str_eq(get_content(f, "ff07", 1, (uint32_t[]){FIRST}, NULL), "");
    done(&c);
}
