/* Uploads that a centre receives from hosts (arrivals.h). */
#include <stdio.h>
#include <string.h>

#include "core/shares.h"
#include "proto/hex.h"
#include "proto/sum.h"
#include "store/store_internal.h"

/* In 63 bits of the commit and 32 of the rank: hour, start of the epoch in seconds, sequence, and a rank below
 * LIMIT_SEGMENT_ROWS. What needs more bits is as the largest number that fits. */
#define HOUR_BITS 21
#define SEQUENCE_BITS 24
#define SEQUENCE_LOW 14
#define RANK_BITS 18
_Static_assert(LIMIT_SEGMENT_ROWS <= 1u << RANK_BITS, "ranks fit");
_Static_assert(SEQUENCE_LOW + RANK_BITS == 32, "ranks and the rest of the sequence fit");
_Static_assert(HOUR_BITS + 32 + SEQUENCE_BITS - SEQUENCE_LOW == 63, "the rest fits a number of the database");

static uint64_t at_most(uint64_t n, unsigned bits)
{
    const uint64_t most = (UINT64_C(1) << bits) - 1;
    return n < most ? n : most;
}

struct counts_order incoming_order(int64_t hour, const uint8_t epoch[SEGMENT_EPOCH_SIZE], uint64_t sequence)
{
    const uint64_t started = (uint64_t)epoch[0] << 24 | (uint64_t)epoch[1] << 16 | (uint64_t)epoch[2] << 8 | epoch[3];
    const uint64_t n = at_most(sequence, SEQUENCE_BITS);
    return (struct counts_order){.commit = at_most((uint64_t)hour, HOUR_BITS) << 42 | started << 10 | n >> SEQUENCE_LOW,
                                 .rank = (uint32_t)(n << RANK_BITS)};
}

static bool is_off(int64_t clock)
{
    return clock > STORE_CLOCK_MOST || clock < -STORE_CLOCK_MOST;
}

/* A time by the host's clock, corrected if that differs much. */
static int64_t correct(int64_t time, int64_t clock)
{
    int64_t result;
    if (!is_off(clock)) {
        return time;
    }
    if (__builtin_sub_overflow(time, clock, &result)) {
        return clock < 0 ? INT64_MAX : 0;
    }
    return result < 0 ? 0 : result;
}

int64_t incoming_hour(const struct segment *s, int64_t clock)
{
    return correct(s->hour * SEGMENT_HOUR, clock) / SEGMENT_HOUR;
}

/* The narrowest slice of the clock with all ends. */
static int64_t width_of(const struct store_delivery *d, int64_t clock, const struct incoming *in)
{
    static const int minutes[] = {1, 5, 15};
    const int64_t earliest = correct(d->segment->ended, clock);
    for (size_t i = 0; i < sizeof minutes / sizeof minutes[0] && in->hour >= d->received / SEGMENT_HOUR - 1; i++) {
        const int64_t width = minutes[i] * INT64_C(60000000000);
        if (earliest <= in->upload.end && earliest / width == in->upload.end / width) {
            return width;
        }
    }
    return SEGMENT_HOUR;
}

/* The segment's labels, with the host's name as the label `host`, or, without detail, without that label. */
static enum profd_status set_labels(struct arena *a, const struct segment *s, const char *name, bool detail,
                                    struct incoming *out, struct profd_error *e)
{
    static const char host[] = "host";
    struct store_label *labels = ARENA_ARRAY(a, s->label_count + 1, struct store_label);
    size_t n = 0, bytes = detail ? sizeof host - 1 + strlen(name) : 0;
    bool placed = !detail;
    if (labels == NULL) {
        return profd_no_memory(e);
    }
    for (size_t i = 0; i < s->label_count; i++) {
        const struct message_label *l = &s->labels[i];
        const int order = strcmp(l->name, host);
        bytes += order == 0 ? 0 : strlen(l->name) + strlen(l->value);
        out->relabelled |= order == 0 && strcmp(l->value, name) != 0;
        if (order > 0 && !placed) {
            labels[n++] = (struct store_label){host, name};
            placed = true;
        }
        if (order != 0) {
            labels[n++] = (struct store_label){l->name, l->value};
        }
    }
    if (!placed) {
        labels[n++] = (struct store_label){host, name};
    }
    /* Another label is left out for it. */
    while (n > LIMIT_LABELS || (bytes > LIMIT_LABEL_BYTES && n > 1)) {
        const size_t gone = strcmp(labels[n - 1].name, host) != 0 ? n - 1 : n - 2;
        bytes -= strlen(labels[gone].name) + strlen(labels[gone].value);
        memmove(&labels[gone], &labels[gone + 1], (n - 1 - gone) * sizeof *labels);
        n--;
        out->upload.inexact |= (uint32_t)INEXACT_LABEL_LEFT_OUT;
    }
    out->upload.labels = labels;
    out->upload.label_count = n;
    return PROFD_OK;
}

