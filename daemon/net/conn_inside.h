/* What the files of a connection share. Private to conn*.c. */
#ifndef PROFD_NET_CONN_INSIDE_H
#define PROFD_NET_CONN_INSIDE_H

#include <event2/event.h>
#include <event2/event_struct.h>

#include "net/conn.h"
#include "net/tally.h"

#define CONN_SCRATCH (64u << 10)
#define CONN_FDS_MAX 16 /* descriptors that may wait for their frame */

/* Something to be written: a block, or pieces made on demand. */
struct conn_output {
    struct conn_output *next;
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
    unsigned busy;         /* depth of calls that will settle the connection when they end */
    bool failed;           /* being closed for an error: nothing is read any more */
    bool broken;           /* the socket is useless: close without writing */
    bool deaf;             /* nobody reads our answers any more; what was sent to us before is heard all the same */
    bool reading, writing; /* which events are armed */

    /* input */
    uint8_t header[FRAME_HEADER_SIZE];
    size_t header_got;
    struct frame frame; /* valid when header_got is whole */
    struct conn_body body;
    size_t body_got;
    bool body_ready; /* memory was given */
    bool waiting;    /* for the budget; then in the group's list */
    struct conn *wait_next, *wait_previous;
    uint8_t *held; /* read but not looked at, while the connection is paused */
    size_t held_size, held_at;
    int fds[CONN_FDS_MAX]; /* FIFO of descriptors that arrived */
    unsigned fd_count;
    size_t in_flight;

    /* output */
    struct conn_output *output_first, *output_last;
    size_t output_bytes;
    struct conn_source *source_first, *source_last;
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
    struct conn *wait_first, *wait_last;
    struct conn_counts counts;
    bool draining;
    size_t limit; /* of connections, SIZE_MAX: the configuration's alone */
    uint8_t scratch[CONN_SCRATCH];
};

/* conn.c */
/* Events, the deadline for HELLO, and the first look. */
void conn_start(struct conn *c);
void conn_free(struct conn *c);
void conn_enter(struct conn *c);
/* Closes, resumes or arms the connection as its state asks; it may be gone afterwards. */
void conn_leave(struct conn *c);
/* Moves if the move is allowed. */
bool conn_move(struct conn *c, enum conn_state state);
/* Sets a deadline (ms of loop_now; 0 clears) and the timer with it. */
void conn_set_read_deadline(struct conn *c, uint64_t at);
void conn_set_write_deadline(struct conn *c, uint64_t at);

/* conn_read.c */
void conn_read(struct conn *c);
/* Looks at held bytes as far as it may. */
void conn_read_held(struct conn *c);
/* May bytes of this connection be looked at now? */
bool conn_may_read(const struct conn *c);

/* conn_frame.c: the header and, later, the whole frame. */
void conn_take_header(struct conn *c);
void conn_take_frame(struct conn *c);

/* conn_budget.c */
/* Memory for the body of the current frame, or the connection waits for it. */
void conn_budget_ask(struct conn *c);
void conn_budget_leave(struct conn *c);

/* conn_fds.c */
/* Takes the descriptors of one recvmsg into the FIFO. PROTOCOL if there are too many, BUSY if
 * the process has no room for them. */
struct msghdr;
enum profd_status conn_fds_take(struct conn *c, struct msghdr *m, struct profd_error *e);
/* After everything read was looked at: does every waiting descriptor have a frame it can belong to? */
enum profd_status conn_fds_check(const struct conn *c, struct profd_error *e);
void conn_fds_close(const struct conn *c, int *fds, unsigned *count);
/* May this connection's user send descriptors? Not while closing earlier ones hangs. */
bool conn_fds_welcome(const struct conn *c);

/* conn_write.c */
/* Something changed for the connection outside its own events: it is settled from the loop. */
void conn_touch(struct conn *c);
void conn_write(struct conn *c);
void conn_output_clear(struct conn *c);

#endif
