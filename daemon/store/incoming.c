/* Uploads that a centre receives from hosts (arrivals.h). */

#include "proto/hex.h"
#include "proto/sum.h"
#include "store/labels.h"
#include "store/store_internal.h"

/* The order of arrival has 63 bits of the commit and 32 of the rank: hour, start of the epoch in seconds, sequence, and
 * a rank below LIMIT_SEGMENT_ROWS. A number that does not fit is replaced by the greatest one that does. */
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

/* Returns whether a host's clock differs so much that its times are corrected. */
static bool is_off(int64_t clock)
{
    return clock > STORE_CLOCK_MOST || clock < -STORE_CLOCK_MOST;
}

/* Returns a time by the host's clock, corrected if that is off. */
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

/* Reads a segment as it is stored. name, clock and the tenant's uid are those of the host's latest arrival. detail: the
 * name becomes the label `host`; otherwise there is no such label. O(rows). */
static enum profd_status read_segment(struct arena *a, const struct store_delivery *d, const char *name, bool detail,
                                      int64_t clock, uint32_t uid, struct incoming *out, struct profd_error *e)
{
    static const int minutes[] = {1, 5, 15};
    const struct segment *s = d->segment;
    const int64_t ended = correct(s->ended, clock);
    struct store_upload *u = &out->upload;
    memset(out, 0, sizeof *out);
    u->uid = uid;
    u->received = d->received;
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

    /* The narrowest slice of the clock that contains all ends. */
    out->width = SEGMENT_HOUR;
    for (size_t i = sizeof minutes / sizeof minutes[0]; i-- > 0 && out->hour >= d->received / SEGMENT_HOUR - 1;) {
        const int64_t width = minutes[i] * SQLITE_MINUTE;
        out->width = ended <= u->end && ended / width == u->end / width ? width : out->width;
    }
    out->ended = out->width < SEGMENT_HOUR ? ended : 0;

    /* The order of first arrival in the fleet, the same whatever arrives first. */
    const uint64_t started =
        (uint64_t)d->epoch[0] << 24 | (uint64_t)d->epoch[1] << 16 | (uint64_t)d->epoch[2] << 8 | d->epoch[3];
    const uint64_t n = at_most(d->sequence, SEQUENCE_BITS);
    out->order.commit = at_most((uint64_t)out->hour, HOUR_BITS) << 42 | started << 10 | n >> SEQUENCE_LOW;
    out->order.rank = (uint32_t)(n << RANK_BITS);

    struct store_label *own = ARENA_ARRAY(a, s->label_count + 1, struct store_label),
                       *labels = ARENA_ARRAY(a, s->label_count + 1, struct store_label);
    struct store_build *builds = ARENA_ARRAY(a, s->build_count, struct store_build);
    struct share *shares = ARENA_ARRAY(a, s->build_count, struct share);
    TRY(own && labels && builds && shares ? PROFD_OK : profd_no_memory(e));
    size_t count = 0, bytes = detail ? strlen("host") + strlen(name) : 0;
    for (size_t i = 0; i < s->label_count; i++) {
        const struct message_label *l = &s->labels[i];
        if (strcmp(l->name, "host") == 0) {
            out->relabelled |= strcmp(l->value, name) != 0;
        } else {
            bytes += strlen(l->name) + strlen(l->value);
            own[count++] = (struct store_label){l->name, l->value};
        }
    }
    if (detail) {
        count = labels_add_host(own, count, name, labels);
    } else {
        labels = own;
    }
    while (count > LIMIT_LABELS || (bytes > LIMIT_LABEL_BYTES && count > 1)) { /* `host` displaces another label */
        const size_t gone = strcmp(labels[count - 1].name, "host") != 0 ? count - 1 : count - 2;
        bytes -= strlen(labels[gone].name) + strlen(labels[gone].value);
        memmove(&labels[gone], &labels[gone + 1], (count - 1 - gone) * sizeof *labels);
        count--;
        u->inexact |= (uint32_t)INEXACT_LABEL_LEFT_OUT;
    }
    u->labels = out->labels = labels;
    u->label_count = count;

    out->counts = s->counts;
    memset(shares, 0, s->build_count * sizeof *shares);
    bool saturated = share_add_counts(shares, &out->counts);
    for (size_t i = 0; i < s->build_count; i++) {
        const char *id = s->builds[i].build_id;
        TRY(buildid_parse(id, strlen(id), &builds[i].id, e));
        builds[i].name = s->builds[i].name;
        builds[i].nanoseconds = shares[i].nanoseconds;
        builds[i].calls = shares[i].calls;
    }
    u->builds = builds;
    u->build_count = s->build_count;
    u->program = s->program;
    out->uploads = s->uploads;
    for (unsigned g = 0; g < SEGMENT_GROUPS; g++) {
        out->groups.of[g] = s->processes[g];
        sum_add(&out->processes, s->processes[g], &saturated);
    }
    u->inexact |= saturated ? (uint32_t)INEXACT_SATURATED : 0;
    counts_totals(&out->counts, &u->ticks, &u->calls);
    u->stack_ticks = sum_all(out->counts.node_ticks, out->counts.node_count);
    return PROFD_OK;
}

