/* Stacks are stored, added up, sent and removed with the ticks that they are of. */
#include <string.h>

#include "core/hashmap.h"
#include "core/rollup.h"
#include "tests/contract/store/arrival_fixture.h"

static struct seen look_all(struct fixture *f)
{
    return look(f, everybody, &(struct store_filter){PROGRAM});
}

static void put_many(struct fixture *f, unsigned n)
{
    struct made m;
    for (unsigned i = 0; i < n; i++) {
        make_counted(&m, 1 + i % 2, 1 + i % 5, 1 + i / 5, MIDNIGHT + (int64_t)(i % 30) * HOUR + i, 5 + i);
        cr_assert_eq(put_counted(f, &m), STORE_STORED);
    }
}

STORE_TEST(stacks_of_single_uploads_and_of_sums_are_the_same)
{
    put_many(f, 60);
    const struct seen raw = look_all(f);
    cr_assert(raw.ticks > 60 && raw.stacks == raw.ticks);
    for (unsigned level = 0; level < 3; level++) {
        compact_all(f, HOUR, UINT64_MAX, MIDNIGHT + (level + 2) * DAY + 2 * HOUR);
        const struct seen sums = look_all(f);
        cr_assert(sums.ticks == raw.ticks && sums.stacks == raw.stacks);
        cr_assert_eq(sums.rolled, sums.rows);
        fixture_reopen(f);
        expect_clean(f);
    }
}

STORE_TEST(stacks_of_harvests_add_up)
{
    for (unsigned i = 0; i < 40; i++) {
        harvest_one(f, 1, 1 + i % 2, i / 2, START + i * MINUTE, 3 + i % 4);
    }
    const struct seen live = look_all(f);
    cr_assert(live.ticks > 40 && live.stacks == live.ticks);
    compact_all(f, HOUR, UINT64_MAX, START + 3 * DAY);
    cr_assert_eq(look_all(f).stacks, live.stacks);
    expect_clean(f);
}

STORE_TEST(stacks_go_with_what_is_deleted)
{
    uint64_t gone;
    const struct store_scope first = only(1);
    put_many(f, 60);
    compact_all(f, HOUR, UINT64_MAX, MIDNIGHT + 3 * DAY);
    const struct seen others = look(f, only(2), &(struct store_filter){PROGRAM});
    OK(f, store_delete_build(f->w, &first, full_id("aa01"), &gone, &f->e));
    const struct seen left = look_all(f);
    cr_assert_gt(gone, 0);
    cr_assert(left.stacks == others.stacks && left.stacks == left.ticks && left.stacks > 0);
    expect_clean(f);
}

STORE_TEST(stacks_arrive_at_the_centre)
{
    struct sender *s = eight_hours(7);
    const struct seen sent = look_all(&s->store);
    cr_assert(sent.stacks == sent.ticks && sent.stacks > 0);
    admit(f, s, "a.example", 0, 24);
    for (size_t i = 0; i < s->n; i++) {
        cr_assert_not(deliver(f, &s->list[i]).unknown);
        cr_assert(deliver(f, &s->list[i]).again);
    }
    cr_assert_eq(look_all(f).stacks, sent.stacks);
    compact_all(f, HOUR, UINT64_MAX, NOON + 4 * DAY);
    const struct seen sums = look_all(f);
    cr_assert(sums.stacks == sent.stacks && sums.ticks == sent.ticks);
    centre_of(f);
    close_sender(s);
}

/* Each sum with stacks comes with their spread, the same each time. */
static enum profd_status compare_spreads(void *context, const struct store_row *row, struct profd_error *e)
{
    struct hashmap *all = context;
    struct arena *a = arena_new(0);
    struct counts r;
    struct counts_shares spread;
    if (!row->rolled) {
        arena_free(a);
        return PROFD_OK;
    }
    cr_assert_eq(rollup_decode(a, row->counts, row->counts_size, (uint32_t)row->build_count, false, &r, e), PROFD_OK);
    cr_assert(row->spread || r.tree_count == 0);
    if (r.tree_count > 0) {
        cr_assert_eq(rollup_decode_spread(a, &r, row->spread, row->spread_size, &spread, e), PROFD_OK);
        const size_t size = (size_t)r.node_count * COUNTS_GROUPS * sizeof *spread.nodes;
        const uint64_t *known = hashmap_find(all, &row->id, sizeof row->id);
        if (known) {
            cr_assert_eq(memcmp(known, spread.nodes, size), 0);
        } else {
            cr_assert(hashmap_put(all, &row->id, sizeof row->id, spread.nodes, size) != NULL);
        }
    }
    arena_free(a);
    return PROFD_OK;
}

static void compare_stack_spreads(struct fixture *f, const struct sender *s)
{
    struct hashmap all;
    hashmap_init(&all, 0);
    const struct store_filter filter = {.build_id = s->list[0].segment->builds[0].build_id, .spread = true};
    for (unsigned again = 0; again < 2; again++) {
        OK(f, store_each_upload(f->r, &(struct store_scope){.all = true}, &filter, compare_spreads, &all, &f->e));
    }
    cr_assert_gt(all.count, 0);
    hashmap_clear(&all);
}

STORE_TEST(stacks_have_their_spread)
{
    struct sender *s = eight_hours(7);
    admit(f, s, "a.example", 0, 24);
    for (size_t i = 0; i < s->n; i++) {
        cr_assert_not(deliver(f, &s->list[i]).unknown);
    }
    compare_stack_spreads(f, s);
    compact_all(f, HOUR, UINT64_MAX, NOON + 4 * DAY);
    compare_stack_spreads(f, s);
    centre_of(f);
    close_sender(s);
}
