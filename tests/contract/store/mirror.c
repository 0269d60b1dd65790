/* Days that another centre sealed: reports have them as if its hosts had sent here, as a whole or not at all; they are
 * in no total and count for nobody; and what breaks a rule is refused. */
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/buffer.h"
#include "store/arrivals.h"

#include "tests/contract/store/arrival_fixture.h"
#include "tests/memory_tier.h"

#define NOW (MIDNIGHT + 5 * DAY)
#define SUMS_MOST 64

static struct memory_tier tier;

/* Another centre, and what it sealed. */
static struct other {
    struct fixture store;
    struct store_block block;
    struct arena *arena;
    struct store_block_sum sums[SUMS_MOST];
    size_t n;
} other;

static const void *copy(const void *bytes, size_t n)
{
    char *to = arena_take(other.arena, n + 1);
    memcpy(to, n > 0 ? bytes : "", n);
    return to;
}

/* As a mirror gets it: the arcs of days, and no counts of hours. */
static enum profd_status keep_sum(void *context, const struct store_block_sum *sum, struct profd_error *e)
{
    struct store_block_sum *k = &other.sums[other.n++];
    struct store_build *builds = arena_take(other.arena, sum->build_count * sizeof *builds);
    struct store_label *labels = arena_take(other.arena, (sum->label_count + 1) * sizeof *labels);
    cr_assert_leq(other.n, SUMS_MOST);
    *k = *sum;
    for (size_t i = 0; i < sum->build_count; i++) {
        builds[i] = sum->builds[i];
        builds[i].name = copy(sum->builds[i].name, strlen(sum->builds[i].name));
    }
    for (size_t i = 0; i < sum->label_count; i++) {
        labels[i].name = copy(sum->labels[i].name, strlen(sum->labels[i].name));
        labels[i].value = copy(sum->labels[i].value, strlen(sum->labels[i].value));
    }
    k->builds = builds;
    k->labels = labels;
    k->stub.program = copy(sum->stub.program, strlen(sum->stub.program));
    k->tenant = copy(sum->tenant, strlen(sum->tenant));
    k->groups = copy(sum->groups, sum->groups_size);
    k->shares = copy(sum->shares, sum->shares_size);
    k->bulk = (struct store_bulk){.host_count = sum->bulk.totals_size > 0 ? sum->bulk.host_count : 0};
    if (sum->stub.level == 1) {
        uint8_t *arcs;
        size_t size;
        cr_assert_eq(store_keep_arcs(sum->bulk.counts, sum->bulk.counts_size, sum->build_count, &arcs, &size, e),
                     PROFD_OK);
        k->bulk.counts = copy(arcs, size);
        k->bulk.counts_size = size;
        free(arcs);
    }
    return memory_tier_keep(context, sum, e);
}

/* The first day of the other centre is sealed in one block; f reads the same tier. */
static void seal_other(struct fixture *f)
{
    struct store_block_cursor c = {.done = false};
    struct store_progress p = {.more = true};
    bool found = false;
    struct store *w = other.store.w;
    compact_all(&other.store, HOUR, UINT64_MAX, NOW);
    OK(f, store_block_begin(w, NOW, &other.block, &found, &f->e));
    cr_assert(found);
    while (!c.done) {
        OK(f, store_block_read(w, &other.block, &c, SIZE_MAX, keep_sum, &tier, &f->e));
    }
    OK(f, store_block_written(w, &other.block, NOW, &f->e));
    while (p.more) {
        OK(f, store_block_release(w, &p, &f->e));
    }
    other.block.sealed = NOW;
}

