/* Which of a sample's values are ticks, which say how often it was seen. */
#include <inttypes.h>
#include <string.h>

#include "client/import_pprof_parts.h"

static uint32_t find_type(const struct pprof *p, const char *type, const char *unit)
{
    for (uint32_t i = 0; i < p->type_count; i++) {
        if (pprof_string_is(p, p->types[i].type, type) && (!unit || pprof_string_is(p, p->types[i].unit, unit))) {
            return i;
        }
    }
    return PPROF_TYPES;
}

/* Values of that unit in a second; 0 if it is no time. */
static uint32_t unit_rate(const struct pprof *p, uint64_t unit)
{
    return pprof_string_is(p, unit, "nanoseconds")    ? 1000000000u
           : pprof_string_is(p, unit, "microseconds") ? 1000000u
           : pprof_string_is(p, unit, "milliseconds") ? 1000u
           : pprof_string_is(p, unit, "seconds")      ? 1u
                                                      : 0;
}

/* Samples in a second, if they were taken by a clock of whole samples in a second; else 0. */
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

/* profd's own exports say of themselves what they are. */
static void judge_own(struct pprof *p)
{
    p->calls = find_type(p, "calls", "count");
    p->own = p->calls != PPROF_TYPES && comment_begins(p, "synthetic: stacks are derived from call counts");
    p->profile.sampled = p->own && comment_begins(p, "calls: sampled");
    p->profile.lossy = p->own && comment_begins(p, "calls: counted, but not exact");
}

/* Every sample's time is its number of samples times the period. */
static bool samples_say_all(struct pprof *p, uint32_t samples, uint32_t time, const uint8_t *in, size_t n)
{
    struct pprof_cursor c = {in, in + n, in};
    struct pprof_field f;
    bool broken = false;
    uint32_t unit = unit_rate(p, p->types[time].unit), period_unit = unit_rate(p, p->period_type.unit);
    while (unit == period_unit && pprof_field_next(&c, &f, &broken)) {
        uint64_t values[PPROF_TYPES], product;
        if (f.number == PPROF_SAMPLE &&
            (pprof_sample_read(p, f.inside, values, NULL) != PROFD_OK ||
             __builtin_mul_overflow(values[samples], p->period, &product) || product != values[time])) {
            return false;
        }
    }
    return unit == period_unit;
}

/* The dimension of a type that is neither time nor samples of it: by its name. */
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

static enum profd_status choose_wanted(struct pprof *p, const char *event, struct profd_error *e)
{
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

enum profd_status pprof_types_choose(struct pprof *p, const char *event, struct profd_error *e)
{
    bool waiting = pprof_string_is(p, p->period_type.type, "wall");
    uint32_t samples = find_type(p, "samples", "count"), time = find_type(p, waiting ? "wall" : "cpu", NULL),
             rate = sample_rate(p);
    if (p->type_count == 0 || p->sample_count == 0) {
        return profd_error_set(e, PROFD_REFUSED,
                               "it has %" PRIu32 " sample types and %" PRIu32 " samples: nothing was measured",
                               p->type_count, p->sample_count);
    }
    time = time != PPROF_TYPES && unit_rate(p, p->types[time].unit) > 0 ? time : PPROF_TYPES;
    judge_own(p);
    p->weight = samples;
    if (event) {
        enum profd_status status = choose_wanted(p, event, e);
        p->weight = samples != PPROF_TYPES ? samples : p->ticks;
        return status;
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
    p->weight = p->weight != PPROF_TYPES ? p->weight : p->ticks;
    return PROFD_OK;
}
