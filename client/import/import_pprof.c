#include "import/import_pprof.h"

#include <inttypes.h>
#include <string.h>

#include "import/import_pprof_internal.h"
#include "import/import_scan.h"
#include "proto/counts.h"

enum { SAMPLE_LOCATION = 1, SAMPLE_VALUE = 2 };

/* Reads the numbers of a repeated field, packed or not: one of them, and whether it was present. */
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

/* Reads one sample's values, one for each type. */
static enum profd_status sample_read(struct pprof *p, struct pprof_cursor message, uint64_t values[PPROF_TYPES],
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
                return profd_error_set(
                    e, PROFD_REFUSED, "byte %zu: a sample of %" PRId64 ": differences of two profiles cannot be stored",
                    (size_t)(begin - p->file), (int64_t)value);
            }
            values[count++] = value;
        }
        if (bad) {
            return pprof_broken(p, f.inside.at, "a value of a Sample is not a number", e);
        }
    }
    if (broken) {
        return pprof_broken(p, message.at, "not a valid field of a Sample", e);
    }
    if (count != p->type_count) {
        return pprof_broken(p, begin, "a Sample with fewer values than there are sample types", e);
    }
    return PROFD_OK;
}

static uint32_t find_type(const struct pprof *p, const char *type, const char *unit)
{
    for (uint32_t i = 0; i < p->type_count; i++) {
        if (pprof_string_is(p, p->types[i].type, type) && (!unit || pprof_string_is(p, p->types[i].unit, unit))) {
            return i;
        }
    }
    return PPROF_TYPES;
}

/* Number of this unit in a second; 0 if it is not a time. */
static uint32_t unit_rate(const struct pprof *p, uint64_t unit)
{
    return pprof_string_is(p, unit, "nanoseconds")    ? 1000000000u
           : pprof_string_is(p, unit, "microseconds") ? 1000000u
           : pprof_string_is(p, unit, "milliseconds") ? 1000u
           : pprof_string_is(p, unit, "seconds")      ? 1u
                                                      : 0;
}

/* Samples per second, if the period is that of a clock with a whole number of samples per second; otherwise 0. */
static uint32_t sample_rate(const struct pprof *p)
{
    uint32_t unit = unit_rate(p, p->period_type.unit);
    if (unit == 0 || p->period == 0 || p->period > unit) {
        return 0;
    }
    uint64_t rate = ((uint64_t)unit + p->period / 2) / p->period;
    return (uint64_t)unit / rate == p->period ? (uint32_t)rate : 0;
}

static bool comment_begins(const struct pprof *p, const char *text)
{
    for (uint32_t i = 0; i < p->comment_count; i++) {
        struct pprof_string s = pprof_string_at(p, p->comments[i]);
        if (s.size >= strlen(text) && memcmp(s.text, text, strlen(text)) == 0) {
            return true;
        }
    }
    return false;
}

/* Comments in exports of profd state what the counts are. */
static void judge_own(struct pprof *p)
{
    p->calls = find_type(p, "calls", "count");
    p->own = p->calls != PPROF_TYPES && (comment_begins(p, PPROF_COMMENT_OWN) || comment_begins(p, PPROF_COMMENT_SEEN));
    p->derived = p->own && !comment_begins(p, PPROF_COMMENT_SEEN);
    p->profile.sampled = p->own && comment_begins(p, PPROF_COMMENT_SAMPLED);
    for (uint32_t i = 0; p->own && i < p->comment_count; i++) {
        struct pprof_string s = pprof_string_at(p, p->comments[i]);
        struct import_scan rest = {s.text, s.text + s.size};
        uint64_t n;
        if (import_scan_skip(&rest, PPROF_COMMENT_REASONS)) {
            import_profile_set_reasons(&p->profile, rest.at, import_scan_left(&rest));
        } else if (import_scan_skip(&rest, PPROF_COMMENT_PROCESSES) && import_scan_number(&rest, 10, &n)) {
            import_profile_set_processes(&p->profile, n);
        }
    }
}

/* True if the time of each sample is its number of samples times the period. */
static bool samples_say_all(struct pprof *p, uint32_t samples, uint32_t time, const uint8_t *in, size_t n)
{
    struct pprof_cursor c = {in, in + n, in};
    struct pprof_field f;
    bool broken = false;
    uint32_t unit = unit_rate(p, p->types[time].unit), period_unit = unit_rate(p, p->period_type.unit);
    while (unit == period_unit && pprof_field_next(&c, &f, &broken)) {
        uint64_t values[PPROF_TYPES], product;
        if (f.number == PPROF_SAMPLE &&
            (sample_read(p, f.inside, values, NULL) != PROFD_OK ||
             __builtin_mul_overflow(values[samples], p->period, &product) || product != values[time])) {
            return false;
        }
    }
    return unit == period_unit;
}

/* The dimension of a type that is neither time nor samples: its name. */
static void choose_other(struct pprof *p, uint32_t column)
{
    struct pprof_string name = pprof_string_at(p, p->types[column].type);
    uint32_t unit = unit_rate(p, p->types[column].unit);
    bool is_time = unit > 0 && name.size == 3 && memcmp(name.text, "cpu", 3) == 0;
    p->ticks = column;
    if (is_time) {
        import_profile_set_dimension(&p->profile, "seconds", 7, unit);
    } else if (name.size > 0) {
        import_profile_set_dimension(&p->profile, name.text, name.size, unit > 0 ? unit : 1);
    } else {
        import_profile_set_dimension(&p->profile, "samples", 7, 1);
    }
}

