#include "client/import_pprof.h"

#include <inttypes.h>
#include <string.h>

#include "client/import_pprof_parts.h"

enum { SAMPLE_LOCATION = 1, SAMPLE_VALUE = 2 };

/* The numbers of a repeated field, which may be packed: one of them, and whether it was there. */
static bool next_number(const struct pprof_field *f, struct pprof_cursor *c, bool *first, uint64_t *out, bool *broken)
{
    if (f->wire == PPROF_WIRE_NUMBER) {
        *out = f->value;
        bool there = *first;
        *first = false;
        return there;
    }
    if (f->wire != PPROF_WIRE_BYTES) {
        *broken = true;
        return false;
    }
    if (c->at >= c->end) {
        return false;
    }
    *broken = !varint_get(&c->at, c->end, out);
    return !*broken;
}

enum profd_status pprof_sample_read(struct pprof *p, struct pprof_cursor message, uint64_t values[PPROF_TYPES],
                                    struct profd_error *e)
{
    struct pprof_field f;
    bool broken = false;
    uint32_t count = 0;
    const uint8_t *begin = message.at;
    memset(values, 0, PPROF_TYPES * sizeof *values);
    while (pprof_field_next(&message, &f, &broken)) {
        bool first = true, bad = false;
        uint64_t value;
        if (f.number != SAMPLE_VALUE) {
            continue;
        }
        while (next_number(&f, &f.inside, &first, &value, &bad)) {
            if (count == p->type_count) {
                return pprof_broken(p, begin, "a Sample with more values than there are sample types", e);
            }
            if (value > INT64_MAX) {
                return profd_error_set(e, PROFD_REFUSED,
                                       "byte %zu: a sample of %" PRId64 ": a difference of two profiles is not taken",
                                       (size_t)(begin - p->file), (int64_t)value);
            }
            values[count++] = value;
        }
        if (bad) {
            return pprof_broken(p, f.inside.at, "no number among the values of a Sample", e);
        }
    }
    if (broken) {
        return pprof_broken(p, message.at, "no field of a Sample", e);
    }
    if (count != p->type_count) {
        return pprof_broken(p, begin, "a Sample with fewer values than there are sample types", e);
    }
    return PROFD_OK;
}

/* What one sample adds. */
struct stack {
    uint64_t ticks, weight, calls;
    uint32_t callee; /* frame in front of the next one; IMPORT_NONE for the leaf */
    uint64_t depth;
};

/* One more frame of a stack, from the leaf up. */
static bool stack_add(struct pprof *p, struct stack *s, uint32_t frame)
{
    bool good = true;
    if (s->depth == 0 && s->ticks > 0) {
        import_profile_add_ticks(&p->profile, frame, s->ticks);
    }
    if (s->depth == 1 && s->calls > 0) { /* profd's own: caller and callee alone */
        good = import_profile_add_pair(&p->profile, frame, s->callee, s->calls);
    }
    if (s->depth > 0 && !p->own && s->weight > 0) {
        good = import_profile_add_pair(&p->profile, frame, s->callee, s->weight);
    }
    s->callee = frame;
    s->depth++;
    return good;
}

static enum profd_status take_sample(struct pprof *p, struct pprof_cursor message, struct profd_error *e)
{
    uint64_t values[PPROF_TYPES];
    enum profd_status status = pprof_sample_read(p, message, values, e);
    if (status != PROFD_OK) {
        return status;
    }
    struct stack s = {.ticks = values[p->ticks],
                      .weight = values[p->weight],
                      .calls = p->own ? values[p->calls] : 0,
                      .callee = IMPORT_NONE};
    struct pprof_field f;
    bool broken = false;
    while (pprof_field_next(&message, &f, &broken)) {
        bool first = true, bad = false;
        uint64_t id;
        while (f.number == SAMPLE_LOCATION && next_number(&f, &f.inside, &first, &id, &bad)) {
            const struct pprof_location *l = pprof_ids_find(&p->location_ids, id);
            if (!l) {
                return profd_error_set(e, PROFD_MALFORMED,
                                       "byte %zu: a sample in location %" PRIu64 ", which does not exist",
                                       (size_t)(f.inside.at - p->file), id);
            }
            if (!stack_add(p, &s, l->frame)) {
                return import_profile_exhausted(p->arena, e);
            }
        }
        if (bad) {
            return pprof_broken(p, f.inside.at, "no number among the locations of a Sample", e);
        }
    }
    if (s.depth == 1 && s.calls > 0 && !import_profile_add_pair(&p->profile, s.callee, s.callee, s.calls)) {
        return import_profile_exhausted(p->arena, e);
    }
    return PROFD_OK;
}

static enum profd_status take_samples(struct pprof *p, const uint8_t *in, size_t n, struct profd_error *e)
{
    struct pprof_cursor c = {in, in + n, in};
    struct pprof_field f;
    bool broken = false;
    enum profd_status status = PROFD_OK;
    while (status == PROFD_OK && pprof_field_next(&c, &f, &broken)) {
        if (f.number == PPROF_SAMPLE) {
            status = take_sample(p, f.inside, e);
        }
    }
    return status;
}

enum profd_status import_pprof_parse(const uint8_t *in, size_t n, const char *event, struct arena *a,
                                     struct import_profile **out, struct profd_error *e)
{
    struct pprof *p = ARENA_NEW(a, struct pprof);
    if (!p) {
        return import_profile_exhausted(a, e);
    }
    p->arena = a;
    p->file = in;
    p->profile_end = in + n;
    import_profile_init(&p->profile, a);
    import_texts_init(&p->texts, a);
    if (n == 0) {
        return profd_error_set(e, PROFD_MALFORMED, "it is empty");
    }
    enum profd_status status = pprof_tables_read(p, in, n, e);
    if (status == PROFD_OK) {
        status = pprof_types_choose(p, event, e);
    }
    if (status == PROFD_OK) {
        status = pprof_places_make(p, e);
    }
    if (status == PROFD_OK) {
        status = take_samples(p, in, n, e);
    }
    if (status != PROFD_OK) {
        return status;
    }
    p->profile.sampled |= !p->own && p->profile.pair_count > 0;
    bool timed = p->time > 0 && p->time <= INT64_MAX;
    p->profile.start = timed ? p->time : 0;
    p->profile.end = timed ? p->time + (p->duration <= INT64_MAX ? p->duration : 0) : 0;
    *out = &p->profile;
    return PROFD_OK;
}
