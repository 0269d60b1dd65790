/* profctl run: a command under the collector. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <inttypes.h>
#include <libelf.h>
#include <linux/xattr.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/utsname.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#include "lib/client.h"
#include "lib/profd_upload.h"
#include "profctl/profctl.h"
#include "proto/attach_memory.h"
#include "proto/collector.h"
#include "proto/hex.h"
#include "proto/uncounted.h"
#include "proto/whole.h"

/* ---- Where profctl run finds what it puts into the environment ---- */

#define RUN_PLACE_SIZE 8192

#define SOCKET_PATH_MAX 107
#define ONLY_GLIBC "/$LIB"

/* folder + name into out, if that is a file that can be read. */
static bool library_try(const char *folder, const char *name, char out[RUN_PLACE_SIZE])
{
    int n = snprintf(out, RUN_PLACE_SIZE, "%s%s", folder, name);
    return n > 0 && n < RUN_PLACE_SIZE && access(out, R_OK) == 0;
}

/* The value of LD_PRELOAD: libprofd-collect.so beside this program (a build directory), in ../lib of it, or where it is
 * installed, followed by the current LD_PRELOAD. NO_INPUT: it is in none of them. REFUSED: the loader cannot use its
 * path. */
static enum profd_status run_place_library(char out[RUN_PLACE_SIZE], struct profd_error *e)
{
    char self[4096], path[RUN_PLACE_SIZE];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    self[n > 0 ? n : 0] = '\0';
    char *slash = strrchr(self, '/');
    if (slash) {
        *slash = '\0';
    }
    FAIL_IF(!(slash && library_try(self, "/libprofd-collect.so", path)) &&
                !(slash && library_try(self, "/../lib/libprofd-collect.so." PROFD_COLLECT_ABI, path)) &&
                !library_try(PROFD_LIBDIR, "/libprofd-collect.so." PROFD_COLLECT_ABI, path),
            e, PROFD_NO_INPUT, "run: libprofd-collect.so is neither beside profctl (%s) nor in %s", self, PROFD_LIBDIR);
    FAIL_IF(strpbrk(path, " :\t\n"), e, PROFD_REFUSED,
            "run: LD_PRELOAD cannot contain a path with a space or colon: %s", path);
    /* Only glibc's loader replaces $LIB. musl's finds no such file and goes on; it would load the collector, find that
     * a function of glibc is missing, and end the program. */
    const char *only =
        dlopen(ONLY_GLIBC "/libc.so.6", RTLD_LAZY | RTLD_NOLOAD) && path[0] == '/' ? ONLY_GLIBC UNCOUNTED_TO_ROOT : "";
    const char *before = getenv("LD_PRELOAD");
    int written =
        snprintf(out, RUN_PLACE_SIZE, "%s%s%s%s", only, path, before && *before ? ":" : "", before ? before : "");
    FAIL_IF(written < 0 || written >= RUN_PLACE_SIZE, e, PROFD_TOO_LARGE, "run: LD_PRELOAD has over %d bytes",
            RUN_PLACE_SIZE);
    return PROFD_OK;
}

/* The value of PROFD_SOCKET for a path or "unix:/path": absolute, the command may change its folder. USAGE: over 107
 * bytes. */
static enum profd_status run_place_socket(const char *text, char out[RUN_PLACE_SIZE], struct profd_error *e)
{
    char folder[4096] = "";
    const char *path = strncmp(text, "unix:", 5) == 0 ? text + 5 : text;
    FAIL_IF(*path == '\0', e, PROFD_USAGE, "run: the path of the socket is empty");
    FAIL_IF(path[0] != '/' && !getcwd(folder, sizeof folder), e, PROFD_USAGE,
            "run: --socket %s: the path of the current directory is unknown", path);
    int n = snprintf(out, RUN_PLACE_SIZE, "%s%s%s", folder, folder[0] ? "/" : "", path);
    FAIL_IF(n < 0 || n > SOCKET_PATH_MAX, e, PROFD_USAGE,
            "run: the path of the socket has %d bytes; the limit is %d: %s", n, SOCKET_PATH_MAX, path);
    return PROFD_OK;
}

/* ---- Programs that the collector cannot count ---- */

#define DESCRIPTORS_WANTED 2 /* by the collector: its memory and its socket */
#define INTERPRETER_SIZE 256

