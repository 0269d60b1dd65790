/* Live processes, as in sqlite_harvest.c, in arrays. */
#include <stdlib.h>
#include <string.h>

#include "core/counts_merge.h"
#include "core/sum.h"
#include "proto/message.h"
#include "store/memory.h"

#define NONE SIZE_MAX

/* Changes of a harvest, prepared before anything is modified. */
struct plan {
    size_t instance; /* NONE: a new one */
    size_t upload;   /* upload that grows; NONE: a new one, or no counts */
    uint8_t *snapshot, *counts;
    size_t counts_size;
    uint64_t ticks, calls; /* that are new */
    struct share *shares;  /* of all it then holds */
    bool saturated;
};

/* One batch. */
struct harvesting {
    struct memory_store *s;
    const struct store_harvest *harvests;
    size_t n;
    struct store_upload *uploads; /* uploads of the harvests; empty if a harvest has nothing new */
    struct plan *plans;
    struct memory_spares spares;
    struct arena *scratch;
};

static size_t find_instance(const struct memory_store *s, uint32_t uid, const uint8_t *name)
{
    for (size_t i = 0; i < s->instance_count; i++) {
        if (s->instances[i].uid == uid && memcmp(s->instances[i].name, name, STORE_INSTANCE_SIZE) == 0) {
            return i;
        }
    }
    return NONE;
}

/* Finds the upload to which the difference can be added. */
static size_t find_growing(const struct memory_store *s, const struct memory_instance *i,
                           const struct memory_upload *more)
{
    for (size_t k = 0; k < s->upload_count; k++) {
        const struct memory_upload *u = &s->uploads[k];
        if (u->number == i->upload) {
            return memory_same_series(u, more) && u->end / MEMORY_SLICE == more->end / MEMORY_SLICE &&
                           strcmp(u->host, more->host) == 0 && u->group == more->group &&
                           u->counts_size <= STORE_GROWN_MOST
                       ? k
                       : NONE;
        }
    }
    return NONE;
}

static enum profd_status add_counts(struct plan *p, struct arena *scratch, const struct counts *old,
                                    const struct counts *more, struct profd_error *e)
{
    struct counts sum;
    uint64_t ticks, calls;
    enum profd_status status = counts_merge(scratch, old, more, &sum, &p->saturated, e);
    if (status != PROFD_OK) {
        return status;
    }
    status = counts_encode(&sum, &p->counts, &p->counts_size, e);
    counts_totals(&sum, &p->ticks, &p->calls);
    counts_totals(old, &ticks, &calls);
    p->ticks -= ticks;
    p->calls -= calls;
    p->saturated |= share_add_counts(p->shares, &sum);
    counts_done(&sum);
    return status;
}

/* Adds the difference to the upload. It stays NONE if the upload cannot contain both. */
static enum profd_status plan_growth(struct harvesting *x, struct plan *p, size_t at, const struct memory_upload *more,
                                     struct profd_error *e)
{
    const struct memory_upload *u = &x->s->uploads[at];
    struct counts old, new;
    uint32_t builds = (uint32_t)u->build_count;
    p->shares = calloc(u->build_count, sizeof *p->shares);
    if (!p->shares) {
        return profd_no_memory(e);
    }
    enum profd_status status = counts_decode(u->counts, u->counts_size, builds, &old, e);
    if (status != PROFD_OK) {
        return status == PROFD_NO_MEMORY ? status : PROFD_OK;
    }
    status = counts_decode(more->counts, more->counts_size, builds, &new, e);
    if (status == PROFD_OK) {
        status = add_counts(p, x->scratch, &old, &new, e);
        counts_done(&new);
    } else if (status != PROFD_NO_MEMORY) {
        status = PROFD_INTERNAL;
    }
    counts_done(&old);
    if (status == PROFD_OK) {
        p->upload = at;
    }
    return status == PROFD_TOO_LARGE ? PROFD_OK : status;
}

