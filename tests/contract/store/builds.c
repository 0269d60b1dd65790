/* Lists: builds, labels, companions; names and prefixes. */
#include <stdio.h>
#include <string.h>

#include "tests/contract/store/fixture.h"

static void copy_row(void *context, const struct build_row *row)
{
    struct build_row *out = context;
    static char name[64], note[64];
    cr_assert_eq(out->uploads, 0, "called once");
    *out = *row;
    snprintf(name, sizeof name, "%s", row->name);
    snprintf(note, sizeof note, "%s", row->note);
    out->name = name;
    out->note = note;
}

static struct build_row get(struct fixture *f, struct store_scope scope, const char *id)
{
    struct build_row row = {.uploads = 0};
    OK(f, store_get_build(f->r, &scope, full_id(id), copy_row, &row, &f->e));
    return row;
}

STORE_TEST(sums_of_a_build_by_user_and_together)
{
    struct made m;
    make_upload(&m, 1000, 1, 1);
    m.u.inexact = INEXACT_CALLER_BUCKET;
    m.builds[0].name = "first";
    put(f, &m);
    make_upload(&m, 1000, 1, 2);
    m.u.end = NOON + 9;
    m.builds[0].name = "second";
    m.builds[0].nanoseconds = 32;
    put(f, &m);
    make_upload(&m, 1001, 1, 1);
    m.u.start = NOON - HOUR;
    m.u.program = 1;
    m.u.inexact = INEXACT_CALLS_LOST;
    m.builds[0].name = "third";
    put(f, &m);
    struct build_row r = get(f, everybody, "aa01");
    cr_assert_str_eq(r.build_id.text, full_id("aa01"));
    cr_assert_str_eq(r.name, "first");
    cr_assert(r.is_program);
    cr_assert_eq(r.first_seen, NOON - HOUR);
    cr_assert_eq(r.last_seen, NOON + 9);
    cr_assert_eq(r.uploads, 3);
    cr_assert_eq(r.processes, 2);
    cr_assert_eq(r.nanoseconds, 52);
    cr_assert_eq(r.calls, 9);
    cr_assert_eq(r.inexact, INEXACT_CALLER_BUCKET | INEXACT_CALLS_LOST);
    cr_assert_not(r.has_names);
    cr_assert_str_eq(r.note, "");
    r = get(f, only(1001), "aa01");
    cr_assert_str_eq(r.name, "third");
    cr_assert_not(r.is_program);
    cr_assert_eq(r.uploads, 1);
    cr_assert_eq(r.nanoseconds, 10);
    cr_assert_eq(r.inexact, INEXACT_CALLS_LOST);
    struct store_scope stranger = only(5);
    FAILS(f, PROFD_NOT_FOUND, store_get_build(f->r, &stranger, full_id("aa01"), copy_row, &r, &f->e));
}

STORE_TEST(sums_stop_at_their_end_and_say_so)
{
    struct made m;
    for (uint32_t i = 1; i <= 2; i++) {
        make_upload(&m, 1, 1, i);
        m.builds[0].nanoseconds = (uint64_t)INT64_MAX - 4;
        m.u.ticks = (uint64_t)INT64_MAX - 4;
        put(f, &m);
        cr_assert_eq((get(f, everybody, "aa01").inexact & INEXACT_SATURATED) != 0, i == 2);
    }
    cr_assert_eq(get(f, everybody, "aa01").nanoseconds, (uint64_t)INT64_MAX);
    make_upload(&m, 2, 1, 1);
    m.builds[0].nanoseconds = UINT64_MAX;
    put(f, &m);
    cr_assert_eq(get(f, everybody, "aa01").nanoseconds, (uint64_t)INT64_MAX);
    struct store_totals t;
    OK(f, store_get_totals(f->r, &t, &f->e));
    cr_assert_eq(t.ticks, (uint64_t)INT64_MAX);
}

