/* The verbs of arrivals.h, as in sqlite_centre.c and sqlite_arrive.c. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/rollup_segment.h"
#include "core/sum.h"
#include "proto/hex.h"
#include "store/incoming.h"
#include "store/labels.h"
#include "store/memory.h"

static struct memory_host *find_host(const struct memory_centre *c, const uint8_t *identity)
{
    for (size_t i = 0; i < c->host_count; i++) {
        if (memcmp(c->hosts[i].identity, identity, STORE_HOST_SIZE) == 0) {
            return &c->hosts[i];
        }
    }
    return NULL;
}

/* There is space for it. */
static void mark(struct memory_store *s, int64_t hour, size_t host, uint32_t reasons)
{
    struct memory_centre *c = &s->centre;
    size_t i = 0;
    while (i < c->mark_count && (c->marks[i].hour != hour || c->marks[i].host != host)) {
        i++;
    }
    if (i == c->mark_count) {
        c->marks[c->mark_count++] = (struct memory_mark){hour, host, 0};
    }
    if ((c->marks[i].reasons & reasons) == reasons) {
        return;
    }
    c->marks[i].reasons |= reasons;
    s->number++;
    for (size_t b = 0; b < s->build_count; b++) {
        s->builds[b].epoch = s->builds[b].uid == c->hosts[host].uid ? s->number : s->builds[b].epoch;
    }
}

static enum profd_status reserve_mark(struct memory_centre *c, struct profd_error *e)
{
    return memory_reserve(&c->marks, c->mark_count, &c->mark_capacity, 1, sizeof *c->marks, e);
}

enum profd_status memory_admit_hosts(struct store *base, const struct store_arrival *list, size_t n,
                                     struct store_admission *out, struct profd_error *e)
{
    struct memory_store *s = memory_self(base);
    struct memory_centre *c = &s->centre;
    enum profd_status status = PROFD_OK;
    for (size_t i = 0; i < n && status == PROFD_OK; i++) {
        status = memory_reserve(&c->hosts, c->host_count, &c->host_capacity, 1, sizeof *c->hosts, e);
        if (status == PROFD_OK) {
            status = reserve_mark(c, e);
        }
        char *name = status == PROFD_OK ? strdup(list[i].name) : NULL;
        if (!name) {
            return profd_no_memory(e);
        }
        struct memory_host *h = find_host(c, list[i].host);
        const struct store_arrival *a = &list[i];
        const uint64_t before = h ? h->number : 0;
        out[i] = (struct store_admission){.restored = (a->held ? a->held - 1 : a->number) < before, .number = before};
        if (!h) {
            h = &c->hosts[c->host_count++];
            *h = (struct memory_host){.name = NULL};
            memcpy(h->identity, list[i].host, sizeof h->identity);
        }
        free(h->name);
        h->name = name;
        h->clock = list[i].clock;
        h->number = a->held ? before : a->number;
        h->uid = a->tenant ? a->tenant : STORE_TENANT;
        if (out[i].restored) {
            mark(s, list[i].now / SEGMENT_HOUR, (size_t)(h - c->hosts), (uint32_t)INEXACT_RESTORED);
        }
    }
    return status;
}

enum profd_status memory_note_deletion(struct memory_store *s, const char *build_id, struct profd_error *e)
{
    struct memory_centre *c = &s->centre;
    enum profd_status status =
        memory_reserve(&c->deletions, c->deletion_count, &c->deletion_capacity, 1, sizeof *c->deletions, e);
    if (status == PROFD_OK) {
        struct memory_deletion *x = &c->deletions[c->deletion_count++];
        snprintf(x->build_id, sizeof x->build_id, "%s", build_id);
        x->before = (int64_t)time(NULL) * INT64_C(1000000000);
    }
    return status;
}