/* Eight hours of one host at the other centre, and of another host here; truth has both. */
static void fill(struct fixture *f, struct fixture *truth)
{
    struct sender *s[2] = {eight_hours(7), eight_hours(8)};
    const char *const names[] = {"a.example", "b.example"};
    memory_tier_init(&tier);
    other.n = 0;
    other.arena = arena_new(0);
    fixture_open(&other.store);
    fixture_open(truth);
    for (int i = 0; i < 2; i++) {
        struct fixture *at = i == 0 ? &other.store : f;
        admit(at, s[i], names[i], 0, 24);
        admit(truth, s[i], names[i], 0, 24);
        for (size_t k = 0; k < s[i]->n; k++) {
            deliver(at, &s[i]->list[k]);
            deliver(truth, &s[i]->list[k]);
        }
        close_sender(s[i]);
    }
    store_set_tier(other.store.w, true);
    store_set_tier(f->w, true);
    memory_tier_attach(&tier, f->r);
    memory_tier_attach(&tier, other.store.r);
    compact_all(truth, HOUR, UINT64_MAX, NOW);
    compact_all(f, HOUR, UINT64_MAX, NOW);
    seal_other(f);
}

static void done(struct fixture *truth)
{
    memory_tier_done(&tier);
    arena_free(other.arena);
    fixture_close(&other.store);
    fixture_close(truth);
}

static void same(const struct seen *a, const struct seen *b)
{
    cr_assert(a->uploads == b->uploads && a->processes == b->processes && a->ticks == b->ticks && a->calls == b->calls,
              "%llu and %llu uploads", (unsigned long long)a->uploads, (unsigned long long)b->uploads);
    cr_assert(a->first == b->first && a->last == b->last && a->inexact == b->inexact && a->stacks == b->stacks);
    cr_assert_eq(a->hosts, b->hosts);
    cr_assert_eq(memcmp(&a->groups, &b->groups, sizeof a->groups), 0);
}

static struct store_mirror listed(uint32_t attempt)
{
    struct store_mirror m = {.block = other.block, .name = "eu-1"};
    m.block.attempt = attempt;
    return m;
}

static bool take_row(void *context, const struct store_mirror *m)
{
    *(struct store_block *)context = m->block;
    return m->block.state != STORE_BLOCK_LISTED; /* the others come first, or do not matter */
}

/* Lists the block as its attempt, and begins it. */
static uint64_t begin_block(struct fixture *f, uint32_t attempt)
{
    const struct store_mirror m = listed(attempt);
    struct store_block b = {.row = 0};
    bool more = true;
    OK(f, store_mirror_list(f->w, &m, 1, &more, &f->e));
    cr_assert_not(more);
    OK(f, store_each_mirror(f->r, take_row, &b, &f->e));
    cr_assert(b.state == STORE_BLOCK_LISTED && b.number == other.block.number && b.attempt == attempt);
    OK(f, store_mirror_begin(f->w, b.row, &f->e));
    FAILS(f, PROFD_CONFLICT, store_mirror_begin(f->w, b.row, &f->e));
    OK(f, store_mirror_list(f->w, &m, 1, &more, &f->e));
    OK(f, store_each_mirror(f->r, take_row, &b, &f->e));
    OK(f, store_mirror_begin(f->w, b.row, &f->e));
    return b.row;
}

static void clean(struct fixture *f)
{
    struct store_progress p = {.more = true};
    while (p.more) {
        OK(f, store_mirror_clean(f->w, &p, &f->e));
    }
}

static void note_centre(void *context, const struct store_tier_centre *c)
{
    char *text = context;
    sprintf(text + strlen(text), "%s to %lld, %llu waiting; ", c->name,
            (long long)((c->sealed_to - MIDNIGHT) / (int64_t)DAY), (unsigned long long)c->waiting);
}

static const char *centres(struct fixture *f)
{
    static char text[512];
    *text = '\0';
    OK(f, store_each_centre(f->r, note_centre, text, &f->e));
    return text;
}

