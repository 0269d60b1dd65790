/* Past days that move to a tier: what each verb promises, what late data and removals do to a block, and that
 * verification finds what is wrong with what stays. */
#include <sqlite3.h>
#include <stdio.h>

#include "core/buffer.h"
#include "proto/counts.h"
#include "store/block_keys.h"
#include "tests/contract/store/arrival_fixture.h"
#include "tests/memory_tier.h"

#define NOW (MIDNIGHT + 5 * DAY)
#define DAYS 3 /* that have uploads */

static struct memory_tier tier;

/* An upload of each of two series every four hours of three days, and a tier; all is summed by day. */
static void fill(struct fixture *f)
{
    struct made m;
    memory_tier_init(&tier);
    memory_tier_attach(&tier, f->r);
    store_set_tier(f->w, true);
    for (unsigned sender = 1; sender <= 2; sender++) {
        for (uint32_t i = 0; i < 6 * DAYS; i++) {
            make_counted(&m, sender, sender, i + 1, MIDNIGHT + i * 4 * HOUR + sender, 10 * sender + i);
            put_counted(f, &m);
        }
    }
    compact_all(f, HOUR, UINT64_MAX, NOW);
}

static void put_late(struct fixture *f, unsigned sequence, int64_t end)
{
    struct made m;
    make_counted(&m, 1, 1, 100 + sequence, end, 7);
    put_counted(f, &m);
}

static uint64_t bytes_of(struct fixture *f, uint32_t uid)
{
    struct store_use use;
    OK(f, store_get_use(f->r, uid, &use, &f->e));
    return use.bytes;
}

static void same(const struct seen *a, const struct seen *b)
{
    cr_assert(a->uploads == b->uploads && a->processes == b->processes && a->ticks == b->ticks && a->calls == b->calls,
              "%llu and %llu uploads", (unsigned long long)a->uploads, (unsigned long long)b->uploads);
    cr_assert(a->first == b->first && a->last == b->last && a->inexact == b->inexact && a->stacks == b->stacks);
    cr_assert_eq(memcmp(&a->groups, &b->groups, sizeof a->groups), 0);
}

static enum profd_status ignore_row(void *context, const struct store_row *row, struct profd_error *e)
{
    (void)context;
    (void)row;
    (void)e;
    return PROFD_OK;
}

/* What is fetched is what was there, with and without its spread; what is not wanted is not fetched. */
STORE_TEST(block_of_each_day)
{
    fill(f);
    const uint64_t bytes[] = {bytes_of(f, 1), bytes_of(f, 2)};
    const struct seen all = look_window(f, 0, 0), some = look_window(f, MIDNIGHT + 5 * HOUR, MIDNIGHT + 60 * HOUR);
    cr_assert_eq(all.uploads, 12 * DAYS);
    cr_assert_eq(fixture_count(f, "SELECT count(*) FROM rollup WHERE level=2"), 0, "a tier needs no sums of all time");
    memory_tier_seal(&tier, f->w, MIDNIGHT + 2 * DAY, NOW);
    expect_clean(f);
    cr_assert_eq(fixture_count(f, "SELECT count(*) FROM rollup WHERE level=1"), 2, "the third day is too young");
    memory_tier_seal(&tier, f->w, MIDNIGHT + DAYS * DAY, NOW);
    expect_clean(f);
    cr_assert_eq(fixture_count(f, "SELECT count(*) FROM rollup"), 0);
    cr_assert_eq(fixture_count(f, "SELECT count(*) FROM sealed"), 2 * 7 * DAYS);
    cr_assert(bytes_of(f, 1) == bytes[0] && bytes_of(f, 2) == bytes[1], "sealing frees nothing of a user's share");
    cr_assert_eq(tier.fetched, 0);
    const struct seen then = look_window(f, 0, 0);
    same(&all, &then);
    cr_assert_eq(then.rolled, 2 * DAYS, "days");
    const struct seen edges = look_window(f, MIDNIGHT + 5 * HOUR, MIDNIGHT + 60 * HOUR);
    same(&some, &edges);
    const size_t fetched = tier.fetched;
    int64_t since, until;
    const struct store_filter inside = {PROGRAM, .since = MIDNIGHT + HOUR / 2, .until = NOW, .metadata = true};
    OK(f, store_get_range(f->r, &everybody, &inside, &since, &until, &f->e));
    cr_assert(since == MIDNIGHT && until == NOW, "an edge is moved outward as before");
    struct store_tier_totals t;
    OK(f, store_get_tier_totals(f->r, NOW, &t, &f->e));
    cr_assert(t.days_sealed == DAYS && t.days_waiting == 0 && t.sums == 2 * 7 * DAYS && t.bytes > 1000);
    cr_assert_eq(t.sealed_to, MIDNIGHT + DAYS * DAY);
    cr_assert_eq(tier.fetched, fetched);
    store_set_archive(f->r, NULL);
    const struct store_filter window = {PROGRAM, .since = NOW - HOUR, .until = NOW};
    cr_assert_eq(look(f, everybody, &window).rows, 0, "days that are here need no tier");
    FAILS(f, PROFD_UNAVAILABLE,
          store_each_upload(f->r, &everybody, &(struct store_filter){PROGRAM}, ignore_row, NULL, &f->e));
    memory_tier_done(&tier);
}

