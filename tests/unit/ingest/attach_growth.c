/* Processes that grow at random, harvested at random moments by daemons that die at random moments: what was committed
 * adds up to what was counted, each call and each tick once. The process counts while it is read, as processes do. */
#include <criterion/criterion.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "proto/limits.h"
#include "tests/rounds.h"
#include "tests/unit/ingest/attach_bed.h"
#include "tests/unit/ingest/bed.h"

TestSuite(ingest_attach_growth, .init = attach_bed_open, .fini = attach_bed_close);

static uint64_t draw(uint64_t *state, uint64_t n)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state % n;
}

#define TABLES 40
#define PLACES 64 /* callers, callees: few, so that tables have the same ones */

struct growth {
    struct live live;
    struct attach_chunk *tables[TABLES];
    unsigned table_count;
    uint64_t seed, arcs[PLACES][PLACES], ticks[PLACES], outside, cpu;
};

/* One step of a process: a table more, a module more, a slot taken, or counts. */
static void grow(struct growth *g)
{
    uint64_t what = draw(&g->seed, 100);
    if ((what == 0 && g->table_count < TABLES) || g->table_count == 0) {
        static const uint32_t kinds[] = {ATTACH_KIND_ARCS, ATTACH_KIND_ARCS, ATTACH_KIND_SAMPLES};
        g->tables[g->table_count++] =
            live_table(&g->live, kinds[draw(&g->seed, 3)], 16 + (uint32_t)draw(&g->seed, 300));
        return;
    }
    struct attach_chunk *t = g->tables[draw(&g->seed, g->table_count)];
    uint32_t slot = (uint32_t)draw(&g->seed, t->primary + t->hash);
    struct attach_identity *id = live_identity(t, slot);
    uint64_t n = 1 + (what == 1 ? draw(&g->seed, UINT64_C(1) << 20) : draw(&g->seed, 3));
    if (id->self_module == 0) {
        *id = (struct attach_identity){(uint32_t)draw(&g->seed, PLACES), (uint32_t)draw(&g->seed, PLACES), 1,
                                       (uint16_t)(what == 2 ? ATTACH_MODULE_NONE : 2)};
    }
    live_slot(t, slot)->count += n;
    if (t->kind == ATTACH_KIND_ARCS) {
        g->arcs[id->from][id->self_module == 2 ? id->self : 0] += id->self_module == 2 ? n : 0;
    } else if (id->self_module == 2) {
        g->ticks[id->self] += n;
    } else {
        g->outside += n;
    }
    g->live.h->counters[ATTACH_COUNTER_TICKS] += t->kind == ATTACH_KIND_SAMPLES ? n : 0;
    g->live.h->counters[ATTACH_COUNTER_CPU_NS] = ++g->cpu * 1000;
    g->live.h->counters[ATTACH_COUNTER_ENDED] = 1; /* so that the collector states the CPU time */
}

static void compare(const struct growth *g, const struct ledger *l, uint64_t seed)
{
    for (unsigned i = 0; i < PLACES; i++) {
        cr_assert_eq(ledger_ticks(l, "bb", i), g->ticks[i], "seed %llu: ticks at %u", (unsigned long long)seed, i);
        for (unsigned k = 0; k < PLACES; k++) {
            cr_assert_eq(ledger_arc(l, "aa", 0x400000 + i, "bb", k), g->arcs[i][k], "seed %llu: arc %u to %u",
                         (unsigned long long)seed, i, k);
        }
    }
    uint64_t ticks = g->live.h->counters[ATTACH_COUNTER_TICKS];
    cr_assert_eq(l->counters[COLLECTOR_SAMPLED_NS], (uint64_t)((__uint128_t)ticks * 1000000000u / g->live.h->rate),
                 "seed %llu", (unsigned long long)seed);
    cr_assert_eq(l->counters[COLLECTOR_OUTSIDE_NS],
                 (uint64_t)((__uint128_t)g->outside * 1000000000u / g->live.h->rate));
    cr_assert_eq(l->counters[COLLECTOR_CPU_NS], g->cpu * 1000);
    cr_assert(l->processes == 1 && l->counters[COLLECTOR_PROCESSES] == 1 && l->ended && l->inexact == 0);
}

/* One harvest as daemons have them: it may die before the commit, after it, or never. */
static void harvest(struct growth *g, struct ledger *l, struct attach_process **p, int64_t now, enum attach_end end)
{
    struct attach_harvest h;
    uint64_t fate = end == ATTACH_ENDED ? 3 : draw(&g->seed, 4);
    cr_assert_eq(attach_harvest(*p, checker, 0, now, end, &h, &sentence), PROFD_OK, "%s", sentence.sentence);
    if (h.any && fate > 0) {
        cr_assert(ledger_put(l, &h.put));
    }
    if (h.any && fate > 1) {
        attach_settle(*p, &h);
    }
    attach_harvest_done(&h);
    if (fate <= 1 || draw(&g->seed, 8) == 0) { /* it died; another one attaches */
        attach_close(*p);
        *p = live_attach(&g->live, l);
    }
}

