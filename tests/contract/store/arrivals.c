/* What a centre accepts: every segment is counted once, in any order and however often it comes, and what is missing is
 * said. The segments are made by a store of a host. */
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "proto/frame.h"
#include "store/store_internal.h"
#include "tests/contract/store/arrival_fixture.h"

#define MINUTE (HOUR / 60)

STORE_TEST(arrival_is_counted_once)
{
    struct sender *s = eight_hours(7);
    struct store_receipt r[MOST];
    const struct seen sent = look(&s->store, everybody, &(struct store_filter){PROGRAM});
    admit(f, s, "a.example", 0, 24);
    OK(f, store_put_segments(f->w, s->list, s->n, r, &f->e));
    for (size_t i = 0; i < s->n; i++) {
        cr_assert(!r[i].unknown && r[i].outcome == STORE_SEGMENT_COUNTED && !r[i].again);
        cr_assert(r[i].number > (i > 0 ? r[i - 1].number : 0), "numbers ascend");
    }
    for (unsigned round = 0; round < 2; round++) {
        const struct seen got = look(f, everybody, &(struct store_filter){PROGRAM});
        cr_assert(got.uploads == 24 && got.ticks == sent.ticks && got.calls == sent.calls && got.hosts == 8);
        cr_assert(got.processes == sent.processes && got.first == sent.first && got.last == sent.last);
        cr_assert_eq(memcmp(&got.groups, &sent.groups, sizeof got.groups), 0);
        cr_assert(got.inexact == 0 && got.rolled == 8);
        const struct store_centre c = centre_of(f);
        cr_assert(c.number == r[7].number && c.hosts == 1 && c.series == 0 && c.counted.uploads == 24);
        cr_assert(c.counted.ticks == sent.ticks && c.counted.calls == sent.calls && c.removed.uploads == 0);
        for (size_t i = s->n; i-- > 0;) {
            const struct store_receipt again = deliver(f, &s->list[i]);
            cr_assert(again.again && again.number == r[i].number && again.outcome == STORE_SEGMENT_COUNTED);
        }
        fixture_reopen(f);
    }
    close_sender(s);
}

/* The same key twice in one call. */
STORE_TEST(arrival_twice_in_one_transaction)
{
    struct sender *s = eight_hours(7);
    struct store_delivery list[2] = {s->list[0], s->list[0]};
    struct store_receipt r[2];
    admit(f, s, "a.example", 0, 24);
    OK(f, store_put_segments(f->w, list, 2, r, &f->e));
    cr_assert(!r[0].again && r[1].again && r[0].number > 0 && r[1].number == r[0].number);
    cr_assert_eq(centre_of(f).counted.uploads, 3);
    close_sender(s);
}

static bool note_label(void *context, const struct label_row *row)
{
    char *text = context;
    sprintf(text + strlen(text), "%s=%s ", row->name, row->value);
    return true;
}

STORE_TEST(arrival_host_is_what_its_certificate_says)
{
    struct sender *s = open_sender(7);
    struct made m;
    char text[256] = "";
    for (unsigned i = 0; i < 2; i++) {
        make_counted(&m, 1, 1 + i, 1, NOON + DAY, 5);
        add_label(&m, i ? "host" : "env", i ? "forged" : "prod");
        put_counted(&s->store, &m);
    }
    seal(s);
    admit(f, s, "a.example", 0, 2);
    cr_assert(!deliver(f, &s->list[0]).relabelled);
    cr_assert(deliver(f, &s->list[1]).relabelled);
    OK(f, store_each_label(f->r, &everybody, NULL, note_label, text, &f->e));
    cr_assert_str_eq(text, "env=prod host=a.example ");
    const struct store_matcher wanted = {.name = "host", .value = "a.example"};
    cr_assert_eq(look(f, everybody, &(struct store_filter){PROGRAM, .matcher_count = 1, .matchers = &wanted}).uploads,
                 2);
    cr_assert_eq(centre_of(f).series, 2);
    cr_assert_eq(look(f, only(1), &(struct store_filter){PROGRAM}).uploads, 0);
    centre_of(f);
    close_sender(s);
}

