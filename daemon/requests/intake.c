#include "requests/intake.h"

#include <inttypes.h>
#include <stdlib.h>

#include "core/container.h"
#include "base/log.h"
#include "net/loop.h"
#include "requests/requests.h"

#define WAIT_QUIET_MS 50u /* after a pause of this length, the waiting uploads are stored */
#define WAIT_MOST_MS 10000u
#define FLUSH_BYTES (16u << 20)
#define FLUSH_PARCELS (LIMIT_HTTP_CONNECTIONS / 2) /* each parcel holds a connection */
#define HELD_MOST (64u << 20)
#define HELD_MOST_OF_HOST (16u << 20)
#define SERIES_PER_SECOND 1000u /* most that a centre shall get */
#define INTERVAL_MOST_MS (UINT64_C(3600) * 1000)
#define KNOWN_BYTES (16u << 20) /* of counts of hosts; above it, they begin at 0 again */

STAILQ_HEAD(intake_parcels, intake_parcel);

struct intake {
    struct intake_config config;
    struct centre_counts counts;
    struct loop_timer *timer;
    struct intake_parcels waiting; /* until the timer */
    size_t waiting_count, waiting_bytes;
    uint64_t began, latest; /* ms of loop_now: arrival of the first and the last of them */
    size_t held_bytes;      /* of all parcels that are not answered */
    size_t pending;         /* parcels that are not answered */
    struct hashmap known;   /* identity of a host → struct host_counts */
    struct hashmap shares;  /* identity of a host, or tenant → size_t: its part of held_bytes, if not 0 */
};

/* One transaction: a job of the writer. */
struct intake_flush {
    struct writer_job job;
    struct intake *intake;
    struct intake_parcels parcels;
    struct store_detail detail;
};

/* The first failure of a parcel is its answer. */
static void parcel_fail(struct intake_parcel *p, enum profd_status status, const struct profd_error *e)
{
    p->error = p->status ? p->error : *e;
    p->status = p->status ? p->status : status;
}

/* Decodes the uploads. One that cannot be read is put aside if it has a key, and refused otherwise. If it may become
 * readable later, its whole parcel is refused, so that the host sends the upload again. */
static void flush_prepare(struct writer_job *job)
{
    struct intake_parcel *p;

    STAILQ_FOREACH(p, &container_of(job, struct intake_flush, job)->parcels, next)
    {
        for (size_t i = 0; i < p->count && !p->status && !p->prepared; i++) {
            struct intake_item *x = &p->items[i];
            struct store_delivery *d = &x->delivery;
            const enum profd_status status = segment_decode(d->bytes, d->size, &x->segment, &x->error);
            const bool temporary = status == PROFD_NO_MEMORY || status == PROFD_UNKNOWN_VERSION;

            x->receipt.later = true;
            if (temporary) {
                parcel_fail(p, status, &x->error);
            }
            if (temporary || x->segment.sequence == 0) {
                x->status = status;
                continue;
            }
            x->decoded = !status;
            memcpy(d->epoch, x->segment.epoch, sizeof d->epoch);
            d->sequence = x->segment.sequence;
            d->segment = status ? NULL : &x->segment;
            d->fault = status ? x->error.sentence : NULL;
            segment_digest(d->bytes, d->size, d->digest);
        }
        p->prepared = true;
    }
}

/* Returns whether the upload is still to be stored. */
static bool item_goes(const struct intake_parcel *p, const struct intake_item *x)
{
    return !p->status && !x->status && x->receipt.later;
}

/* Stores parcels in one transaction, the first uploads of all parcels first: none waits for a long parcel. The arrays
 * have space for all of them. */
static enum profd_status flush_store(struct intake_flush *f, struct intake_parcel *first,
                                     const struct intake_parcel *end, struct store *store, struct store_delivery *list,
                                     struct store_receipt *receipts, struct intake_item **items, struct profd_error *e)
{
    struct store_centre centre;
    struct intake_parcel *p;
    size_t n = 0;
    bool more = true;

    for (size_t i = 0; more; i++) {
        more = false;
        for (p = first; p != end; p = STAILQ_NEXT(p, next)) {
            more |= i < p->count;
            if (i < p->count && item_goes(p, &p->items[i])) {
                items[n] = &p->items[i];
                list[n++] = p->items[i].delivery;
            }
        }
    }
    store_set_detail(store, &f->detail);
    TRY(store_put_segments(store, list, n, receipts, e));
    TRY(store_get_greeting(store, &centre, e));
    for (p = first; p != end; p = STAILQ_NEXT(p, next)) {
        p->centre = centre;
        TRY(store_wanted(store, p->host, loop_clock(), p->wanted, INTAKE_WANTED, &p->wanted_count, e));
    }
    while (n-- > 0) {
        items[n]->receipt = receipts[n];
    }
    return PROFD_OK;
}