enum profd_status incoming_sum(const struct segment *s, const struct counts_order *at, struct arena *a,
                               struct counts *r, struct counts_shares *spread, struct profd_error *e)
{
    ARENA_BOUNDARY(a, profd_no_memory(e));
    struct counts out = s->counts;
    if (s->shares.size > 0) {
        TRY(rollup_decode_spread(a, &s->counts, s->shares.data, s->shares.size, spread, e));
    } else {
        struct rollup_sum *sum = rollup_sum_new(a);
        TRY(rollup_sum_add_upload(sum, &s->counts, 0, s->group, e));
        TRY(rollup_sum_finish(sum, &out, spread, e));
    }
    const uint32_t *rank = out.rank;
    const struct counts_histogram *histograms = out.histograms;
    out.commit = ARENA_ARRAY(a, out.arc_count, uint64_t);
    out.rank = ARENA_ARRAY(a, out.arc_count, uint32_t);
    out.histograms = ARENA_ARRAY(a, out.histogram_count, struct counts_histogram);
    for (uint32_t i = 0; i < out.arc_count; i++) {
        out.commit[i] = at->commit;
        out.rank[i] = at->rank + rank[i];
    }
    for (uint32_t i = 0; i < out.histogram_count; i++) {
        out.histograms[i] = histograms[i];
        out.histograms[i].order = (struct counts_order){at->commit, at->rank + histograms[i].order.rank};
    }
    *r = out;
    return PROFD_OK;
}

static enum profd_status set_builds(struct arena *a, const struct segment *s, struct incoming *out,
                                    struct profd_error *e)
{
    struct store_build *builds = ARENA_ARRAY(a, s->build_count, struct store_build);
    struct share *shares = ARENA_ARRAY(a, s->build_count, struct share);
    if (builds == NULL || shares == NULL) {
        return profd_no_memory(e);
    }
    memset(shares, 0, s->build_count * sizeof *shares);
    if (share_add_counts(shares, &out->counts)) {
        out->upload.inexact |= (uint32_t)INEXACT_SATURATED;
    }
    for (size_t i = 0; i < s->build_count; i++) {
        const char *id = s->builds[i].build_id;
        TRY(buildid_parse(id, strlen(id), &builds[i].id, e));
        builds[i].name = s->builds[i].name;
        builds[i].nanoseconds = shares[i].nanoseconds;
        builds[i].calls = shares[i].calls;
    }
    out->upload.builds = builds;
    out->upload.build_count = s->build_count;
    out->upload.program = s->program;
    return PROFD_OK;
}

enum profd_status incoming_read(struct arena *a, const struct store_delivery *d, const char *name, bool detail,
                                int64_t clock, uint32_t uid, struct incoming *out, struct profd_error *e)
{
    memset(out, 0, sizeof *out);
    struct store_upload *u = &out->upload;
    u->uid = uid;
    u->received = d->received;
    const struct segment *s = d->segment;
    u->start = correct(s->first, clock);
    u->end = correct(s->last, clock);
    u->inexact = s->inexact | (s->counts.saturated ? (uint32_t)INEXACT_SATURATED : 0) |
                 (is_off(clock) ? (uint32_t)INEXACT_CLOCK : 0);
    if (s->last == 0 || u->end > d->received + STORE_CLOCK_MOST) { /* the clock was wrong when the segment was made */
        u->end = d->received;
        u->start = u->start < u->end ? u->start : u->end;
        u->inexact |= (uint32_t)INEXACT_CLOCK;
    }
    out->hour = u->end / SEGMENT_HOUR;
    out->width = width_of(d, clock, out);
    out->ended = out->width < SEGMENT_HOUR ? correct(d->segment->ended, clock) : 0;
    out->order = incoming_order(out->hour, d->epoch, d->sequence);
    out->counts = d->segment->counts;
    TRY(set_labels(a, d->segment, name, detail, out, e));
    TRY(set_builds(a, d->segment, out, e));
    bool stopped = false;
    out->uploads = d->segment->uploads;
    for (unsigned g = 0; g < SEGMENT_GROUPS; g++) {
        out->groups.of[g] = d->segment->processes[g];
        sum_add(&out->processes, d->segment->processes[g], &stopped);
    }
    out->upload.inexact |= stopped ? (uint32_t)INEXACT_SATURATED : 0;
    counts_totals(&out->counts, &u->ticks, &u->calls);
    u->stack_ticks = sum_all(out->counts.node_ticks, out->counts.node_count);
    return PROFD_OK;
}

