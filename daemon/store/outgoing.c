/* The outgoing uploads of a host (segments.h). */
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "proto/sum.h"
#include "proto/utf8.h"
#include "store/store_internal.h"

/* Data that was valid and cannot be read again is damaged. */
static enum profd_status damaged(enum profd_status status, struct profd_error *e)
{
    return status == PROFD_OK || status == PROFD_NO_MEMORY ? status : profd_error_wrap(e, PROFD_DAMAGED, "an upload");
}

void outgoing_amount_add(struct store_amount *to, const struct store_amount *more)
{
    bool ignored = false;
    sum_add(&to->uploads, more->uploads, &ignored);
    sum_add(&to->ticks, more->ticks, &ignored);
    sum_add(&to->calls, more->calls, &ignored);
}

void outgoing_amount_subtract(struct store_amount *from, const struct store_amount *part)
{
    from->uploads -= part->uploads < from->uploads ? part->uploads : from->uploads;
    from->ticks -= part->ticks < from->ticks ? part->ticks : from->ticks;
    from->calls -= part->calls < from->calls ? part->calls : from->calls;
}

/* A name that is not valid text is left out; it identifies nothing. */
static const char *name_of(const struct store_build *b)
{
    return utf8_valid((const uint8_t *)b->name, strlen(b->name)) ? b->name : "";
}

/* Encodes a segment with its counts and their shares; s->shares is not valid after the call. */
static enum profd_status encode_sum(struct segment *s, const struct counts_shares *spread, uint8_t **out, size_t *size,
                                    struct profd_error *e)
{
    uint8_t *shares = NULL;
    size_t n = 0;
    TRY(counts_encode_shares(&s->counts, spread, &shares, &n, e));
    s->shares = (struct message_bytes){shares, n};
    const enum profd_status status = segment_encode(s, out, size, e);
    free(shares);
    return status;
}

enum profd_status outgoing_open(const struct store_upload *u, const uint8_t epoch[SEGMENT_EPOCH_SIZE],
                                uint64_t sequence, uint8_t **out, size_t *size, struct profd_error *e)
{
    struct message_build *builds = calloc(u->build_count + 1, sizeof *builds);
    struct message_label *labels = calloc(u->label_count + 1, sizeof *labels);
    enum profd_status status = builds != NULL && labels != NULL ? PROFD_OK : profd_no_memory(e);
    for (size_t i = 0; i < u->build_count && status == PROFD_OK; i++) {
        builds[i] = (struct message_build){u->builds[i].id.text, name_of(&u->builds[i])};
    }
    for (size_t i = 0; i < u->label_count && status == PROFD_OK; i++) {
        labels[i] = (struct message_label){u->labels[i].name, u->labels[i].value};
    }
    if (status == PROFD_OK) {
        struct segment s = {.kind = SEGMENT_COUNTS,
                            .sequence = sequence,
                            .uid = u->uid,
                            .first = u->start,
                            .last = u->end,
                            .ended = u->end,
                            .program = u->program,
                            .build_count = u->build_count,
                            .builds = builds,
                            .label_count = u->label_count,
                            .labels = labels};
        memcpy(s.epoch, epoch, sizeof s.epoch);
        s.counts.sorted = true;
        status = encode_sum(&s, &(struct counts_shares){NULL, NULL, NULL}, out, size, e);
    }
    free(builds);
    free(labels);
    return status;
}

#define APART (5 * SEGMENT_HOUR / 3600) /* acknowledgements of one connection are closer together */

void outgoing_pace_note(struct outgoing_pace *p, int64_t now)
{
    if (now - p->acknowledged >= APART || now < p->acknowledged) {
        p->apart = p->acknowledged != 0 ? now - p->acknowledged : 0;
        p->acknowledged = now;
    }
}

void outgoing_slice(struct outgoing_pace *p, const struct store_upload *u, int64_t *since, int64_t *until)
{
    static const int minutes[] = {1, 5, 15};
    int64_t width = SEGMENT_HOUR;
    p->acknowledged = p->acknowledged != 0 ? p->acknowledged : u->received;
    const int64_t elapsed = u->received - p->acknowledged, apart = elapsed > p->apart ? elapsed : p->apart;
    for (size_t i = sizeof minutes / sizeof minutes[0];
         i-- > 0 && apart <= minutes[i] * SQLITE_MINUTE && u->end / SEGMENT_HOUR >= u->received / SEGMENT_HOUR - 1;) {
        width = minutes[i] * SQLITE_MINUTE;
    }
    *since = u->end - u->end % width;
    *until = *since + width;
}

enum profd_status outgoing_mark(enum segment_kind kind, const uint8_t epoch[SEGMENT_EPOCH_SIZE], uint64_t sequence,
                                int64_t hour, uint8_t **out, size_t *size, struct profd_error *e)
{
    struct segment s = {.kind = kind, .sequence = sequence, .last = hour * SEGMENT_HOUR};
    memcpy(s.epoch, epoch, sizeof s.epoch);
    return segment_encode(&s, out, size, e);
}

/* heads: histograms and trees. rows: bins, arcs and nodes. */
static uint64_t weight_of(uint64_t heads, uint64_t rows)
{
    return heads * LIMIT_SEGMENT_HISTOGRAM + rows;
}

static uint64_t weight_of_counts(const struct counts *c)
{
    return weight_of((uint64_t)c->histogram_count + c->tree_count,
                     (uint64_t)c->bin_count + c->arc_count + c->node_count);
}

/* An upload that is being divided into parts. histograms has capacity for all of them. */
struct cutting {
    struct arena *arena;
    const struct store_upload *upload;
    uint64_t started;
    uint32_t inexact;
    struct counts_histogram *histograms;
    struct outgoing_chunk *chunks;
    uint32_t count, capacity;
};

/* Adds the rows as a separate part. */
static enum profd_status cut(struct cutting *x, const struct counts *rows, struct profd_error *e)
{
    uint8_t *bytes;
    size_t size;
    TRY(counts_encode(rows, &bytes, &size, e));
    struct outgoing_chunk *chunks = arena_extend(x->arena, x->chunks, x->count, &x->capacity, sizeof *chunks);
    uint8_t *kept = ARENA_ARRAY(x->arena, size, uint8_t);
    if (chunks == NULL || kept == NULL) {
        free(bytes);
        return profd_no_memory(e);
    }
    memcpy(kept, bytes, size);
    free(bytes);
    const bool first = x->count == 0; /* only the first part counts the upload and its process */
    struct outgoing_chunk *c = &chunks[x->count++];
    x->chunks = chunks;
    *c = (struct outgoing_chunk){.part = {x->upload->group, x->upload->start, x->upload->end, x->inexact, first,
                                          first ? x->started : 0, kept, size},
                                 .amount = {.uploads = first},
                                 .weight = (uint32_t)weight_of_counts(rows)};
    counts_totals(rows, &c->amount.ticks, &c->amount.calls);
    c->stack_ticks = sum_all(rows->node_ticks, rows->node_count);
    return PROFD_OK;
}