static enum profd_status flush_run(struct writer_job *job, struct store *store, struct profd_error *e)
{
    struct intake_flush *f = container_of(job, struct intake_flush, job);
    struct intake_parcel *p;
    size_t n = 0;
    TRY(writer_job_check_space(job, e));

    STAILQ_FOREACH(p, &f->parcels, next)
    {
        n += p->count;
    }
    struct store_delivery *list = calloc(n, sizeof *list);
    struct store_receipt *receipts = calloc(n, sizeof *receipts);
    struct intake_item **items = calloc(n, sizeof *items);
    const bool memory = list && receipts && items;
    enum profd_status status =
        memory ? flush_store(f, STAILQ_FIRST(&f->parcels), NULL, store, list, receipts, items, e) : profd_no_memory(e);

    /* A parcel that needs too much memory must not fail those of other hosts. */
    if (status == PROFD_NO_MEMORY && memory) {
        STAILQ_FOREACH(p, &f->parcels, next)
        {
            status = p->status ? PROFD_OK : flush_store(f, p, STAILQ_NEXT(p, next), store, list, receipts, items, e);
            if (status) {
                parcel_fail(p, status, e);
            }
        }
        status = PROFD_OK;
    }
    free(list);
    free(receipts);
    free(items);
    return status;
}

static struct host_counts *find_counts(struct intake *n, const uint8_t host[STORE_HOST_SIZE])
{
    return hashmap_find(&n->known, host, STORE_HOST_SIZE);
}

static void log_receipt(const struct intake_parcel *p, const struct intake_item *x, struct host_counts *known)
{
    const struct store_receipt *r = &x->receipt;

    if (r->outcome == STORE_SEGMENT_PUT_ASIDE && !r->again) {
        log_write(LOG_LEVEL_ERROR, "upload put aside", "upload %" PRIu64 " of host %s was put aside: %s",
                  x->delivery.sequence, p->name, x->delivery.fault ? x->delivery.fault : "it cannot be read");
    } else if (r->outcome == STORE_SEGMENT_CONFLICT) {
        log_write(LOG_LEVEL_ERROR, "upload conflict",
                  "upload %" PRIu64 " of host %s was not counted: another upload with this key was counted before; "
                  "two machines may have one identity",
                  x->delivery.sequence, p->name);
    } else if (r->relabelled && known && !known->relabelled) {
        const char *label = "";

        for (size_t i = 0; i < x->segment.label_count; i++) {
            if (!strcmp(x->segment.labels[i].name, "host")) {
                label = x->segment.labels[i].value;
                break;
            }
        }
        known->relabelled = true;
        log_write(LOG_LEVEL_WARNING, "host label",
                  "host %s sends uploads with the label host=\"%s\"; they count as those of host=\"%s\"", p->name,
                  label, p->name);
    }
}

static void count_item(struct delivery_counts *n, const struct intake_item *x, bool refused)
{
    const struct store_receipt *r = &x->receipt;

    n->refused += refused;
    if (refused) {
        return;
    }
    n->again += r->again;
    n->conflicts += r->outcome == STORE_SEGMENT_CONFLICT;
    n->put_aside += !r->again && r->outcome == STORE_SEGMENT_PUT_ASIDE;
    n->counted += !r->again && r->outcome == STORE_SEGMENT_COUNTED;
    n->limited += r->limited;
}

static void parcel_end(struct intake *n, struct intake_parcel *p)
{
    struct host_counts *known = find_counts(n, p->host);

    for (size_t i = 0; i < p->count; i++) {
        struct intake_item *x = &p->items[i];
        const bool refused = p->status || x->status || x->receipt.unknown;

        if (!p->status && !x->status && x->receipt.unknown) {
            x->status = profd_error_set(&x->error, PROFD_REFUSED, "upload %" PRIu64 ": its host is not known",
                                        x->delivery.sequence);
        }
        count_item(&n->counts.segments, x, refused);
        if (known) {
            count_item(&known->segments, x, refused);
        }
        if (!refused) {
            log_receipt(p, x, known);
        }
        if (x->decoded) {
            segment_done(&x->segment);
        }
    }
    if (p->status == PROFD_FULL) {
        n->config.shared->no_space(n->config.shared->context);
    }
    intake_leave(n, p);
    p->done(p);
}

static void parcel_queue(struct intake *n, struct intake_parcel *p)
{
    STAILQ_INSERT_TAIL(&n->waiting, p, next);
    n->waiting_bytes += p->weight;
    n->waiting_count++;
}

