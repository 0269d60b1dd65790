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

/* What each user holds of things that are limited per user. Loop thread only. */

struct conn;

struct tally_entry {
    uint32_t uid;
    size_t connections;
    size_t bytes;   /* of bodies */
    size_t answers; /* bytes of answers not taken yet */

    /* conn_share.c */
    struct timeval pass;           /* the latest pass of the loop in which connections of the user were read, */
    unsigned reads;                /* and their number */
    TAILQ_HEAD(, conn) postponed;  /* connections that wait for the next pass */
    TAILQ_ENTRY(tally_entry) next; /* in the list of users with such connections, */
    bool queued;                   /* if it is in that list */
};

struct tally {
    struct hashmap of_uid; /* uid → struct tally_entry */
};

void tally_init(struct tally *t);

/* The user's entry, made if need be; NULL when out of memory. O(1) expected. */
struct tally_entry *tally_open(struct tally *t, uint32_t uid);
/* Forgets the entry if it holds nothing. */
void tally_release(struct tally *t, struct tally_entry *entry);
/* Frees all entries. */
void tally_done(struct tally *t);

#define CONN_SCRATCH (64u << 10)
#define CONN_FDS_MAX 16 /* descriptors that may wait for their frame */

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
    struct tally_entry *tally;
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
    struct frame frame; /* valid when header_got is whole */
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
    struct tally tally;
    struct conn_slot *slots;
    uint32_t slot_count, slot_free; /* slot_free: index + 1 of the first free slot */
    size_t bodies;
    TAILQ_HEAD(conn_waiting_list, conn) waiting;
    TAILQ_HEAD(conn_unproven_list, conn) unproven; /* in the order of their accept */
    struct conn_counts counts;
    bool draining;
    bool urgent;                       /* what has arrived is read although its user is crowded */
    size_t crowded;                    /* connections that are */
    struct event crowd_event;          /* looks whether they still are */
    TAILQ_HEAD(, tally_entry) sharing; /* users with postponed connections */
    size_t sharing_count;
    struct event share_event, hangup_event;
    size_t limit; /* of connections, SIZE_MAX: the configuration's alone */
    uint8_t scratch[CONN_SCRATCH];
};

/* The files of a connection. Each calls only those that stand above it; conn_group.c calls all of them. */

/* conn_state.c */
/* Moves if the move is allowed. */
bool conn_move(struct conn *c, enum conn_state state);
/* The connection has sent a whole frame after HELLO, or ends. It does not give way to a new one any more. */
void conn_prove(struct conn *c);
/* Sets a deadline (ms of loop_now; 0 clears) and the timer with it. */
void conn_set_read_deadline(struct conn *c, uint64_t at);
void conn_set_write_deadline(struct conn *c, uint64_t at);
/* The timer, for the earlier of the deadlines. */
void conn_arm_timer(struct conn *c);

/* conn_fds.c */
/* Appends the descriptors of one recvmsg to the FIFO. PROTOCOL if there are too many, BUSY if the process has no free
 * descriptors. */
struct msghdr;
enum profd_status conn_fds_take(struct conn *c, struct msghdr *m, struct profd_error *e);
/* After everything read was looked at: does every waiting descriptor have a frame it can belong to? */
enum profd_status conn_fds_check(const struct conn *c, struct profd_error *e);
/* Closes those that came for a frame. */
void conn_fds_close(const struct conn *c, int *fds, unsigned *count);
/* Marks the connection crowded while LIMIT_CLOSING_PER_UID descriptors of its user are being closed, and the group
 * looks again soon. True if it is. */
bool conn_fds_crowd(struct conn *c);
/* The group looks at its crowded connections again soon. */
void conn_fds_look_soon(struct conn_group *g);

/* conn_share.c */
/* The connection is readable: may it be read in this pass of the loop? Otherwise it is postponed. */
bool conn_share_take(struct conn *c);
/* It is read now, or never: it is not postponed any more. */
void conn_share_leave(struct conn *c);
/* Has postponed connections read, of each user as many as one pass may read. */
void conn_share_serve(evutil_socket_t fd, short what, void *group);

/* conn_hangup.c */
/* A request is in flight: looks from time to time whether peers have hung up. */
void conn_hangup_watch(struct conn_group *g);
void conn_hangup_look(evutil_socket_t fd, short what, void *group);

/* conn_write.c */
/* Can the peer read no more answers? Asks the socket once after each read; frees the unread answers if so. Frames that
 * were received before may still be handled. */
bool conn_is_deaf(struct conn *c);
/* Something changed for the connection outside its own events: it is settled from the loop. */
void conn_touch(struct conn *c);
void conn_write(struct conn *c);
void conn_output_clear(struct conn *c);

/* conn_budget.c */
/* Memory for the body of the current frame, or the connection waits for it. */
void conn_budget_ask(struct conn *c);
void conn_budget_leave(struct conn *c);

/* conn_frame.c: the header and, later, the whole frame. */
void conn_take_header(struct conn *c);
void conn_take_frame(struct conn *c);

/* conn_read.c */
void conn_read(struct conn *c);
/* Looks at held bytes as far as it may. */
void conn_read_held(struct conn *c);
/* May bytes of this connection be looked at now? */
bool conn_may_read(const struct conn *c);

/* conn_events.c */
/* Events, the deadline for HELLO, and the first look. */
void conn_start(struct conn *c);
void conn_free(struct conn *c);
void conn_enter(struct conn *c);
/* Closes, resumes or arms the connection as its state asks; it may be gone afterwards. */
void conn_leave(struct conn *c);

#endif
