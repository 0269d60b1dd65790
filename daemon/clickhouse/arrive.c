/* Segments that arrive. Every insert may be repeated, and they are in this order: series, and rows of the segments;
 * what arrivals refer to; arrivals, by which a repeat is known; what has changed. So a daemon that ends in between
 * leaves what its successor does again, when the host sends the segments again. */
#include <nettle/sha2.h>
#include <stdlib.h>
#include <string.h>

#include "clickhouse/arriving.h"
#include "clickhouse/centre.h"
#include "clickhouse/removal.h"
#include "clickhouse/segment.h"
#include "core/sum.h"
#include "store/outgoing.h"

#define MINUTE INT64_C(60000000000)
#define COPY_NS (10 * MINUTE) /* clocks of one machine differ less */
#define BUFFER_BYTES (512u << 20)

/* --- What has changed --- */

bool arriving_count(struct arriving *x, const char *program, const uint8_t series[ENGINE_SERIES_SIZE], uint32_t hour,
                    uint32_t generation, uint32_t sent)
{
    struct counted *c = ARENA_NEW(x->arena, struct counted);
    if (!c) {
        return false;
    }
    *c = (struct counted){.next = x->counted, .program = program, .hour = hour, .generation = generation, .sent = sent};
    memcpy(c->series, series, sizeof c->series);
    x->counted = c;
    return true;
}

bool arriving_touch(struct arriving *x, const char *build, uint32_t uid)
{
    struct engine_touch *more =
        arena_extend(x->arena, x->touched, x->touched_count, &x->touched_capacity, sizeof *x->touched);
    const char *copy = arena_copy(x->arena, build, strlen(build));
    if (!more || !copy) {
        return false;
    }
    x->touched = more;
    x->touched[x->touched_count++] = (struct engine_touch){.build = copy, .uid = uid};
    return true;
}

/* Hosts shall attest what names functions in their segments. */
static bool await_builds(struct arriving *x, const struct engine_host *h, const struct segment *s)
{
    for (size_t i = 0; i < s->build_count; i++) {
        struct engine_awaited *more =
            arena_extend(x->arena, x->awaited, x->awaited_count, &x->awaited_capacity, sizeof *x->awaited);
        if (!more) {
            return false;
        }
        x->awaited = more;
        x->awaited[x->awaited_count++] =
            (struct engine_awaited){.host = h->identity, .uid = h->uid, .build_id = s->builds[i].build_id};
    }
    return true;
}

static bool touch_segment(struct arriving *x, const struct segment *s, uint32_t uid)
{
    bool fine = true;
    for (size_t i = 0; i < s->build_count && fine; i++) {
        fine = arriving_touch(x, s->builds[i].build_id, uid);
    }
    return fine;
}

static enum profd_status mark(struct arriving *x, const struct engine_host *h, int64_t hour, struct profd_error *e)
{
    size_t i = 0;
    engine_put_mark(x->s, h->identity, hour, (uint32_t)INEXACT_SEGMENT_MISSING, &x->marks);
    while (i < x->marked_count && x->marked_uids[i] != h->uid) {
        i++;
    }
    if (i == sizeof x->marked_uids / sizeof x->marked_uids[0]) {
        return profd_error_set(e, PROFD_BUSY, "store: too many tenants with damaged segments at a time");
    }
    x->marked_uids[i] = h->uid;
    x->marked_count += i == x->marked_count;
    return PROFD_OK;
}

static bool change_host(struct arriving *x, const struct engine_host *h)
{
    return hashmap_find(&x->changed, h->identity, sizeof h->identity) ||
           hashmap_put(&x->changed, h->identity, sizeof h->identity, &h, sizeof(void *));
}

/* --- One segment --- */

static bool is_counts(const struct store_delivery *d)
{
    return d->segment && d->segment->kind == SEGMENT_COUNTS;
}

/* The hour that lacks a segment which is not counted. */
static int64_t hour_of(const struct store_delivery *d, const struct engine_host *h)
{
    return d->segment ? incoming_hour(d->segment, h->clock) : d->received / ENGINE_HOUR;
}

