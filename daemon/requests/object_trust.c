#include "requests/object_trust.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "proto/buildid.h"

#define FUSE_MAGIC 0x65735546 /* on such a file system its user controls the owners of files */

bool trusted_file_may_hang(int fd)
{
    struct statfs fs;

    return !fstatfs(fd, &fs) && fs.f_type == FUSE_MAGIC;
}

/* Can only root change the content? */
static bool trusted_file_only_root_writes(int fd)
{
    struct stat st;

    return !fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_uid == 0 && !(st.st_mode & (S_IWGRP | S_IWOTH)) &&
           !trusted_file_may_hang(fd);
}

/* True if the file is on the file system of this program. Ownership there is real even if it is mounted nosuid: a
 * service manager may show a whole system as nosuid to one service. */
static bool trusted_file_shares_file_system(int fd)
{
    struct stat own, st;

    return !stat("/proc/self/exe", &own) && !fstat(fd, &st) && own.st_dev == st.st_dev;
}

bool trusted_file_check(int fd, bool *nosuid)
{
    struct statfs fs;

    if (!trusted_file_only_root_writes(fd) || fstatfs(fd, &fs)) {
        return false;
    }
    if (!(fs.f_flags & ST_NOSUID) || trusted_file_shares_file_system(fd)) {
        return true;
    }
    *nosuid = true;
    return false;
}

int trusted_file_open_debug(const char *build_id)
{
    char path[32 + BUILDID_TEXT_SIZE];
    int fd;

    /* Only GNU build-ids have such files. The id was validated: hexadecimal digits cannot leave the directory. */
    if (strlen(build_id) < 6 || !strncmp(build_id, "sha256-", 7) ||
        strspn(build_id, "0123456789abcdef") != strlen(build_id)) {
        return -1;
    }
    snprintf(path, sizeof path, "/usr/lib/debug/.build-id/%.2s/%s.debug", build_id, build_id + 2);
    fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    /* Only root can mount file systems there, so nosuid does not matter. */
    if (fd >= 0 && !trusted_file_only_root_writes(fd)) {
        close(fd);
        return -1;
    }
    return fd;
}
