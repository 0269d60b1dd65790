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

/* CONFIG when a path is empty or does not fit into sun_path (the sentence says the limit). */
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

/* Descriptors passed in (LISTEN_PID, LISTEN_FDS, LISTEN_FDNAMES), −1 where none. The variables are unset. CONFIG with
 * the value for an unknown name, a name given twice, or a descriptor that is not such a listening socket. */
struct listen_passed {
    int upload;   /* "upload", or the only one without a name */
    int http;     /* "http": Unix */
    int http_tcp; /* "http-tcp": loopback */
    uint16_t http_port;
    size_t kept_count; /* descriptors that this program gave to the manager to keep: LISTEN_KEPT… is their name's
                          beginning */
    struct listen_kept {
        int fd; /* close-on-exec; not looked at any further */
        char name[LISTEN_NAME];
    } * kept;
};
/* Descriptors and kept are the caller's. */
enum profd_status listen_take_passed(struct listen_passed *out, struct profd_error *e);

struct listener_config {
    int fd;              /* stays the caller's */
    const void *refusal; /* answer to clients that cannot be served because descriptors ran out; may be NULL */
    size_t refusal_size;
    unsigned pause_ms; /* how long not to accept then */
    /* Takes over the accepted descriptor, non-blocking and close-on-exec. */
    void (*accepted)(void *context, int fd);
    /* Says that descriptors ran out. May be NULL. */
    void (*exhausted)(void *context, const char *why);
    void *context;
};

/* Accepts from now on. NULL when out of memory. */
struct listener *listener_new(struct event_base *base, const struct listener_config *config);
/* Accepts all waiting connections. Accepts NULL. Must not be called from accepted. */
void listener_accept(struct listener *l);
/* Accepts no more. Accepts NULL. */
void listener_free(struct listener *l);

#endif
