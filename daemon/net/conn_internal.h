/* What the files of a connection share. Private to conn*.c. */
#ifndef PROFD_NET_CONN_INSIDE_H
#define PROFD_NET_CONN_INSIDE_H

#include <event2/event.h>
#include <event2/event_struct.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/time.h>

#include "core/hashmap.h"
#include "net/conn.h"

#define CONN_SCRATCH (64u << 10)
#define CONN_FDS_MAX 16 /* descriptors that may wait for their frame */
#define CONN_POLLS 1024 /* connections in one poll */

/* What a user holds of that is limited per user. */
struct conn_user {
    uint32_t uid;
    size_t connections;
    size_t bytes;   /* of bodies */
    size_t answers; /* bytes of answers not taken yet */

    struct timeval pass;          /* the latest pass of the loop in which connections of the user were read, */
    unsigned reads;               /* and their number */
    TAILQ_HEAD(, conn) postponed; /* connections that wait for the next pass */
    TAILQ_ENTRY(conn_user) next;  /* in the list of users with such connections, */
    bool queued;                  /* if it is in that list */
};

/* Something to be written: a block, or pieces made on demand. */
struct conn_output {
    STAILQ_ENTRY(conn_output) next;
    uint8_t *block;
    size_t size, sent;
    int fd; /* goes with the first byte; −1: none */
};

struct conn {
    struct conn_group *group;
    struct peer peer;
    struct conn_user *owner;
    conn_id id;
    void *user;
    int fd;
    enum conn_state state;
    unsigned busy; /* depth of calls that will settle the connection when they end */
    bool failed;   /* being closed for an error: nothing is read any more */
    bool broken;   /* the socket is useless: close without writing */
    bool unproven; /* no whole frame after HELLO yet; then in the group's list */
    TAILQ_ENTRY(conn) unproven_next;
    bool deaf;      /* the peer reads no more answers; frames that it sent before are still handled */
    bool gone;      /* the peer was seen to have hung up; it becomes deaf when the connection is next left */
    bool asked;     /* whether the peer is gone was determined since the latest read */
    bool granted;   /* it was postponed, and is to be read now */
    bool postponed; /* readable, and not read in this pass of the loop; then in its user's list */
    TAILQ_ENTRY(conn) postponed_next;
    bool reading, writing; /* which events are armed */

    /* input */
    uint8_t header[FRAME_HEADER_SIZE];
    size_t header_got;
    struct frame_header frame;          /* valid when header_got is whole, */
    const struct conn_handler *handler; /* and what handles it; NULL of HELLO */
    struct conn_body body;
    size_t body_got;
    bool body_ready; /* memory was given */
    bool crowded;    /* not read until fewer descriptors of the user are being closed; counted in the group */
    bool waiting;    /* for the budget; then in the group's list */
    TAILQ_ENTRY(conn) wait_next;
    uint8_t *held; /* read but not looked at, while the connection is paused */
    size_t held_size, held_at;
    int fds[CONN_FDS_MAX]; /* FIFO of descriptors that arrived */
    unsigned fd_count;
    size_t in_flight;

    /* output */
    STAILQ_HEAD(conn_outputs, conn_output) outputs;
    size_t output_bytes;
    STAILQ_HEAD(conn_sources, conn_source) sources;
    size_t source_bytes;

    /* deadlines, ms of loop_now, 0: none */
    uint64_t read_deadline, write_deadline, armed, paused_since;
    struct event read_event, write_event, timer_event;
};

struct conn_slot {
    struct conn *conn;
    uint32_t generation;
    uint32_t next_free;
};

struct conn_group {
    struct conn_config config;
    struct hashmap users; /* uid → struct conn_user */
    struct conn_slot *slots;
    uint32_t slot_count, slot_free; /* slot_free: index + 1 of the first free slot */
    size_t bodies;
    TAILQ_HEAD(conn_waiting_list, conn) waiting;
    TAILQ_HEAD(conn_unproven_list, conn) unproven; /* in the order of their accept */
    struct conn_counts counts;
    bool draining;
    bool urgent;                     /* what has arrived is read although its user is crowded */
    size_t crowded;                  /* connections that are */
    struct event crowd_event;        /* looks whether they still are */
    TAILQ_HEAD(, conn_user) sharing; /* users with postponed connections */
    size_t sharing_count;
    struct event share_event, hangup_event;
    size_t limit; /* of connections, SIZE_MAX: the configuration's alone */
    uint8_t scratch[CONN_SCRATCH];
};

/* The files of a connection, from the top: conn.c has the set of them and their events, conn_read.c takes bytes to
 * handlers, conn_limits.c says what each user may hold, conn_write.c has state, deadlines and answers. Each calls only
 * those below it. */

/* conn_write.c */
/* Moves if the move is allowed. */
bool conn_move(struct conn *c, enum conn_state state);
/* Sets a deadline (ms of loop_now; 0 clears) and the timer with it. */
void conn_set_read_deadline(struct conn *c, uint64_t at);
/* The timer, for the earlier of the deadlines. */
void conn_arm_timer(struct conn *c);
/* Closes descriptors that came for a frame. */
void conn_fds_close(const struct conn *c, int *fds, unsigned *count);
/* Can the peer read no more answers? Asks the socket once after each read; frees the unread answers if so. Frames that
 * were received before may still be handled. */
bool conn_is_deaf(struct conn *c);
/* A request is in flight: looks from time to time whether peers have hung up. */
void conn_hangup_watch(struct conn_group *g);
void conn_hangup_look(evutil_socket_t fd, short what, void *group);
/* Something changed for the connection outside its own events: it is settled from the loop. */
void conn_touch(struct conn *c);
bool conn_has_output(const struct conn *c);
void conn_write(struct conn *c);
void conn_output_clear(struct conn *c);

/* conn_limits.c */
/* The user's entry, made if need be; NULL when out of memory. O(1) expected. */
struct conn_user *conn_user_open(struct conn_group *g, uint32_t uid);
/* Forgets the entry if it holds nothing. */
void conn_user_release(struct conn_group *g, struct conn_user *user);
/* The connection is readable: may it be read in this pass of the loop? Otherwise it is postponed. */
bool conn_share_take(struct conn *c);
/* It is read now, or never: it is not postponed any more. */
void conn_share_leave(struct conn *c);
/* Has postponed connections read, of each user as many as one pass may read. */
void conn_share_serve(evutil_socket_t fd, short what, void *group);
/* Marks the connection crowded while LIMIT_CLOSING_PER_UID descriptors of its user are being closed, and the group
 * looks again soon. True if it is. */
bool conn_crowd(struct conn *c);
/* The group looks at its crowded connections again soon. */
void conn_crowd_look_soon(struct conn_group *g);
/* Memory for the body of the current frame, or the connection waits for it. */
void conn_budget_ask(struct conn *c);
void conn_budget_leave(struct conn *c);

/* conn_read.c */
void conn_read(struct conn *c);
/* Looks at held bytes as far as it may. */
void conn_read_held(struct conn *c);
/* May bytes of this connection be looked at now? */
bool conn_may_read(const struct conn *c);
/* The connection has sent a whole frame after HELLO, or ends. It does not give way to a new one any more. */
void conn_prove(struct conn *c);

#endif
