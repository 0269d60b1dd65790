/* The arena: zeroed and aligned memory, exact limits, no overflow of sizes, and NO_MEMORY told from TOO_LARGE. */
#include <criterion/criterion.h>
#include <stdint.h>
#include <string.h>

#include "core/arena.h"
#include "proto/status.h"

Test(arena, gives_zeroed_aligned_memory_again_after_reset)
{
    struct arena *a = arena_new(0);
    for (int round = 0; round < 3; round++) {
        for (size_t size = 0; size < 5000; size += 37) {
            unsigned char *p = arena_take(a, size);
            cr_assert_not_null(p);
            cr_assert_eq((uintptr_t)p % (size >= 64 ? 64 : 16), 0, "size %zu", size);
            for (size_t i = 0; i < size; i++) {
                cr_assert_eq(p[i], 0, "round %d size %zu byte %zu", round, size, i);
            }
            memset(p, 0xff, size);
        }
        unsigned char *big = arena_take(a, 3 << 20);
        cr_assert_eq(big[0] | big[(3 << 20) - 1], 0);
        memset(big, 0xee, 3 << 20);
        cr_assert_gt(arena_used(a), 3u << 20);
        arena_reset(a);
        cr_assert_eq(arena_used(a), 0);
    }
    arena_free(a);
    arena_free(NULL);
}

Test(arena, pieces_do_not_overlap)
{
    struct arena *a = arena_new(0);
    static unsigned char *pieces[3000];
    for (size_t i = 0; i < 3000; i++) {
        size_t n = i * 7919 % 9000 + 1;
        pieces[i] = arena_take(a, n);
        memset(pieces[i], (int)(i & 255), n);
    }
    for (size_t i = 0; i < 3000; i++) {
        size_t n = i * 7919 % 9000 + 1;
        for (size_t j = 0; j < n; j++) {
            cr_assert_eq(pieces[i][j], (unsigned char)(i & 255));
        }
    }
    arena_free(a);
}

Test(arena, refuses_beyond_its_limit_and_on_overflow)
{
    struct arena *a = arena_new(200000);
    cr_assert_null(arena_take(a, 200000));
    cr_assert_null(arena_take(a, SIZE_MAX));
    cr_assert_null(arena_take(a, SIZE_MAX - 8));
    cr_assert_null(arena_take_array(a, SIZE_MAX / 4, 8));
    cr_assert_null(arena_copy(a, "x", SIZE_MAX));
    size_t total = 0;
    while (arena_take(a, 1000) != NULL) {
        total += 1000;
    }
    cr_assert_gt(total, 150000);
    cr_assert_lt(total, 200000);
    arena_reset(a);
    size_t again = 0;
    while (arena_take(a, 1000) != NULL) {
        again += 1000;
    }
    cr_assert_eq(total, again, "the kept blocks serve again");
    arena_free(a);
}

Test(arena, tells_its_limit_from_the_machines)
{
    struct arena *a = arena_new(1 << 20);
    cr_assert_not_null(arena_take(a, 1000));
    cr_assert_not(arena_hit_limit(a));
    cr_assert_null(arena_take(a, 2 << 20));
    cr_assert(arena_hit_limit(a));
    arena_reset(a);
    cr_assert_not(arena_hit_limit(a));
    arena_free(a);
}

Test(arena, children_count_for_the_limit_and_go_with_their_parent)
{
    struct arena *a = arena_new(1 << 20), *child = arena_new_child(a, 0), *below = arena_new_child(child, 0);
    cr_assert_not_null(arena_take(child, 600000));
    cr_assert_null(arena_take(a, 600000), "the child holds more than half");
    cr_assert_null(arena_take(below, 600000));
    cr_assert(arena_hit_limit(below) && arena_hit_limit(child) && arena_hit_limit(a));
    arena_reset(child);
    cr_assert_not_null(arena_take(child, 600000), "it keeps its blocks");
    arena_free(child);
    cr_assert_not_null(arena_take(a, 600000), "what a child held is given back");
    cr_assert_not_null(arena_take(arena_new_child(a, 0), 100000));
    arena_reset(a);
    cr_assert_not_null(arena_take(arena_new_child(a, 0), 200000), "children go when their parent is reset");
    arena_free(a);
}

