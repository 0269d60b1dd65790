/* Makes uploads with real counts, and adds up what a store returns, for the contracts of upkeep. */
#include "store/store.h"
#include "tests/contract/store/upkeep_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/rollup.h"

/* One stack for each of the two bins: the second below two callers, of which one is in the library. */
static void fill_stacks(struct counts *c, uint64_t n)
{
    static const uint8_t depths[] = {0, 1, 2, 1};
    c->trees[0] = (struct counts_tree){.rate = 100, .dimension = "seconds", .abbreviation = 's', .used = 4};
    for (uint32_t i = 0; i < 4; i++) {
        c->node_depth[i] = depths[i];
        c->node_kind[i] = i < 2 ? COUNTS_NODE_RETURN : COUNTS_NODE_PC;
    }
    c->node_address[0] = 0x1100;
    c->node_build[1] = 0;
    c->node_address[1] = 0x1200;
    c->node_build[2] = 1;
    c->node_address[2] = 0x9000 + n % 7;
    c->node_ticks[2] = n;
    c->node_build[3] = 1;
    c->node_address[3] = 0x9100;
    c->node_ticks[3] = 1;
}

void make_counted(struct made *m, uint32_t uid, unsigned sender, uint32_t sequence, int64_t end, uint64_t n)
{
    struct counts c;
    struct profd_error e;
    uint8_t *bytes;
    make_upload(m, uid, sender, sequence);
    m->u.end = end;
    m->u.start = end - 1000;
    m->u.received = end;
    m->u.group = sender % 16;
    const struct counts_sizes sizes = {.histograms = 1, .bins = 2, .arcs = 2, .trees = 1, .nodes = 4};
    cr_assert_eq(counts_init_sizes(&c, &sizes, &e), PROFD_OK);
    fill_stacks(&c, n);
    c.histograms[0] = (struct counts_histogram){.build = 0,
                                                .bins = 100,
                                                .low = 0x1000,
                                                .high = 0x2000,
                                                .rate = 100,
                                                .dimension = "seconds",
                                                .abbreviation = 's',
                                                .used = 2};
    c.bin_index[0] = 3;
    c.bin_index[1] = 4 + (uint32_t)(n % 90);
    c.bin_ticks[0] = 1;
    c.bin_ticks[1] = n;
    c.from_build[0] = 0;
    c.from[0] = 0x1100;
    c.to_build[0] = 1;
    c.to[0] = 0x9000 + n % 7;
    c.calls[0] = n;
    c.from_build[1] = COUNTS_NOWHERE;
    c.from[1] = 0x7fff;
    c.to_build[1] = 0;
    c.to[1] = 0x1000;
    c.calls[1] = 2;
    cr_assert_eq(counts_encode(&c, &bytes, &m->u.counts_size, &e), PROFD_OK);
    m->u.counts = bytes;
    counts_done(&c);
    m->u.ticks = n + 1;
    m->u.calls = n + 2;
    m->u.stack_ticks = n + 1;
    m->builds[0].nanoseconds = (n + 1) * 10000000;
    m->builds[0].calls = 2;
    m->builds[1].nanoseconds = 0;
    m->builds[1].calls = n;
}

enum store_outcome put_counted(struct fixture *f, struct made *m)
{
    enum store_outcome outcome = put(f, m);
    free((void *)(uintptr_t)m->u.counts);
    m->u.counts = NULL;
    return outcome;
}

static uint64_t add_up(const uint64_t *numbers, uint32_t n)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < n; i++) {
        sum += numbers[i];
    }
    return sum;
}

static void look_at_upload(struct seen *seen, const struct store_row *row)
{
    struct counts c;
    struct profd_error e;
    uint64_t ticks, calls;
    cr_assert_eq(counts_decode(row->counts, row->counts_size, (uint32_t)row->build_count, &c, &e), PROFD_OK, "%s",
                 e.sentence);
    counts_totals(&c, &ticks, &calls);
    seen->ticks += ticks;
    seen->calls += calls;
    seen->arcs += c.arc_count;
    seen->stacks += add_up(c.node_ticks, c.node_count);
    counts_done(&c);
    cr_assert_not_null(row->host);
    seen->hosts++;
    cr_assert_geq(row->uploads, 1);
}

