#include "client/collect/count_table.h"

#include "client/collect/collect.h"
#include "client/collect/module.h"
#include "client/collect/raw.h"
#include "client/collect/region.h"
#include "client/collect/stub.h"

#define PRIMARY_FIRST 128u
#define PRIMARY_FAST 8192u /* tables grow four times up to here, then two times */
#define PRIMARY_MAX (1u << 21)
#define PROBES 32u /* slots of the second area that are searched; the slot after them always stays empty */
#define TABLES_MAX 16384u
#define OWNER_SHARED UINT32_MAX
#define TID_UNNAMED 0x80000000u /* above every number of a thread (at most 2^22) */
#define TID_UNNAMED_MAX 0x7fffffffu
/* Reserved for the shared tables when the region is nearly full: calls stay exact, but slower. */
#define RESERVE(header) ((header)->size / 8)

struct stub_dummy profd_collect_dummy = {.head = {.client = {0, 0, STUB_SLOTS + 16}}, .never = {STUB_TOMB, 0}};
/* The initial table of sites of every thread: all slots are empty. */
struct attach_slot profd_collect_dummy_sites[STUB_SITES_MAX * STUB_SITE_SLOTS] __attribute__((aligned(64)));
_Thread_local struct stub_thread profd_collect_thread = {.direct = &profd_collect_dummy.head,
                                                         .sites = profd_collect_dummy_sites};

/* All tables, each with its thread; 0: free. */
static struct table_reference {
    struct attach_chunk *table;
    uint32_t owner;
    uint32_t of_sites; /* 1: a table of sites */
} tables[TABLES_MAX];
static uint32_t site_capacity; /* number of sites in a table of sites */
static uint32_t table_count;
static struct attach_chunk *shared[ATTACH_KIND_SAMPLES + 1]; /* the newest of each kind */

static struct attach_slot *slots_of(struct attach_chunk *t)
{
    return (struct attach_slot *)(void *)(t + 1);
}

static struct attach_identity *identities_of(struct attach_chunk *t)
{
    return (struct attach_identity *)(void *)(slots_of(t) + t->primary + t->hash);
}

static void masks_write(struct attach_chunk *t, bool on)
{
    __atomic_store_n(&t->client[0], on ? (t->primary - 1ull) * 16 : 0, __ATOMIC_RELAXED);
    __atomic_store_n(&t->client[1], on ? (t->hash - PROBES - 1ull) * 16 : 0, __ATOMIC_RELAXED);
    /* Off: slot 0 never matches, and the last slot of the second area is always empty. */
    __atomic_store_n(&t->client[2], STUB_SLOTS + (on ? t->primary : t->primary + t->hash - 1ull) * 16,
                     __ATOMIC_RELAXED);
}

/* Publishes the table: readers of tables see it from now on. */
static void table_register(struct attach_chunk *t, enum attach_kind kind, uint32_t owner, uint32_t of_sites)
{
    uint32_t place = __atomic_fetch_add(&table_count, 1, __ATOMIC_RELAXED);
    if (place < TABLES_MAX) {
        tables[place].owner = owner;
        tables[place].of_sites = of_sites;
        __atomic_store_n(&tables[place].table, t, __ATOMIC_RELEASE);
    }
    region_publish(t, kind);
}

static bool is_full(void)
{
    return __atomic_load_n(&table_count, __ATOMIC_RELAXED) >= TABLES_MAX;
}

static struct attach_chunk *table_new(enum attach_kind kind, uint32_t primary, uint32_t owner, uint64_t reserve)
{
    uint64_t n = 2ull * primary + PROBES;
    if (is_full() && owner != OWNER_SHARED) {
        return NULL;
    }
    struct attach_chunk *t = region_take(
        collect.header, sizeof *t + n * (sizeof(struct attach_slot) + sizeof(struct attach_identity)), reserve);
    if (!t) {
        return NULL;
    }
    t->primary = primary;
    t->hash = primary + PROBES;
    slots_of(t)[0].key = STUB_TOMB;
    masks_write(t, true);
    table_register(t, kind, owner, 0);
    return t;
}

static uint32_t table_total(void)
{
    uint32_t n = __atomic_load_n(&table_count, __ATOMIC_ACQUIRE);
    return n < TABLES_MAX ? n : TABLES_MAX;
}

