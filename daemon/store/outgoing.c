#include "store/outgoing.h"

#include <stdlib.h>
#include <string.h>

#include "proto/sum.h"
#include "proto/utf8.h"

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

#define MINUTE INT64_C(60000000000)
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
         i-- > 0 && apart <= minutes[i] * MINUTE && u->end / SEGMENT_HOUR >= u->received / SEGMENT_HOUR - 1;) {
        width = minutes[i] * MINUTE;
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
