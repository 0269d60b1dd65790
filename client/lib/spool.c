/* The directory of the spool, and its files: each is written whole or not at all, and checked when it is read. */
#include "lib/client.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "proto/frame.h"
#include "proto/hex.h"
#include "proto/limits.h"
#include "proto/whole.h"

#define MAGIC "profd-spool 1\n"
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

enum profd_status spool_open(bool create, uint64_t now, struct spool **out, struct profd_error *e)
{
    struct spool *s = calloc(1, sizeof *s);
    FAIL_IF(!s, e, PROFD_NO_MEMORY, "no memory for the spool");
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

    /* Uploads expire; so do parts of files that were never finished. */
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
    *out = s;
    return PROFD_OK;
}

void spool_close(struct spool *s)
{
    if (s) {
        whole_close(s->fd);
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
    size_t count = 0, capacity = 0;
    DIR *d = directory_start(s);
    FAIL_IF(!d, e, PROFD_IO, "cannot list the spool %s: %s", s->path, strerror(errno));
    for (struct dirent *entry; (entry = readdir(d)) != NULL;) {
        struct stat st;
        if (!name_valid(entry->d_name) || fstatat(s->fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0 ||
            !S_ISREG(st.st_mode)) {
            continue;
        }
        if (!LIST_GROW(entries, count, capacity)) {
            free(entries);
            closedir(d);
            return profd_error_set(e, PROFD_NO_MEMORY, "no memory to list the spool");
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
    TRY(status);
    status = spool_list(s, &entries, &n, e);
    for (size_t i = 0; i < n; i++) {
        const struct profd_spool_entry entry = {entries[i].name, entries[i].size, entries[i].time};
        each(context, &entry);
    }
    free(entries);
    spool_close(s);
    return status;
}

/* --- one file --- */

enum profd_status spool_add(struct spool *s, const struct profd_id *id, const struct spool_object *objects,
                            size_t object_count, const uint8_t *frame, size_t frame_size, struct profd_error *e)
{
    char name[64], part[128];
    uint64_t size = strlen(MAGIC) + 1 + frame_size;
    for (size_t i = 0; i < object_count; i++) {
        size += strlen("object  \n") + strlen(objects[i].build_id) + strlen(objects[i].path);
    }

    /* The bytes of all entries are counted once. Later entries of this process are added to the sum. */
    if (!s->counted) {
        struct spool_entry *entries;
        size_t count;
        TRY(spool_list(s, &entries, &count, e));
        for (size_t k = 0; k < count; k++) {
            s->used += entries[k].size;
        }
        free(entries);
        s->counted = true;
    }
    FAIL_IF(s->used + size > LIMIT_SPOOL_BYTES, e, PROFD_FULL,
            "the spool %s holds %" PRIu64 " bytes; %" PRIu64 " more would exceed its %u", s->path, s->used, size,
            LIMIT_SPOOL_BYTES);
    char sender[2 * PROFD_SENDER_SIZE + 1];
    hex_put(sender, id->sender, PROFD_SENDER_SIZE);
    (void)snprintf(name, sizeof name, "%s-%08" PRIx32 ".upload", sender, id->sequence);
    (void)snprintf(part, sizeof part, ".new-%ld-%s", (long)getpid(), name);
    int fd = openat(s->fd, part, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    FAIL_IF(fd < 0, e, PROFD_CANT_CREATE, "cannot write to the spool %s: %s", s->path, strerror(errno));
    bool good = whole_write(fd, MAGIC, strlen(MAGIC));
    for (size_t i = 0; i < object_count && good; i++) {
        if (strpbrk(objects[i].path, "\r\n") == NULL) {
            good = dprintf(fd, "object %s %s\n", objects[i].build_id, objects[i].path) > 0;
        }
    }
    good = good && whole_write(fd, "\n", 1) && whole_write(fd, frame, frame_size) && fsync(fd) == 0;
    int why = errno;
    if (close(fd) != 0 && good) {
        good = false;
        why = errno;
    }
    if (good && renameat(s->fd, part, s->fd, name) != 0) {
        good = false;
        why = errno;
    }
    if (!good) {
        unlinkat(s->fd, part, 0);
        return profd_error_set(e, why == ENOSPC || why == EDQUOT ? PROFD_FULL : PROFD_IO,
                               "cannot write to the spool %s: %s", s->path, strerror(why));
    }
    s->used += size;
    (void)fsync(s->fd); /* the name too; without it the file may be missing after a power loss, never half */
    return PROFD_OK;
}

static enum profd_status file_read(struct spool *s, const char *name, char **out, size_t *size, struct profd_error *e)
{
    struct stat st;
    int fd = openat(s->fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0 || fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) || st.st_size > (off_t)LIMIT_SPOOL_BYTES) {
        int why = errno;
        if (fd >= 0) {
            close(fd);
            return profd_error_set(e, PROFD_MALFORMED, "%s in the spool is not a spooled upload", name);
        }
        return profd_error_set(e, why == ENOENT ? PROFD_NOT_FOUND : PROFD_IO, "cannot open %s in the spool: %s", name,
                               strerror(why));
    }
    const size_t n = (size_t)st.st_size;
    char *bytes = malloc(n + 1);
    const bool whole = bytes && whole_read(fd, bytes, n, 0) == (ssize_t)n;
    close(fd);
    if (!whole) {
        free(bytes);
        return profd_error_set(e, bytes ? PROFD_IO : PROFD_NO_MEMORY, "cannot read %s in the spool", name);
    }
    bytes[n] = '\0';
    *out = bytes;
    *size = n;
    return PROFD_OK;
}

/* Cuts the lines before the empty one into objects; what follows is the frame. */
static bool file_parse(char *bytes, size_t n, struct spool_upload *u)
{
    size_t magic = strlen(MAGIC), capacity = 0;
    if (n < magic || memcmp(bytes, MAGIC, magic) != 0) {
        return false;
    }
    char *p = bytes + magic, *end = bytes + n;
    for (;;) {
        char *line_end = memchr(p, '\n', (size_t)(end - p));
        if (!line_end) {
            return false;
        }
        *line_end = '\0';
        if (line_end == p) {
            u->frame = (const uint8_t *)line_end + 1;
            u->frame_size = (size_t)(end - line_end - 1);
            break;
        }
        char *space = strncmp(p, "object ", 7) == 0 ? strchr(p + 7, ' ') : NULL;
        if (!space || u->object_count >= LIMIT_BUILDS) {
            return false;
        }
        *space = '\0';
        if (!LIST_GROW(u->objects, u->object_count, capacity)) {
            return false;
        }
        u->objects[u->object_count++] = (struct spool_object){p + 7, space + 1};
        p = line_end + 1;
    }
    struct frame_header f;
    return u->frame_size >= FRAME_HEADER_SIZE && frame_decode(u->frame, &f, NULL) == PROFD_OK &&
           f.type == FRAME_UPLOAD && frame_fds(&f) == 0 && u->frame_size - FRAME_HEADER_SIZE == f.length;
}

enum profd_status spool_read(struct spool *s, const char *name, struct spool_upload *out, struct profd_error *e)
{
    char *bytes = NULL;
    size_t n = 0;
    TRY(file_read(s, name, &bytes, &n, e));
    struct spool_upload u = {.block = bytes};
    if (!file_parse(bytes, n, &u)) {
        spool_upload_done(&u);
        return profd_error_set(e, PROFD_MALFORMED, "%s in the spool is not a spooled upload", name);
    }
    *out = u;
    return PROFD_OK;
}

void spool_upload_done(struct spool_upload *u)
{
    free(u->objects);
    free(u->block);
    *u = (struct spool_upload){.object_count = 0};
}