#define COPY_NS (10 * SQLITE_MINUTE) /* clocks of one machine differ less */
/* Bytes of decoded counts: a stored sum above LARGE takes long to rewrite. One transaction rewrites one such sum, or
 * several up to REWRITE_MOST. A host that sends more must not keep all others waiting. */
#define LARGE (16u << 10)
#define REWRITE_MOST (64u << 20)

/* What the transaction adds to a row. */
struct fold_key {
    int64_t series, level, at;
};
/* One segment of that. Its numbers are decoded again when they are added: all of them would take much memory. */
struct fold_part {
    struct fold_part *next;
    const struct segment *segment;
    struct counts_order order;
    struct folded row; /* without numbers */
    int64_t host;
};
struct fold {
    struct fold_part *parts;
    size_t build_count;
};

struct arriving {
    struct store *s;
    struct sqlite_batch batch;
    struct sqlite_centre centre;
    struct arena *arena;   /* of the folds' parts */
    struct hashmap folds;  /* struct fold_key → struct fold */
    bool any, detail;      /* detail: of the tenant of the segment that is put */
    size_t count;          /* of segments */
    size_t rewritten;      /* bytes of the large sums that are changed */
    int64_t hour;          /* of their arrival */
    uint64_t began;        /* number of the centre before them */
    int64_t frozen, late;  /* sqlite_frozen_day, and its block */
    struct hashmap marked; /* uids of the tenants of the hosts with new marks */
};

/* The rows behind a delivery. name lives in the arena. */
struct origin {
    int64_t host, epoch, clock;
    uint32_t uid; /* of its tenant */
    const char *name;
    uint64_t mark, mark_number; /* of the epoch */
    int64_t newest, began;      /* epoch of the host, and when its first segment came: ns */
};

static enum profd_status find_host(struct arriving *a, const struct store_delivery *d, struct origin *o,
                                   struct profd_error *e)
{
    sqlite3_stmt *q;
    bool row = false;
    enum profd_status status = sqlite_start(a->s, SQL_FLEET_HOST_FIND, VALUES(BLOB(d->host, sizeof d->host)), &q, e);
    *o = (struct origin){.host = 0};
    if (status == PROFD_OK) {
        status = sqlite_next(a->s, q, &row, e);
    }
    if (!row) {
        return status;
    }
    const char *name = sqlite_text(q, 1);
    o->host = sqlite3_column_int64(q, 0);
    o->clock = sqlite3_column_int64(q, 2);
    o->uid = store_tenant_uid(sqlite3_column_int64(q, 5));
    o->newest = sqlite3_column_int64(q, 6);
    o->began = sqlite3_column_int64(q, 7);
    o->name = arena_copy(a->arena, name, strlen(name));
    sqlite_finish(q);
    return o->name ? PROFD_OK : profd_no_memory(e);
}

static bool is_counts(const struct store_delivery *d)
{
    return d->segment && d->segment->kind == SEGMENT_COUNTS;
}

/* The epoch's row, made if there is none. The marks of a host have epochs of their own, in which it does not run. */
static enum profd_status find_epoch(struct arriving *a, const struct store_delivery *d, struct origin *o,
                                    struct profd_error *e)
{
    const int64_t tenant = store_tenant_id(o->uid);
    sqlite3_stmt *q;
    bool row = false;
    TRY(sqlite_first(a->s, SQL_EPOCH_FIND, VALUES(INTEGER(tenant), BLOB(d->epoch, sizeof d->epoch)), &q, &row, e));
    if (row) {
        o->epoch = sqlite3_column_int64(q, 0);
        o->mark = (uint64_t)sqlite3_column_int64(q, 1);
        o->mark_number = (uint64_t)sqlite3_column_int64(q, 2);
        sqlite_finish(q);
        return PROFD_OK;
    }
    TRY(sqlite_run(a->s, SQL_EPOCH_ADD, VALUES(INTEGER(tenant), BLOB(d->epoch, sizeof d->epoch)), e));
    o->epoch = sqlite3_last_insert_rowid(a->s->db);
    const struct sqlite_value values[] = {INTEGER(o->host), INTEGER(o->epoch), INTEGER(d->received)};
    return is_counts(d) ? sqlite_run(a->s, SQL_FLEET_HOST_EPOCH, values, 3, e) : PROFD_OK;
}