static enum profd_status plan_harvest(struct harvesting *x, size_t i, enum store_harvest_outcome *outcome,
                                      struct profd_error *e)
{
    struct plan *p = &x->plans[i];
    const struct store_harvest *h = &x->harvests[i];
    p->instance = find_instance(x->s, h->upload.uid, h->instance);
    p->upload = NONE;
    uint64_t generation = p->instance == NONE ? 0 : x->s->instances[p->instance].generation;
    *outcome = generation == h->base ? STORE_HARVESTED : STORE_STALE;
    if (*outcome == STORE_STALE) {
        return PROFD_OK;
    }
    p->snapshot = malloc(h->snapshot_size + 1);
    if (!p->snapshot) {
        return profd_no_memory(e);
    }
    if (h->snapshot_size > 0) {
        memcpy(p->snapshot, h->snapshot, h->snapshot_size);
    }
    if (h->upload.counts_size == 0 || p->instance == NONE) {
        return PROFD_OK;
    }
    size_t at = find_growing(x->s, &x->s->instances[p->instance], &x->spares.copies[i]);
    return at == NONE ? PROFD_OK : plan_growth(x, p, at, &x->spares.copies[i], e);
}

static void sum_up_again(struct memory_store *s, const struct memory_upload *u)
{
    for (size_t i = 0; i < s->build_count; i++) {
        struct memory_build *b = &s->builds[i];
        bool touched = false;
        for (size_t k = 0; k < u->build_count; k++) {
            touched |= b->uid == u->uid && strcmp(b->id.text, u->builds[k].id.text) == 0;
        }
        if (!touched) {
            continue;
        }
        b->epoch = s->number;
        b->sums = (struct build_row){.uploads = 0};
        for (size_t k = 0; k < s->upload_count; k++) {
            if (s->uploads[k].uid == b->uid) {
                memory_add_sums(b, &s->uploads[k]);
            }
        }
    }
}

/* Marks reports and lists with the upload or its process as changed. */
static void touch(struct memory_store *s, const struct memory_upload *u)
{
    if (u != NULL) {
        s->number++;
        sum_up_again(s, u);
        memory_find_user(s, u->uid)->epoch = s->list_epoch = s->number;
    }
}

static void grow(struct memory_store *s, struct plan *p, const struct memory_upload *more)
{
    struct memory_upload *u = &s->uploads[p->upload];
    bool full = p->saturated, ignored = false;
    sum_add(&u->processes_started, more->processes_started, &full);
    sum_add(&u->ticks, p->ticks, &full);
    sum_add(&u->calls, p->calls, &full);
    u->start = more->start < u->start ? more->start : u->start;
    u->end = more->end > u->end ? more->end : u->end;
    u->inexact |= more->inexact | (full ? (uint32_t)INEXACT_SATURATED : 0);
    free(u->counts);
    u->counts = p->counts;
    u->counts_size = p->counts_size;
    p->counts = NULL;
    memcpy(u->shares, p->shares, u->build_count * sizeof *u->shares);
    sum_add(&s->ticks, p->ticks, &ignored);
    sum_add(&s->calls, p->calls, &ignored);
    touch(s, u);
}

static bool is_kin(uint32_t child, uint32_t parent)
{
    return child == parent || parent == 0;
}

static bool is_named(const struct memory_instance *m, const uint8_t *name)
{
    return memcmp(m->name, name, sizeof m->name) == 0;
}

/* Those that wait for it. */
static void adopt(struct memory_store *s, struct memory_instance *m)
{
    for (size_t i = 0; i < s->instance_count; i++) {
        struct memory_instance *child = &s->instances[i];
        for (size_t k = 0; k < child->wait_count; k++) {
            if (is_named(m, child->waits[k]) && is_kin(child->uid, m->uid)) {
                memmove(child->waits[k], child->waits[--child->wait_count], sizeof child->waits[k]);
                m->missing--;
            }
        }
    }
}