/* The tenant has used all new values of a label but one. */
STORE_TEST(arrival_has_so_many_new_values_of_a_label_in_an_hour)
{
    struct sender *s = open_sender(7);
    struct made m;
    char text[256] = "", key[sizeof(uint32_t) + sizeof "env"];
    const uint32_t tenant = STORE_TENANT, used = LIMIT_LABEL_VALUES_OF_TENANT - 1;
    for (unsigned i = 0; i < 4; i++) {
        make_counted(&m, 1, 1 + i, 1, NOON + DAY, 5);
        add_label(&m, "env", i == 0 ? "last" : i == 1 ? "more" : "most");
        put_counted(&s->store, &m);
    }
    seal(s);
    admit(f, s, "a.example", 0, 3);
    memcpy(key, &tenant, sizeof tenant);
    memcpy(key + sizeof tenant, "env", sizeof "env");
    f->w->values_hour = s->list[0].received / SQLITE_HOUR;
    cr_assert(hashmap_put(&f->w->values, key, sizeof key, &used, sizeof used));
    cr_assert_eq(deliver(f, &s->list[0]).limited, 0);
    cr_assert_eq(deliver(f, &s->list[1]).limited, 1);
    cr_assert_eq(deliver(f, &s->list[2]).limited, 2, "uploads, not their sum");
    cr_assert_eq(deliver(f, &s->list[2]).limited, 0, "it was counted before");
    OK(f, store_each_label(f->r, &everybody, NULL, note_label, text, &f->e));
    cr_assert_str_eq(text, "env=last env=other host=a.example ");
    const struct store_matcher other = {.name = "env", .value = STORE_OTHER};
    struct seen seen = look(f, everybody, &(struct store_filter){PROGRAM, .matcher_count = 1, .matchers = &other});
    cr_assert(seen.uploads == 3 && seen.inexact == INEXACT_LABEL_LEFT_OUT);
    seen = look(f, everybody, &(struct store_filter){PROGRAM});
    cr_assert_eq(seen.uploads, 4);
    centre_of(f);
    close_sender(s);
}

/* A host of the tenant goes on with an epoch under another name; its keys are counted once. Another tenant may have the
 * same keys. */
STORE_TEST(arrival_keys_are_of_the_tenant)
{
    struct sender *s = eight_hours(7), *renamed = eight_hours(9), *stranger = eight_hours(11);
    cr_assert(deliver(f, &s->list[0]).unknown, "it has not arrived");
    admit(f, s, "a.example", 0, 24);
    admit(f, renamed, "b.example", 0, 24);
    struct store_admission admission;
    struct store_arrival a = {.name = "a.example", .number = 24, .now = NOON + DAY, .tenant = STORE_TENANT - 1};
    memcpy(a.host, stranger->identity, sizeof a.host);
    struct store_token t = {.name = "c.example", .rights = STORE_MAY_WRITE, .tenant = "bank", .has_hash = true};
    OK(f, store_add_token(f->w, &t, &f->e));
    cr_assert_eq(t.uid, a.tenant);
    OK(f, store_admit_hosts(f->w, &a, 1, &admission, &f->e));
    struct store_receipt r = deliver(f, &s->list[0]);
    cr_assert(!r.unknown && !r.again);
    const uint64_t number = r.number;
    for (unsigned i = 0; i < 2; i++) {
        memcpy(s->list[i].host, renamed->identity, sizeof renamed->identity);
        r = deliver(f, &s->list[i]);
        cr_assert(r.again == (i == 0) && r.outcome == STORE_SEGMENT_COUNTED && r.number == number + i);
    }
    const struct store_matcher wanted = {.name = "host", .value = "b.example"};
    cr_assert_eq(look(f, everybody, &(struct store_filter){PROGRAM, .matcher_count = 1, .matchers = &wanted}).uploads,
                 3, "it counts under the name that sent it");
    memcpy(s->list[0].host, stranger->identity, sizeof stranger->identity);
    r = deliver(f, &s->list[0]);
    cr_assert(!r.again && r.number == number + 2, "of another tenant it is another upload");
    const struct store_centre c = centre_of(f);
    cr_assert(c.number == number + 2 && c.counted.uploads == 9 && c.hosts == 3);
    close_sender(s);
    close_sender(renamed);
    close_sender(stranger);
}

struct told {
    int64_t copied, restored, last;
};

static bool see_told(void *context, const struct store_fleet_host *h)
{
    *(struct told *)context = (struct told){h->copied, h->restored, h->last};
    return true;
}

static struct told tell(struct fixture *f, const struct sender *s, const char *boot, int64_t now, int64_t clock,
                        uint64_t number)
{
    struct store_arrival a = {.name = "a.example", .clock = clock, .number = number, .now = now, .boot = boot};
    struct store_admission admission;
    struct told told = {0};
    memcpy(a.host, s->identity, sizeof a.host);
    OK(f, store_admit_hosts(f->w, &a, 1, &admission, &f->e));
    OK(f, store_each_host(f->r, see_told, &told, &f->e));
    return told;
}

/* A host boots, then two machines come in turns. */
STORE_TEST(arrival_boots)
{
    struct sender *s = open_sender(7);
    static const char *const boots[] = {"a", "a", NULL, "b", "b", "c", "d", "c"};
    for (unsigned i = 0; i < 8; i++) {
        const struct told told = tell(f, s, boots[i], NOON + i * MINUTE, 0, 1);
        cr_assert_eq(told.copied, i < 7 ? 0 : NOON + 7 * MINUTE, "%u", i);
    }
    cr_assert_eq(tell(f, s, "c", NOON + 8 * MINUTE, 0, 1).copied, NOON + 7 * MINUTE);
    cr_assert_eq(tell(f, s, "e", NOON + 9 * MINUTE, 0, 1).copied, NOON + 7 * MINUTE);
    close_sender(s);
}

