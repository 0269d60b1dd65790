/* Times, shares and dates as people read them. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/buffer.h"
#include "core/coverage.h"
#include "render/render_internal.h"

#define AMOUNT_LEAST 0.005 /* from here on two decimals are not 0.00 */
#define BELOW "<0.01"
#define DIGITS_MOST 3

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

void amount_add_ratio(struct buffer *out, double value, int width)
{
    static const char below[] = "<0.0001";
    const unsigned decimals = value < 9.9995 ? value < 0.99995 ? 4 : 3 : value < 99.995 ? 2 : value < 999.95 ? 1 : 0;
    char text[BUFFER_FIXED_MOST], *end = buffer_put_fixed(text, value, 0, decimals);
    end = decimals > 0 ? drop_zeros(end) : end;
    if (value > 0 && value < 0.00005) {
        end = text + sizeof below - 1;
        memcpy(text, below, sizeof below - 1);
    }
    const int size = (int)(end - text);
    buffer_add_repeat(out, ' ', width > size ? (size_t)(width - size) : 0);
    buffer_add(out, text, (size_t)size);
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

/* Sums of the same ticks in another order differ in their last bits. What lies on a limit, but for these bits, is above
 * it, so that every report shows the same digits. */
static double amount_nudge(double value)
{
    return value * (1 + 1e-9);
}

int amount_digits(double ticks)
{
    ticks = amount_nudge(ticks);
    return ticks < 10 ? 1 : ticks < 1000 ? 2 : DIGITS_MOST;
}

bool amount_is_rough(const struct report *r)
{
    return r->in_seconds && r->ticks > 0 && report_samples(r, (double)r->ticks) < COVERAGE_SAMPLES_LEAST;
}

/* Rounded to that number of significant digits. value is finite and above 0. */
static double round_to(double value, int digits)
{
    const double high = digits == 1 ? 10 : 100;
    double scale = 1;
    value = amount_nudge(value);
    while (value * scale >= high) {
        scale /= 10;
    }
    while (value * scale < high / 10) {
        scale *= 10;
    }
    return floor(value * scale + 0.5) / scale;
}

static double limit_digits(double value, int digits)
{
    return digits < DIGITS_MOST ? round_to(value, digits) : value;
}

double amount_round_percent(double percent, double ticks)
{
    return percent > 0 && amount_digits(ticks) < DIGITS_MOST ? round_to(percent, 2) : percent;
}

void amount_add_percent(struct buffer *out, double percent, double ticks)
{
    if (is_below(percent) || percent == 0 || amount_digits(ticks) == DIGITS_MOST) {
        amount_add(out, percent, 0);
    } else {
        char text[BUFFER_FIXED_MOST], *end = buffer_put_fixed(text, amount_round_percent(percent, ticks), 0, 2);
        buffer_add(out, text, (size_t)(drop_zeros(end) - text));
    }
    buffer_add_char(out, '%');
}

void amount_add_duration(struct buffer *out, double seconds, int digits, int width)
{
    char text[DURATION_MOST];
    size_t size = (size_t)(duration_put(text, limit_digits(seconds, digits)) - text);
    buffer_add_repeat(out, ' ', width > (int)size ? (size_t)width - size : 0);
    buffer_add(out, text, size);
}

int amount_duration_width(double seconds, int digits)
{
    char text[DURATION_MOST];
    return (int)(duration_put(text, limit_digits(seconds, digits)) - text);
}

#define SECOND 1000000000

/* Days since 1970-01-01 to a date of the proleptic Gregorian calendar, by eras of 400 years that begin on 1 March. */
static void date_from_days(int64_t days, int64_t *year, unsigned *month, unsigned *day)
{
    int64_t shifted = days + 719468;
    int64_t era = (shifted >= 0 ? shifted : shifted - 146096) / 146097;
    unsigned of_era = (unsigned)(shifted - era * 146097);
    unsigned years = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
    unsigned of_year = of_era - (365 * years + years / 4 - years / 100);
    unsigned shifted_month = (5 * of_year + 2) / 153;
    *day = of_year - (153 * shifted_month + 2) / 5 + 1;
    *month = shifted_month < 10 ? shifted_month + 3 : shifted_month - 9;
    *year = (int64_t)years + era * 400 + (*month <= 2 ? 1 : 0);
}

void render_time(int64_t nanoseconds, char out[40])
{
    int64_t seconds = nanoseconds / SECOND, rest = nanoseconds % SECOND;
    if (rest < 0) {
        rest += SECOND;
        seconds--;
    }
    int64_t days = seconds / 86400, of_day = seconds % 86400;
    if (of_day < 0) {
        of_day += 86400;
        days--;
    }
    int64_t year;
    unsigned month, day;
    date_from_days(days, &year, &month, &day);
    int n = snprintf(out, 40, "%04" PRId64 "-%02u-%02uT%02d:%02d:%02d", year, month, day, (int)(of_day / 3600),
                     (int)(of_day / 60 % 60), (int)(of_day % 60));
    if (rest != 0) {
        n += snprintf(out + n, 40 - (size_t)n, ".%09d", (int)rest);
        while (out[n - 1] == '0') {
            n--;
        }
    }
    out[n] = 'Z';
    out[n + 1] = '\0';
}

void render_time_second(int64_t nanoseconds, char out[40])
{
    const int64_t rest = nanoseconds % SECOND;
    render_time(nanoseconds - (rest < 0 ? rest + SECOND : rest), out);
}
