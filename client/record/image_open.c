#include "record/image_open.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "proto/limits.h"
#include "record/scan.h"

#define FUSE_MAGIC 0x65735546 /* a user who owns such a file system may never answer */

/* The place of a file, without opening it. RESOLVE_CACHED: a mapped file's path is in the kernel's memory, so that no
 * file system is asked; kernels before 5.12 do not know the flag. RESOLVE_NO_SYMLINKS: the kernel's path of a mapped
 * file has none, so that one that is there now was put there to lead this process, which may read everything, to a
 * file that the other process may not read. */
static int place_open(int root, const char *path)
{
    struct open_how how = {.flags = O_PATH | O_CLOEXEC,
                           .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_SYMLINKS | RESOLVE_CACHED};
    long fd = syscall(SYS_openat2, root, path, &how, sizeof how);
    if (fd < 0 && errno == EINVAL) {
        how.resolve &= ~(uint64_t)RESOLVE_CACHED;
        fd = syscall(SYS_openat2, root, path, &how, sizeof how);
    }
    return (int)fd;
}

enum profd_status image_open_check(struct profd_error *e)
{
    const struct open_how how = {.flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_IN_ROOT};
    const long fd = syscall(SYS_openat2, AT_FDCWD, "/", &how, sizeof how);
    if (fd < 0) {
        return profd_error_set(e, PROFD_UNAVAILABLE,
                               "the system call openat2 is needed, and fails here: %s (Linux before 5.6 has none, and "
                               "RestrictSUIDSGID= of a unit forbids it)",
                               strerror(errno));
    }
    close((int)fd);
    return PROFD_OK;
}

static int file_open(uint32_t pid, const char *path, struct stat *st)
{
    char name[64];
    struct statfs fs;
    (void)snprintf(name, sizeof name, pid ? "/proc/%u/root" : "/", pid);
    const int root = open(name, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (root < 0) {
        return -1;
    }
    const int place = place_open(root, path);
    int fd = -1;
    if (place >= 0 && fstat(place, st) == 0 && S_ISREG(st->st_mode) && st->st_size > 0 && fstatfs(place, &fs) == 0 &&
        fs.f_type != FUSE_MAGIC) {
        (void)snprintf(name, sizeof name, "/proc/self/fd/%d", place);
        fd = open(name, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    }
    if (place >= 0) {
        close(place);
    }
    close(root);
    return fd;
}

int image_open(uint32_t pid, const char *path, struct stat *st)
{
    const int fd = file_open(pid, path, st);
    if (fd >= 0 && (unsigned long long)st->st_size > LIMIT_OBJECT_BYTES) {
        close(fd);
        return -1;
    }
    return fd;
}

int image_open_of_user(uint32_t pid, const char *path, uint32_t uid)
{
    struct stat st;
    const int fd = file_open(pid, path, &st);
    if (fd >= 0 && st.st_uid != uid) {
        close(fd);
        return -1;
    }
    return fd;
}

int image_open_vdso(void)
{
    char line[512];
    uint64_t start = 0, end = 0;
    FILE *f = fopen("/proc/self/maps", "re");
    while (f && end == 0 && fgets(line, sizeof line, f)) {
        const char *at = line;
        if (strstr(line, "[vdso]") &&
            !(scan_number(&at, 16, &start) && scan_skip(&at, '-') && scan_number(&at, 16, &end))) {
            end = 0;
        }
    }
    if (f) {
        (void)fclose(f);
    }
    const int fd = end > start ? memfd_create("vdso", MFD_CLOEXEC | MFD_ALLOW_SEALING) : -1;
    if (fd >= 0 && (write(fd, (const void *)(uintptr_t)start, end - start) != (ssize_t)(end - start) ||
                    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) != 0)) {
        close(fd);
        return -1;
    }
    return fd;
}
