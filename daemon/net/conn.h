/* Connections of the Unix socket: frames, deadlines, limits. Handlers interpret the frames. Everything here belongs to
 * the loop's thread. */
#ifndef PROFD_NET_CONN_H
#define PROFD_NET_CONN_H

#include <stddef.h>
#include <sys/queue.h>

#include "net/peer.h"
#include "proto/frame.h"
#include "proto/limits.h"
#include "proto/message.h"

struct closer;
struct event_base;
struct conn;
struct conn_group;

/* A connection id, never reused, so that a late answer cannot reach another connection. */
typedef uint64_t conn_id;

/* Allowed moves: GREETING → OPEN → DRAINING → CLOSED, and from each straight to CLOSED or DRAINING. */
enum conn_state { CONN_GREETING, CONN_OPEN, CONN_DRAINING, CONN_CLOSED };

/* A body that counts against the budget until it is freed. */
struct conn_body {
    uint8_t *data;
    size_t size;
    uint32_t uid;
    size_t charge;
};

/* A whole frame. A handler that keeps body or descriptors takes them (conn_frame_take_…); the rest is freed and closed
 * when it returns. */
struct conn_frame {
    struct frame_header header;
    struct conn_body body;
    int fds[LIMIT_FRAME_FDS];
    unsigned fd_count;
};

struct conn_handler {
    uint8_t type;
    bool answered; /* counts as in flight until conn_answer, conn_nack or the end of conn_stream */
    uint8_t fds_min, fds_max;
    /* Anything but OK is answered by a NACK with the sentence, and the connection goes on. */
    enum profd_status (*handle)(void *context, struct conn *c, struct conn_frame *f, struct profd_error *e);
    void *context;
    bool answer_only; /* not handled when the peer has hung up: the result could not be reported */
};

struct conn_config {
    struct event_base *base;
    struct closer *closer;               /* closes descriptors that no handler takes; NULL: closed in place */
    const struct conn_handler *handlers; /* of open connections; HELLO is answered here. Read when a frame comes */
    size_t handler_count;
    const char *daemon; /* for WELCOME: "profd 0.1" */
    void *context;
    /* A connection said HELLO: its user pointer. NULL means out of memory. May be NULL. */
    void *(*opened)(void *context, struct conn *c);
    /* Completes the WELCOME to a connection. May be NULL. */
    void (*welcome)(void *context, const struct conn *c, struct message_welcome *w);
    /* A connection of this user was closed before a whole frame had followed HELLO: what it was to ask is not known.
     * May be NULL. */
    void (*refused)(void *context, uint32_t uid);
    /* The connection ends; user is what opened returned. May be NULL. */
    void (*closed)(void *context, void *user);
    /* The peer of a connection with requests in flight has hung up: those that have no effect but their answer need not
     * be begun. They must still be answered. Called at any time. May be NULL. */
    void (*hung_up)(void *context, conn_id id);
    /* Something for the log, at most one sentence. May be NULL. */
    void (*note)(void *context, const char *category, const char *sentence);

    /* Limits; conn_config_init sets those of limits.h. Milliseconds and bytes. */
    unsigned hello_ms, header_ms, body_ms, write_ms;
    size_t body_rate; /* bytes per second beyond body_ms */
    size_t budget;    /* of bodies, all connections; one user may hold half */
    size_t
        output_high; /* bytes waiting to be written, answers in pieces included, above which a connection is not read */
    size_t answers_max_uid; /* bytes of answers in pieces that one user has not taken; see conn_judge_answers */
    size_t in_flight_max, connections_max, connections_max_uid;
};
void conn_config_init(struct conn_config *config);

/* NULL when out of memory. */
struct conn_group *conn_group_new(const struct conn_config *config);
/* Takes over the descriptor (nonblocking). At a limit the oldest connection that has sent no complete frame after HELLO
 * is closed, if it belongs to this user or, at the limit of all users, to a user with at least as many connections. If
 * there is none, the new connection is refused. Either gets a NACK(BUSY). */