static enum profd_status refuse_row(void *context, const struct store_row *row, struct profd_error *e)
{
    (void)context;
    return row->uploads == 0 ? PROFD_OK : profd_error_set(e, PROFD_TIMEOUT, "enough");
}

static enum profd_status add_metadata(void *context, const struct store_row *row, struct profd_error *e)
{
    uint64_t *uploads = context;
    (void)e;
    cr_assert(row->counts_size == 0 && row->host_count == 0 && row->builds[row->program].name[0] != '\0');
    *uploads += row->uploads;
    return PROFD_OK;
}

/* An archive that breaks its promise. */
static enum profd_status fetch_badly(void *context, const struct store_stub *stubs, size_t n,
                                     enum store_archive_part part,
                                     enum profd_status (*each)(void *each_context, size_t stub,
                                                               const struct store_bulk *bulk, struct profd_error *e),
                                     void *each_context, struct profd_error *e)
{
    const char how = *(const char *)context;
    const struct store_bulk bulk = {.counts = tier.sums[0].bulk.counts, .counts_size = tier.sums[0].bulk.counts_size};
    (void)stubs;
    (void)part;
    enum profd_status status = how == 'm' ? PROFD_OK : each(each_context, how == 'o' ? n : 0, &bulk, e);
    return status == PROFD_OK && how == 't' ? each(each_context, 0, &bulk, e) : status;
}

STORE_TEST(block_is_read_exactly_once)
{
    static const struct {
        const char *how;
        enum profd_status status;
    } bad[] = {{"missing", PROFD_UNAVAILABLE}, {"twice", PROFD_DAMAGED}, {"other", PROFD_DAMAGED}};
    uint64_t uploads = 0;
    fill(f);
    memory_tier_seal(&tier, f->w, NOW, NOW);
    const struct store_filter every = {PROGRAM}, metadata = {PROGRAM, .metadata = true};
    OK(f, store_each_upload(f->r, &everybody, &metadata, add_metadata, &uploads, &f->e));
    cr_assert_eq(uploads, 12 * DAYS);
    cr_assert_eq(tier.fetched, 0);
    FAILS(f, PROFD_TIMEOUT, store_each_upload(f->r, &everybody, &every, refuse_row, NULL, &f->e));
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        const struct store_archive archive = {.fetch = fetch_badly, .context = (void *)(uintptr_t)bad[i].how};
        store_set_archive(f->r, &archive);
        FAILS(f, bad[i].status, store_each_upload(f->r, &everybody, &every, ignore_row, NULL, &f->e));
    }
    memory_tier_done(&tier);
}

