/* Where processes live: machine, boot, and the moment a process began, which with its number names it. */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "server_attach.h"

#define STAT_BYTES 1024
#define STAT_START 22 /* the field, counted from 1 */

/* The beginning of a small file as text; false if there is none. */
static bool server_attach_read(const char *path, char *text, size_t size)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    ssize_t n = fd < 0 ? -1 : read(fd, text, size - 1);

    if (fd >= 0)
        close(fd);
    text[n > 0 ? n : 0] = 0;
    return n > 0;
}

/* Hexadecimal digits, whatever stands between them. How many were taken. */
static size_t server_attach_digits(const char *text, char *out, size_t most)
{
    size_t n = 0;

    for (; *text && n < most; text++)
        if ((*text >= '0' && *text <= '9') || (*text >= 'a' && *text <= 'f'))
            out[n++] = *text;
    out[n] = 0;
    return n;
}

static unsigned server_attach_nibble(char c)
{
    return (unsigned)(c <= '9' ? c - '0' : c - 'a' + 10);
}

void server_attach_place_init(struct server_attach *t)
{
    char text[128], digits[33];

    if (!server_attach_read("/etc/machine-id", text, sizeof text) || server_attach_digits(text, t->host, 32) != 32)
        t->host[0] = 0;
    if (!server_attach_read("/proc/sys/kernel/random/boot_id", text, sizeof text) ||
        server_attach_digits(text, digits, 32) != 32)
        return; /* zeros: no later boot is like it */
    for (size_t i = 0; i < sizeof t->boot; i++)
        t->boot[i] = (uint8_t)(server_attach_nibble(digits[2 * i]) << 4 | server_attach_nibble(digits[2 * i + 1]));
}

uint64_t server_attach_started(uint32_t pid)
{
    char path[48], text[STAT_BYTES], *at;

    snprintf(path, sizeof path, "/proc/%" PRIu32 "/stat", pid);
    if (!pid || !server_attach_read(path, text, sizeof text))
        return 0;
    at = strrchr(text, ')'); /* the name, in parentheses, may hold anything */
    for (int field = 2; at && field < STAT_START; field++) {
        at = strchr(at, ' ');
        at = at ? at + 1 : NULL;
    }
    return at ? strtoull(at, NULL, 10) : 0;
}

void server_attach_origin(const struct server_attach *t, uint32_t pid, struct attach_origin *out)
{
    *out = (struct attach_origin){.pid = pid, .started = server_attach_started(pid)};
    memcpy(out->boot, t->boot, sizeof out->boot);
    memcpy(out->host, t->host, sizeof out->host);
}
