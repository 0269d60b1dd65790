/* The outgoing uploads of a host (segments.h). */
#include <stdlib.h>
#include <sys/random.h>
#include <time.h>

#include "proto/sum.h"
#include "proto/utf8.h"
#include "store/store_internal.h"

/* Values of segment.state. */
enum {
    SEGMENT_OPEN,
    SEGMENT_CLOSED,
    SEGMENT_SEALED,
    SEGMENT_ACKNOWLEDGED,
    SEGMENT_REMOVED,
    SEGMENT_UNREADABLE,
    SEGMENT_HELD
};

/* The row of table relay. known: there is one. */
struct relay_row {
    bool known;
    struct store_relay is; /* what the row has of it. held: 0 when nothing is held */
    uint8_t epoch[SEGMENT_EPOCH_SIZE];
    uint64_t sequence;
    struct store_amount outside;
    int64_t held_since, held_hour; /* ns: of that start; the hour of the last sign of life before it */
    int64_t apart_before;          /* ns: what began before this time counts on this host only */
    int64_t apart_hour;            /* the last hour that is marked for it */
};

/* Reports data that was valid and cannot be decoded any more as damaged. */
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

static void amount_subtract(struct store_amount *from, const struct store_amount *part)
{
    from->uploads -= part->uploads < from->uploads ? part->uploads : from->uploads;
    from->ticks -= part->ticks < from->ticks ? part->ticks : from->ticks;
    from->calls -= part->calls < from->calls ? part->calls : from->calls;
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

/* Encodes a segment that is only a key, in a new block that the caller frees. */
static enum profd_status encode_key(enum segment_kind kind, const uint8_t epoch[SEGMENT_EPOCH_SIZE], uint64_t sequence,
                                    int64_t hour, uint8_t **out, size_t *size, struct profd_error *e)
{
    struct segment s = {.kind = kind, .sequence = sequence, .last = hour * SEGMENT_HOUR};
    memcpy(s.epoch, epoch, sizeof s.epoch);
    return segment_encode(&s, out, size, e);
}

static uint64_t weight_of(const struct counts *c)
{
    return ((uint64_t)c->histogram_count + c->tree_count) * LIMIT_SEGMENT_HISTOGRAM + c->bin_count + c->arc_count +
           c->node_count;
}

/* What is added to one segment: an upload, or a part of a large one. */
struct chunk {
    const uint8_t *counts; /* proto/counts.h */
    size_t counts_size;
    struct store_amount amount;
    uint64_t started;
    uint64_t stack_ticks; /* the ticks that have a stack */
    uint32_t weight;      /* at most LIMIT_SEGMENT_ROWS */
};

/* An upload that is being divided into chunks. Arrays live in the arena. */
struct cutting {
    struct arena *arena;
    struct chunk *chunks;
    uint32_t count, capacity;
};

static enum profd_status cut(struct cutting *x, const struct counts *rows, struct profd_error *e)
{
    uint8_t *bytes;
    size_t size;
    TRY(counts_encode(rows, &bytes, &size, e));
    struct chunk *chunks = arena_extend(x->arena, x->chunks, x->count, &x->capacity, sizeof *chunks);
    uint8_t *kept = ARENA_ARRAY(x->arena, size, uint8_t);
    if (!chunks || !kept) {
        free(bytes);
        return profd_no_memory(e);
    }
    memcpy(kept, bytes, size);
    free(bytes);
    struct chunk *c = &chunks[x->count++];
    x->chunks = chunks;
    *c = (struct chunk){.counts = kept, .counts_size = size, .weight = (uint32_t)weight_of(rows)};
    counts_totals(rows, &c->amount.ticks, &c->amount.calls);
    c->stack_ticks = sum_all(rows->node_ticks, rows->node_count);
    return PROFD_OK;
}

_Static_assert(LIMIT_STACK_TREES *LIMIT_SEGMENT_HISTOGRAM + LIMIT_STACK_NODES <= LIMIT_SEGMENT_ROWS,
               "the stacks of an upload fit into one chunk");

/* Divides an upload that is too large for one chunk: first the bins, then the arcs, then the stacks. A histogram may
 * begin in one chunk and continue in the next. */
static enum profd_status cut_all(struct cutting *x, const struct counts *c, struct profd_error *e)
{
    struct counts_histogram *histograms = ARENA_ARRAY(x->arena, c->histogram_count, struct counts_histogram);
    struct counts part = {.histograms = histograms, .bin_index = c->bin_index, .bin_ticks = c->bin_ticks};
    uint32_t at = 0; /* first bin of the chunk */
    TRY(histograms ? PROFD_OK : profd_no_memory(e));
    for (uint32_t i = 0; i < c->histogram_count; i++) {
        const struct counts_histogram *h = &c->histograms[i];
        for (uint32_t done = 0; done < h->used || done == 0;) {
            const uint64_t weight = weight_of(&part) + LIMIT_SEGMENT_HISTOGRAM;
            if (weight >= LIMIT_SEGMENT_ROWS) {
                TRY(cut(x, &part, e));
                at += part.bin_count;
                part.histogram_count = part.bin_count = 0;
                part.bin_index = c->bin_index + at;
                part.bin_ticks = c->bin_ticks + at;
                continue;
            }
            const uint32_t left = LIMIT_SEGMENT_ROWS - (uint32_t)weight, more = h->used - done;
            struct counts_histogram *piece = &histograms[part.histogram_count++];
            *piece = *h;
            piece->first = part.bin_count;
            piece->used = more < left ? more : left;
            part.bin_count += piece->used;
            done += piece->used;
            if (h->used == 0) {
                break;
            }
        }
    }
    if (part.histogram_count > 0) {
        TRY(cut(x, &part, e));
    }
    for (uint32_t i = 0; i < c->arc_count; i += LIMIT_SEGMENT_ROWS) {
        const uint32_t left = c->arc_count - i;
        const struct counts arcs = {.arc_count = left < LIMIT_SEGMENT_ROWS ? left : LIMIT_SEGMENT_ROWS,
                                    .from_build = c->from_build + i,
                                    .to_build = c->to_build + i,
                                    .from = c->from + i,
                                    .to = c->to + i,
                                    .calls = c->calls + i};
        TRY(cut(x, &arcs, e));
    }
    struct counts stacks = *c;
    stacks.histogram_count = stacks.bin_count = stacks.arc_count = 0;
    return c->tree_count > 0 ? cut(x, &stacks, e) : PROFD_OK;
}

/* A segment's bytes, to which chunks are added in their order. */
struct segment_fold {
    struct arena *arena;
    struct segment segment;
    struct rollup_sum *sum;
    uint64_t chunks;
    uint64_t stack_ticks; /* of its stacks; set by segment_fold_finish, as the next */
    bool clocks_full;     /* it has as many clocks as fit; stacks of others were left out */
};

/* Encodes the sum. */
static enum profd_status segment_fold_finish(struct segment_fold *s, uint8_t **out, size_t *size, uint32_t *weight,
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
    *weight = (uint32_t)weight_of(&sum.counts);
    return encode_sum(&sum, &spread, out, size, e);
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

/* A column of bytes of a known size. */
static enum profd_status read_bytes(struct store *s, sqlite3_stmt *q, int column, const char *what, uint8_t *out,
                                    size_t size, struct profd_error *e)
{
    size_t n;
    const uint8_t *bytes = sqlite_blob(q, column, &n);
    FAIL_IF(n != size, e, PROFD_DAMAGED, "database %s: %s of %zu bytes", s->path, what, n);
    memcpy(out, bytes, n);
    return PROFD_OK;
}

static enum profd_status relay_load(struct store *s, struct relay_row *out, struct profd_error *e)
{
    sqlite3_stmt *q;
    bool row = false;
    *out = (struct relay_row){.known = false};
    TRY(sqlite_first(s, SQL_RELAY_GET, NULL, 0, &q, &row, e));
    if (!row) {
        return PROFD_OK;
    }
    *out = (struct relay_row){.known = true,
                              .is.active = sqlite3_column_int64(q, 0) != 0,
                              .sequence = sqlite_u64(q, 2),
                              .outside = sqlite_amount(q, 3),
                              .is.acknowledged = sqlite_amount(q, 6),
                              .is.rejected = sqlite_amount(q, 9),
                              .is.withdrawn = sqlite_amount(q, 12),
                              .is.met = sqlite3_column_bytes(q, 15) > 0,
                              .is.backup = sqlite_u64(q, 16),
                              .is.held = sqlite_u64(q, 17),
                              .held_since = sqlite3_column_int64(q, 18),
                              .held_hour = sqlite3_column_int64(q, 19),
                              .apart_before = sqlite3_column_int64(q, 20),
                              .apart_hour = sqlite3_column_int64(q, 21),
                              .is.has_centre = sqlite3_column_bytes(q, 22) > 0};
    enum profd_status status = read_bytes(s, q, 1, "an epoch", out->epoch, sizeof out->epoch, e);
    if (!status && out->is.met) {
        status = read_bytes(s, q, 15, "an incarnation", out->is.incarnation, sizeof out->is.incarnation, e);
    }
    if (!status && out->is.has_centre) {
        status = read_bytes(s, q, 22, "a centre's name", out->is.centre, sizeof out->is.centre, e);
    }
    sqlite_finish(q);
    return status;
}

static enum profd_status relay_save(struct store *s, const struct relay_row *r, struct profd_error *e)
{
    return sqlite_run(
        s, SQL_RELAY_SET,
        VALUES(INTEGER(r->is.active), BLOB(r->epoch, sizeof r->epoch), INTEGER(r->sequence), AMOUNT(r->outside),
               AMOUNT(r->is.acknowledged), AMOUNT(r->is.rejected), AMOUNT(r->is.withdrawn),
               BLOB(r->is.met ? r->is.incarnation : (const uint8_t *)"", r->is.met ? sizeof r->is.incarnation : 0),
               INTEGER(r->is.backup), INTEGER(r->is.held), INTEGER(r->held_since), INTEGER(r->held_hour),
               INTEGER(r->apart_before), INTEGER(r->apart_hour),
               BLOB(r->is.has_centre ? r->is.centre : (const uint8_t *)"", r->is.has_centre ? sizeof r->is.centre : 0)),
        e);
}

/* Reduces the segment in the current row of q to a key of this kind, and adds what it held to *gone. Finishes q. */
static enum profd_status reduce_segment(struct store *s, sqlite3_stmt *q, enum segment_kind kind,
                                        struct store_amount *gone, struct profd_error *e)
{
    uint8_t epoch[SEGMENT_EPOCH_SIZE], *bytes = NULL;
    size_t size = 0;
    const int64_t id = sqlite3_column_int64(q, 0), sequence = sqlite3_column_int64(q, 2),
                  hour = sqlite3_column_int64(q, 3);
    const struct store_amount amount = sqlite_amount(q, 4);
    enum profd_status status = read_bytes(s, q, 1, "an epoch", epoch, sizeof epoch, e);
    sqlite_finish(q);
    status = status ? status : encode_key(kind, epoch, (uint64_t)sequence, hour, &bytes, &size, e);
    status = status ? status : sqlite_run(s, SQL_SEGMENT_BYTES_SET, VALUES(INTEGER(id), BLOB(bytes, size)), e);
    free(bytes);
    status = status ? status : sqlite_run(s, SQL_SEGMENT_PARTS_REMOVE, VALUES(INTEGER(id)), e);
    status = status ? status : sqlite_run(s, SQL_SEGMENT_WITHDRAW, VALUES(INTEGER(id), INTEGER(size)), e);
    outgoing_amount_add(gone, &amount);
    return status;
}

/* The same for every segment that the statement finds, one after another. */
static enum profd_status reduce_segments(struct store *s, enum sqlite_sql next, const struct sqlite_value *values,
                                         size_t count, enum segment_kind kind, struct store_amount *gone,
                                         struct profd_error *e)
{
    for (bool found = true; found;) {
        sqlite3_stmt *q;
        TRY(sqlite_first(s, next, values, count, &q, &found, e));
        TRY(found ? reduce_segment(s, q, kind, gone, e) : PROFD_OK);
    }
    return PROFD_OK;
}

static enum profd_status set_state(struct store *s, int64_t id, int state, int64_t now, struct profd_error *e)
{
    return sqlite_run(s, SQL_SEGMENT_STATE_SET, VALUES(INTEGER(id), INTEGER(state), INTEGER(now)), e);
}

/* --- A host that was restored from a backup: what it tells the centre about the time that it has lost, and what it
 * does not forward because the centre may have it --- */

#define GAP_HOURS_MOST (366 * INT64_C(24)) /* a clock that was wrong must not fill the database */

/* Finds the hours from the latest sign of life in the backup until now. */
static enum profd_status find_gap(struct store *s, const struct relay_row *r, int64_t *from, int64_t *to, int64_t *now,
                                  struct profd_error *e)
{
    sqlite3_stmt *q;
    bool row = false;
    int64_t started = 0;
    TRY(sqlite_first(s, SQL_SEGMENT_GAP, NULL, 0, &q, &row, e));
    if (!row) {
        return PROFD_OK;
    }
    int64_t opened = sqlite3_column_int64(q, 0);
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

/* Adds a SEGMENT_DROPPED for each of these hours, the last year of them at most, in an epoch of its own. */
static enum profd_status add_marks(struct store *s, int64_t from, int64_t to, int64_t now, struct profd_error *e)
{
    uint8_t epoch[SEGMENT_EPOCH_SIZE];
    from = to - from < GAP_HOURS_MOST ? from : to - GAP_HOURS_MOST + 1;
    FAIL_IF(getrandom(epoch, sizeof epoch, 0) != (ssize_t)sizeof epoch, e, PROFD_IO,
            "there are no random numbers for an epoch");
    for (unsigned i = 0; i < 4; i++) {
        epoch[i] = (uint8_t)((uint64_t)now / 1000000000u >> (24 - 8 * i));
    }
    for (int64_t hour = from; hour <= to; hour++) {
        const int64_t sequence = hour - from + 1;
        uint8_t *bytes = NULL;
        size_t size = 0;
        TRY(encode_key(SEGMENT_DROPPED, epoch, (uint64_t)sequence, hour, &bytes, &size, e));
        enum profd_status status =
            sqlite_run(s, SQL_SEGMENT_ADD,
                       VALUES(BLOB(epoch, sizeof epoch), INTEGER(sequence), INTEGER(0), INTEGER(hour), INTEGER(now),
                              INTEGER(size), INTEGER(hour * SQLITE_HOUR), INTEGER((hour + 1) * SQLITE_HOUR)),
                       e);
        const struct sqlite_value id = INTEGER(sqlite3_last_insert_rowid(s->db));
        status = status ? status : sqlite_run(s, SQL_SEGMENT_BYTES_SET, VALUES(id, BLOB(bytes, size)), e);
        free(bytes);
        TRY(status);
        TRY(set_state(s, id.integer, SEGMENT_CLOSED, now, e));
    }
    return PROFD_OK;
}

/* From now on, counts that began before this time count here only. The hours of the gap are marked now, and later those
 * in which such counts are accepted. */
static enum profd_status begin_apart(struct store *s, struct relay_row *r, int64_t before, int64_t from, int64_t to,
                                     int64_t now, struct profd_error *e)
{
    TRY(add_marks(s, from, to, now, e));
    r->apart_before = before > r->apart_before ? before : r->apart_before;
    r->apart_hour = to;
    return relay_save(s, r, e);
}

enum profd_status sqlite_relay_mark_gap(struct store *s, struct profd_error *e)
{
    struct relay_row r;
    struct timespec clock;
    int64_t from = 0, to = 0, now = 0;
    TRY(relay_load(s, &r, e));
    if (!r.known || !r.is.active) {
        return PROFD_OK;
    }
    (void)clock_gettime(CLOCK_REALTIME, &clock); /* it cannot fail */
    TRY(sqlite_write_begin(s, e));
    enum profd_status status = find_gap(s, &r, &from, &to, &now, e);
    const int64_t before = clock.tv_sec * SQLITE_SECOND + clock.tv_nsec;
    status = status ? status : begin_apart(s, &r, before, from, to, now, e);
    return sqlite_write_end(s, status, e);
}

/* --- Open segments: accepted uploads are added as parts, which are folded into the segment's bytes periodically --- */

#define PARTS_MOST (1 << 24) /* numbers of parts of one segment; they begin again when parts are folded */

/* Parts are folded when they are more than this, and more than what they are to be folded into. */
#define FOLD_PARTS 256u
#define FOLD_BYTES (256u << 10)

#define APART (5 * SQLITE_SECOND) /* acknowledgements of one connection are closer together */

/* Opens a segment for the upload and assigns its number; it has no counts yet. */
static enum profd_status open_segment(struct store *s, const struct store_upload *u, int64_t series, int64_t *id,
                                      struct profd_error *e)
{
    static const int minutes[] = {1, 5, 15};
    int64_t sequence = 0, width = SEGMENT_HOUR;
    bool found = false;
    uint8_t *bytes = NULL;
    size_t size = 0;
    TRY(sqlite_find(s, SQL_RELAY_NUMBER, NULL, 0, &sequence, &found, e));
    FAIL_IF(!found, e, PROFD_DAMAGED, "database %s: table relay is empty", s->path);
    struct message_build *builds = calloc(u->build_count + 1, sizeof *builds);
    struct message_label *labels = calloc(u->label_count + 1, sizeof *labels);
    enum profd_status status = builds && labels ? PROFD_OK : profd_no_memory(e);
    for (size_t i = 0; !status && i < u->build_count; i++) {
        /* A name that is not valid text is left out; it identifies nothing. */
        const char *name = u->builds[i].name;
        const bool valid = utf8_valid((const uint8_t *)name, strlen(name));
        builds[i] = (struct message_build){u->builds[i].id.text, valid ? name : ""};
    }
    for (size_t i = 0; !status && i < u->label_count; i++) {
        labels[i] = (struct message_label){u->labels[i].name, u->labels[i].value};
    }
    if (!status) {
        struct segment segment = {.kind = SEGMENT_COUNTS,
                                  .sequence = (uint64_t)sequence,
                                  .uid = u->uid,
                                  .first = u->start,
                                  .last = u->end,
                                  .ended = u->end,
                                  .program = u->program,
                                  .build_count = u->build_count,
                                  .builds = builds,
                                  .label_count = u->label_count,
                                  .labels = labels,
                                  .counts = {.sorted = true}};
        memcpy(segment.epoch, s->relay_epoch, sizeof segment.epoch);
        status = encode_sum(&segment, &(struct counts_shares){NULL, NULL, NULL}, &bytes, &size, e);
    }
    free(builds);
    free(labels);

    /* The ends of all windows in it lie in one slice of time, which is as wide as the centre's acknowledgements are
     * apart, so that a centre that is far away gets few segments. */
    s->relay_pace.acknowledged = s->relay_pace.acknowledged != 0 ? s->relay_pace.acknowledged : u->received;
    const int64_t elapsed = u->received - s->relay_pace.acknowledged,
                  apart = elapsed > s->relay_pace.apart ? elapsed : s->relay_pace.apart;
    for (size_t i = sizeof minutes / sizeof minutes[0];
         i-- > 0 && apart <= minutes[i] * SQLITE_MINUTE && u->end / SQLITE_HOUR >= u->received / SQLITE_HOUR - 1;) {
        width = minutes[i] * SQLITE_MINUTE;
    }
    const int64_t since = u->end - u->end % width;
    if (!status) {
        status = sqlite_run(s, SQL_SEGMENT_ADD,
                            VALUES(BLOB(s->relay_epoch, sizeof s->relay_epoch), INTEGER(sequence), INTEGER(series),
                                   INTEGER(u->end / SQLITE_HOUR), INTEGER(u->received), INTEGER(size), INTEGER(since),
                                   INTEGER(since + width)),
                            e);
    }
    *id = sqlite3_last_insert_rowid(s->db);
    status = status ? status : sqlite_run(s, SQL_SEGMENT_BYTES_SET, VALUES(INTEGER(*id), BLOB(bytes, size)), e);
    free(bytes);
    return status;
}

/* Adds a chunk to the open segment of the series and slice. A segment that could become too large is closed, and
 * another one opened. held: to one that is held back (segments.h). */
static enum profd_status add_chunk(struct store *s, const struct store_upload *u, int64_t series, uint32_t inexact,
                                   const struct chunk *c, bool held, struct profd_error *e)
{
    sqlite3_stmt *q;
    bool found = false, ignored = false;
    int64_t id = 0;
    struct store_amount amount = {0};
    uint64_t weight = 0, parts = 0, part_bytes = 0, stack_ticks = 0;
    TRY(sqlite_first(s, held ? SQL_SEGMENT_HELD_FIND : SQL_SEGMENT_OPEN_FIND,
                     VALUES(INTEGER(series), INTEGER(u->end / SQLITE_HOUR), BLOB(s->relay_epoch, sizeof s->relay_epoch),
                            INTEGER(u->end)),
                     &q, &found, e));
    if (found) {
        id = sqlite3_column_int64(q, 0);
        amount = sqlite_amount(q, 1);
        weight = sqlite_u64(q, 4);
        parts = sqlite_u64(q, 5);
        part_bytes = sqlite_u64(q, 6);
        stack_ticks = sqlite_u64(q, 7);
        sqlite_finish(q);
    }
    if (found && (weight + c->weight > LIMIT_SEGMENT_ROWS || parts + 1 >= PARTS_MOST)) {
        TRY(held ? PROFD_OK : set_state(s, id, SEGMENT_CLOSED, u->received, e));
        amount = (struct store_amount){0};
        weight = parts = part_bytes = stack_ticks = 0;
        found = false;
    }
    if (!found) {
        TRY(open_segment(s, u, series, &id, e));
        TRY(held ? set_state(s, id, SEGMENT_HELD, u->received, e) : PROFD_OK);
    }
    TRY(sqlite_run(s, SQL_SEGMENT_PART_ADD,
                   VALUES(INTEGER(id * PARTS_MOST + (int64_t)parts), INTEGER(u->group), INTEGER(u->start),
                          INTEGER(u->end - u->start), INTEGER(inexact), INTEGER(c->amount.uploads), INTEGER(c->started),
                          BLOB(c->counts, c->counts_size)),
                   e));
    outgoing_amount_add(&amount, &c->amount);
    sum_add(&stack_ticks, c->stack_ticks, &ignored);
    return sqlite_run(s, SQL_SEGMENT_SUMS_SET,
                      VALUES(INTEGER(id), AMOUNT(amount), INTEGER(weight + c->weight), INTEGER(parts + 1),
                             INTEGER(part_bytes + c->counts_size), INTEGER(stack_ticks)),
                      e);
}

enum profd_status sqlite_segment_add(struct store *s, const struct store_upload *u, int64_t series,
                                     const struct sqlite_sums *one, struct profd_error *e)
{
    const struct store_amount amount = sqlite_sums_amount(one);
    bool held = false;
    if (u->since != 0 && u->since < s->relay_since) {
        struct relay_row r;
        const int64_t hour = u->end / SQLITE_HOUR;
        TRY(relay_load(s, &r, e));
        held = r.is.held && u->since < r.held_since;
        if (u->since < r.apart_before) { /* it counts here only: it is withdrawn, and its hour is marked */
            if (hour > r.apart_hour) {
                TRY(add_marks(s, r.apart_hour + 1, hour, u->end, e));
                r.apart_hour = hour;
            }
            outgoing_amount_add(&r.is.withdrawn, &amount);
            return relay_save(s, &r, e);
        }
    }

    struct counts c;
    enum profd_status status = counts_decode(u->counts, u->counts_size, (uint32_t)u->build_count, &c, e);
    if (status) {
        return status == PROFD_NO_MEMORY ? status : profd_error_wrap(e, PROFD_INTERNAL, "an upload that was accepted");
    }
    struct cutting x = {.arena = arena_new(0)};
    const uint64_t weight = weight_of(&c);
    struct chunk whole = {.counts = u->counts,
                          .counts_size = u->counts_size,
                          .amount = amount,
                          .stack_ticks = sum_all(c.node_ticks, c.node_count),
                          .weight = (uint32_t)weight};
    if (!x.arena) {
        status = profd_no_memory(e);
    } else if (weight > LIMIT_SEGMENT_ROWS) {
        status = cut_all(&x, &c, e);
    } else {
        x.chunks = &whole;
        x.count = 1;
    }
    counts_done(&c);
    for (uint32_t i = 0; !status && i < x.count; i++) {
        /* Only the first counts the upload and its processes. */
        x.chunks[i].amount.uploads = i == 0 ? amount.uploads : 0;
        x.chunks[i].started = i == 0 ? one->processes : 0;
        status = add_chunk(s, u, series, one->inexact & INEXACT_SENT, &x.chunks[i], held, e);
    }
    arena_free(x.arena);
    return status;
}

/* Folds the parts of a segment into its bytes. *readable: false, and nothing has changed, if it is damaged. */
static enum profd_status fold_segment(struct store *s, int64_t id, bool *readable, struct profd_error *e)
{
    struct segment_fold sum = {.arena = arena_new(0)};
    struct segment *to = &sum.segment;
    uint8_t *bytes = NULL;
    size_t size = 0, n;
    uint32_t weight = 0;
    sqlite3_stmt *q = NULL;
    bool row = false;
    struct counts_shares spread;
    enum profd_status status =
        sum.arena ? sqlite_first(s, SQL_SEGMENT_BYTES_GET, VALUES(INTEGER(id)), &q, &row, e) : profd_no_memory(e);
    if (!status) {
        const uint8_t *before = row ? sqlite_blob(q, 0, &n) : NULL;
        status = row ? damaged(segment_decode(before, n, to, e), e)
                     : profd_error_set(e, PROFD_DAMAGED, "database %s: outgoing upload %lld has no bytes", s->path,
                                       (long long)id);
    }
    if (!status) {
        sum.sum = rollup_sum_new(sum.arena, ROLLUP_ALL);
        status = sum.sum ? PROFD_OK : profd_no_memory(e);
    }
    if (!status && to->kind == SEGMENT_COUNTS) {
        status = rollup_decode_spread(sum.arena, &to->counts, to->shares.data, to->shares.size, &spread, e);
        status = status ? status : rollup_sum_add(sum.sum, &to->counts, &spread, e);
    }
    sqlite_finish(q); /* only now, because the shares are bytes of the row */
    status = status ? status : sqlite_start(s, SQL_SEGMENT_PARTS, VALUES(INTEGER(id)), &q, e);
    while (!status && sqlite_row(s, q, &status, e)) {
        const uint32_t group = (uint32_t)sqlite3_column_int64(q, 0);
        const int64_t start = sqlite3_column_int64(q, 1), end = start + sqlite3_column_int64(q, 2);
        const uint8_t *counts = sqlite_blob(q, 6, &n);
        struct counts c;
        bool stopped = false;
        status = damaged(counts_decode(counts, n, (uint32_t)to->build_count, &c, e), e);
        if (status) {
            break;
        }
        status = rollup_sum_add_upload(sum.sum, &c, ++sum.chunks, group, e);
        counts_done(&c);
        to->first = start < to->first ? start : to->first;
        to->last = end > to->last ? end : to->last;
        to->ended = end < to->ended ? end : to->ended;
        sum_add(&to->uploads, sqlite_u64(q, 4), &stopped);
        sum_add(&to->processes[group % SEGMENT_GROUPS], sqlite_u64(q, 5), &stopped);
        to->inexact |= (uint32_t)sqlite3_column_int64(q, 3) | (stopped ? (uint32_t)INEXACT_SATURATED : 0);
    }
    sqlite_finish(q);
    const bool changes = !status && sum.chunks > 0;
    if (changes) {
        status = segment_fold_finish(&sum, &bytes, &size, &weight, e);
    }
    segment_done(to);
    arena_free(sum.arena);
    *readable = s->broken || status != PROFD_DAMAGED;
    if (!*readable || !changes || status) {
        free(bytes);
        return *readable ? status : PROFD_OK;
    }
    status = sqlite_run(s, SQL_SEGMENT_BYTES_SET, VALUES(INTEGER(id), BLOB(bytes, size)), e);
    free(bytes);
    status = status ? status : sqlite_run(s, SQL_SEGMENT_PARTS_REMOVE, VALUES(INTEGER(id)), e);
    /* Folding keeps the ticks of stacks, except those of clocks that do not fit. */
    return status ? status
                  : sqlite_run(s, SQL_SEGMENT_FOLDED,
                               VALUES(INTEGER(id), INTEGER(weight), INTEGER(size),
                                      sum.clocks_full ? INTEGER(sum.stack_ticks) : NOTHING),
                               e);
}

enum profd_status sqlite_segment_withdraw(struct store *s, int64_t series, struct profd_error *e)
{
    struct relay_row r;
    TRY(relay_load(s, &r, e));
    if (!r.known) {
        return PROFD_OK;
    }
    TRY(reduce_segments(s, SQL_SEGMENT_OF_SERIES, VALUES(INTEGER(series)), SEGMENT_WITHDRAWN, &r.is.withdrawn, e));
    return relay_save(s, &r, e);
}

/* --- The epoch of a start, sealing, acknowledgements, retention --- */

/* Adds up the segments by state, into members of *out that table relay lacks. *pending: those not acknowledged. */
static enum profd_status sum_states(struct store *s, struct store_relay *out, struct store_amount *pending,
                                    struct profd_error *e)
{
    sqlite3_stmt *q;
    enum profd_status status = sqlite_start(s, SQL_SEGMENT_STATES, NULL, 0, &q, e);
    while (sqlite_row(s, q, &status, e)) {
        const int64_t state = sqlite3_column_int64(q, 0), opened = sqlite3_column_int64(q, 5);
        const struct store_amount amount = sqlite_amount(q, 1);
        if (state == SEGMENT_ACKNOWLEDGED || state == SEGMENT_REMOVED) {
            out->kept_segments += state == SEGMENT_ACKNOWLEDGED;
            out->kept_bytes += sqlite_u64(q, 4);
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

enum profd_status sqlite_relay_settle(struct store *s, struct profd_error *e)
{
    struct relay_row r;
    TRY(relay_load(s, &r, e));
    const bool begins = s->relaying && (!r.is.active || memcmp(r.epoch, s->relay_epoch, sizeof r.epoch) != 0);
    const bool ends = !s->relaying && r.is.active;
    if (begins && !r.is.active) {
        /* Uploads that were accepted and belong to no segment were accepted while nothing was forwarded. */
        struct store_relay ignored = {.active = false};
        struct store_amount pending = {0};
        TRY(sum_states(s, &ignored, &pending, e));
        r.outside = s->state.accepted;
        amount_subtract(&r.outside, &r.is.acknowledged);
        amount_subtract(&r.outside, &r.is.withdrawn);
        amount_subtract(&r.outside, &pending);
    }
    if (s->relaying && s->relay_unresolved && !r.is.held) { /* differences that began before the start are held */
        int64_t to = 0, now = 0;
        r.is.held = (uint64_t)s->state.number + 1;
        r.held_since = s->relay_since;
        TRY(find_gap(s, &r, &r.held_hour, &to, &now, e));
    }
    if (begins) {
        r.sequence = 0;
        memcpy(r.epoch, s->relay_epoch, sizeof r.epoch);
    }
    r.is.active = s->relaying;
    TRY(begins || ends ? relay_save(s, &r, e) : PROFD_OK);
    s->relay_settled = true;
    return PROFD_OK;
}

enum profd_status store_relay_begin(struct store *s, const uint8_t epoch[SEGMENT_EPOCH_SIZE], int64_t since,
                                    struct profd_error *e)
{
    (void)e;
    if (!s->relaying) { /* a new epoch of the same run means that another machine has the old one */
        s->relay_unresolved = true;
        s->relay_since = since;
    }
    s->relaying = true;
    s->relay_settled = false;
    memcpy(s->relay_epoch, epoch, sizeof s->relay_epoch);
    return PROFD_OK;
}

enum profd_status store_relay_resolve(struct store *s, const struct store_verdict *verdict, bool *apart,
                                      struct profd_error *e)
{
    struct relay_row r;
    int64_t from = 0, to = 0, now = 0;
    *apart = false;
    TRY(relay_load(s, &r, e));
    if (!r.is.held && (!s->relay_unresolved || !verdict->went_back)) {
        s->relay_unresolved = false;
        return PROFD_OK;
    }
    TRY(sqlite_write_begin(s, e));
    enum profd_status status = s->relay_settled ? PROFD_OK : sqlite_relay_settle(s, e);
    status = status ? status : relay_load(s, &r, e);
    if (!status && !verdict->went_back) {
        status = sqlite_run(s, SQL_SEGMENT_HELD_RELEASE, NULL, 0, e);
    } else if (!status) {
        status = find_gap(s, &r, &from, &to, &now, e);
        status =
            status ? status : reduce_segments(s, SQL_SEGMENT_HELD_NEXT, NULL, 0, SEGMENT_DROPPED, &r.is.withdrawn, e);
        from = r.held_hour < to ? r.held_hour : to;
        status = status ? status : begin_apart(s, &r, r.held_since, from, to, now, e);
    }
    if (!status) {
        r.is.held = 0;
        status = relay_save(s, &r, e);
    }
    if (!status && verdict->went_back && (int64_t)verdict->number > s->state.number) {
        s->state.number = (int64_t)verdict->number;
        status = sqlite_save_state(s, e);
    }
    TRY(sqlite_write_end(s, status, e));
    *apart = verdict->went_back;
    s->relay_unresolved = false;
    return PROFD_OK;
}

enum profd_status store_relay_meet(struct store *s, const uint8_t centre[STORE_CENTRE_SIZE],
                                   const uint8_t incarnation[STORE_INCARNATION_SIZE], uint64_t backup, uint64_t *again,
                                   struct profd_error *e)
{
    enum { ID, EPOCH, SEQUENCE, HOUR, STATE, UPLOADS, OUTCOME = UPLOADS + 3, SIZE };
    struct relay_row r;
    uint64_t count = 0;
    *again = 0;
    TRY(relay_load(s, &r, e));
    if (!r.known) {
        return PROFD_OK;
    }
    FAIL_IF(centre && r.is.has_centre && memcmp(r.is.centre, centre, sizeof r.is.centre) != 0, e, PROFD_REFUSED,
            "the relay has reached another centre than that of this host");
    const bool same = r.is.met && memcmp(r.is.incarnation, incarnation, sizeof r.is.incarnation) == 0;
    if (same && backup <= r.is.backup && (!centre || r.is.has_centre)) {
        return PROFD_OK;
    }
    TRY(sqlite_write_begin(s, e));
    enum profd_status status = PROFD_OK;
    /* The centre was restored, and may lack segments that it has acknowledged. They are sealed again; of those that
     * were removed here, only the key. */
    for (bool found = !same && r.is.met; !status && found;) {
        uint8_t epoch[SEGMENT_EPOCH_SIZE], *bytes = NULL;
        sqlite3_stmt *q;
        status = sqlite_first(s, SQL_SEGMENT_KEPT_NEXT, NULL, 0, &q, &found, e);
        if (status || !found) {
            break;
        }
        const struct sqlite_value id = INTEGER(sqlite3_column_int64(q, ID));
        const bool removed = sqlite3_column_int64(q, STATE) == SEGMENT_REMOVED,
                   rejected = sqlite3_column_int64(q, OUTCOME) != STORE_SEGMENT_COUNTED;
        const struct store_amount amount = sqlite_amount(q, UPLOADS);
        const int64_t sequence = sqlite3_column_int64(q, SEQUENCE), hour = sqlite3_column_int64(q, HOUR);
        size_t size = (size_t)sqlite3_column_int64(q, SIZE);
        status = read_bytes(s, q, EPOCH, "an epoch", epoch, sizeof epoch, e);
        sqlite_finish(q);
        if (!status && removed) {
            status = encode_key(SEGMENT_DROPPED, epoch, (uint64_t)sequence, hour, &bytes, &size, e);
            status = status ? status : sqlite_run(s, SQL_SEGMENT_BYTES_SET, VALUES(id, BLOB(bytes, size)), e);
            free(bytes);
        } else if (!status) {
            amount_subtract(&r.is.acknowledged, &amount);
            if (rejected) {
                amount_subtract(&r.is.rejected, &amount);
            }
        }
        status = status ? status : sqlite_run(s, SQL_SEGMENT_AGAIN, VALUES(id, INTEGER(size)), e);
        count++;
    }
    r.is.met = true;
    r.is.backup = backup;
    memcpy(r.is.incarnation, incarnation, sizeof r.is.incarnation);
    if (centre) {
        r.is.has_centre = true;
        memcpy(r.is.centre, centre, sizeof r.is.centre);
    }
    status = status ? status : relay_save(s, &r, e);
    TRY(sqlite_write_end(s, status, e));
    *again = count;
    return PROFD_OK;
}

enum profd_status store_relay_move(struct store *s, uint64_t *withdrawn, struct profd_error *e)
{
    struct relay_row r;
    TRY(relay_load(s, &r, e));
    FAIL_IF(!r.known, e, PROFD_NOT_FOUND, "this host has never forwarded anything: there is nothing to move");
    const uint64_t before = r.is.withdrawn.uploads;
    TRY(sqlite_write_begin(s, e));
    enum profd_status status =
        reduce_segments(s, SQL_SEGMENT_SEALED_NEXT, NULL, 0, SEGMENT_WITHDRAWN, &r.is.withdrawn, e);
    status = status ? status : sqlite_run(s, SQL_SEGMENT_KEPT_BYTES_FORGET, NULL, 0, e);
    status = status ? status : sqlite_run(s, SQL_SEGMENT_KEPT_FORGET, NULL, 0, e);
    r.is.met = r.is.has_centre = false;
    r.is.backup = 0;
    status = status ? status : relay_save(s, &r, e);
    TRY(sqlite_write_end(s, status, e));
    *withdrawn = r.is.withdrawn.uploads - before;
    return PROFD_OK;
}

enum profd_status store_seal_segments(struct store *s, uint64_t through, int64_t now, uint64_t *sealed,
                                      struct profd_error *e)
{
    int64_t waiting = 0;
    bool found = true;
    uint64_t done = 0;
    *sealed = 0;
    TRY(sqlite_write_begin(s, e));
    through = through > INT64_MAX ? INT64_MAX : through;
    enum profd_status status = sqlite_find(s, SQL_SEGMENT_SEALED_COUNT, NULL, 0, &waiting, &found, e);
    while (!status && found && done < LIMIT_SEGMENTS_AT_ONCE && waiting + (int64_t)done < LIMIT_SEGMENTS_SEALED) {
        int64_t id = 0;
        bool readable = true;
        status = sqlite_find(s, SQL_SEGMENT_TO_SEAL, VALUES(INTEGER(through)), &id, &found, e);
        if (status || !found) {
            break;
        }
        status = fold_segment(s, id, &readable, e);
        done += readable;
        status = status ? status : set_state(s, id, readable ? SEGMENT_SEALED : SEGMENT_UNREADABLE, now, e);
    }
    TRY(sqlite_write_end(s, status, e));
    *sealed = done;
    return PROFD_OK;
}

enum profd_status store_each_segment(struct store *s, uint64_t after,
                                     bool (*each)(void *context, const struct store_segment *segment), void *context,
                                     struct profd_error *e)
{
    sqlite3_stmt *q;
    bool goes_on = true;
    enum profd_status status = sqlite_start(s, SQL_SEGMENT_SEALED, VALUES(INTEGER(after)), &q, e);
    while (goes_on && sqlite_row(s, q, &status, e)) {
        struct store_segment x = {.id = sqlite_u64(q, 0), .sequence = sqlite_u64(q, 2)};
        x.bytes = sqlite_blob(q, 3, &x.size);
        status = read_bytes(s, q, 1, "an epoch", x.epoch, sizeof x.epoch, e);
        goes_on = !status && each(context, &x);
    }
    sqlite_finish(q);
    return status;
}

enum profd_status store_acknowledge_segments(struct store *s, const struct store_acknowledgement *list, size_t n,
                                             int64_t now, struct profd_error *e)
{
    struct relay_row r;
    TRY(sqlite_write_begin(s, e));
    enum profd_status status = relay_load(s, &r, e);
    if (now - s->relay_pace.acknowledged >= APART || now < s->relay_pace.acknowledged) {
        s->relay_pace.apart = s->relay_pace.acknowledged != 0 ? now - s->relay_pace.acknowledged : 0;
        s->relay_pace.acknowledged = now;
    }
    for (size_t i = 0; i < n && !status && r.known; i++) {
        const struct store_acknowledgement *a = &list[i];
        sqlite3_stmt *q;
        bool found = false;
        if (!r.is.met || memcmp(r.is.incarnation, a->incarnation, sizeof r.is.incarnation) != 0) {
            continue;
        }
        status = sqlite_first(s, SQL_SEGMENT_BY_KEY, VALUES(BLOB(a->epoch, sizeof a->epoch), INTEGER(a->sequence)), &q,
                              &found, e);
        if (status || !found) {
            continue;
        }
        const int64_t id = sqlite3_column_int64(q, 0);
        const struct store_amount amount = sqlite_amount(q, 1);
        sqlite_finish(q);
        outgoing_amount_add(&r.is.acknowledged, &amount);
        if (a->outcome != STORE_SEGMENT_COUNTED) {
            outgoing_amount_add(&r.is.rejected, &amount);
        }
        status = sqlite_run(s, SQL_SEGMENT_ACKNOWLEDGE,
                            VALUES(INTEGER(id), INTEGER(now), INTEGER(a->number), INTEGER(a->outcome)), e);
    }
    if (!status && r.known) {
        status = relay_save(s, &r, e);
    }
    return sqlite_write_end(s, status, e);
}

enum profd_status store_keep_segments(struct store *s, const struct store_policy *policy, int64_t now,
                                      struct store_progress *progress, struct profd_error *e)
{
    struct sqlite_budget budget = sqlite_budget_begin();
    struct relay_row r;
    bool more = true, found = false;
    uint64_t rows = 0;
    TRY(sqlite_write_begin(s, e));
    enum profd_status status = relay_load(s, &r, e);
    while (!status && more && !sqlite_budget_spent(&budget)) {
        int64_t id = 0, bytes = 0;
        bool readable = true;
        /* Removes a segment that is in a backup of the centre and old enough, or the oldest if all have too many bytes.
         */
        status = sqlite_find(s, SQL_SEGMENT_KEPT_SAFE, VALUES(INTEGER(r.is.backup), INTEGER(now - policy->relay_age)),
                             &id, &more, e);
        const bool safe = more;
        if (!status && !more) {
            status = sqlite_find(s, SQL_SEGMENT_KEPT_BYTES, NULL, 0, &bytes, &found, e);
        }
        if (!status && (uint64_t)bytes > policy->relay_bytes) {
            status = sqlite_find(s, SQL_SEGMENT_KEPT_OLDEST, NULL, 0, &id, &more, e);
        }
        if (!status && more) { /* the row stays if a restored centre may lack the segment */
            status = sqlite_run(s, SQL_SEGMENT_BYTES_REMOVE, VALUES(INTEGER(id)), e);
            status =
                status ? status : sqlite_run(s, safe ? SQL_SEGMENT_REMOVE : SQL_SEGMENT_EMPTY, VALUES(INTEGER(id)), e);
        } else if (!status) {
            status =
                sqlite_find(s, SQL_SEGMENT_TO_FOLD, VALUES(INTEGER(FOLD_PARTS), INTEGER(FOLD_BYTES)), &id, &more, e);
            status = status || !more ? status : fold_segment(s, id, &readable, e);
            status = status || readable ? status : set_state(s, id, SEGMENT_UNREADABLE, 0, e);
        }
        rows += more;
    }
    TRY(sqlite_write_end(s, status, e));
    *progress = (struct store_progress){.more = more, .rows = rows};
    return PROFD_OK;
}

/* head: sets only number and held. */
static enum profd_status get_relay(struct store *s, bool head, struct store_relay *out, struct profd_error *e)
{
    struct relay_row r;
    struct sqlite_state state;
    struct store_amount pending = {0};
    int64_t newest = 0;
    bool found;
    *out = (struct store_relay){.active = false};
    TRY(relay_load(s, &r, e));
    TRY(sqlite_load_state(s, &state, e));
    if (r.known && !head) {
        *out = r.is;
    }
    out->number = (uint64_t)state.number;
    out->held = r.is.held ? r.is.held : s->relay_unresolved ? out->number + 1 : 0;
    if (!r.known || head) {
        return PROFD_OK;
    }
    TRY(sum_states(s, out, &pending, e));
    TRY(sqlite_find(s, SQL_SEGMENT_NEWEST, NULL, 0, &newest, &found, e));
    out->newest = (uint64_t)newest;
    if (r.is.active) {
        out->accepted = state.accepted;
        amount_subtract(&out->accepted, &r.outside);
        return PROFD_OK;
    }
    out->accepted = pending; /* uploads that were accepted since then are not counted separately */
    outgoing_amount_add(&out->accepted, &r.is.acknowledged);
    outgoing_amount_add(&out->accepted, &r.is.withdrawn);
    return PROFD_OK;
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