static void name_parent(struct memory_store *s, struct memory_instance *m, const uint8_t *name)
{
    bool found = false;
    for (size_t i = 0; i < s->instance_count; i++) {
        struct memory_instance *parent = &s->instances[i];
        if (is_named(parent, name) && is_kin(m->uid, parent->uid)) {
            parent->missing--;
            found = true;
        }
    }
    if (!found && m->wait_count < sizeof m->waits / sizeof m->waits[0]) {
        memcpy(m->waits[m->wait_count++], name, sizeof m->waits[0]);
    }
}

/* As sqlite_put_kin. */
static void put_kin(struct memory_store *s, const struct store_harvest *h, struct memory_instance *m, bool first,
                    int64_t before)
{
    if (first) {
        adopt(s, m);
    }
    if (h->children > 0) {
        m->missing_since = m->missing <= 0 ? before : m->missing_since;
        m->missing += (int64_t)h->children;
    }
    for (size_t i = 0; i < h->parent_count; i++) {
        name_parent(s, m, h->parents + i * STORE_INSTANCE_SIZE);
    }
    m->missing = h->told ? 0 : m->missing;
}

static void apply(struct harvesting *x, size_t i, char **names)
{
    struct memory_store *s = x->s;
    struct plan *p = &x->plans[i];
    const struct store_harvest *h = &x->harvests[i];
    struct memory_instance *m = p->instance == NONE ? &s->instances[s->instance_count++] : &s->instances[p->instance];
    if (p->instance == NONE) {
        *m = (struct memory_instance){.uid = h->upload.uid};
        memcpy(m->name, h->instance, sizeof m->name);
    }
    free(m->snapshot);
    m->snapshot = p->snapshot;
    p->snapshot = NULL;
    m->snapshot_size = h->snapshot_size;
    put_kin(s, h, m, p->instance == NONE,
            p->instance != NONE         ? m->seen
            : h->upload.counts_size > 0 ? h->upload.start
                                        : h->upload.received);
    m->generation = h->base + 1;
    m->seen = h->upload.received;
    m->ended = h->ended;
    m->run = s->base.run;
    if (h->upload.counts_size == 0) {
        touch(s, memory_find_upload(s, m->upload)); /* it is read again or has ended, and reports state that */
        return;
    }
    if (p->upload != NONE) {
        grow(s, p, &x->spares.copies[i]);
    } else {
        memory_put_upload(s, &x->uploads[i], &x->spares.copies[i], names);
        m->upload = s->number;
        s->uploads[s->upload_count - 1].live = true;
    }
    if (x->spares.staged) {
        const struct memory_upload *u = &s->uploads[p->upload != NONE ? p->upload : s->upload_count - 1];
        memory_forward(&s->relay, &x->spares.staged[i], u->series, p->upload == NONE, &x->uploads[i], h->since);
    }
}

static enum profd_status prepare(struct harvesting *x, struct profd_error *e)
{
    x->uploads = calloc(x->n, sizeof *x->uploads);
    x->plans = calloc(x->n, sizeof *x->plans);
    x->scratch = arena_new(0);
    if (!x->uploads || !x->plans || !x->scratch) {
        return profd_no_memory(e);
    }
    for (size_t i = 0; i < x->n; i++) {
        if (x->harvests[i].upload.counts_size > 0) {
            x->uploads[i] = x->harvests[i].upload;
        }
    }
    enum profd_status status = memory_reserve(&x->s->instances, x->s->instance_count, &x->s->instance_capacity, x->n,
                                              sizeof *x->s->instances, e);
    return status == PROFD_OK ? memory_spares_take(x->s, x->uploads, x->n, &x->spares, e) : status;
}

