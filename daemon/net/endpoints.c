#include "net/endpoints.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "net/loop.h"
#include "proto/runtime.h"

#define EXHAUSTED_PAUSE_MS 100

struct endpoint_listener {
    struct endpoints *all;
    enum endpoint which;
    int fd;           /* −1: none */
    const char *path; /* of a Unix socket made here, to be removed; else NULL */
    struct listener *listener;
    struct http_server *http; /* of the two that speak HTTP */
};

struct endpoints {
    struct endpoints_config config;
    struct endpoint_listener listeners[ENDPOINT_COUNT];
    uint16_t http_port;
    uint8_t refusal[512];
    size_t refusal_size;
};

static void endpoints_on_accept(void *context, int fd)
{
    struct endpoint_listener *l = context;
    const struct endpoints_config *config = &l->all->config;
    struct http_peer client = {.uid = 0};
    struct profd_error e;
    struct peer peer;

    if (l->which == ENDPOINT_HTTP_TCP) {
        http_server_accept(l->http, fd, &client);
        return;
    }
    enum profd_status status = peer_read(fd, &config->access.policy, &peer, &e);
    if (status == PROFD_FORBIDDEN && l->which == ENDPOINT_HTTP) {
        config->warn(config->context, "peer", e.sentence);
        http_server_refuse(l->http, fd, peer.uid, status, 403, e.sentence);
        return;
    }
    if (status) {
        uint8_t refusal[512];
        const size_t n = conn_format_refusal(status, e.sentence, refusal);
        const ssize_t sent = send(fd, refusal, n, MSG_NOSIGNAL | MSG_DONTWAIT);

        (void)sent;
        config->warn(config->context, "peer", e.sentence);
        if (l->which == ENDPOINT_UPLOAD) {
            config->refused(config->context);
        }
        close(fd);
        return;
    }
    if (l->which == ENDPOINT_UPLOAD) {
        conn_group_accept(config->conns, fd, &peer);
        return;
    }
    client.uid = peer.uid;
    client.may_read_all = peer.may_read_all;
    http_server_accept(l->http, fd, &client);
}

static void endpoints_on_exhausted(void *context, const char *why)
{
    const struct endpoint_listener *l = context;
    const struct endpoints_config *config = &l->all->config;
    struct profd_error e;

    profd_error_set(&e, PROFD_BUSY, "a connection to the %s socket was refused: %s",
                    l->which == ENDPOINT_UPLOAD ? "upload" : "HTTP", why);
    config->warn(config->context, "descriptors", e.sentence);
    if (l->which == ENDPOINT_UPLOAD) {
        config->refused(config->context);
    }
}

/* Creates a Unix socket, and its directory. */
static enum profd_status endpoints_open_unix(struct endpoints *n, enum endpoint which, const char *path, mode_t mode,
                                             uint32_t group, struct profd_error *e)
{
    const char *slash = strrchr(path, '/');
    enum profd_status status = PROFD_OK;
    char directory[4096], shared[RUNTIME_SIZE];

    if (slash && slash != path && (size_t)(slash - path) < sizeof directory) {
        memcpy(directory, path, (size_t)(slash - path));
        directory[slash - path] = 0;
        runtime_directory(RUNTIME_SHARED, geteuid(), shared);
        status = strcmp(directory, shared) ? listen_make_directory(directory, 0755, e)
                                           : listen_make_private_directory(directory, e);
    }
    status = status ? status : listen_open_unix(path, mode, group, &n->listeners[which].fd, e);
    if (!status) {
        n->listeners[which].path = path;
    }
    return status;
}

static enum profd_status endpoints_listen(struct endpoints *n, struct endpoint_listener *l, struct profd_error *e)
{
    struct listener_config config = {.fd = l->fd, .pause_ms = EXHAUSTED_PAUSE_MS};

    if (l->which == ENDPOINT_UPLOAD) {
        config.refusal = n->refusal;
        config.refusal_size = n->refusal_size;
    } else {
        struct http_server_config web = n->config.web;

        web.tcp = l->which == ENDPOINT_HTTP_TCP;
        web.port = n->http_port;
        web.open = n->config.access.http_open;
        web.origin = n->config.access.origin;
        web.closer = n->config.closer;
        l->http = http_server_new(loop_get_base(n->config.loop), &web, n->config.request, n->config.request_context);
        TRY(l->http ? PROFD_OK : profd_no_memory(e));
    }
    config.accepted = endpoints_on_accept;
    config.exhausted = endpoints_on_exhausted;
    config.context = l;
    l->listener = listener_new(loop_get_base(n->config.loop), &config);
    return l->listener ? PROFD_OK : profd_no_memory(e);
}

