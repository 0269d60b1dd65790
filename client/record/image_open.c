#include "record/image_open.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "proto/limits.h"
#include "record/scan.h"

#define FUSE_MAGIC 0x65735546
#define ANSWER_MS 1000 /* for a file system */
#define SILENT_MAX 3u  /* times that one may not answer */

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

/* The number of the mount that a descriptor is on. */
static bool mount_number(int fd, uint64_t *number)
{
    char name[64], text[512];
    (void)snprintf(name, sizeof name, "/proc/self/fdinfo/%d", fd);
    const int info = open(name, O_RDONLY | O_CLOEXEC);
    const ssize_t n = info < 0 ? -1 : read(info, text, sizeof text - 1);
    if (info >= 0) {
        close(info);
    }
    text[n > 0 ? n : 0] = '\0';
    const char *at = strstr(text, "mnt_id:\t");
    at = at ? at + strlen("mnt_id:\t") : text;
    return scan_number(&at, 10, number);
}

/* True if that list of mounts has the one of that number; then *fuse: a process of a user answers for it. */
static bool mount_find(const char *list, uint64_t wanted, bool *fuse)
{
    char *line = NULL;
    size_t size = 0;
    uint64_t number;
    const char *type = NULL;
    FILE *f = fopen(list, "re");
    while (f && !type && getline(&line, &size, f) > 0) {
        const char *at = line;
        type = scan_number(&at, 10, &number) && number == wanted ? strstr(at, " - ") : NULL;
    }
    const bool found = type != NULL;
    *fuse = found && (strncmp(type, " - fuse", 7) == 0 || strncmp(type, " - virtiofs", 11) == 0);
    free(line);
    if (f) {
        (void)fclose(f);
    }
    return found;
}

/* Asks the file system itself, in a process that can be killed when there is no answer. */
static bool place_asked(int place)
{
    static unsigned silent; /* times that there was none */
    struct statfs fs;
    int how = 0;
    const pid_t child = silent < SILENT_MAX ? fork() : -1;
    if (child == 0) {
        _exit(fstatfs(place, &fs) == 0 && fs.f_type != FUSE_MAGIC ? 0 : 1);
    }
    const int ended = child > 0 ? (int)syscall(SYS_pidfd_open, child, 0) : -1;
    struct pollfd wait = {.fd = ended, .events = POLLIN};
    if (child > 0 && (ended < 0 || poll(&wait, 1, ANSWER_MS) <= 0)) {
        silent++;
        kill(child, SIGKILL);
    }
    if (ended >= 0) {
        close(ended);
    }
    return child > 0 && waitpid(child, &how, 0) == child && WIFEXITED(how) && WEXITSTATUS(how) == 0;
}

/* Does the kernel itself answer for the file system of a place? stat() and statfs() cannot be asked first, because the
 * user who owns a FUSE file system may never answer. Lists of mounts lack the one that a process's root directory is in
 * after chroot(). */
static bool place_answers(uint32_t pid, int place)
{
    char list[64];
    uint64_t number;
    bool fuse = false;
    (void)snprintf(list, sizeof list, "/proc/%u/mountinfo", pid);
    if (!mount_number(place, &number)) {
        return false;
    }
    return (pid && mount_find(list, number, &fuse)) || mount_find("/proc/self/mountinfo", number, &fuse)
               ? !fuse
               : place_asked(place);
}

static int root_open(uint32_t pid)
{
    char name[64];
    (void)snprintf(name, sizeof name, pid ? "/proc/%u/root" : "/", pid);
    return open(name, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

bool image_process_lives(uint32_t pid)
{
    const int root = root_open(pid);
    if (root >= 0) {
        close(root);
    }
    return root >= 0 || (errno != ENOENT && errno != ESRCH);
}

static int file_open(uint32_t pid, const char *path, struct stat *st)
{
    char name[64];
    const int root = root_open(pid);
    if (root < 0) {
        return -1;
    }
    const int place = place_open(root, path);
    int fd = -1;
    if (place >= 0 && place_answers(pid, place) && fstat(place, st) == 0 && S_ISREG(st->st_mode) && st->st_size > 0) {
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