/* What comes late waits until the day is sealed, and is then sealed in a block of its own, not before seal-after. */
STORE_TEST(block_freezes_its_day)
{
    struct store_block first, next;
    struct store_progress p;
    bool found = false;
    fill(f);
    OK(f, store_block_begin(f->w, NOW, &first, &found, &f->e));
    cr_assert(found && first.day == MIDNIGHT / DAY && first.attempt == 1 && first.state == STORE_BLOCK_OPEN);
    put_late(f, 1, MIDNIGHT + 3 * HOUR);
    put_late(f, 2, MIDNIGHT + 30 * HOUR);
    compact_all(f, HOUR, 0, NOW);
    cr_assert_eq(fixture_count(f, "SELECT count(*) FROM upload"), 1, "the other day goes on");
    expect_clean(f);
    tier.block = first;
    tier.step = MEMORY_TIER_READING;
    while (tier.step != MEMORY_TIER_RELEASING) {
        memory_tier_step(&tier, f->w, NOW, NOW - DAY, 1); /* a sum each */
    }
    fixture_reopen(f);
    memory_tier_attach(&tier, f->r);
    store_set_tier(f->w, true);
    OK(f, store_block_begin(f->w, NOW, &next, &found, &f->e));
    cr_assert(next.number == first.number && next.state == STORE_BLOCK_WRITTEN && next.sealed == NOW - DAY);
    FAILS(f, PROFD_CONFLICT, store_block_written(f->w, &next, NOW, &f->e));
    FAILS(f, PROFD_CONFLICT, store_block_read(f->r, &next, &tier.cursor, 1, memory_tier_keep, &tier, &f->e));
    OK(f, store_block_release(f->w, &p, &f->e));
    cr_assert(!p.more && p.rows == 14);
    const struct seen then = look_window(f, 0, 0);
    cr_assert_eq(then.uploads, 12 * DAYS + 2);
    compact_all(f, HOUR, 0, NOW);
    cr_assert_eq(fixture_count(f, "SELECT count(*) FROM upload"), 0);
    expect_clean(f);
    tier.step = MEMORY_TIER_IDLE;
    memory_tier_seal(&tier, f->w, NOW - DAY, NOW - DAY);
    cr_assert_eq(fixture_count(f, "SELECT count(DISTINCT block) FROM sealed"), DAYS, "seal-after has not passed");
    memory_tier_seal(&tier, f->w, NOW, NOW);
    cr_assert_eq(fixture_count(f, "SELECT count(DISTINCT block) FROM sealed"), DAYS + 1);
    cr_assert_eq(fixture_count(f, "SELECT count(*) FROM rollup"), 0);
    expect_clean(f);
    const struct seen last = look_window(f, 0, 0);
    same(&then, &last);
    memory_tier_done(&tier);
}

/* A host's sums of an hour of the frozen day, too: they wait as sums of minutes. */
STORE_TEST(block_freezes_its_day_for_hosts)
{
    struct sender *s = eight_hours(7);
    struct store_block b;
    bool found = false;
    memory_tier_init(&tier);
    memory_tier_attach(&tier, f->r);
    admit(f, s, "a.example", 0, 90);
    for (size_t i = 0; i < 4; i++) {
        deliver(f, &s->list[i]);
    }
    compact_all(f, HOUR, UINT64_MAX, NOW);
    OK(f, store_block_begin(f->w, NOW, &b, &found, &f->e));
    cr_assert(found);
    for (size_t i = 4; i < 8; i++) {
        deliver(f, &s->list[i]);
    }
    compact_all(f, HOUR, UINT64_MAX, NOW);
    cr_assert_eq(fixture_count(f, "SELECT count(*) FROM rollup WHERE level=0"), 4);
    cr_assert_eq(fixture_count(f, "SELECT count(*) FROM rollup WHERE level>2"), 4);
    const struct seen before = look_window(f, 0, 0);
    cr_assert_eq(before.uploads, 24);
    centre_of(f);
    memory_tier_seal(&tier, f->w, NOW, NOW); /* the next attempt */
    compact_all(f, HOUR, UINT64_MAX, NOW);
    cr_assert_eq(fixture_count(f, "SELECT count(*) FROM rollup WHERE level=0"), 4);
    cr_assert_eq(fixture_count(f, "SELECT count(*) FROM rollup WHERE level>2"), 0);
    cr_assert_eq(fixture_count(f, "SELECT count(*) FROM sealed WHERE level=0"), 4);
    const struct seen then = look_window(f, 0, 0);
    same(&before, &then);
    centre_of(f);
    memory_tier_done(&tier);
    close_sender(s);
}