STORE_TEST(mirror_is_whole_or_absent)
{
    struct fixture truth;
    const struct store_filter inside = {PROGRAM, .since = MIDNIGHT + 3 * HOUR, .until = MIDNIGHT + 30 * HOUR};
    struct store_use use, then;
    bool more;
    fill(f, &truth);
    const struct seen own = look_window(f, 0, 0), all = look_window(&truth, 0, 0),
                      some = look(&truth, everybody, &inside);
    OK(f, store_get_use(f->r, STORE_TENANT, &use, &f->e));
    cr_assert(all.uploads == 2 * own.uploads && some.uploads > 0);
    uint64_t epoch = epoch_of(f, only(STORE_TENANT), full_id("aa01"));
    const uint64_t row = begin_block(f, 1);
    cr_assert_str_eq(centres(f), "eu-1 to 0, 1 waiting; ");
    for (size_t i = 0; i < other.n; i++) {
        OK(f, store_mirror_put(f->w, row, &other.sums[i], 1, &f->e));
        const struct seen now = look_window(f, 0, 0);
        same(&own, &now);
    }
    FAILS(f, PROFD_CONFLICT, store_mirror_show(f->w, row, other.n + 1, &f->e));
    expect_clean(f);
    epoch = epoch_of(f, only(STORE_TENANT), full_id("aa01"));
    OK(f, store_mirror_show(f->w, row, other.n, &f->e));
    cr_assert_gt(epoch_of(f, only(STORE_TENANT), full_id("aa01")), epoch);
    cr_assert_str_eq(centres(f), "eu-1 to 1, 0 waiting; ");
    for (int round = 0; round < 2; round++) {
        const struct seen now = look_window(f, 0, 0), part = look(f, everybody, &inside),
                          tenant = look(f, only(STORE_TENANT), &inside);
        same(&all, &now);
        same(&some, &part);
        same(&some, &tenant);
        cr_assert_str_eq(list_builds(f, everybody, NULL, 10), list_builds(&truth, everybody, NULL, 10));
        expect_clean(f);
        (void)centre_of(f);
        fixture_reopen(f);
        memory_tier_attach(&tier, f->r);
        store_set_tier(f->w, true);
    }
    OK(f, store_get_use(f->r, STORE_TENANT, &then, &f->e));
    cr_assert_eq(then.bytes, use.bytes, "nobody is charged for it");
    cr_assert_eq(look(f, only(STORE_TENANT - 1), &inside).uploads, 0, "another tenant");
    retire_all(f, DAY, 0, NOW + 40 * DAY);
    const struct seen left = look_window(f, 0, 0);
    cr_assert_eq(left.uploads, all.uploads - own.uploads, "it stays until its centre drops it");
    expect_clean(f);
    OK(f, store_mirror_list(f->w, NULL, 0, &more, &f->e));
    cr_assert_eq(look_window(f, 0, 0).uploads, 0);
    expect_clean(f);
    clean(f);
    cr_assert_eq(fixture_count(f, "SELECT (SELECT count(*) FROM sealed)+(SELECT count(*) FROM block)+"
                                  "(SELECT count(*) FROM series)+(SELECT count(*) FROM build_user)"),
                 0);
    expect_clean(f);
    done(&truth);
}

static uint32_t marked(struct fixture *f, struct store_scope scope, int64_t since, int64_t until, const char *host)
{
    const struct store_matcher m = {.name = "host", .value = host};
    const struct store_filter filter = {.since = since, .until = until, .matcher_count = host ? 1 : 0, .matchers = &m};
    uint32_t reasons = 99;
    OK(f, store_get_marks(f->r, &scope, &filter, STORE_OF_ALL, &reasons, &f->e));
    return reasons;
}

static void take_untold(void *context, const struct store_tier_mark *m)
{
    char *text = context;
    sprintf(text + strlen(text), "%lld %s %s %u; ", (long long)(m->hour - MIDNIGHT / SEGMENT_HOUR), m->tenant, m->host,
            m->reasons);
}

static const char *untold(struct fixture *f, int64_t before)
{
    static char text[512];
    *text = '\0';
    OK(f, store_each_untold_mark(f->r, before, take_untold, text, &f->e));
    return text;
}

