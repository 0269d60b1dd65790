/* The inside of libprofd: addresses, connections, deliveries and their spool. Private to client/lib, and to record,
 * which delivers without end. */
#ifndef PROFD_CLIENT_CLIENT_H
#define PROFD_CLIENT_CLIENT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "profd.h"
#include "proto/frame.h"
#include "proto/message.h"
#include "proto/sort.h"
#include "proto/status.h"

/* The daemon's address, and whether the daemon that listens there is accepted. */

struct address {
    char text[192];            /* "unix:/path", "http://127.0.0.1:PORT" or "https://HOST:PORT" */
    bool http;                 /* or https; then socket is not set */
    struct sockaddr_un socket; /* size bytes of it */
    socklen_t size;
};

/* Parses "unix:/path", a path, "http://HOST:PORT" with a loopback HOST (127.0.0.1, localhost, [::1]), or "https://HOST"
 * with any host and an optional port. USAGE names the fault. A relative path is accepted; one over 107 bytes is not. */
enum profd_status address_parse(const char *text, struct address *out, struct profd_error *e);

/* Sets the default address: $PROFD_SOCKET (not in a set-user-id program), the system's socket if it exists, or the
 * user's own (proto/runtime.h). UNTRUSTED if another user may have made the directory of that one. */
enum profd_status address_default(struct address *out, struct profd_error *e);

/* UNTRUSTED unless the peer of this connected Unix socket is root, the user profd, the current user or that of
 * PROFD_DAEMON_UID, by a uid that identifies this user (proto/uidmap.h). */
enum profd_status address_check_peer(int fd, const struct address *a, struct profd_error *e);

/* The inside of struct profd_client: queues of frames in both directions, and the requests in flight. No I/O. */

/* A frame that waits to be sent; its first bytes may be sent already. */
struct client_out {
    STAILQ_ENTRY(client_out) link;
    uint8_t *bytes;
    size_t size, done;
    int fds[2];
    size_t fd_count;
};

/* A request in flight. */
struct client_asked {
    uint32_t tag;
    uint8_t type; /* enum frame_type */
};

/* A message that arrived and was not returned as an event yet. */
struct client_in {
    STAILQ_ENTRY(client_in) link;
    struct frame_header frame;
    struct message message;
};

/* CLOSED: the daemon closed the connection with a reason; further data is ignored. DEAD: the daemon violated the
 * protocol. Nothing is sent in either state. */
enum client_state { CLIENT_GREETING, CLIENT_OPEN, CLIENT_CLOSED, CLIENT_DEAD };

struct profd_client {
    enum client_state state;
    enum profd_status failure; /* of CLIENT_CLOSED and CLIENT_DEAD */
    struct profd_error error;
    STAILQ_HEAD(client_outs, client_out) out;
    size_t out_bytes;
    STAILQ_HEAD(client_ins, client_in) in;
    struct client_in *taken; /* what the latest event points into */
    struct client_asked *asked;
    size_t asked_count, asked_capacity;
    uint32_t tag;          /* the latest tag of this client */
    uint64_t run, refused; /* as stated by the daemon (struct message_welcome) */
    bool claims;           /* this user may send for others */
    uint32_t payload_max, in_flight_max;
    uint8_t header[FRAME_HEADER_SIZE];
    size_t header_got;
    struct frame_header frame;
    uint8_t *payload;
    size_t payload_got, payload_capacity;
};

/* Queues a whole frame. Takes over its block and descriptors, after failure too. It gets the tag `with`, or a new one
 * if that is 0. tag may be NULL. Unless it is a DECLINE, it counts as in flight until it is answered. */
enum profd_status client_queue(struct profd_client *c, uint8_t *frame, size_t size, const int *fds, size_t fd_count,
                               uint32_t with, uint32_t *tag, struct profd_error *e);
/* Returns the number of bytes that are queued and not sent yet. */
size_t client_queued(const struct profd_client *c);

/* Queues an executable as profd_client_send_object does. m has its name and an optional claim; fds are its file and, if
 * there is one, its debug file, which the client closes in every case. */
enum profd_status client_send_files(struct profd_client *c, const struct profd_event *want,
                                    const struct message_object *m, const int *fds, size_t fd_count, uint32_t *tag,
                                    struct profd_error *e);

/* The inside of struct profd_conn: a client, a socket and a clock. */

/* An executable for a WANT_OBJECT of the daemon: it is open, or a path that is opened when it is asked for. */
struct conn_offer {
    const struct profd_executable *executable; /* NULL: see path */
    char *path, *build_id;
};

/* An executable that was sent and has not been answered. */
struct conn_sent {
    uint32_t tag;
    bool earlier; /* for an upload from the spool */
    char *path;
};

/* An open executable. */
struct conn_file {
    int fd; /* the connection closes it */
    const char *name;
    bool claimed; /* it is of a process of user uid, which is not the sender's */
    uint32_t uid;
};
/* Finds the executable of a build. Returns false if there is none. name lives until the next call. */
typedef bool (*conn_supply)(void *context, const char *build_id, struct conn_file *out);