/* Divides the bins: a histogram may begin in one part and continue in the next. */
static enum profd_status cut_bins(struct cutting *x, const struct counts *c, struct profd_error *e)
{
    enum profd_status status = PROFD_OK;
    struct counts part = {.histograms = x->histograms, .bin_index = c->bin_index, .bin_ticks = c->bin_ticks};
    uint32_t at = 0; /* first bin of the part */
    for (uint32_t i = 0; i < c->histogram_count && status == PROFD_OK; i++) {
        const struct counts_histogram *h = &c->histograms[i];
        for (uint32_t done = 0; status == PROFD_OK && (done < h->used || done == 0);) {
            uint64_t weight = weight_of(part.histogram_count + 1, part.bin_count);
            if (weight >= LIMIT_SEGMENT_ROWS) {
                status = cut(x, &part, e);
                at += part.bin_count;
                part.histogram_count = part.bin_count = 0;
                part.bin_index = c->bin_index + at;
                part.bin_ticks = c->bin_ticks + at;
                continue;
            }
            uint32_t left = LIMIT_SEGMENT_ROWS - (uint32_t)weight, more = h->used - done;
            more = more < left ? more : left;
            struct counts_histogram *piece = &x->histograms[part.histogram_count++];
            *piece = *h;
            piece->first = part.bin_count;
            piece->used = more;
            part.bin_count += more;
            done += more;
            if (h->used == 0) {
                break;
            }
        }
    }
    return status == PROFD_OK && part.histogram_count > 0 ? cut(x, &part, e) : status;
}

static enum profd_status cut_arcs(struct cutting *x, const struct counts *c, struct profd_error *e)
{
    enum profd_status status = PROFD_OK;
    for (uint32_t at = 0; at < c->arc_count && status == PROFD_OK;) {
        uint32_t n = c->arc_count - at < LIMIT_SEGMENT_ROWS ? c->arc_count - at : LIMIT_SEGMENT_ROWS;
        struct counts part = {.arc_count = n,
                              .from_build = c->from_build + at,
                              .to_build = c->to_build + at,
                              .from = c->from + at,
                              .to = c->to + at,
                              .calls = c->calls + at};
        status = cut(x, &part, e);
        at += n;
    }
    return status;
}

_Static_assert(LIMIT_STACK_TREES *LIMIT_SEGMENT_HISTOGRAM + LIMIT_STACK_NODES <= LIMIT_SEGMENT_ROWS,
               "the stacks of an upload fit into one part");

static enum profd_status cut_stacks(struct cutting *x, const struct counts *c, struct profd_error *e)
{
    struct counts part = *c;
    part.histogram_count = part.bin_count = part.arc_count = 0;
    return c->tree_count > 0 ? cut(x, &part, e) : PROFD_OK;
}

/* Divides an upload that is too large for one part. */
static enum profd_status cut_all(struct cutting *x, const struct counts *c, struct profd_error *e)
{
    x->histograms = ARENA_ARRAY(x->arena, c->histogram_count, struct counts_histogram);
    enum profd_status status = x->histograms != NULL ? cut_bins(x, c, e) : profd_no_memory(e);
    status = status == PROFD_OK ? cut_arcs(x, c, e) : status;
    return status == PROFD_OK ? cut_stacks(x, c, e) : status;
}

enum profd_status outgoing_split(struct arena *a, const struct store_upload *u, const struct store_amount *amount,
                                 uint64_t started, uint32_t inexact, const struct outgoing_chunk **chunks,
                                 size_t *count, struct profd_error *e)
{
    struct counts c;
    struct cutting x = {.arena = a, .upload = u, .started = started, .inexact = inexact & INEXACT_SENT};
    enum profd_status status = counts_decode(u->counts, u->counts_size, (uint32_t)u->build_count, &c, e);
    if (status != PROFD_OK) {
        return status == PROFD_NO_MEMORY ? status : profd_error_wrap(e, PROFD_INTERNAL, "an upload that was accepted");
    }
    uint64_t weight = weight_of_counts(&c);
    if (weight > LIMIT_SEGMENT_ROWS) {
        status = cut_all(&x, &c, e);
    } else if ((x.chunks = ARENA_NEW(a, struct outgoing_chunk)) != NULL) {
        x.count = 1;
        *x.chunks = (struct outgoing_chunk){
            .part = {u->group, u->start, u->end, x.inexact, amount->uploads, started, u->counts, u->counts_size},
            .amount = *amount,
            .stack_ticks = sum_all(c.node_ticks, c.node_count),
            .weight = (uint32_t)weight};
    } else {
        status = profd_no_memory(e);
    }
    counts_done(&c);
    if (status == PROFD_OK) {
        x.chunks[0].part.uploads = x.chunks[0].amount.uploads = amount->uploads;
        *chunks = x.chunks;
        *count = x.count;
    }
    return status;
}

enum profd_status outgoing_sum_begin(struct outgoing_sum *s, const uint8_t *bytes, size_t size, struct profd_error *e)
{
    struct counts_shares spread;
    const struct message_bytes *shares = &s->segment.shares;
    *s = (struct outgoing_sum){.arena = arena_new(0)};
    TRY(s->arena != NULL ? damaged(segment_decode(bytes, size, &s->segment, e), e) : profd_no_memory(e));
    s->sum = rollup_sum_new(s->arena);
    TRY(s->sum != NULL ? PROFD_OK : profd_no_memory(e));
    if (s->segment.kind != SEGMENT_COUNTS) {
        return PROFD_OK;
    }
    TRY(rollup_decode_spread(s->arena, &s->segment.counts, shares->data, shares->size, &spread, e));
    return rollup_sum_add(s->sum, &s->segment.counts, &spread, e);
}

enum profd_status outgoing_sum_add(struct outgoing_sum *s, const struct outgoing_part *part, struct profd_error *e)
{
    struct counts c;
    struct segment *to = &s->segment;
    bool stopped = false;
    enum profd_status status = counts_decode(part->counts, part->counts_size, (uint32_t)to->build_count, &c, e);
    if (status != PROFD_OK) {
        return damaged(status, e);
    }
    status = rollup_sum_add_upload(s->sum, &c, ++s->parts, part->group, e);
    counts_done(&c);
    to->first = part->start < to->first ? part->start : to->first;
    to->last = part->end > to->last ? part->end : to->last;
    to->ended = part->end < to->ended ? part->end : to->ended;
    sum_add(&to->uploads, part->uploads, &stopped);
    sum_add(&to->processes[part->group % SEGMENT_GROUPS], part->started, &stopped);
    to->inexact |= part->inexact | (stopped ? (uint32_t)INEXACT_SATURATED : 0);
    return status;
}

enum profd_status outgoing_sum_finish(struct outgoing_sum *s, uint8_t **out, size_t *size, uint32_t *weight,
                                      struct profd_error *e)
{
    ARENA_BOUNDARY(s->arena, profd_no_memory(e));
    struct segment sum = s->segment;
    struct counts_shares spread;
    TRY(rollup_sum_finish(s->sum, &sum.counts, &spread, e));
    rollup_rank(&sum.counts, s->arena);
    sum.inexact |= sum.counts.saturated ? (uint32_t)INEXACT_SATURATED : 0;
    s->stack_ticks = sum_all(sum.counts.node_ticks, sum.counts.node_count);
    s->clocks_full = sum.counts.tree_count == LIMIT_STACK_TREES;
    *weight = (uint32_t)weight_of_counts(&sum.counts);
    return encode_sum(&sum, &spread, out, size, e);
}

void outgoing_sum_done(struct outgoing_sum *s)
{
    segment_done(&s->segment);
    arena_free(s->arena);
}

