/* The verbs of segments.h, as in sqlite_relay.c. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "store/memory.h"

static struct store_amount accepted_of(const struct memory_store *s)
{
    return (struct store_amount){s->uploads_total, s->ticks, s->calls};
}

static void add_pending(const struct memory_relay *r, struct store_amount *sum)
{
    for (size_t i = 0; i < r->count; i++) {
        if (r->segments[i].state <= MEMORY_SEALED) {
            outgoing_amount_add(sum, &r->segments[i].amount);
        }
    }
}

enum profd_status memory_relay_begin(struct store *base, const uint8_t epoch[SEGMENT_EPOCH_SIZE], struct profd_error *e)
{
    (void)e;
    struct memory_store *s = memory_self(base);
    struct memory_relay *r = &s->relay;
    if (!r->active) {
        int64_t seconds = 0;
        for (unsigned i = 0; i < 4; i++) {
            seconds = seconds << 8 | epoch[i];
        }
        r->held = s->number + 1;
        r->held_since = (seconds + 1) * INT64_C(1000000000);
        struct store_amount pending = {0};
        add_pending(r, &pending);
        r->outside = accepted_of(s);
        outgoing_amount_subtract(&r->outside, &r->acknowledged);
        outgoing_amount_subtract(&r->outside, &r->withdrawn);
        outgoing_amount_subtract(&r->outside, &pending);
    }
    r->known = r->active = true;
    r->sequence = 0;
    memcpy(r->epoch, epoch, sizeof r->epoch);
    return PROFD_OK;
}

static enum profd_status seal_again(struct memory_relay *r, struct memory_segment *x, struct profd_error *e)
{
    const struct store_amount amount = x->amount;
    const bool rejected = x->outcome != STORE_SEGMENT_COUNTED;
    if (x->state == MEMORY_REMOVED) {
        enum profd_status status = memory_segment_reduce(x, SEGMENT_DROPPED, e);
        if (status != PROFD_OK) {
            return status;
        }
    } else {
        outgoing_amount_subtract(&r->acknowledged, &amount);
        outgoing_amount_subtract(&r->rejected, rejected ? &amount : &(struct store_amount){0});
    }
    x->state = MEMORY_SEALED;
    x->number = 0;
    x->outcome = STORE_SEGMENT_COUNTED;
    return PROFD_OK;
}

enum profd_status memory_relay_resolve(struct store *base, const struct store_verdict *verdict, bool *apart,
                                       struct profd_error *e)
{
    (void)e;
    struct memory_store *s = memory_self(base);
    struct memory_relay *r = &s->relay;
    *apart = r->held && verdict->went_back;
    for (size_t i = 0; i < r->count; i++) {
        struct memory_segment *x = &r->segments[i];
        if (x->held && *apart) {
            outgoing_amount_add(&r->withdrawn, &x->amount);
            x->amount = (struct store_amount){0};
            x->apart = true;
        }
        x->state = x->held ? MEMORY_CLOSED : x->state;
        x->held = false;
    }
    if (*apart) {
        r->apart_before = r->held_since;
        s->number = verdict->number > s->number ? verdict->number : s->number;
    }
    r->held = 0;
    return PROFD_OK;
}

enum profd_status memory_relay_meet(struct store *base, const uint8_t incarnation[STORE_INCARNATION_SIZE],
                                    uint64_t backup, uint64_t *again, struct profd_error *e)
{
    struct memory_relay *r = &memory_self(base)->relay;
    enum profd_status status = PROFD_OK;
    const bool same = r->met && memcmp(r->incarnation, incarnation, sizeof r->incarnation) == 0;
    *again = 0;
    if (!r->known || (same && backup <= r->backup)) {
        return PROFD_OK;
    }
    for (size_t i = 0; i < r->count && r->met && !same && status == PROFD_OK; i++) {
        if (r->segments[i].state > MEMORY_SEALED) {
            status = seal_again(r, &r->segments[i], e);
            ++*again;
        }
    }
    r->met = true;
    r->backup = backup;
    memcpy(r->incarnation, incarnation, sizeof r->incarnation);
    return status;
}

static size_t count_sealed(const struct memory_relay *r)
{
    size_t n = 0;
    for (size_t i = 0; i < r->count; i++) {
        n += r->segments[i].state == MEMORY_SEALED;
    }
    return n;
}

enum profd_status memory_seal_segments(struct store *base, uint64_t through, bool stacks, int64_t now,
                                       struct store_sealed *sealed, struct profd_error *e)
{
    struct memory_relay *r = &memory_self(base)->relay;
    size_t waiting = count_sealed(r);
    enum profd_status status = PROFD_OK;
    *sealed = (struct store_sealed){0};
    for (size_t i = 0; i < r->count && waiting < LIMIT_SEGMENTS_SEALED && status == PROFD_OK; i++) {
        struct memory_segment *x = &r->segments[i];
        if (x->state > MEMORY_CLOSED || x->held || x->id > through) {
            continue;
        }
        bool left_out = false;
        status = x->marked  ? PROFD_OK
                 : x->apart ? memory_segment_reduce(x, SEGMENT_DROPPED, e)
                            : memory_segment_fold(x, stacks, &left_out, e);
        if (status == PROFD_OK) {
            x->state = MEMORY_SEALED;
            x->changed = now;
            waiting++;
            sealed->segments++;
            sealed->without_stacks += left_out;
        }
    }
    return status;
}

enum profd_status memory_each_segment(struct store *base, uint64_t after,
                                      bool (*each)(void *context, const struct store_segment *segment), void *context,
                                      struct profd_error *e)
{
    (void)e;
    const struct memory_relay *r = &memory_self(base)->relay;
    for (size_t i = 0; i < r->count; i++) {
        const struct memory_segment *x = &r->segments[i];
        struct store_segment out = {.id = x->id, .sequence = x->sequence, .bytes = x->bytes, .size = x->size};
        memcpy(out.epoch, x->epoch, sizeof out.epoch);
        if (x->state == MEMORY_SEALED && x->id > after && !each(context, &out)) {
            break;
        }
    }
    return PROFD_OK;
}

static void acknowledge(struct memory_relay *r, const struct store_acknowledgement *a, int64_t now)
{
    if (!r->met || memcmp(r->incarnation, a->incarnation, sizeof r->incarnation) != 0) {
        return;
    }
    for (size_t i = 0; i < r->count; i++) {
        struct memory_segment *x = &r->segments[i];
        if (x->state != MEMORY_SEALED || x->sequence != a->sequence ||
            memcmp(x->epoch, a->epoch, sizeof x->epoch) != 0) {
            continue;
        }
        x->state = MEMORY_ACKNOWLEDGED;
        x->changed = now;
        x->number = a->number;
        x->outcome = a->outcome;
        outgoing_amount_add(&r->acknowledged, &x->amount);
        outgoing_amount_add(&r->rejected, a->outcome != STORE_SEGMENT_COUNTED ? &x->amount : &(struct store_amount){0});
    }
}

enum profd_status memory_acknowledge_segments(struct store *base, const struct store_acknowledgement *list, size_t n,
                                              int64_t now, struct profd_error *e)
{
    (void)e;
    outgoing_pace_note(&memory_self(base)->relay.pace, now);
    for (size_t i = 0; i < n; i++) {
        acknowledge(&memory_self(base)->relay, &list[i], now);
    }
    return PROFD_OK;
}

static void remove_segment(struct memory_relay *r, size_t at)
{
    memory_segment_free(&r->segments[at]);
    memmove(&r->segments[at], &r->segments[at + 1], (--r->count - at) * sizeof *r->segments);
}

/* The acknowledged segment that was acknowledged first; SIZE_MAX: none. */
static size_t oldest_kept(const struct memory_relay *r, uint64_t *bytes)
{
    size_t oldest = SIZE_MAX;
    *bytes = 0;
    for (size_t i = 0; i < r->count; i++) {
        if (r->segments[i].state == MEMORY_ACKNOWLEDGED) {
            *bytes += r->segments[i].size;
            oldest = oldest == SIZE_MAX || r->segments[i].changed < r->segments[oldest].changed ? i : oldest;
        }
    }
    return oldest;
}

