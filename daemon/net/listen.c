#include "net/listen.h"

#include <arpa/inet.h>
#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "net/loop.h"
#include "proto/limits.h"
#include "proto/runtime.h"

#define BACKLOG 4096

static enum profd_status listen_fill_address(const char *path, struct sockaddr_un *a, struct profd_error *e)
{
    size_t n = strlen(path);

    FAIL_IF(!n, e, PROFD_CONFIG, "the path of a socket is empty");
    FAIL_IF(n >= sizeof a->sun_path, e, PROFD_CONFIG, "the socket path has %zu bytes, the limit is %zu: %s", n,
            sizeof a->sun_path - 1, path);
    memset(a, 0, sizeof *a);
    a->sun_family = AF_UNIX;
    memcpy(a->sun_path, path, n + 1);
    return PROFD_OK;
}

enum profd_status listen_make_directory(const char *path, mode_t mode, struct profd_error *e)
{
    char part[4096];
    const size_t n = strlen(path);
    struct stat st;

    FAIL_IF(n >= sizeof part, e, PROFD_TOO_LARGE, "a path of %zu bytes, at most %zu", n, sizeof part - 1);
    memcpy(part, path, n + 1);
    for (size_t i = 1; i <= n; i++) {
        if (part[i] && part[i] != '/') {
            continue;
        }
        part[i] = 0;
        if (!mkdir(part, 0700)) {
            chmod(part, i == n ? mode : 0755); /* whatever the umask: others must reach a socket in it */
        } else if (errno != EEXIST && (i == n || stat(part, &st))) {
            return profd_error_set(e, PROFD_CANT_CREATE, "cannot make the directory %s: %s", part, strerror(errno));
        }
        part[i] = i < n ? '/' : 0;
    }
    FAIL_IF(stat(path, &st) || !S_ISDIR(st.st_mode), e, PROFD_CANT_CREATE, "%s is not a directory", path);
    return PROFD_OK;
}

enum profd_status listen_make_private_directory(const char *path, struct profd_error *e)
{
    struct stat st;

    FAIL_IF(mkdir(path, 0700) && errno != EEXIST, e, PROFD_CANT_CREATE, "cannot make the directory %s: %s", path,
            strerror(errno));
    FAIL_IF(lstat(path, &st) || !runtime_is_private(st.st_mode, st.st_uid, geteuid()), e, PROFD_CANT_CREATE,
            "%s is not a directory of uid %u with mode 0700; remove it, or use --socket PATH and set PROFD_SOCKET=PATH "
            "for profctl and the programs",
            path, (unsigned)geteuid());
    return PROFD_OK;
}

enum profd_status listen_parse_unix(const char *path, struct profd_error *e)
{
    struct sockaddr_un a;

    return listen_fill_address(path, &a, e);
}

/* Removes a stale socket. BUSY if a process answers there, CANT_CREATE if the file is not a socket. */
static enum profd_status listen_clear_path(const struct sockaddr_un *a, struct profd_error *e)
{
    struct stat st;

    if (lstat(a->sun_path, &st)) {
        return errno == ENOENT ? PROFD_OK
                               : profd_error_set(e, PROFD_CANT_CREATE, "%s: %s", a->sun_path, strerror(errno));
    }
    FAIL_IF(!S_ISSOCK(st.st_mode), e, PROFD_CANT_CREATE, "%s exists and is not a socket", a->sun_path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    FAIL_IF(fd < 0, e, PROFD_IO, "socket: %s", strerror(errno));
    int failed = connect(fd, (const struct sockaddr *)a, sizeof *a) ? errno : 0;
    close(fd);
    /* EAGAIN: a process listens, and its backlog is full. */
    FAIL_IF(!failed || failed == EAGAIN || failed == EINPROGRESS, e, PROFD_BUSY, "another daemon answers on %s",
            a->sun_path);
    FAIL_IF(failed != ECONNREFUSED && failed != ENOENT, e, PROFD_CANT_CREATE,
            "cannot connect to the existing socket %s: %s", a->sun_path, strerror(failed));
    FAIL_IF(unlink(a->sun_path) && errno != ENOENT, e, PROFD_CANT_CREATE, "cannot remove the stale socket %s: %s",
            a->sun_path, strerror(errno));
    return PROFD_OK;
}

enum profd_status listen_open_unix(const char *path, mode_t mode, uint32_t group, int *fd, struct profd_error *e)
{
    struct sockaddr_un a;