static enum profd_status note_copy(struct arriving *a, const struct store_delivery *d, const struct origin *o,
                                   struct profd_error *e)
{
    return sqlite_run(a->s, SQL_FLEET_HOST_COPIED, VALUES(INTEGER(o->host), INTEGER(d->received)), e);
}

static enum profd_status mark(struct arriving *a, int64_t hour, const struct origin *o, uint32_t reasons,
                              struct profd_error *e)
{
    bool marked = false;
    TRY(sqlite_hour_mark(a->s, hour, o->host, reasons, &marked, e));
    const bool known = !marked || hashmap_find(&a->marked, &o->uid, sizeof o->uid);
    return known || hashmap_put(&a->marked, &o->uid, sizeof o->uid, &o->uid, sizeof o->uid) ? PROFD_OK
                                                                                            : profd_no_memory(e);
}

/* The hour that lacks a segment which is not counted. */
static int64_t hour_of(const struct store_delivery *d, const struct origin *o)
{
    return d->segment ? incoming_hour(d->segment, o->clock) : d->received / SQLITE_HOUR;
}

/* Has this key arrived before? Then r says what became of it. */
static enum profd_status find_arrival(struct arriving *a, const struct store_delivery *d, const struct origin *o,
                                      struct store_receipt *r, struct profd_error *e)
{
    sqlite3_stmt *q;
    bool row = false, same = true;
    size_t n;
    TRY(sqlite_first(a->s, SQL_ARRIVAL_FIND, VALUES(INTEGER(o->epoch), INTEGER(d->sequence)), &q, &row, e));
    r->again = row || d->sequence <= o->mark;
    r->number = o->mark_number;
    if (row) {
        const uint8_t *digest = sqlite_blob(q, 0, &n);
        same = n == sizeof d->digest && memcmp(digest, d->digest, n) == 0;
        r->number = (uint64_t)sqlite3_column_int64(q, 1);
        r->outcome = (enum store_segment_outcome)sqlite3_column_int64(q, 2);
        sqlite_finish(q);
    }
    /* Of a key alone nothing is counted, so that it contradicts nothing. */
    if (!same && (!d->segment || is_counts(d))) {
        r->outcome = STORE_SEGMENT_CONFLICT;
        TRY(note_copy(a, d, o, e));
        return mark(a, hour_of(d, o), o, (uint32_t)INEXACT_SEGMENT_MISSING, e);
    }
    return PROFD_OK;
}

static enum profd_status enter_arrival(struct arriving *a, const struct store_delivery *d, const struct origin *o,
                                       const struct store_amount *amount, struct store_receipt *r,
                                       struct profd_error *e)
{
    a->any = true;
    a->centre.last = d->received > a->centre.last ? d->received : a->centre.last;
    r->number = ++a->centre.number;
    outgoing_amount_add(&a->centre.counted, amount);
    TRY(sqlite_run(a->s, SQL_FLEET_HOST_DELIVERED, VALUES(INTEGER(o->host), INTEGER(d->received)), e));
    return sqlite_run(a->s, SQL_ARRIVAL_ADD,
                      VALUES(INTEGER(o->epoch), INTEGER(d->sequence), BLOB(d->digest, sizeof d->digest),
                             INTEGER(r->number), INTEGER(r->outcome), INTEGER(d->received / SQLITE_SECOND),
                             INTEGER(amount->uploads), INTEGER(amount->ticks), INTEGER(amount->calls)),
                      e);
}