/* An ELF file that is open; elf is NULL if it is none. */
struct elf_program {
    int fd;
    Elf *elf;
    GElf_Ehdr header;
};

static void program_open(struct elf_program *p, const char *path)
{
    p->fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    p->elf = p->fd >= 0 && elf_version(EV_CURRENT) != EV_NONE ? elf_begin(p->fd, ELF_C_READ, NULL) : NULL;
    if (p->elf && (elf_kind(p->elf) != ELF_K_ELF || gelf_getehdr(p->elf, &p->header) == NULL)) {
        (void)elf_end(p->elf);
        p->elf = NULL;
    }
}

static void program_close(struct elf_program *p)
{
    (void)elf_end(p->elf);
    whole_close(p->fd);
}

static bool has_section(const struct elf_program *p, const char *wanted)
{
    GElf_Shdr header;
    size_t names = 0;
    if (elf_getshdrstrndx(p->elf, &names) != 0) {
        return false;
    }
    for (Elf_Scn *s = NULL; (s = elf_nextscn(p->elf, s)) != NULL;) {
        const char *name = gelf_getshdr(s, &header) ? elf_strptr(p->elf, names, header.sh_name) : NULL;
        if (name && strcmp(name, wanted) == 0) {
            return true;
        }
    }
    return false;
}

/* The reason why the collector cannot be loaded into a program with these libraries, as the end of a sentence; NULL if
 * there is none. glibc's start-up code has the section .note.ABI-tag, stripped or not. */
static const char *judge_libraries(const struct elf_program *p)
{
    char interpreter[INTERPRETER_SIZE] = ""; /* of a static program; a longer path is cut */
    GElf_Phdr header;
    size_t segments = 0, sections = 0;
    (void)elf_getphdrnum(p->elf, &segments);
    for (size_t i = 0; i < segments && gelf_getphdr(p->elf, (int)i, &header) != NULL; i++) {
        if (header.p_type == PT_INTERP && header.p_offset <= INT64_MAX) {
            size_t n = header.p_filesz < INTERPRETER_SIZE ? header.p_filesz : INTERPRETER_SIZE - 1;
            interpreter[pread(p->fd, interpreter, n, (off_t)header.p_offset) == (ssize_t)n ? n : 0] = '\0';
            break;
        }
    }
    if (strstr(interpreter, "/ld-musl-") != NULL) {
        return "it is linked with musl, but the collector requires glibc; link it with glibc";
    }
    if (interpreter[0] != '\0' || has_section(p, "profd_collect_text")) { /* the collector is linked in */
        return NULL;
    }
    if (has_section(p, ".go.buildinfo")) {
        return "it is a static Go program; let it write a profile with runtime/pprof, which profctl upload takes";
    }
    if (elf_getshdrnum(p->elf, &sections) == 0 && sections > 0 && !has_section(p, ".note.ABI-tag")) {
        return "it is static and without glibc (musl?), which the collector requires; link it with glibc";
    }
    return "it is static; link it with libprofd-collect.a";
}

/* The reason why the collector cannot be loaded into the program in this file, as the end of a sentence; NULL if there
 * is none, or if the file is not an ELF file (a script). Reads headers only. */
static const char *run_judge_program(const char *path)
{
    struct elf_program own, p;
    struct stat st;
    const char *why = NULL;
    program_open(&own, "/proc/self/exe");
    program_open(&p, path);
    if (p.fd < 0 || fstat(p.fd, &st) != 0 || !S_ISREG(st.st_mode) || !own.elf || !p.elf) {
        why = NULL; /* not for us to say: a script, or what cannot be run */
    } else if (p.header.e_machine != own.header.e_machine || gelf_getclass(p.elf) != gelf_getclass(own.elf)) {
        why = "it is for another machine architecture";
    } else if ((st.st_mode & S_ISUID && st.st_uid != geteuid()) || (st.st_mode & S_ISGID && st.st_gid != getegid())) {
        why = "it changes its user or group (set-user-id, set-group-id)";
    } else if (geteuid() != 0 && fgetxattr(p.fd, XATTR_NAME_CAPS, NULL, 0) > 0) {
        why = "it has file capabilities";
    } else {
        why = judge_libraries(&p);
    }
    program_close(&own);
    program_close(&p);
    return why;
}

/* The same for the limits that a command inherits: writes the end of a sentence to out. False, and out unchanged, if
 * there is no reason. */