/* The marks of a restored host have an epoch of their own, but no second machine has sent them. */
STORE_TEST(arrival_marks_are_no_machine)
{
    struct sender *s = eight_hours(7);
    struct segment mark = s->segments[7];
    struct store_delivery list[5] = {s->list[0], s->list[7], s->list[1], s->list[2], s->list[3]};
    admit(f, s, "a.example", 0, 24);
    mark.kind = SEGMENT_DROPPED;
    list[1].segment = &mark;
    list[1].received = list[3].received = MIDNIGHT;
    list[1].epoch[0] ^= 1;
    list[3].epoch[0] ^= 2;
    for (unsigned i = 0; i < 5; i++) {
        deliver(f, &list[i]);
        cr_assert_eq(tell(f, s, NULL, NOON + DAY, 0, 24).copied != 0, i == 4, "%u", i);
    }
    close_sender(s);
}

/* A proxy delivers an old request behind a newer one: that is no restore, and the host's clock is not what it says. */
STORE_TEST(arrival_late_request)
{
    struct sender *s = open_sender(7);
    cr_assert_eq(tell(f, s, "a", NOON + 2 * MINUTE, 0, 9).restored, 0);
    struct told told = tell(f, s, "a", NOON + 4 * MINUTE, -3 * MINUTE, 8);
    cr_assert(told.restored == 0 && told.last == NOON + 4 * MINUTE);
    cr_assert_eq(marks(f, 0, 0, NULL), 0);
    cr_assert_eq(tell(f, s, "a", NOON + 5 * MINUTE, 0, 9).restored, 0, "nor has its number changed");
    told = tell(f, s, "a", NOON + 6 * MINUTE, 0, 8);
    cr_assert_eq(told.restored, NOON + 6 * MINUTE, "its clock has gone on");
    close_sender(s);
}

/* Two machines with one identity, or a host before and after its restore. */
STORE_TEST(arrival_of_the_same_key_with_other_counts)
{
    struct sender *s = eight_hours(7), *twin = open_sender(7);
    admit(f, s, "a.example", 0, 24);
    const uint64_t number = deliver(f, &s->list[0]).number;
    put_at(twin, 1, 1, MIDNIGHT + 5, 99);
    seal(twin);
    struct store_receipt r = deliver(f, &twin->list[0]);
    cr_assert(r.again && r.outcome == STORE_SEGMENT_CONFLICT && r.number == number);
    cr_assert_eq(marks(f, MIDNIGHT, MIDNIGHT + HOUR, NULL), INEXACT_SEGMENT_MISSING);
    cr_assert_eq(marks(f, MIDNIGHT + HOUR, 0, NULL), 0);
    cr_assert_eq(marks(f, 0, MIDNIGHT, "a.example"), 0);
    cr_assert_eq(marks(f, 0, 0, "a.example"), INEXACT_SEGMENT_MISSING);
    cr_assert_eq(marks(f, 0, 0, "b.example"), 0);
    cr_assert_eq(deliver(f, &s->list[0]).outcome, STORE_SEGMENT_COUNTED);
    const struct store_centre c = centre_of(f);
    cr_assert(c.number == number && c.counted.uploads == 3);
    close_sender(s);
    close_sender(twin);
}

STORE_TEST(arrival_that_cannot_be_read)
{
    struct sender *s = eight_hours(7);
    struct store_delivery bad = s->list[0];
    admit(f, s, "a.example", 0, 24);
    uint64_t number = deliver(f, &s->list[1]).number;
    const uint64_t epoch = epoch_of(f, everybody, full_id("aa01"));
    bad.segment = NULL;
    bad.fault = "a segment of 9 bytes";
    for (unsigned i = 0; i < 2; i++) {
        const struct store_receipt r = deliver(f, &bad);
        cr_assert(r.outcome == STORE_SEGMENT_PUT_ASIDE && r.again == (i == 1));
        cr_assert(i == 0 ? r.number > number : r.number == number);
        number = r.number;
        cr_assert_gt(epoch_of(f, everybody, full_id("aa01")), epoch, "its ETags change");
    }
    const struct store_centre c = centre_of(f);
    cr_assert(c.quarantined == 1 && c.quarantine_bytes == bad.size && c.counted.uploads == 3);
    cr_assert_eq(marks(f, NOON + DAY - HOUR, NOON + DAY + HOUR, NULL), INEXACT_SEGMENT_MISSING);
    close_sender(s);
}

static sqlite3 *open_beside(const struct fixture *f)
{
    sqlite3 *db;
    cr_assert_eq(sqlite3_open(f->path, &db), SQLITE_OK);
    return db;
}

static int64_t number_in(struct fixture *f, const char *sql)
{
    sqlite3 *db = open_beside(f);
    sqlite3_stmt *q;
    cr_assert_eq(sqlite3_prepare_v2(db, sql, -1, &q, NULL), SQLITE_OK, "%s", sqlite3_errmsg(db));
    cr_assert_eq(sqlite3_step(q), SQLITE_ROW);
    const int64_t n = sqlite3_column_int64(q, 0);
    sqlite3_finalize(q);
    sqlite3_close(db);
    return n;
}

