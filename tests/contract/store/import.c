/* What was moved from a centre's SQLite database into tables of ClickHouse: answers are the same as before, also after
 * it was moved again, after the hosts have sent again what they had sent, and after they have sent more. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clickhouse/import.h"
#include "clickhouse/import_cut.h"
#include "core/rollup.h"
#include "core/share.h"
#include "tests/contract/store/arrival_fixture.h"
#include "tests/contract/store/clickhouse_server.h"

#define RED (STORE_TENANT - 1)
#define TEST(name)                                                                                                     \
    static void name##_body(struct fixture *f);                                                                        \
    STORE_TEST_OF(store_clickhouse, FIXTURE_CLICKHOUSE, name)                                                          \
    static void name##_body(struct fixture *f)

static struct clickhouse_imported import(struct fixture *old, struct fixture *f)
{
    struct clickhouse_imported done;
    OK(f, clickhouse_import(old->r, f->w, &done, &f->e));
    return done;
}

static void deliver_all(struct fixture *f, struct sender *s, bool again)
{
    for (size_t i = 0; i < s->n; i++) {
        const struct store_receipt r = deliver(f, &s->list[i]);
        cr_assert(r.verdict == STORE_ARRIVED && r.again == again, "segment %zu", i);
    }
}

static void expect_same_seen(const struct seen *a, const struct seen *b, const char *where)
{
    cr_assert(a->uploads == b->uploads && a->processes == b->processes && a->ticks == b->ticks &&
                  a->calls == b->calls && a->stacks == b->stacks,
              "%s: uploads %llu %llu, ticks %llu %llu, calls %llu %llu, stacks %llu %llu", where,
              (unsigned long long)a->uploads, (unsigned long long)b->uploads, (unsigned long long)a->ticks,
              (unsigned long long)b->ticks, (unsigned long long)a->calls, (unsigned long long)b->calls,
              (unsigned long long)a->stacks, (unsigned long long)b->stacks);
    cr_assert(a->first == b->first && a->last == b->last && a->inexact == b->inexact, "%s: %lld %lld, %lld %lld, %x %x",
              where, (long long)a->first, (long long)b->first, (long long)a->last, (long long)b->last, a->inexact,
              b->inexact);
    cr_assert_eq(memcmp(&a->groups, &b->groups, sizeof a->groups), 0, "%s", where);
}

/* Adds up each number of a row, and of its groups, times what it stands for. */
static enum profd_status add_counts(void *context, const struct store_row *row, struct profd_error *e)
{
    uint64_t *sums = context;
    struct rollup r;
    struct rollup_spread s;
    struct arena *a = arena_new(0);
    cr_assert(row->rolled && row->spread);
    enum profd_status status =
        rollup_decode(a, row->counts, row->counts_size, (uint32_t)row->build_count, false, &r, e);
    cr_assert_eq(status, PROFD_OK);
    status = rollup_decode_spread(a, &r, row->spread, row->spread_size, &s, e);
    cr_assert_eq(status, PROFD_OK);
    for (uint32_t i = 0; i < r.histogram_count; i++) {
        const struct rollup_histogram *h = &r.histograms[i];
        for (uint32_t k = h->first; k < h->first + h->used; k++) {
            sums[0] += r.bin_ticks[k] * (h->low + 3 * r.bin_index[k] + 7 * h->build + h->rate);
        }
    }
    for (uint32_t i = 0; i < r.arc_count; i++) {
        sums[1] += r.calls[i] * (r.from[i] + 3 * r.to[i] + 7 * r.from_build[i] + 11 * r.to_build[i]);
    }
    for (uint32_t i = 0; i < r.node_count; i++) {
        sums[2] += r.node_ticks[i] * (r.node_address[i] + 3 * r.node_depth[i] + 7 * r.node_build[i]);
    }
    const struct {
        const uint64_t *of;
        uint32_t n;
    } parts[] = {{s.bins, r.bin_count}, {s.arcs, r.arc_count}, {s.nodes, r.node_count}};
    for (unsigned p = 0; p < 3; p++) {
        for (size_t i = 0; i < (size_t)parts[p].n * ROLLUP_GROUPS; i++) {
            sums[3 + p] += parts[p].of[i] * (1 + i % ROLLUP_GROUPS);
        }
    }
    arena_free(a);
    return PROFD_OK;
}

struct listing {
    char text[8192];
    size_t n;
};

