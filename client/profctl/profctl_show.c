#include "profctl/profctl_show.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

void show_age(int64_t then, int64_t now, char *out, size_t size)
{
    static const struct {
        int64_t below, unit;
        const char *name;
    } steps[] = {{120, 1, "s"}, {7200, 60, "min"}, {172800, 3600, "h"}, {INT64_MAX, 86400, "d"}};
    int64_t age = now > then ? now - then : 0;
    size_t i = 0;
    while (age >= steps[i].below) {
        i++;
    }
    (void)snprintf(out, size, "%" PRId64 " %s ago", age / steps[i].unit, steps[i].name);
}

void show_age_of(const char *rfc3339, int64_t now, char *out, size_t size)
{
    struct tm t = {.tm_sec = 0};
    if (strptime(rfc3339, "%Y-%m-%dT%H:%M:%S", &t) == NULL) {
        (void)snprintf(out, size, "-");
        return;
    }
    show_age((int64_t)timegm(&t), now, out, size);
}

void show_bytes(uint64_t bytes, char *out, size_t size)
{
    static const char *const units[] = {"B", "kB", "MB", "GB", "TB"};
    double value = (double)bytes;
    size_t i = 0;
    while (value >= 1000 && i + 1 < sizeof units / sizeof units[0]) {
        value /= 1000;
        i++;
    }
    (void)snprintf(out, size, "%.*f %s", i ? 1 : 0, value, units[i]);
}

void show_amount(double value, char *out, size_t size)
{
    if (value > 0 && value < 0.005) {
        (void)snprintf(out, size, "<0.01");
    } else {
        (void)snprintf(out, size, "%.2f", value);
    }
}

void show_percent(double percent, uint64_t ticks, char *out, size_t size)
{
    int decimals = ticks >= 1000 || percent < 0.995 ? 2 : percent < 9.95 ? 1 : 0;
    if (percent > 0 && percent < 0.005) {
        (void)snprintf(out, size, "<0.01%%");
    } else {
        (void)snprintf(out, size, "%.*f%%", decimals, percent);
    }
}

void show_rounded(double value, int digits, char *out, size_t size)
{
    (void)snprintf(out, size, "%.*g", digits, value);
    if (value >= 1 && strchr(out, 'e') != NULL) {
        (void)snprintf(out, size, "%.0f", strtod(out, NULL));
    }
}

void show_share(double part, char *out, size_t size)
{
    if (part > 0 && part < 1e-5) {
        (void)snprintf(out, size, "<0.001%%");
    } else {
        (void)snprintf(out, size, "%.3g%%", 100 * part);
    }
}

void show_change(double change, char *out, size_t size)
{
    char factor[40];
    if (change >= 9) {
        show_rounded(change + 1, 3, factor, sizeof factor);
        (void)snprintf(out, size, "%sx", factor);
    } else {
        (void)snprintf(out, size, "%+.*f%%", fabs(change) < 0.1 ? 2 : 1, 100 * change);
    }
    if (strtod(out, NULL) == 0) { /* without the sign of what is rounded away */
        (void)snprintf(out, size, "0.00%%");
    }
}
