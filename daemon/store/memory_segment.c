/* Segments of a host, as in sqlite_segment.c and sqlite_relay.c. Parts are folded when a segment is sealed. */
#include "store/memory_segment.h"

#include <stdlib.h>
#include <string.h>

static void free_part(struct memory_part *p)
{
    while (p != NULL) {
        struct memory_part *next = p->next;
        free(p->bytes);
        free(p);
        p = next;
    }
}

void memory_segment_free(struct memory_segment *x)
{
    free(x->bytes);
    free_part(x->parts);
}

void memory_relay_done(struct memory_relay *r)
{
    for (size_t i = 0; i < r->count; i++) {
        memory_segment_free(&r->segments[i]);
    }
    free(r->segments);
}

void memory_staged_done(struct memory_staged *staged, size_t n)
{
    for (size_t i = 0; staged != NULL && i < n; i++) {
        free_part(staged[i].parts);
        for (size_t k = 0; k < staged[i].head_count; k++) {
            free(staged[i].heads[k]);
        }
        free(staged[i].heads);
    }
    free(staged);
}

static struct memory_part *copy_part(const struct outgoing_chunk *c)
{
    struct memory_part *p = calloc(1, sizeof *p);
    uint8_t *bytes = malloc(c->part.counts_size + 1);
    if (p == NULL || bytes == NULL) {
        free(p);
        free(bytes);
        return NULL;
    }
    memcpy(bytes, c->part.counts, c->part.counts_size);
    *p = (struct memory_part){.chunk = *c, .bytes = bytes};
    p->chunk.part.counts = bytes;
    return p;
}

/* Prepares the header of a segment for each part, in case one is opened for it; its key is set when it is sealed. */
static enum profd_status stage(struct arena *a, const struct store_upload *u, struct memory_staged *out,
                               struct profd_error *e)
{
    static const uint8_t later[SEGMENT_EPOCH_SIZE];
    const struct store_amount amount = {1, u->ticks, u->calls};
    const struct outgoing_chunk *chunks;
    size_t n = 0;
    enum profd_status status = outgoing_split(a, u, &amount, u->processes_started, u->inexact, &chunks, &n, e);
    if (status != PROFD_OK) {
        return status;
    }
    struct memory_part **end = &out->parts;
    out->heads = calloc(n, sizeof(uint8_t *));
    for (size_t i = 0; i < n && status == PROFD_OK; i++) {
        *end = copy_part(&chunks[i]);
        status = *end != NULL && out->heads != NULL ? outgoing_open(u, later, 1, &out->heads[i], &out->head_size, e)
                                                    : profd_no_memory(e);
        out->head_count += status == PROFD_OK;
        end = *end != NULL ? &(*end)->next : end;
    }
    return status;
}

/* Ensures capacity for n more segments. */
static bool reserve(struct memory_relay *r, size_t n)
{
    size_t capacity = 2 * (r->count + n);
    struct memory_segment *segments =
        r->count + n <= r->capacity ? r->segments : realloc(r->segments, capacity * sizeof *segments);
    if (segments == NULL) {
        return false;
    }
    r->capacity = segments == r->segments && r->count + n <= r->capacity ? r->capacity : capacity;
    r->segments = segments;
    return true;
}

enum profd_status memory_stage(struct memory_relay *r, const struct store_upload *uploads, size_t n,
                               struct memory_staged **out, struct profd_error *e)
{
    size_t parts = 0;
    *out = NULL;
    if (!r->active) {
        return PROFD_OK;
    }
    struct arena *a = arena_new(0);
    *out = calloc(n, sizeof **out);
    enum profd_status status = a != NULL && *out != NULL ? PROFD_OK : profd_no_memory(e);
    for (size_t i = 0; i < n && status == PROFD_OK; i++) {
        status = uploads[i].counts_size > 0 ? stage(a, &uploads[i], &(*out)[i], e) : PROFD_OK;
        parts += (*out)[i].head_count;
    }
    arena_free(a);
    return status == PROFD_OK && parts > 0 && !reserve(r, parts) ? profd_no_memory(e) : status;
}