enum profd_status outgoing_measure(const uint8_t *bytes, size_t size, struct store_amount *amount,
                                   uint64_t *stack_ticks, struct profd_error *e)
{
    struct segment s;
    TRY(damaged(segment_decode(bytes, size, &s, e), e));
    amount->uploads = s.uploads;
    counts_totals(&s.counts, &amount->ticks, &amount->calls);
    *stack_ticks = sum_all(s.counts.node_ticks, s.counts.node_count);
    segment_done(&s);
    return PROFD_OK;
}

struct store_amount sqlite_amount(sqlite3_stmt *q, int column)
{
    return (struct store_amount){(uint64_t)sqlite3_column_int64(q, column),
                                 (uint64_t)sqlite3_column_int64(q, column + 1),
                                 (uint64_t)sqlite3_column_int64(q, column + 2)};
}

/* A column of bytes of a known size. */
static enum profd_status read_bytes(struct store *s, sqlite3_stmt *q, int column, const char *what, uint8_t *out,
                                    size_t size, struct profd_error *e)
{
    size_t n;
    const uint8_t *bytes = sqlite_blob(q, column, &n);
    if (n != size) {
        return profd_error_set(e, PROFD_DAMAGED, "database %s: %s of %zu bytes", s->path, what, n);
    }
    memcpy(out, bytes, n);
    return PROFD_OK;
}

enum profd_status sqlite_segment_epoch(struct store *s, sqlite3_stmt *q, int column, uint8_t out[SEGMENT_EPOCH_SIZE],
                                       struct profd_error *e)
{
    return read_bytes(s, q, column, "an epoch", out, SEGMENT_EPOCH_SIZE, e);
}

enum profd_status sqlite_relay_load(struct store *s, struct sqlite_relay *out, struct profd_error *e)
{
    sqlite3_stmt *q;
    bool row = false;
    *out = (struct sqlite_relay){.known = false};
    TRY(sqlite_first(s, SQL_RELAY_GET, NULL, 0, &q, &row, e));
    if (!row) {
        return PROFD_OK;
    }
    *out = (struct sqlite_relay){.known = true,
                                 .active = sqlite3_column_int64(q, 0) != 0,
                                 .sequence = (uint64_t)sqlite3_column_int64(q, 2),
                                 .outside = sqlite_amount(q, 3),
                                 .acknowledged = sqlite_amount(q, 6),
                                 .rejected = sqlite_amount(q, 9),
                                 .withdrawn = sqlite_amount(q, 12),
                                 .met = sqlite3_column_bytes(q, 15) > 0,
                                 .backup = (uint64_t)sqlite3_column_int64(q, 16),
                                 .held = (uint64_t)sqlite3_column_int64(q, 17),
                                 .held_since = sqlite3_column_int64(q, 18),
                                 .held_hour = sqlite3_column_int64(q, 19),
                                 .apart_before = sqlite3_column_int64(q, 20),
                                 .apart_hour = sqlite3_column_int64(q, 21),
                                 .has_centre = sqlite3_column_bytes(q, 22) > 0};
    enum profd_status status = sqlite_segment_epoch(s, q, 1, out->epoch, e);
    if (status == PROFD_OK && out->met) {
        status = read_bytes(s, q, 15, "an incarnation", out->incarnation, sizeof out->incarnation, e);
    }
    if (status == PROFD_OK && out->has_centre) {
        status = read_bytes(s, q, 22, "a centre's name", out->centre, sizeof out->centre, e);
    }
    sqlite_finish(q);
    return status;
}

enum profd_status sqlite_relay_save(struct store *s, const struct sqlite_relay *r, struct profd_error *e)
{
    return sqlite_run(
        s, SQL_RELAY_SET,
        VALUES(INTEGER(r->active), BLOB(r->epoch, sizeof r->epoch), INTEGER(r->sequence), AMOUNT(r->outside),
               AMOUNT(r->acknowledged), AMOUNT(r->rejected), AMOUNT(r->withdrawn),
               BLOB(r->met ? r->incarnation : (const uint8_t *)"", r->met ? sizeof r->incarnation : 0),
               INTEGER(r->backup), INTEGER(r->held), INTEGER(r->held_since), INTEGER(r->held_hour),
               INTEGER(r->apart_before), INTEGER(r->apart_hour),
               BLOB(r->has_centre ? r->centre : (const uint8_t *)"", r->has_centre ? sizeof r->centre : 0)),
        e);
}

enum profd_status sqlite_segment_reduce(struct store *s, sqlite3_stmt *q, enum segment_kind kind,
                                        struct store_amount *gone, struct profd_error *e)
{
    uint8_t epoch[SEGMENT_EPOCH_SIZE], *bytes = NULL;
    size_t size = 0;
    const int64_t id = sqlite3_column_int64(q, 0), sequence = sqlite3_column_int64(q, 2),
                  hour = sqlite3_column_int64(q, 3);
    const struct store_amount amount = sqlite_amount(q, 4);
    enum profd_status status = sqlite_segment_epoch(s, q, 1, epoch, e);
    sqlite_finish(q);
    if (status == PROFD_OK) {
        status = outgoing_mark(kind, epoch, (uint64_t)sequence, hour, &bytes, &size, e);
    }
    if (status == PROFD_OK) {
        status = sqlite_run(s, SQL_SEGMENT_BYTES_SET, VALUES(INTEGER(id), BLOB(bytes, size)), e);
    }
    free(bytes);
    if (status == PROFD_OK) {
        status = sqlite_run(s, SQL_SEGMENT_PARTS_REMOVE, VALUES(INTEGER(id)), e);
    }
    if (status == PROFD_OK) {
        status = sqlite_run(s, SQL_SEGMENT_WITHDRAW, VALUES(INTEGER(id), INTEGER(size)), e);
    }
    outgoing_amount_add(gone, &amount);
    return status;
}

#define GAP_HOURS_MOST (366 * INT64_C(24)) /* a clock that was wrong must not fill the database */

/* The hours from the latest sign of life in the backup until now. */
static enum profd_status find_gap(struct store *s, const struct sqlite_relay *r, int64_t *from, int64_t *to,
                                  int64_t *now, struct profd_error *e)
{
    sqlite3_stmt *q;
    bool row = false;
    int64_t started = 0, opened = 0;
    TRY(sqlite_first(s, SQL_SEGMENT_GAP, NULL, 0, &q, &row, e));
    if (!row) {
        return PROFD_OK;
    }
    opened = sqlite3_column_int64(q, 0);
    *now = sqlite3_column_int64(q, 1) * SQLITE_SECOND;
    sqlite_finish(q);
    for (unsigned i = 0; i < 4; i++) { /* an epoch begins with the seconds of its start */
        started = started << 8 | r->epoch[i];
    }
    started *= SQLITE_SECOND;
    *to = *now / SQLITE_HOUR;
    *from = r->known ? (opened > started ? opened : started) / SQLITE_HOUR : *to;
    *from = *from > *to ? *to : *from;
    return PROFD_OK;
}

