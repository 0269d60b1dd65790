#include "tests/crash/place.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <signal.h>
#include <unistd.h>

char *place_join(char out[PLACE_PATH], const char *folder, const char *name)
{
    char joined[PLACE_PATH];

    if (snprintf(joined, sizeof joined, "%s/%s", folder, name) >= (int)sizeof joined) {
        fprintf(stderr, "crash: the path %s/%s is too long\n", folder, name);
        exit(70);
    }
    memcpy(out, joined, sizeof joined);
    return out;
}

bool place_make(char folder[PLACE_PATH])
{
    const char *base = getenv("TMPDIR");

    place_join(folder, base && *base ? base : "/tmp", "profd-crash-XXXXXX");
    return mkdtemp(folder) && !chmod(folder, 0755);
}

static void remove_level(const char *folder, int levels)
{
    DIR *d = opendir(folder);
    char path[PLACE_PATH];

    for (struct dirent *entry; d && (entry = readdir(d));) {
        if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..")) {
            continue;
        }
        place_join(path, folder, entry->d_name);
        if (unlink(path) && levels > 0) {
            remove_level(path, levels - 1);
        }
    }
    if (d) {
        closedir(d);
    }
    rmdir(folder);
}

void place_remove(const char *folder)
{
    remove_level(folder, 2);
}

/* A piece of a file; between two file systems the kernel does not do it itself. */
static bool copy_piece(int from, int to, off_t at, off_t end)
{
    static char block[1 << 18];
    off_t in = at, out = at;

    while (in < end) {
        const size_t most = (size_t)(end - in);
        ssize_t n = copy_file_range(from, &in, to, &out, most, 0);

        if (n < 0 && errno == EXDEV) {
            n = pread(from, block, most < sizeof block ? most : sizeof block, in);
            if (n > 0 && pwrite(to, block, (size_t)n, out) != n) {
                return false;
            }
            in += n > 0 ? n : 0;
            out = in;
        }
        if (n <= 0) {
            return false;
        }
    }
    return true;
}

/* The data of one file, hole by hole. */
static bool copy_data(int from, int to)
{
    const off_t end = lseek(from, 0, SEEK_END);
    off_t at = 0, data;

    if (end < 0 || ftruncate(to, end)) {
        return false;
    }
    while (at < end && (data = lseek(from, at, SEEK_DATA)) >= 0) {
        const off_t hole = lseek(from, data, SEEK_HOLE);

        if (hole < 0 || !copy_piece(from, to, data, hole)) {
            return false;
        }
        at = hole;
    }
    return true;
}

bool place_copy_file(const char *from, const char *to)
{
    const int in = open(from, O_RDONLY | O_CLOEXEC), out = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    bool ok = in >= 0 && out >= 0 && copy_data(in, out);

    if (in >= 0) {
        close(in);
    }
    if (out >= 0 && close(out)) {
        ok = false;
    }
    return ok;
}

bool place_copy(const char *from, const char *to)
{
    char a[PLACE_PATH], b[PLACE_PATH];
    DIR *d = opendir(from);
    bool ok = d != NULL;
    struct stat st;

    if (mkdir(to, 0700) && errno != EEXIST) {
        ok = false;
    }
    for (struct dirent *entry; ok && (entry = readdir(d));) {
        place_join(a, from, entry->d_name);
        if (!stat(a, &st) && S_ISREG(st.st_mode)) {
            ok = place_copy_file(a, place_join(b, to, entry->d_name));
        }
    }
    if (d) {
        closedir(d);
    }
    return ok;
}

int place_run(const char *const argv[])
{
    int status = -1, fd;
    const pid_t pid = fork();

    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        fd = open("/dev/null", O_RDWR);
        dup2(fd, 0);
        dup2(fd, 1);
        dup2(fd, 2);
        execvp(argv[0], (char *const *)(uintptr_t)argv);
        _exit(127);
    }
    if (pid < 0 || waitpid(pid, &status, 0) != pid) {
        return -1;
    }
    return WIFEXITED(status) && WEXITSTATUS(status) != 127 ? WEXITSTATUS(status) : -1;
}

bool place_write(const char *path, const void *bytes, size_t n)
{
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    const bool ok = fd >= 0 && write(fd, bytes, n) == (ssize_t)n;

    return fd >= 0 && !close(fd) && ok;
}

bool place_unshare(void)
{
    return !unshare(CLONE_NEWNS) && !mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL);
}