/* What another centre says of its hours is said here, of the days of which its blocks are visible: to those who may
 * know, of the hosts that are asked for, and until the tier does not say it any more. */
STORE_TEST(mirror_of_marks)
{
    const int64_t hour = MIDNIGHT / SEGMENT_HOUR;
    struct fixture truth;
    bool more;
    fill(f, &truth);
    struct store_tier_mark list[] = {{.hour = hour + 3, .tenant = "default", .host = "a.example", .reasons = 2},
                                     {.hour = hour + 5, .tenant = "", .host = "", .reasons = 4},
                                     {.hour = hour + 6, .tenant = "nobody", .host = "c.example", .reasons = 8},
                                     {.hour = hour + 24, .tenant = "default", .host = "a.example", .reasons = 16},
                                     {.hour = hour - 1, .tenant = "default", .host = "a.example", .reasons = 32}};
    for (size_t i = 0; i < 5; i++) {
        memcpy(list[i].centre, other.block.centre, sizeof list[i].centre);
    }
    OK(f, store_set_tier_marks(f->w, list, 5, &f->e));
    cr_assert_eq(marked(f, everybody, 0, 0, NULL), 0, "nothing of that centre is counted");
    const uint64_t row = begin_block(f, 1);
    OK(f, store_mirror_put(f->w, row, other.sums, other.n, &f->e));
    cr_assert_eq(marked(f, everybody, 0, 0, NULL), 0);
    OK(f, store_mirror_show(f->w, row, other.n, &f->e));
    for (int round = 0; round < 2; round++) {
        cr_assert_eq(marked(f, everybody, 0, 0, NULL), 2 | 4 | 8);
        cr_assert_eq(marked(f, only(STORE_TENANT), 0, 0, NULL), 2 | 4, "not that of another tenant");
        cr_assert_eq(marked(f, only(STORE_TENANT - 1), 0, 0, NULL), 4);
        cr_assert_eq(marked(f, only(1), 0, 0, NULL), 0, "a user of this machine");
        cr_assert_eq(marked(f, everybody, MIDNIGHT + 3 * HOUR, MIDNIGHT + 4 * HOUR, NULL), 2);
        cr_assert_eq(marked(f, everybody, MIDNIGHT + 4 * HOUR, MIDNIGHT + 5 * HOUR, NULL), 0);
        cr_assert_eq(marked(f, everybody, 0, 0, "a.example"), 2 | 4);
        cr_assert_eq(marked(f, everybody, 0, 0, "b.example"), 4);
        expect_clean(f);
        fixture_reopen(f);
        memory_tier_attach(&tier, f->r);
        store_set_tier(f->w, true);
    }
    uint64_t epoch = epoch_of(f, only(STORE_TENANT), full_id("aa01"));
    OK(f, store_set_tier_marks(f->w, list, 5, &f->e));
    cr_assert_eq(epoch_of(f, only(STORE_TENANT), full_id("aa01")), epoch, "nothing is new");
    list[0].reasons = 3;
    OK(f, store_set_tier_marks(f->w, list, 5, &f->e));
    cr_assert_gt(epoch_of(f, only(STORE_TENANT), full_id("aa01")), epoch);
    cr_assert_eq(marked(f, only(STORE_TENANT), 0, 0, NULL), 3 | 4);
    OK(f, store_set_tier_marks(f->w, list, 1, &f->e));
    cr_assert_eq(marked(f, everybody, 0, 0, NULL), 3, "the tier has lost some");
    OK(f, store_mirror_list(f->w, NULL, 0, &more, &f->e));
    cr_assert_eq(marked(f, everybody, 0, 0, NULL), 0, "the day was dropped");
    done(&truth);
}