static enum profd_status add_total(void *context, const struct store_row *row, struct profd_error *e)
{
    uint64_t *sums = context;
    const uint64_t mixed = (uint64_t)row->hosts[0][0] + 256 * (uint64_t)(row->end / HOUR % 24);
    (void)e;
    for (size_t i = 0; row->shares && i < row->build_count; i++) {
        sums[0] += row->shares[i].nanoseconds * mixed;
        sums[1] += row->shares[i].calls * mixed;
    }
    sums[2] += row->uploads * mixed;
    sums[3] += row->processes_started * mixed;
    sums[4] += (uint64_t)row->end + (uint64_t)row->start + row->inexact;
    return PROFD_OK;
}

static bool add_build(void *context, const struct build_row *row)
{
    struct listing *l = context;
    l->n += (size_t)snprintf(l->text + l->n, sizeof l->text - l->n, "%s %s %d %lld %lld %llu %llu %llu %llu %x %d\n",
                             row->build_id.text, row->name, row->is_program, (long long)row->first_seen,
                             (long long)row->last_seen, (unsigned long long)row->uploads,
                             (unsigned long long)row->processes, (unsigned long long)row->nanoseconds,
                             (unsigned long long)row->calls, row->inexact, row->has_names);
    return true;
}

static bool add_host(void *context, const struct store_fleet_host *h)
{
    struct listing *l = context;
    l->n += (size_t)snprintf(l->text + l->n, sizeof l->text - l->n, "%02x %s %s %s %s %d %lld %lld %u\n", h->host[0],
                             h->name, h->tenant, h->machine, h->version, h->has_enrolment, (long long)h->not_after,
                             (long long)h->revoked, h->uid);
    return true;
}

static bool add_reader(void *context, const struct store_reader *r)
{
    struct listing *l = context;
    l->n += (size_t)snprintf(l->text + l->n, sizeof l->text - l->n, "%s %d %d %zu %s\n", r->name, r->admin, r->all,
                             r->tenant_count, r->tenant_count > 0 ? r->tenants[0].name : "");
    return true;
}

static bool add_watch_row(void *context, const struct store_watch_row *r)
{
    struct listing *l = context;
    l->n += (size_t)snprintf(l->text + l->n, sizeof l->text - l->n, "%s %lld %s\n", r->key, (long long)r->changed,
                             r->document);
    return true;
}

static bool add_pair(void *context, const struct label_row *r)
{
    struct listing *l = context;
    l->n += (size_t)snprintf(l->text + l->n, sizeof l->text - l->n, "%s=%s %llu\n", r->name, r->value,
                             (unsigned long long)r->uploads);
    return true;
}

/* Everything that lists say. */
static struct listing list_everything(struct fixture *f)
{
    struct listing l = {.n = 0};
    OK(f, store_each_build(f->r, &everybody, "", 100, add_build, &l, &f->e));
    OK(f, store_each_label(f->r, &everybody, NULL, add_pair, &l, &f->e));
    OK(f, store_each_host(f->r, add_host, &l, &f->e));
    OK(f, store_each_reader(f->r, add_reader, &l, &f->e));
    OK(f, store_each_watch_row(f->r, STORE_WATCH_COUNT, add_watch_row, &l, &f->e));
    return l;
}

static void expect_same(struct fixture *old, struct fixture *f)
{
    const struct listing was = list_everything(old), is = list_everything(f);
    cr_assert_str_eq(was.text, is.text);
    for (unsigned hour = 0; hour < 10; hour += hour == 0 ? 2 : 7) { /* 0, 2, and 9: all time */
        char where[32];
        const int64_t since = hour < 9 ? MIDNIGHT + hour * HOUR : 0, until = hour < 9 ? since + HOUR : 0;
        const struct store_filter filter = {PROGRAM, .since = since, .until = until},
                                  hosts = {PROGRAM, .by_host = true, .since = since, .until = until};
        const struct seen a = look(old, everybody, &filter), b = look(f, everybody, &filter);
        uint64_t x[5] = {0}, y[5] = {0};
        snprintf(where, sizeof where, "hour %u", hour);
        expect_same_seen(&a, &b, where);
        const struct store_filter counts = {PROGRAM, .spread = true, .since = since, .until = until};
        uint64_t v[6] = {0}, w[6] = {0};
        OK(old, store_each_upload(old->r, &everybody, &counts, add_counts, v, &old->e));
        OK(f, store_each_upload(f->r, &everybody, &counts, add_counts, w, &f->e));
        cr_assert(memcmp(v, w, sizeof v) == 0 && (a.uploads == 0 || (v[0] && v[1] && v[2] && v[3])), "%s", where);
        OK(old, store_each_upload(old->r, &everybody, &hosts, add_total, x, &old->e));
        OK(f, store_each_upload(f->r, &everybody, &hosts, add_total, y, &f->e));
        if (hour < 9) { /* the rows of all time have other ends */
            cr_assert_eq(memcmp(x, y, sizeof x), 0, "hosts of hour %u: %llu %llu, %llu %llu, %llu %llu", hour,
                         (unsigned long long)x[0], (unsigned long long)y[0], (unsigned long long)x[2],
                         (unsigned long long)y[2], (unsigned long long)x[3], (unsigned long long)y[3]);
        }
    }
    struct store_centre a, b;
    OK(old, store_get_centre(old->r, &a, &old->e));
    OK(f, store_get_centre(f->r, &b, &f->e));
    cr_assert(a.counted.uploads == b.counted.uploads && a.counted.calls == b.counted.calls &&
                  a.counted.ticks == b.counted.ticks && a.hosts == b.hosts && a.attested == b.attested &&
                  a.quarantined == b.quarantined,
              "%llu %llu", (unsigned long long)a.counted.uploads, (unsigned long long)b.counted.uploads);
    cr_assert_eq(marks(old, 0, 0, NULL), marks(f, 0, 0, NULL));
}