static bool run_judge_limits(char *out, size_t size)
{
    struct rlimit limit;
    int free_count = 0;
    if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < ATTACH_SIZE_MIN) {
        (void)snprintf(out, size, "its files are limited to %" PRIuMAX " bytes (ulimit -f); the collector requires %u",
                       (uintmax_t)limit.rlim_cur, ATTACH_SIZE_MIN);
        return true;
    }
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) {
        return false;
    }
    for (int fd = 0; (rlim_t)fd < limit.rlim_cur && free_count < DESCRIPTORS_WANTED; fd++) {
        int flags = fcntl(fd, F_GETFD);
        free_count += flags < 0 || (flags & FD_CLOEXEC) != 0; /* execve will have closed it */
    }
    if (free_count < DESCRIPTORS_WANTED) {
        (void)snprintf(out, size,
                       "it is limited to %" PRIuMAX " descriptors (ulimit -n); the collector requires %d free ones",
                       (uintmax_t)limit.rlim_cur, DESCRIPTORS_WANTED);
        return true;
    }
    return false;
}

/* ---- Programs that a command starts and that are not counted ---- */

/* Its counted processes tell profctl run of them. */

#define RUN_UNCOUNTED_MAX 64

struct run_uncounted {
    int fd; /* −1: there is no socket */
    pthread_t thread;
    struct {
        char *path;
        const char *why;
        size_t times;
    } rows[RUN_UNCOUNTED_MAX];
    size_t count, others; /* programs; started programs that have no row */
};

#define END '.' /* from profctl itself: nothing follows */

/* Adds the program of this file, unless the collector is linked into it or its user may load the collector. */
static void program_take(struct run_uncounted *u, char kind, int file)
{
    char link[32], path[4096];
    (void)snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t n = readlink(link, path, sizeof path - 1);
    path[n > 0 ? n : 0] = '\0';
    const char *why = kind == UNCOUNTED_ROOT ? "it is started below another root directory, where the collector is not"
                                             : run_judge_program(link);
    if (!why && kind == UNCOUNTED_ENVIRONMENT) {
        why = "it is started without the variable LD_PRELOAD of profctl run (env -i?)";
    }
    if (!why) {
        return;
    }
    for (size_t i = 0; i < u->count; i++) {
        if (u->rows[i].why == why && strcmp(u->rows[i].path, path) == 0) {
            u->rows[i].times++;
            return;
        }
    }
    char *copy = u->count < RUN_UNCOUNTED_MAX ? strdup(path) : NULL;
    if (!copy) {
        u->others++;
        return;
    }
    u->rows[u->count].path = copy;
    u->rows[u->count].why = why;
    u->rows[u->count++].times = 1;
}

/* The thread: takes messages until profctl sends its own. Messages of other users are ignored; the descriptors that
 * came with a message are closed. */
static void *messages_take(void *context)
{
    struct run_uncounted *u = context;
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(sizeof(int) * 8) + CMSG_SPACE(sizeof(struct ucred))];
    } control;
    for (bool ended = false; !ended;) {
        struct ucred peer = {0, (uid_t)-1, 0};
        int files[8];
        size_t count = 0;
        char kind = 0;
        struct iovec text = {&kind, 1};
        struct msghdr message = {
            .msg_iov = &text, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
        if (recvmsg(u->fd, &message, MSG_CMSG_CLOEXEC) < 0) {
            continue;
        }
        for (struct cmsghdr *c = CMSG_FIRSTHDR(&message); c; c = CMSG_NXTHDR(&message, c)) {
            if (c->cmsg_type == SCM_RIGHTS) {
                count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
                memcpy(files, CMSG_DATA(c), count * sizeof(int));
            } else if (c->cmsg_type == SCM_CREDENTIALS) {
                memcpy(&peer, CMSG_DATA(c), sizeof peer);
            }
        }
        if ((peer.uid == geteuid() || peer.uid == 0) && count == 1 && kind != END) {
            program_take(u, kind, files[0]);
        }
        while (count > 0) {
            close(files[--count]);
        }
        ended = peer.pid == getpid() && kind == END;
    }
    return NULL;
}