/* Parcels with uploads left continue in another transaction, behind the other jobs of the writer. */
static void flush_done(struct writer_job *job)
{
    struct intake_flush *f = container_of(job, struct intake_flush, job);
    struct intake_parcel *p;
    bool more = false;

    while ((p = STAILQ_FIRST(&f->parcels))) {
        STAILQ_REMOVE_HEAD(&f->parcels, next);
        bool waits = false;

        if (job->status) {
            parcel_fail(p, job->status, &job->error);
        }
        for (size_t i = 0; i < p->count; i++) {
            waits |= item_goes(p, &p->items[i]);
        }
        if (waits) {
            more = true;
            parcel_queue(f->intake, p);
        } else {
            parcel_end(f->intake, p);
        }
    }
    if (more) {
        intake_flush(f->intake);
    }
    free(f);
}

static const struct writer_job_type flush_type = {.prepare = flush_prepare, .run = flush_run, .done = flush_done};

/* Passes the parcels that wait to the writer. If its queue is full, they wait on. */
void intake_flush(struct intake *n)
{
    struct intake_flush *f = n->waiting_count ? calloc(1, sizeof *f) : NULL;

    if (!n->waiting_count) {
        return;
    }
    if (f) {
        *f = (struct intake_flush){.job = {.item = {.uid = WRITER_UID_NONE, .weight = 1}, .type = &flush_type},
                                   .intake = n,
                                   .detail = n->config.detail};
        STAILQ_INIT(&f->parcels);
        STAILQ_CONCAT(&f->parcels, &n->waiting);
    }
    if (!f || !writer_put(n->config.shared->writer, &f->job)) {
        if (f) {
            STAILQ_CONCAT(&n->waiting, &f->parcels);
        }
        free(f);
        loop_timer_set(n->timer, WAIT_QUIET_MS);
        return;
    }
    n->waiting_count = n->waiting_bytes = 0;
    loop_timer_clear(n->timer);
}

static void intake_on_timer(void *context)
{
    struct intake *n = context;
    const uint64_t now = loop_now();

    if (now - n->latest >= WAIT_QUIET_MS || now - n->began >= WAIT_MOST_MS) {
        intake_flush(n);
    } else if (n->waiting_count) {
        loop_timer_set(n->timer, (unsigned)(WAIT_QUIET_MS - (now - n->latest)));
    }
}

static size_t get_share(const struct intake *n, const void *key, size_t size)
{
    const size_t *share = hashmap_find(&n->shares, key, size);

    return share ? *share : 0;
}

static bool add_to_share(struct intake *n, const void *key, size_t size, size_t weight)
{
    size_t *share = hashmap_find(&n->shares, key, size);

    if (share) {
        *share += weight;
        return true;
    }
    return hashmap_put(&n->shares, key, size, &weight, sizeof weight) != NULL;
}

static void take_from_share(struct intake *n, const void *key, size_t size, size_t weight)
{
    size_t *share = hashmap_find(&n->shares, key, size);

    *share -= weight;
    if (!*share) {
        hashmap_remove(&n->shares, share);
    }
}

/* Returns the bytes of memory that the received bytes and their decoded counts take. */
static size_t parcel_weigh(const struct intake_parcel *p)
{
    size_t weight = sizeof *p;

    for (size_t i = 0; i < p->count; i++) {
        const struct store_delivery *d = &p->items[i].delivery;

        weight += sizeof *p->items + d->size + segment_weight(d->bytes, d->size);
    }
    return weight;
}

/* A host, or the hosts of a tenant, must not take all of the memory. Each gets one parcel of any size, or several that
 * leave at least the same amount free for others. */
enum profd_status intake_reserve(struct intake *n, struct intake_parcel *p, struct profd_error *e)
{
    const size_t weight = p->weight = parcel_weigh(p), host = get_share(n, p->host, sizeof p->host),
                 tenant = get_share(n, &p->tenant, sizeof p->tenant);

    FAIL_IF(p->count > 1 && weight > HELD_MOST, e, PROFD_TOO_LARGE,
            "%zu uploads with %zu bytes after decompression; the limit is %u, or one upload", p->count, weight,
            HELD_MOST);
    FAIL_IF(n->pending && n->held_bytes + weight > HELD_MOST, e, PROFD_BUSY,
            "uploads of %zu bytes wait to be stored; the limit is %u", n->held_bytes, HELD_MOST);
    FAIL_IF(host && (host + weight > HELD_MOST_OF_HOST || n->held_bytes + host + weight > HELD_MOST), e, PROFD_BUSY,
            "%zu bytes of this host and %zu of all hosts wait to be stored; a host may have %u, and not more than is "
            "left for others",
            host, n->held_bytes, HELD_MOST_OF_HOST);
    FAIL_IF(tenant && n->held_bytes + tenant + weight > HELD_MOST, e, PROFD_BUSY,
            "%zu bytes of this tenant and %zu of all tenants wait to be stored; a tenant may not have more than is "
            "left for others of %u",
            tenant, n->held_bytes, HELD_MOST);
    if (!add_to_share(n, p->host, sizeof p->host, weight)) {
        return profd_no_memory(e);
    }
    if (!add_to_share(n, &p->tenant, sizeof p->tenant, weight)) {
        take_from_share(n, p->host, sizeof p->host, weight);
        return profd_no_memory(e);
    }
    n->held_bytes += weight;
    n->pending++;
    return PROFD_OK;
}

