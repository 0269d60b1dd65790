#include "record/record_internal.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "proto/utf8.h"

#define ID_DIGITS 64 /* of a container's id */
#define ID_SHOWN 12
#define STAT_FIELDS_BEFORE_START 19 /* of /proc/PID/stat, behind the name */

/* Reads the beginning of a small file of /proc/PID as a string. Returns false if it cannot be read. */
static bool file_read(uint32_t pid, const char *name, char *out, size_t size)
{
    char path[64];
    (void)snprintf(path, sizeof path, "/proc/%" PRIu32 "/%s", pid, name);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return false;
    }
    size_t got = 0;
    for (ssize_t n; got + 1 < size && (n = read(fd, out + got, size - 1 - got)) > 0;) {
        got += (size_t)n;
    }
    close(fd);
    out[got] = '\0';
    return got > 0;
}

bool origin_read_user(uint32_t pid, uint32_t *uid)
{
    char text[8192];
    uint64_t real, effective;
    const char *line = file_read(pid, "status", text, sizeof text) ? strstr(text, "\nUid:") : NULL;
    const char *at = line ? line + strlen("\nUid:") : NULL; /* "Uid:\treal\teffective\t…" */
    if (!line || !scan_number(&at, 10, &real) || !scan_number(&at, 10, &effective)) {
        return false;
    }
    *uid = (uint32_t)effective;
    return true;
}

bool origin_read_inner_pid(uint32_t pid, uint32_t *inner)
{
    char text[8192];
    uint64_t number = 0;
    const char *line = file_read(pid, "status", text, sizeof text) ? strstr(text, "\nNSpid:") : NULL;
    const char *at = line ? line + strlen("\nNSpid:") : "";
    while (*at == '\t' && scan_number(&at, 10, &number)) { /* the innermost namespace is the last */
    }
    *inner = (uint32_t)number;
    return number != 0;
}

bool origin_read_start(uint32_t pid, uint64_t *start)
{
    char text[1024], word[32];
    if (!file_read(pid, "stat", text, sizeof text)) {
        return false;
    }
    const char *at = strrchr(text, ')'); /* the name before it may contain anything */
    at = at ? at + 1 : text;
    for (int i = 0; i < STAT_FIELDS_BEFORE_START; i++) {
        if (!scan_word(&at, word, sizeof word)) {
            return false;
        }
    }
    return scan_number(&at, 10, start);
}

bool origin_read(uint32_t pid, struct sum_origin *o)
{
    char text[8192];
    const char *path = NULL;
    if (!origin_read_user(pid, &o->uid)) {
        return false;
    }
    if (!file_read(pid, "cgroup", text, sizeof text)) {
        return true;
    }
    /* The line "0::PATH" of version 2, otherwise that of systemd's controller, "1:name=systemd:PATH". */
    for (char *line = text, *end; line && *line; line = end) {
        end = strchr(line, '\n');
        if (end) {
            *end++ = '\0';
        }
        const char *named = strstr(line, ":name=systemd:");
        if (strncmp(line, "0::", 3) == 0 && (line[3] == '/') && (line[4] != '\0' || !path)) {
            path = line + 3;
        } else if (named && !path) {
            path = named + strlen(":name=systemd:");
        }
    }
    o->cgroup[0] = '\0';
    if (path && strlen(path) < ORIGIN_CGROUP_SIZE) {
        memcpy(o->cgroup, path, strlen(path) + 1);
        utf8_scrub(o->cgroup);
    }
    return true;
}

bool origin_read_comm(uint32_t pid, char comm[ORIGIN_COMM_SIZE])
{
    char text[64];
    if (!file_read(pid, "comm", text, sizeof text)) {
        return false;
    }
    text[strcspn(text, "\n")] = '\0';
    (void)snprintf(comm, ORIGIN_COMM_SIZE, "%.*s", ORIGIN_COMM_SIZE - 1, text);
    return true;
}

void origin_find_unit(const char *cgroup, char unit[ORIGIN_NAME_SIZE])
{
    static const char *const kinds[] = {".service", ".scope", ".socket", ".mount", ".swap"};
    unit[0] = '\0';
    for (const char *part = cgroup; *part == '/';) {
        const size_t n = strcspn(++part, "/");
        for (size_t i = 0; i < sizeof kinds / sizeof kinds[0] && n < ORIGIN_NAME_SIZE; i++) {
            const size_t m = strlen(kinds[i]);
            if (n > m && memcmp(part + n - m, kinds[i], m) == 0) {
                memcpy(unit, part, n);
                unit[n] = '\0';
            }
        }
        part += n;
    }
}

/* Finds the id in a part such as "docker-<id>.scope" or "<id>". */
static bool id_find(const char *part, size_t n, char out[ORIGIN_NAME_SIZE])
{
    size_t digits = 0;
    for (size_t i = 0; i < n; i++) {
        const char c = part[i];
        digits = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') ? digits + 1 : 0;
        if (digits == ID_DIGITS) {
            memcpy(out, part + i + 1 - ID_DIGITS, ID_SHOWN);
            out[ID_SHOWN] = '\0';
            return true;
        }
    }
    return false;
}

/* Copies the part between a beginning and an end. Returns false if the part has others. */
static bool between(const char *part, size_t n, const char *begin, const char *end, char out[ORIGIN_NAME_SIZE])
{
    const size_t first = strlen(begin), last = strlen(end);
    if (n <= first + last || n - first - last >= ORIGIN_NAME_SIZE || strncmp(part, begin, first) != 0 ||
        memcmp(part + n - last, end, last) != 0) {
        return false;
    }
    memcpy(out, part + first, n - first - last);
    out[n - first - last] = '\0';
    return true;
}

void origin_find_container(const char *cgroup, char container[ORIGIN_NAME_SIZE])
{
    container[0] = '\0';
    for (const char *part = cgroup; *part == '/';) {
        const size_t n = strcspn(++part, "/");
        if (id_find(part, n, container) || between(part, n, "systemd-nspawn@", ".service", container) ||
            between(part, n, "lxc.payload.", "", container) || between(part, n, "machine-", ".scope", container)) {
            return;
        }
        part += n;
    }
}