/* Listens from now on: the environment says where. Without memory or a socket nothing is listed. */
static void run_uncounted_open(struct run_uncounted *u)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    unsigned char random[16];
    char text[2 * sizeof random + 1];
    const int on = 1;
    *u = (struct run_uncounted){.fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)};
    if (u->fd < 0 || getrandom(random, sizeof random, 0) != (ssize_t)sizeof random) {
        return;
    }
    (void)hex_put(text, random, sizeof random);
    memcpy(name.sun_path + 1, text, sizeof text);
    sigset_t all, before;
    sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before); /* signals are for the thread that waits for the command */
    if (setsockopt(u->fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof on) != 0 ||
        bind(u->fd, (struct sockaddr *)&name, (socklen_t)(sizeof(sa_family_t) + sizeof text)) != 0 ||
        setenv("PROFD_RUN", text, 1) != 0 || pthread_create(&u->thread, NULL, messages_take, u) != 0) {
        close(u->fd);
        u->fd = -1;
    }
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* Ends listening, and lists the programs on standard error. Returns the number of times that one was started. */
static size_t run_uncounted_finish(struct run_uncounted *u)
{
    struct sockaddr_un name;
    socklen_t size = sizeof name;
    const char end = END;
    size_t all = u->others;
    if (u->fd < 0 || getsockname(u->fd, (struct sockaddr *)&name, &size) != 0 ||
        sendto(u->fd, &end, 1, 0, (struct sockaddr *)&name, size) != 1) {
        return 0;
    }
    (void)pthread_join(u->thread, NULL);
    close(u->fd);
    for (size_t i = 0; i < u->count; i++) {
        all += u->rows[i].times;
    }
    if (all > 0) {
        profctl_complain("run: at least %zu program%s not counted; what %s started is not known", all,
                         all == 1 ? " was" : "s were", all == 1 ? "it" : "they");
    }
    for (size_t i = 0; i < u->count; i++) {
        const size_t times = u->rows[i].times;
        char repeated[32] = "";
        (void)(times > 1 && snprintf(repeated, sizeof repeated, " (%zu times)", times));
        profctl_complain("run: not counted: %s%s: %s", u->rows[i].path, repeated, u->rows[i].why);
        free(u->rows[i].path);
    }
    if (u->others) {
        profctl_complain("run: not counted: %zu others", u->others);
    }
    return all;
}

/* Fills the upload with the counter alone, for a process that was counted before, with the labels that the collector
 * reads in the environment, and the name of the host. */
static enum profd_status upload_fill(struct profd_upload *u, size_t programs, const char *path, struct profd_error *e)
{
    static const char prefix[] = "PROFD_LABEL_";
    char build[160], name[256];
    uint32_t bin = COLLECTOR_NOT_COUNTED;
    uint64_t ticks = programs;
    struct counts_histogram h;
    struct timespec now;
    struct utsname machine;
    collector_make_histogram(&h, 0);
    h.used = 1;
    const struct counts counts = {
        .histograms = &h, .histogram_count = 1, .bin_index = &bin, .bin_ticks = &ticks, .bin_count = 1};
    clock_gettime(CLOCK_REALTIME, &now);
    const uint64_t end = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
    profd_upload_set_window(u, end, end);
    profd_upload_set_processes_started(u, 0);
    TRY(profd_executable_read_id(path, build, sizeof build, e));
    TRY(profd_upload_add_build(u, build, path, NULL, e));
    for (char **v = environ; *v; v++) {
        const char *rest = strncmp(*v, prefix, sizeof prefix - 1) == 0 ? *v + sizeof prefix - 1 : NULL;
        const char *equals = rest ? strchr(rest, '=') : NULL;
        if (equals && (size_t)(equals - rest) < sizeof name) {
            (void)snprintf(name, sizeof name, "%.*s", (int)(equals - rest), rest);
            TRY(profd_upload_add_label(u, name, equals + 1, e));
        }
    }
    if (!profd_upload_has_label(u, "host") && uname(&machine) == 0) {
        TRY(profd_upload_add_label(u, "host", machine.nodename, e));
    }
    return upload_add_counts(u, &counts, e);
}

/* The connection of profctl run to the daemon, beside the collector's: sends executables, and at the end waits until
 * all counts are stored. */

struct run_delivery {
    struct profd_conn *conn;      /* NULL: there is no daemon */
    int64_t started;              /* seconds since 1970 */
    uint64_t run, refused_before; /* as stated by the daemon when the command started (struct message_welcome) */
    size_t names;                 /* executables sent because the daemon had no names for them */
    size_t refused;               /* of the latest of these, those that it has not stored */
    struct profd_error why;       /* of the first of them, with its path */
};

