/* Makes instances, harvests and their snapshots for the contracts of live processes. */
#include "tests/contract/store/harvest_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/shares.h"
#include "proto/sum.h"

static void name_process(uint8_t name[STORE_INSTANCE_SIZE], unsigned process)
{
    memset(name, 0xa5, STORE_INSTANCE_SIZE);
    memcpy(name + 4, &process, sizeof process);
    name[15] = 0;
}

void make_harvest(struct made_harvest *x, uint32_t uid, unsigned process, uint64_t base, int64_t end, uint64_t n)
{
    memset(x, 0, sizeof *x);
    if (n > 0) {
        make_counted(&x->m, uid, process, 1 + (uint32_t)base, end, n);
        x->h = x->m.u;
        x->h.sequence = 0;
    } else {
        x->h = (struct store_upload){.uid = uid, .received = end};
    }
    snprintf(x->snapshot, sizeof x->snapshot, "%u/%u/%llu", uid, process, (unsigned long long)base + 1);
    x->h.live = true;
    name_process(x->h.instance, process);
    x->h.base = base;
    x->h.snapshot = (const uint8_t *)x->snapshot;
    x->h.snapshot_size = strlen(x->snapshot);
}

void replace_counts(struct made_harvest *x, const struct counts *c)
{
    struct share shares[8] = {{0}};
    struct store_upload *u = &x->h;
    struct profd_error e;
    uint8_t *bytes;
    free((void *)(uintptr_t)u->counts);
    cr_assert_eq(counts_encode(c, &bytes, &u->counts_size, &e), PROFD_OK, "%s", e.sentence);
    u->counts = bytes;
    counts_totals(c, &u->ticks, &u->calls);
    u->stack_ticks = sum_all(c->node_ticks, c->node_count);
    (void)share_add_counts(shares, c);
    for (size_t i = 0; i < u->build_count; i++) {
        x->m.builds[i].nanoseconds = shares[i].nanoseconds;
        x->m.builds[i].calls = shares[i].calls;
    }
}

void free_harvest(struct made_harvest *x)
{
    free((void *)(uintptr_t)x->h.counts);
    x->h.counts = NULL;
}

enum store_outcome harvest(struct fixture *f, struct made_harvest *x)
{
    enum store_outcome outcome;
    OK(f, store_put_uploads(f->w, &x->h, 1, &outcome, &f->e));
    free_harvest(x);
    return outcome;
}

void harvest_one(struct fixture *f, uint32_t uid, unsigned process, uint64_t base, int64_t end, uint64_t n)
{
    struct made_harvest x;
    make_harvest(&x, uid, process, base, end, n);
    cr_assert_eq(harvest(f, &x), STORE_STORED);
}

const char *durable(struct fixture *f, uint32_t uid, unsigned process)
{
    static char text[96];
    uint8_t name[STORE_INSTANCE_SIZE], *snapshot = (uint8_t *)text;
    uint64_t generation = 99;
    size_t size = 99;
    name_process(name, process);
    OK(f, store_get_instance(f->r, uid, name, &generation, &snapshot, &size, &f->e));
    if (generation == 0) {
        cr_assert_null(snapshot);
        return "0";
    }
    snprintf(text, sizeof text, "%llu %.*s", (unsigned long long)generation, (int)size, (const char *)snapshot);
    free(snapshot);
    return text;
}

struct living {
    unsigned found[64][2];
    size_t n;
};

static bool note_living(void *context, const struct store_instance *i)
{
    struct living *l = context;
    unsigned process;
    char snapshot[64];
    memcpy(&process, i->instance + 4, sizeof process);
    snprintf(snapshot, sizeof snapshot, "%u/%u/%llu", i->uid, process, (unsigned long long)i->generation);
    cr_assert(i->snapshot_size == strlen(snapshot) && memcmp(i->snapshot, snapshot, strlen(snapshot)) == 0);
    cr_assert_geq(i->seen, NOON - 400 * DAY);
    cr_assert_lt(l->n, 64);
    l->found[l->n][0] = i->uid;
    l->found[l->n++][1] = process;
    return true;
}

static int compare_living(const void *x, const void *y)
{
    const unsigned *a = x, *b = y;
    return a[0] != b[0] ? (a[0] > b[0]) - (a[0] < b[0]) : (a[1] > b[1]) - (a[1] < b[1]);
}

const char *list_living(struct fixture *f)
{
    static char text[2048];
    struct living l = {.n = 0};
    size_t used = 0;
    OK(f, store_each_instance(f->r, note_living, &l, &f->e));
    qsort(l.found, l.n, sizeof l.found[0], compare_living);
    text[0] = 0;
    for (size_t i = 0; i < l.n; i++) {
        used += (size_t)snprintf(text + used, sizeof text - used, "%u/%u ", l.found[i][0], l.found[i][1]);
    }
    return text;
}

static char shown[4096];

static enum profd_status show_row(void *context, const struct store_row *row, struct profd_error *e)
{
    struct counts c;
    size_t *used = context, n = 0;
    cr_assert_eq((*used)++, 0, "more than one row");
    cr_assert_not(row->rolled);
    cr_assert_eq(counts_decode(row->counts, row->counts_size, (uint32_t)row->build_count, &c, e), PROFD_OK, "%s",
                 e->sentence);
    for (uint32_t k = 0; k < c.histogram_count; k++) { /* in order of first arrival, as the arcs */
        const struct counts_histogram *h = &c.histograms[k];
        for (uint32_t i = 0; c.sorted && i < c.histogram_count; i++) {
            h = c.histograms[i].order.rank == k ? &c.histograms[i] : h;
        }
        for (uint32_t i = h->first; i < h->first + h->used; i++) {
            n += (size_t)snprintf(shown + n, sizeof shown - n, "%u=%llu ", c.bin_index[i],
                                  (unsigned long long)c.bin_ticks[i]);
        }
    }
    n += (size_t)snprintf(shown + n, sizeof shown - n, "|");
    for (uint32_t k = 0; k < c.arc_count; k++) {
        uint32_t at = k;
        for (uint32_t i = 0; c.sorted && i < c.arc_count; i++) {
            at = c.rank[i] == k ? i : at;
        }
        n += (size_t)snprintf(shown + n, sizeof shown - n, " %llx:%llu", (unsigned long long)c.to[at],
                              (unsigned long long)c.calls[at]);
    }
    cr_assert_lt(n, sizeof shown);
    counts_done(&c);
    return PROFD_OK;
}

const char *show_counts(struct fixture *f)
{
    size_t rows = 0;
    shown[0] = 0;
    OK(f, store_each_upload(f->r, &everybody, &(struct store_filter){.build_id = full_id("aa01")}, show_row, &rows,
                            &f->e));
    return shown;
}

struct store_totals totals(struct fixture *f)
{
    struct store_totals t;
    OK(f, store_get_totals(f->w, &t, &f->e));
    return t;
}

uint64_t epoch_of(struct fixture *f, struct store_scope scope, const char *id)
{
    struct store_epoch epoch;
    OK(f, store_epoch(f->r, &scope, full_id(id), &epoch, &f->e));
    return epoch.number;
}
