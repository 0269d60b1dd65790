/* Listening sockets: made here or passed in by a supervisor, and the loop that accepts from them. */
#ifndef PROFD_NET_LISTEN_H
#define PROFD_NET_LISTEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "proto/status.h"

struct event_base;
struct listener;

#define LISTEN_NO_GROUP UINT32_MAX
#define LISTEN_KEPT "profd-"
#define LISTEN_NAME 96

/* Checks the path of a Unix socket. CONFIG if it is empty or does not fit into sun_path. */
enum profd_status listen_parse_unix(const char *path, struct profd_error *e);

/* Binds a Unix stream socket and listens, nonblocking and close-on-exec. The file has its mode and group before any
 * client can use it. A stale socket is removed. BUSY if a process answers there; CONFIG as above; CANT_CREATE
 * otherwise. */
enum profd_status listen_open_unix(const char *path, mode_t mode, uint32_t group, int *fd, struct profd_error *e);
/* Makes the directory, and with mode 0755 those above it that are missing. */
enum profd_status listen_make_directory(const char *path, mode_t mode, struct profd_error *e);

/* Makes the directory in a place that all users share. CANT_CREATE if what is there is not private (proto/runtime.h).
 */
enum profd_status listen_make_private_directory(const char *path, struct profd_error *e);
/* Removes the file if it is still this socket's. */
void listen_remove_unix(const char *path, int fd);

/* Checks ADDR:PORT without opening anything. */
enum profd_status listen_parse_tcp(const char *text, uint16_t *port, struct profd_error *e);
/* ADDR:PORT, ADDR being 127.x.y.z, [::1] or localhost; anything else is CONFIG. Port 0 lets the kernel choose; *port is
 * the one bound. */
enum profd_status listen_open_tcp(const char *text, int *fd, uint16_t *port, struct profd_error *e);

/* Descriptors that were passed in (LISTEN_PID, LISTEN_FDS, LISTEN_FDNAMES). −1: none. */
struct listen_passed {
    int upload;   /* "upload", or the only one without a name */
    int http;     /* "http": Unix */
    int http_tcp; /* "http-tcp": loopback */
    uint16_t http_port;
    size_t kept_count; /* descriptors that the service manager kept for this program; named LISTEN_KEPT… */
    struct listen_kept {
        int fd; /* close-on-exec, not checked further */
        char name[LISTEN_NAME];
    } * kept;
};
/* Takes the descriptors that were passed in, and unsets the variables. The caller owns the descriptors and out->kept.
 * CONFIG: an unknown name, a name given twice, or a descriptor that is not a listening socket of its kind. */
enum profd_status listen_take_passed(struct listen_passed *out, struct profd_error *e);

struct listener_config {
    int fd;              /* stays the caller's */
    const void *refusal; /* answer to clients that cannot be served because descriptors ran out; may be NULL */
    size_t refusal_size;
    unsigned pause_ms; /* without accepting, after descriptors ran out */
    /* Takes over the accepted descriptor, non-blocking and close-on-exec. */
    void (*accepted)(void *context, int fd);
    /* Descriptors ran out. May be NULL. */
    void (*exhausted)(void *context, const char *why);
    void *context;
};

/* Accepts connections from now on. Returns NULL if out of memory. */
struct listener *listener_new(struct event_base *base, const struct listener_config *config);
/* Accepts all waiting connections now. l may be NULL. Must not be called from accepted. */
void listener_accept(struct listener *l);
/* Ends accepting. l may be NULL. */
void listener_free(struct listener *l);

#endif