static void hash_text(struct sha256_ctx *c, const char *text)
{
    sha256_update(c, strlen(text) + 1, (const uint8_t *)text);
}

void engine_hash_series(const struct store_upload *u, uint8_t out[ENGINE_SERIES_SIZE])
{
    struct sha256_ctx c;
    const uint8_t uid[] = {(uint8_t)u->uid, (uint8_t)(u->uid >> 8), (uint8_t)(u->uid >> 16), (uint8_t)(u->uid >> 24)};
    sha256_init(&c);
    sha256_update(&c, sizeof uid, uid);
    hash_text(&c, u->builds[u->program].id.text);
    for (size_t i = 0; i < u->build_count; i++) {
        hash_text(&c, u->builds[i].id.text);
    }
    hash_text(&c, "");
    for (size_t i = 0; i < u->label_count; i++) {
        hash_text(&c, u->labels[i].name);
        hash_text(&c, u->labels[i].value);
    }
    sha256_digest(&c, ENGINE_SERIES_SIZE, out);
}

static void put_series(struct arriving *x, const struct store_upload *u, const uint8_t series[ENGINE_SERIES_SIZE])
{
    struct buffer *b = &x->series;
    rows_put_fixed(b, series, ENGINE_SERIES_SIZE);
    rows_put_u64(b, engine_number(x->s));
    rows_put_u64(b, x->s->writer);
    rows_put_u32(b, u->uid);
    rows_put_text(b, u->builds[u->program].id.text);
    rows_put_count(b, u->build_count);
    for (size_t i = 0; i < u->build_count; i++) {
        rows_put_text(b, u->builds[i].id.text);
    }
    rows_put_count(b, u->build_count);
    for (size_t i = 0; i < u->build_count; i++) {
        rows_put_text(b, u->builds[i].name);
    }
    rows_put_count(b, u->label_count);
    for (size_t i = 0; i < u->label_count; i++) {
        rows_put_text(b, u->labels[i].name);
    }
    rows_put_count(b, u->label_count);
    for (size_t i = 0; i < u->label_count; i++) {
        rows_put_text(b, u->labels[i].value);
    }
}

/* The first row of a segment. Its arrays are of the scratch arena. */
static bool make_head(struct arriving *x, const struct store_delivery *d, const struct incoming *in,
                      const struct arrival *v, struct segment_row *head)
{
    const struct store_upload *u = &in->upload;
    uint64_t *sums = ARENA_ARRAY(x->scratch, 3 * u->build_count + 1, uint64_t);
    if (!sums) {
        return false;
    }
    *head = (struct segment_row){.program = v->program,
                                 .sent = segment_row_sent(d->segment),
                                 .sequence = d->sequence,
                                 .number = v->number,
                                 .hour = v->hour,
                                 .uid = v->uid,
                                 .generation = v->generation,
                                 .host = v->slot,
                                 .first = u->start,
                                 .last = u->end,
                                 .ended = in->ended,
                                 .inexact = u->inexact,
                                 .uploads = in->uploads,
                                 .ticks = u->ticks,
                                 .calls = u->calls,
                                 .stack_ticks = u->stack_ticks,
                                 .build_count = u->build_count,
                                 .nanoseconds = sums,
                                 .into = sums + u->build_count,
                                 .touching = sums + 2 * u->build_count};
    memcpy(head->epoch, d->epoch, sizeof head->epoch);
    memcpy(head->digest, d->digest, sizeof head->digest);
    memcpy(head->series, v->series, sizeof head->series);
    memcpy(head->processes, d->segment->processes, sizeof head->processes);
    for (size_t i = 0; i < u->build_count; i++) {
        sums[i] = u->builds[i].nanoseconds;
        sums[u->build_count + i] = u->builds[i].calls;
    }
    (void)incoming_add_touching(&in->counts, sums + 2 * u->build_count, u->build_count);
    return true;
}

/* What an hour and its builds say has changed, and what hosts shall attest. */
static bool note_counts(struct arriving *x, const struct store_delivery *d, const struct engine_host *h,
                        const struct arrival *v)
{
    const char *program = arena_copy(x->arena, v->program, strlen(v->program));
    return program && await_builds(x, h, d->segment) && touch_segment(x, d->segment, v->uid) &&
           arriving_count(x, program, v->series, v->hour, v->generation, segment_row_sent(d->segment));
}

