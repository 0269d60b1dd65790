#include "query/params.h"

#include <stdint.h>
#include <string.h>

#include "proto/http_text.h"
#include "proto/utf8.h"

/* Decodes n bytes at target + offset to *out and appends a NUL; *out is advanced. */
static enum profd_status decode_piece(const char *target, size_t offset, size_t n, char **out, struct profd_error *e)
{
    char *start = *out, *to = *out;
    for (size_t i = 0; i < n; i++) {
        const char *at = target + offset + i;
        if (*at != '%') {
            *to++ = *at;
            continue;
        }
        int byte = http_percent_value(at, n - i);
        FAIL_IF(byte < 0, e, PROFD_BAD_QUERY, "%% at offset %zu is not followed by two hexadecimal digits", offset + i);
        FAIL_IF(byte < 0x20 || byte == 0x7f, e, PROFD_BAD_QUERY,
                "control character %%%02X at offset %zu is not allowed", (unsigned)byte, offset + i);
        *to++ = (char)byte;
        i += 2;
    }
    FAIL_IF(!utf8_valid((const uint8_t *)start, (size_t)(to - start)), e, PROFD_BAD_QUERY,
            "the text at offset %zu is not UTF-8", offset);
    *to++ = '\0';
    *out = to;
    return PROFD_OK;
}

enum profd_status params_parse(const char *target, struct params *p, struct profd_error *e)
{
    size_t n = strnlen(target, LIMIT_QUERY_BYTES + 1);
    p->segment_count = 0;
    p->count = 0;
    FAIL_IF(n > LIMIT_QUERY_BYTES, e, PROFD_TOO_LARGE, "the target is longer than %u bytes", LIMIT_QUERY_BYTES);
    FAIL_IF(n == 0 || target[0] != '/', e, PROFD_BAD_QUERY, "the target must begin with '/'");
    for (size_t i = 0; i < n; i++) {
        FAIL_IF(target[i] != '%' && target[i] != '?' && !http_is_path(target[i]), e, PROFD_BAD_QUERY,
                "byte 0x%02x at offset %zu must be percent-encoded", (unsigned char)target[i], i);
    }
    const char *mark = memchr(target, '?', n);
    const size_t path = mark ? (size_t)(mark - target) : n;
    char *out = p->text; /* every piece shrinks by its separator, so that the NULs fit, plus one for the last */
    for (size_t at = 1, end; at <= path; at = end + 1) {
        const char *slash = memchr(target + at, '/', path - at);
        end = slash ? (size_t)(slash - target) : path;
        FAIL_IF(p->segment_count == PARAMS_SEGMENTS, e, PROFD_NOT_FOUND,
                "not found: the path has more than %d segments", PARAMS_SEGMENTS);
        p->segments[p->segment_count++] = out;
        TRY(decode_piece(target, at, end - at, &out, e));
    }
    for (size_t at = path + 1, end; at < n; at = end + 1) {
        const char *ampersand = memchr(target + at, '&', n - at);
        end = ampersand ? (size_t)(ampersand - target) : n;
        const char *equals = memchr(target + at, '=', end - at);
        FAIL_IF(!equals || equals == target + at, e, PROFD_BAD_QUERY,
                "parameter '%.*s' at offset %zu is not name=value", (int)(end - at < 64 ? end - at : 64), target + at,
                at);
        FAIL_IF(p->count == PARAMS_COUNT, e, PROFD_BAD_QUERY, "more than %d parameters", PARAMS_COUNT);
        const size_t middle = (size_t)(equals - target);
        struct param *item = &p->items[p->count++];
        item->name = out;
        TRY(decode_piece(target, at, middle - at, &out, e));
        item->value = out;
        TRY(decode_piece(target, middle + 1, end - middle - 1, &out, e));
        FAIL_IF(end + 1 == n && ampersand, e, PROFD_BAD_QUERY, "the query ends with '&'");
    }
    return PROFD_OK;
}

enum profd_status params_check(const struct params *p, const char *const *allowed, const char *more,
                               struct profd_error *e)
{
    for (size_t i = 0; i < p->count; i++) {
        const char *name = p->items[i].name;
        bool known = more && strcmp(name, more) == 0;
        for (size_t k = 0; allowed[k] && !known; k++) {
            const size_t n = strlen(allowed[k]);
            known = allowed[k][n - 1] == '*' ? strncmp(name, allowed[k], n - 1) == 0 && name[n - 1] != '\0'
                                             : strcmp(name, allowed[k]) == 0;
        }
        FAIL_IF(!known, e, PROFD_BAD_QUERY, "unknown parameter '%s'", name);
        const char *base = name[0] != '\0' && name[1] == '.' ? name + 2 : name; /* "a.match" of one side */
        bool repeats = strcmp(base, "match") == 0 || strcmp(name, "by") == 0 || strcmp(name, "watch") == 0 ||
                       strncmp(base, "label.", 6) == 0;
        for (size_t j = 0; j < i && !repeats; j++) {
            FAIL_IF(strcmp(p->items[j].name, name) == 0, e, PROFD_BAD_QUERY, "parameter '%s' is given twice", name);
        }
    }
    return PROFD_OK;
}

