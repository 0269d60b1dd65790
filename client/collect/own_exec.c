/* The functions of libc that start a program, which the shared library replaces: profctl run gets the programs that the
 * collector will not count. Each behaves like libc's. Not in the static library.
 *
 * A child of vfork() runs through here in its parent's memory: raw system calls only, and nothing is written but the
 * stack, until libc's function is called. */
#include <elf.h>
#include <fcntl.h>
#include <linux/xattr.h>
#include <spawn.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/collect/collect.h"
#include "client/collect/next.h"
#include "client/collect/option.h"
#include "client/collect/raw.h"
#include "proto/uncounted.h"

#define EXPORT __attribute__((visibility("default")))
#define PATH_SIZE 4096
#define PATH_DEFAULT "/bin:/usr/bin"
#define SEGMENTS_MAX 64 /* that are read of a program */

#if defined __x86_64__
#define OWN_MACHINE EM_X86_64
#else
#define OWN_MACHINE EM_AARCH64
#endif

/* The loader of glibc reads LD_PRELOAD; that of musl does not load the collector, and a static program has none. */
static bool has_other_loader(int fd)
{
    Elf64_Ehdr header;
    Elf64_Phdr segment;
    char loader[256];
    if (raw_call(SYS_pread64, fd, &header, sizeof header, 0) != (long)sizeof header || header.e_ident[0] != ELFMAG0 ||
        header.e_ident[1] != ELFMAG1 || header.e_ident[2] != ELFMAG2 || header.e_ident[3] != ELFMAG3) {
        return false;
    }
    if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_machine != OWN_MACHINE) {
        return true;
    }
    for (uint32_t i = 0; i < header.e_phnum && i < SEGMENTS_MAX; i++) {
        if (raw_call(SYS_pread64, fd, &segment, sizeof segment, header.e_phoff + i * sizeof segment) !=
                (long)sizeof segment ||
            segment.p_type != PT_INTERP) {
            continue;
        }
        long n = raw_call(SYS_pread64, fd, loader, sizeof loader - 1, segment.p_offset);
        loader[n > 0 ? n : 0] = '\0';
        for (const char *at = loader; *at; at++) {
            if (raw_after(at, "/ld-linux")) {
                return false;
            }
        }
        return true;
    }
    return true;
}

static bool is_preloaded(char *const *variables)
{
    for (; variables && *variables; variables++) {
        const char *value = raw_after(*variables, "LD_PRELOAD=");
        for (; value && *value; value++) {
            if (raw_after(value, "/libprofd-collect.so")) {
                return true;
            }
        }
    }
    return false;
}

static void tell(int file, char why)
{
    long fd = raw_call(SYS_socket, AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, 0);
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control;
    struct iovec text = {&why, 1};
    struct msghdr message;
    if (fd < 0) {
        return;
    }
    raw_zero(&message, sizeof message);
    raw_zero(&control, sizeof control);
    message.msg_name = &option.run;
    message.msg_namelen = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + raw_length(option.run.sun_path + 1));
    message.msg_iov = &text;
    message.msg_iovlen = 1;
    message.msg_control = &control;
    message.msg_controllen = sizeof control.bytes;
    control.header.cmsg_level = SOL_SOCKET;
    control.header.cmsg_type = SCM_RIGHTS;
    control.header.cmsg_len = CMSG_LEN(sizeof(int));
    raw_copy(CMSG_DATA(&control.header), &file, sizeof file);
    raw_call(SYS_sendmsg, fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT, 0);
    raw_call(SYS_close, fd, 0, 0, 0);
}

/* The interpreter of a script, where the file is one. */
static bool read_interpreter(int fd, char path[256])
{
    long n = raw_call(SYS_pread64, fd, path, 255, 0);
    long from = 2, to;
    if (n < 3 || path[0] != '#' || path[1] != '!') {
        return false;
    }
    while (from < n && (path[from] == ' ' || path[from] == '\t')) {
        from++;
    }
    for (to = from; to < n && path[to] != ' ' && path[to] != '\t' && path[to] != '\n'; to++) {
    }
    path[to] = '\0';
    raw_copy(path, path + from, (size_t)(to - from) + 1);
    return true;
}

static bool is_asked(void)
{
    return option.run.sun_family && collect.stage == COLLECT_RUNNING;
}

static void note_file(int fd, char *const *variables)
{
    struct stat st;
    raw_zero(&st, sizeof st);
    if (raw_call(SYS_newfstatat, AT_FDCWD, "/", &st, 0) == 0 &&
        (st.st_dev != option.root_device || st.st_ino != option.root_inode)) {
        tell(fd, UNCOUNTED_ROOT);
    } else if (!is_preloaded(variables)) {
        tell(fd, UNCOUNTED_ENVIRONMENT);
    } else {
        raw_zero(&st, sizeof st);
        /* Its process will have rights that the user has not. */
        bool gains =
            raw_call(SYS_prctl, PR_GET_NO_NEW_PRIVS, 0, 0, 0) == 0 && raw_call(SYS_fstat, fd, &st, 0, 0) == 0 &&
            ((st.st_mode & (S_ISUID | S_ISGID)) != 0 || raw_call(SYS_fgetxattr, fd, XATTR_NAME_CAPS, NULL, 0) > 0);
        if (gains || has_other_loader(fd)) {
            tell(fd, UNCOUNTED_FILE);
        }
    }
}