struct profd_conn {
    struct address address;
    char token[512]; /* for http; "" if none */
    profd_http http; /* may be NULL */
    void *http_context;
    int fd; /* −1 for http */
    bool send_broken;
    struct profd_client *client;
    char daemon[128];
    uint32_t connect_ms, answer_ms;
    int64_t progress; /* ms on the monotonic clock when a byte last moved */
    struct conn_offer *offers;
    size_t offer_count, offer_capacity;
    conn_supply supply; /* finds executables that are not among the offers; may be NULL */
    void *supply_context;
    struct conn_sent *sent;
    size_t sent_count, sent_capacity;
    profd_outcome_sink refused; /* called for each executable that is not stored; may be NULL */
    void *refused_context;
    uint8_t input[65536];
};

/* Returns the monotonic clock in milliseconds. */
int64_t conn_clock(void);
/* Sets the address of the options, which may be NULL, or the default address. */
enum profd_status conn_address(const struct profd_options *o, struct address *out, struct profd_error *e);
/* Moves bytes until there is an event (*got), or until the deadline of conn_clock (*got is false). Answers each
 * WANT_OBJECT itself. An event CLOSED and a lost connection become the status. */
enum profd_status conn_step(struct profd_conn *c, int64_t deadline, struct profd_event *event, bool *got,
                            struct profd_error *e);
/* Waits for an event as conn_step does. TIMEOUT if no byte moved for answer_ms. */
enum profd_status conn_wait(struct profd_conn *c, struct profd_event *event, struct profd_error *e);
/* Queues an executable; want is NULL if it was not requested. Its ACK or NACK is also an event. */
enum profd_status conn_send_executable(struct profd_conn *c, const struct profd_event *want,
                                       const struct profd_executable *x, bool earlier, struct profd_error *e);
/* Reports each executable that waits for its answer to the sink, because none will arrive. */
void conn_give_up_executables(struct profd_conn *c, enum profd_status status, const char *sentence);
/* Offers the file at a path as long as it has that build-id. A repeat is ignored. */
enum profd_status conn_offer_path(struct profd_conn *c, const char *build_id, const char *path, struct profd_error *e);

/* The spool: uploads that could not be delivered, one file each, until the next delivery.
 * A file is written under a name beginning with "." , synced, and renamed: what has the right name is whole.
 * File: "profd-spool 1\n", lines "object BUILD-ID PATH\n", an empty line, and the UPLOAD frame as it is sent. */

struct spool;

/* An executable that the daemon may ask for later. */
struct spool_object {
    const char *build_id, *path;
};

struct spool_entry {
    char name[64];
    uint64_t size;
    uint64_t time; /* ns since the epoch */
};

/* An entry's contents; all in one block. */
struct spool_upload {
    size_t object_count;
    struct spool_object *objects;
    const uint8_t *frame;
    size_t frame_size;
    void *block;
};

/* Opens the directory, and creates it with mode 0700 if create is set. Deletes uploads older than LIMIT_SPOOL_DAYS at
 * time now (ns), and incomplete files. NOT_FOUND if it does not exist; UNTRUSTED if other users have access;
 * UNAVAILABLE if the environment names none. */
enum profd_status spool_open(bool create, uint64_t now, struct spool **out, struct profd_error *e);
/* Accepts NULL. */
void spool_close(struct spool *s);
const char *spool_path(const struct spool *s);
/* Returns the number of entries that spool_open deleted because of their age. */
size_t spool_expired(const struct spool *s);

/* Takes the lock for delivery. False if another process delivers this spool. */
bool spool_lock(struct spool *s);

/* Writes one upload durably. FULL if the spool would exceed LIMIT_SPOOL_BYTES. A repeat of an id is written once.
 * Objects with a line break in their path are left out. */
enum profd_status spool_add(struct spool *s, const struct profd_id *id, const struct spool_object *objects,
                            size_t object_count, const uint8_t *frame, size_t frame_size, struct profd_error *e);

/* Lists the entries, the oldest sender first, in one block that the caller frees. O(n log n). */
enum profd_status spool_list(struct spool *s, struct spool_entry **out, size_t *n, struct profd_error *e);
/* Reads an entry and checks its form. spool_upload_done frees. MALFORMED if it is not a spooled upload. */
enum profd_status spool_read(struct spool *s, const char *name, struct spool_upload *out, struct profd_error *e);
void spool_upload_done(struct spool_upload *u);
/* Deletes an entry. Another process may have deleted it already. */
void spool_remove(struct spool *s, const char *name);

/* Deliveries of programs that run for a long time. */

/* Lets the daemon's requests for executables be answered by this function. */
void delivery_set_supply(struct profd_delivery *d, conn_supply supply, void *context);
/* Returns whether the daemon takes uploads for other users from this one, as it stated at the latest connection. Before
 * the first connection: whether this user is root. */
bool delivery_may_claim(const struct profd_delivery *d);
/* Handles the daemon's answers and requests without waiting. Without a daemon, connects again at most once a second. */
void delivery_poll(struct profd_delivery *d);

#endif
