#include "render/amount.h"

#include <stdbool.h>
#include <string.h>

#include "core/buffer_number.h"

#define AMOUNT_LEAST 0.005 /* from here on two decimals are not 0.00 */
#define BELOW "<0.01"

int amount_count_width(uint64_t value)
{
    int digits = 1;
    while (value >= 10) {
        value /= 10;
        digits++;
    }
    return digits;
}

static bool is_below(double value)
{
    return value > 0 && value < AMOUNT_LEAST;
}

void amount_add(struct buffer *out, double value, int width)
{
    if (is_below(value)) {
        buffer_add_format(out, "%*s", width, BELOW);
    } else {
        buffer_add_fixed(out, value, width, 2);
    }
}

int amount_width(double value)
{
    char digits[BUFFER_FIXED_MOST];
    return is_below(value) ? (int)strlen(BELOW) : (int)(buffer_put_fixed(digits, value, 0, 2) - digits);
}

/* Drops zeros behind the decimal point, and the point if nothing is left behind it; returns the end. */
static char *drop_zeros(char *end)
{
    while (end[-1] == '0') {
        end--;
    }
    return end[-1] == '.' ? end - 1 : end;
}

#define DURATION_MOST (BUFFER_FIXED_MOST + 2)

/* Writes at most DURATION_MOST bytes at text; returns their end. The unit is chosen after rounding: 999.7 us is "1ms".
 */
static char *duration_put(char *text, double seconds)
{
    static const struct {
        double scale;
        const char *unit;
    } UNITS[] = {{1e9, "ns"}, {1e6, "us"}, {1e3, "ms"}, {1, "s"}};
    size_t u = 0, last = sizeof UNITS / sizeof *UNITS - 1;
    while (u < last && seconds * UNITS[u].scale >= 999.5) {
        u++;
    }
    double value = seconds * UNITS[u].scale;
    char *end;
    if (is_below(value)) {
        end = text + strlen(BELOW);
        memcpy(text, BELOW, strlen(BELOW));
    } else if (value >= 99.95) {
        end = buffer_put_fixed(text, value, 0, 0);
    } else {
        end = drop_zeros(buffer_put_fixed(text, value, 0, value >= 9.995 ? 1 : 2));
    }
    size_t n = strlen(UNITS[u].unit);
    memcpy(end, UNITS[u].unit, n);
    return end + n;
}

void amount_add_duration(struct buffer *out, double seconds, int width)
{
    char text[DURATION_MOST];
    size_t size = (size_t)(duration_put(text, seconds) - text);
    buffer_add_repeat(out, ' ', width > (int)size ? (size_t)width - size : 0);
    buffer_add(out, text, size);
}

int amount_duration_width(double seconds)
{
    char text[DURATION_MOST];
    return (int)(duration_put(text, seconds) - text);
}