Test(arena, kept_blocks_serve_the_next_arena_until_they_are_trimmed)
{
    arena_keep_blocks(8 << 20);
    struct arena *a = arena_new(0);
    unsigned char *p = arena_take(a, 3 << 20), *q;
    memset(p, 0xff, 3 << 20);
    arena_free(a);
    for (int trims = 0; trims < 2; trims++) {
        arena_trim();
        a = arena_new(4 << 20);
        q = arena_take(a, 3 << 20);
        cr_assert_eq(q, p, "a block that was used since the last trim is kept");
        cr_assert_eq(q[0] | q[(3 << 20) - 1], 0);
        memset(q, 0xff, 3 << 20);
        arena_free(a);
    }
    a = arena_new(2 << 20);
    cr_assert_null(arena_take(a, 2 << 20), "a kept block does not widen a limit");
    arena_free(a);
    arena_trim();
    arena_trim();
    arena_keep_blocks(0);
    a = arena_new(0);
    q = arena_take(a, 3 << 20);
    cr_assert_eq(q[0] | q[(3 << 20) - 1], 0);
    arena_free(a);
}

struct job {
    struct arena *arena, *child;
    int step, undone;
    bool inner_refused;
};

static void undo(void *what)
{
    ((struct job *)what)->undone++;
}

static bool call_back(struct job *j)
{
    ARENA_BOUNDARY(j->child, false);
    struct arena_deferred d;
    arena_defer(j->child, &d, undo, j);
    j->step = 3;
    arena_take(j->child, 1000);
    arena_undefer(j->child, &d);
    return true;
}

static enum profd_status run_job(struct job *j)
{
    ARENA_BOUNDARY(j->arena, PROFD_NO_MEMORY);
    struct arena_deferred d;
    arena_defer(j->arena, &d, undo, j);
    j->step = 1;
    arena_take(j->arena, 1000);
    j->step = 2;
    j->child = arena_new_child(j->arena, 1 << 20);
    j->inner_refused = !call_back(j);
    arena_continue(j->arena);
    j->step = 4;
    arena_format(j->child, "%d", 7);
    j->step = 5;
    arena_undefer(j->arena, &d);
    return PROFD_OK;
}

Test(arena, a_refusal_ends_the_job_at_its_boundary)
{
    static const int STEPS[] = {0, 1, 2, 3, 4, 5}, UNDONE[] = {0, 1, 1, 2, 2, 2};
    for (uint64_t n = 1; n <= 5; n++) {
        struct job j = {.arena = arena_new(0)};
        arena_refuse(n);
        const enum profd_status status = run_job(&j);
        cr_assert_eq(status, n < 5 ? PROFD_NO_MEMORY : PROFD_OK, "%d", (int)n);
        cr_assert_eq(arena_refuse(0), n < 5 ? 0 : 1);
        cr_assert_eq(j.step, STEPS[n], "%d: step %d", (int)n, j.step);
        cr_assert_eq(j.undone, UNDONE[n], "%d: %d undone", (int)n, j.undone);
        cr_assert_eq(j.inner_refused, n == 3);
        cr_assert(!arena_hit_limit(j.arena));
        arena_refuse(1);
        cr_assert_null(arena_take(j.arena, 1), "the boundary is left");
        arena_free(j.arena);
    }
}

Test(arena, a_child_with_a_limit_of_its_own_does_not_use_up_the_parents)
{
    struct arena *a = arena_new(1 << 20), *child = arena_new_child(a, 4 << 20);
    cr_assert_not_null(arena_take(child, 3 << 20));
    cr_assert_not_null(arena_take(a, 900000));
    cr_assert_null(arena_take(child, 2 << 20));
    cr_assert(arena_hit_limit(child) && arena_hit_limit(a), "the job was refused memory by a limit");
    arena_free(a);
}

Test(arena, copies_and_formats_text)
{
    struct arena *a = arena_new(0);
    cr_assert_str_eq(arena_copy(a, "hello world", 5), "hello");
    cr_assert_str_eq(arena_copy(a, NULL, 0), "");
    cr_assert_str_eq(arena_format(a, "%s is %d", "seven", 7), "seven is 7");
    cr_assert_eq(strlen(arena_format(a, "%0200000d", 1)), 200000);
    arena_free(a);
}
