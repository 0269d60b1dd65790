/* What a host forwards to a centre (proto/segment.h): part of the contract of store.h, which includes this.
 *
 * After store_relay_begin, the transaction that accepts an upload or the difference of a harvest also adds it to the
 * open segment of its series and hour. A segment has its key from its opening, is sealed when it is to be sent, is sent
 * until the centre acknowledges it, and is kept for a centre that is restored from a backup. Always:
 * accepted since the first store_relay_begin = acknowledged + withdrawn + sealed + open.
 *
 * A database may have been restored from a backup, and the centre may have what a live process counted since then. So
 * after a start, differences that began before it are held in segments of their own, which are not sealed until the
 * centre has said whether it knows a later state of this database (store_relay_resolve). If it does, they are
 * withdrawn: they count on this host only, and the hours are sent as SEGMENT_DROPPED.
 *
 * A host sends to one centre. store_relay_move makes it send to another one: what the centre before may have is not
 * sent again, but withdrawn. */
#ifndef PROFD_STORE_SEGMENTS_H
#define PROFD_STORE_SEGMENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/segment.h"

#define STORE_INCARNATION_SIZE 16
#define STORE_CENTRE_SIZE 16                          /* of a centre's name */
#define STORE_RELAY_AGE (48 * INT64_C(3600000000000)) /* ns: for which hosts keep acknowledged segments, at least */

struct store_amount {
    uint64_t uploads, ticks, calls; /* stop at 2^63−1 */
};

struct store_relay {
    bool active;                  /* what was accepted last went into segments */
    struct store_amount accepted; /* since the first store_relay_begin, without what was accepted while not active */
    struct store_amount acknowledged, rejected; /* rejected: of the acknowledged, what the centre did not count */
    struct store_amount withdrawn, sealed, open;
    uint64_t open_segments, sealed_segments, kept_segments, kept_bytes;
    uint64_t unreadable_segments; /* of the open ones, those that can never be sealed */
    uint64_t newest;              /* id of the segment opened last; 0: none */
    uint64_t number;              /* last number given to what was accepted: decreases only by a restore */
    uint64_t held;                /* 1 + that number before this start, until store_relay_resolve; 0: resolved */
    int64_t oldest;               /* ns: when the oldest that is not acknowledged was opened; 0: there is none */
    bool has_centre;              /* the name of the centre is known: */
    uint8_t centre[STORE_CENTRE_SIZE];
    bool met; /* a centre has answered: the next two are its */
    uint8_t incarnation[STORE_INCARNATION_SIZE];
    uint64_t backup;
};

/* What the centre says of this database. went_back: it has segments of a later state. number: of that state, at least.
 */
struct store_verdict {
    bool went_back;
    uint64_t number;
};

/* A sealed segment. Borrowed until each returns. */
struct store_segment {
    uint64_t id; /* ascends in order of opening; of this database only */
    uint8_t epoch[SEGMENT_EPOCH_SIZE];
    uint64_t sequence;
    const uint8_t *bytes; /* proto/segment.h */
    size_t size;
};

enum store_segment_outcome {
    STORE_SEGMENT_COUNTED,
    STORE_SEGMENT_PUT_ASIDE, /* the centre could not read it */
    STORE_SEGMENT_CONFLICT,  /* the centre has another segment with this key */
    STORE_SEGMENT_OUTCOMES
};
struct store_acknowledgement {
    uint8_t epoch[SEGMENT_EPOCH_SIZE];
    uint64_t sequence;
    uint8_t incarnation[STORE_INCARNATION_SIZE];
    uint64_t number; /* ascends at the centre, of one incarnation; from 1 */
    enum store_segment_outcome outcome;
};

#endif