    TRY(listen_fill_address(path, &a, e));
    TRY(listen_clear_path(&a, e));
    int made = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    FAIL_IF(made < 0, e, PROFD_IO, "socket: %s", strerror(errno));
    /* Bound with mode 0600 and opened up afterwards, so that mode and group are never wrong. */
    mode_t before = umask(0177);
    int failed = bind(made, (const struct sockaddr *)&a, sizeof a) ? errno : 0;
    umask(before);
    if (failed) {
        close(made);
        return failed == EADDRINUSE
                   ? profd_error_set(e, PROFD_BUSY, "another daemon has created %s meanwhile", path)
                   : profd_error_set(e, PROFD_CANT_CREATE, "cannot create the socket %s: %s", path, strerror(failed));
    }
    if ((group != LISTEN_NO_GROUP && lchown(path, (uid_t)-1, group)) || chmod(path, mode) || listen(made, BACKLOG)) {
        failed = errno;
        unlink(path);
        close(made);
        return profd_error_set(e, PROFD_CANT_CREATE, "the socket %s cannot get mode %04o and group %u: %s", path,
                               (unsigned)mode, group, strerror(failed));
    }
    *fd = made;
    return PROFD_OK;
}

void listen_remove_unix(const char *path, int fd)
{
    struct sockaddr_un a;
    socklen_t size = sizeof a;
    struct stat st;

    if (getsockname(fd, (struct sockaddr *)&a, &size) || strncmp(a.sun_path, path, sizeof a.sun_path) != 0 ||
        lstat(path, &st) || !S_ISSOCK(st.st_mode)) {
        return;
    }
    /* Our listener is closed first, so any process that answers under this name is another one. */
    shutdown(fd, SHUT_RDWR);
    int probe = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (probe < 0) {
        return;
    }
    if (connect(probe, (const struct sockaddr *)&a, sizeof a) && errno == ECONNREFUSED) {
        unlink(path);
    }
    close(probe);
}

/* host of n bytes into a loopback address. */
static bool listen_parse_loopback(const char *host, size_t n, uint16_t port, struct sockaddr_storage *a,
                                  socklen_t *size)
{
    struct sockaddr_in *four = (struct sockaddr_in *)a;
    struct sockaddr_in6 *six = (struct sockaddr_in6 *)a;
    char text[32];

    memset(a, 0, sizeof *a);
    if (n == 5 && !memcmp(host, "[::1]", 5)) {
        six->sin6_family = AF_INET6;
        six->sin6_addr = in6addr_loopback;
        six->sin6_port = htons(port);
        *size = sizeof *six;
        return true;
    }
    if (n == 9 && !memcmp(host, "localhost", 9)) {
        host = "127.0.0.1";
    } else if (n >= sizeof text) {
        return false;
    }
    memcpy(text, host, n);
    text[n] = 0;
    four->sin_family = AF_INET;
    four->sin_port = htons(port);
    *size = sizeof *four;
    return inet_pton(AF_INET, text, &four->sin_addr) == 1 && ntohl(four->sin_addr.s_addr) >> 24 == 127;
}

static enum profd_status listen_parse_address(const char *text, struct sockaddr_storage *a, socklen_t *size,
                                              uint16_t *port, struct profd_error *e)
{
    const char *colon = strrchr(text, ':'), *digits = colon ? colon + 1 : "";
    const size_t n = strspn(digits, "0123456789");
    const unsigned long number = n && n <= 5 && !digits[n] ? strtoul(digits, NULL, 10) : ULONG_MAX;

    FAIL_IF(number > UINT16_MAX, e, PROFD_CONFIG, "\"%s\" is not ADDRESS:PORT with a port of 0–65535", text);
    *port = (uint16_t)number;
    FAIL_IF(!listen_parse_loopback(text, (size_t)(colon - text), *port, a, size), e, PROFD_CONFIG,
            "\"%s\" is not a loopback address (127.x.y.z, [::1] or localhost)", text);
    return PROFD_OK;
}

enum profd_status listen_parse_tcp(const char *text, uint16_t *port, struct profd_error *e)
{
    struct sockaddr_storage a;
    socklen_t size;

    return listen_parse_address(text, &a, &size, port, e);
}

enum profd_status listen_open_tcp(const char *text, int *fd, uint16_t *port, struct profd_error *e)
{
    struct sockaddr_storage a, bound;
    socklen_t size, bound_size = sizeof bound;
    uint16_t number;
    int one = 1;
    enum profd_status status = PROFD_OK;

