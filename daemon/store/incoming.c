#include "store/incoming.h"

#include <string.h>

#include "core/shares.h"
#include "proto/sum.h"

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

bool incoming_add_touching(const struct counts *r, uint64_t *calls, size_t builds)
{
    bool saturated = false;
    for (uint32_t i = 0; i < r->arc_count; i++) {
        const uint32_t from = r->from_build[i], to = r->to_build[i];
        if (from < builds) {
            sum_add(&calls[from], r->calls[i], &saturated);
        }
        if (to < builds && to != from) {
            sum_add(&calls[to], r->calls[i], &saturated);
        }
    }
    return saturated;
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
