/* Which dimension the values of another tool's profile belong to. There is one rule for all ways into profd. Pure. */
#ifndef PROFD_CORE_FOREIGN_CLOCK_H
#define PROFD_CORE_FOREIGN_CLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* A text without a NUL. It need not be UTF-8. */
struct foreign_text {
    const char *text;
    size_t size;
};
#define FOREIGN_TEXT(literal) ((struct foreign_text){(literal), sizeof(literal) - 1})

static inline struct foreign_text foreign_text_of(const char *text)
{
    return (struct foreign_text){text, strlen(text)};
}

static inline bool foreign_text_equal(struct foreign_text a, struct foreign_text b)
{
    return a.size == b.size && (a.size == 0 || memcmp(a.text, b.text, a.size) == 0);
}

static inline bool foreign_text_is(struct foreign_text t, const char *other)
{
    return foreign_text_equal(t, foreign_text_of(other));
}

/* Returns the nanoseconds of a unit of time, or 0 if it is not one. */
uint64_t foreign_unit_nanoseconds(struct foreign_text unit);

#define FOREIGN_DIMENSION_SIZE 16
/* Writes the name of the dimension for values with this name, "samples" if it is empty. Characters that a dimension
 * cannot have become '_'. A name of over 15 bytes is shortened to its first 10 bytes and a hash of the name. A report
 * takes "seconds" for CPU time, "wall" for elapsed time and "collector" for counters of the collector. Other values
 * with such a name get another one. timed: the values are an amount of time. */
void foreign_name_dimension(struct foreign_text name, bool timed, char out[FOREIGN_DIMENSION_SIZE]);

/* What a value counts. */
struct foreign_clock {
    uint32_t rate;  /* values per second, or per unit of the dimension */
    uint64_t scale; /* each value counts as this many */
    char dimension[FOREIGN_DIMENSION_SIZE];
    char abbreviation;
};
/* A sample type as pprof and OTLP have it.
 *
 * Samples of CPU time with a period become ticks of the dimension "seconds", at the rate of that period. If the period
 * is not a whole fraction of a second, or if the values are CPU time in a unit of time, a tick is a nanosecond.
 * Every other type is a dimension of its own, with the name of foreign_name_dimension. Values in units of time become
 * nanoseconds. */
struct foreign_type {
    struct foreign_text type, unit, period_type, period_unit;
    int64_t period; /* 0 or less: unknown */
};
void foreign_choose_clock(const struct foreign_type *type, struct foreign_clock *out);

#endif