/* Adds the rows of a segment, and of its series: that is stored before. */
static enum profd_status add_rows(struct arriving *x, const struct store_delivery *d, const struct incoming *in,
                                  const struct arrival *v, struct profd_error *e)
{
    struct segment_row head;
    uint32_t count;
    enum profd_status status = PROFD_OK;
    if (!make_head(x, d, in, v, &head)) {
        return profd_no_memory(e);
    }
    if (engine_rows_are_full(&x->groups, head.sent / 24)) {
        status = arriving_insert_series(x, e);
    }
    if (status == PROFD_OK) {
        status = engine_rows_reserve(x->s, &x->groups, head.sent / 24, e);
    }
    return status == PROFD_OK ? segment_row_put(&head, d->segment, x->scratch, &x->groups.rows, &count, e) : status;
}

/* Is all of the segment there? */
static bool is_whole(const struct stored *s)
{
    return s->head.head && (uint32_t)__builtin_popcount(s->groups) == s->head.group_rows;
}

/* The segment counts where the rows of it are that are there. */
static void adopt(const struct stored *s, struct incoming *in, struct arrival *v)
{
    struct store_upload *u = &in->upload;
    v->hour = s->head.hour;
    v->uid = s->head.uid;
    v->generation = s->head.generation;
    v->slot = s->head.host;
    memcpy(v->series, s->head.series, sizeof v->series);
    if (s->head.head) {
        u->start = s->head.first;
        u->end = s->head.last;
        in->ended = s->head.ended;
        u->inexact = s->head.inexact;
    }
}

/* Another segment with this key is there, and counts. */
static enum profd_status keep_stored(struct arriving *x, const struct store_delivery *d, struct engine_host *h,
                                     const struct stored *s, struct arrival *v, struct store_receipt *r,
                                     struct profd_error *e)
{
    memcpy(v->digest, s->head.digest, sizeof v->digest);
    v->amount = (struct store_amount){s->head.uploads, s->head.ticks, s->head.calls};
    r->outcome = STORE_SEGMENT_CONFLICT;
    h->copied = d->received;
    return note_counts(x, d, h, v) ? mark(x, h, hour_of(d, h), e) : profd_no_memory(e);
}

/* May the segment be stored? If not, *gone: it belongs to a day that is being removed, and counts as accepted and
 * removed. BUSY: that is not known yet, or its rows would be among those of such a day. */
static enum profd_status check_day(const struct arriving *x, const struct store_delivery *d, const struct arrival *v,
                                   bool stored, bool *gone, struct profd_error *e)
{
    const bool late = v->hour / 24 < x->first_day;
    *gone = late && !stored;
    return !*gone && (late || segment_row_sent(d->segment) / 24 < x->first_day)
               ? profd_error_set(e, PROFD_BUSY, "store: a day of which this segment is, is being removed; try again")
               : PROFD_OK;
}

