#include "query/when.h"

#include <stddef.h>
#include <string.h>

#define SECOND INT64_C(1000000000)

/* Parses n decimal digits at *at and advances it. */
static bool take_digits(const char **at, int n, int *out)
{
    int value = 0;
    for (int i = 0; i < n; i++, ++*at) {
        if (**at < '0' || **at > '9') {
            return false;
        }
        value = value * 10 + (**at - '0');
    }
    *out = value;
    return true;
}

static bool take_char(const char **at, char wanted)
{
    if (**at != wanted) {
        return false;
    }
    ++*at;
    return true;
}

/* Days since the epoch of a date in the proleptic Gregorian calendar; false if there is no such day. */
static bool date_to_days(int year, int month, int day, int64_t *days)
{
    static const int LENGTH[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    static const int BEFORE[] = {0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334};
    bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    if (year < 1970 || month < 1 || month > 12 || day < 1 || day > LENGTH[month - 1] + (leap && month == 2)) {
        return false;
    }
    int past = year - 1;
    int64_t leaps = past / 4 - past / 100 + past / 400 - (1969 / 4 - 1969 / 100 + 1969 / 400);
    *days = (int64_t)(year - 1970) * 365 + leaps + BEFORE[month - 1] + (leap && month > 2) + day - 1;
    return true;
}

static bool take_fraction(const char **at, int64_t *nanoseconds)
{
    int64_t unit = SECOND / 10;
    *nanoseconds = 0;
    if (!take_char(at, '.')) {
        return true;
    }
    const char *first = *at;
    for (; **at >= '0' && **at <= '9'; ++*at) {
        *nanoseconds += (**at - '0') * unit;
        unit /= 10;
    }
    return *at != first && *at - first <= 9;
}

/* "Z" or "+01:00", seconds east of Greenwich. */
static bool take_zone(const char **at, int64_t *east)
{
    int hours, minutes;
    *east = 0;
    if (**at == 'Z' || **at == 'z') {
        ++*at;
        return true;
    }
    int sign = **at == '+' ? 1 : **at == '-' ? -1 : 0;
    if (sign == 0) {
        return false;
    }
    ++*at;
    if (!take_digits(at, 2, &hours) || !take_char(at, ':') || !take_digits(at, 2, &minutes) || hours > 23 ||
        minutes > 59) {
        return false;
    }
    *east = sign * (hours * 3600 + minutes * 60);
    return true;
}

/* A date alone is its first moment, UTC. */
static bool parse_rfc3339(const char *at, int64_t *out)
{
    int year, month, day, hour = 0, minute = 0, second = 0;
    int64_t days, fraction = 0, east = 0;
    bool ok = take_digits(&at, 4, &year) && take_char(&at, '-') && take_digits(&at, 2, &month) && take_char(&at, '-') &&
              take_digits(&at, 2, &day);
    if (ok && *at != '\0') {
        ok = (take_char(&at, 'T') || take_char(&at, 't')) && take_digits(&at, 2, &hour) && take_char(&at, ':') &&
             take_digits(&at, 2, &minute) && take_char(&at, ':') && take_digits(&at, 2, &second) &&
             take_fraction(&at, &fraction) && take_zone(&at, &east) && *at == '\0';
    }
    if (!ok || hour > 23 || minute > 59 || second > 59 || !date_to_days(year, month, day, &days)) {
        return false;
    }
    int64_t seconds = days * 86400 + hour * 3600 + minute * 60 + second - east, result;
    if (__builtin_mul_overflow(seconds, SECOND, &result) || __builtin_add_overflow(result, fraction, &result)) {
        return false;
    }
    *out = result;
    return true;
}

static bool parse_epoch(const char *at, int64_t *out)
{
    int64_t value = 0;
    size_t n = strlen(at);
    for (; *at >= '0' && *at <= '9'; at++) {
        if (__builtin_mul_overflow(value, 10, &value) || __builtin_add_overflow(value, *at - '0', &value)) {
            return false;
        }
    }
    return *at == '\0' && n > 0 && !__builtin_mul_overflow(value, n >= 12 ? 1000000 : SECOND, out);
}

static bool parse_relative(const char *at, int64_t now, int64_t *out)
{
    static const struct {
        char letter;
        int64_t seconds;
    } UNITS[] = {{'s', 1}, {'m', 60}, {'h', 3600}, {'d', 86400}, {'w', 604800}};
    int64_t value = 0;
    const char *first = at;
    for (; *at >= '0' && *at <= '9'; at++) {
        if (__builtin_mul_overflow(value, 10, &value) || __builtin_add_overflow(value, *at - '0', &value)) {
            return false;
        }
    }
    for (size_t i = 0; at != first && i < sizeof UNITS / sizeof *UNITS; i++) {
        if (*at == UNITS[i].letter && at[1] == '\0') {
            return !__builtin_mul_overflow(value, UNITS[i].seconds * SECOND, &value) &&
                   !__builtin_sub_overflow(now, value, out);
        }
    }
    return false;
}

bool when_is_relative(const char *text)
{
    return text[0] == '-' || strncmp(text, "now", 3) == 0;
}

enum profd_status when_parse(const char *name, const char *text, int64_t now, int64_t *out, struct profd_error *e)
{
    int64_t result = 0;
    bool ok;
    if (strcmp(text, "now") == 0) {
        result = now;
        ok = true;
    } else if (strncmp(text, "now-", 4) == 0) {
        ok = parse_relative(text + 4, now, &result);
    } else if (text[0] == '-') {
        ok = parse_relative(text + 1, now, &result);
    } else {
        ok = parse_epoch(text, &result) || parse_rfc3339(text, &result);
    }
    if (!ok || result < 1) {
        return profd_error_set(
            e, PROFD_BAD_QUERY,
            "%s=%s is not a time from 1970 to 2262: RFC 3339, a date (UTC), seconds or milliseconds since the epoch, "
            "now-1h, -30m or -7d",
            name, text);
    }
    *out = result;
    return PROFD_OK;
}

enum profd_status when_parse_window(const char *since_text, const char *until_text, int64_t now, int64_t *since,
                                    int64_t *until, struct profd_error *e)
{
    int64_t first = 0, last = 0;
    if (since_text != NULL) {
        TRY(when_parse("since", since_text, now, &first, e));
    }
    if (until_text != NULL) {
        TRY(when_parse("until", until_text, now, &last, e));
    }
    if (since_text != NULL && until_text != NULL && first >= last) {
        return profd_error_set(e, PROFD_BAD_QUERY, "since=%s is not before until=%s", since_text, until_text);
    }
    *since = first;
    *until = last;
    return PROFD_OK;
}
