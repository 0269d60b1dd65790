/* Between the files of hostconns.h. */
#ifndef PROFD_GATE_HOSTCONNS_INTERNAL_H
#define PROFD_GATE_HOSTCONNS_INTERNAL_H

#include <netinet/in.h>
#include <sys/queue.h>

#include "gate/frames.h"
#include "gate/hostconns.h"

enum hostconn_state {
    HOSTCONN_HANDSHAKE,
    HOSTCONN_OPEN,
    HOSTCONN_REFUSING, /* the rest of the output is written, nothing is read any more */
    HOSTCONN_LINGERING /* what still comes is thrown away, so that closing does not destroy the answer under way */
};

/* What a connection waits for before it is read further. */
enum hostconn_wait {
    HOSTCONN_READY,
    HOSTCONN_FOR_MEMORY,
    HOSTCONN_FOR_LARGE,
    HOSTCONN_FOR_HOST, /* other connections of the same host have the memory that a host may have */
    HOSTCONN_FOR_DAEMON,
    HOSTCONN_WAITS
};

/* What the deadline is of; each has its own time (hostconn_deadline.c). */
enum hostconn_phase {
    HOSTCONN_PHASE_HANDSHAKE,
    HOSTCONN_PHASE_HELLO,
    HOSTCONN_PHASE_IDLE,
    HOSTCONN_PHASE_ENROL,
    HOSTCONN_PHASE_HEADER,
    HOSTCONN_PHASE_BODY,
    HOSTCONN_PHASE_WAIT,
    HOSTCONN_PHASE_WRITE,
    HOSTCONN_PHASE_LINGER
};

struct hostconn {
    TAILQ_ENTRY(hostconn) next, waits; /* all, oldest first; those that wait for the same */
    struct hostconns *all;
    uint64_t id; /* low 16 bits: index into the table */
    int fd;
    SSL *ssl;
    struct in6_addr address; /* an IPv4 one is mapped */
    struct event *readable, *writable, *timer;
    enum hostconn_state state;
    enum frames_stage stage, ready; /* now, and after HELLO */
    enum hostconn_wait wait;
    enum hostconn_phase phase;
    int64_t since;            /* ms of the monotonic clock: when the phase began */
    struct tls_identity host; /* from the end of the handshake on */
    unsigned in_flight;
    bool wants_write; /* TLS cannot go on before the descriptor is writable */

    uint8_t header[FRAME_HEADER_SIZE];
    size_t header_got, got; /* of header; of the payload */
    struct frame frame;
    uint8_t *bytes; /* header, payload, place for what is added */
    size_t charge;  /* of bytes: in hostconns.memory, or of a large frame in hostconns.large_memory */

    uint8_t *output;
    size_t output_size, output_sent, output_capacity;
};

TAILQ_HEAD(hostconn_list, hostconn);

struct hostconns {
    struct hostconns_config config;
    SSL_CTX *context;
    struct revoked *revoked;
    struct event *acceptable, *resume;
    struct hostconn_list conns;
    struct hostconn_list queues[HOSTCONN_WAITS]; /* of those that wait, by what for; that of HOSTCONN_READY is empty */
    unsigned count;
    struct hostconns_counts counts; /* without connections */
    uint64_t generation;
    struct hostconn **table; /* most entries */
    size_t memory;           /* of all bytes that are charged: small frames, and those on their way to the daemon */
    size_t large_memory;     /* large frames that are received */
    int64_t enrolled_since;  /* the second of the monotonic clock in which enrolments are counted */
    unsigned enrolled, renewed;
    struct in6_addr enrolled_from[LIMIT_GATE_ENROLMENTS_PER_SECOND];
    uint8_t renewed_by[LIMIT_GATE_ENROLMENTS_PER_SECOND][TLS_HOST_SIZE];
    uint8_t *keys; /* that the centre has revoked */
    size_t key_count;
};

/* hostconn.c */
/* Has the centre revoked the key of this host? O(n). */
bool hostconn_is_revoked(const struct hostconns *h, const struct tls_identity *host);
/* Takes over the descriptor; closes it when out of memory. */
void hostconn_open(struct hostconns *h, int fd, const struct in6_addr *address);
/* Goes on with whatever is possible; c may be gone afterwards. */
void hostconn_progress(struct hostconn *c);
/* Ends it with a NACK. c may be gone afterwards. */
void hostconn_refuse(struct hostconn *c, uint32_t tag, enum profd_status status, const char *sentence);
void hostconn_close(struct hostconn *c);

/* hostconn_frames.c */
/* Changes what the connection waits for, and its place in the queues. */
void hostconn_set_wait(struct hostconn *c, enum hostconn_wait wait);
/* After a header: false, with status and sentence, if the frame is refused. */
enum profd_status hostconn_begin_frame(struct hostconn *c, struct profd_error *e);
/* Takes memory for the frame after its header; false: it waits. */
bool hostconn_take_memory(struct hostconn *c);
/* After the last byte of a frame. */
enum profd_status hostconn_finish_frame(struct hostconn *c, struct profd_error *e);
void hostconn_drop_frame(struct hostconn *c);
/* Appends a frame to the output. False when out of memory. */
bool hostconn_put(struct hostconn *c, const struct frame *f, const uint8_t *payload);
bool hostconn_put_nack(struct hostconn *c, uint32_t tag, enum profd_status status, const char *sentence);

/* hostconn_deadline.c */
/* Sets the timer for what the connection is doing now, if that has changed. */
void hostconn_set_deadline(struct hostconn *c);
/* Why the time is over. */
const char *hostconn_explain_deadline(const struct hostconn *c);
/* After the deadline of a frame: true if so much of it has come that it gets more time. */
bool hostconn_extend_deadline(struct hostconn *c);
/* True for a handshake that has taken seconds and for which nothing has come. */
bool hostconn_is_stale(const struct hostconn *c);

/* hostconn_rates.c */
/* The same IPv4 address, or IPv6 network of 64 bits. */
bool hostconn_same_site(const struct in6_addr *a, const struct in6_addr *b);
/* May this ENROLL or RENEW be passed on in this second? Counts it. BUSY. */
enum profd_status hostconn_may_enrol(const struct hostconn *c, struct profd_error *e);

#endif
