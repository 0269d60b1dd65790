#include "config/config_units.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#define SECOND INT64_C(1000000000)
#define AGE_MAX (INT64_C(36525) * 86400 * SECOND) /* a century */

/* The digits at the beginning; *rest points behind them. False without digits or above 2^63−1. */
static bool config_parse_number(const char *text, uint64_t *number, const char **rest)
{
    uint64_t value = 0;

    *rest = text;
    for (; **rest >= '0' && **rest <= '9'; (*rest)++) {
        const uint64_t digit = (uint64_t)(**rest - '0');

        if (value > (INT64_MAX - digit) / 10) {
            return false;
        }
        value = value * 10 + digit;
    }
    *number = value;
    return *rest != text;
}

enum profd_status config_parse_age(const char *key, const char *text, int64_t *ns, struct profd_error *e)
{
    static const struct {
        const char *unit;
        int64_t seconds;
    } units[] = {{"s", 1}, {"m", 60}, {"h", 3600}, {"d", 86400}, {"w", 604800}};
    const char *rest;
    uint64_t number;

    if (config_parse_number(text, &number, &rest)) {
        if (!number && !*rest) {
            *ns = 0;
            return PROFD_OK;
        }
        for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
            if (strcmp(rest, units[i].unit) != 0) {
                continue;
            }
            if (number > (uint64_t)(AGE_MAX / SECOND / units[i].seconds)) {
                return profd_error_set(e, PROFD_CONFIG, "%s is \"%s\"; it must not exceed 100 years", key, text);
            }
            *ns = (int64_t)number * units[i].seconds * SECOND;
            return PROFD_OK;
        }
    }
    return profd_error_set(e, PROFD_CONFIG, "%s is \"%.100s\", not a whole number followed by s, m, h, d or w", key,
                           text);
}

enum profd_status config_parse_bytes(const char *key, const char *text, uint64_t *bytes, struct profd_error *e)
{
    static const struct {
        const char *unit;
        uint64_t bytes;
    } units[] = {
        {"", 1},
        {"K", UINT64_C(1) << 10},
        {"M", UINT64_C(1) << 20},
        {"G", UINT64_C(1) << 30},
        {"T", UINT64_C(1) << 40},
        {"KiB", UINT64_C(1) << 10},
        {"MiB", UINT64_C(1) << 20},
        {"GiB", UINT64_C(1) << 30},
        {"TiB", UINT64_C(1) << 40},
        {"kB", UINT64_C(1000)},
        {"MB", UINT64_C(1000000)},
        {"GB", UINT64_C(1000000000)},
        {"TB", UINT64_C(1000000000000)},
    };
    const char *rest;
    uint64_t number;

    if (config_parse_number(text, &number, &rest)) {
        for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
            if (strcmp(rest, units[i].unit) != 0) {
                continue;
            }
            if (number > INT64_MAX / units[i].bytes) {
                return profd_error_set(e, PROFD_CONFIG, "%s is \"%.100s\"; it must not exceed 2^63 bytes", key, text);
            }
            *bytes = number * units[i].bytes;
            return PROFD_OK;
        }
    }
    return profd_error_set(
        e, PROFD_CONFIG,
        "%s is \"%.100s\", not a whole number of bytes, or a number followed by K, M, G or T (also KiB … and kB …)",
        key, text);
}

enum profd_status config_parse_percent(const char *key, const char *text, unsigned *percent, struct profd_error *e)
{
    const char *rest;
    uint64_t number;

    if (!config_parse_number(text, &number, &rest) || strcmp(rest, "%") != 0 || number < 1 || number > 100) {
        return profd_error_set(e, PROFD_CONFIG, "%s is \"%.100s\", not a whole number from 1%% to 100%%", key, text);
    }
    *percent = (unsigned)number;
    return PROFD_OK;
}
