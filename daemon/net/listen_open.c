/* Making listening sockets. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "net/listen.h"
#include "proto/runtime.h"

#define BACKLOG 4096

static enum profd_status listen_fill_address(const char *path, struct sockaddr_un *a, struct profd_error *e)
{
    size_t n = strlen(path);

    if (!n) {
        return profd_error_set(e, PROFD_CONFIG, "the path of a socket is empty");
    }
    if (n >= sizeof a->sun_path) {
        return profd_error_set(e, PROFD_CONFIG, "the socket path has %zu bytes, the limit is %zu: %s", n,
                               sizeof a->sun_path - 1, path);
    }
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

    if (n >= sizeof part) {
        return profd_error_set(e, PROFD_TOO_LARGE, "a path of %zu bytes, at most %zu", n, sizeof part - 1);
    }
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
    if (stat(path, &st) || !S_ISDIR(st.st_mode)) {
        return profd_error_set(e, PROFD_CANT_CREATE, "%s is not a directory", path);
    }
    return PROFD_OK;
}

enum profd_status listen_make_private_directory(const char *path, struct profd_error *e)
{
    struct stat st;

    if (mkdir(path, 0700) && errno != EEXIST) {
        return profd_error_set(e, PROFD_CANT_CREATE, "cannot make the directory %s: %s", path, strerror(errno));
    }
    if (lstat(path, &st) || !runtime_is_private(st.st_mode, st.st_uid, geteuid())) {
        return profd_error_set(
            e, PROFD_CANT_CREATE,
            "%s is not a directory of uid %u with mode 0700; remove it, or use --socket PATH and set "
            "PROFD_SOCKET=PATH for profctl and the programs",
            path, (unsigned)geteuid());
    }
    return PROFD_OK;
}

enum profd_status listen_parse_unix(const char *path, struct profd_error *e)
{
    struct sockaddr_un a;

    return listen_fill_address(path, &a, e);
}

/* Removes what a dead process left there; refuses what is alive or is no socket. */
static enum profd_status listen_clear_path(const struct sockaddr_un *a, struct profd_error *e)
{
    struct stat st;
    int fd, failed;

    if (lstat(a->sun_path, &st)) {
        return errno == ENOENT ? PROFD_OK
                               : profd_error_set(e, PROFD_CANT_CREATE, "%s: %s", a->sun_path, strerror(errno));
    }
    if (!S_ISSOCK(st.st_mode)) {
        return profd_error_set(e, PROFD_CANT_CREATE, "%s exists and is not a socket", a->sun_path);
    }
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) {
        return profd_error_set(e, PROFD_IO, "socket: %s", strerror(errno));
    }
    failed = connect(fd, (const struct sockaddr *)a, sizeof *a) ? errno : 0;
    close(fd);
    /* EAGAIN: a process listens, and its backlog is full. */
    if (!failed || failed == EAGAIN || failed == EINPROGRESS) {
        return profd_error_set(e, PROFD_BUSY, "another daemon answers on %s", a->sun_path);
    }
    if (failed != ECONNREFUSED && failed != ENOENT) {
        return profd_error_set(e, PROFD_CANT_CREATE, "cannot connect to the existing socket %s: %s", a->sun_path,
                               strerror(failed));
    }
    if (unlink(a->sun_path) && errno != ENOENT) {
        return profd_error_set(e, PROFD_CANT_CREATE, "cannot remove the stale socket %s: %s", a->sun_path,
                               strerror(errno));
    }
    return PROFD_OK;
}

/* Bound with mode 0600 and opened up afterwards, so that there is no moment of a wrong mode or group. */
static enum profd_status listen_bind_unix(int fd, const struct sockaddr_un *a, mode_t mode, uint32_t group,
                                          struct profd_error *e)
{
    mode_t before = umask(0177);
    int failed = bind(fd, (const struct sockaddr *)a, sizeof *a) ? errno : 0;