/* A filter may refuse gettid. Then the thread gets a number that no thread of the kernel has, and no other thread here:
 * two threads with one number would count in one table, without atomic additions. */
static uint32_t my_tid(void)
{
    static uint32_t unnamed;
    if (!profd_collect_thread.tid) {
        long tid = raw_call(SYS_gettid, 0, 0, 0, 0);
        profd_collect_thread.tid =
            tid > 0 ? (uint32_t)tid : TID_UNNAMED + __atomic_fetch_add(&unnamed, 1, __ATOMIC_RELAXED) % TID_UNNAMED_MAX;
    }
    return profd_collect_thread.tid;
}

static void mine_set(struct attach_chunk *t)
{
    profd_collect_thread.table = t ? (uintptr_t)t - (uintptr_t)&profd_collect_dummy : 0;
    profd_collect_thread.direct = t ? t : &profd_collect_dummy.head;
    __asm__ volatile("" ::: "memory");
}

static struct attach_chunk *mine(void)
{
    uintptr_t table = profd_collect_thread.table;
    return table ? (struct attach_chunk *)((uintptr_t)&profd_collect_dummy + table) : NULL;
}

/* Takes the largest free table, which has space and already contains most calls of threads here. A table of a thread
 * with the same id is free, too: that thread ended without releasing it. */