/* The bytes that are kept are shared: a tenant that fills them loses its own oldest ones. */
STORE_TEST(arrival_that_cannot_be_read_removes_none_of_another_tenant)
{
    enum { SIZE = 8 << 20, COUNT = (int)(STORE_QUARANTINE_BYTES / SIZE) };
    uint8_t *bytes = calloc(1, SIZE);
    cr_assert(bytes);
    for (unsigned i = 0; i < 2; i++) {
        struct sender *s = eight_hours((uint8_t)(7 + i));
        struct store_arrival a = {.name = "a.example", .tenant = store_tenant_uid(1 + i), .now = NOON + DAY};
        struct store_admission admission;
        memcpy(a.host, s->identity, sizeof a.host);
        OK(f, store_admit_hosts(f->w, &a, 1, &admission, &f->e));
        struct store_delivery bad = s->list[0];
        bad.segment = NULL;
        bad.fault = "bad";
        bad.bytes = bytes;
        bad.size = SIZE;
        for (unsigned k = 0; k < (i ? COUNT + 2 : 1); k++) {
            bad.sequence = k + 1;
            cr_assert_eq(deliver(f, &bad).outcome, STORE_SEGMENT_PUT_ASIDE);
        }
        close_sender(s);
    }
    cr_assert_eq(number_in(f, "SELECT sum(size) FROM quarantine"), STORE_QUARANTINE_BYTES);
    cr_assert_eq(number_in(f, "SELECT size FROM quarantine ORDER BY id LIMIT 1"), SIZE, "the other tenant's is kept");
    cr_assert_eq(number_in(f, "SELECT size FROM quarantine ORDER BY id LIMIT 1 OFFSET 1"), 0, "its own oldest is not");
    free(bytes);
}

/* Marks of two tenants in one transaction do not tell a third one that something happened. */
STORE_TEST(arrivals_of_others_change_no_etag)
{
    struct sender *s[3];
    struct store_delivery bad[2];
    struct store_receipt r[2];
    struct store_epoch before, after;
    const struct store_scope middle = {.uid = store_tenant_uid(2)};
    for (unsigned i = 0; i < 3; i++) {
        struct store_arrival a = {.name = "a.example", .tenant = store_tenant_uid(1 + i), .now = NOON + DAY};
        struct store_admission admission;
        s[i] = eight_hours((uint8_t)(7 + i));
        memcpy(a.host, s[i]->identity, sizeof a.host);
        OK(f, store_admit_hosts(f->w, &a, 1, &admission, &f->e));
        deliver(f, &s[i]->list[0]);
        if (i != 1) {
            bad[i / 2] = s[i]->list[1];
            bad[i / 2].segment = NULL;
            bad[i / 2].fault = "bad";
        }
    }
    OK(f, store_epoch_all(f->r, &middle, &before, &f->e));
    OK(f, store_put_segments(f->w, bad, 2, r, &f->e));
    OK(f, store_epoch_all(f->r, &middle, &after, &f->e));
    cr_assert(r[0].outcome == STORE_SEGMENT_PUT_ASIDE && r[1].outcome == STORE_SEGMENT_PUT_ASIDE);
    cr_assert_eq(before.number, after.number);
    for (unsigned i = 0; i < 3; i++) {
        close_sender(s[i]);
    }
}

/* An upload as clients send it counts as a sum of one process does. */
STORE_TEST(arrival_of_an_upload)
{
    struct sender *s = open_sender(7);
    struct made m;
    struct message x = {.type = FRAME_UPLOAD};
    struct message_build builds[2];
    struct segment segment;
    uint8_t *frame;
    size_t n;
    make_counted(&m, 1, 1, 1, NOON, 5);
    for (size_t i = 0; i < 2; i++) {
        builds[i] = (struct message_build){m.u.builds[i].id.text, m.u.builds[i].name};
    }
    x.as.upload = (struct message_upload){.sender = {m.u.sender, sizeof m.u.sender},
                                          .sequence = m.u.sequence,
                                          .start = (uint64_t)m.u.start,
                                          .end = (uint64_t)m.u.end,
                                          .build_count = m.u.build_count,
                                          .builds = builds,
                                          .counts = {m.u.counts, m.u.counts_size},
                                          .processes_started = 1};
    cr_assert_eq(m.u.build_count, 2);
    OK(f, message_encode(&x, 0, 0, &frame, &n, &f->e));
    OK(f, segment_decode(frame + FRAME_HEADER_SIZE, n - FRAME_HEADER_SIZE, &segment, &f->e));
    struct store_delivery d = {.sequence = 1, .segment = &segment, .bytes = frame, .size = n, .received = NOON};
    memcpy(d.host, s->identity, sizeof d.host);
    memcpy(d.epoch, segment.epoch, sizeof d.epoch);
    admit(f, s, "a.example", 0, 24);
    cr_assert_eq(deliver(f, &d).outcome, STORE_SEGMENT_COUNTED);
    cr_assert(deliver(f, &d).again);
    const struct seen got = look(f, everybody, &(struct store_filter){PROGRAM});
    cr_assert(got.uploads == 1 && got.ticks == m.u.ticks && got.calls == m.u.calls && got.processes == 1);
    cr_assert_eq(got.stacks, m.u.stack_ticks);
    centre_of(f);
    segment_done(&segment);
    free(frame);
    free((void *)(uintptr_t)m.u.counts);
    close_sender(s);
}