static struct store_enrolling wish(uint8_t token, uint8_t host)
{
    struct store_enrolling x = {.name = "web", .machine = "m", .version = "1", .now = NOON, .not_after = NOON + 5};
    memset(x.token, token, sizeof x.token);
    memset(x.host, host, sizeof x.host);
    memset(x.key, host, sizeof x.key);
    return x;
}

static bool say_yes(void *context, const struct store_enrolment *host)
{
    (void)context, (void)host;
    return true;
}

/* Tokens, enrolments, readers, objects and the watch list. */
static void fill_people(struct fixture *old)
{
    struct store_token t = {.tenant = "red", .name = "t", .uses = 3, .expires = NOON + DAY, .created = NOON};
    struct store_reader r = {.name = "one", .tenant_count = 1}, all = {.name = "two", .all = true, .admin = true};
    const struct store_watch_row row = {STORE_WATCH_COUNT, "k", 5, "{}"};
    struct store_enrolment a;
    enum store_enrol_verdict verdict;
    struct made_object o;
    bool spent;
    memset(t.hash, 1, sizeof t.hash);
    OK(old, store_put_token(old->w, &t, &old->e));
    for (uint8_t host = 21; host <= 22; host++) {
        const struct store_enrolling x = wish(1, host);
        OK(old, store_enrol(old->w, &x, &a, &verdict, &spent, &old->e));
    }
    OK(old, store_revoke(old->w, "16161616161616161616161616161616", NOON, say_yes, NULL, &old->e));
    snprintf(r.tenants[0].name, sizeof r.tenants[0].name, "blue");
    OK(old, store_add_reader(old->w, &r, &old->e));
    OK(old, store_add_reader(old->w, &all, &old->e));
    OK(old, store_put_watch_rows(old->w, &row, 1, &old->e));
    make_object(&o, "aa01", "v1", 0, true, "old names");
    OK(old, store_put_object(old->w, &o.o, &old->e));
    make_object(&o, "aa01", "v2", 0, true, "names");
    OK(old, store_put_object(old->w, &o.o, &old->e));
}

static void expect_people(struct fixture *f)
{
    const struct store_enrolling third = wish(1, 23), fourth = wish(1, 24), revoked = wish(1, 22);
    struct store_enrolment a;
    enum store_enrol_verdict verdict;
    bool spent;
    OK(f, store_enrol(f->w, &third, &a, &verdict, &spent, &f->e));
    cr_assert(verdict == STORE_ENROLLED && spent && a.uid == RED, "two of three uses were made before");
    OK(f, store_enrol(f->w, &fourth, &a, &verdict, &spent, &f->e));
    cr_assert_eq(verdict, STORE_ENROL_USED_UP);
    OK(f, store_renew(f->w, &revoked, &a, &verdict, &f->e));
    cr_assert_eq(verdict, STORE_ENROL_REVOKED);
}

/* A centre to which hosts have sent with their names in the series, and others without. */
static void fill_centre(struct fixture *old, struct sender *s[3])
{
    static const char *const names[] = {"a.example", "b.example", "c.example"};
    fixture_open(old, FIXTURE_SQLITE);
    for (unsigned i = 0; i < 3; i++) {
        s[i] = eight_hours((uint8_t)(7 + 2 * i));
        admit(old, s[i], names[i], 0, 24);
        store_set_detail(old->w, &(struct store_detail){.when = i == 0 ? STORE_DETAIL_ALWAYS : STORE_DETAIL_NEVER});
        deliver_all(old, s[i], false);
    }
    fill_people(old);
}

