/* The sockets: passed in or made here, and what happens to who knocks. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "log.h"
#include "server_attach.h"
#include "server_parts.h"
#include "server_web.h"

#define EXHAUSTED_PAUSE_MS 100
#define DESCRIPTORS_SPARE 512u
#define DESCRIPTORS_ENOUGH (2 * (LIMIT_CONNECTIONS + 2 * LIMIT_ATTACHED))

enum profd_status server_make_directory(const char *path, unsigned mode, struct profd_error *e)
{
    char part[4096];
    const size_t n = strlen(path);
    struct stat st;

    if (n >= sizeof part)
        return profd_error_set(e, PROFD_TOO_LARGE, "a path of %zu bytes, at most %zu", n, sizeof part - 1);
    memcpy(part, path, n + 1);
    for (size_t i = 1; i <= n; i++) {
        if (part[i] && part[i] != '/')
            continue;
        part[i] = 0;
        if (!mkdir(part, 0700))
            chmod(part, i == n ? (mode_t)mode : 0755); /* whatever the umask: others must reach a socket in it */
        else if (errno != EEXIST && (i == n || stat(part, &st)))
            return profd_error_set(e, PROFD_CANT_CREATE, "cannot make the directory %s: %s", part, strerror(errno));
        part[i] = i < n ? '/' : 0;
    }
    if (stat(path, &st) || !S_ISDIR(st.st_mode))
        return profd_error_set(e, PROFD_CANT_CREATE, "%s is not a directory", path);
    return PROFD_OK;
}

static void server_on_accept(void *context, int fd)
{
    struct server_listener *l = context;
    struct server *s = l->server;
    struct http_peer asker = {.uid = 0};
    struct profd_error e;
    struct peer peer;

    if (l->door == SERVER_HTTP_TCP) {
        http_door_accept(s->doors[l->door], fd, &asker);
        return;
    }
    if (peer_read(fd, &s->policy, &peer, &e)) {
        log_write(LOG_LEVEL_WARNING, "peer", "%s", e.sentence);
        close(fd);
        return;
    }
    if (l->door == SERVER_UPLOAD) {
        conn_group_accept(s->conns, fd, &peer);
        return;
    }
    asker.uid = peer.uid;
    asker.gid = peer.gid;
    asker.may_read_all = peer.may_read_all;
    http_door_accept(s->doors[l->door], fd, &asker);
}

static void server_on_exhausted(void *context, const char *why)
{
    struct server_listener *l = context;

    log_write(LOG_LEVEL_WARNING, "descriptors", "a connection to the %s socket was refused: %s",
              l->door == SERVER_UPLOAD ? "upload" : "HTTP", why);
}

static void *server_on_opened(void *context, struct conn *c)
{
    (void)context;
    (void)c;
    return session_new();
}

static void server_on_closed(void *context, void *user)
{
    struct server_attached *attached = session_get_attached(user);

    if (attached)
        server_attach_hang_up(context, attached);
    session_free(user);
}

static void server_on_note(void *context, const char *category, const char *sentence)
{
    (void)context;
    log_write(LOG_LEVEL_INFO, category, "%s: %s", category, sentence);
}

/* What an open connection may say. */
static const struct conn_handler server_handlers[] = {
    {FRAME_UPLOAD, true, 0, 0, server_take_upload},    {FRAME_OBJECT, true, 1, 2, server_take_object},
    {FRAME_DECLINE, false, 0, 0, server_take_decline}, {FRAME_QUERY, true, 0, 0, server_take_query},
    {FRAME_SYNC, true, 0, 0, server_take_sync},        {FRAME_NACK, false, 0, 0, server_take_nack},
    {FRAME_ADMIN, true, 0, 0, server_take_admin},      {FRAME_ATTACH, true, 1, 1, server_take_attach},
};

/* Connections and live processes leave some of the process's descriptors for what is sent, for answers and for the
 * store. */
static size_t server_descriptors(void)
{
    const int lowest = open("/dev/null", O_RDONLY | O_CLOEXEC); /* about as many are in use */
    struct rlimit limit;
    size_t room, spare;

    if (lowest >= 0)
        close(lowest);
    if (lowest < 0 || getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur <= (rlim_t)lowest)
        return 1;
    if (limit.rlim_cur > DESCRIPTORS_ENOUGH)
        limit.rlim_cur = DESCRIPTORS_ENOUGH;
    room = (size_t)limit.rlim_cur - (size_t)lowest;
    spare = room / 4 < DESCRIPTORS_SPARE ? room / 4 : DESCRIPTORS_SPARE;
    return room - spare;
}

static enum profd_status server_make_conns(struct server *s, struct profd_error *e)
{
    struct conn_config config;

