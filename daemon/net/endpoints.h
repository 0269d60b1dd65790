/* The listening sockets: inherited or created, and which connections they accept: uploads and queries on a Unix socket,
 * HTTP on a Unix socket and on loopback TCP. */
#ifndef PROFD_NET_ENDPOINTS_H
#define PROFD_NET_ENDPOINTS_H

#include "net/conn.h"
#include "net/http.h"
#include "net/listen.h"
#include "net/peer.h"

struct endpoints;
struct loop;

enum endpoint { ENDPOINT_UPLOAD, ENDPOINT_HTTP, ENDPOINT_HTTP_TCP, ENDPOINT_COUNT };

/* What users may do. */
struct endpoints_access {
    struct peer_policy policy; /* read_group may use the HTTP socket, too */
    bool http_open;            /* this and origin: as in struct http_server_config */
    const char *origin;
};

/* All parts outlive the endpoints. */
struct endpoints_config {
    struct loop *loop;
    struct closer *closer;
    struct conn_group *conns;
    struct endpoints_access access;

    const char *socket;      /* path; NULL: it must be passed in */
    const char *http_socket; /* path; NULL: none */
    bool http_given;         /* make the HTTP socket also beside an upload socket that was passed in */
    const char *http;        /* ADDR:PORT; NULL: no TCP */

    struct http_server_config web; /* what both HTTP endpoints share; the rest of it follows from the other fields */
    http_handler request;
    void *request_context;

    /* A sentence for the log: why a connection was refused. */
    void (*warn)(void *context, const char *category, const char *sentence);
    /* A connection to the upload socket was not accepted; its sender may not be known. */
    void (*refused)(void *context);
    void *context;
};

/* Creates the sockets that were not passed in, and accepts from now on. Takes over the listening descriptors of passed,
 * not those that the service manager kept. CONFIG, BUSY, CANT_CREATE as net/listen.h. */
enum profd_status endpoints_open(const struct endpoints_config *config, const struct listen_passed *passed,
                                 struct endpoints **out, struct profd_error *e);
/* Changes access: groups for connections that are accepted from now on, the rest for requests. The HTTP socket, if it
 * was created here, gets the read group; CANT_CREATE if it cannot, the rest has changed. */
enum profd_status endpoints_set_access(struct endpoints *n, const struct endpoints_access *access,
                                       struct profd_error *e);
/* As http_server_end_token, on both HTTP endpoints. */
void endpoints_end_token(struct endpoints *n, uint64_t token);
/* Accepts no more; sockets that were created here are removed. */
void endpoints_close(struct endpoints *n);
/* The HTTP connections end when they have their answers. */
void endpoints_stop_http(struct endpoints *n);
/* Closes everything but the Unix socket's connections. Accepts NULL. */
void endpoints_free(struct endpoints *n);

/* Accepts every connection to the upload socket that waits now. Not from inside a handler. */
void endpoints_accept_uploads(struct endpoints *n);
/* The path of the upload or HTTP socket if it was created here, else NULL. */
const char *endpoints_get_path(const struct endpoints *n, enum endpoint which);
/* The port of TCP; 0: there is none. */
uint16_t endpoints_get_http_port(const struct endpoints *n);
/* Both HTTP endpoints together. */
void endpoints_get_http_counts(const struct endpoints *n, struct http_server_counts *out);

#endif
