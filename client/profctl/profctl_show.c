/* What people read: numbers and times as they are usually written, text that a terminal may show, and one line of
 * progress. */
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "profctl/profctl.h"
#include "proto/utf8.h"

/* ---- Numbers and times ---- */

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

int64_t show_time_of(const char *rfc3339)
{
    struct tm t = {.tm_sec = 0};
    return strptime(rfc3339, "%Y-%m-%dT%H:%M:%S", &t) ? (int64_t)timegm(&t) : 0;
}

void show_age_of(const char *rfc3339, int64_t now, char *out, size_t size)
{
    const int64_t then = show_time_of(rfc3339);
    if (!then) {
        (void)snprintf(out, size, "-");
        return;
    }
    show_age(then, now, out, size);
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
    if (strtod(out, NULL) == 0) { /* rounded to 0: no sign */
        (void)snprintf(out, size, "0.00%%");
    }
}

/* ---- Text for a terminal, and progress ---- */

/* Writes what was held: a whole character, or bytes that are none. */
static size_t held_write(struct terminal_filter *f, char *out)
{
    size_t written = 0, taken;
    if (!f->one_line && f->held_count == 1 && (f->held[0] == '\n' || f->held[0] == '\t')) {
        out[written++] = (char)f->held[0];
        f->held_count = 0;
    } else if (!f->one_line && f->held_count == 1 && f->held[0] == '\f') {
        f->held_count = 0;
    }
    for (size_t at = 0; at < f->held_count; at += taken) {
        char shown[UTF8_ESCAPE_SIZE];
        size_t n = utf8_escape(f->held + at, f->held_count - at, shown, &taken);
        memcpy(out + written, shown, n);
        written += n;
    }
    f->held_count = 0;
    return written;
}

size_t terminal_filter_run(struct terminal_filter *f, const void *bytes, size_t n, char *out)
{
    const unsigned char *in = bytes;
    size_t written = 0;
    if (n == 0) {
        return held_write(f, out);
    }
    for (size_t i = 0; i < n; i++) {
        if (f->held_count > 0 && (in[i] & 0xc0) != 0x80) {
            written += held_write(f, out + written);
        }
        f->held[f->held_count++] = in[i];
        size_t size = (f->held[0] < 0x80   ? 1
                       : f->held[0] < 0xc2 ? 0
                       : f->held[0] < 0xe0 ? 2
                       : f->held[0] < 0xf0 ? 3
                       : f->held[0] < 0xf5 ? 4
                                           : 0);
        if (size == 0 || f->held_count == size) {
            written += held_write(f, out + written);
        }
    }
    return written;
}

#define QUIET_SECONDS 1.0 /* work that is done by then shows nothing */
#define STEP_SECONDS 0.1
#define BAR 20

static bool line_is_there; /* the one progress line of a terminal */

static double seconds_between(const struct timespec *a, const struct timespec *b)
{
    return (double)(b->tv_sec - a->tv_sec) + (double)(b->tv_nsec - a->tv_nsec) / 1e9;
}

static void bar_write(const struct progress *p, const char *word, double share, const char *detail)
{
    struct winsize size;
    char bar[BAR + 1], left[32] = "", line[512];
    double spent = seconds_between(&p->start, &p->last);
    int full = (int)(share * BAR);
    memset(bar, '.', BAR);
    memset(bar, '#', (size_t)full);
    bar[BAR] = '\0';
    const double seconds = share > 0.01 ? spent * (1 - share) / share : 0;
    if (seconds >= 1 && seconds <= 360000) {
        (void)snprintf(left, sizeof left, seconds < 100 ? "  %.0f s left" : "  %.0f min left",
                       seconds < 100 ? seconds : seconds / 60);
    }
    (void)snprintf(line, sizeof line, "%s [%s] %3d %%%s%s%s", word, bar, (int)(share * 100), detail[0] ? "  " : "",
                   detail, left);
    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 10 && strlen(line) >= size.ws_col) {
        line[size.ws_col - 1] = '\0'; /* a line that wraps cannot be written over */
    }
    (void)fprintf(stderr, "\r\033[K%s", line);
    (void)fflush(stderr);
}

void progress_show(struct progress *p, const char *word, uint64_t done, uint64_t total, const char *detail)
{
    struct timespec now;
    if (clock_gettime(CLOCK_MONOTONIC, &now) != 0) {
        return;
    }
    if (!p->began) {
        p->began = true;
        p->start = p->last = now;
    }
    if (isatty(STDERR_FILENO) != 1 || seconds_between(&p->start, &now) < QUIET_SECONDS ||
        (p->shown && seconds_between(&p->last, &now) < STEP_SECONDS)) {
        return;
    }
    double share = total ? (double)done / (double)total : 0;
    p->last = now;
    p->shown = line_is_there = true;
    bar_write(p, word, share < 1 ? share : 1, detail);
}

void progress_clear(void)
{
    if (line_is_there) {
        (void)fputs("\r\033[K", stderr);
        (void)fflush(stderr);
        line_is_there = false;
    }
}

void progress_end(struct progress *p)
{
    if (p->shown) {
        progress_clear();
    }
    p->shown = p->began = false;
}

void profctl_clean(const char *text, char *out, size_t size)
{
    struct terminal_filter f = {.one_line = true};
    char piece[TERMINAL_BOUND(1)];
    size_t written = 0;
    for (bool more = true; more; text++) {
        more = *text != '\0';
        size_t n = terminal_filter_run(&f, text, more, piece);
        if (written + n >= size) {
            break;
        }
        memcpy(out + written, piece, n);
        written += n;
    }
    out[written] = '\0';
}

void profctl_print(const char *text, size_t size)
{
    char clean[1024];
    profctl_clean(text, clean, size < sizeof clean ? size : sizeof clean);
    fputs(clean, stdout);
}

void profctl_complain(const char *format, ...)
{
    char text[2048], clean[2048];
    va_list list;
    va_start(list, format);
    (void)vsnprintf(text, sizeof text, format, list);
    va_end(list);
    profctl_clean(text, clean, sizeof clean);
    progress_clear();
    (void)fprintf(stderr, "profctl: %s\n", clean);
}