enum profd_status memory_put_harvests(struct store *base, const struct store_harvest *harvests, size_t n,
                                      enum store_harvest_outcome *outcomes, struct profd_error *e)
{
    struct harvesting x = {.s = memory_self(base), .harvests = harvests, .n = n};
    size_t names = 0;
    uint64_t before = x.s->number;
    enum profd_status status = prepare(&x, e);
    for (size_t i = 0; status == PROFD_OK && i < n; i++) {
        status = plan_harvest(&x, i, &outcomes[i], e);
    }
    for (size_t i = 0; status == PROFD_OK && i < n; i++) {
        if (outcomes[i] == STORE_HARVESTED) {
            apply(&x, i, x.spares.names + names);
        }
        names += x.uploads[i].build_count;
    }
    if (status == PROFD_OK) {
        memory_level_epochs(x.s, before);
    }
    for (size_t i = 0; x.plans && i < n; i++) {
        free(x.plans[i].snapshot);
        free(x.plans[i].counts);
        free(x.plans[i].shares);
    }
    memory_spares_done(&x.spares);
    arena_free(x.scratch);
    free(x.uploads);
    free(x.plans);
    return status;
}

enum profd_status memory_get_instance(struct store *base, uint32_t uid, const uint8_t instance[STORE_INSTANCE_SIZE],
                                      uint64_t *generation, uint8_t **snapshot, size_t *size, struct profd_error *e)
{
    const struct memory_store *s = memory_self(base);
    size_t at = find_instance(s, uid, instance);
    if (at == NONE) {
        *generation = 0;
        *snapshot = NULL;
        *size = 0;
        return PROFD_OK;
    }
    const struct memory_instance *m = &s->instances[at];
    uint8_t *copy = malloc(m->snapshot_size + 1);
    if (!copy) {
        return profd_no_memory(e);
    }
    memcpy(copy, m->snapshot, m->snapshot_size);
    *generation = m->generation;
    *snapshot = copy;
    *size = m->snapshot_size;
    return PROFD_OK;
}

/* Implements store_each_instance and store_each_namesake. */
static void each_found(const struct memory_store *s, const uint8_t *name,
                       bool (*each)(void *context, const struct store_instance *i), void *context)
{
    for (size_t k = 0; k < s->instance_count; k++) {
        const struct memory_instance *m = &s->instances[k];
        struct store_instance i = {.uid = m->uid,
                                   .generation = m->generation,
                                   .seen = m->seen,
                                   .missing_since = m->missing > 0 ? m->missing_since : 0,
                                   .ended = m->ended,
                                   .snapshot = m->snapshot,
                                   .snapshot_size = m->snapshot_size};
        memcpy(i.instance, m->name, sizeof i.instance);
        const bool wanted = name ? memcmp(m->name, name, sizeof m->name) == 0 : !m->ended || m->missing > 0;
        if (wanted && !each(context, &i)) {
            break;
        }
    }
}

enum profd_status memory_each_instance(struct store *base, bool (*each)(void *context, const struct store_instance *i),
                                       void *context, struct profd_error *e)
{
    (void)e;
    each_found(memory_self(base), NULL, each, context);
    return PROFD_OK;
}

enum profd_status memory_each_namesake(struct store *base, const uint8_t instance[STORE_INSTANCE_SIZE],
                                       bool (*each)(void *context, const struct store_instance *i), void *context,
                                       struct profd_error *e)
{
    (void)e;
    each_found(memory_self(base), instance, each, context);
    return PROFD_OK;
}

void memory_remove_instances(struct memory_store *s, int64_t before)
{
    size_t kept = 0;
    for (size_t i = 0; i < s->instance_count; i++) {
        if (s->instances[i].ended && s->instances[i].seen < before && s->instances[i].missing <= 0) {
            free(s->instances[i].snapshot);
        } else {
            s->instances[kept++] = s->instances[i];
        }
    }
    s->instance_count = kept;
}

enum profd_status memory_set_unread(struct store *base, uint32_t uid, const uint8_t instance[STORE_INSTANCE_SIZE],
                                    struct profd_error *e)
{
    struct memory_store *s = memory_self(base);
    const size_t at = find_instance(s, uid, instance);
    (void)e;
    if (at != NONE) {
        s->instances[at].run = 0;
    }
    return PROFD_OK;
}