enum profd_status endpoints_open(const struct endpoints_config *config, const struct listen_passed *passed,
                                 struct endpoints **out, struct profd_error *e)
{
    const int fds[ENDPOINT_COUNT] = {passed->upload, passed->http, passed->http_tcp};
    const uint32_t group = config->access.policy.has_read_group ? config->access.policy.read_group : LISTEN_NO_GROUP;
    struct endpoints *n = calloc(1, sizeof *n);
    enum profd_status status = PROFD_OK;

    TRY(n ? PROFD_OK : profd_no_memory(e));
    n->config = *config;
    n->http_port = passed->http_port;
    n->refusal_size = conn_format_refusal(PROFD_BUSY, "the daemon is out of descriptors", n->refusal);
    for (int i = 0; i < ENDPOINT_COUNT; i++) {
        n->listeners[i] = (struct endpoint_listener){.all = n, .which = (enum endpoint)i, .fd = fds[i]};
    }

    /* Create the sockets that were not passed in. If the upload socket was passed in, the service manager owns the
     * directory, and an HTTP socket is created only if it was requested. */
    if (passed->upload < 0) {
        status = endpoints_open_unix(n, ENDPOINT_UPLOAD, config->socket, 0666, LISTEN_NO_GROUP, e);
    }
    if (!status && passed->http < 0 && config->http_socket && (passed->upload < 0 || config->http_given)) {
        status = endpoints_open_unix(n, ENDPOINT_HTTP, config->http_socket, 0660, group, e);
    }
    if (!status && passed->http_tcp < 0 && config->http) {
        status = listen_open_tcp(config->http, &n->listeners[ENDPOINT_HTTP_TCP].fd, &n->http_port, e);
    }
    for (int i = 0; i < ENDPOINT_COUNT && !status; i++) {
        status = n->listeners[i].fd >= 0 ? endpoints_listen(n, &n->listeners[i], e) : PROFD_OK;
    }
    if (status) {
        endpoints_free(n);
        return status;
    }
    *out = n;
    return PROFD_OK;
}

enum profd_status endpoints_set_access(struct endpoints *n, const struct endpoints_access *access,
                                       struct profd_error *e)
{
    n->config.access = *access;
    for (int i = 0; i < ENDPOINT_COUNT; i++) {
        if (n->listeners[i].http) {
            http_server_set_access(n->listeners[i].http, access->http_open, access->origin);
        }
    }
    /* The group of a socket that was created here. */
    const char *path = n->listeners[ENDPOINT_HTTP].path;
    const struct peer_policy *policy = &n->config.access.policy;

    if (!path || !policy->has_read_group || !chown(path, (uid_t)-1, policy->read_group)) {
        return PROFD_OK;
    }
    return profd_error_set(e, PROFD_CANT_CREATE, "read-group: the group of %s cannot be changed: %s", path,
                           strerror(errno));
}

void endpoints_end_token(struct endpoints *n, uint64_t token)
{
    for (int i = 0; i < ENDPOINT_COUNT; i++) {
        if (n->listeners[i].http) {
            http_server_end_token(n->listeners[i].http, token);
        }
    }
}

void endpoints_close(struct endpoints *n)
{
    for (int i = 0; i < ENDPOINT_COUNT; i++) {
        struct endpoint_listener *l = &n->listeners[i];

        listener_free(l->listener);
        l->listener = NULL;
        if (l->fd < 0) {
            continue;
        }
        if (l->path) {
            listen_remove_unix(l->path, l->fd);
        }
        close(l->fd);
        l->fd = -1;
    }
}

void endpoints_stop_http(struct endpoints *n)
{
    for (int i = 0; i < ENDPOINT_COUNT; i++) {
        if (n->listeners[i].http) {
            http_server_stop(n->listeners[i].http);
        }
    }
}

void endpoints_free(struct endpoints *n)
{
    if (!n) {
        return;
    }
    endpoints_close(n);
    for (int i = 0; i < ENDPOINT_COUNT; i++) {
        if (n->listeners[i].http) {
            http_server_free(n->listeners[i].http);
        }
    }
    free(n);
}

void endpoints_accept_uploads(struct endpoints *n)
{
    listener_accept(n->listeners[ENDPOINT_UPLOAD].listener);
}

const char *endpoints_get_path(const struct endpoints *n, enum endpoint which)
{
    return n->listeners[which].path;
}

uint16_t endpoints_get_http_port(const struct endpoints *n)
{
    return n->http_port;
}

void endpoints_get_http_counts(const struct endpoints *n, struct http_server_counts *out)
{
    *out = (struct http_server_counts){.connections = 0};
    for (int i = 0; i < ENDPOINT_COUNT; i++) {
        struct http_server_counts one = {.connections = 0};

        if (!n->listeners[i].http) {
            continue;
        }
        http_server_get_counts(n->listeners[i].http, &one);
        out->connections += one.connections;
        out->bytes += one.bytes;
        for (unsigned class = 0; class < sizeof one.answered / sizeof *one.answered; class ++) {
            out->answered[class] += one.answered[class];
        }
    }
}