static void close_centre(struct fixture *old, struct sender *s[3])
{
    for (unsigned i = 0; i < 3; i++) {
        close_sender(s[i]);
    }
    fixture_close(old);
}

TEST(a_centre_is_moved_and_goes_on)
{
    struct fixture old;
    struct sender *s[3];
    uint32_t variants = 0;
    fill_centre(&old, s);
    struct clickhouse_imported done = import(&old, f);
    cr_assert(done.hours == 16 && done.counted.uploads == 72 && done.hosts == 3 && done.epochs == 3 &&
                  done.tenants == 3 && done.tokens == 1 && done.enrolments == 2 && done.readers == 2 &&
                  done.objects == 2 && done.watch_rows == 1 && done.local == 0,
              "%llu hours, %llu uploads", (unsigned long long)done.hours, (unsigned long long)done.counted.uploads);
    expect_same(&old, f);
    cr_assert_str_eq(get_content(f, "aa01", 0, NULL, &variants), "names");
    cr_assert_eq(variants, 2);
    import(&old, f);
    expect_same(&old, f);
    for (unsigned i = 0; i < 3; i++) {
        deliver_all(f, s[i], true);
    }
    expect_same(&old, f);
    compact_all(f, HOUR, 0, NOON + 3 * DAY);
    expect_same(&old, f);
    forget_sealed(s[1]); /* more of hours that were moved */
    put_at(s[1], 9, 1, MIDNIGHT + 2 * HOUR + 77, 40);
    seal(s[1]);
    cr_assert_eq(s[1]->n, 1);
    deliver_all(&old, s[1], false);
    store_set_detail(f->w, &(struct store_detail){.when = STORE_DETAIL_NEVER});
    deliver_all(f, s[1], false);
    expect_same(&old, f);
    expect_people(f);
    expect_clean(f);
    close_centre(&old, s);
}

TEST(what_the_database_got_since_is_moved_by_the_next_import)
{
    struct fixture old;
    struct sender *s[3];
    uint64_t uploads;
    fill_centre(&old, s);
    import(&old, f);
    forget_sealed(s[0]);
    put_at(s[0], 9, 1, MIDNIGHT + 3 * HOUR + 77, 40);
    seal(s[0]);
    store_set_detail(old.w, &(struct store_detail){.when = STORE_DETAIL_ALWAYS});
    deliver_all(&old, s[0], false);
    import(&old, f);
    expect_same(&old, f);
    deliver_all(f, s[0], true);
    OK(&old, store_delete_build(old.w, &everybody, full_id("aa01"), &uploads, &old.e));
    import(&old, f);
    cr_assert_eq(look(f, everybody, &(struct store_filter){PROGRAM}).uploads, 0);
    struct store_centre c;
    OK(f, store_get_centre(f->r, &c, &f->e));
    cr_assert(c.counted.uploads == 73 && c.removed.uploads == 73, "%llu, %llu", (unsigned long long)c.counted.uploads,
              (unsigned long long)c.removed.uploads);
    close_centre(&old, s);
}

TEST(segments_that_both_have_are_not_moved)
{
    struct fixture old;
    struct sender *s[3];
    struct clickhouse_imported done;
    fill_centre(&old, s);
    admit(f, s[0], "a.example", 0, 24);
    deliver_all(f, s[0], false);
    FAILS(f, PROFD_REFUSED, clickhouse_import(old.r, f->w, &done, &f->e));
    cr_assert(strstr(f->e.sentence, "count twice"), "%s", f->e.sentence);
    close_centre(&old, s);
}

/* Retention at the centre goes on between two imports. */
TEST(days_that_the_centre_removes_are_not_moved_again)
{
    struct fixture old;
    struct sender *s[3];
    struct clickhouse_imported done;
    struct store_centre c;
    char statement[160];
    fill_centre(&old, s);
    import(&old, f);
    snprintf(statement, sizeof statement, "INSERT INTO state VALUES ('retiring', 4102444800000000000, '%lld 0')",
             (long long)(MIDNIGHT / DAY));
    free(clickhouse_server_ask(f->database, statement));
    FAILS(f, PROFD_BUSY, clickhouse_import(old.r, f->w, &done, &f->e));
    cr_assert(strstr(f->e.sentence, "is being removed"), "%s", f->e.sentence);
    free(clickhouse_server_ask(f->database, "INSERT INTO state VALUES ('retiring', 4102444800000000001, '')"));
    cr_assert_eq(retire_all(f, 10 * DAY, 0, NOON + 20 * DAY), 72);
    done = import(&old, f);
    cr_assert(done.hours == 0 && done.removed == 16 && done.deleted == 0);
    OK(f, store_get_centre(f->r, &c, &f->e));
    cr_assert(c.counted.uploads == 72 && c.removed.uploads == 72);
    cr_assert_eq(look(f, everybody, &(struct store_filter){PROGRAM}).uploads, 0);
    expect_clean(f);
    close_centre(&old, s);
}

