#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/notify.h"
#include "live/live_internal.h"
#include "proto/hex.h"
#include "proto/place.h"

/* Finds the memory of processes that an earlier daemon read, if no service manager stored the descriptors: the
 * processes still have it open. Only processes of the daemon's own user are searched, even if the daemon is root,
 * because a process of another user could point to files that must not be opened. */

#define STATUS_BYTES 4096
#define LINKS_MOST 8192 /* descriptors of one process that are looked at */
#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL)

static const char name_begin[] = "/memfd:" ATTACH_MEMORY_NAME;

#define IDS 4 /* real, effective, saved, of files */

/* How many of the user ids of the process with this directory in /proc are this one. */
static int search_count_user(int process, uint32_t uid)
{
    char text[STATUS_BYTES + 1] = "";
    const int fd = openat(process, "status", O_RDONLY | O_CLOEXEC);
    const ssize_t n = fd < 0 ? -1 : read(fd, text, STATUS_BYTES);
    const char *at = n > 0 ? strstr(text, "\nUid:") : NULL;
    int count = 0;

    if (fd >= 0) {
        close(fd);
    }
    at += at ? strlen("\nUid:") : 0;
    for (int i = 0; at && i < IDS; i++) {
        char *end;
        const unsigned long id = strtoul(at, &end, 10);

        count += id == uid && end != at;
        at = end;
    }
    return count;
}

static bool search_owns(int process)
{
    return search_count_user(process, geteuid()) == IDS;
}

static bool search_judge(int fd, struct stat *st)
{
    return !fstat(fd, st) && S_ISREG(st->st_mode) && st->st_uid == geteuid() && st->st_nlink == 0 &&
           st->st_size >= (off_t)ATTACH_SIZE_MIN && st->st_size <= (off_t)ATTACH_SIZE_MAX;
}

/* O_PATH does not open the file itself: only a file of the daemon's user is then opened for reading, and only a sealed
 * one is read. */
static int search_open(int folder, const char *number, const uint8_t instance[ATTACH_INSTANCE_SIZE])
{
    const int link = openat(folder, number, O_PATH | O_CLOEXEC);
    uint8_t found[ATTACH_INSTANCE_SIZE];
    struct stat before, after;
    char path[40];
    int fd = -1, seals;

    if (link < 0) {
        return -1;
    }
    snprintf(path, sizeof path, "/proc/self/fd/%d", link);
    if (search_judge(link, &before)) {
        fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    }
    close(link);
    if (fd < 0) {
        return -1;
    }
    seals = fcntl(fd, F_GET_SEALS);
    if (search_judge(fd, &after) && before.st_dev == after.st_dev && before.st_ino == after.st_ino && seals >= 0 &&
        (seals & SEALS) == SEALS &&
        pread(fd, found, sizeof found, offsetof(struct attach_header, instance)) == (ssize_t)sizeof found &&
        !memcmp(found, instance, sizeof found)) {
        return fd;
    }
    close(fd);
    return -1;
}

static int search_folder(DIR *folder, const uint8_t instance[ATTACH_INSTANCE_SIZE])
{
    const struct dirent *entry;
    int fd = -1;

    for (unsigned n = 0; fd < 0 && n < LINKS_MOST && (entry = readdir(folder)); n++) {
        char text[sizeof name_begin] = "";

        if (isdigit((unsigned char)*entry->d_name) &&
            readlinkat(dirfd(folder), entry->d_name, text, sizeof text - 1) == (ssize_t)sizeof text - 1 &&
            !strcmp(text, name_begin)) {
            fd = search_open(dirfd(folder), entry->d_name, instance);
        }
    }
    return fd;
}

/* The directory of the process in /proc; −1 if it no longer exists. The directory always refers to the same process: if
 * that has the right start time, it is the right process. */
static int search_open_folder(const struct attach_origin *origin)
{
    char path[32];
    int process;

    if (!origin->pid || !origin->started) {
        return -1;
    }
    snprintf(path, sizeof path, "/proc/%" PRIu32, origin->pid);
    process = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (process >= 0 && place_read_start(origin->pid) != origin->started) {
        close(process);
        process = -1;
    }
    return process;
}

bool search_has_user(const struct attach_origin *origin, uint32_t uid)
{
    const int process = search_open_folder(origin);
    const bool has = process >= 0 && search_count_user(process, uid) > 0;

    if (process >= 0) {
        close(process);
    }
    return has;
}

bool search_has_unmapped(const struct attach_origin *origin, uint64_t inode)
{
    const int process = search_open_folder(origin);
    const int fd = process >= 0 && search_owns(process) ? openat(process, "maps", O_RDONLY | O_CLOEXEC) : -1;
    FILE *maps = fd >= 0 ? fdopen(fd, "r") : NULL;
    char *line = NULL;
    size_t size = 0, lines = 0;
    bool mapped = false, read = false;

    while (maps && !mapped && getline(&line, &size, maps) > 0) {
        lines++;
        /* A line of a map: "from-to rights offset device inode path". */
        const char *path = strstr(line, " /memfd:"), *at = line;

        for (int field = 0; path && field < 4; field++) {
            at = strchr(at, ' ');
            at = at ? at + 1 : "";
        }
        mapped = path && (!inode || strtoull(at, NULL, 10) == inode);
    }
    read = maps && lines > 0 && feof(maps) && !ferror(maps); /* the map of a zombie is empty */
    free(line);
    if (maps) {
        fclose(maps);
    } else if (fd >= 0) {
        close(fd);
    }
    if (process >= 0) {
        close(process);
    }
    return read && !mapped;
}

