/* Stacks that a disk, or a fault of profd's own, has changed into others that can be read: verification finds them
 * wherever they are. */
#include <criterion/criterion.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/rollup.h"
#include "tests/contract/store/arrival_fixture.h"

static struct fixture f;

enum content { COUNTS, SUM, GROUPS, MOVED, ADDRESS, SEGMENT, NUMBER };

/* read: the row, its bytes, and a sum's columns of groups; write: the row, its new bytes, and its columns. */
struct damage {
    const char *what, *read, *write, *said;
    enum content content;
};

#define SUM_OF(level)                                                                                                  \
    "SELECT id, counts, spread FROM rollup WHERE level=" #level " ORDER BY id LIMIT 1",                                \
        "UPDATE rollup SET counts=?2, spread=?3 WHERE id=?1"

#define LEDGER_ONE                                                                                                     \
    "SELECT series*1000000+hour, shares FROM ledger LIMIT 1", "UPDATE ledger SET shares=?2 WHERE "                     \
                                                              "series*1000000+hour=?1"

enum { SEGMENTS = 3 }; /* the last ones are of segments */

static const struct damage damages[] = {
    {"an upload", "SELECT number, counts FROM upload WHERE width=0 ORDER BY number DESC LIMIT 1",
     "UPDATE upload SET counts=?2 WHERE number=?1", "ticks of stacks", COUNTS},
    {"the upload of a live process", "SELECT number, counts FROM upload WHERE width>0 LIMIT 1",
     "UPDATE upload SET counts=?2 WHERE number=?1", "ticks of stacks", COUNTS},
    {"an hour's sum", SUM_OF(0), "ticks of stacks", SUM},
    {"the groups of an hour's sum", SUM_OF(0), "the groups' shares of node", GROUPS},
    {"an hour's sum: a return address", SUM_OF(0), "its stacks are not those of the rows below it", ADDRESS},
    {"a day's sum", SUM_OF(1), "its stacks are not those of the rows below it", SUM},
    {"the groups of a day's sum", SUM_OF(1), "the groups of its stacks are not those", MOVED},
    {"the sum of all time", SUM_OF(2), "its stacks are not those of the rows below it", SUM},
    {"the ledger", LEDGER_ONE, "ticks of stacks", NUMBER},
    {"a series", "SELECT id, shares FROM series LIMIT 1", "UPDATE series SET shares=?2 WHERE id=?1", "ticks of stacks",
     NUMBER},
    {"a sealed segment",
     "SELECT b.segment, b.bytes FROM segment_bytes b JOIN segment s ON s.id=b.segment WHERE s.state=2 LIMIT 1",
     "UPDATE segment_bytes SET bytes=?2 WHERE segment=?1", "ticks of stacks", SEGMENT},
    {"what was added to a segment", "SELECT id, counts FROM segment_part LIMIT 1",
     "UPDATE segment_part SET counts=?2 WHERE id=?1", "ticks of stacks", COUNTS},
    {"a segment's row", "SELECT id, CAST(stack_ticks AS BLOB) FROM segment WHERE stack_ticks>0 LIMIT 1",
     "UPDATE segment SET stack_ticks=stack_ticks+length(?2) WHERE id=?1", "ticks of stacks", NUMBER},
};

/* Bytes as they are, and as they become; of a sum the columns of its groups, too. */
struct blobs {
    uint8_t *counts, *spread;
    size_t counts_size, spread_size;
};

static void damage_counts(const struct blobs *in, struct blobs *out)
{
    struct counts c;
    OK(&f, counts_decode(in->counts, in->counts_size, LIMIT_BUILDS, &c, &f.e));
    cr_assert_gt(c.node_count, 0);
    c.node_ticks[c.node_count - 1]++;
    OK(&f, counts_encode(&c, &out->counts, &out->counts_size, &f.e));
    counts_done(&c);
}

