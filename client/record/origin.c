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

/* The beginning of a small file of /proc/PID, NUL-terminated. False: it cannot be read. */
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

/* "Uid:\treal\teffective\t…" */
static bool uid_parse(const char *status, uint32_t *uid)
{
    const char *line = strstr(status, "\nUid:"), *at = line ? line + strlen("\nUid:") : NULL;
    uint64_t real, effective;
    if (!line || !scan_number(&at, 10, &real) || !scan_number(&at, 10, &effective)) {
        return false;
    }
    *uid = (uint32_t)effective;
    return true;
}

/* The line "0::PATH" of version 2; else that of the controller of systemd, "1:name=systemd:PATH". */
static void cgroup_parse(char *text, char out[ORIGIN_CGROUP_SIZE])
{
    const char *path = NULL;
    out[0] = '\0';
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
    if (path && strlen(path) < ORIGIN_CGROUP_SIZE) {
        memcpy(out, path, strlen(path) + 1);
        utf8_scrub(out);
    }
}

bool origin_read_user(uint32_t pid, uint32_t *uid)
{
    char text[8192];
    return file_read(pid, "status", text, sizeof text) && uid_parse(text, uid);
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

bool origin_read(uint32_t pid, struct origin *o)
{
    char text[8192];
    if (!origin_read_user(pid, &o->uid)) {
        return false;
    }
    if (file_read(pid, "cgroup", text, sizeof text)) {
        cgroup_parse(text, o->cgroup);
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

static bool ends_with(const char *text, size_t n, const char *end)
{
    const size_t m = strlen(end);
    return n > m && memcmp(text + n - m, end, m) == 0;
}

static bool is_unit(const char *part, size_t n)
{
    static const char *const kinds[] = {".service", ".scope", ".socket", ".mount", ".swap"};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (ends_with(part, n, kinds[i])) {
            return true;
        }
    }
    return false;
}

void origin_find_unit(const char *cgroup, char unit[ORIGIN_NAME_SIZE])
{
    unit[0] = '\0';
    for (const char *part = cgroup; *part == '/';) {
        const size_t n = strcspn(++part, "/");
        if (n < ORIGIN_NAME_SIZE && is_unit(part, n)) {
            memcpy(unit, part, n);
            unit[n] = '\0';
        }
        part += n;
    }
}

/* The id in a part such as "docker-<id>.scope" or "<id>". */
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

/* What stands between a beginning and an end; false: it has others. */
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
