#include <inttypes.h>
#include <stdio.h>

#include "render/render.h"

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