/* False: there is no such program. */
static bool note(const char *path, char *const *variables)
{
    char interpreter[256];
    if (!is_asked() || raw_call(SYS_faccessat, AT_FDCWD, path, X_OK, 0) < 0) {
        return false;
    }
    long fd = raw_call(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0);
    if (fd >= 0 && read_interpreter((int)fd, interpreter)) {
        raw_call(SYS_close, fd, 0, 0, 0);
        fd = raw_call(SYS_openat, AT_FDCWD, interpreter, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0);
    }
    if (fd < 0) { /* its user may execute it, and not read it */
        fd = raw_call(SYS_openat, AT_FDCWD, path, O_PATH | O_CLOEXEC, 0);
    }
    if (fd >= 0) {
        note_file((int)fd, variables);
        raw_call(SYS_close, fd, 0, 0, 0);
    }
    return true;
}

/* What execvp() runs for a name. */
static void note_searched(const char *name, char *const *variables)
{
    const char *folders = PATH_DEFAULT;
    char path[PATH_SIZE];
    if (!is_asked()) {
        return;
    }
    for (const char *at = name; *at; at++) {
        if (*at == '/') {
            note(name, variables);
            return;
        }
    }
    for (char **at = environ; at && *at; at++) {
        const char *value = raw_after(*at, "PATH=");
        folders = value ? value : folders;
    }
    for (size_t size = raw_length(name); *folders; folders += *folders == ':') {
        size_t n = 0;
        while (*folders && *folders != ':' && n + size + 2 < sizeof path) {
            path[n++] = *folders++;
        }
        path[n] = '/';
        raw_copy(path + n + (n > 0), name, size + 1);
        if (n + size + 2 >= sizeof path || note(path, variables)) {
            return;
        }
    }
}

enum { EXECVE, EXECVPE, FEXECVE, POSIX_SPAWN, POSIX_SPAWNP, NEXT_COUNT };
static any_function *next[NEXT_COUNT];

/* Not at the first call: that may be in a child, in which a lock of the loader is held for ever. */
__attribute__((constructor(102))) static void next_find_all(void)
{
    static const char *const names[] = {"execve", "execvpe", "fexecve", "posix_spawn", "posix_spawnp"};
    for (unsigned i = 0; i < NEXT_COUNT; i++) {
        next_find(&next[i], names[i]);
    }
}

typedef int execve_function(const char *, char *const *, char *const *);
typedef int fexecve_function(int, char *const *, char *const *);
typedef int spawn_function(pid_t *, const char *, const posix_spawn_file_actions_t *, const posix_spawnattr_t *,
                           char *const *, char *const *);

EXPORT int execve(const char *path, char *const *arguments, char *const *variables)
{
    note(path, variables);
    return ((execve_function *)next_find(&next[EXECVE], "execve"))(path, arguments, variables);
}

EXPORT int execvpe(const char *name, char *const *arguments, char *const *variables)
{
    note_searched(name, variables);
    return ((execve_function *)next_find(&next[EXECVPE], "execvpe"))(name, arguments, variables);
}

EXPORT int execv(const char *path, char *const *arguments)
{
    return execve(path, arguments, environ);
}

EXPORT int execvp(const char *name, char *const *arguments)
{
    return execvpe(name, arguments, environ);
}

EXPORT int fexecve(int fd, char *const *arguments, char *const *variables)
{
    if (is_asked()) {
        note_file(fd, variables);
    }
    return ((fexecve_function *)next_find(&next[FEXECVE], "fexecve"))(fd, arguments, variables);
}

static char *unconst(const char *text)
{
    union {
        const char *given;
        char *taken;
    } text_of = {.given = text};
    return text_of.taken;
}

/* Makes an array of the arguments first … of execl() and its kind; list is behind the last one then. */
#define ARGUMENTS                                                                                                      \
    size_t count_ = 0;                                                                                                 \
    va_start(list, first);                                                                                             \
    for (const char *at_ = first; at_; at_ = va_arg(list, const char *)) {                                             \
        count_++;                                                                                                      \
    }                                                                                                                  \
    va_end(list);                                                                                                      \
    char **array = __builtin_alloca((count_ + 1) * sizeof *array);                                                     \
    va_start(list, first);                                                                                             \
    array[0] = unconst(first);                                                                                         \
    for (size_t i_ = 1; i_ <= count_; i_++) {                                                                          \
        array[i_] = va_arg(list, char *);                                                                              \
    }

EXPORT int execl(const char *path, const char *first, ...)
{
    va_list list;
    ARGUMENTS
    va_end(list);
    return execve(path, array, environ);
}

EXPORT int execlp(const char *name, const char *first, ...)
{
    va_list list;
    ARGUMENTS
    va_end(list);
    return execvpe(name, array, environ);
}

EXPORT int execle(const char *path, const char *first, ...)
{
    va_list list;
    ARGUMENTS
    char *const *variables = va_arg(list, char *const *);
    va_end(list);
    return execve(path, array, variables);
}

EXPORT int posix_spawn(pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions,
                       const posix_spawnattr_t *attributes, char *const *arguments, char *const *variables)
{
    note(path, variables);
    return ((spawn_function *)next_find(&next[POSIX_SPAWN], "posix_spawn"))(pid, path, actions, attributes, arguments,
                                                                            variables);
}

EXPORT int posix_spawnp(pid_t *pid, const char *name, const posix_spawn_file_actions_t *actions,
                        const posix_spawnattr_t *attributes, char *const *arguments, char *const *variables)
{
    note_searched(name, variables);
    return ((spawn_function *)next_find(&next[POSIX_SPAWNP], "posix_spawnp"))(pid, name, actions, attributes, arguments,
                                                                              variables);
}