static enum profd_status put_counts(struct arriving *x, const struct store_delivery *d, struct engine_host *h,
                                    struct arrival *v, struct store_receipt *r, struct profd_error *e)
{
    struct incoming in;
    uint8_t key[ARRIVAL_KEY_SIZE];
    arrival_key(d->epoch, d->sequence, key);
    const struct stored *stored = hashmap_find(&x->stored, key, sizeof key);
    arena_reset(x->scratch);
    enum profd_status status = incoming_read(x->scratch, d, h->name, x->detail, h->clock, h->uid, &in, e);
    if (status != PROFD_OK) {
        return status;
    }
    const struct store_upload *u = &in.upload;
    /* An epoch ends before the next one of the same machine begins. */
    if (h->began != 0 && memcmp(d->epoch, h->epoch, sizeof d->epoch) != 0 && u->end > h->began + COPY_NS) {
        h->copied = d->received;
    }
    r->relabelled = in.relabelled;
    memcpy(v->program, u->builds[u->program].id.text, strlen(u->builds[u->program].id.text));
    engine_hash_series(u, v->series);
    v->hour = (uint32_t)in.hour;
    v->amount = (struct store_amount){in.uploads, u->ticks, u->calls};
    const struct deletion *gone = arriving_deletion(x, h->uid, v->program);
    v->generation = gone ? gone->generation : 0;
    const bool same = stored && memcmp(stored->head.digest, d->digest, sizeof d->digest) == 0;
    bool removed;
    status = check_day(x, d, v, stored, &removed, e);
    if (status != PROFD_OK) {
        return status;
    }
    if (stored && (same || is_whole(stored))) {
        adopt(stored, &in, v);
        if (!same) {
            return keep_stored(x, d, h, stored, v, r, e);
        }
    } else if (removed || (gone && u->end <= gone->before)) { /* it counts as accepted and removed */
        v->generation = LEDGER_NEVER;
        return PROFD_OK;
    } else if (!hashmap_find(&x->s->series, v->series, sizeof v->series)) {
        put_series(x, u, v->series);
        if (!hashmap_put(&x->s->series, v->series, sizeof v->series, "", 1)) {
            return profd_no_memory(e);
        }
    }
    if (!note_counts(x, d, h, v)) {
        return profd_no_memory(e);
    }
    v->fresh = !stored || !is_whole(stored);
    return v->fresh ? add_rows(x, d, &in, v, e) : PROFD_OK;
}

static enum profd_status yield_segment(struct arriving *x, const struct store_delivery *d, struct profd_error *e)
{
    struct incoming in;
    uint8_t key[ARRIVAL_KEY_SIZE];
    arrival_key(d->epoch, d->sequence, key);
    struct engine_host *const *h = hashmap_find(&x->hosts, d->host, sizeof d->host);
    const struct stored *other = hashmap_find(&x->stored, key, sizeof key);
    const struct arrival *settled = hashmap_find(&x->settled, key, sizeof key);
    struct arrival *own = hashmap_find(&x->keys, key, sizeof key);
    if (!h || !own) {
        return PROFD_OK;
    }
    const bool mine = settled && settled->hour == own->hour && settled->generation == own->generation &&
                      memcmp(settled->series, own->series, sizeof own->series) == 0;
    arena_reset(x->scratch);
    enum profd_status status = incoming_read(x->scratch, d, (*h)->name, x->detail, (*h)->clock, (*h)->uid, &in, e);
    if (status == PROFD_OK) {
        own->number = engine_number(x->s);
        if (other && !mine) {
            adopt(other, &in, own);
        }
        status = add_rows(x, d, &in, own, e);
    }
    return status;
}

static void put_aside(struct arriving *x, const struct store_delivery *d)
{
    const size_t size = d->size < STORE_QUARANTINE_BYTES ? d->size : 0;
    x->quarantined = true;
    rows_put_fixed(&x->quarantine, d->epoch, sizeof d->epoch);
    rows_put_u64(&x->quarantine, d->sequence);
    rows_put_u64(&x->quarantine, engine_number(x->s));
    rows_put_i64(&x->quarantine, d->received);
    rows_put_text(&x->quarantine, d->fault);
    rows_put_u64(&x->quarantine, size);
    rows_put_bytes(&x->quarantine, d->bytes, size);
}

static void put_owner(struct arriving *x, const uint8_t epoch[SEGMENT_EPOCH_SIZE], const struct epoch_owner *owner)
{
    rows_put_fixed(&x->epoch_rows, epoch, SEGMENT_EPOCH_SIZE);
    rows_put_u64(&x->epoch_rows, owner->number);
    rows_put_fixed(&x->epoch_rows, owner->host, sizeof owner->host);
}

/* The host's epoch, or, if there is none yet, a new one. */
static enum profd_status begin_epoch(struct arriving *x, const struct store_delivery *d, struct engine_host *h,
                                     struct profd_error *e)
{
    struct epoch_owner owner = {.number = engine_number(x->s)};
    if (hashmap_find(&x->epochs, d->epoch, sizeof d->epoch)) {
        return PROFD_OK;
    }
    memcpy(owner.host, d->host, sizeof owner.host);
    memcpy(h->epoch, d->epoch, sizeof h->epoch);
    h->began = d->received;
    put_owner(x, d->epoch, &owner);
    return hashmap_put(&x->epochs, d->epoch, sizeof d->epoch, &owner, sizeof owner) ? PROFD_OK : profd_no_memory(e);
}

