#include "writer/backup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define SPARE_BYTES (32u << 20)
#define PREFIX "backup-" /* of backups only */

enum profd_status backup_init(struct backup *b, const char *directory, unsigned number, struct profd_error *e)
{
    *b = (struct backup){.fd = -1};
    FAIL_IF(snprintf(b->path, sizeof b->path, "%s/" PREFIX "%u.db", directory, number) >= (int)sizeof b->path, e,
            PROFD_TOO_LARGE, "the path of the state directory is too long");
    return PROFD_OK;
}

enum profd_status backup_judge_space(const char *directory, struct profd_error *e)
{
    static const char *const files[] = {"profd.db", "profd.db-wal"};
    uint64_t wanted = SPARE_BYTES;
    struct statvfs fs;
    char path[4096];
    struct stat st;

    for (size_t i = 0; i < 2; i++) {
        if (snprintf(path, sizeof path, "%s/%s", directory, files[i]) < (int)sizeof path && !stat(path, &st)) {
            wanted += (uint64_t)st.st_size;
        }
    }
    FAIL_IF(statvfs(directory, &fs), e, PROFD_IO, "cannot look at the file system of %s: %s", directory,
            strerror(errno));
    uint64_t available = (uint64_t)fs.f_bavail * fs.f_frsize;
    FAIL_IF(available < wanted, e, PROFD_FULL,
            "the copy is first made in %s and needs %" PRIu64 " bytes there; %" PRIu64 " are free", directory, wanted,
            available);
    return PROFD_OK;
}

/* Opens the complete, synced copy and unlinks it, so that it lives as long as its descriptor. */
static enum profd_status backup_open(struct backup *b, struct profd_error *e)
{
    struct stat st;
    int fd = open(b->path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);

    if (fd < 0 || fstat(fd, &st)) {
        profd_error_set(e, PROFD_IO, "cannot read the copy %s: %s", b->path, strerror(errno));
        if (fd >= 0) {
            close(fd);
        }
        return PROFD_IO;
    }
    unlink(b->path);
    b->fd = fd;
    b->done = b->total = (uint64_t)st.st_size;
    return PROFD_OK;
}

enum profd_status backup_step(struct backup *b, struct store *store, uint64_t bytes, bool *whole, struct profd_error *e)
{
    uint64_t left = 0;
    enum profd_status status = PROFD_OK;

    if (!b->running) {
        status = store_backup_begin(store, b->path, &b->running, e);
    }
    status = status ? status : store_backup_step(b->running, bytes, &left, e);
    if (!status && left) {
        /* The store may grow meanwhile, so the total is computed anew. */
        b->done += bytes;
        b->total = b->done + left;
        *whole = false;
        return PROFD_OK;
    }
    store_backup_end(b->running);
    b->running = NULL;
    status = status ? status : backup_open(b, e);
    if (!status) {
        *whole = true;
    }
    return status;
}

void backup_done(struct backup *b)
{
    store_backup_end(b->running);
    b->running = NULL;
    if (b->fd >= 0) {
        close(b->fd);
    }
    b->fd = -1;
}

void backup_clean(const char *directory)
{
    DIR *d = opendir(directory);
    const struct dirent *entry;

    if (!d) {
        return;
    }
    while ((entry = readdir(d))) {
        if (!strncmp(entry->d_name, PREFIX, strlen(PREFIX))) {
            unlinkat(dirfd(d), entry->d_name, 0);
        }
    }
    closedir(d);
}