static enum profd_status add_mark(struct store *s, const uint8_t epoch[SEGMENT_EPOCH_SIZE], int64_t sequence,
                                  int64_t hour, int64_t now, struct profd_error *e)
{
    uint8_t *bytes = NULL;
    size_t size = 0;
    enum profd_status status = outgoing_mark(SEGMENT_DROPPED, epoch, (uint64_t)sequence, hour, &bytes, &size, e);
    if (status == PROFD_OK) {
        status = sqlite_run(s, SQL_SEGMENT_ADD,
                            VALUES(BLOB(epoch, SEGMENT_EPOCH_SIZE), INTEGER(sequence), INTEGER(0), INTEGER(hour),
                                   INTEGER(now), INTEGER(size), INTEGER(hour * SQLITE_HOUR),
                                   INTEGER((hour + 1) * SQLITE_HOUR)),
                            e);
    }
    const int64_t id = sqlite3_last_insert_rowid(s->db);
    if (status == PROFD_OK) {
        status = sqlite_run(s, SQL_SEGMENT_BYTES_SET, VALUES(INTEGER(id), BLOB(bytes, size)), e);
    }
    free(bytes);
    return status == PROFD_OK
               ? sqlite_run(s, SQL_SEGMENT_STATE_SET, VALUES(INTEGER(id), INTEGER(SEGMENT_CLOSED), INTEGER(now)), e)
               : status;
}

/* Of the hours from .. to: a year of them at most. */
static enum profd_status add_marks(struct store *s, int64_t from, int64_t to, int64_t now, struct profd_error *e)
{
    uint8_t epoch[SEGMENT_EPOCH_SIZE];
    from = to - from < GAP_HOURS_MOST ? from : to - GAP_HOURS_MOST + 1;
    if (getrandom(epoch, sizeof epoch, 0) != (ssize_t)sizeof epoch) {
        return profd_error_set(e, PROFD_IO, "there are no random numbers for an epoch");
    }
    for (unsigned i = 0; i < 4; i++) {
        epoch[i] = (uint8_t)((uint64_t)now / 1000000000u >> (24 - 8 * i));
    }
    for (int64_t hour = from; hour <= to; hour++) {
        TRY(add_mark(s, epoch, hour - from + 1, hour, now, e));
    }
    return PROFD_OK;
}

/* What began before then counts here only; the hours of the gap, and later those in which it is accepted, are marked.
 */
static enum profd_status begin_apart(struct store *s, struct sqlite_relay *r, int64_t before, int64_t from, int64_t to,
                                     int64_t now, struct profd_error *e)
{
    TRY(add_marks(s, from, to, now, e));
    r->apart_before = before > r->apart_before ? before : r->apart_before;
    r->apart_hour = to;
    return sqlite_relay_save(s, r, e);
}

enum profd_status sqlite_relay_mark_gap(struct store *s, struct profd_error *e)
{
    struct sqlite_relay r;
    struct timespec clock;
    int64_t from = 0, to = 0, now = 0;
    TRY(sqlite_relay_load(s, &r, e));
    if (!r.known || !r.active) {
        return PROFD_OK;
    }
    (void)clock_gettime(CLOCK_REALTIME, &clock); /* it cannot fail */
    TRY(sqlite_write_begin(s, e));
    enum profd_status status = find_gap(s, &r, &from, &to, &now, e);
    if (status == PROFD_OK) {
        status = begin_apart(s, &r, clock.tv_sec * SQLITE_SECOND + clock.tv_nsec, from, to, now, e);
    }
    return sqlite_write_end(s, status, e);
}

enum profd_status sqlite_relay_hold(struct store *s, struct sqlite_relay *r, struct profd_error *e)
{
    int64_t to = 0, now = 0;
    r->held = (uint64_t)s->state.number + 1;
    r->held_since = s->relay_since;
    return find_gap(s, r, &r->held_hour, &to, &now, e);
}

enum profd_status sqlite_relay_judge(struct store *s, int64_t since, enum sqlite_fate *fate, struct profd_error *e)
{
    struct sqlite_relay r;
    *fate = SQLITE_FORWARDED;
    if (since == 0 || since >= s->relay_since) {
        return PROFD_OK;
    }
    TRY(sqlite_relay_load(s, &r, e));
    if (since < r.apart_before) {
        *fate = SQLITE_APART;
    } else if (r.held && since < r.held_since) {
        *fate = SQLITE_HELD;
    }
    return PROFD_OK;
}

enum profd_status sqlite_relay_set_apart(struct store *s, int64_t end, const struct store_amount *amount,
                                         struct profd_error *e)
{
    struct sqlite_relay r;
    const int64_t hour = end / SQLITE_HOUR;
    enum profd_status status = sqlite_relay_load(s, &r, e);
    if (status == PROFD_OK && hour > r.apart_hour) {
        status = add_marks(s, r.apart_hour + 1, hour, end, e);
        r.apart_hour = hour;
    }
    outgoing_amount_add(&r.withdrawn, amount);
    return status == PROFD_OK ? sqlite_relay_save(s, &r, e) : status;
}

enum profd_status sqlite_relay_reject_held(struct store *s, struct sqlite_relay *r, struct profd_error *e)
{
    int64_t from = 0, to = 0, now = 0;
    bool found = true;
    TRY(find_gap(s, r, &from, &to, &now, e));
    while (found) {
        sqlite3_stmt *q;
        TRY(sqlite_first(s, SQL_SEGMENT_HELD_NEXT, NULL, 0, &q, &found, e));
        if (found) {
            TRY(sqlite_segment_reduce(s, q, SEGMENT_DROPPED, &r->withdrawn, e));
        }
    }
    const int64_t held_hour = r->held_hour < to ? r->held_hour : to;
    return begin_apart(s, r, r->held_since, held_hour, to, now, e);
}

#define PARTS_MOST (1 << 24) /* numbers of parts of one segment; they begin again when parts are folded */

/* An open segment's row. */
struct open_segment {
    int64_t id;
    struct store_amount amount;
    uint64_t weight, parts, part_bytes, stack_ticks;
};

static enum profd_status find_open(struct store *s, int64_t series, int64_t end, bool held, struct open_segment *out,
                                   bool *found, struct profd_error *e)
{
    sqlite3_stmt *q;
    *found = false;
    TRY(sqlite_first(
        s, held ? SQL_SEGMENT_HELD_FIND : SQL_SEGMENT_OPEN_FIND,
        VALUES(INTEGER(series), INTEGER(end / SQLITE_HOUR), BLOB(s->relay_epoch, sizeof s->relay_epoch), INTEGER(end)),
        &q, found, e));
    if (*found) {
        *out = (struct open_segment){.id = sqlite3_column_int64(q, 0),
                                     .amount = sqlite_amount(q, 1),
                                     .weight = (uint64_t)sqlite3_column_int64(q, 4),
                                     .parts = (uint64_t)sqlite3_column_int64(q, 5),
                                     .part_bytes = (uint64_t)sqlite3_column_int64(q, 6),
                                     .stack_ticks = (uint64_t)sqlite3_column_int64(q, 7)};
        sqlite_finish(q);
    }
    return PROFD_OK;
}

