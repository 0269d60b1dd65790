/* What one user may store. */
#include <string.h>

#include "tests/contract/store/harvest_fixture.h"
#include "tests/contract/store/upkeep_fixture.h"

static void set_share(struct fixture *f, uint64_t limit, unsigned percent)
{
    const struct store_share share = {.limit = limit, .percent = percent};
    store_set_share(f->w, &share);
}

static uint64_t bytes_of(struct fixture *f, uint32_t uid)
{
    struct store_use use;
    cr_assert_eq(store_get_use(f->w, uid, &use, &f->e), PROFD_OK, "%s", f->e.sentence);
    return use.bytes;
}

static uint64_t unread(struct fixture *f)
{
    const struct store_filter any = {.build_id = NULL};
    struct store_living out;
    cr_assert_eq(store_get_living(f->r, STORE_UNREAD, &everybody, &any, &out, &f->e), PROFD_OK, "%s", f->e.sentence);
    return out.processes;
}

/* Uploads of user 1 until one is over its share. */
static uint32_t fill(struct fixture *f, uint32_t sequence)
{
    struct made m;
    enum store_outcome outcome = STORE_STORED;
    for (; outcome == STORE_STORED && sequence < 10000; sequence++) {
        make_upload(&m, 1, 1, sequence);
        outcome = put(f, &m);
    }
    cr_assert_eq(outcome, STORE_OVER_SHARE);
    return sequence - 1; /* the one that was refused */
}

STORE_TEST(a_user_over_its_share_is_refused_and_others_are_not)
{
    struct made m[3];
    enum store_outcome outcomes[3];
    struct store_upload batch[3];
    set_share(f, 8192, 50);
    const uint32_t refused = fill(f, 1);
    cr_assert_leq(bytes_of(f, 1), 8192, "about half: what a row takes is known when it is stored");
    for (int i = 0; i < 3; i++) {
        make_upload(&m[i], i == 1 ? 1 : 2, 2, (uint32_t)i + 1);
        m[i].u.counts_size = sizeof m[i].counts; /* more than fill has left */
        batch[i] = m[i].u;
    }
    cr_assert_eq(store_put_uploads(f->w, batch, 3, outcomes, &f->e), PROFD_OK, "%s", f->e.sentence);
    cr_assert_eq(outcomes[0], STORE_STORED);
    cr_assert_eq(outcomes[1], STORE_OVER_SHARE);
    cr_assert_eq(outcomes[2], STORE_STORED);
    make_upload(&m[0], 1, 3, 1);
    m[0].u.counts_size = sizeof m[0].counts;
    memset(m[0].u.host, 'f', 32);
    cr_assert_eq(put(f, &m[0]), STORE_OVER_SHARE);
    cr_assert_eq(fixture_count(f, "SELECT count(*) FROM host WHERE machine LIKE 'fff%'"), 0);
    /* nothing of it was stored, its id is new; what was stored is a repeat */
    make_upload(&m[0], 1, 1, 1);
    cr_assert_eq(put(f, &m[0]), STORE_DUPLICATE);
    set_share(f, 0, 50);
    make_upload(&m[0], 1, 1, refused);
    cr_assert_eq(put(f, &m[0]), STORE_STORED, "no limit");
    cr_assert_not(store_get_health(f->w)->full, "the disk is not full");
}

STORE_TEST(the_refusal_names_bytes_share_and_what_to_do)
{
    set_share(f, 8192, 50);
    fill(f, 1);
    cr_assert_eq(store_share_refuse(f->w, 1, &f->e), PROFD_FULL);
    cr_assert_not_null(strstr(f->e.sentence, "user 1 stores "));
    cr_assert_not_null(strstr(f->e.sentence, "at most 4096: user-share, 50%"));
    cr_assert_not_null(strstr(f->e.sentence, "profctl delete"));
}

STORE_TEST(what_others_store_is_not_shared_out)
{
    struct made m;
    struct store_use use;
    set_share(f, 1 << 20, 25);
    for (uint32_t i = 1; i <= 10; i++) {
        make_upload(&m, 2, 1, i);
        put(f, &m);
    }
    cr_assert_eq(store_get_use(f->w, 1, &use, &f->e), PROFD_OK);
    cr_assert_eq(use.bytes, 0);
    cr_assert_eq(use.others, bytes_of(f, 2));
    cr_assert_eq(use.most, ((1 << 20) - use.others) / 4);
    set_share(f, 1 << 20, 100);
    cr_assert_eq(store_get_use(f->w, 1, &use, &f->e), PROFD_OK);
    cr_assert_eq(use.most, UINT64_MAX);
}

STORE_TEST(what_is_deleted_makes_room_for_its_user)
{
    uint64_t uploads;
    set_share(f, 8192, 50);
    const uint32_t refused = fill(f, 1);
    cr_assert_eq(store_delete_build(f->w, &everybody, full_id("aa01"), &uploads, &f->e), PROFD_OK, "%s", f->e.sentence);
    retire_all(f, 0, 0, NOON);
    cr_assert_eq(bytes_of(f, 1), 0);
    struct made m;
    make_upload(&m, 1, 1, refused);
    cr_assert_eq(put(f, &m), STORE_STORED);
}

STORE_TEST(a_harvest_over_the_share_changes_nothing_and_comes_later)
{
    struct made_harvest x;
    store_set_run(f->w, 7);
    store_set_run(f->r, 7);
    harvest_one(f, 1, 1, 0, NOON, 3);
    const uint64_t calls = totals(f).calls;
    set_share(f, 64, 50);
    make_harvest(&x, 1, 1, 1, NOON, 4);
    cr_assert_eq(harvest(f, &x), STORE_OVER_SHARE);
    cr_assert_str_eq(durable(f, 1, 1), "1 1/1/1", "the snapshot is that of what is stored");
    cr_assert_eq(totals(f).calls, calls);
    cr_assert_eq(unread(f), 1, "what it counts since is not stored, and reports say so");
    /* a word without counts is heard */
    make_harvest(&x, 1, 1, 1, NOON, 0);
    cr_assert_eq(harvest(f, &x), STORE_STORED);
    set_share(f, 1 << 20, 50);
    make_harvest(&x, 1, 1, 2, NOON, 4);
    cr_assert_eq(harvest(f, &x), STORE_STORED);
    cr_assert_gt(totals(f).calls, calls);
    cr_assert_eq(unread(f), 0);
}

STORE_TEST(symbols_count_for_the_user_that_alone_has_sent_them)
{
    struct made_object o;
    struct made m;
    make_upload(&m, 1, 1, 1);
    put(f, &m);
    const uint64_t before = bytes_of(f, 1);
    make_object(&o, full_id("aa01"), "v1", 1, false, "names of many functions");
    cr_assert_eq(store_put_object(f->w, &o.o, &f->e), PROFD_OK);
    const uint64_t alone = bytes_of(f, 1);
    cr_assert_geq(alone, before + o.o.encoded_size);
    cr_assert_eq(store_put_object(f->w, &o.o, &f->e), PROFD_OK);
    cr_assert_eq(bytes_of(f, 1), alone, "once");
    o.o.uid = 2;
    cr_assert_eq(store_put_object(f->w, &o.o, &f->e), PROFD_OK);
    cr_assert_eq(bytes_of(f, 1), before);
    cr_assert_eq(bytes_of(f, 2), 0);
    make_object(&o, full_id("aa01"), "v2", 1, false, "other names, and more than a few bytes of them");
    set_share(f, 1, 50);
    cr_assert_eq(store_put_object(f->w, &o.o, &f->e), PROFD_FULL);
    cr_assert_not(store_get_health(f->w)->full);
}
