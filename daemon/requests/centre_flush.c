#include "requests/centre_flush.h"

#include <stdlib.h>
#include <string.h>

#include "core/container.h"

static struct centre_flush *flush_of(struct writer_job *job)
{
    return container_of(job, struct centre_flush, job);
}

/* What cannot be read is put aside, unless that may be different next time. */
static void decode_item(struct centre_item *x)
{
    struct store_delivery *d = &x->delivery;
    const enum profd_status status = segment_decode(d->bytes, d->size, &x->segment, &x->error);

    if (status == PROFD_NO_MEMORY || status == PROFD_UNKNOWN_VERSION) {
        x->status = status;
        return;
    }
    x->decoded = !status;
    if (!status && (x->segment.sequence != d->sequence || memcmp(x->segment.epoch, d->epoch, sizeof d->epoch) != 0)) {
        profd_error_set(&x->error, PROFD_MALFORMED, "a segment with another key than its message");
    } else if (!status) {
        d->segment = &x->segment;
    }
    d->fault = d->segment ? NULL : x->error.sentence;
    if (d->size > SEGMENT_DIGEST_AT) {
        const size_t n = d->size - SEGMENT_DIGEST_AT;

        memcpy(d->digest, d->bytes + SEGMENT_DIGEST_AT, n < sizeof d->digest ? n : sizeof d->digest);
    }
}

static void flush_prepare(struct writer_job *job)
{
    struct centre_flush *f = flush_of(job);

    for (size_t i = 0; i < f->count; i++) {
        decode_item(&f->items[i]);
    }
}

static void refuse_all(struct centre_flush *f, enum profd_status status, const struct profd_error *e)
{
    for (size_t i = 0; i < f->count; i++) {
        if (!f->items[i].status) {
            f->items[i].status = status;
            f->items[i].error = *e;
        }
    }
}

/* list and receipts have space for all. */
static enum profd_status store_flush(struct centre_flush *f, struct store *store, struct store_delivery *list,
                                     struct store_receipt *receipts, struct profd_error *e)
{
    struct store_centre centre;
    size_t n = 0;
    enum profd_status status;

    for (size_t i = 0; i < f->count; i++) {
        if (!f->items[i].status) {
            list[n++] = f->items[i].delivery;
        }
    }
    store_set_detail(store, &f->detail);
    status = store_put_segments(store, list, n, receipts, e);
    n = 0;
    for (size_t i = 0; i < f->count && !status; i++) {
        if (!f->items[i].status) {
            f->items[i].receipt = receipts[n++];
        }
    }
    if (!status) {
        status = store_get_greeting(store, &centre, e);
        memcpy(f->incarnation, centre.incarnation, sizeof f->incarnation);
    }
    return status;
}

static void flush_one(struct centre_flush *f, struct store *store, const struct profd_error *full)
{
    struct store_delivery *list = calloc(f->count, sizeof *list);
    struct store_receipt *receipts = calloc(f->count, sizeof *receipts);
    struct profd_error e;
    enum profd_status status = PROFD_OK;

    if (!list || !receipts) {
        status = profd_error_set(&e, PROFD_NO_MEMORY, "no memory to store %zu segments", f->count);
    } else if (full) {
        status = PROFD_FULL;
        e = *full;
    } else {
        status = store_flush(f, store, list, receipts, &e);
    }
    if (status) {
        refuse_all(f, status, &e);
    }
    free(list);
    free(receipts);
}

static void flush_run(struct store *store, const struct profd_error *full, struct writer_job *const *jobs, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        flush_one(flush_of(jobs[i]), store, full);
    }
}

static void flush_done(struct writer_job *job)
{
    struct centre_flush *f = flush_of(job);

    f->done(f->context, f);
}

static void flush_drop(struct writer_job *job)
{
    struct centre_flush *f = flush_of(job);
    struct profd_error e;

    profd_error_set(&e, PROFD_STOPPING, "the daemon is stopping");
    for (size_t i = 0; i < f->count; i++) {
        f->items[i].status = PROFD_OK;
    }
    refuse_all(f, PROFD_STOPPING, &e);
    f->done(f->context, f);
}

static const struct writer_job_type flush_type = {
    .prepare = flush_prepare, .run = flush_run, .done = flush_done, .drop = flush_drop};

bool centre_flush_put(struct writer *w, struct centre_item *items, size_t count, const struct store_detail *detail,
                      void (*done)(void *context, struct centre_flush *f), void *context)
{
    struct centre_flush *f = calloc(1, sizeof *f);

    if (!f) {
        return false;
    }
    *f = (struct centre_flush){.job = {.item = {.uid = WRITER_UID_NONE, .weight = 1}, .type = &flush_type},
                               .items = items,
                               .count = count,
                               .detail = *detail,
                               .done = done,
                               .context = context};
    if (!writer_put(w, &f->job)) {
        free(f);
        return false;
    }
    return true;
}

void centre_flush_free(struct centre_flush *f)
{
    for (size_t i = 0; i < f->count; i++) {
        if (f->items[i].decoded) {
            segment_done(&f->items[i].segment);
        }
        message_done(&f->items[i].message);
    }
    free(f->items);
    free(f);
}