/* Was the program deleted after all of this had ended? Then it counts as accepted and removed. */
static bool remove_deleted(struct memory_store *s, const struct store_upload *u, const struct store_amount *amount)
{
    const struct memory_centre *c = &s->centre;
    bool deleted = false, saturated = false;
    for (size_t i = 0; i < c->deletion_count; i++) {
        deleted |=
            strcmp(c->deletions[i].build_id, u->builds[u->program].id.text) == 0 && u->end <= c->deletions[i].before;
    }
    if (deleted) {
        sum_add(&s->uploads_total, amount->uploads, &saturated);
        sum_add(&s->ticks, amount->ticks, &saturated);
        sum_add(&s->calls, amount->calls, &saturated);
        sum_add(&s->retired_uploads, amount->uploads, &saturated);
        sum_add(&s->retired_ticks, amount->ticks, &saturated);
        sum_add(&s->retired_calls, amount->calls, &saturated);
        outgoing_amount_add(&s->centre.removed, amount);
    }
    return deleted;
}

struct encoded {
    uint8_t *counts, *spread;
    size_t size, spread_size;
};

/* The counts of a segment as a sum, and their spread, in new blocks that the caller frees, after a failure too. */
static enum profd_status encode_counts(const struct store_delivery *d, const struct incoming *in, struct arena *a,
                                       struct encoded *out, struct profd_error *e)
{
    struct rollup r;
    struct rollup_spread spread;
    enum profd_status status = rollup_from_segment(d->segment, &in->order, a, &r, &spread, e);
    if (status == PROFD_OK) {
        status = rollup_encode(&r, &out->counts, &out->size, e);
    }
    return status == PROFD_OK ? rollup_encode_spread(&r, &spread, &out->spread, &out->spread_size, e) : status;
}

/* The upload of a segment, with its counts as a sum. */
static enum profd_status put_counts(struct memory_store *s, const struct store_delivery *d, const struct memory_host *h,
                                    struct memory_arrival *x, struct store_receipt *r, struct profd_error *e)
{
    struct incoming in;
    struct memory_spares spares = {.n = 0};
    const uint64_t before = s->number;
    struct encoded encoded = {.counts = NULL};
    struct arena *a = arena_new(0);
    enum profd_status status = a ? incoming_read(a, d, h->name, true, h->clock, h->uid, &in, e) : profd_no_memory(e);
    if (status == PROFD_OK) {
        status = encode_counts(d, &in, a, &encoded, e);
    }
    in.upload.counts = encoded.counts;
    in.upload.counts_size = encoded.size;
    if (status == PROFD_OK) {
        status = memory_spares_take(s, &in.upload, 1, &spares, e);
    }
    if (status == PROFD_OK) {
        x->amount = (struct store_amount){in.uploads, in.upload.ticks, in.upload.calls};
        r->relabelled = in.relabelled;
    }
    if (status == PROFD_OK) {
        status = memory_await_objects(s, &in.upload, h->identity, e);
    }
    if (status == PROFD_OK && !remove_deleted(s, &in.upload, &x->amount)) {
        struct memory_upload *copy = &spares.copies[0];
        copy->rolled = true;
        copy->width = in.width;
        copy->uploads = in.uploads;
        copy->processes_started = in.processes;
        copy->groups = in.groups;
        hex_put(copy->host, h->identity, STORE_HOST_SIZE);
        copy->spread = encoded.spread;
        copy->spread_size = encoded.spread_size;
        encoded.spread = NULL;
        memory_put_upload(s, &in.upload, copy, spares.names);
        memory_level_epochs(s, before);
    }
    memory_spares_done(&spares);
    free(encoded.counts);
    free(encoded.spread);
    arena_free(a);
    return status;
}

static const struct memory_arrival *find_key(const struct memory_centre *c, const struct store_delivery *d)
{
    for (size_t i = 0; i < c->arrival_count; i++) {
        const struct memory_arrival *x = &c->arrivals[i];
        if (x->sequence == d->sequence && memcmp(x->epoch, d->epoch, sizeof x->epoch) == 0) {
            return x;
        }
    }
    return NULL;
}

