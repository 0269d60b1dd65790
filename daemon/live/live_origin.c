/* Identity of processes: machine, boot, and the start time of the process, which together with its id is unique. */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "live/live_internal.h"
#include "proto/filters.h"

#define STAT_BYTES 1024
#define STATUS_BYTES 4096
#define STAT_START 22 /* the field, counted from 1 */

/* Reads the beginning of a small file as text; false if it cannot be read. */
static bool harvest_read(const char *path, char *text, size_t size)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    ssize_t n = fd < 0 ? -1 : read(fd, text, size - 1);

    if (fd >= 0) {
        close(fd);
    }
    text[n > 0 ? n : 0] = 0;
    return n > 0;
}

/* Parses hexadecimal digits and skips other characters. Returns the number of digits. */
static size_t origin_digits(const char *text, char *out, size_t most)
{
    size_t n = 0;

    for (; *text && n < most; text++) {
        if ((*text >= '0' && *text <= '9') || (*text >= 'a' && *text <= 'f')) {
            out[n++] = *text;
        }
    }
    out[n] = 0;
    return n;
}

static unsigned origin_nibble(char c)
{
    return (unsigned)(c <= '9' ? c - '0' : c - 'a' + 10);
}

void origin_init(struct live *l)
{
    char text[128], digits[33];

    if (!harvest_read("/etc/machine-id", text, sizeof text) || origin_digits(text, l->host, 32) != 32) {
        l->host[0] = 0;
    }
    if (!harvest_read("/proc/sys/kernel/random/boot_id", text, sizeof text) || origin_digits(text, digits, 32) != 32) {
        return; /* zeros: no later boot is like it */
    }
    for (size_t i = 0; i < sizeof l->boot; i++) {
        l->boot[i] = (uint8_t)(origin_nibble(digits[2 * i]) << 4 | origin_nibble(digits[2 * i + 1]));
    }
}

uint64_t origin_read_start(uint32_t pid)
{
    char path[48], text[STAT_BYTES], *at;

    snprintf(path, sizeof path, "/proc/%" PRIu32 "/stat", pid);
    if (!pid || !harvest_read(path, text, sizeof text)) {
        return 0;
    }
    at = strrchr(text, ')'); /* the name, in parentheses, may hold anything */
    for (int field = 2; at && field < STAT_START; field++) {
        at = strchr(at, ' ');
        at = at ? at + 1 : NULL;
    }
    return at ? strtoull(at, NULL, 10) : 0;
}

uint64_t origin_read_cpu(const struct attach_origin *origin)
{
    struct timespec t;
    clockid_t clock;

    /* The start time is read last: if it is right, the clock was that of the right process. */
    if (!origin->pid || !origin->started || clock_getcpuclockid((pid_t)origin->pid, &clock) ||
        clock_gettime(clock, &t) || origin_read_start(origin->pid) != origin->started) {
        return 0;
    }
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

uint32_t origin_count_filters(const struct attach_origin *origin)
{
    char path[48], text[STATUS_BYTES];

    snprintf(path, sizeof path, "/proc/%" PRIu32 "/status", origin->pid);
    return origin->pid && harvest_read(path, text, sizeof text) ? filters_count(text) : 0;
}

void origin_of(const struct live *l, uint32_t pid, struct attach_origin *out)
{
    *out = (struct attach_origin){.pid = pid, .started = origin_read_start(pid)};
    memcpy(out->boot, l->boot, sizeof out->boot);
    memcpy(out->host, l->host, sizeof out->host);
}
