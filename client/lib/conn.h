/* The inside of struct profd_conn: a client, a socket and a clock. */
#ifndef PROFD_CLIENT_CONN_H
#define PROFD_CLIENT_CONN_H

#include "lib/address.h"
#include "lib/client.h"

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
/* Returns a connected, non-blocking socket. If the daemon's queue of new connections is full, waits for it. TIMEOUT at
 * the deadline (ms of conn_clock), UNAVAILABLE, FORBIDDEN, UNTRUSTED. */
enum profd_status conn_dial(const struct address *a, int64_t deadline, int *fd, struct profd_error *e);
/* profd_query for an http or https address. */
enum profd_status conn_query_http(struct profd_conn *c, const char *target, const char *if_none_match, profd_sink sink,
                                  void *context, struct profd_error *e);

#endif
