#include "writer/run_times.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"

#define LINE 40u         /* "FROM TO\n", 19 digits each: times of this and the next two centuries */
#define TICK_NS 10000000 /* times of files are those of the clock's last tick */
#define LINES_MAX (4 * (off_t)DOWNTIME_MAX)

struct run_times {
    int fd;   /* -1: it cannot be written */
    off_t at; /* of the line of this run */
    int64_t start;
    bool begun;
    struct downtime downtime;
};

/* Adds the gap before the run that a line describes. *end: of the run before it, 0 if there is none. A line that was
 * cut off or is no such line is skipped. */
static void run_times_take(struct downtime *d, const char line[LINE], int64_t *end)
{
    char text[LINE + 1];
    char *rest;
    int64_t from, to;

    memcpy(text, line, LINE);
    text[LINE] = 0;
    from = strtoll(text, &rest, 10);
    to = strtoll(rest, &rest, 10);
    if (*rest != '\n' || from <= 0 || to < from) {
        return;
    }
    if (*end && from > *end) {
        if (d->count == DOWNTIME_MAX) {
            memmove(d->gaps, d->gaps + 1, (DOWNTIME_MAX - 1) * sizeof *d->gaps);
            d->count--;
        }
        d->gaps[d->count++] = (struct downtime_gap){*end, from};
    }
    *end = to > *end ? to : *end;
}

/* When the previous run last wrote to the database, which may be later than its line says if it was killed. */
static int64_t run_times_find_written(int directory, const char *name)
{
    struct stat st;

    if (fstatat(directory, name, &st, AT_SYMLINK_NOFOLLOW)) {
        return 0;
    }
    return st.st_mtim.tv_sec * INT64_C(1000000000) + st.st_mtim.tv_nsec + TICK_NS;
}

/* Writes the earlier runs again when the file has become long: as the gaps are all that is used of them, each run ends
 * where the next gap begins. */
static void run_times_shorten(struct run_times *r)
{
    const struct downtime *d = &r->downtime;
    char line[LINE + 1];

    r->at = 0;
    for (size_t i = 0; i < d->count; i++, r->at += LINE) {
        snprintf(line, sizeof line, "%019" PRId64 " %019" PRId64 "\n", i ? d->gaps[i - 1].to : d->gaps[i].from,
                 d->gaps[i].from);
        if (pwrite(r->fd, line, LINE, r->at) != (ssize_t)LINE) {
            return;
        }
    }
    if (ftruncate(r->fd, r->at)) {
        log_write(LOG_LEVEL_WARNING, "runs", "the file of runs cannot be shortened: %s", strerror(errno));
    }
}

struct run_times *run_times_open(int directory, int64_t now)
{
    struct run_times *r = calloc(1, sizeof *r);
    struct stat st;

    if (!r) {
        return NULL;
    }
    r->start = now;
    r->fd = openat(directory, "runs", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
    if (r->fd < 0 || fstat(r->fd, &st) || !S_ISREG(st.st_mode)) {
        log_write(
            LOG_LEVEL_WARNING, "runs",
            "the file \"runs\" in the state directory cannot be opened: reports do not say when profd did not run");
        return r;
    }
    if (!geteuid() && !fstat(directory, &st) && st.st_uid && fchown(r->fd, st.st_uid, st.st_gid)) {
        log_write(LOG_LEVEL_WARNING, "runs", "the file of runs stays root's: %s", strerror(errno));
    }
    const int64_t database = run_times_find_written(directory, "profd.db");
    const int64_t log = run_times_find_written(directory, "profd.db-wal"), written = log > database ? log : database;
    char line[LINE];
    int64_t end = 0;

    for (r->at = 0; pread(r->fd, line, LINE, r->at) == (ssize_t)LINE; r->at += LINE) {
        run_times_take(&r->downtime, line, &end);
    }
    if (end && written > end) {
        end = written < now ? written : now;
    }
    snprintf(line, sizeof line, "%019" PRId64 " %019" PRId64, now, now);
    line[LINE - 1] = '\n';
    run_times_take(&r->downtime, line, &end);
    if (r->at > LINES_MAX * (off_t)LINE) {
        run_times_shorten(r);
    }
    return r;
}

void run_times_begin(struct run_times *r)
{
    r->begun = true;
    run_times_beat(r, r->start);
}

void run_times_beat(struct run_times *r, int64_t now)
{
    char line[LINE + 1];

    if (!r || r->fd < 0 || !r->begun) {
        return;
    }
    snprintf(line, sizeof line, "%019" PRId64 " %019" PRId64 "\n", r->start, now > r->start ? now : r->start);
    if (pwrite(r->fd, line, LINE, r->at) != (ssize_t)LINE) {
        log_write(LOG_LEVEL_WARNING, "runs", "the time of this run cannot be stored: %s", strerror(errno));
    }
}

const struct downtime *run_times_get_downtime(const struct run_times *r)
{
    return &r->downtime;
}

void run_times_close(struct run_times *r)
{
    if (r && r->fd >= 0) {
        close(r->fd);
    }
    free(r);
}
