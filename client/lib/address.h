/* The daemon's address, and whether the daemon that listens there is accepted. */
#ifndef PROFD_CLIENT_ADDRESS_H
#define PROFD_CLIENT_ADDRESS_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "proto/status.h"

struct address {
    char text[192]; /* "unix:/path", "http://127.0.0.1:PORT" or "https://HOST:PORT" */
    bool http;      /* or https */
    bool https;     /* then socket is not set */
    union {
        struct sockaddr any;
        struct sockaddr_un local;
        struct sockaddr_in ip4;
        struct sockaddr_in6 ip6;
    } socket;
    socklen_t size;
};

/* "unix:/path", a path, "http://HOST:PORT" with a loopback HOST (127.0.0.1, localhost, [::1]), or "https://HOST" with
 * any host and perhaps a port. USAGE names what is
 * wrong: an empty or relative unix: path is taken as it stands, one over 107 bytes is refused. */
enum profd_status address_parse(const char *text, struct address *out, struct profd_error *e);

/* The default address: $PROFD_SOCKET (not in a set-user-id program), otherwise the system's socket if it exists,
 * otherwise the user's own (proto/runtime.h). UNTRUSTED: another user may have made the directory of that. */
enum profd_status address_default(struct address *out, struct profd_error *e);

/* DECISIONS 20: UNTRUSTED unless the peer of this connected Unix socket is root, the user profd, or the current user,
 * by a uid that identifies this user (proto/uidmap.h). */
enum profd_status address_check_peer(int fd, const struct address *a, struct profd_error *e);

#endif