static struct attach_chunk *table_adopt(uint32_t tid, uint32_t of_sites)
{
    for (;;) {
        uint32_t best = TABLES_MAX, owner = 0, n = table_total();
        for (uint32_t i = 0; i < n; i++) {
            const struct attach_chunk *t = __atomic_load_n(&tables[i].table, __ATOMIC_ACQUIRE);
            uint32_t has = __atomic_load_n(&tables[i].owner, __ATOMIC_RELAXED);
            if (t && tables[i].of_sites == of_sites && (has == 0 || has == tid) &&
                (best == TABLES_MAX || t->primary > tables[best].table->primary)) {
                best = i;
                owner = has;
            }
        }
        if (best == TABLES_MAX) {
            return NULL;
        }
        if (__atomic_compare_exchange_n(&tables[best].owner, &owner, tid, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
            return tables[best].table;
        }
    }
}

/* The table of the calling thread, acquired at its first call: a table of an ended thread, or a new one. NULL: no
 * memory. */
static struct attach_chunk *take_mine(void)
{
    struct attach_chunk *t = mine();
    if (t) {
        return t;
    }
    uint32_t tid = my_tid();
    t = table_adopt(tid, 0);
    if (!t) {
        t = table_new(ATTACH_KIND_ARCS, PRIMARY_FIRST, tid, RESERVE(collect.header));
    }
    struct attach_chunk *other = mine();
    if (other) { /* a signal handler installed one first; this one is released with the thread's others */
        return other;
    }
    if (t) {
        mine_set(t);
    }
    return t;
}

void count_table_release(void)
{
    uint32_t n = table_total(), tid = profd_collect_thread.tid;
    mine_set(NULL);
    profd_collect_thread.sites = profd_collect_dummy_sites;
    for (uint32_t i = 0; i < n && tid; i++) {
        if (__atomic_load_n(&tables[i].owner, __ATOMIC_RELAXED) == tid) {
            __atomic_store_n(&tables[i].owner, 0, __ATOMIC_RELEASE);
        }
    }
}

enum claim_result { CLAIM_FOUND, CLAIM_NEW, CLAIM_OTHER };

/* Assigns the slot to the entry if it is free, or belonged to the entry before it was invalidated. */
static enum claim_result slot_claim(struct attach_chunk *t, uint32_t index, const struct count_table_entry *entry)
{
    struct attach_slot *s = &slots_of(t)[index];
    struct attach_identity *id = &identities_of(t)[index];
    uint64_t key = __atomic_load_n(&s->key, __ATOMIC_ACQUIRE);
    if (key == entry->key) {
        return CLAIM_FOUND;
    }
    if (key == 0 && __atomic_compare_exchange_n(&s->key, &key, entry->key, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
        id->from = entry->id.from;
        id->self = entry->id.self;
        id->from_module = entry->id.from_module;
        __atomic_store_n(&id->self_module, entry->id.self_module, __ATOMIC_RELEASE);
        if (!module_is_counted(entry->id.from_module)) {
            module_set_counted(entry->id.from_module);
        }
        if (!module_is_counted(entry->id.self_module)) {
            module_set_counted(entry->id.self_module);
        }
        return CLAIM_NEW;
    }
    if (key == STUB_TOMB && id->self_module == entry->id.self_module && id->from_module == entry->id.from_module &&
        id->self == entry->id.self && id->from == entry->id.from &&
        __atomic_compare_exchange_n(&s->key, &key, entry->key, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
        return CLAIM_FOUND;
    }
    return key == entry->key ? CLAIM_FOUND : CLAIM_OTHER;
}

/* Returns the slot of the entry, assigned if necessary; NULL: no slot is free in its part of the table. */
static struct attach_slot *table_find(struct attach_chunk *t, const struct count_table_entry *entry)
{
    uint32_t first = (uint32_t)entry->key >> 3 & (t->primary - 1);
    if (first != 0 && slot_claim(t, first, entry) != CLAIM_OTHER) {
        return &slots_of(t)[first];
    }
    uint32_t begin = (uint32_t)(entry->key * STUB_FACTOR >> 32) >> 4 & (t->hash - PROBES - 1);
    uint64_t *filled = &t->spare[0];
    for (uint32_t i = 0; i < PROBES; i++) {
        uint32_t index = t->primary + begin + i;
        enum claim_result got = slot_claim(t, index, entry);
        if (got == CLAIM_NEW) {
            __atomic_fetch_add(filled, 1, __ATOMIC_RELAXED);
        }
        if (got != CLAIM_OTHER) {
            return &slots_of(t)[index];
        }
    }
    return NULL;
}

/* Long searches are slow: a larger table is begun when 5/8 of the second area are used. */
static bool is_crowded(const struct attach_chunk *t)
{
    return t->spare[0] * 8 > (t->hash - PROBES) * 5ull && t->primary < PRIMARY_MAX;
}

static uint32_t primary_next(uint32_t primary)
{
    return primary < PRIMARY_FAST ? primary * 4 : primary < PRIMARY_MAX ? primary * 2 : primary;
}

bool count_table_add_mine(const struct count_table_entry *entry, uint64_t n)
{
    struct attach_chunk *t = take_mine();
    if (!t) {
        return false;
    }
    struct attach_slot *s = is_crowded(t) ? NULL : table_find(t, entry);
    if (!s) {
        struct attach_chunk *next =
            table_new(ATTACH_KIND_ARCS, primary_next(t->primary), my_tid(), RESERVE(collect.header));
        if (next && mine() == t) {
            mine_set(next); /* otherwise a signal handler created one, too */
        }
        s = table_find(next ? next : t, entry);
    }
    if (!s) {
        return false;
    }
#if defined __x86_64__
    __asm__ volatile("addq %1, %0"
                     : "+m"(s->count)
                     : "r"(n)
                     : "cc"); /* one instruction, so that a handler's addition is not lost */
#else
    __atomic_fetch_add(&s->count, n, __ATOMIC_RELAXED);
#endif
    return true;
}

bool count_table_add_shared(enum attach_kind kind, const struct count_table_entry *entry, uint64_t n)
{
    for (unsigned tries = 0; tries < 4; tries++) {
        struct attach_chunk *t = __atomic_load_n(&shared[kind], __ATOMIC_ACQUIRE);
        struct attach_slot *s = t && !is_crowded(t) ? table_find(t, entry) : NULL;
        if (s) {
            __atomic_fetch_add(&s->count, n, __ATOMIC_RELAXED);
            return true;
        }
        uint64_t reserve = kind == ATTACH_KIND_ARCS ? 0 : RESERVE(collect.header);
        struct attach_chunk *next =
            table_new(kind, t ? primary_next(t->primary) : PRIMARY_FIRST, OWNER_SHARED, reserve);
        if (!next) {
            s = t ? table_find(t, entry) : NULL;
            if (s) {
                __atomic_fetch_add(&s->count, n, __ATOMIC_RELAXED);
            }
            return s != NULL;
        }
        /* The second of two threads leaves an empty table. */
        __atomic_compare_exchange_n(&shared[kind], &t, next, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
    }
    return false;
}

/* --- tables of sites: some slots for each call site that has a thunk --- */

void count_table_set_sites(uint32_t n)
{
    site_capacity = n < STUB_SITES_MAX ? n : STUB_SITES_MAX;
}

uint32_t count_table_sites(void)
{
    return site_capacity;
}

static struct attach_chunk *sites_new(uint32_t tid)
{
    uint32_t slots = site_capacity * STUB_SITE_SLOTS;
    if (is_full()) {
        return NULL;
    }
    /* Without one, calls are counted in the thread's other table, for which the second half of the region is reserved.
     */
    struct attach_chunk *t = region_take(
        collect.header, sizeof *t + (uint64_t)slots * (sizeof(struct attach_slot) + sizeof(struct attach_identity)),
        collect.header->size / 2);
    if (!t) {
        return NULL;
    }
    t->primary = slots;
    table_register(t, ATTACH_KIND_ARCS, tid, 1);
    return t;
}

static struct attach_chunk *sites_of_thread(void)
{
    if (profd_collect_thread.sites == profd_collect_dummy_sites) {
        uint32_t tid = my_tid();
        struct attach_chunk *t = table_adopt(tid, 1);
        if (!t) {
            t = sites_new(tid);
        }
        if (!t) {
            return NULL;
        }
        if (profd_collect_thread.sites == profd_collect_dummy_sites) { /* otherwise a signal handler was faster */
            __atomic_store_n(&profd_collect_thread.sites, slots_of(t), __ATOMIC_RELAXED);
        }
    }
    return (struct attach_chunk *)(void *)profd_collect_thread.sites - 1;
}

void count_table_prefer_site(uint32_t site, uintptr_t from, const struct attach_identity *id)
{
    struct count_table_entry entry = {(uint64_t)from * 2 + STUB_SITE_KEY, *id};
    struct attach_chunk *t = site < site_capacity ? sites_of_thread() : NULL;
    if (!t) {
        return;
    }
    uint32_t first = site * STUB_SITE_SLOTS + (uint32_t)(entry.key / sizeof(struct attach_slot)) % STUB_SITE_SLOTS;
    if (slot_claim(t, first, &entry) == CLAIM_OTHER) {
        slot_claim(t, first ^ 1u, &entry);
    }
}

void count_table_retire_module(uint16_t id)
{
    uint32_t n = table_total();
    for (uint32_t i = 0; i < n; i++) {
        struct attach_chunk *t = __atomic_load_n(&tables[i].table, __ATOMIC_ACQUIRE);
        uint32_t slots = t ? t->primary + t->hash : 0;
        for (uint32_t j = 0; j < slots; j++) {
            const struct attach_identity *about = &identities_of(t)[j];
            if (about->from_module == id || about->self_module == id) {
                __atomic_store_n(&slots_of(t)[j].key, STUB_TOMB, __ATOMIC_RELEASE);
            }
        }
    }
}

void count_table_switch_all(bool on)
{
    uint32_t n = table_total();
    for (uint32_t i = 0; i < n; i++) {
        struct attach_chunk *t = __atomic_load_n(&tables[i].table, __ATOMIC_ACQUIRE);
        if (t && !tables[i].of_sites && t->kind == ATTACH_KIND_ARCS) {
            masks_write(t, on);
        }
        /* Even if a thunk cannot be switched off itself, it finds no slot, because no caller's key is even. */
        for (uint32_t j = 0; t && tables[i].of_sites && j < t->primary; j++) {
            uint64_t *key = &slots_of(t)[j].key, was = __atomic_load_n(key, __ATOMIC_RELAXED);
            if (was > STUB_TOMB) {
                __atomic_compare_exchange_n(key, &was, on ? was | 1 : was & ~1ull, false, __ATOMIC_RELAXED,
                                            __ATOMIC_RELAXED);
            }
        }
    }
}

void count_table_reset(void)
{
    uint32_t n = table_total();
    for (uint32_t i = 0; i < n; i++) {
        tables[i] = (struct table_reference){NULL, 0, 0};
    }
    table_count = 0;
    for (unsigned i = 0; i <= ATTACH_KIND_SAMPLES; i++) {
        shared[i] = NULL;
    }
    mine_set(NULL);
    profd_collect_thread.sites = profd_collect_dummy_sites;
    profd_collect_thread.tid = 0;
}