static enum profd_status put_new(struct arriving *x, const struct store_delivery *d, struct engine_host *h,
                                 struct store_receipt *r, struct profd_error *e)
{
    uint8_t key[ARRIVAL_KEY_SIZE];
    struct arrival v = {.number = engine_number(x->s),
                        .known = true,
                        .outcome = d->segment ? STORE_SEGMENT_COUNTED : STORE_SEGMENT_PUT_ASIDE,
                        .received = d->received,
                        .slot = h->slot,
                        .hour = (uint32_t)hour_of(d, h),
                        .uid = h->uid};
    memcpy(v.digest, d->digest, sizeof v.digest);
    enum profd_status status = begin_epoch(x, d, h, e);
    r->outcome = v.outcome;
    r->number = v.number;
    h->number = d->number > h->number ? d->number : h->number;
    h->delivered = d->received > h->delivered ? d->received : h->delivered;
    if (status == PROFD_OK && is_counts(d)) {
        status = put_counts(x, d, h, &v, r, e);
    } else if (status == PROFD_OK && !d->segment) {
        put_aside(x, d);
        status = mark(x, h, d->received / ENGINE_HOUR, e);
    } else if (status == PROFD_OK && d->segment->kind == SEGMENT_DROPPED) {
        status = mark(x, h, v.hour, e);
    }
    x->fresh[x->fresh_count++] = d;
    arrival_key(d->epoch, d->sequence, key);
    return status == PROFD_OK && (!change_host(x, h) || !hashmap_put(&x->keys, key, sizeof key, &v, sizeof v))
               ? profd_no_memory(e)
               : status;
}

/* A key that has arrived. The daemon that took it may have ended before it said what has changed. */
static enum profd_status put_again(struct arriving *x, const struct store_delivery *d, struct engine_host *h,
                                   const struct arrival *v, struct store_receipt *r, struct profd_error *e)
{
    r->again = true;
    r->number = v->number;
    r->outcome = v->outcome;
    /* Of a key alone nothing is counted, so that it contradicts nothing. */
    if (v->known && memcmp(v->digest, d->digest, sizeof v->digest) != 0) {
        if (d->segment && !is_counts(d)) {
            return PROFD_OK;
        }
        r->outcome = STORE_SEGMENT_CONFLICT;
        h->copied = d->received;
        return change_host(x, h) ? mark(x, h, hour_of(d, h), e) : profd_no_memory(e);
    }
    if (!v->program[0] || !is_counts(d) || v->generation != arriving_generation(x, v->uid, v->program) ||
        arriving_was_removed(x, v)) {
        return PROFD_OK;
    }
    const char *program = arena_copy(x->arena, v->program, strlen(v->program));
    return program && arriving_count(x, program, v->series, v->hour, v->generation, segment_row_sent(d->segment)) &&
                   touch_segment(x, d->segment, v->uid)
               ? PROFD_OK
               : profd_no_memory(e);
}

/* What is known of a key; *old: only that it has arrived. */
static const struct arrival *find_key(const struct arriving *x, const struct store_delivery *d, struct arrival *old)
{
    uint8_t key[ARRIVAL_KEY_SIZE];
    struct known_range *const *ranges = hashmap_find(&x->ranges, d->epoch, sizeof d->epoch);
    arrival_key(d->epoch, d->sequence, key);
    const struct arrival *found = hashmap_find(&x->keys, key, sizeof key);
    for (const struct known_range *k = ranges ? *ranges : NULL; k && !found; k = k->next) {
        if (d->sequence >= k->first && d->sequence <= k->last) {
            *old = (struct arrival){.number = k->number, .outcome = STORE_SEGMENT_COUNTED};
            found = old;
        }
    }
    return found;
}