enum profd_status memory_keep_segments(struct store *base, const struct store_policy *policy, int64_t now,
                                       struct store_progress *progress, struct profd_error *e)
{
    (void)e;
    struct memory_relay *r = &memory_self(base)->relay;
    uint64_t bytes;
    *progress = (struct store_progress){.more = false};
    for (size_t i = r->count; i-- > 0;) {
        const struct memory_segment *x = &r->segments[i];
        if (x->state > MEMORY_SEALED && x->number <= r->backup &&
            (x->state == MEMORY_REMOVED || x->changed < now - policy->relay_age)) {
            remove_segment(r, i);
            progress->rows++;
        }
    }
    for (size_t at; (at = oldest_kept(r, &bytes)) != SIZE_MAX && bytes > policy->relay_bytes; progress->rows++) {
        struct memory_segment *x = &r->segments[at];
        memory_segment_free(x);
        x->bytes = NULL;
        x->size = 0;
        x->amount = (struct store_amount){0};
        x->state = MEMORY_REMOVED;
    }
    return PROFD_OK;
}

enum profd_status memory_get_relay(struct store *base, struct store_relay *out, struct profd_error *e)
{
    (void)e;
    const struct memory_store *s = memory_self(base);
    const struct memory_relay *r = &s->relay;
    *out = (struct store_relay){.number = s->number};
    if (!r->known) {
        return PROFD_OK;
    }
    *out = (struct store_relay){.active = r->active,
                                .accepted = accepted_of(s),
                                .acknowledged = r->acknowledged,
                                .rejected = r->rejected,
                                .withdrawn = r->withdrawn,
                                .newest = r->newest,
                                .number = s->number,
                                .held = r->held,
                                .met = r->met,
                                .backup = r->backup};
    outgoing_amount_subtract(&out->accepted, &r->outside);
    memcpy(out->incarnation, r->incarnation, sizeof out->incarnation);
    for (size_t i = 0; i < r->count; i++) {
        const struct memory_segment *x = &r->segments[i];
        if (x->state > MEMORY_SEALED) {
            out->kept_segments += x->state == MEMORY_ACKNOWLEDGED;
            out->kept_bytes += x->size;
            continue;
        }
        const bool sealed = x->state == MEMORY_SEALED;
        outgoing_amount_add(sealed ? &out->sealed : &out->open, &x->amount);
        out->sealed_segments += sealed;
        out->open_segments += !sealed;
        out->oldest = out->oldest == 0 || x->opened < out->oldest ? x->opened : out->oldest;
    }
    return PROFD_OK;
}

void memory_verify_segments(struct memory_store *s, void (*mismatch)(void *context, const char *sentence),
                            void *context)
{
    struct store_relay r;
    char sentence[160];
    (void)memory_get_relay(&s->base, &r, NULL);
    struct store_amount sum = r.acknowledged;
    outgoing_amount_add(&sum, &r.withdrawn);
    outgoing_amount_add(&sum, &r.sealed);
    outgoing_amount_add(&sum, &r.open);
    if (r.active && (sum.uploads != r.accepted.uploads || sum.calls != r.accepted.calls)) {
        snprintf(sentence, sizeof sentence, "forwarded: accepted %" PRIu64 " uploads, segments have %" PRIu64,
                 r.accepted.uploads, sum.uploads);
        mismatch(context, sentence);
    }
}
