/* A machine of steps that moves data between the database and ClickHouse. A step is run by threads of the machine,
 * which read the database and talk to ClickHouse, or it is a job of the writer. Then the loop chooses the next step.
 * Step 0 looks for work. After a failure the machine pauses, longer each time, and begins with step 0. */
#ifndef PROFD_TIER_STEPS_H
#define PROFD_TIER_STEPS_H

#include <stdatomic.h>

#include "net/work.h"
#include "tier/clickhouse.h"
#include "writer/writer.h"

#define STEPS_BACK_OFF_MS 1000u
#define STEPS_LANES 2u

/* What the sealer and the mirror are given. */
struct sealer_config {
    struct loop *loop;
    struct writer *writer;
    const struct clickhouse_address *address;
    const char *ca;       /* file with the certificates of the CAs that are trusted; NULL: the system's */
    const char *name;     /* of this centre */
    const char *database; /* path of the database */
    int64_t seal_after;   /* ns after its end, a day is sealed */
    /* On the loop: ns since the epoch; 0: the clock is in doubt, and nothing is sealed. */
    int64_t (*get_clock)(void *context);
    void *context;
};

struct steps;

/* Bit i of a set is step i. */
struct steps_type {
    const char *thread;                            /* name of the threads */
    uint32_t writing, writing_when_full, parallel; /* jobs of the writer; those that remove rows; steps of all lanes */
    size_t reply_bytes;
    unsigned look_ms, back_off_ms_most;
    const char *failing, *working; /* the log's sentences when failures begin and end */
    /* On the loop, before a step. False: not now, look_ms later. May be NULL. */
    bool (*is_ready)(struct steps *s);
    enum profd_status (*read)(struct steps *s, unsigned lane, struct profd_error *e);
    enum profd_status (*write)(struct steps *s, struct store *writer, struct profd_error *e);
    /* On the loop, after a step that succeeded: sets the next step, and returns the pause before it in ms. */
    unsigned (*choose)(struct steps *s);
    /* On the loop, after one that failed. True: the failure is noted, and is that of one block or day only, so that
     * others need not wait. */
    bool (*excuse)(struct steps *s, enum profd_status status, const struct profd_error *e);
};

/* A thread with its connection. */
struct steps_lane {
    struct work_item item;
    struct clickhouse *client;
    enum profd_status status;
    struct profd_error error;
};

/* The loop, the lanes or the writer have it, one at a time. */
struct steps {
    const struct steps_type *type;
    struct sealer_config config;
    struct store *store; /* a reader */
    struct steps_lane lanes[STEPS_LANES];
    unsigned lane_count;
    struct clickhouse_limits limits; /* of their connections */
    int step;
    /* steps.c sets the rest; excuse may count a failure. */
    struct loop_timer *timer;
    struct work *work;
    struct writer_job job;
    unsigned running; /* lanes, or the job */
    bool stopped;
    atomic_bool ended;
    unsigned back_off_ms; /* 0: it works */
    uint64_t took;        /* ms of the latest job */
    uint64_t failures;    /* since the start */
    char failure[512];    /* why it does not work; "": it does */
};

/* Starts the machine in *s, which is zeroed. Steps of all lanes run on one where tables have replicas, because
 * ClickHouse lets one insert at a time wait for a quorum. On failure, steps_done is still to be called. */
enum profd_status steps_start(struct steps *s, const struct steps_type *type, const struct sealer_config *config,
                              struct profd_error *e);
/* Begins nothing more, and ends the statements that run. */
void steps_stop(struct steps *s);
/* After the writer. */
void steps_done(struct steps *s);
/* On lane 0: what ClickHouse has of an attempt of a block must be this. PROTOCOL: it is not. */
enum profd_status steps_check_block(struct steps *s, const struct store_block *block, uint64_t sums, uint64_t bytes,
                                    uint64_t checksum, struct profd_error *e);
/* Ends the failure, if there was one: the machine works again. Called by choose. */
void steps_work(struct steps *s);
/* Returns a pause after a job that leaves uploads three quarters of the writer's time, in ms. */
unsigned steps_pause(const struct steps *s);

#endif
