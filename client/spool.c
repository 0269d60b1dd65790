/* The directory of the spool. */
#include "client/spool.h"
#include "client/spool_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "proto/limits.h"

#define SUFFIX ".upload"
#define NAME_SIZE (2 * PROFD_SENDER_SIZE + 1 + 8) /* sender, "-", sequence: hexadecimal, so names sort by time */
#define DAY 86400000000000ull

struct spool {
    int fd;
    size_t expired;
    bool counted;
    uint64_t used; /* bytes, when counted */
    char path[PATH_MAX];
};

enum profd_status profd_spool_directory(char *path, size_t size, struct profd_error *e)
{
    const char *named = secure_getenv("PROFD_SPOOL"), *state = secure_getenv("XDG_STATE_HOME"),
               *home = secure_getenv("HOME");
    int n;
    if (named && named[0] == '/') {
        n = snprintf(path, size, "%s", named);
    } else if (geteuid() == 0) {
        n = snprintf(path, size, "/var/spool/profd");
    } else if (state && state[0] == '/') {
        n = snprintf(path, size, "%s/profd/spool", state);
    } else if (home && home[0] == '/') {
        n = snprintf(path, size, "%s/.local/state/profd/spool", home);
    } else {
        return profd_error_set(e, PROFD_UNAVAILABLE, "no spool: PROFD_SPOOL, XDG_STATE_HOME and HOME are not set");
    }
    return n > 0 && (size_t)n < size
               ? PROFD_OK
               : profd_error_set(e, PROFD_UNAVAILABLE, "the path of the spool is longer than %zu bytes", size);
}

/* Makes every missing directory of the path. */
static bool path_make(const char *path)
{
    char part[PATH_MAX];
    size_t n = strlen(path);
    for (size_t i = 1; i <= n; i++) {
        if (path[i] != '/' && path[i] != '\0') {
            continue;
        }
        memcpy(part, path, i);
        part[i] = '\0';
        if (mkdir(part, 0700) != 0 && errno != EEXIST) {
            return false;
        }
    }
    return true;
}

static bool name_valid(const char *name)
{
    return strlen(name) == NAME_SIZE + strlen(SUFFIX) && strspn(name, "0123456789abcdef") == 2 * PROFD_SENDER_SIZE &&
           name[2 * PROFD_SENDER_SIZE] == '-' && strspn(name + 2 * PROFD_SENDER_SIZE + 1, "0123456789abcdef") == 8 &&
           strcmp(name + NAME_SIZE, SUFFIX) == 0;
}

static uint64_t stat_time(const struct stat *s)
{
    return s->st_mtim.tv_sec > 0 ? (uint64_t)s->st_mtim.tv_sec * 1000000000u + (uint64_t)s->st_mtim.tv_nsec : 0;
}