/* Its bytes are kept, and the oldest such bytes removed. */
static enum profd_status put_aside(struct arriving *a, const struct store_delivery *d, const struct origin *o,
                                   struct profd_error *e)
{
    const size_t size = d->size < STORE_QUARANTINE_BYTES ? d->size : 0;
    int64_t kept = 0, oldest = 0;
    bool found = true;
    TRY(sqlite_run(a->s, SQL_QUARANTINE_ADD,
                   VALUES(INTEGER(o->epoch), INTEGER(d->sequence), INTEGER(d->received), TEXT(d->fault), INTEGER(size),
                          BLOB(size ? d->bytes : (const uint8_t *)"", size)),
                   e));
    while (found) {
        TRY(sqlite_find(a->s, SQL_QUARANTINE_BYTES, NULL, 0, &kept, &found, e));
        found = found && (uint64_t)kept > STORE_QUARANTINE_BYTES;
        if (found) {
            TRY(sqlite_find(a->s, SQL_QUARANTINE_OLDEST, NULL, 0, &oldest, &found, e));
        }
        if (found) {
            TRY(sqlite_run(a->s, SQL_QUARANTINE_EMPTY, VALUES(INTEGER(oldest)), e));
        }
    }
    return mark(a, d->received / SQLITE_HOUR, o, (uint32_t)INEXACT_SEGMENT_MISSING, e);
}

/* Does the stored sum have to wait for another transaction? */
static enum profd_status weigh_sum(struct arriving *a, const struct fold_key *key, bool *later, struct profd_error *e)
{
    sqlite3_stmt *q;
    bool row = false;
    struct counts_sizes sizes;
    uint64_t raw;
    size_t n;
    TRY(sqlite_first(a->s, SQL_ROLLUP_COUNTS, VALUES(INTEGER(key->series), INTEGER(key->level), INTEGER(key->at)), &q,
                     &row, e));
    if (row) {
        const uint8_t *counts = sqlite_blob(q, 0, &n);
        const size_t weight = counts_decode_sizes(counts, n, &sizes, &raw, NULL) ? 0 : counts_weigh(&sizes);
        *later = weight > LARGE && a->rewritten > 0 && a->rewritten + weight > REWRITE_MOST;
        a->rewritten += weight > LARGE && !*later ? weight : 0;
        sqlite_finish(q);
    }
    return PROFD_OK;
}

static enum profd_status add_counts(struct arriving *a, const struct store_delivery *d, const struct origin *o,
                                    const struct incoming *in, bool *later, struct profd_error *e)
{
    char text[33];
    struct fold_part *part = ARENA_NEW(a->arena, struct fold_part);
    const struct sqlite_series *series;
    struct fold *fold = NULL;
    if (!part) {
        return profd_no_memory(e);
    }
    hex_put(text, d->host, STORE_HOST_SIZE);
    TRY(sqlite_intern_host(a->s, text, &part->host, e));
    TRY(sqlite_intern_series(a->s, &in->upload, false, &series, e));
    /* Sums of hours of the frozen day do not change: what comes late waits as if hosts sent more often. */
    const int64_t widest = sqlite_level_minutes(SQLITE_LEVEL_SLICES - 1) * SQLITE_MINUTE,
                  width = in->width > widest && in->upload.end / SQLITE_DAY == a->frozen ? widest : in->width;
    const struct fold_key key = {series->id, sqlite_level_of(width / SQLITE_MINUTE), in->upload.end / width};
    const struct fold fresh = {.build_count = series->build_count};
    fold = hashmap_find(&a->folds, &key, sizeof key);
    if (!fold) {
        TRY(weigh_sum(a, &key, later, e));
        if (*later) {
            return PROFD_OK;
        }
        fold = hashmap_put(&a->folds, &key, sizeof key, &fresh, sizeof fresh);
    }
    TRY(fold ? PROFD_OK : profd_no_memory(e));
    /* What the ledger, the series and the lists add up. */
    struct sqlite_sums one;
    sqlite_incoming_sums(in, &one);
    (void)sqlite_batch_number(&a->batch);
    TRY(sqlite_batch_add(&a->batch, &in->upload, series, &one, e));
    if (!a->detail) {
        const int64_t late = in->upload.end / SQLITE_DAY == a->frozen ? a->late : 0;
        TRY(sqlite_host_total_add(a->s, series->id, o->host, late, in, e));
    }
    TRY(sqlite_await_objects(a->s, series->id, o->host, e));
    part->next = fold->parts;
    part->segment = d->segment;
    part->order = in->order;
    part->row = (struct folded){.number = (int64_t)in->order.commit,
                                .uploads = in->uploads,
                                .processes = in->processes,
                                .groups = in->groups,
                                .first = in->upload.start,
                                .last = in->upload.end,
                                .inexact = in->upload.inexact,
                                .host_count = 1,
                                .hosts = &part->host};
    fold->parts = part;
    return PROFD_OK;
}

