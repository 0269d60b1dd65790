#include "lib/client.h"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proto/runtime.h"
#include "proto/uidmap.h"
#include "proto/whole.h"

#define SOCKET_PATH_SIZE 512

static enum profd_status unix_parse(const char *path, struct address *out, struct profd_error *e)
{
    struct address a = {.http = false};
    size_t n = strlen(path);
    FAIL_IF(n == 0, e, PROFD_USAGE, "the path of the socket is empty");
    FAIL_IF(n >= sizeof a.socket.sun_path, e, PROFD_USAGE, "the path of the socket has %zu bytes; the limit is %zu: %s",
            n, sizeof a.socket.sun_path - 1, path);
    a.socket.sun_family = AF_UNIX;
    memcpy(a.socket.sun_path, path, n + 1);
    a.size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n + 1);
    (void)snprintf(a.text, sizeof a.text, "unix:%s", path);
    *out = a;
    return PROFD_OK;
}

static enum profd_status http_parse(const char *text, struct address *out, struct profd_error *e)
{
    const char *host = text + strlen("http://");
    struct address a = {.http = true};
    const char *colon = strrchr(host, ':');
    char *end = NULL;
    unsigned long port = 0;
    if (colon && colon[1] >= '0' && colon[1] <= '9') {
        port = strtoul(colon + 1, &end, 10);
    }
    FAIL_IF(port == 0 || port > 65535 || (*end != '\0' && strcmp(end, "/") != 0), e, PROFD_USAGE,
            "\"%s\" is not http://127.0.0.1:PORT", text);
    size_t n = (size_t)(colon - host);
    FAIL_IF(!(n == 5 && memcmp(host, "[::1]", 5) == 0) &&
                !(n == 9 && (memcmp(host, "127.0.0.1", 9) == 0 || memcmp(host, "localhost", 9) == 0)),
            e, PROFD_USAGE, "\"%s\": profd's HTTP is on 127.0.0.1, localhost or [::1] only", text);
    (void)snprintf(a.text, sizeof a.text, "http://%.*s:%lu", (int)n, host, port);
    *out = a;
    return PROFD_OK;
}

/* A host and perhaps a port; the path, the user and everything else that a URL may have is refused. */
static enum profd_status https_parse(const char *text, struct address *out, struct profd_error *e)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-";
    const char *host = text + strlen("https://");
    struct address a = {.http = true};
    const bool six = host[0] == '[';
    size_t n = six ? 1 + strspn(host + 1, "0123456789abcdefABCDEF:.") : strspn(host, letters);
    bool fine = n > (size_t)six && (!six || host[n] == ']');
    n += fine && six;
    if (fine && host[n] == ':') {
        const size_t digits = strspn(host + n + 1, "0123456789");
        fine = digits > 0 && digits <= 5 && strtoul(host + n + 1, NULL, 10) - 1 < 65535;
        n += 1 + digits;
    }
    FAIL_IF(!fine || (host[n] != '\0' && strcmp(host + n, "/") != 0) || n + sizeof "https://" > sizeof a.text, e,
            PROFD_USAGE, "\"%s\" is not https://HOST or https://HOST:PORT", text);
    (void)snprintf(a.text, sizeof a.text, "https://%.*s", (int)n, host);
    *out = a;
    return PROFD_OK;
}

enum profd_status address_parse(const char *text, struct address *out, struct profd_error *e)
{
    if (strncmp(text, "unix:", 5) == 0) {
        return unix_parse(text + 5, out, e);
    }
    if (strncmp(text, "http://", 7) == 0) {
        return http_parse(text, out, e);
    }
    if (strncmp(text, "https://", 8) == 0) {
        return https_parse(text, out, e);
    }
    FAIL_IF(strstr(text, "://"), e, PROFD_USAGE,
            "\"%s\" is neither unix:/PATH nor http://127.0.0.1:PORT nor https://HOST", text);
    return unix_parse(text, out, e);
}