void conn_group_accept(struct conn_group *g, int fd, const struct peer *peer);
/* Reads what has arrived, then no more; connections close when everything is answered and written. */
void conn_group_drain(struct conn_group *g);
/* Closes all at once and frees. Bodies taken by handlers must have been freed before. Accepts NULL. */
void conn_group_free(struct conn_group *g);

/* Sets the limit of connections, but not above the configured one. */
void conn_group_limit(struct conn_group *g, size_t connections);

struct conn_counts {
    size_t connections, bodies; /* now; bodies in bytes */
    size_t descriptors;         /* now: received for a frame that is not handled yet, or waiting to be sent */
    uint64_t accepted, refused, frames, failed;
};
void conn_group_get_counts(const struct conn_group *g, struct conn_counts *out);

/* The connection, or NULL if it has gone. */
struct conn *conn_find(struct conn_group *g, conn_id id);
conn_id conn_get_id(const struct conn *c);
const struct peer *conn_get_peer(const struct conn *c);
void *conn_get_user(const struct conn *c);

/* True if the peer, and every process that has its socket, has closed the connection. What it sent may still be unread.
 */
bool conn_has_hung_up(const struct conn *c);
/* The process at the other end (peer_open_process). */
enum peer_process conn_open_process(const struct conn *c, int *pidfd);
/* Reads what has arrived on connections of this user that wait for something to read, without waiting: what was sent
 * before now is handled before anything else is. Not from inside a handler. Reads at most LIMIT_READS_PER_UID and
 * returns false if there may be more: to be called again, from a later pass of the loop, with the same *at, which is 0
 * at first. O(connections), few polls. */
bool conn_group_listen(struct conn_group *g, uint32_t uid, uint32_t *at);

/* Moves the body out of the frame; it must come back by conn_body_free. */
void conn_frame_take_body(struct conn_frame *f, struct conn_body *body);
void conn_body_free(struct conn_group *g, struct conn_body *body);
/* Moves the i-th descriptor out of the frame (−1 if there is none); the caller closes it. */
int conn_frame_take_fd(struct conn_frame *f, unsigned i);

/* Sends a message that is not an answer. After a failure to encode or store the connection is closed: no frame is
 * ever left out silently. */
void conn_send(struct conn *c, const struct message *m, uint16_t flags, uint32_t tag);
/* Sends the answer to one frame in flight. */
void conn_answer(struct conn *c, const struct message *m, uint16_t flags, uint32_t tag);
/* Sends the answer with a descriptor: FD(1) is added to the flags. Takes over the descriptor, and closes it when the
 * frame's first byte has been sent, or with the connection. It must not be a descriptor from this connection's peer:
 * its close() might hang. */
void conn_answer_fd(struct conn *c, const struct message *m, uint16_t flags, uint32_t tag, int fd);
/* Answers one frame in flight by NACK. retry_after_ms counts only for statuses that may be retried. */
void conn_nack(struct conn *c, uint32_t tag, enum profd_status status, const char *sentence, uint32_t retry_after_ms);
/* NACKs (not as an answer), reads no more, closes when what is in flight has been answered. */
void conn_fail(struct conn *c, uint32_t tag, enum profd_status status, const char *sentence);

/* An answer in pieces that are made when the reader has taken the earlier ones. */
struct conn_source {
    STAILQ_ENTRY(conn_source) next; /* of the connection */
    size_t size;                    /* bytes of memory it holds until it is freed */
    /* The next piece as a whole frame in a block of malloc; *size 0 ends the answer. False: out of memory. */
    bool (*make)(struct conn_source *s, uint8_t **block, size_t *size);
    /* Once, at the end or when the connection is gone. */
    void (*free)(struct conn_source *s);
};
void conn_stream(struct conn *c, struct conn_source *s);
/* BUSY if the unread answers of the connection's user reach the limit, so that no further answer should be made. */
enum profd_status conn_judge_answers(const struct conn *c, struct profd_error *e);

/* Writes a NACK frame with tag 0, at most 512 bytes, for a connection that is refused. Returns its size, 0 if there is
 * no reason. */
size_t conn_format_refusal(enum profd_status status, const char *sentence, uint8_t out[512]);

#endif