    umask(before);
    if (failed == EADDRINUSE) {
        return profd_error_set(e, PROFD_BUSY, "another daemon has created %s meanwhile", a->sun_path);
    }
    if (failed) {
        return profd_error_set(e, PROFD_CANT_CREATE, "cannot create the socket %s: %s", a->sun_path, strerror(failed));
    }
    if (group != LISTEN_NO_GROUP && lchown(a->sun_path, (uid_t)-1, group)) {
        failed = errno;
    }
    if (!failed && chmod(a->sun_path, mode)) {
        failed = errno;
    }
    if (!failed && listen(fd, BACKLOG)) {
        failed = errno;
    }
    if (failed) {
        unlink(a->sun_path);
        return profd_error_set(e, PROFD_CANT_CREATE, "the socket %s cannot get mode %04o and group %u: %s", a->sun_path,
                               (unsigned)mode, group, strerror(failed));
    }
    return PROFD_OK;
}

enum profd_status listen_open_unix(const char *path, mode_t mode, uint32_t group, int *fd, struct profd_error *e)
{
    struct sockaddr_un a;
    enum profd_status status = listen_fill_address(path, &a, e);
    int made;

    if (!status) {
        status = listen_clear_path(&a, e);
    }
    if (status) {
        return status;
    }
    made = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (made < 0) {
        return profd_error_set(e, PROFD_IO, "socket: %s", strerror(errno));
    }
    status = listen_bind_unix(made, &a, mode, group, e);
    if (status) {
        close(made);
        return status;
    }
    *fd = made;
    return PROFD_OK;
}

void listen_remove_unix(const char *path, int fd)
{
    struct sockaddr_un a;
    socklen_t size = sizeof a;
    struct stat st;
    int probe;

    if (getsockname(fd, (struct sockaddr *)&a, &size) || strncmp(a.sun_path, path, sizeof a.sun_path) != 0 ||
        lstat(path, &st) || !S_ISSOCK(st.st_mode)) {
        return;
    }
    /* Our listener is closed first, so any process that answers under this name is another one. */
    shutdown(fd, SHUT_RDWR);
    probe = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (probe < 0) {
        return;
    }
    if (connect(probe, (const struct sockaddr *)&a, sizeof a) && errno == ECONNREFUSED) {
        unlink(path);
    }
    close(probe);
}

static bool listen_parse_port(const char *text, uint16_t *port)
{
    unsigned long value = 0;

    if (!*text || strlen(text) > 5) {
        return false;
    }
    for (; *text; text++) {
        if (*text < '0' || *text > '9') {
            return false;
        }
        value = value * 10 + (unsigned long)(*text - '0');
    }
    *port = (uint16_t)value;
    return value <= UINT16_MAX;
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

static enum profd_status listen_bind_tcp(int fd, const struct sockaddr_storage *a, socklen_t size, const char *text,
                                         uint16_t *port, struct profd_error *e)
{
    struct sockaddr_storage bound;
    socklen_t bound_size = sizeof bound;
    int one = 1;

    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(fd, (const struct sockaddr *)a, size) || listen(fd, BACKLOG)) {
        return profd_error_set(e, errno == EADDRINUSE ? PROFD_BUSY : PROFD_CANT_CREATE, "cannot listen on %s: %s", text,
                               strerror(errno));
    }
    if (getsockname(fd, (struct sockaddr *)&bound, &bound_size)) {
        return profd_error_set(e, PROFD_IO, "%s: %s", text, strerror(errno));
    }
    *port = ntohs(bound.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&bound)->sin6_port
                                              : ((struct sockaddr_in *)&bound)->sin_port);
    return PROFD_OK;
}

static enum profd_status listen_parse_address(const char *text, struct sockaddr_storage *a, socklen_t *size,
                                              uint16_t *port, struct profd_error *e)
{
    const char *colon = strrchr(text, ':');

    if (!colon || !listen_parse_port(colon + 1, port)) {
        return profd_error_set(e, PROFD_CONFIG, "\"%s\" is not ADDRESS:PORT with a port of 0–65535", text);
    }
    if (!listen_parse_loopback(text, (size_t)(colon - text), *port, a, size)) {
        return profd_error_set(e, PROFD_CONFIG, "\"%s\" is not a loopback address (127.x.y.z, [::1] or localhost)",
                               text);
    }
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
    struct sockaddr_storage a;
    enum profd_status status;
    socklen_t size;
    uint16_t number;
    int made;

    TRY(listen_parse_address(text, &a, &size, &number, e));
    made = socket(a.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (made < 0) {
        return profd_error_set(e, PROFD_IO, "%s: %s", text, strerror(errno));
    }
    status = listen_bind_tcp(made, &a, size, text, port, e);
    if (status) {
        close(made);
        return status;
    }
    *fd = made;
    return PROFD_OK;
}