/* Of a key alone nothing is counted, whether its segment came before or not. */
STORE_TEST(arrival_of_a_key_alone)
{
    struct sender *s = eight_hours(7);
    struct segment kinds[2] = {s->segments[0], s->segments[1]};
    struct store_delivery list[2] = {s->list[0], s->list[1]};
    uint64_t before = 0;
    admit(f, s, "a.example", 0, 24);
    for (unsigned i = 0; i < 2; i++) {
        kinds[i].kind = i ? SEGMENT_DROPPED : SEGMENT_WITHDRAWN;
        list[i].segment = &kinds[i];
        list[i].digest[0] ^= 1;
        const struct store_receipt r = deliver(f, &list[i]);
        cr_assert(r.outcome == STORE_SEGMENT_COUNTED && !r.again && r.number > before);
        before = r.number;
    }
    cr_assert_eq(marks(f, MIDNIGHT, MIDNIGHT + HOUR, NULL), 0, "a withdrawn one was deleted");
    cr_assert_eq(marks(f, MIDNIGHT + HOUR, MIDNIGHT + 2 * HOUR, NULL), INEXACT_SEGMENT_MISSING);
    before = deliver(f, &s->list[2]).number;
    list[1] = s->list[2];
    list[1].segment = &kinds[1];
    list[1].digest[0] ^= 1;
    const struct store_receipt r = deliver(f, &list[1]);
    cr_assert(r.outcome == STORE_SEGMENT_COUNTED && r.again && r.number == before, "it is there");
    cr_assert_eq(marks(f, MIDNIGHT + 2 * HOUR, MIDNIGHT + 3 * HOUR, NULL), 0);
    cr_assert_eq(centre_of(f).counted.uploads, 3);
    close_sender(s);
}

STORE_TEST(arrival_clocks)
{
    struct sender *s = eight_hours(7);
    admit(f, s, "a.example", 5 * HOUR / 60, 24);
    deliver(f, &s->list[0]);
    struct seen got = look(f, everybody, &(struct store_filter){PROGRAM});
    cr_assert(got.inexact == 0 && got.last / HOUR == MIDNIGHT / HOUR, "five minutes are nothing");
    admit(f, s, "a.example", 400 * DAY, 24);
    deliver(f, &s->list[1]);
    got = look_window(f, MIDNIGHT + HOUR - 400 * DAY, MIDNIGHT + 2 * HOUR - 400 * DAY);
    cr_assert(got.inexact == INEXACT_CLOCK && got.uploads == 3, "in the past, %llu", (unsigned long long)got.uploads);
    admit(f, s, "a.example", INT64_MIN, 24);
    deliver(f, &s->list[2]);
    cr_assert_eq(look(f, everybody, &(struct store_filter){PROGRAM, .since = NOON + DAY}).uploads, 3,
                 "not in the future");
    admit(f, s, "a.example", INT64_MAX, 24);
    deliver(f, &s->list[3]);
    cr_assert_eq(look(f, everybody, &(struct store_filter){PROGRAM, .until = HOUR}).uploads, 3, "nor before 1970");
    cr_assert_eq(centre_of(f).counted.uploads, 12);
    close_sender(s);
}

STORE_TEST(arrival_host_was_restored)
{
    struct sender *s = eight_hours(7);
    cr_assert(!admit(f, s, "a.example", 0, 24) && !admit(f, s, "a.example", 0, 24));
    cr_assert_eq(marks(f, 0, 0, NULL), 0);
    cr_assert(admit(f, s, "b.example", 0, 23) && !admit(f, s, "b.example", 0, 30));
    cr_assert_eq(marks(f, NOON + DAY - HOUR, NOON + DAY + HOUR, "b.example"), INEXACT_RESTORED);
    close_sender(s);
}

