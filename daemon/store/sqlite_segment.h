/* Segments as rows. Only sqlite*.c include this. */
#ifndef PROFD_STORE_SQLITE_SEGMENT_H
#define PROFD_STORE_SQLITE_SEGMENT_H

#include "store/outgoing.h"
#include "store/sqlite_sums.h"

/* Values of segment.state. */
enum {
    SEGMENT_OPEN,
    SEGMENT_CLOSED,
    SEGMENT_SEALED,
    SEGMENT_ACKNOWLEDGED,
    SEGMENT_REMOVED,
    SEGMENT_UNREADABLE,
    SEGMENT_HELD
};

/* The row of table relay. known: there is one. */
struct sqlite_relay {
    bool known, active;
    uint8_t epoch[SEGMENT_EPOCH_SIZE];
    uint64_t sequence;
    struct store_amount outside, acknowledged, rejected, withdrawn;
    bool met;
    uint8_t incarnation[STORE_INCARNATION_SIZE];
    bool has_centre;
    uint8_t centre[STORE_CENTRE_SIZE];
    uint64_t backup;
    uint64_t held;                    /* 1 + number of the database before the start; 0: nothing is held */
    int64_t held_since, held_hour;    /* ns: of that start; the hour of the last sign of life before it */
    int64_t apart_before, apart_hour; /* ns: what began before counts here only; last hour that is marked for it */
};
enum profd_status sqlite_relay_load(struct store *s, struct sqlite_relay *out, struct profd_error *e);
enum profd_status sqlite_relay_save(struct store *s, const struct sqlite_relay *r, struct profd_error *e);

/* Three columns of the current row as an amount. */
struct store_amount sqlite_amount(sqlite3_stmt *q, int column);
/* The epoch in a column of the current row. DAMAGED if it is none. */
enum profd_status sqlite_segment_epoch(struct store *s, sqlite3_stmt *q, int column, uint8_t out[SEGMENT_EPOCH_SIZE],
                                       struct profd_error *e);

/* Writes into table relay whether something is forwarded, and the epoch, in the transaction of the first upload, before
 * anything of it is stored: so a start writes nothing, and cannot fail for want of space. */
enum profd_status sqlite_relay_settle(struct store *s, struct profd_error *e);
/* Adds what was accepted of an upload to the open segment of its series and hour: one says how much of it. Inside the
 * write transaction that accepts it. */
enum profd_status sqlite_segment_add(struct store *s, const struct store_upload *u, int64_t series,
                                     const struct sqlite_sums *one, struct profd_error *e);
/* Of a database that was restored from a backup, or copied: what the host accepted since then is in no segment. Adds a
 * SEGMENT_DROPPED for each hour from the backup until now, so that the centre marks these hours; what live processes
 * have counted until now counts here only. Not inside a transaction. O(hours), at most a year of them. */
enum profd_status sqlite_relay_mark_gap(struct store *s, struct profd_error *e);
/* A start with this row: differences that began before it are to be held. Inside a write transaction. */
enum profd_status sqlite_relay_hold(struct store *s, struct sqlite_relay *r, struct profd_error *e);
/* What began at that time, and is accepted now, is to be held, or not to be forwarded at all. */
enum sqlite_fate { SQLITE_FORWARDED, SQLITE_HELD, SQLITE_APART };
enum profd_status sqlite_relay_judge(struct store *s, int64_t since, enum sqlite_fate *fate, struct profd_error *e);
/* Of an upload that is not forwarded: it counts as withdrawn, and its hours are marked. Inside a write transaction. */
enum profd_status sqlite_relay_set_apart(struct store *s, int64_t end, const struct store_amount *amount,
                                         struct profd_error *e);
/* What is held counts here only, and what began before the start and is accepted later. Saves the row. Inside a write
 * transaction. */
enum profd_status sqlite_relay_reject_held(struct store *s, struct sqlite_relay *r, struct profd_error *e);
/* Of the segment in the current row of q, only a key of this kind remains; what it held is added to *gone. */
enum profd_status sqlite_segment_reduce(struct store *s, sqlite3_stmt *q, enum segment_kind kind,
                                        struct store_amount *gone, struct profd_error *e);
/* Folds the parts of a segment into its bytes. *readable: false, and nothing has changed, if it is damaged. */
enum profd_status sqlite_segment_fold(struct store *s, int64_t id, bool *readable, struct profd_error *e);
/* Folds one segment that has many parts. *more: there was one. */
enum profd_status sqlite_segment_fold_next(struct store *s, bool *more, struct profd_error *e);
/* The series is deleted: segments of it that are not sealed become withdrawn ones. Inside a write transaction. */
enum profd_status sqlite_segment_withdraw(struct store *s, int64_t series, struct profd_error *e);

#endif
