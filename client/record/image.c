#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/openat2.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "elf/elf_read.h"
#include "proto/limits.h"
#include "proto/utf8.h"
#include "proto/whole.h"
#include "record/record_internal.h"

#define HEADERS_MEMORY ((size_t)16 << 20) /* for the program headers of one file */
#define PAGE 4096u
#define MEMORY_MAX ((size_t)128 << 20) /* for what is known of files, without their unwind tables */
#define FILES_MAX 100000u
#define HASHED_MAX ((uint64_t)32 << 20)     /* bytes of the code of a file without a build-id */
#define LOADS_MAX 128u                      /* segments of a file */
#define TABLES_MAX ((size_t)64 << 20)       /* bytes of unwind tables of files of users */
#define TABLES_MAX_ROOT ((size_t)192 << 20) /* and of all, so that users' files cannot displace those of root */
#define COLLECTOR_NAME "libprofd-collect.so"

struct image_file {
    const char *path;
    struct buildid id; /* "": not known */
    uint32_t major, minor;
    uint64_t inode, generation;
    struct elf_load *loads; /* of this file: another one with the same build-id may be a forgery */
    uint32_t load_count, build;
    struct unwind_table *table; /* of this file, likewise; NULL: none */
    bool looked;                /* build is final */
    uint32_t owner;
    bool setuid; /* to its owner */
};

struct image_build {
    struct buildid id;
    const char *name;
    uint32_t uid; /* of the process that its file was opened for */
    int fd;       /* −1: closed */
    bool trusted; /* the file belongs to root */
    unsigned age; /* calls of images_close_old since it was opened */
    struct tally_range range;
};

struct images {
    struct arena *arena;
    struct set known_files, known_builds; /* by what tells them apart */
    struct image_file *files;
    struct image_build *builds;
    uint32_t file_capacity, build_capacity, reserved;
    size_t tables;    /* bytes of unwind tables */
    bool tables_full; /* a file has none because of that */
};

enum profd_status images_new(struct images **out, struct profd_error *e)
{
    struct images *m = calloc(1, sizeof *m);
    struct arena *a = arena_new(MEMORY_MAX);
    if (!m || !a) {
        free(m);
        arena_free(a);
        return profd_no_memory(e);
    }
    m->arena = a;
    set_init(&m->known_files, a);
    set_init(&m->known_builds, a);
    *out = m;
    return PROFD_OK;
}

void images_free(struct images *m)
{
    if (!m) {
        return;
    }
    for (uint32_t i = 0; i < m->known_builds.count; i++) {
        whole_close(m->builds[i].fd);
    }
    for (uint32_t i = 0; i < m->known_files.count; i++) {
        unwind_table_free(m->files[i].table);
    }
    arena_free(m->arena);
    free(m);
}

uint32_t images_take_file(struct images *m, const struct image_key *key)
{
    char text[PATH_MAX + 256];
    struct image_file wanted = {.build = IMAGE_NONE};
    bool added;
    if (key->id_size > 0) {
        (void)buildid_from_note(key->id, key->id_size, &wanted.id, NULL);
    }
    const size_t n = (size_t)snprintf(text, sizeof text, "%" PRIu32 " %" PRIu32 " %" PRIu64 " %" PRIu64 " %s %s",
                                      key->major, key->minor, key->inode, key->generation, wanted.id.text, key->path);
    if (!ARENA_EXTEND(m->arena, m->files, m->known_files.count, m->file_capacity)) {
        return IMAGE_NONE;
    }
    const uint32_t file = set_add(&m->known_files, text, n < sizeof text ? n : sizeof text - 1, &added);
    if (file != SET_FULL && added) { /* the path is the end of its key */
        wanted.path = (const char *)m->known_files.keys[file].bytes + (n - strlen(key->path));
        m->files[file] = wanted;
    }
    return file;
}

bool images_full(const struct images *m)
{
    return m->known_files.count > FILES_MAX || m->reserved == IMAGE_RESERVED_MAX || m->tables_full ||
           arena_hit_limit(m->arena);
}

bool images_is_collector(const struct images *m, uint32_t file)
{
    const char *slash = strrchr(m->files[file].path, '/');
    return slash && strncmp(slash + 1, COLLECTOR_NAME, strlen(COLLECTOR_NAME)) == 0;
}