void intake_leave(struct intake *n, struct intake_parcel *p)
{
    n->held_bytes -= p->weight;
    n->pending--;
    take_from_share(n, p->host, sizeof p->host, p->weight);
    take_from_share(n, &p->tenant, sizeof p->tenant, p->weight);
}

void intake_put(struct intake *n, struct intake_parcel *p)
{
    parcel_queue(n, p);
    n->latest = loop_now();
    if (n->waiting_count == 1) {
        n->began = n->latest;
        loop_timer_set(n->timer, WAIT_QUIET_MS);
    }
    if (n->waiting_bytes >= FLUSH_BYTES || n->waiting_count >= FLUSH_PARCELS) {
        intake_flush(n);
    }
}

void intake_refuse(struct intake *n, const uint8_t host[STORE_HOST_SIZE], size_t count)
{
    struct host_counts *known = find_counts(n, host);

    n->counts.segments.refused += count;
    if (known) {
        known->segments.refused += count;
    }
}

void intake_arrived(struct intake *n, const struct intake_arrival *a)
{
    const struct host_counts none = {.tenant = STORE_TENANT, .backlog = -1};
    struct host_counts *known = find_counts(n, a->host);

    if (a->status == PROFD_FULL) {
        n->config.shared->no_space(n->config.shared->context);
    }
    if (a->status) {
        if (known) {
            known->refused++;
        }
        return;
    }
    known = known ? known : hashmap_put(&n->known, a->host, STORE_HOST_SIZE, &none, sizeof none);
    if (known) {
        known->tenant = a->tenant;
        known->backlog = !a->oldest ? -1 : a->oldest < a->clock ? (int64_t)(a->clock - a->oldest) : 0;
    }
    if (a->restored) {
        log_write(LOG_LEVEL_NOTICE, "host restored",
                  "host %s was restored from a backup: later counts of its live processes may be missing", a->name);
    }
}

uint32_t intake_get_wait(struct intake *n, const uint8_t host[STORE_HOST_SIZE], int64_t now, uint64_t series)
{
    uint64_t interval = (uint64_t)n->config.interval / 1000000, place, wait;
    const uint64_t wanted = series * 1000 / SERIES_PER_SECOND;

    interval = wanted > interval ? wanted : interval;
    interval = interval < INTERVAL_MOST_MS ? interval : INTERVAL_MOST_MS;
    n->counts.interval_ms = interval;
    memcpy(&place, host, sizeof place);
    wait = (place % interval + interval - (uint64_t)now / 1000000 % interval) % interval;
    return (uint32_t)(wait < interval / 2 ? wait + interval : wait);
}

enum profd_status intake_new(const struct intake_config *config, struct intake **out, struct profd_error *e)
{
    struct intake *n = calloc(1, sizeof *n);

    if (n) {
        STAILQ_INIT(&n->waiting);
        hashmap_init(&n->known, KNOWN_BYTES);
        hashmap_init(&n->shares, 0);
        n->config = *config;
        n->timer = loop_timer_new(config->shared->loop, intake_on_timer, n);
    }
    if (!n || !n->timer) {
        free(n);
        return profd_no_memory(e);
    }
    *out = n;
    return PROFD_OK;
}

void intake_free(struct intake *n)
{
    struct profd_error e;
    struct intake_parcel *p;

    if (!n) {
        return;
    }
    const enum profd_status status = profd_error_set(&e, PROFD_STOPPING, "the daemon is stopping");
    while ((p = STAILQ_FIRST(&n->waiting))) {
        STAILQ_REMOVE_HEAD(&n->waiting, next);
        parcel_fail(p, status, &e);
        parcel_end(n, p);
    }
    hashmap_clear(&n->known);
    hashmap_clear(&n->shares);
    loop_timer_free(n->timer);
    free(n);
}

void intake_set(struct intake *n, int64_t interval, const struct store_detail *detail)
{
    n->config.interval = interval;
    n->config.detail = *detail;
}

struct centre_counts *intake_get_counts(struct intake *n)
{
    return &n->counts;
}

const struct hashmap *intake_get_hosts(const struct intake *n)
{
    return &n->known;
}
