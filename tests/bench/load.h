/* The load generator: many connections that deliver uploads as a real client would. Part of `make bench`, not of profd.
 */
#ifndef PROFD_BENCH_LOAD_H
#define PROFD_BENCH_LOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/frame.h"
#include "proto/message.h"

#define LOAD_SUB 64 /* buckets for each power of two: latencies are exact to 1.6 % */

/* A histogram of nanoseconds. */
struct load_latency {
    uint64_t buckets[64 * LOAD_SUB];
    uint64_t count, most;
};
void load_latency_add(struct load_latency *l, uint64_t ns);
/* The value below which this share of all lies. */
uint64_t load_latency_at(const struct load_latency *l, double share);

struct load_options {
    const char *socket, *payload, *target;
    unsigned connections, window, series, renew, askers, warm;
    double seconds, rate;
    uint64_t count;
};

enum load_slot_state { SLOT_FREE, SLOT_QUEUED, SLOT_SENT, SLOT_WAITING };

/* One upload on its way, from its creation to its ACK, whatever happens in between. */
struct load_slot {
    enum load_slot_state state;
    uint32_t tag;
    unsigned attempts;
    uint64_t born, due; /* ns */
    size_t head_size;
    uint8_t head[192]; /* frame header and all fields but the common ones */
};

enum load_state { CONN_DOWN, CONN_GREETING, CONN_UP };

struct load_conn {
    struct load *load;
    int fd;
    enum load_state state;
    bool asker, blocked; /* blocked: the socket took less than was there */
    unsigned attempts;   /* of connecting */
    uint64_t due;        /* when to try again */
    unsigned window;
    struct load_slot *slots;
    uint32_t *queue; /* ring of slots to be sent */
    unsigned queue_first, queue_count;
    size_t sent;      /* bytes of the queue's first */
    uint8_t *control; /* HELLO, DECLINE, QUERY: goes before uploads */
    size_t control_size, control_sent;
    unsigned in_flight; /* slots that are not free */
    uint32_t tag;
    uint8_t sender[UPLOAD_SENDER_SIZE];
    uint32_t sequence;
    uint8_t *input; /* a frame of which a part arrived */
    size_t input_size;
    size_t skip; /* bytes of an answer's piece that nobody looks at */
};

struct load {
    struct load_options options;
    int epoll;
    uint8_t *common; /* fields that all uploads share */
    size_t common_size;
    struct load_conn *conns;
    size_t conn_count, up;
    uint64_t started, acked, duplicates, nacked, busy, retries, reconnects, refused, answers, declined;
    uint64_t acked_in_second, slowest, seconds;
    bool filling, failed;
    uint64_t random[2];
    struct load_latency latency;
};

uint64_t load_now(void);
uint64_t load_random(struct load *l);
/* Says what the daemon did wrong; the program will fail. */
void load_complain(struct load *l, const char *what);

/* load_conn.c */
void load_conn_open(struct load_conn *c);
/* Sends what is queued, as far as the socket takes it. */
void load_conn_write(struct load_conn *c);
void load_conn_read(struct load_conn *c);
/* Creates an upload born at that time. False if the window is full or the connection is down. */
bool load_conn_start(struct load_conn *c, uint64_t born);
/* Brings back what has waited long enough. */
void load_conn_tick(struct load_conn *c, uint64_t now);

/* load_take.c */
/* One frame from the daemon. */
void load_take_frame(struct load_conn *c, const struct frame_header *f, const uint8_t *payload);
/* Queues a message that is no upload. */
void load_conn_say(struct load_conn *c, const struct message *m, uint32_t tag);
void load_conn_drop(struct load_conn *c);

#endif
