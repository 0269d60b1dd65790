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
#include "proto/status.h"

/* The daemon's address, and whether the daemon that listens there is accepted. */

struct address {
    char text[192];            /* "unix:/path", "http://127.0.0.1:PORT" or "https://HOST:PORT" */
    bool http;                 /* or https; then socket is not set */
    struct sockaddr_un socket; /* size bytes of it */
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

/* The inside of struct profd_client: two queues and what is asked. No I/O. */

/* A frame that waits to be sent, wholly or in part. */
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

/* A message that arrived and was not yet looked at. */
struct client_in {
    STAILQ_ENTRY(client_in) link;
    struct frame frame;
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
    struct frame frame;
    uint8_t *payload;
    size_t payload_got, payload_capacity;
};

/* Queues a whole frame. Takes over its block and descriptors, even on failure. If *tag is 0 the frame gets a new tag,
 * else that one. expect_answer: it counts as in flight until answered. */
enum profd_status client_queue(struct profd_client *c, uint8_t *frame, size_t size, const int *fds, size_t fd_count,
                               uint32_t *tag, bool expect_answer, struct profd_error *e);
/* Bytes queued and not yet sent. */
size_t client_queued(const struct profd_client *c);

/* Queues an executable as profd_client_send_object does. m has its name and perhaps a claim; fds are its file and
 * perhaps its debug file, which the client closes in every case. */
enum profd_status client_send_files(struct profd_client *c, const struct profd_event *want,
                                    const struct message_object *m, const int *fds, size_t fd_count, uint32_t *tag,
                                    struct profd_error *e);

/* The inside of struct profd_conn: a client, a socket and a clock. */

/* An executable to answer WANT_OBJECT with: open, or a path that is looked at when it is asked for. */
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
/* Finds the executable of a build; false: there is none. name lives until the next call. */
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
    conn_supply supply; /* asked for what is not among the offers; may be NULL */
    void *supply_context;
    struct conn_sent *sent;
    size_t sent_count, sent_capacity;
    profd_outcome_sink refused; /* called for each executable that is not stored; may be NULL */
    void *refused_context;
    uint8_t input[65536];
};

/* Milliseconds of the monotonic clock. */
int64_t conn_clock(void);
/* From options (which may be NULL) the address, default or not. */
enum profd_status conn_address(const struct profd_options *o, struct address *out, struct profd_error *e);
/* Moves bytes until an event is there (*got), or the deadline (conn_clock) has passed (*got false). WANT_OBJECT is
 * answered here. An event CLOSED and a lost connection come back as the status. */
enum profd_status conn_step(struct profd_conn *c, int64_t deadline, struct profd_event *event, bool *got,
                            struct profd_error *e);
/* As conn_step, but waits until answer_ms passed without any byte moving: TIMEOUT. */
enum profd_status conn_wait(struct profd_conn *c, struct profd_event *event, struct profd_error *e);
/* Queues an executable, requested or not (want NULL). Its ACK or NACK is an event, too. */
enum profd_status conn_send_executable(struct profd_conn *c, const struct profd_event *want,
                                       const struct profd_executable *x, bool earlier, struct profd_error *e);
/* No answer will arrive: reports each executable that waits for one to the sink. */
void conn_give_up_executables(struct profd_conn *c, enum profd_status status, const char *sentence);
/* Remembers a path; its file is offered only while it still has that build-id. A repeat is ignored. */
enum profd_status conn_offer_path(struct profd_conn *c, const char *build_id, const char *path, struct profd_error *e);

/* The spool: uploads that could not be delivered, one file each, until the next delivery (DECISIONS 21).
 * A file is written under a name beginning with "." , synced, and renamed: what has the right name is whole.
 * File: "profd-spool 1\n", lines "object BUILD-ID PATH\n", an empty line, and the UPLOAD frame as it is sent. */

struct spool;

/* What may be asked for later. */
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

/* Opens the directory, and creates it (0700) if create. NOT_FOUND: it does not exist. UNTRUSTED: other users have
 * access. UNAVAILABLE: the environment names none. Deletes uploads older than LIMIT_SPOOL_DAYS at time now (ns), and
 * incomplete files. */
enum profd_status spool_open(bool create, uint64_t now, struct spool **out, struct profd_error *e);
/* Accepts NULL. */
void spool_close(struct spool *s);
const char *spool_path(const struct spool *s);
/* Number of entries that spool_open found too old and deleted. */
size_t spool_expired(const struct spool *s);

/* Takes the lock for delivery; false: another process is delivering this spool. */
bool spool_lock(struct spool *s);

/* Writes one upload durably. FULL if the spool would exceed LIMIT_SPOOL_BYTES. A repeat of an id is written once.
 * Objects with a line break in their path are left out. */
enum profd_status spool_add(struct spool *s, const struct profd_id *id, const struct spool_object *objects,
                            size_t object_count, const uint8_t *frame, size_t frame_size, struct profd_error *e);

/* Entries, oldest sender first, in one block that the caller frees. O(n log n). */
enum profd_status spool_list(struct spool *s, struct spool_entry **out, size_t *n, struct profd_error *e);
/* Reads one and checks its form; spool_upload_done frees. MALFORMED: not a spooled upload. */
enum profd_status spool_read(struct spool *s, const char *name, struct spool_upload *out, struct profd_error *e);
void spool_upload_done(struct spool_upload *u);
/* Deletes one; it is no failure that another process did. */
void spool_remove(struct spool *s, const char *name);

/* Deliveries of programs that run for a long time. */

/* Executables that the daemon requests come from this function. */
void delivery_set_supply(struct profd_delivery *d, conn_supply supply, void *context);
/* True if the daemon takes uploads for other users from this one, as it said at the latest connection; before the
 * first, if this user is root. */
bool delivery_may_claim(const struct profd_delivery *d);
/* Handles what the daemon has answered and requested, without waiting. Without a daemon, connects again, at most once
 * a second. */
void delivery_poll(struct profd_delivery *d);

#endif