struct keys_seen {
    const struct sender *of;
    uint64_t ranges, low, high;
};

static enum profd_status see_keys(void *context, const char *tenant, const uint8_t epoch[SEGMENT_EPOCH_SIZE],
                                  const struct block_keys_range *range, struct profd_error *e)
{
    struct keys_seen *k = context;
    (void)e;
    cr_assert_str_eq(tenant, "default");
    cr_assert_eq(memcmp(epoch, k->of->list[0].epoch, SEGMENT_EPOCH_SIZE), 0);
    k->ranges++;
    k->low = range->low;
    k->high = range->high;
    return PROFD_OK;
}

static struct keys_seen keys_of(struct fixture *f, const struct store_block *b, const struct sender *s)
{
    struct keys_seen seen = {.of = s};
    struct buffer keys;
    buffer_init(&keys, SIZE_MAX);
    OK(f, store_block_keys(f->r, b, &keys, &f->e));
    OK(f, block_keys_decode((const uint8_t *)keys.data, keys.size, see_keys, &seen, &f->e));
    buffer_done(&keys);
    return seen;
}

/* Keys of a block are those that were counted when it was opened, whatever arrives or is forgotten until it is
 * written. */
STORE_TEST(block_keys_are_those_of_its_opening)
{
    struct sender *s = eight_hours(7);
    struct store_block b, next;
    struct keys_seen k;
    bool found = false;
    memory_tier_init(&tier);
    memory_tier_attach(&tier, f->r);
    admit(f, s, "a.example", 0, 90);
    deliver(f, &s->list[0]);
    deliver(f, &s->list[1]);
    deliver(f, &s->list[3]);
    compact_all(f, HOUR, UINT64_MAX, NOW);
    OK(f, store_block_begin(f->w, NOW, &b, &found, &f->e));
    cr_assert(found);
    deliver(f, &s->list[4]);
    deliver(f, &s->list[2]);
    k = keys_of(f, &b, s);
    const uint64_t first = s->list[0].sequence;
    cr_assert(k.ranges == 2 && k.low == first + 3 && k.high == first + 3, "%llu", (unsigned long long)k.ranges);
    OK(f, store_remove_ids(f->w, NOW + 30 * DAY, &f->e)); /* digests of what is in the block may go, others not */
    k = keys_of(f, &b, s);
    cr_assert(k.ranges == 2 && k.low == first + 3 && k.high == first + 3);
    OK(f, store_block_begin(f->w, NOW, &next, &found, &f->e));
    FAILS(f, PROFD_CONFLICT, store_block_keys(f->r, &b, &(struct buffer){.limit = SIZE_MAX}, &f->e));
    memory_tier_seal(&tier, f->w, NOW, NOW);
    compact_all(f, HOUR, UINT64_MAX, NOW);
    OK(f, store_remove_ids(f->w, NOW + 30 * DAY, &f->e));
    cr_assert_eq(fixture_count(f, "SELECT count(*) FROM arrival"), 0);
    OK(f, store_block_begin(f->w, NOW + DAY, &b, &found, &f->e));
    cr_assert(found && b.number > next.number);
    k = keys_of(f, &b, s);
    cr_assert(k.ranges == 1 && k.low == first && k.high == first + 4);
    centre_of(f);
    memory_tier_done(&tier);
    close_sender(s);
}

/* Removal ends an attempt that may contain what is gone; a block of which nothing stays is GONE, until it is forgotten.
 */