/* Opens a segment and assigns its number. */
static enum profd_status open_new(struct store *s, const struct store_upload *u, int64_t series,
                                  struct open_segment *out, struct profd_error *e)
{
    int64_t sequence = 0, since, until;
    bool found = false;
    uint8_t *bytes = NULL;
    size_t size = 0;
    enum profd_status status = sqlite_find(s, SQL_RELAY_NUMBER, NULL, 0, &sequence, &found, e);
    if (status == PROFD_OK && !found) {
        status = profd_error_set(e, PROFD_DAMAGED, "database %s: table relay is empty", s->path);
    }
    if (status == PROFD_OK) {
        status = outgoing_open(u, s->relay_epoch, (uint64_t)sequence, &bytes, &size, e);
    }
    outgoing_slice(&s->relay_pace, u, &since, &until);
    if (status == PROFD_OK) {
        status = sqlite_run(s, SQL_SEGMENT_ADD,
                            VALUES(BLOB(s->relay_epoch, sizeof s->relay_epoch), INTEGER(sequence), INTEGER(series),
                                   INTEGER(u->end / SQLITE_HOUR), INTEGER(u->received), INTEGER(size), INTEGER(since),
                                   INTEGER(until)),
                            e);
    }
    *out = (struct open_segment){.id = sqlite3_last_insert_rowid(s->db)};
    if (status == PROFD_OK) {
        status = sqlite_run(s, SQL_SEGMENT_BYTES_SET, VALUES(INTEGER(out->id), BLOB(bytes, size)), e);
    }
    free(bytes);
    return status;
}

static enum profd_status add_part(struct store *s, struct open_segment *to, const struct outgoing_chunk *c,
                                  struct profd_error *e)
{
    const struct outgoing_part *p = &c->part;
    bool ignored = false;
    enum profd_status status =
        sqlite_run(s, SQL_SEGMENT_PART_ADD,
                   VALUES(INTEGER(to->id * PARTS_MOST + (int64_t)to->parts), INTEGER(p->group), INTEGER(p->start),
                          INTEGER(p->end - p->start), INTEGER(p->inexact), INTEGER(p->uploads), INTEGER(p->started),
                          BLOB(p->counts, p->counts_size)),
                   e);
    outgoing_amount_add(&to->amount, &c->amount);
    sum_add(&to->stack_ticks, c->stack_ticks, &ignored);
    to->weight += c->weight;
    to->parts++;
    to->part_bytes += p->counts_size;
    return status == PROFD_OK
               ? sqlite_run(s, SQL_SEGMENT_SUMS_SET,
                            VALUES(INTEGER(to->id), INTEGER(to->amount.uploads), INTEGER(to->amount.ticks),
                                   INTEGER(to->amount.calls), INTEGER(to->weight), INTEGER(to->parts),
                                   INTEGER(to->part_bytes), INTEGER(to->stack_ticks)),
                            e)
               : status;
}

/* A segment that could become too large is closed, and another one opened. */
static enum profd_status add_chunk(struct store *s, const struct store_upload *u, int64_t series,
                                   const struct outgoing_chunk *c, bool held, struct profd_error *e)
{
    struct open_segment to;
    bool found;
    TRY(find_open(s, series, u->end, held, &to, &found, e));
    if (found && (to.weight + c->weight > LIMIT_SEGMENT_ROWS || to.parts + 1 >= PARTS_MOST)) {
        TRY(held ? PROFD_OK
                 : sqlite_run(s, SQL_SEGMENT_STATE_SET,
                              VALUES(INTEGER(to.id), INTEGER(SEGMENT_CLOSED), INTEGER(u->received)), e));
        found = false;
    }
    if (!found) {
        TRY(open_new(s, u, series, &to, e));
        if (held) {
            TRY(sqlite_run(s, SQL_SEGMENT_STATE_SET,
                           VALUES(INTEGER(to.id), INTEGER(SEGMENT_HELD), INTEGER(u->received)), e));
        }
    }
    return add_part(s, &to, c, e);
}

enum profd_status sqlite_segment_add(struct store *s, const struct store_upload *u, int64_t series,
                                     const struct sqlite_sums *one, struct profd_error *e)
{
    const struct outgoing_chunk *chunks;
    const struct store_amount amount = {one->uploads, one->ticks, one->calls};
    size_t n = 0;
    enum sqlite_fate fate;
    TRY(sqlite_relay_judge(s, u->since, &fate, e));
    if (fate == SQLITE_APART) {
        return sqlite_relay_set_apart(s, u->end, &amount, e);
    }
    struct arena *a = arena_new(0);
    enum profd_status status =
        a ? outgoing_split(a, u, &amount, one->processes, one->inexact, &chunks, &n, e) : profd_no_memory(e);
    for (size_t i = 0; status == PROFD_OK && i < n; i++) {
        status = add_chunk(s, u, series, &chunks[i], fate == SQLITE_HELD, e);
    }
    arena_free(a);
    return status;
}

static enum profd_status add_parts(struct store *s, int64_t id, struct outgoing_sum *sum, struct profd_error *e)
{
    sqlite3_stmt *q;
    TRY(sqlite_start(s, SQL_SEGMENT_PARTS, VALUES(INTEGER(id)), &q, e));
    enum profd_status status = PROFD_OK;
    while (sqlite_row(s, q, &status, e)) {
        struct outgoing_part p = {.group = (uint32_t)sqlite3_column_int64(q, 0),
                                  .start = sqlite3_column_int64(q, 1),
                                  .end = sqlite3_column_int64(q, 1) + sqlite3_column_int64(q, 2),
                                  .inexact = (uint32_t)sqlite3_column_int64(q, 3),
                                  .uploads = (uint64_t)sqlite3_column_int64(q, 4),
                                  .started = (uint64_t)sqlite3_column_int64(q, 5)};
        p.counts = sqlite_blob(q, 6, &p.counts_size);
        struct profd_error why;
        status = outgoing_sum_add(sum, &p, &why);
        if (status != PROFD_OK) {
            sqlite_finish(q);
            return profd_error_set(e, status, "%s", why.sentence);
        }
    }
    return status;
}

static enum profd_status begin_sum(struct store *s, int64_t id, struct outgoing_sum *sum, struct profd_error *e)
{
    sqlite3_stmt *q;
    bool row = false;
    size_t n;
    *sum = (struct outgoing_sum){.arena = NULL};
    TRY(sqlite_first(s, SQL_SEGMENT_BYTES_GET, VALUES(INTEGER(id)), &q, &row, e));
    const uint8_t *bytes = row ? sqlite_blob(q, 0, &n) : NULL;
    enum profd_status status = row ? outgoing_sum_begin(sum, bytes, n, e)
                                   : profd_error_set(e, PROFD_DAMAGED, "database %s: outgoing upload %lld has no bytes",
                                                     s->path, (long long)id);
    if (row) {
        sqlite_finish(q);
    }
    return status;
}

enum profd_status sqlite_segment_fold(struct store *s, int64_t id, bool *readable, struct profd_error *e)
{
    struct outgoing_sum sum;
    uint8_t *bytes = NULL;
    size_t size = 0;
    uint32_t weight = 0;
    enum profd_status status = begin_sum(s, id, &sum, e);
    if (status == PROFD_OK) {
        status = add_parts(s, id, &sum, e);
    }
    if (status == PROFD_OK && sum.parts > 0) {
        status = outgoing_sum_finish(&sum, &bytes, &size, &weight, e);
    }
    const bool changed = status == PROFD_OK && sum.parts > 0;
    outgoing_sum_done(&sum);
    *readable = s->broken != PROFD_OK || status != PROFD_DAMAGED;
    if (!*readable) {
        return PROFD_OK;
    }
    if (changed) {
        status = sqlite_run(s, SQL_SEGMENT_BYTES_SET, VALUES(INTEGER(id), BLOB(bytes, size)), e);
    }
    free(bytes);
    if (changed && status == PROFD_OK) {
        status = sqlite_run(s, SQL_SEGMENT_PARTS_REMOVE, VALUES(INTEGER(id)), e);
    }
    /* Folding keeps the ticks of stacks, unless those of more clocks are left out than fit. */
    return changed && status == PROFD_OK ? sqlite_run(s, SQL_SEGMENT_FOLDED,
                                                      VALUES(INTEGER(id), INTEGER(weight), INTEGER(size),
                                                             sum.clocks_full ? INTEGER(sum.stack_ticks) : NOTHING),
                                                      e)
                                         : status;
}