/* Finds or adds the build with this id. IMAGE_NONE: no memory. */
static uint32_t take_build(struct images *m, const struct buildid *id, const char *path)
{
    bool added;
    if (!ARENA_EXTEND(m->arena, m->builds, m->known_builds.count, m->build_capacity)) {
        return IMAGE_NONE;
    }
    const size_t n = strlen(path);
    const uint32_t build = set_add(&m->known_builds, id->text, strlen(id->text), &added);
    if (build == SET_FULL || !added) {
        return build;
    }
    char *name = arena_copy(m->arena, path, n < LIMIT_BUILD_NAME ? n : LIMIT_BUILD_NAME);
    if (name) {
        utf8_scrub(name);
    }
    m->builds[build] = (struct image_build){.id = *id, .name = name ? name : "", .fd = -1, .range = {UINT64_MAX, 0}};
    return build;
}

/* Takes over the descriptor of a build's file, which was opened for a process of that user. A file of root's is not
 * replaced by that of another user. */
static void build_set_file(struct image_build *b, int fd, uint32_t uid)
{
    struct stat st;
    const bool trusted = fstat(fd, &st) == 0 && st.st_uid == 0;
    if (b->fd >= 0 && b->trusted && !trusted) {
        close(fd);
        return;
    }
    whole_close(b->fd);
    b->fd = fd;
    b->uid = uid;
    b->trusted = trusted;
    b->age = 0;
}

static void range_extend(struct tally_range *r, uint64_t low, uint64_t high)
{
    r->low = low < r->low ? low : r->low;
    r->high = high > r->high ? high : r->high;
}

/* Reads the segments of a file. */
static bool loads_read(struct images *m, struct image_file *f, int fd)
{
    struct arena *a = arena_new(HEADERS_MEMORY);
    struct elf_load *loads;
    uint32_t count;
    if (!a || elf_read_loads(fd, a, &loads, &count, NULL) != PROFD_OK || count == 0 || count > LOADS_MAX) {
        arena_free(a);
        return false;
    }
    f->loads = arena_take_array(m->arena, count, sizeof *loads);
    if (f->loads) {
        memcpy(f->loads, loads, count * sizeof *loads);
        f->load_count = count;
    }
    arena_free(a);
    return f->loads != NULL;
}

/* Opens the file and checks that it is the one that was mapped. Returns −1 otherwise. */
static int file_open(struct image_file *f, uint32_t pid, struct buildid *id)
{
    struct stat st;
    const int fd = image_open(pid, f->path, &st);
    if (fd < 0) {
        return -1;
    }
    /* Some file systems show different device numbers in stat() and in maps. Then only the path is compared. */
    const bool same =
        f->id.text[0] || st.st_ino == f->inode || major(st.st_dev) != f->major || minor(st.st_dev) != f->minor;
    if (!same || elf_read_id(fd, HASHED_MAX, id, NULL) != PROFD_OK ||
        (f->id.text[0] && strcmp(id->text, f->id.text) != 0)) {
        close(fd);
        return -1;
    }
    f->setuid = (st.st_mode & S_ISUID) != 0;
    f->owner = st.st_uid;
    return fd;
}

/* Opens the file as the process or its elder sees it. If both are gone, the build-id tells whether the file in this
 * process's root directory is the same. *gone: a later process may show the file. */
static int file_find(struct image_file *f, const struct image_user *user, struct buildid *id, bool *gone)
{
    *gone = false;
    if (strcmp(f->path, IMAGE_VDSO) == 0) {
        const int vdso = image_open_vdso();
        if (vdso >= 0 && elf_read_id(vdso, HASHED_MAX, id, NULL) == PROFD_OK) {
            return vdso;
        }
        whole_close(vdso);
    }
    if (f->path[0] != '/') {
        return -1;
    }
    int fd = file_open(f, user->pid, id);
    *gone = fd < 0 && !image_process_lives(user->pid);
    if (*gone && user->elder) {
        fd = file_open(f, user->elder, id);
        *gone = fd < 0 && !image_process_lives(user->elder);
    }
    return fd < 0 && f->id.text[0] ? file_open(f, 0, id) : fd;
}