/* A day is removed after the import has read which days were. The view is the daemon that does it: it inserts when the
 * import says that it stores. */
TEST(a_day_that_is_removed_during_an_import_is_not_moved)
{
    struct fixture old;
    struct sender *s[3];
    struct clickhouse_imported done;
    char statement[400];
    fill_centre(&old, s);
    snprintf(statement, sizeof statement,
             "CREATE MATERIALIZED VIEW remover TO removed AS SELECT '%s' AS program, toUInt32(%u) AS uid, toUInt32(0) "
             "AS generation, toUInt32(%lld) AS day, toUInt64(1) AS number, toUInt64(0) AS uploads, toUInt64(0) AS "
             "ticks, toUInt64(0) AS calls FROM state WHERE name LIKE 'storing/%%'",
             full_id("aa01"), STORE_TENANT, (long long)(MIDNIGHT / DAY));
    free(clickhouse_server_ask(f->database, statement));
    FAILS(f, PROFD_BUSY, clickhouse_import(old.r, f->w, &done, &f->e));
    cr_assert(strstr(f->e.sentence, "during this import"), "%s", f->e.sentence);
    cr_assert_eq(look(f, everybody, &(struct store_filter){PROGRAM}).uploads, 0);
    done = import(&old, f);
    cr_assert(done.hours == 0 && done.removed == 16, "%llu hours, %llu removed", (unsigned long long)done.hours,
              (unsigned long long)done.removed);
    cr_assert_eq(look(f, everybody, &(struct store_filter){PROGRAM}).uploads, 0);
    close_centre(&old, s);
}

/* A sum of many rows, in small parts. */
Test(store_import, parts_add_up_to_the_sum)
{
    enum { BINS = 10, ARCS = 23 };
    uint32_t index[BINS], build[ARCS] = {0}, rank[ARCS];
    uint64_t ticks[BINS], address[ARCS], calls[ARCS], commit[ARCS] = {0};
    static uint64_t bin_shares[BINS * ROLLUP_GROUPS], arc_shares[ARCS * ROLLUP_GROUPS];
    struct rollup_histogram h[] = {{.first = 0, .used = 0}, {.first = 0, .used = 4}, {.first = 4, .used = 6}};
    for (uint32_t i = 0; i < ARCS; i++) {
        rank[i] = i;
        address[i] = i;
        calls[i] = arc_shares[i * ROLLUP_GROUPS] = 100 + i;
        if (i < BINS) {
            index[i] = i;
            ticks[i] = bin_shares[i * ROLLUP_GROUPS] = 1 + i;
        }
    }
    const struct rollup r = {.histogram_count = 3,
                             .histograms = h,
                             .bin_count = BINS,
                             .bin_index = index,
                             .bin_ticks = ticks,
                             .arc_count = ARCS,
                             .from_build = build,
                             .to_build = build,
                             .from = address,
                             .to = address,
                             .calls = calls,
                             .commit = commit,
                             .rank = rank};
    const struct rollup_spread spread = {bin_shares, arc_shares, NULL};
    for (uint32_t most = 1; most < BINS + ARCS + 2; most++) {
        struct arena *a = arena_new(0);
        struct import_cut cut = {.done = false};
        uint32_t bins = 0, arcs = 0, empty = 0, parts = 0;
        while (!cut.done) {
            struct rollup part;
            struct rollup_spread shares;
            cr_assert(import_cut_next(&cut, &r, &spread, most, a, &part, &shares));
            cr_assert_leq(part.bin_count + part.arc_count, most);
            for (uint32_t i = 0; i < part.histogram_count; i++) {
                empty += part.histograms[i].used == 0;
                for (uint32_t k = 0; k < part.histograms[i].used; k++) {
                    const uint32_t at = part.histograms[i].first + k;
                    cr_assert(part.bin_index[at] == bins && shares.bins[at * ROLLUP_GROUPS] == 1 + bins);
                    bins++;
                }
            }
            for (uint32_t i = 0; i < part.arc_count; i++, arcs++) {
                cr_assert(part.calls[i] == 100 + arcs && shares.arcs[i * ROLLUP_GROUPS] == 100 + arcs);
            }
            parts++;
        }
        cr_assert(bins == BINS && arcs == ARCS && empty == 1 && parts == (BINS + ARCS + most - 1) / most, "%u", most);
        arena_free(a);
    }
}
