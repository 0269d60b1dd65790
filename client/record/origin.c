#include "record/record_internal.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "proto/place.h"
#include "proto/utf8.h"
#include "proto/whole.h"

/* Reads the beginning of a small file of /proc/PID as a string. Returns false if it cannot be read. */
static bool file_read(uint32_t pid, const char *name, char *out, size_t size)
{
    char path[64];
    (void)snprintf(path, sizeof path, "/proc/%" PRIu32 "/%s", pid, name);
    return whole_read_text(path, out, size) > 0;
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

bool origin_read(uint32_t pid, struct sum_origin *o)
{
    char text[8192];
    if (!origin_read_user(pid, &o->uid)) {
        return false;
    }
    if (!file_read(pid, "cgroup", text, sizeof text)) {
        return true;
    }
    const char *path = place_find_path(text);
    o->cgroup[0] = '\0';
    if (strlen(path) < ORIGIN_CGROUP_SIZE) {
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