uint32_t images_find_build(struct images *m, uint32_t file, const struct image_user *user)
{
    struct image_file *f = &m->files[file];
    struct buildid id;
    bool gone;
    if (f->looked) {
        return f->build;
    }
    const int fd = file_find(f, user, &id, &gone);
    f->looked = fd >= 0 || !gone;
    f->build = fd >= 0 && loads_read(m, f, fd) ? take_build(m, &id, f->path) : IMAGE_NONE;
    if (f->build == IMAGE_NONE) {
        whole_close(fd);
        return IMAGE_NONE;
    }
    for (uint32_t i = 0; i < f->load_count; i++) {
        range_extend(&m->builds[f->build].range, f->loads[i].address & ~(uint64_t)(PAGE - 1),
                     f->loads[i].address + f->loads[i].size);
    }
    /* Without a table, no stack is walked through the file. */
    const size_t most = f->owner == 0 ? TABLES_MAX_ROOT : TABLES_MAX;
    if (m->tables >= most) {
        m->tables_full = true;
    } else if (unwind_elf_read(fd, &f->table, NULL) == PROFD_OK) {
        m->tables += unwind_table_size(f->table);
    }
    build_set_file(&m->builds[f->build], fd, user->uid);
    return f->build;
}

bool images_has_build(const struct images *m, uint32_t file)
{
    return m->files[file].looked && m->files[file].build != IMAGE_NONE;
}

uint32_t images_add_build(struct images *m, const struct buildid *id, const char *name, int fd, uint64_t low,
                          uint64_t high)
{
    const uint32_t build = take_build(m, id, name);
    if (build == IMAGE_NONE) {
        close(fd);
        return IMAGE_NONE;
    }
    range_extend(&m->builds[build].range, low, high);
    build_set_file(&m->builds[build], fd, 0);
    return build;
}

uint32_t images_reserve_build(struct images *m, const char *name)
{
    bool added;
    if (m->reserved == IMAGE_RESERVED_MAX ||
        !ARENA_EXTEND(m->arena, m->builds, m->known_builds.count, m->build_capacity)) {
        return IMAGE_NONE;
    }
    const uint32_t build = set_add(&m->known_builds, &m->reserved, sizeof m->reserved, &added); /* no build-id */
    if (build != SET_FULL) {
        m->builds[build] = (struct image_build){.name = name, .fd = -1, .range = {0, 0}};
        m->reserved++;
    }
    return build;
}

void images_set_build(struct images *m, uint32_t build, const struct buildid *id, int fd, uint64_t size, uint32_t uid)
{
    m->builds[build].id = *id;
    m->builds[build].range = (struct tally_range){0, size};
    build_set_file(&m->builds[build], fd, uid);
}

uint32_t images_reserved(const struct images *m)
{
    return m->reserved;
}

bool images_find_setuid(const struct images *m, uint32_t file, uint32_t *uid)
{
    *uid = m->files[file].owner;
    return m->files[file].setuid;
}

bool images_find_address(const struct images *m, uint32_t file, uint64_t offset, uint64_t *address)
{
    const struct image_file *f = &m->files[file];
    for (uint32_t i = 0; i < f->load_count; i++) {
        if (offset >= f->loads[i].offset && offset - f->loads[i].offset < f->loads[i].size) {
            *address = f->loads[i].address + (offset - f->loads[i].offset);
            return true;
        }
    }
    return false;
}

const struct unwind_table *images_find_table(const struct images *m, uint32_t file)
{
    return m->files[file].table;
}

const char *images_get_id(const struct images *m, uint32_t build)
{
    return m->builds[build].id.text;
}

const char *images_get_name(const struct images *m, uint32_t build)
{
    return m->builds[build].name;
}

struct tally_range images_get_range(const struct images *m, uint32_t build)
{
    return m->builds[build].range;
}