STORE_TEST(block_of_removed_data)
{
    struct store_block b, next;
    struct store_block_cursor c = {.done = false};
    uint64_t uploads;
    bool found = false;
    fill(f);
    OK(f, store_block_begin(f->w, NOW, &b, &found, &f->e));
    retire_all(f, 4 * DAY, 0, NOW);
    FAILS(f, PROFD_CONFLICT, store_block_read(f->r, &b, &c, 1, memory_tier_keep, &tier, &f->e));
    FAILS(f, PROFD_CONFLICT, store_block_written(f->w, &b, NOW, &f->e));
    OK(f, store_block_begin(f->w, NOW, &next, &found, &f->e));
    cr_assert(found && next.number > b.number && next.day == b.day + 1, "nothing of the first day is left");
    cr_assert_eq(fixture_count(f, "SELECT state FROM block ORDER BY number LIMIT 1"), STORE_BLOCK_GONE);
    OK(f, store_block_begin(f->w, NOW, &b, &found, &f->e));
    cr_assert(b.number == next.number && b.attempt == 2);
    OK(f, store_delete_build(f->w, &(struct store_scope){.uid = 2}, full_id("aa01"), &uploads, &f->e));
    FAILS(f, PROFD_CONFLICT, store_block_written(f->w, &b, NOW, &f->e));
    compact_all(f, HOUR, UINT64_MAX, NOW);
    memory_tier_seal(&tier, f->w, NOW, NOW);
    expect_clean(f);
    cr_assert_eq(look_window(f, 0, 0).uploads, 6 * (DAYS - 1));
    retire_all(f, 3 * DAY, 0, NOW);
    cr_assert_eq(look_window(f, 0, 0).uploads, 6 * (DAYS - 2));
    expect_clean(f);
    OK(f, store_delete_build(f->w, &everybody, full_id("aa01"), &uploads, &f->e));
    compact_all(f, HOUR, UINT64_MAX, NOW);
    cr_assert_eq(fixture_count(f, "SELECT count(*) FROM sealed"), 0);
    cr_assert_eq(fixture_count(f, "SELECT sum(state=4) FROM block"), DAYS);
    OK(f, store_block_forget(f->w, b.number, &f->e));
    cr_assert_eq(fixture_count(f, "SELECT count(*) FROM block"), DAYS - 1);
    expect_clean(f);
    memory_tier_done(&tier);
}

static enum profd_status see_owner(void *context, const char *tenant, struct profd_error *e)
{
    char *all = context;
    (void)e;
    strcat(strcat(all, tenant), ";");
    return PROFD_OK;
}