static void damage_sum(const struct blobs *in, enum content what, struct blobs *out)
{
    struct counts r;
    struct counts_shares spread;
    struct arena *a = arena_new(0);
    OK(&f, rollup_decode(a, in->counts, in->counts_size, LIMIT_BUILDS, false, &r, &f.e));
    OK(&f, rollup_decode_spread(a, &r, in->spread, in->spread_size, &spread, &f.e));
    cr_assert_gt(r.node_count, 0);
    uint64_t *groups = &spread.nodes[(size_t)(r.node_count - 1) * COUNTS_GROUPS];
    unsigned group = 0;
    while (groups[group] == 0) {
        group++;
    }
    if (what == SUM) {
        r.node_ticks[r.node_count - 1]++;
        groups[group]++;
    } else if (what == GROUPS) {
        groups[group]++;
    } else if (what == MOVED) {
        groups[group]--;
        groups[(group + 1) % COUNTS_GROUPS]++;
    } else {
        r.node_address[0]++;
    }
    OK(&f, counts_encode(&r, &out->counts, &out->counts_size, &f.e));
    OK(&f, counts_encode_shares(&r, &spread, &out->spread, &out->spread_size, &f.e));
    arena_free(a);
}

static void damage_segment(const struct blobs *in, struct blobs *out)
{
    struct segment s;
    struct counts_shares spread;
    struct arena *a = arena_new(0);
    uint8_t *shares;
    OK(&f, segment_decode(in->counts, in->counts_size, &s, &f.e));
    cr_assert_gt(s.counts.node_count, 0);
    OK(&f, rollup_decode_spread(a, &s.counts, s.shares.data, s.shares.size, &spread, &f.e));
    uint64_t *row = spread.nodes + (size_t)(s.counts.node_count - 1) * COUNTS_GROUPS;
    while (*row == 0) {
        row++;
    }
    ++*row;
    s.counts.node_ticks[s.counts.node_count - 1]++;
    OK(&f, counts_encode_shares(&s.counts, &spread, &shares, &s.shares.size, &f.e));
    s.shares.data = shares;
    OK(&f, segment_encode(&s, &out->counts, &out->counts_size, &f.e));
    free(shares);
    segment_done(&s);
    arena_free(a);
}

static void damage(const struct blobs *in, enum content what, struct blobs *out)
{
    if (what == COUNTS) {
        damage_counts(in, out);
    } else if (what == SEGMENT) {
        damage_segment(in, out);
    } else if (what == NUMBER) { /* the last byte of a varint, and no more than that */
        out->counts_size = in->counts_size;
        out->counts = malloc(in->counts_size);
        memcpy(out->counts, in->counts, in->counts_size);
        out->counts[in->counts_size - 1] ^= 1;
    } else {
        damage_sum(in, what, out);
    }
}

/* Of what is stored at f.path. */
static void apply(const struct damage *d)
{
    sqlite3 *db;
    sqlite3_stmt *read, *write;
    struct blobs out = {0};
    cr_assert_eq(sqlite3_open(f.path, &db), SQLITE_OK);
    cr_assert_eq(sqlite3_prepare_v2(db, d->read, -1, &read, NULL), SQLITE_OK, "%s", sqlite3_errmsg(db));
    cr_assert_eq(sqlite3_step(read), SQLITE_ROW, "%s: none", d->what);
    const int64_t row = sqlite3_column_int64(read, 0);
    const bool sum = sqlite3_column_count(read) > 2;
    const struct blobs in = {.counts_size = (size_t)sqlite3_column_bytes(read, 1),
                             .counts = (uint8_t *)(uintptr_t)sqlite3_column_blob(read, 1),
                             .spread_size = sum ? (size_t)sqlite3_column_bytes(read, 2) : 0,
                             .spread = sum ? (uint8_t *)(uintptr_t)sqlite3_column_blob(read, 2) : NULL};
    damage(&in, d->content, &out);
    sqlite3_finalize(read);
    cr_assert_eq(sqlite3_prepare_v2(db, d->write, -1, &write, NULL), SQLITE_OK, "%s", sqlite3_errmsg(db));
    sqlite3_bind_int64(write, 1, row);
    sqlite3_bind_blob(write, 2, out.counts, (int)out.counts_size, SQLITE_STATIC);
    if (sum) {
        sqlite3_bind_blob(write, 3, out.spread, (int)out.spread_size, SQLITE_STATIC);
    }
    cr_assert_eq(sqlite3_step(write), SQLITE_DONE, "%s", sqlite3_errmsg(db));
    sqlite3_finalize(write);
    cr_assert_eq(sqlite3_changes(db), 1);
    sqlite3_close(db);
    free(out.counts);
    free(out.spread);
}