int search_find_memory(const struct attach_origin *origin, const uint8_t instance[ATTACH_INSTANCE_SIZE])
{
    const int process = search_open_folder(origin);
    int numbers, fd = -1;
    DIR *folder = NULL;

    if (process < 0) {
        return -1;
    }
    if (search_owns(process)) {
        numbers = openat(process, "fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        folder = numbers < 0 ? NULL : fdopendir(numbers);
        if (numbers >= 0 && !folder) {
            close(numbers);
        }
    }
    if (folder) {
        fd = search_folder(folder, instance);
        closedir(folder);
    }
    close(process);
    return fd;
}

enum peer_process search_open_process(const struct attach_origin *origin, int *pidfd)
{
    enum peer_process state = peer_open_number(origin->pid, pidfd);
    struct pollfd end = {.fd = *pidfd, .events = POLLIN};

    /* The start time is read after the handle was opened: if it is right, the handle refers to the right process. */
    if (state == PEER_LIVES && (place_read_start(origin->pid) != origin->started || poll(&end, 1, 0) > 0)) {
        close(*pidfd);
        *pidfd = -1;
        state = PEER_DEAD;
    }
    return state;
}

/* Stores the descriptors of live processes with the service manager (sd_notify(3), FDSTORE), so that processes that end
 * during a restart of the daemon are still read. The name of a descriptor identifies its process, because the database
 * may not know the process yet. */

/* A message to the service manager that could not be sent yet. */
struct fdstore_dropped {
    struct fdstore_dropped *next;
    char name[LIVE_NAME];
};

/* profd-INSTANCE-UID-PID-STARTED. All names together must fit one environment variable of at most 128 KiB. */
static void fdstore_name(const struct live_process *a, char out[LIVE_NAME])
{
    char *end = hex_put(stpcpy(out, LISTEN_KEPT), a->instance, sizeof a->instance);

    snprintf(end, (size_t)(out + LIVE_NAME - end), "-%" PRIu32 "-%" PRIu32 "-%" PRIu64, a->uid, a->origin.pid,
             a->origin.started);
}

static unsigned fdstore_digit(char c)
{
    return c >= '0' && c <= '9' ? (unsigned)(c - '0') : c >= 'a' && c <= 'f' ? (unsigned)(c - 'a') + 10 : 16;
}

/* "-" and a number of at most max. */
static bool fdstore_parse_part(const char **at, uint64_t max, uint64_t *out)
{
    const char *digits = *at + 1;
    const size_t n = **at == '-' ? strspn(digits, "0123456789") : 0;
    uint64_t value = n && n <= 19 ? strtoull(digits, NULL, 10) : UINT64_MAX;

    if (value > max) {
        return false;
    }
    *at = digits + n;
    *out = value;
    return true;
}

bool fdstore_parse_name(const char *name, uint8_t instance[ATTACH_INSTANCE_SIZE], uint32_t *uid, uint32_t *pid,
                        uint64_t *started)
{
    const char *at = name + strlen(LISTEN_KEPT);
    uint64_t user, number;

    if (strlen(at) < 2 * ATTACH_INSTANCE_SIZE) {
        return false;
    }
    for (size_t i = 0; i < ATTACH_INSTANCE_SIZE; i++, at += 2) {
        if (fdstore_digit(at[0]) > 15 || fdstore_digit(at[1]) > 15) {
            return false;
        }
        instance[i] = (uint8_t)(fdstore_digit(at[0]) << 4 | fdstore_digit(at[1]));
    }
    if (!fdstore_parse_part(&at, UINT32_MAX, &user) || !fdstore_parse_part(&at, UINT32_MAX, &number) ||
        !fdstore_parse_part(&at, INT64_MAX, started) || *at) {
        return false;
    }
    *uid = (uint32_t)user;
    *pid = (uint32_t)number;
    return true;
}

void fdstore_keep(struct live *l, struct live_process *a)
{
    char name[LIVE_NAME], text[LIVE_NAME + 64];

    if (!l->config.managed || a->kept || a->dead || l->kept >= LIMIT_ATTACHED_KEPT) {
        return;
    }
    fdstore_name(a, name);
    snprintf(text, sizeof text, "FDSTORE=1\nFDNAME=%s\nFDPOLL=0", name);
    a->kept = notify_send_fd(text, a->memory);
    l->kept += a->kept;
}

bool fdstore_say_drop(const char *name)
{
    char text[LIVE_NAME + 32];

    snprintf(text, sizeof text, "FDSTOREREMOVE=1\nFDNAME=%s", name);
    return notify_send_fd(text, -1);
}

void fdstore_drop(struct live *l, struct live_process *a)
{
    char name[LIVE_NAME] = "";

    if (!a->kept) {
        return;
    }
    a->kept = false;
    fdstore_name(a, name);
    struct fdstore_dropped *d;

    if (fdstore_say_drop(name)) {
        l->kept--;
        return;
    }
    d = malloc(sizeof *d); /* without memory the descriptor stays stored; the next daemon removes it */
    if (!d) {
        return;
    }
    memcpy(d->name, name, sizeof d->name);
    d->next = l->dropped;
    l->dropped = d;
}

void fdstore_retry(struct live *l)
{
    while (l->dropped && fdstore_say_drop(l->dropped->name)) {
        struct fdstore_dropped *d = l->dropped;

        l->dropped = d->next;
        l->kept--;
        free(d);
    }
    if (l->config.managed && !l->dropped && l->kept < l->count) {
        table_each(l, fdstore_keep);
    }
}

void fdstore_end(struct live *l)
{
    struct fdstore_dropped *d, *next;

    for (d = l->dropped; d; d = next) {
        next = d->next;
        free(d);
    }
    l->dropped = NULL;
}
