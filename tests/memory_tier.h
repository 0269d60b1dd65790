/* A tier in memory, and sealing in random steps: days of a store move to it, and are read back from it. */
#ifndef PROFD_TESTS_MEMORY_TIER_H
#define PROFD_TESTS_MEMORY_TIER_H

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "store/store.h"

#define MEMORY_TIER_ID (UINT64_C(1) << 62) /* in the ids of sums that come from blocks */

struct memory_sum {
    struct store_stub stub;
    struct store_bulk bulk; /* all of it allocated */
};

struct memory_tier {
    struct store_archive archive;
    struct memory_sum *sums; /* of all attempts, in the order of writing */
    size_t count, fetched;   /* fetched: how many were given, ever */
    enum { MEMORY_TIER_IDLE, MEMORY_TIER_READING, MEMORY_TIER_READ, MEMORY_TIER_RELEASING } step;
    struct store_block block;
    struct store_block_cursor cursor;
    uint64_t uploads; /* of the hours of this attempt, less those of its days: 0 when all are there */
};

static inline void *memory_tier_copy(const void *bytes, size_t n)
{
    void *copy = malloc(n + 1);
    cr_assert_not_null(copy);
    memcpy(copy, n > 0 ? bytes : "", n);
    return copy;
}

/* For store_block_read. */
static inline enum profd_status memory_tier_keep(void *context, const struct store_block_sum *sum,
                                                 struct profd_error *e)
{
    struct memory_tier *t = context;
    (void)e;
    t->sums = realloc(t->sums, (t->count + 1) * sizeof *t->sums);
    cr_assert_not_null(t->sums);
    struct memory_sum *k = &t->sums[t->count++];
    *k = (struct memory_sum){.stub = sum->stub, .bulk = sum->bulk};
    k->bulk.totals = memory_tier_copy(sum->bulk.totals, sum->bulk.totals_size);
    k->bulk.counts = memory_tier_copy(sum->bulk.counts, sum->bulk.counts_size);
    k->bulk.spread = memory_tier_copy(sum->bulk.spread, sum->bulk.spread_size);
    const char **hosts = memory_tier_copy(sum->bulk.hosts, sum->bulk.host_count * sizeof *hosts);
    for (size_t i = 0; i < sum->bulk.host_count; i++) {
        hosts[i] = strdup(sum->bulk.hosts[i]);
    }
    k->bulk.hosts = hosts;
    t->uploads += sum->stub.level == 0 ? sum->uploads : -sum->uploads;
    cr_assert((sum->shares_size > 0) == (sum->stub.level == 0) && sum->groups_size > 0 && sum->tenant[0] != '\0');
    return PROFD_OK;
}

static inline enum profd_status memory_tier_fetch(
    void *context, const struct store_stub *stubs, size_t n, enum store_archive_part part,
    enum profd_status (*each)(void *each_context, size_t stub, const struct store_bulk *bulk, struct profd_error *e),
    void *each_context, struct profd_error *e)
{
    struct memory_tier *t = context;
    enum profd_status status = PROFD_OK;
    for (size_t i = n; i > 0 && status == PROFD_OK; i--) {
        const struct store_stub *stub = &stubs[i - 1];
        const struct memory_sum *found = NULL;
        for (const struct memory_sum *k = t->sums; k < t->sums + t->count; k++) {
            if (k->stub.block.number == stub->block.number && k->stub.block.attempt == stub->block.attempt &&
                memcmp(k->stub.series, stub->series, sizeof stub->series) == 0 && k->stub.level == stub->level &&
                k->stub.at == stub->at) {
                cr_assert(!found, "a block has a sum twice");
                found = k;
            }
        }
        cr_assert(found && (part == STORE_ARCHIVE_TOTALS || found->stub.bytes == stub->bytes), "a sum is in no block");
        struct store_bulk bulk = found->bulk;
        if (part == STORE_ARCHIVE_TOTALS) {
            bulk = (struct store_bulk){.totals = bulk.totals, .totals_size = bulk.totals_size};
        } else {
            bulk.totals = NULL;
            bulk.totals_size = 0;
        }
        bulk.spread = part == STORE_ARCHIVE_SPREAD ? bulk.spread : NULL;
        bulk.spread_size = part == STORE_ARCHIVE_SPREAD ? bulk.spread_size : 0;
        status = each(each_context, i - 1, &bulk, e);
        t->fetched++;
    }
    return status;
}

static inline void memory_tier_init(struct memory_tier *t)
{
    *t = (struct memory_tier){.archive = {.fetch = memory_tier_fetch}};
}

/* For every handle. t stays where it is. */
static inline void memory_tier_attach(struct memory_tier *t, struct store *s)
{
    t->archive.context = t;
    store_set_archive(s, &t->archive);
}

static inline void memory_tier_done(struct memory_tier *t)
{
    for (size_t i = 0; i < t->count; i++) {
        struct store_bulk *b = &t->sums[i].bulk;
        free((void *)(uintptr_t)b->totals);
        free((void *)(uintptr_t)b->counts);
        free((void *)(uintptr_t)b->spread);
        for (size_t k = 0; k < b->host_count; k++) {
            free((void *)(uintptr_t)b->hosts[k]);
        }
        free((void *)(uintptr_t)b->hosts);
    }
    free(t->sums);
}

/* One verb, of which reading gives about that many bytes. The process may end before each step: step is IDLE then. The
 * block counts as written at `now`. False if there was nothing to do. */
static inline bool memory_tier_step(struct memory_tier *t, struct store *s, int64_t before, int64_t now, size_t bytes)
{
    struct store_progress p = {.more = false};
    struct profd_error e = {""};
    enum profd_status status = PROFD_OK;
    bool found = true;
    switch (t->step) {
    case MEMORY_TIER_IDLE:
        status = store_block_begin(s, before, &t->block, &found, &e);
        t->cursor = (struct store_block_cursor){.done = false};
        t->uploads = 0;
        t->step = !found                               ? MEMORY_TIER_IDLE
                  : t->block.state == STORE_BLOCK_OPEN ? MEMORY_TIER_READING
                                                       : MEMORY_TIER_RELEASING;
        break;
    case MEMORY_TIER_READING:
        status = store_block_read(s, &t->block, &t->cursor, bytes, memory_tier_keep, t, &e);
        t->step = t->cursor.done ? MEMORY_TIER_READ : MEMORY_TIER_READING;
        break;
    case MEMORY_TIER_READ:
        cr_assert_eq(t->uploads, 0, "days of a block differ from their hours");
        status = store_block_written(s, &t->block, now, &e);
        t->step = MEMORY_TIER_RELEASING;
        break;
    case MEMORY_TIER_RELEASING:
        status = store_block_release(s, &p, &e);
        t->step = p.more ? MEMORY_TIER_RELEASING : MEMORY_TIER_IDLE;
        break;
    }
    cr_assert(status == PROFD_OK || status == PROFD_CONFLICT, "%s", e.sentence);
    t->step = status == PROFD_OK ? t->step : MEMORY_TIER_IDLE; /* something of the day was removed */
    return found;
}

static inline void memory_tier_seal(struct memory_tier *t, struct store *s, int64_t before, int64_t now)
{
    while (memory_tier_step(t, s, before, now, SIZE_MAX)) {
    }
}

#endif