static bool is_foreign(const struct memory_centre *c, const struct store_delivery *d, size_t host)
{
    for (size_t i = 0; i < c->arrival_count; i++) {
        if (memcmp(c->arrivals[i].epoch, d->epoch, sizeof d->epoch) == 0) {
            return c->arrivals[i].host != host;
        }
    }
    return false;
}

static bool is_counts(const struct store_delivery *d)
{
    return d->segment && d->segment->kind == SEGMENT_COUNTS;
}

static enum profd_status put_new(struct memory_store *s, const struct store_delivery *d, const struct memory_host *h,
                                 struct store_receipt *r, struct profd_error *e)
{
    struct memory_centre *c = &s->centre;
    const size_t host = (size_t)(h - c->hosts);
    struct memory_arrival x = {.sequence = d->sequence, .host = host};
    enum profd_status status = is_counts(d) ? put_counts(s, d, h, &x, r, e) : PROFD_OK;
    if (status != PROFD_OK) {
        return status;
    }
    memcpy(x.epoch, d->epoch, sizeof x.epoch);
    memcpy(x.digest, d->digest, sizeof x.digest);
    if (!d->segment) {
        x.outcome = STORE_SEGMENT_PUT_ASIDE;
        c->quarantined++;
        c->quarantine_bytes += d->size;
        mark(s, d->received / SEGMENT_HOUR, host, (uint32_t)INEXACT_SEGMENT_MISSING);
    } else if (d->segment->kind == SEGMENT_DROPPED) {
        mark(s, incoming_hour(d->segment, h->clock), host, (uint32_t)INEXACT_SEGMENT_MISSING);
    }
    c->last = d->received > c->last ? d->received : c->last;
    outgoing_amount_add(&c->counted, &x.amount);
    r->outcome = x.outcome;
    r->number = x.number = ++c->number;
    c->arrivals[c->arrival_count++] = x;
    return PROFD_OK;
}

static enum profd_status put_segment(struct memory_store *s, const struct store_delivery *d, struct store_receipt *r,
                                     struct profd_error *e)
{
    struct memory_centre *c = &s->centre;
    const struct memory_host *h = find_host(c, d->host);
    *r = (struct store_receipt){.verdict = h ? STORE_ARRIVED : STORE_UNKNOWN};
    if (!h) {
        return PROFD_OK;
    }
    if (is_foreign(c, d, (size_t)(h - c->hosts))) {
        r->verdict = STORE_FOREIGN;
        return PROFD_OK;
    }
    enum profd_status status =
        memory_reserve(&c->arrivals, c->arrival_count, &c->arrival_capacity, 1, sizeof *c->arrivals, e);
    if (status == PROFD_OK) {
        status = reserve_mark(c, e);
    }
    const struct memory_arrival *known = status == PROFD_OK ? find_key(c, d) : NULL;
    if (!known) {
        return status == PROFD_OK ? put_new(s, d, h, r, e) : status;
    }
    r->again = true;
    r->number = known->number;
    r->outcome = known->outcome;
    if (memcmp(known->digest, d->digest, sizeof d->digest) != 0 && (!d->segment || is_counts(d))) {
        r->outcome = STORE_SEGMENT_CONFLICT;
        mark(s, d->segment ? incoming_hour(d->segment, h->clock) : d->received / SEGMENT_HOUR, (size_t)(h - c->hosts),
             (uint32_t)INEXACT_SEGMENT_MISSING);
    }
    return PROFD_OK;
}

enum profd_status memory_put_segments(struct store *base, const struct store_delivery *list, size_t n,
                                      struct store_receipt *receipts, struct profd_error *e)
{
    enum profd_status status = PROFD_OK;
    for (size_t i = 0; i < n && status == PROFD_OK; i++) {
        status = put_segment(memory_self(base), &list[i], &receipts[i], e);
    }
    return status;
}