enum profd_status sqlite_segment_fold_next(struct store *s, bool *more, struct profd_error *e)
{
    int64_t id = 0;
    bool readable;
    TRY(sqlite_find(s, SQL_SEGMENT_TO_FOLD, VALUES(INTEGER(OUTGOING_PARTS), INTEGER(OUTGOING_PART_BYTES)), &id, more,
                    e));
    if (!*more) {
        return PROFD_OK;
    }
    TRY(sqlite_segment_fold(s, id, &readable, e));
    return !readable
               ? sqlite_run(s, SQL_SEGMENT_STATE_SET, VALUES(INTEGER(id), INTEGER(SEGMENT_UNREADABLE), INTEGER(0)), e)
               : PROFD_OK;
}

/* Of the next segment of the series, only its key remains. */
static enum profd_status withdraw_one(struct store *s, int64_t series, struct store_amount *withdrawn, bool *found,
                                      struct profd_error *e)
{
    sqlite3_stmt *q;
    TRY(sqlite_first(s, SQL_SEGMENT_OF_SERIES, VALUES(INTEGER(series)), &q, found, e));
    return *found ? sqlite_segment_reduce(s, q, SEGMENT_WITHDRAWN, withdrawn, e) : PROFD_OK;
}

enum profd_status sqlite_segment_withdraw(struct store *s, int64_t series, struct profd_error *e)
{
    struct sqlite_relay r;
    bool found = true;
    TRY(sqlite_relay_load(s, &r, e));
    if (!r.known) {
        return PROFD_OK;
    }
    while (found) {
        TRY(withdraw_one(s, series, &r.withdrawn, &found, e));
    }
    return sqlite_relay_save(s, &r, e);
}

/* Adds up the segments by state; out has what the table relay lacks. pending: segments that are not acknowledged. */
static enum profd_status sum_states(struct store *s, struct store_relay *out, struct store_amount *pending,
                                    struct profd_error *e)
{
    sqlite3_stmt *q;
    TRY(sqlite_start(s, SQL_SEGMENT_STATES, NULL, 0, &q, e));
    enum profd_status status = PROFD_OK;
    while (sqlite_row(s, q, &status, e)) {
        const int64_t state = sqlite3_column_int64(q, 0), opened = sqlite3_column_int64(q, 5);
        const struct store_amount amount = sqlite_amount(q, 1);
        if (state == SEGMENT_ACKNOWLEDGED || state == SEGMENT_REMOVED) {
            out->kept_segments += state == SEGMENT_ACKNOWLEDGED;
            out->kept_bytes += (uint64_t)sqlite3_column_int64(q, 4);
            continue;
        }
        const bool sealed = state == SEGMENT_SEALED;
        outgoing_amount_add(sealed ? &out->sealed : &out->open, &amount);
        outgoing_amount_add(pending, &amount);
        out->sealed_segments += sealed;
        out->open_segments += !sealed;
        out->unreadable_segments += state == SEGMENT_UNREADABLE;
        out->oldest = out->oldest == 0 || opened < out->oldest ? opened : out->oldest;
    }
    return status;
}

static struct store_amount accepted_of(const struct sqlite_state *t)
{
    return (struct store_amount){t->uploads, t->ticks, t->calls};
}

/* Uploads that were accepted and belong to no segment were accepted while nothing was forwarded. */
static enum profd_status settle_outside(struct store *s, struct sqlite_relay *r, struct profd_error *e)
{
    struct store_relay ignored = {.active = false};
    struct store_amount pending = {0};
    enum profd_status status = sum_states(s, &ignored, &pending, e);
    r->outside = accepted_of(&s->state);
    outgoing_amount_subtract(&r->outside, &r->acknowledged);
    outgoing_amount_subtract(&r->outside, &r->withdrawn);
    outgoing_amount_subtract(&r->outside, &pending);
    return status;
}

enum profd_status sqlite_relay_settle(struct store *s, struct profd_error *e)
{
    struct sqlite_relay r;
    enum profd_status status = sqlite_relay_load(s, &r, e);
    const bool begins = s->relaying && (!r.active || memcmp(r.epoch, s->relay_epoch, sizeof r.epoch) != 0);
    const bool ends = !s->relaying && r.active;
    if (status == PROFD_OK && begins && !r.active) {
        status = settle_outside(s, &r, e);
    }
    if (status == PROFD_OK && s->relaying && s->relay_unresolved && !r.held) {
        status = sqlite_relay_hold(s, &r, e); /* of the epoch before */
    }
    if (begins) {
        r.sequence = 0;
        memcpy(r.epoch, s->relay_epoch, sizeof r.epoch);
    }
    r.active = s->relaying;
    if (status == PROFD_OK && (begins || ends)) {
        status = sqlite_relay_save(s, &r, e);
    }
    s->relay_settled = status == PROFD_OK;
    return status;
}

enum profd_status store_relay_begin(struct store *s, const uint8_t epoch[SEGMENT_EPOCH_SIZE], int64_t since,
                                    struct profd_error *e)
{
    (void)e;
    if (!s->relaying) { /* otherwise another machine has the epoch before */
        s->relay_unresolved = true;
        s->relay_since = since;
    }
    s->relaying = true;
    s->relay_settled = false;
    memcpy(s->relay_epoch, epoch, sizeof s->relay_epoch);
    return PROFD_OK;
}

static enum profd_status resolve(struct store *s, const struct store_verdict *verdict, struct profd_error *e)
{
    struct sqlite_relay r;
    TRY(s->relay_settled ? PROFD_OK : sqlite_relay_settle(s, e));
    TRY(sqlite_relay_load(s, &r, e));
    TRY(verdict->went_back ? sqlite_relay_reject_held(s, &r, e) : sqlite_run(s, SQL_SEGMENT_HELD_RELEASE, NULL, 0, e));
    r.held = 0;
    TRY(sqlite_relay_save(s, &r, e));
    if (verdict->went_back && (int64_t)verdict->number > s->state.number) {
        s->state.number = (int64_t)verdict->number;
        TRY(sqlite_save_state(s, e));
    }
    return PROFD_OK;
}

enum profd_status store_relay_resolve(struct store *s, const struct store_verdict *verdict, bool *apart,
                                      struct profd_error *e)
{
    struct sqlite_relay r;
    enum profd_status status = sqlite_relay_load(s, &r, e);
    *apart = false;
    if (status != PROFD_OK || (!r.held && (!s->relay_unresolved || !verdict->went_back))) {
        s->relay_unresolved &= status != PROFD_OK;
        return status;
    }
    TRY(sqlite_write_begin(s, e));
    TRY(sqlite_write_end(s, resolve(s, verdict, e), e));
    *apart = verdict->went_back;
    s->relay_unresolved = false;
    return PROFD_OK;
}

/* A row of SQL_SEGMENT_KEPT_NEXT. */
struct kept {
    int64_t id, sequence, hour, size;
    uint8_t epoch[SEGMENT_EPOCH_SIZE];
    bool removed, rejected;
    struct store_amount amount;
};