/* A tombstone deletes what is here, once, and what comes later counts. */
STORE_TEST(block_tombstones_are_applied_once)
{
    struct store_centre centre;
    char program[100], unknown[100];
    struct store_tombstone t = {.tenant = "uid 2", .build = program, .block = DAYS, .deleted = NOW}, other;
    char owners[100] = "";
    uint64_t uploads = 0;
    bool buried = true;
    fill(f);
    snprintf(program, sizeof program, "%s", full_id("aa01"));
    snprintf(unknown, sizeof unknown, "%s", full_id("cc01"));
    memory_tier_seal(&tier, f->w, NOW, NOW);
    OK(f, store_get_centre(f->r, &centre, &f->e));
    memcpy(t.centre, centre.name, sizeof t.centre);
    OK(f, store_each_owner(f->r, t.build, see_owner, owners, &f->e));
    cr_assert_str_eq(owners, "uid 1;uid 2;");
    OK(f, store_is_buried(f->r, &t, &buried, &f->e));
    cr_assert(!buried);

    other = t; /* of another centre's user with that number, a tenant that is not here, and a program that is not */
    other.centre[0] ^= 1;
    OK(f, store_bury(f->w, &other, 1, &uploads, &f->e));
    other.tenant = "nobody";
    OK(f, store_bury(f->w, &other, 1, &uploads, &f->e));
    other = t;
    other.build = unknown;
    OK(f, store_bury(f->w, &other, 1, &uploads, &f->e));
    cr_assert(uploads == 0 && look_window(f, 0, 0).uploads == 12 * DAYS);

    OK(f, store_bury(f->w, &t, 1, &uploads, &f->e));
    cr_assert(uploads == 6 * DAYS && t.beyond == 0, "%llu uploads", (unsigned long long)uploads);
    cr_assert_eq(look_window(f, 0, 0).uploads, 6 * DAYS, "at once");
    compact_all(f, HOUR, UINT64_MAX, NOW);
    expect_clean(f);
    struct made m;
    make_counted(&m, 2, 2, 200, NOW - DAY, 7);
    put_counted(f, &m);
    OK(f, store_bury(f->w, &t, 1, &uploads, &f->e));
    cr_assert_eq(uploads, 6 * DAYS, "what it deleted then");
    cr_assert_eq(look_window(f, 0, 0).uploads, 6 * DAYS + 1, "later uploads count");
    other = t; /* of an attempt that failed before, and becomes visible now */
    other.deleted--;
    OK(f, store_bury(f->w, &other, 1, &uploads, &f->e));
    cr_assert_eq(look_window(f, 0, 0).uploads, 6 * DAYS + 1, "what a later deletion covers is not deleted again");
    OK(f, store_is_buried(f->r, &t, &buried, &f->e));
    cr_assert(buried);
    t.block++;
    OK(f, store_is_buried(f->r, &t, &buried, &f->e));
    cr_assert(!buried, "later blocks are not covered");

    t.block = 1; /* while it was written, blocks were sealed */
    t.deleted++;
    OK(f, store_bury(f->w, &t, 1, &uploads, &f->e));
    cr_assert(uploads == 1 && t.beyond == DAYS, "%llu", (unsigned long long)t.beyond);
    for (int round = 0; round < 2; round++) { /* the daemon may end before the cover is written */
        t.beyond = 0;
        OK(f, store_bury(f->w, &t, 1, &uploads, &f->e));
        cr_assert(uploads == 1 && t.beyond == DAYS, "it is known until the cover is written");
        fixture_reopen(f);
        memory_tier_attach(&tier, f->r);
        store_set_tier(f->w, true);
    }
    make_counted(&m, 2, 2, 201, NOW - DAY, 7);
    put_counted(f, &m);
    t.block = t.beyond;
    t.deleted = store_cover_deleted(&t);
    OK(f, store_is_buried(f->r, &t, &buried, &f->e));
    cr_assert(buried);
    OK(f, store_bury(f->w, &t, 1, &uploads, &f->e));
    cr_assert(uploads == 0 && t.beyond == 0 && look_window(f, 0, 0).uploads == 6 * DAYS + 1,
              "the cover deletes nothing");
    compact_all(f, HOUR, UINT64_MAX, NOW);
    expect_clean(f);
    memory_tier_done(&tier);
}

/* Of a tenant's hosts, what ended before the deletion does not count when it comes afterwards. */
STORE_TEST(block_tombstones_cover_what_hosts_hold)
{
    struct sender *s = eight_hours(7);
    struct store_centre centre;
    char program[100];
    struct store_tombstone t = {.tenant = "default", .build = program, .deleted = MIDNIGHT + 5 * HOUR};
    struct store_block b, next;
    uint64_t uploads = 0;
    bool found = false;
    memory_tier_init(&tier);
    memory_tier_attach(&tier, f->r);
    snprintf(program, sizeof program, "%s", full_id("aa01"));
    admit(f, s, "a.example", 0, 90);
    for (size_t i = 0; i < 4; i++) {
        deliver(f, &s->list[i]);
    }
    compact_all(f, HOUR, UINT64_MAX, NOW);
    OK(f, store_block_begin(f->w, NOW, &b, &found, &f->e));
    OK(f, store_get_centre(f->r, &centre, &f->e));
    memcpy(t.centre, centre.name, sizeof t.centre);
    t.block = b.number;
    const uint64_t before = look_window(f, 0, 0).uploads;
    OK(f, store_bury(f->w, &t, 1, &uploads, &f->e));
    cr_assert(uploads > 0 && uploads == before && look_window(f, 0, 0).uploads == 0);
    FAILS(f, PROFD_CONFLICT, store_block_written(f->w, &b, NOW, &f->e));
    compact_all(f, HOUR, UINT64_MAX, NOW);
    OK(f, store_block_begin(f->w, NOW, &next, &found, &f->e));
    cr_assert(!found && fixture_count(f, "SELECT state FROM block") == STORE_BLOCK_GONE);
    for (size_t i = 4; i < 8; i++) {
        deliver(f, &s->list[i]);
    }
    const uint64_t rest = look_window(f, 0, 0).uploads;
    cr_assert(rest > 0 && rest < before, "%llu of %llu", (unsigned long long)rest, (unsigned long long)before);
    centre_of(f);
    memory_tier_done(&tier);
    close_sender(s);
}