Test(ingest_attach_growth, random_harvests_add_up_to_the_truth)
{
    struct growth *g = calloc(1, sizeof *g);
    for (uint64_t seed = 1; seed <= rounds(16); seed++) {
        struct ledger l = {0};
        memset(g, 0, sizeof *g);
        g->seed = seed * UINT64_C(0x9e3779b97f4a7c15);
        live_open(&g->live, 16u << 20, (unsigned)seed);
        g->live.h->rate = 1 + (uint32_t)draw(&g->seed, 2000);
        live_seal(&g->live);
        struct attach_process *p = live_attach(&g->live, NULL);
        live_usual(&g->live);
        if (seed % 3 ==
            0) { /* taken and never published: more than is read at once, so that tables come one at a time */
            live_chunk(&g->live, LIMIT_ATTACH_WHOLE);
        }
        const uint64_t harvests = 1 + draw(&g->seed, 40);
        for (uint64_t i = 0; i < harvests; i++) {
            for (uint64_t n = draw(&g->seed, 300); n > 0; n--) {
                grow(g);
            }
            harvest(g, &l, &p, START + (int64_t)i, ATTACH_LIVES);
        }
        harvest(g, &l, &p, START + (int64_t)harvests, ATTACH_ENDED);
        compare(g, &l, seed);
        attach_close(p);
        ledger_done(&l);
        live_close(&g->live);
    }
    free(g);
}

/* Three threads count, each in tables of its own that it grows, while the daemon reads. */
struct counter {
    struct live *live;
    pthread_mutex_t *lock; /* of making tables */
    atomic_bool *stop;
    uint64_t seed, counted[PLACES];
};

static void *count(void *context)
{
    struct counter *c = context;
    struct attach_chunk *t = NULL;
    uint32_t used = 0;
    do {
        if (!t || used == t->primary + t->hash) {
            pthread_mutex_lock(c->lock);
            t = c->live->size - c->live->h->used > (256u << 10) ? live_table(c->live, ATTACH_KIND_ARCS, PLACES) : t;
            pthread_mutex_unlock(c->lock);
            used = 0;
        }
        uint32_t place = (uint32_t)draw(&c->seed, used < PLACES ? used + 1 : PLACES);
        struct attach_slot *slot = live_slot(t, place);
        struct attach_identity *id = live_identity(t, place);
        if (id->self_module == 0) {
            *id = (struct attach_identity){place, place, 1, 0};
            __atomic_store_n(&id->self_module, 2, __ATOMIC_RELEASE);
            used++;
        }
        __atomic_store_n(&slot->count, slot->count + 1, __ATOMIC_RELAXED);
        c->counted[place]++;
    } while (!atomic_load_explicit(c->stop, memory_order_relaxed));
    return NULL;
}

Test(ingest_attach_growth, reading_while_threads_count)
{
    struct live live;
    struct ledger l = {0};
    pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    atomic_bool stop = false;
    pthread_t threads[3];
    static struct counter counters[3];
    live_open(&live, 8u << 20, 9);
    live_usual(&live);
    live_seal(&live);
    for (unsigned i = 0; i < 3; i++) {
        counters[i] = (struct counter){.live = &live, .lock = &lock, .stop = &stop, .seed = 77 + i};
        cr_assert_eq(pthread_create(&threads[i], NULL, count, &counters[i]), 0);
    }
    for (int i = 0; i < 12; i++) {
        struct attach_process *p = live_attach(&live, &l);
        cr_assert_eq(live_harvest(p, &l, START + i, ATTACH_LIVES), PROFD_OK, "%s", sentence.sentence);
        cr_assert_eq(live_harvest(p, &l, START + i, ATTACH_LIVES), PROFD_OK, "%s", sentence.sentence);
        attach_close(p);
    }
    atomic_store(&stop, true);
    for (unsigned i = 0; i < 3; i++) {
        pthread_join(threads[i], NULL);
    }
    struct attach_process *p = live_attach(&live, &l);
    cr_assert_eq(live_harvest(p, &l, START + 1000, ATTACH_ENDED), PROFD_OK, "%s", sentence.sentence);
    attach_close(p);
    for (unsigned i = 0; i < PLACES; i++) {
        cr_assert_eq(ledger_arc(&l, "aa", 0x400000 + i, "bb", i),
                     counters[0].counted[i] + counters[1].counted[i] + counters[2].counted[i]);
    }
    cr_assert(l.inexact == 0 && l.ended);
    ledger_done(&l);
    live_close(&live);
}
