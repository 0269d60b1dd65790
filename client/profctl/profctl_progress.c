#include "profctl/profctl_progress.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define QUIET_SECONDS 1.0 /* work that is done by then shows nothing */
#define STEP_SECONDS 0.1
#define BAR 20

static bool line_is_there; /* the one progress line of a terminal */

static double seconds_between(const struct timespec *a, const struct timespec *b)
{
    return (double)(b->tv_sec - a->tv_sec) + (double)(b->tv_nsec - a->tv_nsec) / 1e9;
}

static void left_format(double seconds, char *out, size_t size)
{
    if (seconds < 1 || seconds > 360000) {
        out[0] = '\0';
    } else if (seconds < 100) {
        (void)snprintf(out, size, "  %.0f s left", seconds);
    } else {
        (void)snprintf(out, size, "  %.0f min left", seconds / 60);
    }
}

static void line_write(const struct progress *p, const char *word, double share, const char *detail)
{
    struct winsize size;
    char bar[BAR + 1], left[32] = "", line[512];
    double spent = seconds_between(&p->start, &p->last);
    int full = (int)(share * BAR);
    memset(bar, '.', BAR);
    memset(bar, '#', (size_t)full);
    bar[BAR] = '\0';
    if (share > 0.01) {
        left_format(spent * (1 - share) / share, left, sizeof left);
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
    line_write(p, word, share < 1 ? share : 1, detail);
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
