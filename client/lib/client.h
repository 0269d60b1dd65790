/* The inside of struct profd_client: two queues and what is asked. No I/O. */
#ifndef PROFD_CLIENT_CLIENT_H
#define PROFD_CLIENT_CLIENT_H

#include <sys/queue.h>

#include "profd.h"
#include "proto/frame.h"
#include "proto/message.h"

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

#endif