/* The directory from its beginning; the caller closes it. */
static DIR *directory_start(const struct spool *s)
{
    int fd = openat(s->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    if (!d && fd >= 0) {
        close(fd);
    }
    return d;
}

static void expire(struct spool *s, uint64_t now)
{
    DIR *d = directory_start(s);
    for (struct dirent *entry; d && (entry = readdir(d)) != NULL;) {
        struct stat st;
        bool whole = name_valid(entry->d_name);
        if ((!whole && strncmp(entry->d_name, ".new-", 5) != 0) ||
            fstatat(s->fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0) {
            continue;
        }
        uint64_t age = now > stat_time(&st) ? now - stat_time(&st) : 0;
        if (age > (whole ? LIMIT_SPOOL_DAYS * DAY : DAY) && unlinkat(s->fd, entry->d_name, 0) == 0) {
            s->expired += whole;
        }
    }
    if (d) {
        closedir(d);
    }
}

enum profd_status spool_open(bool create, uint64_t now, struct spool **out, struct profd_error *e)
{
    struct spool *s = calloc(1, sizeof *s);
    if (!s) {
        return profd_error_set(e, PROFD_NO_MEMORY, "no memory for the spool");
    }
    enum profd_status status = profd_spool_directory(s->path, sizeof s->path, e);
    s->fd = -1;
    if (status == PROFD_OK) {
        bool made = !create || path_make(s->path);
        s->fd = made ? open(s->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) : -1;
        struct stat st;
        if (s->fd < 0) {
            status = profd_error_set(e, errno == ENOENT ? PROFD_NOT_FOUND : PROFD_CANT_CREATE,
                                     "cannot %s the spool %s: %s", create ? "make" : "open", s->path, strerror(errno));
        } else if (fstat(s->fd, &st) != 0 || st.st_uid != geteuid() || (st.st_mode & 022)) {
            status = profd_error_set(e, PROFD_UNTRUSTED, "the spool %s is not owned by uid %u alone", s->path,
                                     (unsigned)geteuid());
        }
    }
    if (status != PROFD_OK) {
        spool_close(s);
        return status;
    }
    expire(s, now);
    *out = s;
    return PROFD_OK;
}

void spool_close(struct spool *s)
{
    if (s) {
        if (s->fd >= 0) {
            close(s->fd);
        }
        free(s);
    }
}

const char *spool_path(const struct spool *s)
{
    return s->path;
}

size_t spool_expired(const struct spool *s)
{
    return s->expired;
}

bool spool_lock(struct spool *s)
{
    return flock(s->fd, LOCK_EX | LOCK_NB) == 0;
}

static int entry_compare(const void *a, const void *b)
{
    return strcmp(((const struct spool_entry *)a)->name, ((const struct spool_entry *)b)->name);
}

enum profd_status spool_list(struct spool *s, struct spool_entry **out, size_t *n, struct profd_error *e)
{
    struct spool_entry *entries = NULL;
    size_t count = 0, room = 0;
    DIR *d = directory_start(s);
    if (!d) {
        return profd_error_set(e, PROFD_IO, "cannot list the spool %s: %s", s->path, strerror(errno));
    }
    for (struct dirent *entry; (entry = readdir(d)) != NULL;) {
        struct stat st;
        if (!name_valid(entry->d_name) || fstatat(s->fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0 ||
            !S_ISREG(st.st_mode)) {
            continue;
        }
        if (count == room) {
            room = room ? 2 * room : 64;
            struct spool_entry *grown = realloc(entries, room * sizeof *grown);
            if (!grown) {
                free(entries);
                closedir(d);
                return profd_error_set(e, PROFD_NO_MEMORY, "no memory to list the spool");
            }
            entries = grown;
        }
        entries[count] = (struct spool_entry){.size = (uint64_t)st.st_size, .time = stat_time(&st)};
        memcpy(entries[count++].name, entry->d_name, strlen(entry->d_name) + 1);
    }
    closedir(d);
    if (count > 1) {
        qsort(entries, count, sizeof *entries, entry_compare);
    }
    *out = entries;
    *n = count;
    return PROFD_OK;
}

void spool_remove(struct spool *s, const char *name)
{
    unlinkat(s->fd, name, 0);
}

enum profd_status profd_spool_list(void (*each)(void *context, const struct profd_spool_entry *entry), void *context,
                                   struct profd_error *e)
{
    struct spool *s;
    struct spool_entry *entries = NULL;
    size_t n = 0;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    enum profd_status status = spool_open(false, (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec, &s, e);
    if (status == PROFD_NOT_FOUND) {
        return PROFD_OK;
    }
    if (status != PROFD_OK) {
        return status;
    }
    status = spool_list(s, &entries, &n, e);
    for (size_t i = 0; i < n; i++) {
        const struct profd_spool_entry entry = {entries[i].name, entries[i].size, entries[i].time};
        each(context, &entry);
    }
    free(entries);
    spool_close(s);
    return status;
}

int spool_fd(const struct spool *s)
{
    return s->fd;
}

enum profd_status spool_used(struct spool *s, uint64_t *bytes, struct profd_error *e)
{
    if (!s->counted) {
        struct spool_entry *entries;
        size_t n;
        enum profd_status status = spool_list(s, &entries, &n, e);
        if (status != PROFD_OK) {
            return status;
        }
        for (size_t i = 0; i < n; i++) {
            s->used += entries[i].size;
        }
        free(entries);
        s->counted = true;
    }
    *bytes = s->used;
    return PROFD_OK;
}

void spool_grew(struct spool *s, uint64_t bytes)
{
    s->used += bytes;
}