int images_open_build(const struct images *m, const char *id, uint32_t *uid, const char **name)
{
    for (uint32_t i = 0; i < m->known_builds.count; i++) {
        const struct image_build *b = &m->builds[i];
        if (strcmp(b->id.text, id) != 0) {
            continue;
        }
        struct image_file again = {.path = b->name, .id = b->id};
        struct buildid found;
        *uid = b->uid;
        *name = b->name;
        return b->fd >= 0 ? dup(b->fd) : b->name[0] == '/' ? file_open(&again, 0, &found) : -1;
    }
    return -1;
}

void images_close_old(struct images *m)
{
    for (uint32_t i = 0; i < m->known_builds.count; i++) {
        struct image_build *b = &m->builds[i];
        if (b->fd >= 0 && b->name[0] == '/' && ++b->age > 2) {
            close(b->fd);
            b->fd = -1;
        }
    }
}

#define FUSE_MAGIC 0x65735546
#define ANSWER_MS 1000 /* for a file system */
#define SILENT_MAX 3u  /* times that one may not answer */

/* Finds a file without opening it. RESOLVE_CACHED: the path of a mapped file is in the kernel's memory, so no file
 * system is asked; kernels before 5.12 do not know the flag. RESOLVE_NO_SYMLINKS: the kernel's path of a mapped file
 * has no symbolic link. A link that is there now is an attempt to lead this process, which may read everything, to a
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
    FAIL_IF(fd < 0, e, PROFD_UNAVAILABLE,
            "the system call openat2 is needed, and fails here: %s (Linux before 5.6 has none, and "
            "RestrictSUIDSGID= of a unit forbids it)",
            strerror(errno));
    close((int)fd);
    return PROFD_OK;
}

/* Returns whether a list of mounts has the mount with this number. *fuse: a process of a user serves it. */
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

bool image_ask(bool (*ask)(void *context), void *context, unsigned *silent)
{
    int how = 0;
    const pid_t child = *silent < SILENT_MAX ? fork() : -1;
    if (child == 0) {
        _exit(ask(context) ? 0 : 1);
    }
    const int ended = child > 0 ? (int)syscall(SYS_pidfd_open, child, 0) : -1;
    struct pollfd wait = {.fd = ended, .events = POLLIN};
    if (child > 0 && (ended < 0 || poll(&wait, 1, ANSWER_MS) <= 0)) {
        ++*silent;
        kill(child, SIGKILL);
    }
    whole_close(ended);
    return child > 0 && waitpid(child, &how, 0) == child && WIFEXITED(how) && WEXITSTATUS(how) == 0;
}

static bool place_ask(void *context)
{
    struct statfs fs;
    return fstatfs(*(const int *)context, &fs) == 0 && fs.f_type != FUSE_MAGIC;
}

/* Returns whether the kernel itself serves the file system of a place. stat() and statfs() cannot be called first,
 * because the user who owns a FUSE file system may never answer. Lists of mounts lack the one that a process's root
 * directory is in after chroot(). */
static bool place_answers(uint32_t pid, int place)
{
    char path[64], text[512];
    uint64_t number;
    bool fuse = false;
    static unsigned silent;
    (void)snprintf(path, sizeof path, "/proc/self/fdinfo/%d", place);
    (void)whole_read_text(path, text, sizeof text);
    const char *at = strstr(text, "mnt_id:\t");
    at = at ? at + strlen("mnt_id:\t") : text;
    if (!scan_number(&at, 10, &number)) {
        return false;
    }
    (void)snprintf(path, sizeof path, "/proc/%u/mountinfo", pid);
    return (pid && mount_find(path, number, &fuse)) || mount_find("/proc/self/mountinfo", number, &fuse)
               ? !fuse
               : image_ask(place_ask, &place, &silent);
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
    whole_close(root);
    return root >= 0 || (errno != ENOENT && errno != ESRCH);
}

static int regular_open(uint32_t pid, const char *path, struct stat *st)
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
    whole_close(place);
    close(root);
    return fd;
}

int image_open(uint32_t pid, const char *path, struct stat *st)
{
    const int fd = regular_open(pid, path, st);
    if (fd >= 0 && (unsigned long long)st->st_size > LIMIT_OBJECT_BYTES) {
        close(fd);
        return -1;
    }
    return fd;
}

int image_open_of_user(uint32_t pid, const char *path, uint32_t uid)
{
    struct stat st;
    const int fd = regular_open(pid, path, &st);
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