/* Was the program deleted after all of this had ended? */
static enum profd_status is_deleted(struct arriving *a, const struct incoming *in, bool *deleted, struct profd_error *e)
{
    const struct store_upload *u = &in->upload;
    int64_t before = 0;
    bool found = false;
    TRY(sqlite_find(a->s, SQL_DELETION_FIND, VALUES(TEXT(u->builds[u->program].id.text), INTEGER(u->uid)), &before,
                    &found, e));
    *deleted = found && u->end <= before;
    return PROFD_OK;
}

/* Sets *adopted: a block that was adopted may contain the upload already. */
static enum profd_status is_adopted(struct arriving *a, const struct store_delivery *d, const struct origin *o,
                                    const struct incoming *in, bool *adopted, struct profd_error *e)
{
    int64_t one;
    return sqlite_find(a->s, SQL_ADOPTED_FIND,
                       VALUES(INTEGER(in->upload.end / SQLITE_DAY), INTEGER(store_tenant_id(o->uid)),
                              BLOB(d->epoch, sizeof d->epoch), INTEGER(d->sequence)),
                       &one, adopted, e);
}

/* It counts as accepted and removed. */
static void remove_counts(struct arriving *a, const struct incoming *in)
{
    struct sqlite_state *t = &a->s->state;
    struct sqlite_sums gone;
    const struct store_amount amount = {in->uploads, in->upload.ticks, in->upload.calls};
    bool saturated = false;
    sqlite_sums_init(&gone, 0);
    gone.uploads = amount.uploads;
    gone.ticks = amount.ticks;
    gone.calls = amount.calls;
    (void)sqlite_batch_number(&a->batch);
    sum_add(&t->uploads, amount.uploads, &saturated);
    sum_add(&t->ticks, amount.ticks, &saturated);
    sum_add(&t->calls, amount.calls, &saturated);
    sqlite_retired_add(t, &gone);
    outgoing_amount_add(&a->centre.removed, &amount);
}

static enum profd_status put_counts(struct arriving *a, const struct store_delivery *d, const struct origin *o,
                                    struct store_receipt *r, struct profd_error *e)
{
    struct incoming in;
    bool deleted = false, adopted = false;
    struct arena *scratch = arena_new(0);
    enum profd_status status =
        scratch ? sqlite_host_detail(a->s, o->uid, a->hour, a->began, a->count, &a->detail, e) : profd_no_memory(e);
    if (status == PROFD_OK) {
        status = incoming_read(scratch, d, o->name, a->detail, o->clock, o->uid, &in, e);
    }
    if (status == PROFD_OK && o->epoch < o->newest && in.upload.end > o->began + COPY_NS) {
        status = note_copy(a, d, o, e); /* an epoch ends before the next one of the same machine begins */
    }
    if (status == PROFD_OK) {
        r->relabelled = in.relabelled;
        status = is_deleted(a, &in, &deleted, e);
    }
    if (status == PROFD_OK) {
        status = is_adopted(a, d, o, &in, &adopted, e);
    }
    if (status == PROFD_OK && adopted) {
        static const struct store_amount nothing = {0, 0, 0};
        arena_free(scratch);
        return enter_arrival(a, d, o, &nothing, r, e);
    }
    if (status == PROFD_OK && deleted) {
        remove_counts(a, &in);
    } else if (status == PROFD_OK) {
        status = add_counts(a, d, o, &in, &r->later, e);
    }
    if (status == PROFD_OK && !r->later) {
        const struct store_amount amount = {in.uploads, in.upload.ticks, in.upload.calls};
        status = enter_arrival(a, d, o, &amount, r, e);
    }
    arena_free(scratch);
    return status;
}

static enum profd_status put_new(struct arriving *a, const struct store_delivery *d, const struct origin *o,
                                 struct store_receipt *r, struct profd_error *e)
{
    static const struct store_amount nothing = {0, 0, 0};
    r->outcome = d->segment ? STORE_SEGMENT_COUNTED : STORE_SEGMENT_PUT_ASIDE;
    if (is_counts(d)) {
        return put_counts(a, d, o, r, e);
    }
    if (!d->segment) {
        TRY(put_aside(a, d, o, e));
    } else if (d->segment->kind == SEGMENT_DROPPED) {
        TRY(mark(a, hour_of(d, o), o, (uint32_t)INEXACT_SEGMENT_MISSING, e));
    }
    return enter_arrival(a, d, o, &nothing, r, e);
}