    TRY(listen_parse_address(text, &a, &size, &number, e));
    int made = socket(a.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    FAIL_IF(made < 0, e, PROFD_IO, "%s: %s", text, strerror(errno));
    setsockopt(made, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(made, (const struct sockaddr *)&a, size) || listen(made, BACKLOG)) {
        status = profd_error_set(e, errno == EADDRINUSE ? PROFD_BUSY : PROFD_CANT_CREATE, "cannot listen on %s: %s",
                                 text, strerror(errno));
    } else if (getsockname(made, (struct sockaddr *)&bound, &bound_size)) {
        status = profd_error_set(e, PROFD_IO, "%s: %s", text, strerror(errno));
    }
    if (status) {
        close(made);
        return status;
    }
    *port = ntohs(bound.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&bound)->sin6_port
                                              : ((struct sockaddr_in *)&bound)->sin_port);
    *fd = made;
    return PROFD_OK;
}

#define PASSED_FIRST 3
#define PASSED_MAX (16u + LIMIT_ATTACHED_KEPT)

/* Checks that the descriptor is a listening stream socket of the right family, and makes it non-blocking and
 * close-on-exec. For TCP, *port gets its port. */
static enum profd_status listen_check_passed(int fd, bool tcp, const char *name, uint16_t *port, struct profd_error *e)
{
    struct sockaddr_storage a;
    socklen_t size = sizeof a, word = sizeof(int);
    const struct sockaddr_in *four = (const struct sockaddr_in *)&a;
    const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)&a;
    int listening = 0, type = 0;
    bool loopback = false;

    if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listening, &word) ||
        getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &word) || getsockname(fd, (struct sockaddr *)&a, &size) ||
        !listening || type != SOCK_STREAM) {
        return profd_error_set(e, PROFD_CONFIG,
                               "descriptor %d (\"%s\") that was passed in is not a listening stream socket", fd, name);
    }
    if (a.ss_family == AF_INET) {
        loopback = ntohl(four->sin_addr.s_addr) >> 24 == 127;
        *port = ntohs(four->sin_port);
    } else if (a.ss_family == AF_INET6) {
        loopback = IN6_IS_ADDR_LOOPBACK(&six->sin6_addr);
        *port = ntohs(six->sin6_port);
    }
    FAIL_IF(tcp ? !loopback : a.ss_family != AF_UNIX, e, PROFD_CONFIG,
            "descriptor %d (\"%s\") that was passed in is not a %s socket", fd, name, tcp ? "loopback TCP" : "Unix");
    int flags = fcntl(fd, F_GETFL);
    FAIL_IF(flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) || fcntl(fd, F_SETFD, FD_CLOEXEC), e, PROFD_IO,
            "descriptor %d (\"%s\"): %s", fd, name, strerror(errno));
    return PROFD_OK;
}

static enum profd_status listen_assign_passed(struct listen_passed *p, int fd, const char *name, bool only,
                                              struct profd_error *e)
{
    const bool nameless = !*name || !strcmp(name, "unknown");
    int *place;

    if (!strcmp(name, "upload") || (nameless && only)) {
        place = &p->upload;
    } else if (!strcmp(name, "http")) {
        place = &p->http;
    } else if (!strcmp(name, "http-tcp")) {
        place = &p->http_tcp;
    } else {
        return profd_error_set(e, PROFD_CONFIG,
                               "descriptor %d was passed in as \"%s\"; the names are upload, http and http-tcp", fd,
                               name);
    }
    FAIL_IF(*place >= 0, e, PROFD_CONFIG, "two descriptors were passed in as \"%s\"", name);
    *place = fd;
    return listen_check_passed(fd, place == &p->http_tcp, name, &p->http_port, e);
}

static enum profd_status listen_read_passed(struct listen_passed *p, struct profd_error *e)
{
    const char *pid = getenv("LISTEN_PID"), *count = getenv("LISTEN_FDS"), *names = getenv("LISTEN_FDNAMES");
    char own[24], *end;
    unsigned long n;

    snprintf(own, sizeof own, "%ld", (long)getpid());
    if (!pid || !count || strcmp(pid, own) != 0) {
        return PROFD_OK; /* passed to another process, or to none */
    }
    names = names ? names : "";
    errno = 0;
    n = strtoul(count, &end, 10);
    FAIL_IF(errno || *end || end == count || n > PASSED_MAX, e, PROFD_CONFIG,
            "LISTEN_FDS is \"%s\", not a number of 0–%u", count, PASSED_MAX);
    p->kept = calloc(n ? n : 1, sizeof *p->kept);
    TRY(p->kept ? PROFD_OK : profd_no_memory(e));
    for (unsigned long i = 0; i < n; i++) {
        const int fd = PASSED_FIRST + (int)i;
        const size_t length = strcspn(names, ":");
        char name[LISTEN_NAME] = "";

        snprintf(name, sizeof name, "%.*s", (int)(length < LISTEN_NAME ? length : LISTEN_NAME), names);
        names += length + (names[length] == ':');
        if (memcmp(name, LISTEN_KEPT, sizeof LISTEN_KEPT - 1)) {
            TRY(listen_assign_passed(p, fd, name, n == 1, e));
            continue;
        }
        FAIL_IF(fcntl(fd, F_SETFD, FD_CLOEXEC), e, PROFD_IO, "descriptor %d (\"%s\"): %s", fd, name, strerror(errno));
        p->kept[p->kept_count].fd = fd;
        memcpy(p->kept[p->kept_count++].name, name, sizeof name);
    }
    return PROFD_OK;
}