static void look_at_sum(struct seen *seen, const struct store_row *row)
{
    struct arena *a = arena_new(0);
    struct counts r;
    struct profd_error e;
    uint64_t ticks, calls;
    cr_assert_eq(rollup_decode(a, row->counts, row->counts_size, (uint32_t)row->build_count, false, &r, &e), PROFD_OK,
                 "%s", e.sentence);
    counts_totals(&r, &ticks, &calls);
    seen->ticks += ticks;
    seen->calls += calls;
    seen->arcs += r.arc_count;
    seen->stacks += add_up(r.node_ticks, r.node_count);
    seen->rolled++;
    seen->hosts += row->host_count;
    cr_assert_gt(row->version, 0);
    cr_assert_null(row->host);
    for (size_t i = 0; i < row->host_count; i++) {
        cr_assert_geq(strlen(row->hosts[i]), 1);
    }
    arena_free(a);
}

static enum profd_status look_at_row(void *context, const struct store_row *row, struct profd_error *e)
{
    (void)e;
    struct seen *seen = context;
    if (row->uploads == 0) { /* a series of which the first row is in a block */
        return PROFD_OK;
    }
    seen->rows++;
    seen->uploads += row->uploads;
    seen->processes += row->processes_started;
    seen->inexact |= row->inexact;
    seen->commits += row->commit;
    random_groups_add(&seen->groups, &row->groups);
    cr_assert_eq(random_groups_known(&row->groups), row->processes_started, "each process is in a group");
    cr_assert_eq(row->groups.unknown, 0);
    if (seen->rows == 1 || row->start < seen->first) {
        seen->first = row->start;
    }
    if (seen->rows == 1 || row->end > seen->last) {
        seen->last = row->end;
    }
    if (row->rolled) {
        look_at_sum(seen, row);
    } else {
        look_at_upload(seen, row);
    }
    return PROFD_OK;
}

struct seen look(struct fixture *f, struct store_scope scope, const struct store_filter *filter)
{
    struct seen seen = {.rows = 0};
    OK(f, store_each_upload(f->r, &scope, filter, look_at_row, &seen, &f->e));
    return seen;
}

struct seen look_window(struct fixture *f, int64_t since, int64_t until)
{
    return look(f, everybody, &(struct store_filter){.build_id = full_id("aa01"), .since = since, .until = until});
}

uint64_t compact_all(struct fixture *f, int64_t raw_age, uint64_t raw_bytes, int64_t now)
{
    struct store_policy policy = {.raw_age = raw_age, .raw_bytes = raw_bytes};
    struct store_progress p = {.more = true};
    uint64_t uploads = 0;
    for (int calls = 0; p.more; calls++) {
        OK(f, store_compact(f->w, &policy, now, &p, &f->e));
        uploads += p.uploads;
        cr_assert_lt(calls, 10000, "compaction does not end");
    }
    return uploads;
}

uint64_t retire_all(struct fixture *f, int64_t keep_age, uint64_t keep_bytes, int64_t now)
{
    struct store_policy policy = {
        .raw_age = INT64_MAX / 4, .raw_bytes = UINT64_MAX, .keep_age = keep_age, .keep_bytes = keep_bytes};
    struct store_progress p = {.more = true};
    uint64_t uploads = 0;
    for (int calls = 0; p.more; calls++) {
        OK(f, store_retire(f->w, &policy, now, &p, &f->e));
        uploads += p.uploads;
        cr_assert_lt(calls, 10000, "retirement does not end");
    }
    return uploads;
}

static void note_sentence(void *context, const char *sentence)
{
    char *all = context;
    size_t n = strlen(all);
    snprintf(all + n, 8192 - n, "%s\n", sentence);
}

const char *verify_all(struct fixture *f)
{
    static char all[8192];
    struct store_cursor cursor = {.done = false};
    uint64_t checked;
    all[0] = 0;
    for (int calls = 0; !cursor.done; calls++) {
        OK(f, store_verify(f->r, &cursor, note_sentence, all, &checked, &f->e));
        cr_assert_lt(calls, 10000, "verification does not end");
    }
    return all;
}

void expect_clean(struct fixture *f)
{
    const char *all = verify_all(f);
    cr_assert_str_eq(all, "", "%s", all);
}