/* What this centre knows of its hosts' hours, and not of its own users, is told until the tier has it. */
STORE_TEST(mirror_of_own_marks)
{
    const int64_t hour = MIDNIGHT / SEGMENT_HOUR;
    struct sender *s = eight_hours(7);
    char text[256];
    admit(f, s, "a.example", 0, 24);
    cr_assert_str_eq(untold(f, INT64_MAX), "");
    snprintf(text, sizeof text,
             "INSERT INTO hour_mark SELECT %lld, id, 6 FROM fleet_host UNION ALL VALUES (%lld, 0, 4), (%lld, -1, 64)",
             (long long)(hour + 3), (long long)(hour + 9), (long long)(hour + 9));
    sqlite3 *db;
    cr_assert_eq(sqlite3_open(f->path, &db), SQLITE_OK);
    cr_assert_eq(sqlite3_exec(db, text, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
    cr_assert_str_eq(untold(f, INT64_MAX), "3 default a.example 6; 9   4; ");
    cr_assert_str_eq(untold(f, hour + 9), "3 default a.example 6; ");
    struct store_tier_mark list[] = {{.hour = hour + 3, .tenant = "default", .host = "a.example", .reasons = 2},
                                     {.hour = hour + 9, .tenant = "", .host = "", .reasons = 12}};
    const struct store_centre c = centre_of(f);
    memcpy(list[0].centre, c.name, sizeof c.name);
    memcpy(list[1].centre, c.name, sizeof c.name);
    OK(f, store_set_tier_marks(f->w, list, 2, &f->e));
    cr_assert_str_eq(untold(f, INT64_MAX), "3 default a.example 6; ");
    list[0].reasons = 6;
    OK(f, store_set_tier_marks(f->w, list, 2, &f->e));
    cr_assert_str_eq(untold(f, INT64_MAX), "");
    close_sender(s);
}

/* The next attempt replaces what is visible at the moment when it is visible; what was arriving begins again. */
STORE_TEST(mirror_of_the_next_attempt)
{
    struct fixture truth;
    fill(f, &truth);
    const struct seen all = look_window(&truth, 0, 0);
    uint64_t row = begin_block(f, 1);
    OK(f, store_mirror_put(f->w, row, other.sums, other.n, &f->e));
    OK(f, store_mirror_show(f->w, row, other.n, &f->e));
    for (size_t i = 0; i < tier.count; i++) {
        tier.sums[i].stub.block.attempt = 2;
    }
    row = begin_block(f, 2);
    cr_assert_str_eq(centres(f), "eu-1 to 0, 1 waiting; ");
    OK(f, store_mirror_put(f->w, row, other.sums, other.n - 1, &f->e));
    clean(f);
    expect_clean(f);
    row = begin_block(f, 2);
    OK(f, store_mirror_put(f->w, row, other.sums, other.n, &f->e));
    OK(f, store_mirror_show(f->w, row, other.n, &f->e));
    const struct seen now = look_window(f, 0, 0);
    same(&all, &now);
    clean(f);
    cr_assert_eq(fixture_count(f, "SELECT count(*) FROM sealed"), (int64_t)other.n);
    expect_clean(f);
    done(&truth);
}

/* What is deleted is not counted, and a block that arrives begins again. */
STORE_TEST(mirror_of_a_deleted_program)
{
    struct fixture truth;
    uint64_t uploads = 0;
    fill(f, &truth);
    uint64_t row = begin_block(f, 1);
    OK(f, store_mirror_put(f->w, row, other.sums, other.n, &f->e));
    OK(f, store_delete_build(f->w, &everybody, full_id("aa01"), &uploads, &f->e));
    FAILS(f, PROFD_CONFLICT, store_mirror_show(f->w, row, other.n, &f->e));
    row = begin_block(f, 1);
    OK(f, store_mirror_put(f->w, row, other.sums, other.n, &f->e));
    OK(f, store_mirror_show(f->w, row, other.n, &f->e));
    compact_all(f, HOUR, UINT64_MAX, NOW);
    clean(f);
    cr_assert_eq(look_window(f, 0, 0).uploads, 24);
    expect_clean(f);
    OK(f, store_delete_build(f->w, &(struct store_scope){.uid = STORE_TENANT}, full_id("aa01"), &uploads, &f->e));
    cr_assert_eq(uploads, 24);
    compact_all(f, HOUR, UINT64_MAX, NOW);
    cr_assert_eq(fixture_count(f, "SELECT (SELECT count(*) FROM sealed)+(SELECT count(*) FROM series)"), 0);
    expect_clean(f);
    done(&truth);
}

/* The cover of a tombstone hides a block that was sealed before its centre knew of the deletion. What was accepted
 * after the deletion stays. */
STORE_TEST(mirror_of_a_covered_block)
{
    struct fixture truth;
    char program[100];
    struct store_tombstone t = {.tenant = "default", .build = program, .deleted = MIDNIGHT - HOUR};
    uint64_t uploads = 0;
    bool buried = false;
    fill(f, &truth);
    const uint64_t own = look_window(f, 0, 0).uploads, all = look_window(&truth, 0, 0).uploads;
    snprintf(program, sizeof program, "%s", full_id("aa01"));
    t.block = other.block.number - 1;
    memcpy(t.centre, other.block.centre, sizeof t.centre);
    OK(f, store_bury(f->w, &t, 1, &uploads, &f->e));
    cr_assert(uploads == own && t.beyond == 0);
    struct sender *s = eight_hours(9);
    admit(f, s, "c.example", 0, 24);
    deliver(f, &s->list[0]);
    const uint64_t later = look_window(f, 0, 0).uploads;
    uint64_t row = begin_block(f, 1);
    OK(f, store_mirror_put(f->w, row, other.sums, other.n, &f->e));
    OK(f, store_mirror_show(f->w, row, other.n, &f->e));
    cr_assert(later > 0 && look_window(f, 0, 0).uploads == all - own + later);
    t.block++;
    t.deleted = store_cover_deleted(&t);
    OK(f, store_bury(f->w, &t, 1, &uploads, &f->e));
    cr_assert_eq(look_window(f, 0, 0).uploads, later);
    OK(f, store_is_buried(f->r, &t, &buried, &f->e));
    cr_assert(buried);
    cr_assert_neq(begin_block(f, 1), 0, "it is to be mirrored again, without these sums");
    clean(f);
    expect_clean(f);
    close_sender(s);
    done(&truth);
}

/* Two other centres of one name are told apart. */
STORE_TEST(mirror_of_centres_with_one_name)
{
    struct store_mirror m[2] = {{.name = "eu-1"}, {.name = "eu-1"}};
    bool more;
    for (uint8_t i = 0; i < 2; i++) {
        m[i].block = (struct store_block){.number = 1, .attempt = 1, .day = MIDNIGHT / DAY + i, .sealed = NOW};
        m[i].block.centre[0] = i;
    }
    OK(f, store_mirror_list(f->w, m, 2, &more, &f->e));
    cr_assert_str_eq(centres(f), "eu-1 (00000000) to 0, 1 waiting; eu-1 (01000000) to 1, 1 waiting; ");
    expect_clean(f);
}

static void spoil(struct store_block_sum *s, int how)
{
    static const uint8_t many[] = {1};
    struct store_build *builds = (struct store_build *)(uintptr_t)copy(s->builds, s->build_count * sizeof *builds);
    struct store_label *labels = (struct store_label *)(uintptr_t)copy(s->labels, s->label_count * sizeof *labels);
    switch (how) {
    case 0:
        s->stub.level = 2;
        break;
    case 1:
        s->stub.at += 48;
        break;
    case 2:
        s->uploads = 0;
        break;
    case 3:
        s->uploads = UINT64_MAX;
        break;
    case 4:
        s->first = s->last + 1;
        break;
    case 5:
        s->stub.series[0] ^= 1;
        break;
    case 6:
        memcpy(builds[0].id.text, "zz", 3);
        s->builds = builds;
        break;
    case 7:
        s->build_count = 0;
        break;
    case 8:
        labels[0].name = "__x";
        s->labels = labels;
        break;
    case 9:
        s->shares = many;
        s->shares_size = 1;
        break;
    case 10:
        s->groups = many;
        s->groups_size = 1;
        break;
    case 11:
        s->tenant = "uid 3";
        break;
    case 12:
        s->stub.program = full_id("ffff");
        break;
    case 13:
        builds[0].name = "\xff";
        s->builds = builds;
        break;
    default:
        s->ticks = UINT64_MAX;
        break;
    }
}

/* One sentence each, and nothing is changed. */
STORE_TEST(mirror_refuses_what_breaks_a_rule)
{
    struct fixture truth;
    fill(f, &truth);
    const uint64_t row = begin_block(f, 1);
    cr_assert_eq(other.sums[0].stub.level, 0);
    for (int how = 0; how < 15; how++) {
        struct store_block_sum pair[2] = {other.sums[0], other.sums[0]};
        spoil(&pair[1], how);
        FAILS(f, PROFD_PROTOCOL, store_mirror_put(f->w, row, pair, 2, &f->e));
        cr_assert(strstr(f->e.sentence, "is not mirrored: ") != NULL, "%d: %s", how, f->e.sentence);
        cr_assert_eq(
            fixture_count(f, "SELECT (SELECT count(*) FROM sealed)+(SELECT count(*) FROM series WHERE mirror)"), 0);
    }
    for (size_t i = 0; i < other.n; i++) { /* a day without one of its hours, and hours without their day */
        if (other.sums[i].stub.level == 1) {
            FAILS(f, PROFD_PROTOCOL, store_mirror_put(f->w, row, &other.sums[i], 1, &f->e));
        } else if (i > 0) {
            OK(f, store_mirror_put(f->w, row, &other.sums[i], 1, &f->e));
        }
    }
    FAILS(f, PROFD_PROTOCOL, store_mirror_show(f->w, row, 7, &f->e));
    expect_clean(f);
    done(&truth);
}

static bool take_gone(void *context, const struct store_block *b)
{
    *(struct store_block *)context = *b;
    return b->state != STORE_BLOCK_GONE || b->row == b->number;
}

/* A centre that was restored from an older backup takes over the day that it had sealed: what it had is not counted
 * twice, what comes again is known if the block has it, and counted if not. */
STORE_TEST(mirror_of_own_days_after_a_restore)
{
    struct fixture *own = f;
    struct sender *s = eight_hours(7);
    struct store_receipt r[MOST];
    struct buffer keys;
    struct store_block b = {.row = 0};
    bool more, found;
    memory_tier_init(&tier);
    other.n = 0;
    other.arena = arena_new(0);
    store_set_tier(own->w, true);
    memory_tier_attach(&tier, own->r);
    /* The backup has three segments, the block six, and two come late. */
    admit(own, s, "a.example", 0, 24);
    for (size_t k = 0; k < 3; k++) {
        deliver(own, &s->list[k]);
    }
    char copy_path[128];
    snprintf(copy_path, sizeof copy_path, "%s.copy", own->path);
    sqlite3 *db;
    char *sql = sqlite3_mprintf("VACUUM INTO %Q", copy_path);
    cr_assert_eq(sqlite3_open(own->path, &db), SQLITE_OK);
    cr_assert_eq(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_free(sql);
    sqlite3_close(db);
    for (size_t k = 3; k < 6; k++) {
        deliver(own, &s->list[k]);
    }
    buffer_init(&keys, SIZE_MAX);
    compact_all(own, HOUR, UINT64_MAX, NOW);
    const struct seen six = look_window(own, 0, 0);
    OK(own, store_block_begin(own->w, NOW, &other.block, &found, &own->e));
    OK(own, store_block_keys(own->w, &other.block, &keys, &own->e));
    struct store_block_cursor c = {.done = false};
    while (!c.done) {
        OK(own, store_block_read(own->w, &other.block, &c, SIZE_MAX, keep_sum, &tier, &own->e));
    }
    other.block.sealed = NOW;
    for (size_t k = 6; k < 8; k++) {
        deliver(own, &s->list[k]);
    }
    const struct seen all = look_window(own, 0, 0);
    store_close(own->r);
    store_close(own->w);
    for (int i = 0; i < 3; i++) {
        static const char *const ends[] = {"", "-wal", "-shm"};
        char path[160];
        snprintf(path, sizeof path, "%s%s", own->path, ends[i]);
        (void)remove(path);
    }
    cr_assert_eq(rename(copy_path, own->path), 0);
    OK(own, store_sqlite_open_writer(own->path, &own->w, &own->e));
    OK(own, store_sqlite_renew(own->w, &own->e));
    store_set_tier(own->w, true);
    OK(own, store_sqlite_open_reader(own->path, &own->r, &own->e));
    memory_tier_attach(&tier, own->r);
    FAILS(own, PROFD_BUSY, store_put_segments(own->w, s->list, s->n, r, &own->e));
    OK(own, store_block_begin(own->w, NOW, &b, &found, &own->e));
    cr_assert_not(found, "nothing is sealed before");
    const struct store_mirror m = {.block = other.block, .name = ""};
    OK(own, store_mirror_list(own->w, &m, 1, &more, &own->e));
    OK(own, store_each_mirror(own->r, take_row, &b, &own->e));
    OK(own, store_mirror_begin(own->w, b.row, &own->e));
    OK(own, store_mirror_put(own->w, b.row, other.sums, other.n, &own->e));
    FAILS(own, PROFD_PROTOCOL, store_mirror_adopt(own->w, b.row, other.n, (const uint8_t *)"x", 1, &own->e));
    OK(own, store_mirror_adopt(own->w, b.row, other.n, (const uint8_t *)keys.data, keys.size, &own->e));
    OK(own, store_mirror_end(own->w, &other.block, 1, &own->e));
    cr_assert_str_eq(centres(own), "");
    struct seen now = look_window(own, 0, 0);
    same(&six, &now);
    expect_clean(own);
    admit(own, s, "a.example", 0, 24);
    for (int round = 0; round < 2; round++) {
        for (size_t k = 0; k < s->n; k++) {
            const struct store_receipt got = deliver(own, &s->list[k]);
            cr_assert(got.outcome == STORE_SEGMENT_COUNTED && got.again == (round == 1 || k < 3));
        }
        now = look_window(own, 0, 0);
        same(&all, &now);
        expect_clean(own);
        (void)centre_of(own);
    }
    compact_all(own, HOUR, UINT64_MAX, NOW);
    OK(own, store_block_begin(own->w, NOW + 3 * DAY, &b, &found, &own->e));
    cr_assert(found && b.number > other.block.number, "numbers go on");
    struct store_tier_totals t;
    OK(own, store_get_tier_totals(own->r, NOW, &t, &own->e));
    cr_assert_eq(t.days_sealed, 1);
    clean(own);
    expect_clean(own);
    retire_all(own, DAY, 0, NOW + 40 * DAY);
    clean(own);
    cr_assert_eq(look_window(own, 0, 0).uploads, 0, "keep-age removes what was adopted");
    OK(own, store_each_block(own->r, take_gone, &b, &own->e));
    cr_assert(b.number == other.block.number && b.state == STORE_BLOCK_GONE, "the tier may drop it");
    OK(own, store_block_forget(own->w, b.number, &own->e));
    cr_assert_eq(fixture_count(own, "SELECT count(*) FROM block WHERE state=4 AND tier_number<>0"), 0);
    expect_clean(own);
    buffer_done(&keys);
    memory_tier_done(&tier);
    arena_free(other.arena);
    close_sender(s);
}