/* Determines which values of a sample are ticks and numbers of samples; sets dimension and rate. */
static enum profd_status types_choose(struct pprof *p, const char *event, struct profd_error *e)
{
    bool waiting = pprof_string_is(p, p->period_type.type, "wall");
    uint32_t samples = find_type(p, "samples", "count"), time = find_type(p, waiting ? "wall" : "cpu", NULL),
             rate = sample_rate(p);
    if (p->type_count == 0 || p->sample_count == 0) {
        return profd_error_set(e, PROFD_REFUSED, "%" PRIu32 " sample types and %" PRIu32 " samples: no data",
                               p->type_count, p->sample_count);
    }
    time = time != PPROF_TYPES && unit_rate(p, p->types[time].unit) > 0 ? time : PPROF_TYPES;
    judge_own(p);
    if (event) {
        uint32_t column = find_type(p, event, NULL);
        if (column == PPROF_TYPES) {
            struct pprof_string first = pprof_string_at(p, p->types[0].type);
            return profd_error_set(e, PROFD_REFUSED,
                                   "it has no sample type \"%.60s\"; its first of %" PRIu32 " is \"%.*s\"", event,
                                   p->type_count, (int)(first.size < 60 ? first.size : 60), first.text);
        }
        choose_other(p, column);
        return PROFD_OK;
    }
    size_t n = (size_t)(p->profile_end - p->file);
    bool by_clock = samples != PPROF_TYPES && rate > 0 && (waiting || pprof_string_is(p, p->period_type.type, "cpu"));
    if (by_clock && (time == PPROF_TYPES || p->own || samples_say_all(p, samples, time, p->file, n))) {
        p->ticks = samples;
        import_profile_set_dimension(&p->profile, waiting ? "wall" : "seconds", waiting ? 4 : 7, rate);
    } else if (time != PPROF_TYPES) {
        choose_other(p, time);
    } else {
        struct pprof_string wanted = pprof_string_at(p, p->default_type);
        uint32_t column = 0;
        for (uint32_t i = 0; i < p->type_count && wanted.size > 0; i++) {
            struct pprof_string name = pprof_string_at(p, p->types[i].type);
            column = name.size == wanted.size && memcmp(name.text, wanted.text, name.size) == 0 ? i : column;
        }
        choose_other(p, column);
    }
    return PROFD_OK;
}

/* What one sample adds. */
struct stack {
    uint64_t ticks, calls;
    uint32_t callee; /* previous frame of the stack; IMPORT_NONE at the leaf */
    uint32_t depth;
    bool incomplete; /* its outermost frame stands for callers that are not known, in an export of profd */
};

/* Adds one more frame of a stack, from the leaf up. */
static bool stack_add(struct pprof *p, struct stack *s, uint32_t frame)
{
    bool good = true;
    if (s->depth == 0 && s->ticks > 0) {
        import_profile_add_ticks(&p->profile, frame, s->ticks);
    }
    if (s->depth == 1 && s->calls > 0) { /* export of profd: only caller and callee */
        good = import_profile_add_pair(&p->profile, frame, s->callee, s->calls);
    }
    uint32_t *chain = arena_extend(p->arena, p->chain, s->depth, &p->chain_capacity, sizeof *chain);
    if (!chain) {
        return false;
    }
    p->chain = chain;
    p->chain[s->depth++] = frame;
    s->callee = frame;
    return good;
}

/* Adds the stack that was read. */
static bool add_stack(struct pprof *p, const struct stack *s)
{
    if (p->derived || (s->incomplete && s->depth == 1)) {
        return true;
    }
    if (s->incomplete) {
        p->chain[s->depth - 1] = IMPORT_CUT;
    }
    return import_profile_add_stack(&p->profile, p->chain, s->depth, s->ticks);
}

static enum profd_status take_sample(struct pprof *p, struct pprof_cursor message, struct profd_error *e)
{
    uint64_t values[PPROF_TYPES];
    TRY(sample_read(p, message, values, e));
    struct stack s = {.ticks = values[p->ticks], .calls = p->own ? values[p->calls] : 0, .callee = IMPORT_NONE};
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
            s.incomplete = p->own && l->mapping == 0 && l->address == COUNTS_FRAME_INCOMPLETE;
        }
        if (bad) {
            return pprof_broken(p, f.inside.at, "a location of a Sample is not a number", e);
        }
    }
    if ((s.depth == 1 && s.calls > 0 && !import_profile_add_pair(&p->profile, s.callee, s.callee, s.calls)) ||
        !add_stack(p, &s)) {
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
        status = types_choose(p, event, e);
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
    p->profile.whole_stacks = true; /* the format has no mark for others */
    bool timed = p->time > 0 && p->time <= INT64_MAX;
    p->profile.start = timed ? p->time : 0;
    p->profile.end = timed ? p->time + (p->duration <= INT64_MAX ? p->duration : 0) : 0;
    *out = &p->profile;
    return PROFD_OK;
}