/* The law holds after retention and delete, too. */
STORE_TEST(arrival_removed)
{
    struct sender *s = eight_hours(7), *late = eight_hours(9);
    uint64_t uploads;
    struct store_receipt r[MOST];
    admit(f, s, "a.example", 0, 24);
    admit(f, late, "b.example", 0, 24);
    OK(f, store_put_segments(f->w, s->list, s->n, r, &f->e));
    compact_all(f, HOUR, UINT64_MAX, NOON + 3 * DAY);
    OK(f, store_put_segments(f->w, late->list, late->n, r, &f->e));
    compact_all(f, HOUR, UINT64_MAX, NOON + 3 * DAY);
    cr_assert_eq(centre_of(f).removed.uploads, 0);
    retire_all(f, 10 * DAY, 0, NOON + 20 * DAY);
    struct store_centre c = centre_of(f);
    cr_assert(c.removed.uploads == 48 && c.counted.uploads == 48 && c.removed.ticks == c.counted.ticks);
    for (unsigned i = 0; i < 3; i++) {
        put_at(s, 4, 1 + i, NOON + i * HOUR, 5);
    }
    forget_sealed(s);
    seal(s);
    OK(f, store_put_segments(f->w, s->list, s->n, r, &f->e));
    OK(f, store_delete_build(f->w, &everybody, full_id("aa01"), &uploads, &f->e));
    c = centre_of(f);
    cr_assert(uploads == 3 && c.removed.uploads == 51 && c.removed.calls == c.counted.calls);
    close_sender(s);
    close_sender(late);
}

/* A host with a wrong clock, whose segments lie among those of the next day, and one that is in time. After the first
 * day is removed, something of it arrives. */
STORE_TEST(arrival_for_a_day_that_was_removed)
{
    struct sender *ahead = eight_hours(7), *other = eight_hours(9);
    struct store_receipt r[MOST];
    admit(f, ahead, "ahead.example", DAY, 24);
    admit(f, other, "b.example", 0, 24);
    OK(f, store_put_segments(f->w, ahead->list, ahead->n, r, &f->e));
    OK(f, store_put_segments(f->w, other->list, other->n, r, &f->e));
    compact_all(f, HOUR, UINT64_MAX, NOON + 3 * DAY);
    cr_assert_eq(retire_all(f, DAY, 0, MIDNIGHT + DAY + HOUR), 24);
    forget_sealed(ahead);
    for (unsigned i = 0; i < 3; i++) {
        put_at(ahead, 1 + i, 9, MIDNIGHT + 7 * HOUR + i, 5);
    }
    seal(ahead);
    OK(f, store_put_segments(f->w, ahead->list, ahead->n, r, &f->e));
    for (unsigned round = 0; round < 2; round++) {
        const struct store_filter day = {PROGRAM, .until = MIDNIGHT},
                                  of_hosts = {PROGRAM, .until = MIDNIGHT, .by_host = true};
        cr_assert_eq(look(f, everybody, &day).uploads, 3, "round %u", round);
        cr_assert_eq(look(f, everybody, &of_hosts).uploads, 3, "round %u", round);
        const struct store_centre c = centre_of(f);
        cr_assert(c.counted.uploads == 51 && c.removed.uploads == 24);
        compact_all(f, HOUR, UINT64_MAX, NOON + 3 * DAY);
    }
    cr_assert_eq(retire_all(f, DAY, 0, MIDNIGHT + DAY + HOUR), 3);
    cr_assert_eq(centre_of(f).removed.uploads, 27);
    close_sender(ahead);
    close_sender(other);
}

/* What ended before its program was deleted does not come back; what ended later is stored. */
STORE_TEST(arrival_of_what_was_deleted)
{
    struct sender *s = eight_hours(7);
    struct store_receipt r[MOST];
    uint64_t uploads;
    const int64_t later = ((int64_t)time(NULL) + 7200) * INT64_C(1000000000);
    admit(f, s, "a.example", 0, 24);
    OK(f, store_put_segments(f->w, s->list, 3, r, &f->e));
    OK(f, store_delete_build(f->w, &everybody, full_id("aa01"), &uploads, &f->e));
    OK(f, store_put_segments(f->w, s->list, s->n, r, &f->e));
    struct store_centre c = centre_of(f);
    cr_assert(uploads == 9 && c.counted.uploads == 24 && c.removed.uploads == 24);
    cr_assert(c.removed.ticks == c.counted.ticks && c.removed.calls == c.counted.calls);
    cr_assert_eq(look_window(f, 0, 0).uploads, 0);
    put_at(s, 4, 1, later, 5);
    forget_sealed(s);
    seal(s);
    s->list[0].received = later;
    OK(f, store_put_segments(f->w, s->list, 1, r, &f->e));
    c = centre_of(f);
    cr_assert(c.counted.uploads == 25 && c.removed.uploads == 24 && look_window(f, 0, 0).uploads == 1);
    close_sender(s);
}

/* A call may do a part of it. */
static void remove_old(struct fixture *f)
{
    for (unsigned i = 0; i < 8; i++) {
        OK(f, store_remove_ids(f->w, NOON + 40 * DAY - LIMIT_ID_DAYS * DAY, &f->e));
    }
}