static enum profd_status next_kept(struct store *s, struct kept *out, bool *found, struct profd_error *e)
{
    sqlite3_stmt *q;
    TRY(sqlite_first(s, SQL_SEGMENT_KEPT_NEXT, NULL, 0, &q, found, e));
    if (!*found) {
        return PROFD_OK;
    }
    *out = (struct kept){.id = sqlite3_column_int64(q, 0),
                         .sequence = sqlite3_column_int64(q, 2),
                         .hour = sqlite3_column_int64(q, 3),
                         .removed = sqlite3_column_int64(q, 4) == SEGMENT_REMOVED,
                         .amount = sqlite_amount(q, 5),
                         .rejected = sqlite3_column_int64(q, 8) != STORE_SEGMENT_COUNTED,
                         .size = sqlite3_column_int64(q, 9)};
    enum profd_status status = sqlite_segment_epoch(s, q, 1, out->epoch, e);
    sqlite_finish(q);
    return status;
}

/* Seals an acknowledged segment again; of one that was removed, only its key. */
static enum profd_status seal_again(struct store *s, struct sqlite_relay *r, struct kept *k, struct profd_error *e)
{
    enum profd_status status = PROFD_OK;
    if (k->removed) {
        uint8_t *bytes = NULL;
        size_t size = 0;
        status = outgoing_mark(SEGMENT_DROPPED, k->epoch, (uint64_t)k->sequence, k->hour, &bytes, &size, e);
        if (status == PROFD_OK) {
            status = sqlite_run(s, SQL_SEGMENT_BYTES_SET, VALUES(INTEGER(k->id), BLOB(bytes, size)), e);
        }
        free(bytes);
        k->size = (int64_t)size;
    } else {
        outgoing_amount_subtract(&r->acknowledged, &k->amount);
        if (k->rejected) {
            outgoing_amount_subtract(&r->rejected, &k->amount);
        }
    }
    return status == PROFD_OK ? sqlite_run(s, SQL_SEGMENT_AGAIN, VALUES(INTEGER(k->id), INTEGER(k->size)), e) : status;
}

static enum profd_status seal_all_again(struct store *s, struct sqlite_relay *r, uint64_t *again, struct profd_error *e)
{
    struct kept k;
    bool found = true;
    enum profd_status status = PROFD_OK;
    while (status == PROFD_OK && (status = next_kept(s, &k, &found, e)) == PROFD_OK && found) {
        status = seal_again(s, r, &k, e);
        ++*again;
    }
    return status;
}

enum profd_status store_relay_meet(struct store *s, const uint8_t centre[STORE_CENTRE_SIZE],
                                   const uint8_t incarnation[STORE_INCARNATION_SIZE], uint64_t backup, uint64_t *again,
                                   struct profd_error *e)
{
    struct sqlite_relay r;
    uint64_t count = 0;
    enum profd_status status = sqlite_relay_load(s, &r, e);
    *again = 0;
    if (status != PROFD_OK || !r.known) {
        return status;
    }
    if (centre && r.has_centre && memcmp(r.centre, centre, sizeof r.centre) != 0) {
        return profd_error_set(e, PROFD_REFUSED, "the relay has reached another centre than that of this host");
    }
    const bool same = r.met && memcmp(r.incarnation, incarnation, sizeof r.incarnation) == 0;
    if (same && backup <= r.backup && (!centre || r.has_centre)) {
        return PROFD_OK;
    }
    status = sqlite_write_begin(s, e);
    if (status != PROFD_OK) {
        return status;
    }
    if (!same && r.met) {
        status = seal_all_again(s, &r, &count, e);
    }
    r.met = true;
    r.backup = backup;
    memcpy(r.incarnation, incarnation, sizeof r.incarnation);
    if (centre) {
        r.has_centre = true;
        memcpy(r.centre, centre, sizeof r.centre);
    }
    if (status == PROFD_OK) {
        status = sqlite_relay_save(s, &r, e);
    }
    status = sqlite_write_end(s, status, e);
    *again = status == PROFD_OK ? count : 0;
    return status;
}

/* Withdraws what is sealed, and removes what is kept for the centre. */
static enum profd_status leave_centre(struct store *s, struct sqlite_relay *r, struct profd_error *e)
{
    bool found = true;
    while (found) {
        sqlite3_stmt *q;
        TRY(sqlite_first(s, SQL_SEGMENT_SEALED_NEXT, NULL, 0, &q, &found, e));
        if (found) {
            TRY(sqlite_segment_reduce(s, q, SEGMENT_WITHDRAWN, &r->withdrawn, e));
        }
    }
    TRY(sqlite_run(s, SQL_SEGMENT_KEPT_BYTES_FORGET, NULL, 0, e));
    TRY(sqlite_run(s, SQL_SEGMENT_KEPT_FORGET, NULL, 0, e));
    r->met = r->has_centre = false;
    r->backup = 0;
    return sqlite_relay_save(s, r, e);
}

enum profd_status store_relay_move(struct store *s, uint64_t *withdrawn, struct profd_error *e)
{
    struct sqlite_relay r;
    TRY(sqlite_relay_load(s, &r, e));
    if (!r.known) {
        return profd_error_set(e, PROFD_NOT_FOUND, "this host has never forwarded anything: there is nothing to move");
    }
    const uint64_t before = r.withdrawn.uploads;
    TRY(sqlite_write_begin(s, e));
    TRY(sqlite_write_end(s, leave_centre(s, &r, e), e));
    *withdrawn = r.withdrawn.uploads - before;
    return PROFD_OK;
}

static enum profd_status seal_next(struct store *s, uint64_t through, int64_t now, bool *found, uint64_t *sealed,
                                   struct profd_error *e)
{
    int64_t id = 0;
    bool readable = true;
    TRY(sqlite_find(s, SQL_SEGMENT_TO_SEAL, VALUES(INTEGER(through)), &id, found, e));
    if (!*found) {
        return PROFD_OK;
    }
    TRY(sqlite_segment_fold(s, id, &readable, e));
    *sealed += readable;
    const int state = readable ? SEGMENT_SEALED : SEGMENT_UNREADABLE;
    return sqlite_run(s, SQL_SEGMENT_STATE_SET, VALUES(INTEGER(id), INTEGER(state), INTEGER(now)), e);
}

enum profd_status store_seal_segments(struct store *s, uint64_t through, int64_t now, uint64_t *sealed,
                                      struct profd_error *e)
{
    int64_t waiting = 0;
    bool found = true;
    uint64_t done = 0;
    *sealed = 0;
    enum profd_status status = sqlite_write_begin(s, e);
    if (status != PROFD_OK) {
        return status;
    }
    through = through > INT64_MAX ? INT64_MAX : through;
    status = sqlite_find(s, SQL_SEGMENT_SEALED_COUNT, NULL, 0, &waiting, &found, e);
    while (status == PROFD_OK && found && done < LIMIT_SEGMENTS_AT_ONCE &&
           waiting + (int64_t)done < LIMIT_SEGMENTS_SEALED) {
        status = seal_next(s, through, now, &found, &done, e);
    }
    status = sqlite_write_end(s, status, e);
    *sealed = status == PROFD_OK ? done : 0;
    return status;
}