#define ID_SIZE 160
#define QUESTION_MS 100  /* while the command waits for its signals */
#define NAMELESS_MAX 256 /* builds: their files are examined after one command */
#define CLOCKS_APART 5   /* seconds: the times that processes report are their own clock's */

static uint32_t ms_left(int64_t deadline)
{
    int64_t left = deadline - conn_clock();
    return left > 0 ? (uint32_t)left : 0;
}

static void run_delivery_close(struct run_delivery *d)
{
    profd_conn_close(d->conn);
    d->conn = NULL;
}

static void executable_refused(void *context, const struct profd_outcome *o)
{
    struct run_delivery *d = context;
    if (d->refused++ == 0) {
        (void)profd_error_set(&d->why, o->status, "%s: executable not stored: %s", o->name, o->sentence);
    }
}

/* Connects to the daemon that the collector will find ($PROFD_SOCKET or the default), within 2 s. Fails as
 * profd_conn_open. */
static enum profd_status run_delivery_open(struct run_delivery *d, struct profd_error *e)
{
    const struct profd_options o = {.name = "profctl run " PROFD_VERSION, .connect_ms = 2000};
    *d = (struct run_delivery){.started = (int64_t)time(NULL)};
    enum profd_status status = profd_conn_open(&o, &d->conn, e);
    if (status == PROFD_OK && strncmp(profd_conn_server(d->conn), "unix:", 5) != 0) {
        status = profd_error_set(e, PROFD_USAGE, "%s answers queries only; profctl run requires a Unix socket",
                                 profd_conn_server(d->conn));
        run_delivery_close(d);
    }
    if (status == PROFD_OK) {
        profd_conn_get_refused(d->conn, &d->run, &d->refused_before);
        profd_conn_set_sink(d->conn, executable_refused, d);
    }
    return status;
}

/* Queues the file as an executable that was not requested. False if it has no function names. */
static bool file_queue(struct run_delivery *d, const char *path)
{
    struct profd_executable *x;
    bool queued = false;
    if (profd_executable_open(path, &x, NULL) == PROFD_OK) {
        queued = profd_executable_has_names(x) && profd_conn_queue_executable(d->conn, x, NULL) == PROFD_OK;
        profd_executable_free(x);
    }
    d->names += queued;
    return queued;
}

/* Waits for all that was sent. A connection that was closed is made anew, once. */
static enum profd_status delivery_sync(struct run_delivery *d, int64_t deadline, struct profd_error *e)
{
    enum profd_status status = d->conn ? profd_conn_sync(d->conn, ms_left(deadline), e) : PROFD_UNAVAILABLE;
    if (status != PROFD_UNAVAILABLE && status != PROFD_STOPPING) {
        return status;
    }
    const struct run_delivery before = *d;
    run_delivery_close(d);
    status = run_delivery_open(d, e);
    d->started = before.started;
    d->names = before.names;
    d->run = before.run;
    d->refused_before = before.refused_before;
    return status == PROFD_OK ? profd_conn_sync(d->conn, ms_left(deadline), e) : status;
}

/* Sends the executables of builds that were counted in without names since the command began, and waits for them: these
 * are programs that it started, and the libraries of all. */
static enum profd_status names_finish(struct run_delivery *d, int64_t deadline, struct profd_error *e)
{
    struct answer builds = {.whole = NULL};
    uint32_t left = ms_left(deadline);
    json_t *build;
    size_t sent = 0, tried = 0, i;
    char id[ID_SIZE];
    (void)profd_conn_set_answer_ms(d->conn, left ? left : 1);
    TRY(ask_builds(d->conn, &builds, e));
    d->refused = 0; /* builds that are still without names are sent again */
    json_array_foreach(builds.rows, i, build)
    {
        const char *path = row_text(build, "name");
        if (tried == NAMELESS_MAX || row_flag(build, "symbols") || path[0] != '/' ||
            show_time_of(row_text(build, "last_seen")) + CLOCKS_APART < d->started) {
            continue;
        }
        tried++;
        if (profd_executable_read_id(path, id, sizeof id, NULL) == PROFD_OK &&
            strcmp(id, row_text(build, "build_id")) == 0) {
            sent += file_queue(d, path);
        }
    }
    return sent > 0 ? profd_conn_sync(d->conn, ms_left(deadline), e) : PROFD_OK;
}

