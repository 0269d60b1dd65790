/* Segments in the making: the bytes of a segment, and parts that are to be folded into it. Pure. */
#ifndef PROFD_STORE_OUTGOING_H
#define PROFD_STORE_OUTGOING_H

#include "core/arena.h"
#include "core/rollup.h"
#include "store/store.h"

/* Parts are folded when they are more than this, and more than what they are to be folded into. */
#define OUTGOING_PARTS 256u
#define OUTGOING_PART_BYTES (256u << 10)

/* A segment without counts that the upload can be added to, in a new block that the caller frees. */
enum profd_status outgoing_open(const struct store_upload *u, const uint8_t epoch[SEGMENT_EPOCH_SIZE],
                                uint64_t sequence, uint8_t **out, size_t *size, struct profd_error *e);
/* How often the centre acknowledges. */
struct outgoing_pace {
    int64_t acknowledged; /* ns: when it did last, or, before that, when something was accepted first; 0: neither */
    int64_t apart;        /* ns: between the last two times */
};
void outgoing_pace_note(struct outgoing_pace *p, int64_t now);
/* The slice of time of a new segment for this upload: ends of windows in it are in [*since, *until). It is as wide as
 * the centre's acknowledgements are apart, so that a centre that is far away gets few segments. */
void outgoing_slice(struct outgoing_pace *p, const struct store_upload *u, int64_t *since, int64_t *until);
/* One that is only a key. */
enum profd_status outgoing_mark(enum segment_kind kind, const uint8_t epoch[SEGMENT_EPOCH_SIZE], uint64_t sequence,
                                int64_t hour, uint8_t **out, size_t *size, struct profd_error *e);

/* What is added to one segment at a time: an upload, or a part of a large one. */
struct outgoing_part {
    uint32_t group;
    int64_t start, end;
    uint32_t inexact;
    uint64_t uploads, started;
    const uint8_t *counts; /* proto/counts.h */
    size_t counts_size;
};
struct outgoing_chunk {
    struct outgoing_part part;
    struct store_amount amount;
    uint64_t stack_ticks; /* of its ticks, those that have a stack */
    uint32_t weight;      /* at most LIMIT_SEGMENT_ROWS */
};
/* The parts of an upload with the sums amount, in an arena; one, unless it has more rows than a segment may have.
 * Whole parts borrow the upload's counts. NO_MEMORY, INTERNAL (its counts do not decode) or OK. */
enum profd_status outgoing_split(struct arena *a, const struct store_upload *u, const struct store_amount *amount,
                                 uint64_t started, uint32_t inexact, const struct outgoing_chunk **chunks,
                                 size_t *count, struct profd_error *e);

/* Folding: begin with a segment's bytes, add parts in their order, finish with new bytes. DAMAGED if something does not
 * decode; done frees everything but the result. */
struct outgoing_sum {
    struct arena *arena;
    struct segment segment;
    struct rollup_sum *sum;
    uint64_t parts;
    uint64_t stack_ticks; /* by finish: of the stacks that it has */
    bool clocks_full;     /* by finish: it has stacks of as many clocks as fit; those of others are left out */
};
enum profd_status outgoing_sum_begin(struct outgoing_sum *s, const uint8_t *bytes, size_t size, struct profd_error *e);
enum profd_status outgoing_sum_add(struct outgoing_sum *s, const struct outgoing_part *part, struct profd_error *e);
enum profd_status outgoing_sum_finish(struct outgoing_sum *s, uint8_t **out, size_t *size, uint32_t *weight,
                                      struct profd_error *e);
void outgoing_sum_done(struct outgoing_sum *s);

/* What a segment's bytes hold, and the ticks of its stacks. DAMAGED if they do not decode. */
enum profd_status outgoing_measure(const uint8_t *bytes, size_t size, struct store_amount *amount,
                                   uint64_t *stack_ticks, struct profd_error *e);

/* Sums of amounts, stopping at 2^63−1; taking away what was added. */
void outgoing_amount_add(struct store_amount *to, const struct store_amount *more);
void outgoing_amount_subtract(struct store_amount *from, const struct store_amount *part);

#endif
