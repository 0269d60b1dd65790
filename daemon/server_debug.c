/* Files the daemon itself looks at, and whom it believes (DECISIONS 12, 38). */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "server_parts.h"

#define FUSE_MAGIC 0x65735546 /* such a file system says about owners what its user likes */

bool server_trusts_file(int fd)
{
    struct statfs fs;
    struct stat st;

    return !fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_uid == 0 && !(st.st_mode & (S_IWGRP | S_IWOTH)) &&
           !fstatfs(fd, &fs) && fs.f_type != FUSE_MAGIC;
}

bool server_hangs_file(int fd)
{
    struct statfs fs;

    return !fstatfs(fd, &fs) && fs.f_type == FUSE_MAGIC;
}

int server_open_debug(const char *build_id)
{
    char path[32 + BUILDID_TEXT_SIZE];
    int fd;

    /* Only note build-ids have such files. The alphabet was checked: hex digits cannot leave the directory. */
    if (strlen(build_id) < 6 || !strncmp(build_id, "sha256-", 7) ||
        strspn(build_id, "0123456789abcdef") != strlen(build_id))
        return -1;
    snprintf(path, sizeof path, "/usr/lib/debug/.build-id/%.2s/%s.debug", build_id, build_id + 2);
    fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd >= 0 && !server_trusts_file(fd)) {
        close(fd);
        return -1;
    }
    return fd;
}