/* Keys are known for ever; of old ones no digest is kept. */
STORE_TEST(arrival_old_keys)
{
    struct sender *s = eight_hours(7);
    struct store_receipt r[MOST];
    struct store_delivery bad = s->list[3];
    admit(f, s, "a.example", 0, 24);
    bad.segment = NULL;
    bad.fault = "bad";
    deliver(f, &bad);
    OK(f, store_put_segments(f->w, s->list + 4, 4, r, &f->e));
    OK(f, store_put_segments(f->w, s->list, 2, r, &f->e));
    const struct store_centre before = centre_of(f);
    remove_old(f);
    const struct store_centre after = centre_of(f);
    cr_assert(before.number == after.number && before.hosts == after.hosts && before.series == after.series);
    cr_assert(before.quarantined == after.quarantined && before.quarantine_bytes == after.quarantine_bytes);
    cr_assert_eq(memcmp(&before.counted, &after.counted, sizeof before.counted), 0);
    cr_assert_eq(memcmp(&before.removed, &after.removed, sizeof before.removed), 0);
    for (unsigned i = 0; i < 2; i++) {
        OK(f, store_put_segments(f->w, s->list, s->n, r, &f->e));
        for (size_t k = 0; k < s->n; k++) {
            cr_assert(r[k].again == (i == 1 || k != 2), "segment %zu, round %u", k, i);
            cr_assert_eq(r[k].outcome, k == 3 ? STORE_SEGMENT_PUT_ASIDE : STORE_SEGMENT_COUNTED);
        }
        remove_old(f);
    }
    cr_assert_eq(centre_of(f).counted.uploads, 21);
    cr_assert_eq(deliver(f, &bad).outcome, STORE_SEGMENT_PUT_ASIDE);
    close_sender(s);
}

/* --- SQLite's only --- */

/* Every sum of the database, as hexadecimal text that the caller frees. */
static char *all_sums(const struct fixture *f)
{
    sqlite3 *db = open_beside(f);
    sqlite3_stmt *q;
    cr_assert_eq(sqlite3_prepare_v2(db,
                                    "SELECT group_concat(x) FROM (SELECT level||at||hex(counts)||hex(spread) AS x FROM "
                                    "rollup r JOIN series s ON s.id=r.series ORDER BY level, at, s.labels)",
                                    -1, &q, NULL),
                 SQLITE_OK);
    cr_assert_eq(sqlite3_step(q), SQLITE_ROW);
    char *text = strdup((const char *)sqlite3_column_text(q, 0));
    sqlite3_finalize(q);
    sqlite3_close(db);
    return text;
}

/* The sums are the same down to the bytes, the order of arcs included, whatever arrives first and together. */
Test(store_sqlite, arrival_order_of_arcs)
{
    struct fixture f[3];
    char *sums[3];
    struct sender *s = eight_hours(7), *t = open_sender(9);
    for (unsigned i = 0; i < 6; i++) {
        put_at(t, 1, 1 + i, MIDNIGHT + i, 40 - i);
        seal(t);
    }
    for (unsigned k = 0; k < 3; k++) {
        fixture_open(&f[k]);
        admit(&f[k], s, "same.example", 0, 24);
        admit(&f[k], t, "same.example", 0, 6);
        for (size_t i = 0; i < s->n + t->n; i++) {
            const size_t at = k == 0 ? i : k == 1 ? s->n + t->n - 1 - i : (i * 5 + 3) % (s->n + t->n);
            deliver(&f[k], at < s->n ? &s->list[at] : &t->list[at - s->n]);
            if (k == 2 && i == 5) {
                compact_all(&f[k], HOUR, UINT64_MAX, NOON + 3 * DAY);
            }
        }
        compact_all(&f[k], HOUR, UINT64_MAX, NOON + 3 * DAY);
        sums[k] = all_sums(&f[k]);
        cr_assert_eq(centre_of(&f[k]).counted.uploads, 30);
    }
    cr_assert_str_eq(sums[0], sums[1]);
    cr_assert_str_eq(sums[0], sums[2]);
    for (unsigned k = 0; k < 3; k++) {
        free(sums[k]);
        fixture_close(&f[k]);
    }
    close_sender(s);
    close_sender(t);
}

/* A backup says what it has; a restored centre has another incarnation. */
Test(store_sqlite, arrival_backup_and_restore)
{
    struct fixture f;
    struct sender *s = eight_hours(7);
    struct store_backup *b;
    uint64_t left = 1;
    char path[128];
    fixture_open(&f);
    snprintf(path, sizeof path, "%s/copy", f.directory);
    admit(&f, s, "a.example", 0, 24);
    deliver(&f, &s->list[0]);
    OK(&f, store_backup_begin(f.w, path, &b, &f.e));
    deliver(&f, &s->list[1]);
    while (left > 0) {
        OK(&f, store_backup_step(b, 1 << 20, &left, &f.e));
    }
    store_backup_end(b);
    const struct store_centre c = centre_of(&f);
    cr_assert(c.backup == 1 && c.number == 2);
    cr_assert_eq(marks(&f, 0, 0, NULL), 0);
    OK(&f, store_sqlite_renew(f.w, &f.e));
    const struct store_centre renewed = centre_of(&f);
    cr_assert_neq(memcmp(renewed.incarnation, c.incarnation, sizeof c.incarnation), 0);
    cr_assert_eq(memcmp(renewed.name, c.name, sizeof c.name), 0, "its name stays");
    remove(path);
    close_sender(s);
    fixture_close(&f);
}