STORE_TEST(list_pages_by_id_within_scope)
{
    static const char *const ids[] = {"cc", "aa", "dd", "bb"};
    struct made m;
    for (uint32_t i = 0; i < 4; i++) {
        make_upload(&m, 1 + i % 2, 1, i + 1);
        make_build(&m.builds[0], ids[i], ids[i]);
        m.u.build_count = 1;
        put(f, &m);
    }
    cr_assert_str_eq(list_builds(f, everybody, "", 10), "aa00=aa:1 bb00=bb:1 cc00=cc:1 dd00=dd:1 ");
    cr_assert_str_eq(list_builds(f, everybody, full_id("aa"), 2), "bb00=bb:1 cc00=cc:1 ");
    cr_assert_str_eq(list_builds(f, everybody, full_id("dd"), 2), "");
    cr_assert_str_eq(list_builds(f, everybody, "", 0), "");
    cr_assert_str_eq(list_builds(f, only(1), "", 10), "cc00=cc:1 dd00=dd:1 ");
    cr_assert_str_eq(list_builds(f, only(2), full_id("aa"), 10), "bb00=bb:1 ");
    cr_assert_str_eq(list_builds(f, only(9), "", 10), "");
}

static enum profd_status find(struct fixture *f, struct store_scope scope, const char *text,
                              char out[BUILDID_TEXT_SIZE])
{
    struct buildid id = {.text = "untouched"};
    enum profd_status status = store_find_build(f->r, &scope, text, &id, &f->e);
    snprintf(out, BUILDID_TEXT_SIZE, "%s", id.text);
    return status;
}

STORE_TEST(builds_are_found_by_id_and_unique_prefix)
{
    static const char *const ids[] = {"abcd12", "abcd34", "abcd", "77"};
    struct made m;
    char id[BUILDID_TEXT_SIZE];
    for (uint32_t i = 0; i < 4; i++) {
        make_upload(&m, i == 1 ? 2 : 1, 1, i + 1);
        snprintf(m.builds[0].id.text, sizeof m.builds[0].id.text, "%s", ids[i]);
        m.u.build_count = 1;
        put(f, &m);
    }
    FAILS(f, PROFD_OK, find(f, everybody, "77", id));
    cr_assert_str_eq(id, "77", "an exact id matches at any length");
    FAILS(f, PROFD_OK, find(f, everybody, "abcd", id));
    cr_assert_str_eq(id, "abcd", "an exact id is not ambiguous");
    FAILS(f, PROFD_OK, find(f, everybody, "ABCD1", id));
    cr_assert_str_eq(id, "abcd12");
    FAILS(f, PROFD_REFUSED, find(f, everybody, "abc", id));
    cr_assert_str_eq(id, "untouched");
    FAILS(f, PROFD_REFUSED, find(f, everybody, "", id));
    FAILS(f, PROFD_REFUSED, find(f, everybody, "xyz!", id));
    FAILS(f, PROFD_NOT_FOUND, find(f, everybody, "abcd5", id));
    FAILS(f, PROFD_NOT_FOUND, find(f, everybody, "9999", id));
    FAILS(f, PROFD_OK, find(f, only(2), "abcd", id));
    cr_assert_str_eq(id, "abcd34", "what a user cannot see does not get in his way");
    make_upload(&m, 1, 1, 9);
    make_build(&m.builds[0], "abcd99", "more");
    m.u.build_count = 1;
    put(f, &m);
    FAILS(f, PROFD_OK, find(f, everybody, "abcd9", id));
    make_upload(&m, 1, 1, 10);
    make_build(&m.builds[0], "abcd98", "more");
    m.u.build_count = 1;
    put(f, &m);
    FAILS(f, PROFD_AMBIGUOUS, find(f, everybody, "abcd9", id));
    cr_assert(strstr(f->e.sentence, full_id("abcd98")) && strstr(f->e.sentence, full_id("abcd99")));
}

static bool append_label(void *context, const struct label_row *row)
{
    char *text = context;
    size_t n = strlen(text);
    snprintf(text + n, 512 - n, "%s=%s:%llu ", row->name, row->value, (unsigned long long)row->uploads);
    return strcmp(row->value, "stop") != 0;
}