enum profd_status listen_take_passed(struct listen_passed *out, struct profd_error *e)
{
    struct listen_passed p = {.upload = -1, .http = -1, .http_tcp = -1};
    enum profd_status status = listen_read_passed(&p, e);

    unsetenv("LISTEN_PID");
    unsetenv("LISTEN_FDS");
    unsetenv("LISTEN_FDNAMES");
    if (status || !p.kept_count) {
        free(p.kept);
        p.kept = NULL;
    }
    if (!status) {
        *out = p;
    }
    return status;
}

#define ACCEPTS_PER_WAKE 256 /* they cost little; what they send is read in shares (conn_limits.c) */
#define TELL_MS 60000u       /* interval of log lines while descriptors are exhausted */

struct listener {
    struct listener_config config;
    struct event *readable, *resume;
    int spare; /* a spare descriptor, closed when descriptors run out, so that a client can be accepted and told */
    bool told;
    uint64_t told_at;
};

static int listener_open_spare(void)
{
    return open("/dev/null", O_RDONLY | O_CLOEXEC);
}

/* Accepts at most that many connections. */
static void listener_accept_some(struct listener *l, int most)
{
    for (int i = 0; i < most; i++) {
        int got = accept4(l->config.fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

        if (got >= 0) {
            l->config.accepted(l->config.context, got);
        } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
            struct timeval tv = {.tv_sec = l->config.pause_ms / 1000,
                                 .tv_usec = (suseconds_t)(l->config.pause_ms % 1000) * 1000};

            const int why = errno;

            /* Without the spare descriptor the client would stay in the backlog, and the loop would spin on it. */
            if (l->spare >= 0) {
                close(l->spare);
                got = accept4(l->config.fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
                if (got >= 0 && l->config.refusal) {
                    ssize_t sent = send(got, l->config.refusal, l->config.refusal_size, MSG_NOSIGNAL | MSG_DONTWAIT);
                    (void)sent;
                }
                if (got >= 0) {
                    close(got);
                }
                l->spare = listener_open_spare();
            }
            event_del(l->readable);
            evtimer_add(l->resume, &tv);
            if (l->config.exhausted && (!l->told || loop_now() - l->told_at >= TELL_MS)) {
                l->told = true;
                l->told_at = loop_now();
                l->config.exhausted(l->config.context, strerror(why));
            }
            return;
        } else if (errno != EINTR && errno != ECONNABORTED && errno != EPROTO) {
            return; /* EAGAIN: no connection is waiting */
        }
    }
}

static void listener_on_readable(evutil_socket_t fd, short what, void *context)
{
    (void)fd;
    (void)what;
    listener_accept_some(context, ACCEPTS_PER_WAKE);
}

void listener_accept(struct listener *l)
{
    /* Not while it pauses for lack of descriptors: connections that arrive meanwhile have not waited longer. */
    if (l && event_pending(l->readable, EV_READ, NULL)) {
        listener_accept_some(l, SOMAXCONN);
    }
}

static void listener_on_resume(evutil_socket_t fd, short what, void *context)
{
    struct listener *l = context;

    (void)fd;
    (void)what;
    if (l->spare < 0) {
        l->spare = listener_open_spare();
    }
    event_add(l->readable, NULL);
}

struct listener *listener_new(struct event_base *base, const struct listener_config *config)
{
    struct listener *l = calloc(1, sizeof *l);

    if (!l) {
        return NULL;
    }
    l->config = *config;
    l->spare = listener_open_spare();
    l->readable = event_new(base, config->fd, EV_READ | EV_PERSIST, listener_on_readable, l);
    l->resume = evtimer_new(base, listener_on_resume, l);
    if (!l->readable || !l->resume || event_add(l->readable, NULL)) {
        listener_free(l);
        return NULL;
    }
    return l;
}

void listener_free(struct listener *l)
{
    if (!l) {
        return;
    }
    if (l->readable) {
        event_free(l->readable);
    }
    if (l->resume) {
        event_free(l->resume);
    }
    if (l->spare >= 0) {
        close(l->spare);
    }
    free(l);
}
