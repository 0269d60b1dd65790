/* Identity of processes: machine, boot, and the start time of the process, which together with its id is unique. */
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "live/live_internal.h"
#include "proto/filters.h"
#include "proto/place.h"
#include "proto/whole.h"

#define STATUS_BYTES 4096

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

    if (!whole_read_text("/etc/machine-id", text, sizeof text) || origin_digits(text, l->host, 32) != 32) {
        l->host[0] = 0;
    }
    if (!whole_read_text("/proc/sys/kernel/random/boot_id", text, sizeof text) ||
        origin_digits(text, digits, 32) != 32) {
        return; /* zeros: no later boot is like it */
    }
    for (size_t i = 0; i < sizeof l->boot; i++) {
        l->boot[i] = (uint8_t)(origin_nibble(digits[2 * i]) << 4 | origin_nibble(digits[2 * i + 1]));
    }
}

void origin_find_place(const struct live *l, struct live_process *a, int pidfd)
{
    struct pollfd end = {.fd = pidfd, .events = POLLIN};
    struct process_place place;

    if (a->stage != LIVE_IDLE || !a->origin.pid || attach_get_place(a->process)) {
        return;
    }
    /* The end and the start time are read last: the number was not given to another process before. */
    if (!a->origin.started || !place_read(a->origin.pid, l->config.links, &place) ||
        (pidfd >= 0 && poll(&end, 1, 0) != 0) || place_read_start(a->origin.pid) != a->origin.started) {
        place = (struct process_place){.by_root = false}; /* a process that cannot be examined may state no place */
    }
    attach_set_place(a->process, &place);
}

uint64_t origin_read_cpu(const struct attach_origin *origin)
{
    struct timespec t;
    clockid_t clock;

    /* The start time is read last: if it is right, the clock was that of the right process. */
    if (!origin->pid || !origin->started || clock_getcpuclockid((pid_t)origin->pid, &clock) ||
        clock_gettime(clock, &t) || place_read_start(origin->pid) != origin->started) {
        return 0;
    }
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

uint32_t origin_count_filters(const struct attach_origin *origin)
{
    char path[48], text[STATUS_BYTES];

    snprintf(path, sizeof path, "/proc/%" PRIu32 "/status", origin->pid);
    return origin->pid && whole_read_text(path, text, sizeof text) ? filters_count(text) : 0;
}

void origin_of(const struct live *l, uint32_t pid, struct attach_origin *out)
{
    *out = (struct attach_origin){.pid = pid, .started = place_read_start(pid)};
    memcpy(out->boot, l->boot, sizeof out->boot);
    memcpy(out->host, l->host, sizeof out->host);
}