static void copy(const char *from, const char *to)
{
    char command[256];
    snprintf(command, sizeof command, "cp '%s' '%s'", from, to);
    cr_assert_eq(system(command), 0);
}

static void open_both(void)
{
    OK(&f, store_sqlite_open_writer(f.path, &f.w, &f.e));
    OK(&f, store_sqlite_open_reader(f.path, &f.r, &f.e));
}

static void close_both(void)
{
    store_close(f.r);
    store_close(f.w); /* the log is in the file then */
}

/* Each of these damages alone, in the store as it is now. */
static void find_each(const struct damage *first, size_t n)
{
    char kept[128];
    snprintf(kept, sizeof kept, "%s.kept", f.path);
    close_both();
    copy(f.path, kept);
    for (size_t i = 0; i < n; i++) {
        copy(kept, f.path);
        apply(&first[i]);
        open_both();
        const char *said = verify_all(&f);
        cr_expect(strstr(said, first[i].said) != NULL, "%s: said \"%s\"", first[i].what, said);
        close_both();
    }
    copy(kept, f.path);
    open_both();
    expect_clean(&f);
}

/* A whole day that is rolled up and folded, uploads after it, live processes, and segments of all of them. */
static void fill(void)
{
    struct made m;
    uint64_t sealed;
    OK(&f, store_relay_begin(f.w, (const uint8_t *)"epoch epoch!", 0, &f.e));
    for (unsigned sender = 1; sender <= 4; sender++) {
        for (uint32_t i = 0; i < 16; i++) {
            make_counted(&m, 1 + sender % 2, sender, i + 1, MIDNIGHT + i * 3 * HOUR + sender, 2 + i % 3);
            cr_assert_eq(put_counted(&f, &m), STORE_STORED);
        }
        if (sender == 2) {
            const struct store_policy keep = {.relay_bytes = UINT64_MAX};
            struct store_progress p;
            OK(&f, store_keep_segments(f.w, &keep, MIDNIGHT, &p, &f.e));
            OK(&f, store_seal_segments(f.w, 4, MIDNIGHT, &sealed, &f.e));
            cr_assert_eq(sealed, 4);
        }
    }
    compact_all(&f, HOUR, UINT64_MAX, MIDNIGHT + DAY + 6 * HOUR);
    harvest_one(&f, 1, 1, 0, MIDNIGHT + DAY + 22 * HOUR, 3);
    harvest_one(&f, 1, 1, 1, MIDNIGHT + DAY + 22 * HOUR + 1, 3);
    expect_clean(&f);
}

Test(store_damage, stacks_are_verified_wherever_they_are)
{
    fixture_open(&f);
    fill();
    find_each(damages, sizeof damages / sizeof damages[0]);
    fixture_close(&f);
}

Test(store_damage, stacks_are_verified_at_the_centre)
{
    fixture_open(&f);
    struct sender *s = eight_hours(7);
    admit(&f, s, "a.example", 0, 24);
    for (size_t i = 0; i < s->n; i++) {
        cr_assert_not(deliver(&f, &s->list[i]).unknown);
    }
    close_sender(s);
    static const struct damage sums[] = {
        {"an hour's sum", SUM_OF(0), "ticks of stacks", SUM},
        {"the ledger", LEDGER_ONE, "ticks of stacks", NUMBER},
    };
    find_each(sums, sizeof sums / sizeof sums[0]);
    compact_all(&f, HOUR, UINT64_MAX, NOON + 4 * DAY);
    find_each(&damages[2], 6);
    fixture_close(&f);
}