    conn_config_init(&config);
    s->attach->descriptors = server_descriptors();
    if (s->attach->descriptors < config.connections_max)
        config.connections_max = s->attach->descriptors;
    config.base = loop_get_base(s->loop);
    config.closer = s->closer;
    config.handlers = server_handlers;
    config.handler_count = sizeof server_handlers / sizeof *server_handlers;
    config.daemon = "profd " PROFD_VERSION;
    config.context = s;
    config.opened = server_on_opened;
    config.closed = server_on_closed;
    config.note = server_on_note;
    s->conns = conn_group_new(&config);
    return s->conns ? PROFD_OK : profd_error_set(e, PROFD_NO_MEMORY, "no memory for connections");
}

static enum profd_status server_make_door(struct server *s, enum server_door door, struct profd_error *e)
{
    struct http_door_config config = {.tcp = door == SERVER_HTTP_TCP, .connections_max = LIMIT_HTTP_CONNECTIONS};

    config.port = s->http_port;
    config.open = s->config->http_open;
    memcpy(config.token_sha256, s->config->http_token_sha256, sizeof config.token_sha256);
    config.is_public = server_web_has;
    config.origin = s->config->http_origin;
    s->doors[door] = http_door_new(loop_get_base(s->loop), &config, server_http_request, s);
    return s->doors[door] ? PROFD_OK : profd_error_set(e, PROFD_NO_MEMORY, "no memory for the HTTP door");
}

/* A Unix socket of our own, with its directory. */
static enum profd_status server_open_unix(struct server *s, enum server_door door, const char *path, mode_t mode,
                                          uint32_t group, struct profd_error *e)
{
    const char *slash = strrchr(path, '/');
    enum profd_status status = PROFD_OK;
    char directory[4096];

    if (slash && slash != path && (size_t)(slash - path) < sizeof directory) {
        memcpy(directory, path, (size_t)(slash - path));
        directory[slash - path] = 0;
        status = server_make_directory(directory, 0755, e);
    }
    if (!status)
        status = listen_open_unix(path, mode, group, &s->listeners[door].fd, e);
    if (!status)
        s->listeners[door].path = path;
    return status;
}

static enum profd_status server_open_sockets(struct server *s, struct profd_error *e)
{
    const struct config *config = s->config;
    struct listen_passed passed;
    enum profd_status status = listen_take_passed(&passed, e);
    const uint32_t group = config->has_read_group ? config->read_group : LISTEN_NO_GROUP;

    if (status)
        return status;
    s->listeners[SERVER_UPLOAD].fd = passed.upload;
    s->listeners[SERVER_HTTP].fd = passed.http;
    s->listeners[SERVER_HTTP_TCP].fd = passed.http_tcp;
    s->http_port = passed.http_port;
    server_attach_take_kept(s, passed.kept, passed.kept_count);
    if (passed.http_tcp >= 0 && !config->http_open && !config->values[CONFIG_http_token])
        return profd_error_set(e, PROFD_CONFIG, "a TCP socket was passed in: say http-token FILE, or http-open");
    if (passed.upload < 0)
        status = server_open_unix(s, SERVER_UPLOAD, config->socket, 0666, LISTEN_NO_GROUP, e);
    /* Beside a passed upload socket only an HTTP socket that was asked for is made: the supervisor owns the directory.
     */
    if (!status && passed.http < 0 && config->http_socket && (passed.upload < 0 || config->http_given))
        status = server_open_unix(s, SERVER_HTTP, config->http_socket, 0660, group, e);
    if (!status && passed.http_tcp < 0 && config->http)
        status = listen_open_tcp(config->http, &s->listeners[SERVER_HTTP_TCP].fd, &s->http_port, e);
    return status;
}

enum profd_status server_open_doors(struct server *s, struct profd_error *e)
{
    enum profd_status status = server_make_conns(s, e);

    if (!status)
        status = server_open_sockets(s, e);
    s->refusal_size = conn_format_refusal(PROFD_BUSY, "the daemon is out of descriptors", s->refusal);
    for (int i = 0; i < SERVER_DOORS && !status; i++) {
        struct server_listener *l = &s->listeners[i];
        struct listener_config config = {.fd = l->fd, .pause_ms = EXHAUSTED_PAUSE_MS};

        if (l->fd < 0)
            continue;
        if (i != SERVER_UPLOAD)
            status = server_make_door(s, (enum server_door)i, e);
        if (status)
            return status;
        config.refusal = i == SERVER_UPLOAD ? s->refusal : NULL;
        config.refusal_size = i == SERVER_UPLOAD ? s->refusal_size : 0;
        config.accepted = server_on_accept;
        config.exhausted = server_on_exhausted;
        config.context = l;
        l->listener = listener_new(loop_get_base(s->loop), &config);
        if (!l->listener)
            status = profd_error_set(e, PROFD_NO_MEMORY, "no memory to listen");
    }
    return status;
}

void server_close_listeners(struct server *s)
{
    for (int i = 0; i < SERVER_DOORS; i++) {
        struct server_listener *l = &s->listeners[i];

        listener_free(l->listener);
        l->listener = NULL;
        if (l->fd < 0)
            continue;
        if (l->path)
            listen_remove_unix(l->path, l->fd);
        close(l->fd);
        l->fd = -1;
    }
}