static enum profd_status put_segment(struct arriving *a, const struct store_delivery *d, struct store_receipt *r,
                                     struct profd_error *e)
{
    struct origin o;
    TRY(find_host(a, d, &o, e));
    *r = (struct store_receipt){.unknown = o.host == 0};
    if (r->unknown) {
        return PROFD_OK;
    }
    TRY(find_epoch(a, d, &o, e));
    TRY(find_arrival(a, d, &o, r, e));
    return !r->again ? put_new(a, d, &o, r, e) : PROFD_OK;
}

/* Adds up the parts and adds their sum to its row. sums and numbers are empty. */
static enum profd_status flush_fold(struct arriving *a, const struct fold_key *key, const struct fold *f,
                                    struct arena *sums, struct arena *numbers, struct profd_error *e)
{
    const struct sqlite_identity series = {.id = key->series, .build_count = f->build_count};
    struct folding folding;
    TRY(folding_begin(&folding, sums, e));
    for (struct fold_part *p = f->parts; p; p = p->next) {
        struct folded *row = &p->row;
        arena_reset(numbers);
        TRY(incoming_sum(p->segment, &p->order, numbers, &row->counts, &row->spread, e));
        TRY(folding_add(&folding, row, e));
    }
    TRY(folding_finish(&folding, e));
    return sqlite_interval_add(a->s, sums, &series, (int)key->level, key->at, &folding.out, e);
}

/* One fold after the other, so that only one needs memory for its sum. */
static enum profd_status flush_folds(struct arriving *a, struct profd_error *e)
{
    struct arena *sums = arena_new(0), *numbers = arena_new(0);
    enum profd_status status = sums && numbers ? PROFD_OK : profd_no_memory(e);
    size_t position = 0;
    const void *key;
    for (struct fold *f; status == PROFD_OK && (f = hashmap_next(&a->folds, &position, &key));) {
        struct fold_key copy; /* keys are unaligned */
        memcpy(&copy, key, sizeof copy);
        arena_reset(sums);
        status = flush_fold(a, &copy, f, sums, numbers, e);
    }
    arena_free(numbers);
    arena_free(sums);
    return status;
}

static enum profd_status put_all(struct arriving *a, const struct store_delivery *list, size_t n,
                                 struct store_receipt *receipts, struct profd_error *e)
{
    TRY(sqlite_centre_load(a->s, &a->centre, e));
    if (a->centre.restored && a->s->tier) {
        return profd_error_set(e, PROFD_BUSY,
                               "this centre was restored from a backup, and reads from ClickHouse now which uploads it "
                               "had counted; send them again later");
    }
    TRY(sqlite_frozen_day(a->s, &a->frozen, &a->late, e));
    a->began = a->centre.number;
    a->s->all_series.added += n;
    for (size_t i = 0; i < n; i++) {
        TRY(put_segment(a, &list[i], &receipts[i], e));
    }
    TRY(flush_folds(a, e));
    if (a->any) {
        TRY(sqlite_centre_save(a->s, &a->centre, e));
    }
    size_t position = 0;
    for (const uint32_t *uid; (uid = hashmap_next(&a->marked, &position, NULL));) {
        TRY(sqlite_centre_touch(a->s, sqlite_batch_number(&a->batch), *uid, *uid, e));
    }
    return sqlite_batch_flush(&a->batch, e);
}

enum profd_status store_put_segments(struct store *s, const struct store_delivery *list, size_t n,
                                     struct store_receipt *receipts, struct profd_error *e)
{
    if (n == 0) {
        return PROFD_OK;
    }
    struct arriving a = {.s = s, .count = n, .hour = list[n - 1].received / SQLITE_HOUR};
    TRY(sqlite_store_begin(s, e));
    a.arena = arena_new(0);
    sqlite_batch_init(&a.batch, s);
    hashmap_init(&a.folds, 0);
    hashmap_init(&a.marked, 0);
    enum profd_status status = a.arena ? put_all(&a, list, n, receipts, e) : profd_no_memory(e);
    status = sqlite_store_end(s, status, e);
    hashmap_clear(&a.folds);
    hashmap_clear(&a.marked);
    sqlite_batch_done(&a.batch);
    arena_free(a.arena);
    return status;
}
