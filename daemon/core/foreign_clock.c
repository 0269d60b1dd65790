#include "core/foreign_clock.h"

#include "proto/collector.h"

#define SECOND UINT64_C(1000000000)

uint64_t foreign_unit_nanoseconds(struct foreign_text unit)
{
    static const struct {
        const char *name;
        uint64_t nanoseconds;
    } units[] = {{"nanoseconds", 1},     {"nanosecond", 1}, {"nsec", 1},         {"ns", 1},
                 {"microseconds", 1000}, {"usec", 1000},    {"us", 1000},        {"milliseconds", 1000000},
                 {"msec", 1000000},      {"ms", 1000000},   {"seconds", SECOND}, {"s", SECOND}};
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        if (foreign_text_is(unit, units[i].name)) {
            return units[i].nanoseconds;
        }
    }
    return 0;
}

void foreign_name_dimension(struct foreign_text name, bool timed, char out[FOREIGN_DIMENSION_SIZE])
{
    static const char digits[] = "0123456789abcdef";
    const size_t most = FOREIGN_DIMENSION_SIZE - 1, n = name.size < most ? name.size : most;
    memset(out, 0, FOREIGN_DIMENSION_SIZE);
    for (size_t i = 0; i < n; i++) {
        const char c = name.text[i]; /* a colon separates the parts of Pyroscope's types */
        out[i] = (char)(c > ' ' && c <= '~' && c != ':' ? c : '_');
    }
    if (n < name.size) { /* two long names with the same beginning are two dimensions */
        uint32_t hash = 2166136261u;
        for (size_t i = 0; i < name.size; i++) {
            hash = (hash ^ (uint8_t)name.text[i]) * 16777619u;
        }
        hash ^= hash >> 16;
        out[n - 5] = '~';
        for (size_t i = n - 1; i > n - 5; i--, hash >>= 4) {
            out[i] = digits[hash & 15];
        }
    }
    if (n == 0) {
        memcpy(out, "samples", sizeof "samples");
    } else if (strcmp(out, "seconds") == 0 || collector_is_dimension(out) || (!timed && strcmp(out, "wall") == 0)) {
        out[n] = '_';
    }
}

void foreign_choose_clock(const struct foreign_type *t, struct foreign_clock *out)
{
    const uint64_t of_value = foreign_unit_nanoseconds(t->unit), of_period = foreign_unit_nanoseconds(t->period_unit);
    const bool samples = foreign_text_is(t->type, "samples") || foreign_text_is(t->type, "sample");
    const bool cpu = foreign_text_is(t->type, "cpu") || (samples && foreign_text_is(t->period_type, "cpu"));
    /* the period's type names what samples are of */
    const struct foreign_text *name = samples && t->period_type.size > 0 ? &t->period_type : &t->type;
    bool timed = true;
    *out = (struct foreign_clock){.rate = 1, .scale = 1};
    if (samples && of_period > 0 && t->period > 0 && (uint64_t)t->period <= SECOND * 3600 / of_period) {
        const uint64_t period = (uint64_t)t->period * of_period, rate = (SECOND + period / 2) / period,
                       second = rate * period, error = second > SECOND ? second - SECOND : SECOND - second;
        const bool whole = rate > 0 && error <= SECOND / 100000; /* a period of 19 Hz is rounded to nanoseconds */
        out->rate = (uint32_t)(whole ? rate : SECOND);
        out->scale = whole ? 1 : period;
    } else if (of_value > 0) { /* of other types than these the nanosecond is the unit */
        out->rate = cpu || foreign_text_is(*name, "wall") ? (uint32_t)SECOND : 1;
        out->scale = of_value;
    } else {
        timed = false;
    }
    if (cpu) {
        memcpy(out->dimension, timed ? "seconds" : "samples", sizeof "seconds");
    } else {
        foreign_name_dimension(*name, timed, out->dimension);
    }
    out->abbreviation = out->dimension[0];
}
