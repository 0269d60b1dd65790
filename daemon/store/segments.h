/* Outgoing uploads of a host (in code: segments): part of the contract of store.h, which includes this.
 *
 * After store_relay_begin, the transaction that accepts an upload or the difference of a harvest also adds it to the
 * open outgoing upload of its series and hour. An outgoing upload gets its key when it is opened. It is sealed before
 * it is sent, sent until the centre acknowledges it, and then kept in case the centre is restored from a backup.
 * Invariant: accepted since the first store_relay_begin = acknowledged + withdrawn + sealed + open.
 *
 * If the database was restored from a backup, the centre may have later counts of live processes already. Therefore
 * differences that began before the start are held in separate outgoing uploads. These are not sealed until the centre
 * has stated whether it knows a later state of this database (store_relay_resolve). If it does, they are withdrawn:
 * they count on this host only, and their hours are sent as SEGMENT_DROPPED.
 *
 * A host sends to one centre. After store_relay_move it sends to another one. Uploads that the old centre may have are
 * then withdrawn, and not sent to the new one. */
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
    bool active;                                /* accepted uploads are added to outgoing uploads */
    struct store_amount accepted;               /* since the first store_relay_begin, while active */
    struct store_amount acknowledged, rejected; /* rejected: the acknowledged ones that the centre did not count */
    struct store_amount withdrawn, sealed, open;
    uint64_t open_segments, sealed_segments, kept_segments, kept_bytes;
    uint64_t unreadable_segments; /* open ones that can never be sealed */
    uint64_t newest;              /* id of the latest outgoing upload; 0: none */
    uint64_t number;              /* last number given to an accepted upload; decreases only by a restore */
    uint64_t held;                /* 1 + number at the start, until store_relay_resolve; then 0 */
    int64_t oldest;               /* ns: when the oldest unacknowledged one was opened; 0: none */
    bool has_centre;              /* centre is known */
    uint8_t centre[STORE_CENTRE_SIZE];
    bool met; /* the centre has answered: incarnation and backup are known */
    uint8_t incarnation[STORE_INCARNATION_SIZE];
    uint64_t backup;
};

/* The centre's verdict on this database. went_back: the centre has uploads of a later state. number: at least the
 * number of that state. */
struct store_verdict {
    bool went_back;
    uint64_t number;
};

/* A sealed outgoing upload. Borrowed until each returns. */
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
    STORE_SEGMENT_CONFLICT,  /* the centre has another upload with this key */
    STORE_SEGMENT_OUTCOMES
};
struct store_acknowledgement {
    uint8_t epoch[SEGMENT_EPOCH_SIZE];
    uint64_t sequence;
    uint8_t incarnation[STORE_INCARNATION_SIZE];
    uint64_t number; /* given by the centre; ascends within an incarnation, from 1 */
    enum store_segment_outcome outcome;
};

#endif