static enum profd_status put_segment(struct arriving *x, const struct store_delivery *d, struct store_receipt *r,
                                     struct profd_error *e)
{
    struct engine_host *const *h = hashmap_find(&x->hosts, d->host, sizeof d->host);
    *r = (struct store_receipt){.verdict = h ? STORE_ARRIVED : STORE_UNKNOWN};
    if (!h) {
        return PROFD_OK;
    }
    struct epoch_owner *owner = hashmap_find(&x->epochs, d->epoch, sizeof d->epoch);
    if (owner && memcmp(owner->host, d->host, sizeof owner->host) != 0) {
        bool heir = false;
        const enum profd_status status = engine_inherits(x->s, owner->host, *h, &heir, e);
        if (status != PROFD_OK || !heir) {
            r->verdict = STORE_FOREIGN;
            return status;
        }
        owner->number--; /* the row with the smallest counts */
        memcpy(owner->host, d->host, sizeof owner->host);
        put_owner(x, d->epoch, owner);
    }
    struct arrival old;
    const struct arrival *known = find_key(x, d, &old);
    return known ? put_again(x, d, *h, known, r, e) : put_new(x, d, *h, r, e);
}

/* --- The batch --- */

static enum profd_status put_all(struct arriving *x, struct store_receipt *receipts, struct profd_error *e)
{
    enum profd_status status = engine_choose_detail(x->s, x->list[x->n - 1].received, x->n, &x->detail, e);
    if (status == PROFD_OK) {
        status = arriving_load(x, e);
    }
    for (size_t i = 0; i < x->n && status == PROFD_OK; i++) {
        status = put_segment(x, &x->list[i], &receipts[i], e);
    }
    if (status == PROFD_OK) {
        status = arriving_insert(x, yield_segment, e);
    }
    return status == PROFD_OK && x->quarantined ? engine_limit_quarantine(x->s, e) : status;
}

#define TABLES(x)                                                                                                      \
    &(x)->hosts, &(x)->changed, &(x)->epochs, &(x)->ranges, &(x)->keys, &(x)->deletions, &(x)->stored, &(x)->removed,  \
        &(x)->settled, &(x)->rivals

static void arriving_init(struct arriving *x)
{
    struct hashmap *const tables[] = {TABLES(x)};
    struct buffer *const buffers[] = {&x->groups.rows, &x->series, &x->epoch_rows, &x->marks, &x->quarantine};
    for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++) {
        hashmap_init(tables[i], 0);
    }
    for (size_t i = 0; i < sizeof buffers / sizeof buffers[0]; i++) {
        buffer_init(buffers[i], BUFFER_BYTES);
    }
    x->groups.columns = "segment_group (" SEGMENT_ROW_ALL ")";
    x->arena = arena_new(0);
    x->scratch = arena_new(0);
    x->fresh = x->arena ? ARENA_ARRAY(x->arena, x->n, const struct store_delivery *) : NULL;
}

static void arriving_done(struct arriving *x)
{
    struct hashmap *const tables[] = {TABLES(x)};
    struct buffer *const buffers[] = {&x->groups.rows, &x->series, &x->epoch_rows, &x->marks, &x->quarantine};
    for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++) {
        hashmap_clear(tables[i]);
    }
    for (size_t i = 0; i < sizeof buffers / sizeof buffers[0]; i++) {
        buffer_done(buffers[i]);
    }
    arena_free(x->arena);
    arena_free(x->scratch);
}

enum profd_status engine_put_segments(struct store *base, const struct store_delivery *list, size_t n,
                                      struct store_receipt *receipts, struct profd_error *e)
{
    struct arriving x = {.s = engine_self(base), .list = list, .n = n};
    if (n == 0) {
        return PROFD_OK;
    }
    enum profd_status status = engine_bound_counters(x.s, e);
    arriving_init(&x);
    if (status == PROFD_OK) {
        status = x.scratch && x.fresh ? put_all(&x, receipts, e) : profd_no_memory(e);
    }
    if (status != PROFD_OK) { /* of the rows of series, some may not be stored */
        hashmap_clear(&x.s->series);
    }
    arriving_done(&x);
    return status;
}
