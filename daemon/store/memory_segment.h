/* Segments of the engine in memory. Only memory*.c include this. */
#ifndef PROFD_STORE_MEMORY_SEGMENT_H
#define PROFD_STORE_MEMORY_SEGMENT_H

#include "store/outgoing.h"

enum memory_state { MEMORY_OPEN, MEMORY_CLOSED, MEMORY_SEALED, MEMORY_ACKNOWLEDGED, MEMORY_REMOVED };

struct memory_part {
    struct memory_part *next;
    struct outgoing_chunk chunk;
    uint8_t *bytes; /* its counts */
};

struct memory_segment {
    uint64_t id, sequence, series;
    uint8_t epoch[SEGMENT_EPOCH_SIZE];
    int64_t hour, since, until, opened, changed;
    enum memory_state state;
    bool marked; /* only its key is left */
    bool held;   /* not sealed until store_relay_resolve */
    bool apart;  /* only its key is sent, as SEGMENT_DROPPED; amount is 0 */
    struct store_amount amount;
    uint64_t weight, number;
    enum store_segment_outcome outcome;
    uint8_t *bytes;
    size_t size;
    struct memory_part *parts;
};

struct memory_relay {
    bool known, active, met;
    uint8_t epoch[SEGMENT_EPOCH_SIZE], incarnation[STORE_INCARNATION_SIZE];
    uint64_t sequence, newest, backup;
    struct store_amount outside, acknowledged, rejected, withdrawn;
    uint64_t held;                    /* 1 + number of the store before the start, until store_relay_resolve */
    int64_t held_since, apart_before; /* ns: as in table relay */
    struct outgoing_pace pace;
    struct memory_segment *segments; /* by ascending id */
    size_t count, capacity;
};

/* What an upload of a batch may need, taken before anything changes. */
struct memory_staged {
    struct memory_part *parts;
    uint8_t **heads;
    size_t head_count, head_size;
};

/* *out: n of them, or NULL when nothing is forwarded. Freed by memory_staged_done in any case. */
enum profd_status memory_stage(struct memory_relay *r, const struct store_upload *uploads, size_t n,
                               struct memory_staged **out, struct profd_error *e);
void memory_staged_done(struct memory_staged *staged, size_t n);
/* Adds a staged upload to the open segment of its series and hour. uploads: 1, or 0 for what another one grew by.
 * since: store_harvest.since, or 0. */
void memory_forward(struct memory_relay *r, struct memory_staged *staged, uint64_t series, uint64_t uploads,
                    const struct store_upload *u, int64_t since);
/* The series is deleted. */
enum profd_status memory_withdraw(struct memory_relay *r, uint64_t series, struct profd_error *e);
/* Gives a segment its final bytes, with or without stacks. *left_out: there were some, and they are not in it. */
enum profd_status memory_segment_fold(struct memory_segment *x, bool stacks, bool *left_out, struct profd_error *e);
/* Of a segment, only a key of this kind remains. */
enum profd_status memory_segment_reduce(struct memory_segment *x, enum segment_kind kind, struct profd_error *e);
/* Frees what a segment owns. */
void memory_segment_free(struct memory_segment *x);
void memory_relay_done(struct memory_relay *r);

#endif