/* keep-bytes is about all bytes, wherever they lie; the oldest days go first. */
STORE_TEST(block_bytes_count_for_keep_bytes)
{
    fill(f);
    memory_tier_seal(&tier, f->w, NOW, NOW);
    compact_all(f, HOUR, UINT64_MAX, NOW);
    const int64_t content = fixture_count(f, "SELECT (page_count-freelist_count)*page_size FROM pragma_page_count, "
                                             "pragma_page_size, pragma_freelist_count"),
                  released = fixture_count(f, "SELECT sum(bytes) FROM block");
    retire_all(f, 0, (uint64_t)(content + released), NOW);
    cr_assert_eq(look_window(f, 0, 0).uploads, 12 * DAYS);
    retire_all(f, 0, (uint64_t)(content + released - 1), NOW);
    cr_assert_eq(look_window(f, 0, 0).uploads, 12 * (DAYS - 1), "%llu",
                 (unsigned long long)look_window(f, 0, 0).uploads);
    cr_assert_eq(look_window(f, MIDNIGHT + DAY, 0).uploads, 12 * (DAYS - 1), "the oldest day went");
    cr_assert_eq(fixture_count(f, "SELECT state FROM block WHERE number=1"), STORE_BLOCK_GONE);
    expect_clean(f);
    memory_tier_done(&tier);
}

/* True if these bytes are the same arcs. */
static bool same_arcs(const uint8_t *a, const uint8_t *b, size_t n, uint32_t builds)
{
    struct counts x, y;
    struct profd_error e;
    cr_assert(!counts_decode(a, n, builds, &x, &e) && !counts_decode(b, n, builds, &y, &e), "%s", e.sentence);
    bool same = x.arc_count == y.arc_count && x.bin_count == y.bin_count && x.node_count == y.node_count;
    for (size_t i = 0; i < x.arc_count && same; i++) {
        same = x.from[i] == y.from[i] && x.to[i] == y.to[i] && x.calls[i] == y.calls[i] &&
               x.from_build[i] == y.from_build[i] && x.to_build[i] == y.to_build[i];
    }
    counts_done(&x);
    counts_done(&y);
    return same;
}

/* A wrong byte of the arcs that stay is found, unless it says the same in another way. */
STORE_TEST(block_arcs_are_verified)
{
    sqlite3 *db;
    sqlite3_stmt *q;
    uint8_t bytes[4096], kept[4096];
    size_t missed = 0;
    fill(f);
    memory_tier_seal(&tier, f->w, NOW, NOW);
    expect_clean(f);
    cr_assert_eq(sqlite3_open(f->path, &db), SQLITE_OK);
    cr_assert_eq(sqlite3_prepare_v2(db, "SELECT arcs FROM sealed WHERE level=1 ORDER BY id LIMIT 1", -1, &q, NULL), 0);
    cr_assert_eq(sqlite3_step(q), SQLITE_ROW);
    const size_t n = (size_t)sqlite3_column_bytes(q, 0);
    cr_assert(n > 20 && n < sizeof bytes);
    memcpy(bytes, sqlite3_column_blob(q, 0), n);
    sqlite3_finalize(q);
    cr_assert_eq(sqlite3_prepare_v2(db, "UPDATE sealed SET arcs=?1 WHERE id=(SELECT min(id) FROM sealed WHERE level=1)",
                                    -1, &q, NULL),
                 0);
    const uint32_t builds = (uint32_t)fixture_count(f, "SELECT length(builds)/4 FROM build_set LIMIT 1");
    memcpy(kept, bytes, n);
    for (size_t i = 0; i <= n; i++) { /* the last: none is wrong */
        bytes[i] ^= i < n ? 0x11 : 0;
        sqlite3_bind_blob(q, 1, bytes, (int)n, SQLITE_STATIC);
        cr_assert_eq(sqlite3_step(q), SQLITE_DONE);
        sqlite3_reset(q);
        const char *said = verify_all(f);
        if (!strstr(said, "arcs of day")) {
            cr_assert(same_arcs(bytes, kept, n, builds), "byte %zu of %zu: said \"%s\"", i, n, said);
            missed += i < n;
        }
        bytes[i] = kept[i];
    }
    cr_assert_lt(missed, n / 8);
    sqlite3_finalize(q);
    sqlite3_close(db);
    memory_tier_done(&tier);
}