/* After the command: waits at most wait_ms until all counts of ended processes are durable, and until the names of the
 * builds that ran meanwhile have been sent, if their files are still in place. If the daemon was restarted meanwhile,
 * it is asked again. Returns TIMEOUT, UNAVAILABLE, or the daemon's status. UNAVAILABLE also means that the daemon
 * cannot know whether it has all counts: since run_delivery_open it was restarted, or it refused a process or a
 * connection of this user. OK does not cover a process that found the daemon's queue of new connections full. */
static enum profd_status run_delivery_finish(struct run_delivery *d, uint32_t wait_ms, struct profd_error *e)
{
    int64_t deadline = conn_clock() + wait_ms;
    struct profd_error why = {""};
    enum profd_status status = delivery_sync(d, deadline, e);
    if (status != PROFD_OK) {
        return profd_error_wrap(e, status, "it is unknown whether all counts are stored");
    }

    /* The answer covers the processes that this run of the daemon has accepted: there may be others. */
    enum profd_status judged = PROFD_OK;
    uint64_t run, refused;
    profd_conn_get_refused(d->conn, &run, &refused);
    if (run != d->run) {
        judged = profd_error_set(&why, PROFD_UNAVAILABLE,
                                 "profd was restarted while the command ran, and does not know which processes ran "
                                 "meanwhile");
    } else if (refused != d->refused_before) {
        judged = profd_error_set(&why, PROFD_UNAVAILABLE,
                                 "profd refused %llu processes or connections of this user while the command ran; its "
                                 "log says why",
                                 (unsigned long long)(refused - d->refused_before));
    }
    status = names_finish(d, deadline, e);
    if (judged != PROFD_OK) {
        *e = why;
        return profd_error_wrap(e, judged, "it is unknown whether all counts are stored");
    }
    return status == PROFD_OK
               ? status
               : profd_error_wrap(e, status, "all counts are stored, but some function names may be missing");
}

/* ---- The verb ---- */

static const struct profctl_option options[] = {
    {"label", 'l', "K=V", "attach a label to everything the command counts; may be repeated"},
    {"rate", 0, "HZ", "ticks per second of CPU time, 0 to 10000 (default 99)"},
    {"clock", 0, "cpu|off", "clock of the ticks; off: no ticks (default cpu)"},
    {"memory", 0, "MIB", "memory for the counts of one process, 1 to 1024 MiB (default 64); a power of two"},
    {"rewrite", 0, NULL, "make counting cheaper by rewriting the instrumented call sites"},
    {"leave-out", 0, "FILE", "do not count calls of the functions in FILE, which report -f exclude-list writes"},
    {"wait", 0, "SECONDS", "seconds to wait for the daemon after the command has ended (default 10)"},
    {"check", 0, NULL, "print whether the command would be counted, and do not run it"},
    {"require-daemon", 0, NULL, "do not run the command if no daemon answers"},
    {"verbose", 'v', NULL, "print at the end what was delivered"},
};

#define WHY_SIZE 160

static enum profd_status env_set(const char *name, const char *value, struct profd_error *e)
{
    return setenv(name, value, 1) == 0 ? PROFD_OK : profd_error_set(e, PROFD_NO_MEMORY, "run: no memory for %s", name);
}

/* What the collector of the command reads in its environment. */
static enum profd_status environment_set(const struct profctl_call *call, struct profd_error *e)
{
    static const struct {
        const char *option, *variable;
        unsigned long least, most;
    } NUMBERS[] = {{"rate", "PROFD_RATE", 0, ATTACH_RATE_MAX},
                   {"memory", "PROFD_COLLECT_MEMORY", 1, ATTACH_SIZE_MAX >> 20}};
    char text[RUN_PLACE_SIZE];
    const char *clock = profctl_value(call, "clock"), *list = profctl_value(call, "leave-out"),
               *before = getenv("ASAN_OPTIONS");
    unsigned long n = 0;
    size_t chosen;
    TRY(labels_check(call, e));
    for (size_t i = 0; i < call->given_count; i++) {
        const char *label = call->given[i].value;
        const int size = (int)strcspn(label, "=");
        if (strcmp(call->given[i].option->name, "label") == 0) {
            (void)snprintf(text, sizeof text, "PROFD_LABEL_%.*s", size, label);
            TRY(env_set(text, label + size + 1, e));
        }
    }
    for (size_t i = 0; i < COUNT(NUMBERS); i++) {
        const char *given = profctl_value(call, NUMBERS[i].option);
        TRY(profctl_number(call, NUMBERS[i].option, "a number", NUMBERS[i].least, NUMBERS[i].most, &n, e));
        TRY(given ? env_set(NUMBERS[i].variable, given, e) : PROFD_OK);
    }