const char *params_find(const struct params *p, const char *name)
{
    for (size_t i = 0; i < p->count; i++) {
        if (strcmp(p->items[i].name, name) == 0) {
            return p->items[i].value;
        }
    }
    return NULL;
}

enum profd_status params_parse_flag(const struct params *p, const char *name, bool *out, struct profd_error *e)
{
    static const char *const words[] = {"0", "1", "no", "yes", "false", "true"};
    const char *text = params_find(p, name);
    *out = false;
    for (size_t i = 0; text && i < sizeof words / sizeof *words; i++) {
        if (strcmp(text, words[i]) == 0) {
            *out = i % 2 == 1;
            return PROFD_OK;
        }
    }
    return !text ? PROFD_OK
                 : profd_error_set(e, PROFD_BAD_QUERY, "%s=%s: give 0, 1, no, yes, false or true", name, text);
}

enum profd_status params_parse_number(const struct params *p, const char *name, unsigned long long low,
                                      unsigned long long high, unsigned long long *out, struct profd_error *e)
{
    const char *text = params_find(p, name);
    if (!text) {
        return PROFD_OK;
    }
    unsigned long long value = 0;
    bool ok = *text != '\0';
    for (const char *c = text; ok && *c != '\0'; c++) {
        ok = *c >= '0' && *c <= '9' && !__builtin_mul_overflow(value, 10ull, &value) &&
             !__builtin_add_overflow(value, (unsigned long long)(*c - '0'), &value);
    }
    FAIL_IF(!ok || value < low || value > high, e, PROFD_BAD_QUERY, "%s=%s is not a whole number from %llu to %llu",
            name, text, low, high);
    *out = value;
    return PROFD_OK;
}

static void add_counted(struct buffer *out, const char *text)
{
    buffer_add_format(out, "%zu %s ", strlen(text), text);
}

void params_add_canonical(const struct params *p, const char *build, struct buffer *out)
{
    const struct param *sorted[PARAMS_COUNT];
    for (size_t i = 0; i < p->count; i++) {
        size_t at = i;
        for (; at > 0 && strcmp(sorted[at - 1]->name, p->items[i].name) > 0; at--) {
            sorted[at] = sorted[at - 1];
        }
        sorted[at] = &p->items[i];
    }
    for (size_t i = 0; i < p->segment_count; i++) {
        add_counted(out, i == PARAMS_BUILD && build ? build : p->segments[i]);
    }
    buffer_add_char(out, '\n');
    for (size_t i = 0; i < p->count; i++) {
        add_counted(out, sorted[i]->name);
        add_counted(out, sorted[i]->value);
    }
    buffer_add_char(out, '\n');
}

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

/* Parses the decimal digits at *at and advances it behind them; false if the number is too large. */
static bool take_number(const char **at, int64_t *out)
{
    int64_t value = 0;
    for (; **at >= '0' && **at <= '9'; ++*at) {
        if (__builtin_mul_overflow(value, 10, &value) || __builtin_add_overflow(value, **at - '0', &value)) {
            return false;
        }
    }
    *out = value;
    return true;
}

/* "1h": a time before now. */
static bool parse_relative(const char *text, int64_t now, int64_t *out)
{
    static const struct {
        char letter;
        int64_t seconds;
    } UNITS[] = {{'s', 1}, {'m', 60}, {'h', 3600}, {'d', 86400}, {'w', 604800}};
    int64_t value = 0;
    const char *at = text;
    if (!take_number(&at, &value)) {
        return false;
    }
    for (size_t i = 0; at != text && i < sizeof UNITS / sizeof *UNITS; i++) {
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
        const char *at = text; /* seconds or, from 12 digits on, milliseconds since the epoch */
        const int64_t unit = strlen(text) >= 12 ? 1000000 : SECOND;
        ok = (take_number(&at, &result) && at != text && *at == '\0' &&
              !__builtin_mul_overflow(result, unit, &result)) ||
             parse_rfc3339(text, &result);
    }
    FAIL_IF(!ok || result < 1, e, PROFD_BAD_QUERY,
            "%s=%s is not a time from 1970 to 2262: RFC 3339, a date (UTC), seconds or milliseconds since the epoch, "
            "now-1h, -30m or -7d",
            name, text);
    *out = result;
    return PROFD_OK;
}

enum profd_status when_parse_window(const char *since_text, const char *until_text, int64_t now, int64_t *since,
                                    int64_t *until, struct profd_error *e)
{
    int64_t first = 0, last = 0;
    if (since_text) {
        TRY(when_parse("since", since_text, now, &first, e));
    }
    if (until_text) {
        TRY(when_parse("until", until_text, now, &last, e));
    }
    FAIL_IF(since_text && until_text && first >= last, e, PROFD_BAD_QUERY, "since=%s is not before until=%s",
            since_text, until_text);
    *since = first;
    *until = last;
    return PROFD_OK;
}