/* Reads the rows of a segment as a sum with its shares, as if they had arrived in their order, the first of them at
 * this time. Arrays live in the arena or are those of the segment. O(rows) of a sum; of an upload, as
 * rollup_sum_add_upload. */
static enum profd_status segment_sum(const struct segment *s, const struct counts_order *at, struct arena *a,
                                     struct counts *r, struct counts_shares *spread, struct profd_error *e)
{
    ARENA_BOUNDARY(a, profd_no_memory(e));
    struct counts out = s->counts;
    if (s->shares.size > 0) {
        TRY(rollup_decode_spread(a, &s->counts, s->shares.data, s->shares.size, spread, e));
    } else {
        struct rollup_sum *sum = rollup_sum_new(a, ROLLUP_ALL);
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

#define COPY_NS (10 * SQLITE_MINUTE) /* above this, two clocks are not of one machine */
/* A stored sum of more than LARGE bytes of decoded counts takes long to rewrite. One transaction rewrites one such sum,
 * or several up to REWRITE_MOST, so that a host that sends many does not keep all others waiting. */
#define LARGE (16u << 10)
#define REWRITE_MOST (64u << 20)

/* The segments that the transaction adds to a row. */
struct addend_key {
    int64_t series, level, at;
};
/* One of them. Its counts are decoded again when they are added: all of them would take much memory. */
struct addend_part {
    struct addend_part *next;
    const struct segment *segment;
    struct counts_order order;
    struct folded row; /* without counts */
    int64_t host;
};
struct addend {
    struct addend_part *parts;
    size_t build_count;
};

struct arriving {
    struct store *s;
    struct sqlite_batch batch;
    struct store_centre centre;
    struct arena *arena;    /* of the parts of addends */
    struct hashmap addends; /* struct addend_key → struct addend */
    bool any, detail;       /* detail: of the tenant of the segment that is put */
    size_t count;           /* of segments */
    size_t rewritten;       /* bytes of the large sums that this transaction rewrites */
    int64_t hour;           /* of their arrival */
    uint64_t began;         /* number of the centre before them */
    int64_t frozen, late;   /* sqlite_frozen_day, and its block */
    struct hashmap marked;  /* uids of the tenants whose hosts have new marks */
};

/* The rows that a delivery names. name lives in the arena. */
struct delivery_rows {
    int64_t host, epoch, clock;
    uint32_t uid; /* of its tenant */
    const char *name;
    uint64_t mark, mark_number; /* of the epoch */
    int64_t newest, began;      /* epoch of the host, and when its first segment came: ns */
};

static bool is_counts(const struct store_delivery *d)
{
    return d->segment && d->segment->kind == SEGMENT_COUNTS;
}

/* Notes that two machines have the identity of this host. */
static enum profd_status note_copy(struct arriving *a, const struct store_delivery *d, const struct delivery_rows *o,
                                   struct profd_error *e)
{
    return sqlite_run(a->s, SQL_FLEET_HOST_COPIED, VALUES(INTEGER(o->host), INTEGER(d->received)), e);
}

static enum profd_status mark(struct arriving *a, int64_t hour, const struct delivery_rows *o, uint32_t reasons,
                              struct profd_error *e)
{
    bool marked = false;
    TRY(sqlite_hour_mark(a->s, hour, o->host, reasons, &marked, e));
    const bool known = !marked || hashmap_find(&a->marked, &o->uid, sizeof o->uid);
    return known || hashmap_put(&a->marked, &o->uid, sizeof o->uid, &o->uid, sizeof o->uid) ? PROFD_OK
                                                                                            : profd_no_memory(e);
}

/* Returns the hour of a segment that is not counted. */
static int64_t hour_of(const struct store_delivery *d, const struct delivery_rows *o)
{
    return (d->segment ? correct(d->segment->hour * SQLITE_HOUR, o->clock) : d->received) / SQLITE_HOUR;
}

static enum profd_status enter_arrival(struct arriving *a, const struct store_delivery *d,
                                       const struct delivery_rows *o, const struct store_amount *amount,
                                       struct store_receipt *r, struct profd_error *e)
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

/* Adds counts to the ledger, and to the addend of their row. r->later: nothing was added, because rewriting the stored
 * sum has to wait for another transaction. */
static enum profd_status add_counts(struct arriving *a, const struct store_delivery *d, const struct delivery_rows *o,
                                    struct incoming *in, struct store_receipt *r, struct profd_error *e)
{
    char text[33];
    struct addend_part *part = ARENA_NEW(a->arena, struct addend_part);
    const struct sqlite_series *series;
    enum store_outcome outcome;
    struct sqlite_sums one;
    TRY(part ? PROFD_OK : profd_no_memory(e));
    hex_put(text, d->host, STORE_HOST_SIZE);
    TRY(sqlite_intern_host(a->s, text, &part->host, e));
    TRY(sqlite_intern_limited(a->s, &in->upload, in->labels, &series, &outcome, e));
    r->limited = outcome == STORE_RELABELLED ? in->uploads : 0;
    /* Sums of hours of the frozen day do not change: what comes late waits in the widest slice. */
    const bool frozen = in->upload.end / SQLITE_DAY == a->frozen;
    const int64_t widest = sqlite_level_minutes(SQLITE_LEVEL_SLICES - 1) * SQLITE_MINUTE,
                  width = in->width > widest && frozen ? widest : in->width;
    const struct addend_key key = {series->id, sqlite_level_of(width / SQLITE_MINUTE), in->upload.end / width};
    struct addend *addend = hashmap_find(&a->addends, &key, sizeof key);
    if (!addend) {
        const struct addend fresh = {.build_count = series->build_count};
        sqlite3_stmt *q;
        bool row = false;
        TRY(sqlite_first(a->s, SQL_ROLLUP_COUNTS, VALUES(INTEGER(key.series), INTEGER(key.level), INTEGER(key.at)), &q,
                         &row, e));
        if (row) {
            struct counts_sizes sizes;
            uint64_t raw;
            size_t n;
            const uint8_t *counts = sqlite_blob(q, 0, &n);
            const size_t weight = counts_decode_sizes(counts, n, &sizes, &raw, NULL) ? 0 : counts_weigh(&sizes);
            r->later = weight > LARGE && a->rewritten > 0 && a->rewritten + weight > REWRITE_MOST;
            a->rewritten += weight > LARGE && !r->later ? weight : 0;
            sqlite_finish(q);
        }
        if (r->later) {
            return PROFD_OK;
        }
        addend = hashmap_put(&a->addends, &key, sizeof key, &fresh, sizeof fresh);
    }
    TRY(addend ? PROFD_OK : profd_no_memory(e));
    sqlite_incoming_sums(in, &one);
    (void)sqlite_batch_number(&a->batch);
    TRY(sqlite_batch_add(&a->batch, &in->upload, series, &one, e));
    if (!a->detail) {
        TRY(sqlite_host_total_add(a->s, series->id, o->host, frozen ? a->late : 0, in, e));
    }
    TRY(sqlite_await_objects(a->s, series->id, o->host, e));
    *part = (struct addend_part){.next = addend->parts,
                                 .segment = d->segment,
                                 .order = in->order,
                                 .row = {.number = (int64_t)in->order.commit,
                                         .uploads = in->uploads,
                                         .processes = in->processes,
                                         .groups = in->groups,
                                         .first = in->upload.start,
                                         .last = in->upload.end,
                                         .inexact = in->upload.inexact,
                                         .host_count = 1,
                                         .hosts = &part->host},
                                 .host = part->host};
    addend->parts = part;
    return PROFD_OK;
}

static enum profd_status put_counts(struct arriving *a, const struct store_delivery *d, const struct delivery_rows *o,
                                    struct store_receipt *r, struct profd_error *e)
{
    struct incoming in;
    const struct store_upload *u = &in.upload;
    struct store_amount amount = {0};
    int64_t before = 0, one;
    bool deleted = false, adopted = false;
    struct arena *scratch = arena_new(0);
    enum profd_status status =
        scratch ? sqlite_host_detail(a->s, o->uid, a->hour, a->began, a->count, &a->detail, e) : profd_no_memory(e);
    status = status ? status : read_segment(scratch, d, o->name, a->detail, o->clock, o->uid, &in, e);
    if (!status && o->epoch < o->newest && u->end > o->began + COPY_NS) {
        status = note_copy(a, d, o, e); /* an epoch ends before the next one of the same machine begins */
    }
    if (!status) {
        r->relabelled = in.relabelled;
        status = sqlite_find(a->s, SQL_DELETION_FIND, VALUES(TEXT(u->builds[u->program].id.text), INTEGER(u->uid)),
                             &before, &deleted, e);
    }
    deleted = deleted && u->end <= before; /* the program was deleted after all of this had ended */
    if (!status) {
        status = sqlite_find(a->s, SQL_ADOPTED_FIND,
                             VALUES(INTEGER(u->end / SQLITE_DAY), INTEGER(store_tenant_id(o->uid)),
                                    BLOB(d->epoch, sizeof d->epoch), INTEGER(d->sequence)),
                             &one, &adopted, e);
    }
    if (!status && !adopted) { /* otherwise an adopted block may contain it already */
        amount = (struct store_amount){in.uploads, u->ticks, u->calls};
    }
    if (!status && !adopted && deleted) { /* it counts as accepted and removed */
        struct sqlite_state *t = &a->s->state;
        struct sqlite_sums gone;
        sqlite_sums_init(&gone, 0);
        gone.uploads = amount.uploads;
        gone.ticks = amount.ticks;
        gone.calls = amount.calls;
        (void)sqlite_batch_number(&a->batch);
        outgoing_amount_add(&t->accepted, &amount);
        sqlite_retired_add(t, &gone);
        outgoing_amount_add(&a->centre.removed, &amount);
    } else if (!status && !adopted) {
        status = add_counts(a, d, o, &in, r, e);
    }
    arena_free(scratch);
    return status || r->later ? status : enter_arrival(a, d, o, &amount, r, e);
}

static enum profd_status put_segment(struct arriving *a, const struct store_delivery *d, struct store_receipt *r,
                                     struct profd_error *e)
{
    static const struct store_amount nothing = {0, 0, 0};
    struct store *s = a->s;
    struct delivery_rows o = {.host = 0};
    sqlite3_stmt *q;
    bool row = false, same = true;
    size_t n;
    TRY(sqlite_first(s, SQL_FLEET_HOST_FIND, VALUES(BLOB(d->host, sizeof d->host)), &q, &row, e));
    *r = (struct store_receipt){.unknown = !row};
    if (!row) {
        return PROFD_OK;
    }
    const char *name = sqlite_text(q, 1);
    o = (struct delivery_rows){.host = sqlite3_column_int64(q, 0),
                               .clock = sqlite3_column_int64(q, 2),
                               .uid = store_tenant_uid(sqlite3_column_int64(q, 5)),
                               .newest = sqlite3_column_int64(q, 6),
                               .began = sqlite3_column_int64(q, 7),
                               .name = arena_copy(a->arena, name, strlen(name))};
    sqlite_finish(q);
    TRY(o.name ? PROFD_OK : profd_no_memory(e));

    /* The hours that a host reports as lost have epochs of their own, which are not epochs of its run. */
    const struct sqlite_value key[] = {INTEGER(store_tenant_id(o.uid)), BLOB(d->epoch, sizeof d->epoch)};
    TRY(sqlite_first(s, SQL_EPOCH_FIND, key, 2, &q, &row, e));
    if (row) {
        o.epoch = sqlite3_column_int64(q, 0);
        o.mark = sqlite_u64(q, 1);
        o.mark_number = sqlite_u64(q, 2);
        sqlite_finish(q);
    } else {
        TRY(sqlite_run(s, SQL_EPOCH_ADD, key, 2, e));
        o.epoch = sqlite3_last_insert_rowid(s->db);
        TRY(!is_counts(d) ? PROFD_OK
                          : sqlite_run(s, SQL_FLEET_HOST_EPOCH,
                                       VALUES(INTEGER(o.host), INTEGER(o.epoch), INTEGER(d->received)), e));
    }

    TRY(sqlite_first(s, SQL_ARRIVAL_FIND, VALUES(INTEGER(o.epoch), INTEGER(d->sequence)), &q, &row, e));
    r->again = row || d->sequence <= o.mark;
    r->number = o.mark_number;
    if (row) {
        const uint8_t *digest = sqlite_blob(q, 0, &n);
        same = n == sizeof d->digest && memcmp(digest, d->digest, n) == 0;
        r->number = sqlite_u64(q, 1);
        r->outcome = (enum store_segment_outcome)sqlite3_column_int64(q, 2);
        sqlite_finish(q);
    }
    if (!same && (!d->segment || is_counts(d))) { /* a key alone counts nothing, and so contradicts nothing */
        r->outcome = STORE_SEGMENT_CONFLICT;
        TRY(note_copy(a, d, &o, e));
        return mark(a, hour_of(d, &o), &o, (uint32_t)INEXACT_SEGMENT_MISSING, e);
    }
    if (r->again) {
        return PROFD_OK;
    }
    r->outcome = d->segment ? STORE_SEGMENT_COUNTED : STORE_SEGMENT_PUT_ASIDE;
    if (is_counts(d)) {
        return put_counts(a, d, &o, r, e);
    }
    if (!d->segment) { /* keeps its bytes, and removes the oldest such bytes */
        const size_t size = d->size < STORE_QUARANTINE_BYTES ? d->size : 0;
        int64_t kept = 0, oldest = 0;
        TRY(sqlite_run(s, SQL_QUARANTINE_ADD,
                       VALUES(INTEGER(o.epoch), INTEGER(d->sequence), INTEGER(d->received), TEXT(d->fault),
                              INTEGER(size), BLOB(size ? d->bytes : (const uint8_t *)"", size)),
                       e));
        for (row = true; row;) {
            TRY(sqlite_find(s, SQL_QUARANTINE_BYTES, NULL, 0, &kept, &row, e));
            if (!row || (uint64_t)kept <= STORE_QUARANTINE_BYTES) {
                break;
            }
            TRY(sqlite_find(s, SQL_QUARANTINE_OLDEST, NULL, 0, &oldest, &row, e));
            TRY(row ? sqlite_run(s, SQL_QUARANTINE_EMPTY, VALUES(INTEGER(oldest)), e) : PROFD_OK);
        }
    }
    if (!d->segment || d->segment->kind == SEGMENT_DROPPED) {
        TRY(mark(a, hour_of(d, &o), &o, (uint32_t)INEXACT_SEGMENT_MISSING, e));
    }
    return enter_arrival(a, d, &o, &nothing, r, e);
}

/* Adds each addend to its row: one after the other, so that only one needs memory for its sum. */
static enum profd_status flush_addends(struct arriving *a, struct profd_error *e)
{
    struct arena *sums = arena_new(0), *counts = arena_new(0);
    enum profd_status status = sums && counts ? PROFD_OK : profd_no_memory(e);
    size_t position = 0;
    const void *key;
    for (struct addend *f; !status && (f = hashmap_next(&a->addends, &position, &key));) {
        struct addend_key k; /* keys are unaligned */
        struct folding folding;
        memcpy(&k, key, sizeof k);
        const struct sqlite_identity series = {.id = k.series, .build_count = f->build_count};
        arena_reset(sums);
        status = folding_begin(&folding, sums, e);
        for (struct addend_part *p = f->parts; !status && p; p = p->next) {
            arena_reset(counts);
            status = segment_sum(p->segment, &p->order, counts, &p->row.counts, &p->row.spread, e);
            status = status ? status : folding_add(&folding, &p->row, e);
        }
        status = status ? status : folding_finish(&folding, e);
        status = status ? status : sqlite_interval_add(a->s, sums, &series, (int)k.level, k.at, &folding.out, e);
    }
    arena_free(counts);
    arena_free(sums);
    return status;
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
    hashmap_init(&a.addends, 0);
    hashmap_init(&a.marked, 0);
    enum profd_status status = a.arena ? sqlite_centre_load(s, &a.centre, e) : profd_no_memory(e);
    if (!status && a.centre.restored && s->tier) {
        status = profd_error_set(e, PROFD_BUSY,
                                 "this centre was restored from a backup, and reads from ClickHouse now which uploads "
                                 "it had counted; send them again later");
    }
    status = status ? status : sqlite_frozen_day(s, &a.frozen, &a.late, e);
    if (!status) {
        a.began = a.centre.number;
        s->all_series.added += n;
    }
    for (size_t i = 0; !status && i < n; i++) {
        status = put_segment(&a, &list[i], &receipts[i], e);
    }
    status = status ? status : flush_addends(&a, e);
    status = status || !a.any ? status : sqlite_centre_save(s, &a.centre, e);
    size_t position = 0;
    for (const uint32_t *uid; !status && (uid = hashmap_next(&a.marked, &position, NULL));) {
        status = sqlite_centre_touch(s, sqlite_batch_number(&a.batch), *uid, *uid, e);
    }
    status = status ? status : sqlite_batch_flush(&a.batch, e);
    status = sqlite_store_end(s, status, e);
    hashmap_clear(&a.addends);
    hashmap_clear(&a.marked);
    sqlite_batch_done(&a.batch);
    arena_free(a.arena);
    return status;
}