    /* Timers of CPU time end at the scheduler's ticks. The coarse clock tells their rate. */
    const char *rate = profctl_value(call, "rate");
    const unsigned long asked = rate ? strtoul(rate, NULL, 10) : 0;
    struct timespec tick;
    if (clock_getres(CLOCK_MONOTONIC_COARSE, &tick) == 0 && tick.tv_nsec > 0 &&
        asked > 1000000000ul / (unsigned long)tick.tv_nsec) {
        profctl_complain(
            "run: this kernel takes at most %lu samples a second of a thread; each stands for several of the "
            "%lu ticks of --rate %s",
            1000000000ul / (unsigned long)tick.tv_nsec, asked, rate);
    }
    FAIL_IF(clock && strcmp(clock, "wall") == 0, e, PROFD_USAGE,
            "run: --clock wall is refused: a signal to a waiting thread ends nanosleep, poll, "
            "select, epoll_wait and timed reads early, so the command would behave differently; "
            "`perf sched record` shows what threads wait for");
    TRY(profctl_choose(call, "clock", &chosen, e));
    TRY(clock ? env_set("PROFD_CLOCK", clock, e) : PROFD_OK);
    TRY(profctl_value(call, "rewrite") ? env_set("PROFD_REWRITE", "1", e) : PROFD_OK);
    if (list) { /* absolute, because the command may change its folder */
        char *path = realpath(list, NULL);
        enum profd_status status =
            path && access(path, R_OK) == 0
                ? env_set("PROFD_LEAVE_OUT", path, e)
                : profd_error_set(e, PROFD_NO_INPUT, "run: --leave-out %s: %s", list, strerror(errno));
        free(path);
        TRY(status);
    }
    if (call->server) {
        TRY(run_place_socket(call->server, text, e));
        TRY(env_set("PROFD_SOCKET", text, e));
    }
    TRY(run_place_library(text, e));
    TRY(env_set("LD_PRELOAD", text, e));
    /* The collector says the same, in __asan_default_options. */
    n = (unsigned long)snprintf(text, sizeof text, "%s%sverify_asan_link_order=0", before ? before : "",
                                before && *before ? ":" : "");
    return n < sizeof text ? env_set("ASAN_OPTIONS", text, e) : PROFD_OK;
}

/* Runs the command to its end, and returns its exit status. Meanwhile its executable is sent to the daemon, unless it
 * has the function names already; what has none, or cannot be read, is left to run_delivery_finish. */
static int command_run(char **argv, const char *path, struct run_delivery *d, bool *ran)
{
    struct run_command c;
    struct ask_target target;
    struct answer build = {.whole = NULL};
    char id[ID_SIZE];
    int status = 0;
    if (!run_command_start(&c, "run", argv)) {
        *ran = false;
        return profd_status_exit(PROFD_INTERNAL);
    }
    *ran = run_command_release(&c);
    if (*ran && d->conn && profd_executable_read_id(path, id, sizeof id, NULL) == PROFD_OK) {
        const uint32_t patience = profd_conn_set_answer_ms(d->conn, QUESTION_MS);
        ask_target_init(&target, "/api/v1/builds/{}", id);
        const bool known = ask_object(d->conn, &target, &build, NULL) == PROFD_OK && row_flag(build.whole, "symbols");
        (void)profd_conn_set_answer_ms(d->conn, patience);
        if (!known && file_queue(d, path)) {
            (void)profd_conn_flush(d->conn, NULL);
        }
    }
    while (!run_command_step(&c, true, &status)) {
    }
    return run_command_end(&c, status);
}