static struct memory_segment *find_open(struct memory_relay *r, uint64_t series, int64_t end, bool held, bool apart)
{
    for (size_t i = r->count; i-- > 0;) {
        struct memory_segment *x = &r->segments[i];
        if (x->state == MEMORY_OPEN && x->held == held && x->apart == apart && x->series == series && x->since <= end &&
            x->until > end && memcmp(x->epoch, r->epoch, sizeof x->epoch) == 0) {
            return x;
        }
    }
    return NULL;
}

void memory_forward(struct memory_relay *r, struct memory_staged *staged, uint64_t series, uint64_t uploads,
                    const struct store_upload *u, int64_t since)
{
    const int64_t hour = u->end / SEGMENT_HOUR;
    const bool apart = since != 0 && since < r->apart_before,
               held = !apart && since != 0 && r->held && since < r->held_since;
    for (size_t i = 0; staged->parts != NULL; i++) {
        struct memory_part *p = staged->parts;
        struct memory_segment *x = find_open(r, series, u->end, held, apart);
        if (x != NULL && x->weight + p->chunk.weight > LIMIT_SEGMENT_ROWS) {
            x->state = MEMORY_CLOSED;
            x = NULL;
        }
        if (x == NULL) {
            x = &r->segments[r->count++];
            *x = (struct memory_segment){.id = ++r->newest,
                                         .sequence = ++r->sequence,
                                         .series = series,
                                         .held = held,
                                         .apart = apart,
                                         .hour = hour,
                                         .opened = u->received,
                                         .bytes = staged->heads[i],
                                         .size = staged->head_size};
            memcpy(x->epoch, r->epoch, sizeof x->epoch);
            outgoing_slice(&r->pace, u, &x->since, &x->until);
            staged->heads[i] = NULL;
        }
        p->chunk.part.uploads = p->chunk.amount.uploads = i == 0 ? uploads : 0;
        outgoing_amount_add(apart ? &r->withdrawn : &x->amount, &p->chunk.amount);
        x->weight += p->chunk.weight;
        staged->parts = p->next;
        p->next = NULL;
        struct memory_part **end = &x->parts;
        while (*end != NULL) {
            end = &(*end)->next;
        }
        *end = p;
    }
}

enum profd_status memory_segment_fold(struct memory_segment *x, bool stacks, bool *left_out, struct profd_error *e)
{
    struct outgoing_sum sum;
    uint8_t *bytes = NULL;
    size_t size = 0;
    uint32_t weight;
    enum profd_status status = outgoing_sum_begin(&sum, x->bytes, x->size, e);
    for (struct memory_part *p = x->parts; p != NULL && status == PROFD_OK; p = p->next) {
        status = outgoing_sum_add(&sum, &p->chunk.part, e);
    }
    sum.segment.sequence = x->sequence;
    memcpy(sum.segment.epoch, x->epoch, sizeof x->epoch);
    sum.leave_out_stacks = !stacks;
    if (status == PROFD_OK) {
        status = outgoing_sum_finish(&sum, &bytes, &size, &weight, e);
    }
    outgoing_sum_done(&sum);
    *left_out = sum.left_out;
    if (status == PROFD_OK) {
        memory_segment_free(x);
        x->parts = NULL;
        x->bytes = bytes;
        x->size = size;
    }
    return status;
}

enum profd_status memory_segment_reduce(struct memory_segment *x, enum segment_kind kind, struct profd_error *e)
{
    uint8_t *bytes;
    size_t size;
    enum profd_status status = outgoing_mark(kind, x->epoch, x->sequence, x->hour, &bytes, &size, e);
    if (status == PROFD_OK) {
        memory_segment_free(x);
        x->bytes = bytes;
        x->size = size;
        x->parts = NULL;
        x->marked = true;
        x->amount = (struct store_amount){0};
    }
    return status;
}

enum profd_status memory_withdraw(struct memory_relay *r, uint64_t series, struct profd_error *e)
{
    enum profd_status status = PROFD_OK;
    for (size_t i = 0; i < r->count && status == PROFD_OK; i++) {
        struct memory_segment *x = &r->segments[i];
        const struct store_amount gone = x->amount;
        if (x->series == series && x->state <= MEMORY_CLOSED && !x->marked) {
            status = memory_segment_reduce(x, SEGMENT_WITHDRAWN, e);
            x->held = x->apart = false;
            x->state = MEMORY_CLOSED;
            outgoing_amount_add(&r->withdrawn, &gone);
        }
    }
    return status;
}
