#include "writer/aside.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MOST 1000u /* names within a second */
#define LOG "-wal"

static enum profd_status choose_name(int dir, const char *why, time_t when, char name[ASIDE_NAME_SIZE],
                                     struct profd_error *e)
{
    char stamp[32] = "";
    struct tm t;

    if (gmtime_r(&when, &t)) {
        strftime(stamp, sizeof stamp, "%Y-%m-%dT%H-%M-%SZ", &t);
    }
    snprintf(name, ASIDE_NAME_SIZE, ASIDE_DATABASE ".%s-%s", why, stamp);
    for (unsigned i = 2; i < MOST; i++) {
        char log[ASIDE_NAME_SIZE + sizeof LOG];
        struct stat st;

        snprintf(log, sizeof log, "%s" LOG, name);
        if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) && errno == ENOENT &&
            fstatat(dir, log, &st, AT_SYMLINK_NOFOLLOW) && errno == ENOENT) {
            return PROFD_OK;
        }
        snprintf(name, ASIDE_NAME_SIZE, ASIDE_DATABASE ".%s-%s.%u", why, stamp, i);
    }
    return profd_error_set(e, PROFD_CANT_CREATE, "cannot set the database aside: all names up to %s exist", name);
}

static enum profd_status fail(const char *what, const char *name, struct profd_error *e)
{
    return profd_error_set(e, PROFD_CANT_CREATE, "cannot %s %s: %s", what, name, strerror(errno));
}

/* The database is moved first. If the process ends between the two, a log without its database remains, which every
 * program refuses; a database without its log would be accepted. */
enum profd_status aside_move(int dir, const char *why, time_t when, char name[ASIDE_NAME_SIZE], struct profd_error *e)
{
    char log[ASIDE_NAME_SIZE + sizeof LOG];
    TRY(choose_name(dir, why, when, name, e));
    snprintf(log, sizeof log, "%s" LOG, name);
    if (renameat(dir, ASIDE_DATABASE, dir, name) && errno != ENOENT) {
        return fail("rename", ASIDE_DATABASE, e);
    }
    if (renameat(dir, ASIDE_DATABASE LOG, dir, log) && errno != ENOENT) {
        return fail("rename", ASIDE_DATABASE LOG, e);
    }
    if (unlinkat(dir, ASIDE_DATABASE "-shm", 0) && errno != ENOENT) {
        return fail("remove", ASIDE_DATABASE "-shm", e);
    }
    return fsync(dir) ? profd_error_set(e, PROFD_IO, "cannot sync the state directory: %s", strerror(errno)) : PROFD_OK;
}

static bool is_log(const char *name)
{
    const size_t n = strlen(name);

    return n >= strlen(LOG) && !strcmp(name + n - strlen(LOG), LOG);
}

static bool begins(const char *name, const char *prefix)
{
    return !strncmp(name, prefix, strlen(prefix));
}

/* Finds the name of the set-aside database with this inode; "" if there is none. */
static void find_moved(int dir, uint64_t inode, char name[ASIDE_NAME_SIZE])
{
    const int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
    const struct dirent *entry;

    *name = '\0';
    while (d && !*name && (entry = readdir(d))) {
        const size_t n = strlen(entry->d_name);

        if (begins(entry->d_name, ASIDE_DATABASE ".") && n < ASIDE_NAME_SIZE && !is_log(entry->d_name) &&
            entry->d_ino == inode) {
            memcpy(name, entry->d_name, n + 1);
        }
    }
    if (d) {
        closedir(d);
    } else if (fd >= 0) {
        close(fd);
    }
}

enum profd_status aside_finish(int dir, uint64_t inode, bool *moved, char name[ASIDE_NAME_SIZE], struct profd_error *e)
{
    char log[ASIDE_NAME_SIZE + sizeof LOG];
    struct stat st;

    *moved = false;
    find_moved(dir, inode, name);
    snprintf(log, sizeof log, "%s" LOG, name);
    if (!*name || !fstatat(dir, ASIDE_DATABASE, &st, AT_SYMLINK_NOFOLLOW) ||
        fstatat(dir, ASIDE_DATABASE LOG, &st, AT_SYMLINK_NOFOLLOW) || !fstatat(dir, log, &st, AT_SYMLINK_NOFOLLOW)) {
        return PROFD_OK;
    }
    if (renameat(dir, ASIDE_DATABASE LOG, dir, log)) {
        return fail("rename", ASIDE_DATABASE LOG, e);
    }
    *moved = true;
    return PROFD_OK;
}

enum profd_status aside_note(int dir, const char *sentence, bool log, time_t when, char name[ASIDE_NAME_SIZE],
                             struct profd_error *e)
{
    char kept[ASIDE_NAME_SIZE + sizeof LOG];
    enum profd_status status = choose_name(dir, ASIDE_LOST, when, name, e);
    if (status) {
        return status;
    }
    snprintf(kept, sizeof kept, "%s" LOG, name);
    int fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0) {
        return fail("make", name, e);
    }
    if (dprintf(fd, "%s\n", sentence) < 0) {
        status = fail("write", name, e);
    }
    close(fd);
    if (!status && log && renameat(dir, ASIDE_DATABASE LOG, dir, kept)) {
        status = fail("rename", ASIDE_DATABASE LOG, e);
    }
    return !status && fsync(dir) ? fail("sync", "the state directory", e) : status;
}

bool aside_is_damaged(const char *name)
{
    return begins(name, ASIDE_DATABASE "." ASIDE_DAMAGED "-") && !is_log(name);
}

size_t aside_count_damaged(const char *state_dir, char latest[ASIDE_NAME_SIZE])
{
    const struct dirent *entry;
    DIR *d = opendir(state_dir);
    size_t count = 0;

    *latest = '\0';
    while (d && (entry = readdir(d))) {
        const size_t n = strlen(entry->d_name);

        if (n >= ASIDE_NAME_SIZE ||
            !(aside_is_damaged(entry->d_name) ||
              (begins(entry->d_name, ASIDE_DATABASE "." ASIDE_LOST "-") && !is_log(entry->d_name)))) {
            continue;
        }
        count++;
        if (!*latest || strcmp(strpbrk(entry->d_name, "-"), strpbrk(latest, "-")) > 0) {
            memcpy(latest, entry->d_name, n + 1);
        }
    }
    if (d) {
        closedir(d);
    }
    return count;
}