static bool socket_is_there(const char *folder, const char *name, char path[SOCKET_PATH_SIZE])
{
    int n = snprintf(path, SOCKET_PATH_SIZE, "%s%s", folder, name);
    return n > 0 && n < SOCKET_PATH_SIZE && access(path, F_OK) == 0;
}

enum profd_status address_default(struct address *out, struct profd_error *e)
{
    /* secure_getenv: the environment must not direct a set-user-id program to another user's socket. */
    const char *named = secure_getenv("PROFD_SOCKET");
    if (named && *named) {
        enum profd_status status = address_parse(named, out, e);
        return status == PROFD_OK ? status : profd_error_wrap(e, status, "PROFD_SOCKET");
    }
    const char *runtime = secure_getenv("XDG_RUNTIME_DIR");
    char user[RUNTIME_SIZE], shared[RUNTIME_SIZE], path[SOCKET_PATH_SIZE];
    struct stat st;
    if (access(RUNTIME_SYSTEM_SOCKET, F_OK) == 0) {
        return unix_parse(RUNTIME_SYSTEM_SOCKET, out, e);
    }
    if (runtime && runtime[0] == '/' && socket_is_there(runtime, RUNTIME_SOCKET, path)) {
        return unix_parse(path, out, e);
    }
    runtime_directory(RUNTIME_USER, geteuid(), user);
    if (socket_is_there(user, RUNTIME_SOCKET, path)) {
        return unix_parse(path, out, e);
    }
    runtime_directory(RUNTIME_SHARED, geteuid(), shared);
    if (lstat(shared, &st) != 0) {
        return unix_parse(RUNTIME_SYSTEM_SOCKET, out, e);
    }
    FAIL_IF(!runtime_is_private(st.st_mode, st.st_uid, geteuid()), e, PROFD_UNTRUSTED,
            "%s is not a directory of uid %u with mode 0700, so the socket in it is not used; remove "
            "it, or name the socket with --socket or PROFD_SOCKET",
            shared, (unsigned)geteuid());
    return unix_parse(socket_is_there(shared, RUNTIME_SHARED_SOCKET, path) ? path : RUNTIME_SYSTEM_SOCKET, out, e);
}

enum profd_status address_check_peer(int fd, const struct address *a, struct profd_error *e)
{
    struct ucred peer;
    socklen_t size = sizeof peer;
    FAIL_IF(getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0, e, PROFD_UNTRUSTED,
            "cannot determine the user of the daemon at %s: %s", a->text, strerror(errno));
    if (peer.uid == 0) {
        return PROFD_OK;
    }
    char overflow[16], map[4096];
    FAIL_IF(peer.uid == uidmap_unproven(overflow, whole_read_text(UIDMAP_OVERFLOW_PATH, overflow, sizeof overflow), map,
                                        whole_read_text(UIDMAP_PATH, map, sizeof map)),
            e, PROFD_UNTRUSTED,
            "%s: the daemon's user is not mapped in this user namespace (overflow uid %u); only "
            "daemons of root, profd and this user are accepted",
            a->text, (unsigned)peer.uid);
    const char *more = secure_getenv("PROFD_DAEMON_UID");
    char number[24];
    (void)snprintf(number, sizeof number, "%u", (unsigned)peer.uid);
    if (peer.uid == geteuid() || (more && strcmp(more, number) == 0)) {
        return PROFD_OK;
    }
    struct passwd entry, *found = NULL;
    char names[4096];
    if (getpwnam_r("profd", &entry, names, sizeof names, &found) == 0 && found && found->pw_uid == peer.uid) {
        return PROFD_OK;
    }
    return profd_error_set(
        e, PROFD_UNTRUSTED,
        "%s: the daemon runs as uid %u; only daemons of root, profd, uid %u and that of PROFD_DAEMON_UID are "
        "accepted",
        a->text, (unsigned)peer.uid, (unsigned)geteuid());
}
