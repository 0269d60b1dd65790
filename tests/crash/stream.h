/* The campaign's client: uploads with ids over real connections, through libprofd's protocol layer. What was
 * acknowledged is noted in memory shared with the judge, which outlives the client and every daemon. */
#ifndef PROFD_TESTS_CRASH_STREAM_H
#define PROFD_TESTS_CRASH_STREAM_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "profd.h"

#define STREAM_IDS (1u << 20) /* uploads of one database */
#define STREAM_EVERY 64u      /* one upload of so many names the executable */
#define STREAM_LANES 3u       /* connections, each a sender of its own */
#define STREAM_BUILD "c0ffee00c0ffee00c0ffee00c0ffee00c0ffee00"
#define STREAM_LIBRARY "beef0000beef0000beef0000beef0000beef0000"

/* Where an upload's number shows in the sums: two arcs and a bin that no other upload has, so that the sums say which
 * uploads are in, how often, and whether wholly. */
#define STREAM_LOW UINT64_C(0x100000)
#define STREAM_HIGH (STREAM_LOW + 16 * (uint64_t)STREAM_IDS)
#define STREAM_SECOND (STREAM_HIGH + 16 * (uint64_t)STREAM_IDS)
#define STREAM_SHARED_CALLEE UINT64_C(0x40) /* an arc that every upload has, once */

enum stream_state { STREAM_NEW, STREAM_SENT, STREAM_ACKED };

struct stream_lane {
    _Atomic uint32_t next; /* uploads begun */
    _Atomic uint32_t idle; /* nothing is due and nothing new may begin */
    _Atomic uint64_t acked, repeated, refused;
    _Atomic uint64_t contradicted; /* a repeat of what had been acknowledged was taken for new */
    _Atomic uint64_t rejected;     /* refused for good: must not happen */
    uint8_t sender[PROFD_SENDER_SIZE];
};

struct stream {
    _Atomic uint32_t stop, quit;   /* begin no new upload; end */
    _Atomic uint32_t pause_ns;     /* between two rounds of a lane; 0: as fast as it goes */
    _Atomic uint32_t last_status;  /* of the latest refusal */
    bool early;                    /* negative control: note as acknowledged what was merely sent */
    bool forgetful;                /* negative control: send again under another id */
    bool unstacked;                /* negative control: some uploads are sent without their stack */
    uint32_t in_flight, most;      /* unanswered uploads of a lane; uploads to send at all */
    uint32_t hours;                /* their windows lie in this many hours back from base */
    int64_t base;                  /* ns since the epoch */
    int64_t keep;                  /* ns: the daemon may remove days that ended longer ago; 0: none */
    char socket[108], reason[512]; /* reason: of the latest refusal */
    char executable[160];          /* build-id of this program; it is delivered on request */
    _Atomic uint32_t executable_acked;
    _Atomic uint8_t sent_before[STREAM_IDS / STREAM_EVERY]; /* 1: upload stream_naming(i) was sent before that */
    struct stream_lane lanes[STREAM_LANES];
    _Atomic uint8_t state[STREAM_IDS];
};

/* The i-th upload that names the executable. */
static inline uint32_t stream_naming(uint32_t i)
{
    return i * STREAM_EVERY + STREAM_EVERY - 1;
}
/* The expected share of upload n. */
static inline uint64_t stream_first_calls(uint32_t n)
{
    return 1 + n % 7;
}
static inline uint64_t stream_second_calls(uint32_t n)
{
    return 3 + n % 5;
}
static inline uint64_t stream_ticks(uint32_t n)
{
    return 1 + n % 3;
}
/* End of its window: the same on every attempt. */
int64_t stream_end(const struct stream *s, uint32_t n);
/* Calls of the whole upload, as the ledger must know them. */
uint64_t stream_calls(uint32_t n);

/* New shared memory with new senders; NULL without memory. */
struct stream *stream_new(const char *socket);
void stream_free(struct stream *s);
/* Starts the client as a child that dies with us. */
pid_t stream_start(struct stream *s);
/* Uploads acknowledged so far. */
uint64_t stream_acked(const struct stream *s);
/* Has it sent all it may begin, and got every acknowledgement? Waits at most ms. */
bool stream_done(const struct stream *s, unsigned ms);
/* Lets the client finish what is due, beginning nothing new, against a living daemon; false if that takes longer than
 * ms. */
bool stream_settle(struct stream *s, unsigned ms);
/* Ends the client. */
void stream_stop(struct stream *s, pid_t pid);

#endif