enum profd_status store_each_segment(struct store *s, uint64_t after,
                                     bool (*each)(void *context, const struct store_segment *segment), void *context,
                                     struct profd_error *e)
{
    sqlite3_stmt *q;
    TRY(sqlite_start(s, SQL_SEGMENT_SEALED, VALUES(INTEGER(after)), &q, e));
    enum profd_status status = PROFD_OK;
    while (sqlite_row(s, q, &status, e)) {
        struct store_segment x = {.id = (uint64_t)sqlite3_column_int64(q, 0),
                                  .sequence = (uint64_t)sqlite3_column_int64(q, 2)};
        x.bytes = sqlite_blob(q, 3, &x.size);
        status = sqlite_segment_epoch(s, q, 1, x.epoch, e);
        if (status != PROFD_OK || !each(context, &x)) {
            sqlite_finish(q);
            return status;
        }
    }
    return status;
}

static enum profd_status acknowledge(struct store *s, struct sqlite_relay *r, const struct store_acknowledgement *a,
                                     int64_t now, struct profd_error *e)
{
    bool found = false;
    if (!r->met || memcmp(r->incarnation, a->incarnation, sizeof r->incarnation) != 0) {
        return PROFD_OK;
    }
    /* The sealed segment of a key. */
    sqlite3_stmt *q;
    TRY(sqlite_first(s, SQL_SEGMENT_BY_KEY, VALUES(BLOB(a->epoch, sizeof a->epoch), INTEGER(a->sequence)), &q, &found,
                     e));
    if (!found) {
        return PROFD_OK;
    }
    const int64_t id = sqlite3_column_int64(q, 0);
    const struct store_amount amount = sqlite_amount(q, 1);
    sqlite_finish(q);
    outgoing_amount_add(&r->acknowledged, &amount);
    if (a->outcome != STORE_SEGMENT_COUNTED) {
        outgoing_amount_add(&r->rejected, &amount);
    }
    return sqlite_run(s, SQL_SEGMENT_ACKNOWLEDGE,
                      VALUES(INTEGER(id), INTEGER(now), INTEGER(a->number), INTEGER(a->outcome)), e);
}

enum profd_status store_acknowledge_segments(struct store *s, const struct store_acknowledgement *list, size_t n,
                                             int64_t now, struct profd_error *e)
{
    struct sqlite_relay r;
    TRY(sqlite_write_begin(s, e));
    enum profd_status status = sqlite_relay_load(s, &r, e);
    outgoing_pace_note(&s->relay_pace, now);
    for (size_t i = 0; i < n && status == PROFD_OK && r.known; i++) {
        status = acknowledge(s, &r, &list[i], now, e);
    }
    if (status == PROFD_OK && r.known) {
        status = sqlite_relay_save(s, &r, e);
    }
    return sqlite_write_end(s, status, e);
}

/* Removes the bytes of a segment; the row stays if a restored centre may lack the segment. */
static enum profd_status remove_bytes(struct store *s, int64_t id, bool safe, struct profd_error *e)
{
    TRY(sqlite_run(s, SQL_SEGMENT_BYTES_REMOVE, VALUES(INTEGER(id)), e));
    return sqlite_run(s, safe ? SQL_SEGMENT_REMOVE : SQL_SEGMENT_EMPTY, VALUES(INTEGER(id)), e);
}

/* Removes one that is in a backup of the centre and old enough, or, of too many bytes, the oldest. */
static enum profd_status remove_kept(struct store *s, const struct store_policy *policy, int64_t now, bool *more,
                                     struct profd_error *e)
{
    struct sqlite_relay r;
    int64_t id = 0, bytes = 0;
    bool found = false;
    *more = false;
    enum profd_status status = sqlite_relay_load(s, &r, e);
    if (status == PROFD_OK) {
        status = sqlite_find(s, SQL_SEGMENT_KEPT_SAFE, VALUES(INTEGER(r.backup), INTEGER(now - policy->relay_age)), &id,
                             more, e);
    }
    if (status != PROFD_OK || *more) {
        return *more ? remove_bytes(s, id, true, e) : status;
    }
    TRY(sqlite_find(s, SQL_SEGMENT_KEPT_BYTES, NULL, 0, &bytes, &found, e));
    if ((uint64_t)bytes > policy->relay_bytes) {
        TRY(sqlite_find(s, SQL_SEGMENT_KEPT_OLDEST, NULL, 0, &id, more, e));
    }
    return *more ? remove_bytes(s, id, false, e) : PROFD_OK;
}

enum profd_status store_keep_segments(struct store *s, const struct store_policy *policy, int64_t now,
                                      struct store_progress *progress, struct profd_error *e)
{
    struct sqlite_budget budget = sqlite_budget_begin();
    bool more = true;
    uint64_t rows = 0;
    TRY(sqlite_write_begin(s, e));
    enum profd_status status = PROFD_OK;
    while (status == PROFD_OK && more && !sqlite_budget_spent(&budget)) {
        status = remove_kept(s, policy, now, &more, e);
        if (status == PROFD_OK && !more) {
            status = sqlite_segment_fold_next(s, &more, e);
        }
        rows += more;
    }
    status = sqlite_write_end(s, status, e);
    if (status == PROFD_OK) {
        *progress = (struct store_progress){.more = more, .rows = rows};
    }
    return status;
}

/* head: only number and held. */
static enum profd_status get_relay(struct store *s, bool head, struct store_relay *out, struct profd_error *e)
{
    struct sqlite_relay r;
    struct sqlite_state state;
    struct store_amount pending = {0};
    int64_t newest = 0;
    bool found;
    *out = (struct store_relay){.active = false};
    TRY(sqlite_relay_load(s, &r, e));
    TRY(sqlite_load_state(s, &state, e));
    out->number = (uint64_t)state.number;
    out->held = r.held ? r.held : s->relay_unresolved ? out->number + 1 : 0;
    if (!r.known || head) {
        return PROFD_OK;
    }
    out->active = r.active;
    out->acknowledged = r.acknowledged;
    out->rejected = r.rejected;
    out->withdrawn = r.withdrawn;
    out->has_centre = r.has_centre;
    memcpy(out->centre, r.centre, sizeof out->centre);
    out->met = r.met;
    out->backup = r.backup;
    memcpy(out->incarnation, r.incarnation, sizeof out->incarnation);
    enum profd_status status = sum_states(s, out, &pending, e);
    if (status == PROFD_OK) {
        status = sqlite_find(s, SQL_SEGMENT_NEWEST, NULL, 0, &newest, &found, e);
    }
    out->newest = (uint64_t)newest;
    if (!r.active) { /* what was accepted since is not known apart */
        out->accepted = pending;
        outgoing_amount_add(&out->accepted, &r.acknowledged);
        outgoing_amount_add(&out->accepted, &r.withdrawn);
        return status;
    }
    out->accepted = accepted_of(&state);
    outgoing_amount_subtract(&out->accepted, &r.outside);
    return status;
}

enum profd_status store_get_relay(struct store *s, struct store_relay *out, struct profd_error *e)
{
    bool began;
    TRY(sqlite_read_begin(s, &began, e));
    return sqlite_read_end(s, began, get_relay(s, false, out, e), e);
}

enum profd_status store_get_relay_head(struct store *s, struct store_relay *out, struct profd_error *e)
{
    bool began;
    TRY(sqlite_read_begin(s, &began, e));
    return sqlite_read_end(s, began, get_relay(s, true, out, e), e);
}