/* What is done, and a word of what must be said. */
static const char *const plants[][2] = {
    {"UPDATE sealed SET uploads=uploads+1 WHERE id=(SELECT min(id) FROM sealed WHERE level=0)", "uploads"},
    {"UPDATE sealed SET ticks=ticks-1 WHERE id=(SELECT min(id) FROM sealed WHERE level=0)", "ticks"},
    {"UPDATE sealed SET calls=calls+1 WHERE id=(SELECT min(id) FROM sealed WHERE level=1)", "calls"},
    {"UPDATE sealed SET number=number+1 WHERE id=(SELECT min(id) FROM sealed WHERE level=1)", "first upload"},
    {"UPDATE sealed SET last=last+1 WHERE id=(SELECT max(id) FROM sealed WHERE level=0)", "latest end"},
    {"UPDATE sealed SET inexact=8 WHERE id=(SELECT max(id) FROM sealed WHERE level=1)", "inexactness"},
    {"UPDATE sealed SET bytes=bytes+1 WHERE id=(SELECT max(id) FROM sealed)", "stored rows"},
    {"UPDATE sealed SET groups=CAST(substr(groups, 2, 1) || substr(groups, 1, 1) || substr(groups, 3) AS BLOB) "
     "WHERE level=1 AND substr(groups, 1, 1)<>substr(groups, 2, 1)",
     "processes by group"},
    {"DELETE FROM sealed WHERE id=(SELECT min(id) FROM sealed WHERE level=0)", "uploads"},
    {"UPDATE sealed SET at=at+9000 WHERE id=(SELECT min(id) FROM sealed WHERE level=1)", "a sum of a block"},
    {"UPDATE sealed SET block=99 WHERE id=(SELECT max(id) FROM sealed)", "a sum of a block"},
    {"UPDATE block SET state=4 WHERE number=1", "a sum of a block"},
    {"UPDATE block SET day=day+1 WHERE number=2", "a sum of a block"},
};

STORE_TEST(block_falsehoods_are_found)
{
    fill(f);
    memory_tier_seal(&tier, f->w, NOW - DAY, NOW);
    expect_clean(f);
    for (size_t i = 0; i < sizeof plants / sizeof plants[0]; i++) {
        sqlite3 *db;
        char *why = NULL;
        char changed[512], undo[256];
        cr_assert_eq(sqlite3_open(f->path, &db), SQLITE_OK);
        cr_assert_eq(
            sqlite3_exec(db,
                         "DROP TABLE IF EXISTS kept1; DROP TABLE IF EXISTS kept2; "
                         "CREATE TABLE kept1 AS SELECT * FROM sealed; CREATE TABLE kept2 AS SELECT * FROM block",
                         NULL, NULL, &why),
            SQLITE_OK, "%s", why);
        snprintf(changed, sizeof changed, "%s", plants[i][0]);
        cr_assert_eq(sqlite3_exec(db, changed, NULL, NULL, &why), SQLITE_OK, "%s: %s", changed, why);
        cr_assert_gt(sqlite3_changes(db), 0, "%s changes nothing", changed);
        const char *said = verify_all(f);
        cr_expect(strstr(said, plants[i][1]) != NULL, "%s: said \"%s\"", plants[i][0], said);
        snprintf(undo, sizeof undo,
                 "DELETE FROM sealed; INSERT INTO sealed SELECT * FROM kept1; DELETE FROM block; "
                 "INSERT INTO block SELECT * FROM kept2; DROP TABLE kept1; DROP TABLE kept2");
        cr_assert_eq(sqlite3_exec(db, undo, NULL, NULL, &why), SQLITE_OK, "%s", why);
        sqlite3_close(db);
    }
    expect_clean(f);
    memory_tier_done(&tier);
}