static const char *labels(struct fixture *f, struct store_scope scope, const char *build)
{
    static char text[512];
    text[0] = 0;
    OK(f, store_each_label(f->r, &scope, build ? full_id(build) : NULL, append_label, text, &f->e));
    return text;
}

STORE_TEST(labels_are_counted_by_pair)
{
    struct made m;
    for (uint32_t i = 1; i <= 5; i++) {
        make_upload(&m, 1 + i % 2, 1, i);
        add_label(&m, "host", i % 2 ? "b" : "a");
        if (i > 3) {
            add_label(&m, "zone", "x");
        }
        if (i == 5) {
            make_build(&m.builds[0], "ee", "other");
        }
        put(f, &m);
    }
    cr_assert_str_eq(labels(f, everybody, NULL), "host=a:2 host=b:3 zone=x:2 ");
    cr_assert_str_eq(labels(f, everybody, "aa01"), "host=a:2 host=b:2 zone=x:1 ");
    cr_assert_str_eq(labels(f, everybody, "bb02"), "host=a:2 host=b:3 zone=x:2 ");
    cr_assert_str_eq(labels(f, only(1), "aa01"), "host=a:2 zone=x:1 ");
    cr_assert_str_eq(labels(f, only(9), NULL), "");
    make_upload(&m, 1, 1, 6);
    add_label(&m, "host", "stop");
    put(f, &m);
    cr_assert_str_eq(labels(f, everybody, NULL), "host=a:2 host=b:3 host=stop:1 ", "the reader may stop");
}

static bool append_companion(void *context, const char *id, const char *name)
{
    char *text = context;
    size_t n = strlen(text);
    snprintf(text + n, 512 - n, "%.2s=%s ", id, name);
    return true;
}

static const char *companions(struct fixture *f, struct store_scope scope, const char *build)
{
    static char text[512];
    text[0] = 0;
    OK(f, store_each_companion(f->r, &scope, full_id(build), append_companion, text, &f->e));
    return text;
}

STORE_TEST(companions_were_in_one_process)
{
    struct made m;
    make_upload(&m, 1, 1, 1);
    put(f, &m);
    make_upload(&m, 2, 1, 1);
    make_build(&m.builds[0], "cc", "third");
    m.builds[1].name = "another name";
    put(f, &m);
    cr_assert_str_eq(companions(f, everybody, "bb02"), "aa=/usr/bin/program cc=third ");
    cr_assert_str_eq(companions(f, everybody, "aa01"), "bb=libone.so ");
    cr_assert_str_eq(companions(f, only(2), "bb02"), "cc=third ");
    cr_assert_str_eq(companions(f, only(2), "cc"), "bb=another name ");
    cr_assert_str_eq(companions(f, only(1), "cc"), "");
    cr_assert_str_eq(companions(f, everybody, "ff"), "");
}

STORE_TEST(totals_count_what_was_accepted)
{
    struct made m;
    struct made_object o;
    struct store_totals t;
    OK(f, store_get_totals(f->r, &t, &f->e));
    cr_assert_eq(t.builds + t.uploads + t.ticks + t.calls, 0);
    make_object(&o, "dd", "v1", 1, false, "never uploaded");
    OK(f, store_put_object(f->w, &o.o, &f->e));
    make_object(&o, "bb02", "v1", 1, false, "content");
    OK(f, store_put_object(f->w, &o.o, &f->e));
    for (uint32_t i = 1; i <= 3; i++) {
        make_upload(&m, i % 2, i % 2, 1 + i);
        put(f, &m);
    }
    OK(f, store_get_totals(f->r, &t, &f->e));
    cr_assert_eq(t.builds, 2);
    cr_assert_eq(t.builds_without_names, 1);
    cr_assert_eq(t.nameless_since, NOON - HOUR / 3600);
    cr_assert_eq(t.uploads, 3);
    cr_assert_eq(t.ticks, 21);
    cr_assert_eq(t.calls, 15);
    cr_assert(t.file_bytes >= 4096 && t.wal_bytes > 0);
}