static uint64_t count_series(const struct memory_store *s, int64_t hour)
{
    uint64_t n = 0;
    for (size_t i = 0; i < s->upload_count; i++) {
        const struct memory_upload *u = &s->uploads[i];
        bool first = store_is_tenant(u->uid) && u->end / SEGMENT_HOUR == hour;
        for (size_t k = 0; k < i && first; k++) {
            first = s->uploads[k].series != u->series || s->uploads[k].end / SEGMENT_HOUR != hour;
        }
        n += first;
    }
    return n;
}

enum profd_status memory_get_centre(struct store *base, struct store_centre *out, struct profd_error *e)
{
    (void)e;
    const struct memory_store *s = memory_self(base);
    const struct memory_centre *c = &s->centre;
    const uint64_t now = count_series(s, c->last / SEGMENT_HOUR), before = count_series(s, c->last / SEGMENT_HOUR - 1);
    *out = (struct store_centre){.number = c->number,
                                 .counts_segments = true,
                                 .last = c->last,
                                 .counted = c->counted,
                                 .removed = c->removed,
                                 .hosts = c->host_count,
                                 .series = now > before ? now : before,
                                 .detail = true,
                                 .quarantined = c->quarantined,
                                 .quarantine_bytes = c->quarantine_bytes};
    memcpy(out->incarnation, c->incarnation, sizeof out->incarnation);
    return PROFD_OK;
}

enum profd_status memory_each_mark(struct store *base, const struct store_scope *scope,
                                   const struct store_filter *filter,
                                   bool (*each)(void *context, const struct store_mark *mark), void *context,
                                   struct profd_error *e)
{
    const struct memory_centre *c = &memory_self(base)->centre;
    bool fine = true;
    for (size_t i = 0; i < c->mark_count && store_scope_has_tenants(scope) && fine; i++) {
        const struct memory_mark *m = &c->marks[i];
        const int64_t from = m->hour * SEGMENT_HOUR;
        if ((filter->since <= 0 || filter->since < from + SEGMENT_HOUR) &&
            (filter->until <= 0 || filter->until > from) && store_scope_has(scope, c->hosts[m->host].uid) &&
            labels_match_host(filter, c->hosts[m->host].name)) {
            fine = each(context, &(struct store_mark){
                                     .host = c->hosts[m->host].name, .hour = m->hour, .reasons = (uint32_t)m->reasons});
        }
    }
    return fine ? PROFD_OK : profd_no_memory(e);
}

enum profd_status memory_get_marks(struct store *base, const struct store_scope *scope,
                                   const struct store_filter *filter, uint32_t *reasons, struct profd_error *e)
{
    *reasons = 0;
    return memory_each_mark(base, scope, filter, store_mark_add, reasons, e);
}

void memory_verify_arrivals(const struct memory_store *s, void (*mismatch)(void *context, const char *sentence),
                            void *context)
{
    const struct memory_centre *c = &s->centre;
    struct store_amount marks = {0}, stored = c->removed;
    for (size_t i = 0; i < c->arrival_count; i++) {
        outgoing_amount_add(&marks, &c->arrivals[i].amount);
    }
    for (size_t i = 0; i < s->upload_count; i++) {
        const struct memory_upload *u = &s->uploads[i];
        const struct store_amount amount = {u->uploads, u->ticks, u->calls};
        outgoing_amount_add(&stored, store_is_tenant(u->uid) ? &amount : &(struct store_amount){0});
    }
    if (memcmp(&marks, &c->counted, sizeof marks) != 0 || memcmp(&stored, &c->counted, sizeof stored) != 0) {
        mismatch(context, "from hosts: what was counted is not what is stored");
    }
}

enum profd_status memory_get_greeting(struct store *base, struct store_centre *out, struct profd_error *e)
{
    return memory_get_centre(base, out, e);
}