static uint32_t restored_reasons(struct fixture *f, struct store_scope scope, enum store_origin of, int64_t since,
                                 int64_t until)
{
    const struct store_filter filter = {.since = since, .until = until};
    uint32_t reasons = 99;
    OK(f, store_get_marks(f->r, &scope, &filter, of, &reasons, &f->e));
    return reasons;
}

/* What local users counted between the backup and the restore is gone: processes do not send again. */
Test(store_sqlite, restored_database_marks_the_hours_of_local_users)
{
    struct fixture f;
    struct made m;
    fixture_open(&f);
    OK(&f, store_sqlite_renew(f.w, &f.e));
    cr_assert_eq(restored_reasons(&f, everybody, STORE_OF_ALL, 0, 0), 0, "nothing was ever here");
    const int64_t now = (int64_t)time(NULL) * INT64_C(1000000000), last = now - 30 * HOUR, hour = last - last % HOUR;
    make_upload(&m, 1, 1, 1);
    m.u.start = last - 1;
    m.u.end = last;
    m.u.received = last;
    cr_assert_eq(put(&f, &m), STORE_STORED);
    OK(&f, store_sqlite_renew(f.w, &f.e));
    const struct store_scope users[] = {everybody, only(1), only(2)};
    for (size_t i = 0; i < sizeof users / sizeof users[0]; i++) {
        cr_assert_eq(restored_reasons(&f, users[i], STORE_OF_ALL, 0, 0), INEXACT_RESTORED);
        cr_assert_eq(restored_reasons(&f, users[i], STORE_OF_LOCAL_USERS, hour, hour + 1), INEXACT_RESTORED);
        cr_assert_eq(restored_reasons(&f, users[i], STORE_OF_LOCAL_USERS, now, now + 1), INEXACT_RESTORED);
        cr_assert_eq(restored_reasons(&f, users[i], STORE_OF_LOCAL_USERS, 0, hour), 0, "the backup has this");
        cr_assert_eq(restored_reasons(&f, users[i], STORE_OF_LOCAL_USERS, now + 2 * HOUR, 0), 0, "after the restore");
        cr_assert_eq(restored_reasons(&f, users[i], STORE_OF_HOSTS, 0, 0), 0, "hosts send again");
    }
    cr_assert_eq(restored_reasons(&f, only(STORE_TENANT), STORE_OF_ALL, 0, 0), 0, "a tenant has only hosts");
    /* The writer's clock is later than the last upload. */
    fixture_close(&f);
    fixture_open(&f);
    make_upload(&m, 1, 1, 1);
    m.u.start = last - 1;
    m.u.end = last;
    m.u.received = last;
    cr_assert_eq(put(&f, &m), STORE_STORED);
    OK(&f, store_remove_ids(f.w, now - 2 * HOUR - LIMIT_ID_DAYS * 24 * HOUR, &f.e));
    OK(&f, store_sqlite_renew(f.w, &f.e));
    const int64_t backup = (now - 2 * HOUR) / HOUR * HOUR;
    cr_assert_eq(restored_reasons(&f, only(1), STORE_OF_ALL, 0, backup), 0);
    cr_assert_eq(restored_reasons(&f, only(1), STORE_OF_ALL, 0, backup + 1), INEXACT_RESTORED);
    fixture_close(&f);
}

/* What is done, and a word of what must be said. */
static const char *const plants[][2] = {
    {"UPDATE arrival SET calls=calls+1 WHERE sequence=5", "marks of arrivals"},
    {"DELETE FROM arrival WHERE sequence=5", "marks of arrivals"},
    {"UPDATE centre SET counted_uploads=counted_uploads-1", "uploads"},
    {"UPDATE centre SET removed_ticks=removed_ticks+1", "series and what was removed"},
    {"UPDATE epoch SET gone_uploads=1", "marks of arrivals"},
    {"UPDATE epoch SET mark=5", "below its mark"},
    {"DELETE FROM epoch", "of no epoch"},
};

Test(store_sqlite, arrival_verification)
{
    for (size_t i = 0; i < sizeof plants / sizeof plants[0]; i++) {
        struct fixture f;
        struct store_receipt r[MOST];
        struct sender *s = eight_hours(7);
        fixture_open(&f);
        admit(&f, s, "a.example", 0, 24);
        OK(&f, store_put_segments(f.w, s->list, s->n, r, &f.e));
        centre_of(&f);
        sqlite3 *db = open_beside(&f);
        cr_assert_eq(sqlite3_exec(db, plants[i][0], NULL, NULL, NULL), SQLITE_OK, "%s", plants[i][0]);
        sqlite3_close(db);
        const char *said = verify_all(&f);
        cr_assert(strstr(said, plants[i][1]) != NULL, "%s: '%s'", plants[i][0], said);
        close_sender(s);
        fixture_close(&f);
    }
}
