#include "writer/state_dir.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "net/listen.h"

static enum profd_status state_dir_format(const char *state_dir, const char *name, char *path, size_t size,
                                          struct profd_error *e)
{
    if (snprintf(path, size, "%s/%s", state_dir, name) >= (int)size) {
        return profd_error_set(e, PROFD_TOO_LARGE, "the path of the state directory is too long");
    }
    return PROFD_OK;
}

enum profd_status state_dir_lock_path(const char *state_dir, char *path, size_t size, struct profd_error *e)
{
    return state_dir_format(state_dir, "lock", path, size, e);
}

enum profd_status state_dir_database_path(const char *state_dir, char *path, size_t size, struct profd_error *e)
{
    return state_dir_format(state_dir, "profd.db", path, size, e);
}

/* When root makes the file in another user's directory, it belongs to that user all the same: the user's daemon must be
 * able to lock it later. */
static int state_dir_open_lock(const char *path, const char *state_dir)
{
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    struct stat st;

    if (fd < 0) {
        return open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    }
    if (!geteuid() && !stat(state_dir, &st) && st.st_uid && fchown(fd, st.st_uid, st.st_gid)) {
        close(fd);
        unlink(path);
        return -1;
    }
    return fd;
}

/* The lock file may be removed, the directory not while the daemon uses it. False: another process has it. Where
 * directories cannot be locked (some network file systems) the lock file alone must do. */
static bool state_dir_lock_directory(const char *state_dir, int *out)
{
    *out = open(state_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (*out < 0 || !flock(*out, LOCK_EX | LOCK_NB) || errno != EWOULDBLOCK) {
        return true;
    }
    close(*out);
    errno = EWOULDBLOCK;
    *out = -1;
    return false;
}

/* A second daemon on the same data would be a second writer. */
enum profd_status state_dir_lock(const char *state_dir, int *lock, int *directory, struct profd_error *e)
{
    char path[4096];
    TRY(listen_make_directory(state_dir, 0750, e));
    int fd;

    TRY(state_dir_lock_path(state_dir, path, sizeof path, e));
    fd = state_dir_open_lock(path, state_dir);
    if (fd < 0) {
        return profd_error_set(e, PROFD_CANT_CREATE, "cannot create %s: %s", path, strerror(errno));
    }
    enum profd_status status = PROFD_OK;
    if (flock(fd, LOCK_EX | LOCK_NB) || !state_dir_lock_directory(state_dir, directory)) {
        status = errno == EWOULDBLOCK
                     ? profd_error_set(e, PROFD_BUSY, "another profd uses the state directory %s", state_dir)
                     : profd_error_set(e, PROFD_IO, "cannot lock %s: %s", path, strerror(errno));
        close(fd);
        return status;
    }
    *lock = fd;
    return PROFD_OK;
}