static enum profd_status run_run(const struct profctl_call *call, struct profd_error *e)
{
    struct profd_error absent = {""};
    struct run_delivery delivery;
    struct run_uncounted uncounted;
    char path[COMMAND_PATH_SIZE], why[WHY_SIZE] = "";
    char **argv = call->arguments;
    unsigned long wait = 10;
    bool ran = false;
    TRY(profctl_number(call, "wait", "a number", 0, 86400, &wait, e));
    if (!command_find(argv[0], path)) {
        path[0] = '\0';
    }
    const char *judged = path[0] ? run_judge_program(path) : NULL;
    if (judged || !run_judge_limits(why, sizeof why)) {
        (void)snprintf(why, sizeof why, "%s", judged ? judged : "");
    }
    TRY(environment_set(call, e));
    if (profctl_value(call, "check")) {
        FAIL_IF(!path[0], e, PROFD_NO_INPUT, "run: %s: there is no such program", argv[0]);
        printf("%s will %sbe counted%s%s\n", path, why[0] ? "not " : "", why[0] ? ": " : "", why);
        if (!why[0]) {
            puts("Of the programs that it starts, those are not counted that are static, set-user-id, of another C "
                 "library or\nmachine, or started with another root directory or without LD_PRELOAD; profctl run "
                 "lists them at its end.");
        }
        return why[0] ? PROFD_REFUSED : PROFD_OK;
    }
    enum profd_status status = run_delivery_open(&delivery, &absent);
    const bool required = profctl_value(call, "require-daemon") != NULL;
    if (status) {
        profctl_complain("run: %s; %s", absent.sentence,
                         required ? "command not run"
                         : status == PROFD_FORBIDDEN || status == PROFD_UNTRUSTED
                             ? "the command runs without profiling"
                             : "a daemon that starts before the command ends gets its counts");
        TRY(required ? status : PROFD_OK);
    }
    if (why[0]) {
        profctl_complain("run: %s runs without profiling: %s", argv[0], why);
    }
    run_uncounted_open(&uncounted);
    *call->exit_status = command_run(argv, path[0] ? path : argv[0], &delivery, &ran);
    if (delivery.conn && ran) {
        const uint32_t wait_ms = (uint32_t)wait * 1000;
        const bool verbose = profctl_value(call, "verbose") != NULL;
        struct profd_error late = {""};
        if (wait_ms && run_delivery_finish(&delivery, wait_ms, &late) != PROFD_OK) {
            profctl_complain("run: %s", late.sentence);
        } else if (verbose && wait_ms) {
            profctl_complain("run: all counts are stored by %s at %s; executables sent: %zu",
                             profd_conn_daemon(delivery.conn), profd_conn_server(delivery.conn), delivery.names);
        } else if (verbose) {
            profctl_complain("run: counted for %s at %s; did not wait until the counts are stored",
                             profd_conn_daemon(delivery.conn), profd_conn_server(delivery.conn));
        }
        if (delivery.refused > 1) {
            profctl_complain("run: %s (and %zu more)", delivery.why.sentence, delivery.refused - 1);
        } else if (delivery.refused) {
            profctl_complain("run: %s", delivery.why.sentence);
        }
    }

    /* The number of programs that were not counted becomes a counter of the command's build, which counts no process.
     * It is sent once. */
    const size_t programs = run_uncounted_finish(&uncounted);
    if (programs && delivery.conn && ran && path[0] && !why[0]) {
        struct profd_error late = {""};
        struct profd_upload *upload = NULL;
        struct profd_id id;
        status = profd_upload_new(&upload, &late);
        status = status ? status : upload_fill(upload, programs, path, &late);
        status = status ? status : profd_id_make(&id, &late);
        if (!status) {
            id.sequence++;
            status = profd_conn_upload(delivery.conn, upload, &id, &late);
        }
        if (status) {
            profctl_complain("run: the number of programs that were not counted is not stored: %s", late.sentence);
        }
        profd_upload_free(upload);
    }
    run_delivery_close(&delivery);
    return PROFD_OK;
}

const struct profctl_verb verb_run_command = {
    .name = "run",
    .arguments = "[--] COMMAND [ARGUMENT...]",
    .summary = "Run a command under the collector",
    .details =
        "All processes that the command starts are counted, too. Every call is counted in code compiled with -pg;\n"
        "other code is sampled. The exit status is that of the command, or 128 plus the signal that ended it.\n",
    OPTIONS(options),
    .arguments_least = 1,
    .arguments_most = (size_t)-1,
    .has_command = true,
    .is_local = true,
    .run = run_run,
};
