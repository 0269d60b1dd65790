/* Segments of a host: the epoch of a start, sealing, acknowledgements, retention, and their sums. */
#include <stdlib.h>
#include <string.h>

#include "store/sqlite_rollup.h"
#include "store/sqlite_segment.h"

/* Adds up the segments by state; out has what the table relay lacks. pending: segments that are not acknowledged. */
static enum profd_status sum_states(struct store *s, struct store_relay *out, struct store_amount *pending,
                                    struct profd_error *e)
{
    sqlite3_stmt *q;
    TRY(sqlite_start(s, SQL_SEGMENT_STATES, NULL, 0, &q, e));
    enum profd_status status = PROFD_OK;
    while (sqlite_row(s, q, &status, e)) {
        const int64_t state = sqlite3_column_int64(q, 0), opened = sqlite3_column_int64(q, 5);
        const struct store_amount amount = sqlite_amount(q, 1);
        if (state == SEGMENT_ACKNOWLEDGED || state == SEGMENT_REMOVED) {
            out->kept_segments += state == SEGMENT_ACKNOWLEDGED;
            out->kept_bytes += (uint64_t)sqlite3_column_int64(q, 4);
            continue;
        }
        const bool sealed = state == SEGMENT_SEALED;
        outgoing_amount_add(sealed ? &out->sealed : &out->open, &amount);
        outgoing_amount_add(pending, &amount);
        out->sealed_segments += sealed;
        out->open_segments += !sealed;
        out->unreadable_segments += state == SEGMENT_UNREADABLE;
        out->oldest = out->oldest == 0 || opened < out->oldest ? opened : out->oldest;
    }
    return status;
}

static struct store_amount accepted_of(const struct sqlite_state *t)
{
    return (struct store_amount){t->uploads, t->ticks, t->calls};
}

/* Uploads that were accepted and belong to no segment were accepted while nothing was forwarded. */
static enum profd_status settle_outside(struct store *s, struct sqlite_relay *r, struct profd_error *e)
{
    struct store_relay ignored = {.active = false};
    struct store_amount pending = {0};
    enum profd_status status = sum_states(s, &ignored, &pending, e);
    r->outside = accepted_of(&s->state);
    outgoing_amount_subtract(&r->outside, &r->acknowledged);
    outgoing_amount_subtract(&r->outside, &r->withdrawn);
    outgoing_amount_subtract(&r->outside, &pending);
    return status;
}

enum profd_status sqlite_relay_settle(struct store *s, struct profd_error *e)
{
    struct sqlite_relay r;
    enum profd_status status = sqlite_relay_load(s, &r, e);
    const bool begins = s->relaying && (!r.active || memcmp(r.epoch, s->relay_epoch, sizeof r.epoch) != 0);
    const bool ends = !s->relaying && r.active;
    if (status == PROFD_OK && begins && !r.active) {
        status = settle_outside(s, &r, e);
    }
    if (status == PROFD_OK && s->relaying && s->relay_unresolved && !r.held) {
        status = sqlite_relay_hold(s, &r, e); /* of the epoch before */
    }
    if (begins) {
        r.sequence = 0;
        memcpy(r.epoch, s->relay_epoch, sizeof r.epoch);
    }
    r.active = s->relaying;
    if (status == PROFD_OK && (begins || ends)) {
        status = sqlite_relay_save(s, &r, e);
    }
    s->relay_settled = status == PROFD_OK;
    return status;
}

enum profd_status store_relay_begin(struct store *s, const uint8_t epoch[SEGMENT_EPOCH_SIZE], int64_t since,
                                    struct profd_error *e)
{
    (void)e;
    if (!s->relaying) { /* otherwise another machine has the epoch before */
        s->relay_unresolved = true;
        s->relay_since = since;
    }
    s->relaying = true;
    s->relay_settled = false;
    memcpy(s->relay_epoch, epoch, sizeof s->relay_epoch);
    return PROFD_OK;
}

static enum profd_status resolve(struct store *s, const struct store_verdict *verdict, struct profd_error *e)
{
    struct sqlite_relay r;
    TRY(s->relay_settled ? PROFD_OK : sqlite_relay_settle(s, e));
    TRY(sqlite_relay_load(s, &r, e));
    TRY(verdict->went_back ? sqlite_relay_reject_held(s, &r, e) : sqlite_run(s, SQL_SEGMENT_HELD_RELEASE, NULL, 0, e));
    r.held = 0;
    TRY(sqlite_relay_save(s, &r, e));
    if (verdict->went_back && (int64_t)verdict->number > s->state.number) {
        s->state.number = (int64_t)verdict->number;
        TRY(sqlite_save_state(s, e));
    }
    return PROFD_OK;
}

enum profd_status store_relay_resolve(struct store *s, const struct store_verdict *verdict, bool *apart,
                                      struct profd_error *e)
{
    struct sqlite_relay r;
    enum profd_status status = sqlite_relay_load(s, &r, e);
    *apart = false;
    if (status != PROFD_OK || (!r.held && (!s->relay_unresolved || !verdict->went_back))) {
        s->relay_unresolved &= status != PROFD_OK;
        return status;
    }
    TRY(sqlite_write_begin(s, e));
    TRY(sqlite_write_end(s, resolve(s, verdict, e), e));
    *apart = verdict->went_back;
    s->relay_unresolved = false;
    return PROFD_OK;
}

/* A row of SQL_SEGMENT_KEPT_NEXT. */
struct kept {
    int64_t id, sequence, hour, size;
    uint8_t epoch[SEGMENT_EPOCH_SIZE];
    bool removed, rejected;
    struct store_amount amount;
};

static enum profd_status next_kept(struct store *s, struct kept *out, bool *found, struct profd_error *e)
{
    sqlite3_stmt *q;
    TRY(sqlite_first(s, SQL_SEGMENT_KEPT_NEXT, NULL, 0, &q, found, e));
    if (!*found) {
        return PROFD_OK;
    }
    *out = (struct kept){.id = sqlite3_column_int64(q, 0),
                         .sequence = sqlite3_column_int64(q, 2),
                         .hour = sqlite3_column_int64(q, 3),
                         .removed = sqlite3_column_int64(q, 4) == SEGMENT_REMOVED,
                         .amount = sqlite_amount(q, 5),
                         .rejected = sqlite3_column_int64(q, 8) != STORE_SEGMENT_COUNTED,
                         .size = sqlite3_column_int64(q, 9)};
    enum profd_status status = sqlite_segment_epoch(s, q, 1, out->epoch, e);
    sqlite_finish(q);
    return status;
}

/* Seals an acknowledged segment again; of one that was removed, only its key. */
static enum profd_status seal_again(struct store *s, struct sqlite_relay *r, struct kept *k, struct profd_error *e)
{
    enum profd_status status = PROFD_OK;
    if (k->removed) {
        uint8_t *bytes = NULL;
        size_t size = 0;
        status = outgoing_mark(SEGMENT_DROPPED, k->epoch, (uint64_t)k->sequence, k->hour, &bytes, &size, e);
        if (status == PROFD_OK) {
            status = sqlite_run(s, SQL_SEGMENT_BYTES_SET, VALUES(INTEGER(k->id), BLOB(bytes, size)), e);
        }
        free(bytes);
        k->size = (int64_t)size;
    } else {
        outgoing_amount_subtract(&r->acknowledged, &k->amount);
        if (k->rejected) {
            outgoing_amount_subtract(&r->rejected, &k->amount);
        }
    }
    return status == PROFD_OK ? sqlite_run(s, SQL_SEGMENT_AGAIN, VALUES(INTEGER(k->id), INTEGER(k->size)), e) : status;
}

static enum profd_status seal_all_again(struct store *s, struct sqlite_relay *r, uint64_t *again, struct profd_error *e)
{
    struct kept k;
    bool found = true;
    enum profd_status status = PROFD_OK;
    while (status == PROFD_OK && (status = next_kept(s, &k, &found, e)) == PROFD_OK && found) {
        status = seal_again(s, r, &k, e);
        ++*again;
    }
    return status;
}

enum profd_status store_relay_meet(struct store *s, const uint8_t centre[STORE_CENTRE_SIZE],
                                   const uint8_t incarnation[STORE_INCARNATION_SIZE], uint64_t backup, uint64_t *again,
                                   struct profd_error *e)
{
    struct sqlite_relay r;
    uint64_t count = 0;
    enum profd_status status = sqlite_relay_load(s, &r, e);
    *again = 0;
    if (status != PROFD_OK || !r.known) {
        return status;
    }
    if (centre && r.has_centre && memcmp(r.centre, centre, sizeof r.centre) != 0) {
        return profd_error_set(e, PROFD_REFUSED, "the relay has reached another centre than that of this host");
    }
    const bool same = r.met && memcmp(r.incarnation, incarnation, sizeof r.incarnation) == 0;
    if (same && backup <= r.backup && (!centre || r.has_centre)) {
        return PROFD_OK;
    }
    status = sqlite_write_begin(s, e);
    if (status != PROFD_OK) {
        return status;
    }
    if (!same && r.met) {
        status = seal_all_again(s, &r, &count, e);
    }
    r.met = true;
    r.backup = backup;
    memcpy(r.incarnation, incarnation, sizeof r.incarnation);
    if (centre) {
        r.has_centre = true;
        memcpy(r.centre, centre, sizeof r.centre);
    }
    if (status == PROFD_OK) {
        status = sqlite_relay_save(s, &r, e);
    }
    status = sqlite_write_end(s, status, e);
    *again = status == PROFD_OK ? count : 0;
    return status;
}

/* Withdraws what is sealed, and removes what is kept for the centre. */
static enum profd_status leave_centre(struct store *s, struct sqlite_relay *r, struct profd_error *e)
{
    bool found = true;
    while (found) {
        sqlite3_stmt *q;
        TRY(sqlite_first(s, SQL_SEGMENT_SEALED_NEXT, NULL, 0, &q, &found, e));
        if (found) {
            TRY(sqlite_segment_reduce(s, q, SEGMENT_WITHDRAWN, &r->withdrawn, e));
        }
    }
    TRY(sqlite_run(s, SQL_SEGMENT_KEPT_BYTES_FORGET, NULL, 0, e));
    TRY(sqlite_run(s, SQL_SEGMENT_KEPT_FORGET, NULL, 0, e));
    r->met = r->has_centre = false;
    r->backup = 0;
    return sqlite_relay_save(s, r, e);
}

enum profd_status store_relay_move(struct store *s, uint64_t *withdrawn, struct profd_error *e)
{
    struct sqlite_relay r;
    TRY(sqlite_relay_load(s, &r, e));
    if (!r.known) {
        return profd_error_set(e, PROFD_NOT_FOUND, "this host has never forwarded anything: there is nothing to move");
    }
    const uint64_t before = r.withdrawn.uploads;
    TRY(sqlite_write_begin(s, e));
    TRY(sqlite_write_end(s, leave_centre(s, &r, e), e));
    *withdrawn = r.withdrawn.uploads - before;
    return PROFD_OK;
}

static enum profd_status seal_next(struct store *s, uint64_t through, int64_t now, bool *found, uint64_t *sealed,
                                   struct profd_error *e)
{
    int64_t id = 0;
    bool readable = true;
    TRY(sqlite_find(s, SQL_SEGMENT_TO_SEAL, VALUES(INTEGER(through)), &id, found, e));
    if (!*found) {
        return PROFD_OK;
    }
    TRY(sqlite_segment_fold(s, id, &readable, e));
    *sealed += readable;
    const int state = readable ? SEGMENT_SEALED : SEGMENT_UNREADABLE;
    return sqlite_run(s, SQL_SEGMENT_STATE_SET, VALUES(INTEGER(id), INTEGER(state), INTEGER(now)), e);
}

enum profd_status store_seal_segments(struct store *s, uint64_t through, int64_t now, uint64_t *sealed,
                                      struct profd_error *e)
{
    int64_t waiting = 0;
    bool found = true;
    uint64_t done = 0;
    *sealed = 0;
    enum profd_status status = sqlite_write_begin(s, e);
    if (status != PROFD_OK) {
        return status;
    }
    through = through > INT64_MAX ? INT64_MAX : through;
    status = sqlite_find(s, SQL_SEGMENT_SEALED_COUNT, NULL, 0, &waiting, &found, e);
    while (status == PROFD_OK && found && done < LIMIT_SEGMENTS_AT_ONCE &&
           waiting + (int64_t)done < LIMIT_SEGMENTS_SEALED) {
        status = seal_next(s, through, now, &found, &done, e);
    }
    status = sqlite_write_end(s, status, e);
    *sealed = status == PROFD_OK ? done : 0;
    return status;
}

enum profd_status store_each_segment(struct store *s, uint64_t after,
                                     bool (*each)(void *context, const struct store_segment *segment), void *context,
                                     struct profd_error *e)
{
    sqlite3_stmt *q;
    TRY(sqlite_start(s, SQL_SEGMENT_SEALED, VALUES(INTEGER(after)), &q, e));
    enum profd_status status = PROFD_OK;
    while (sqlite_row(s, q, &status, e)) {
        struct store_segment x = {.id = (uint64_t)sqlite3_column_int64(q, 0),
                                  .sequence = (uint64_t)sqlite3_column_int64(q, 2)};
        x.bytes = sqlite_blob(q, 3, &x.size);
        status = sqlite_segment_epoch(s, q, 1, x.epoch, e);
        if (status != PROFD_OK || !each(context, &x)) {
            sqlite_finish(q);
            return status;
        }
    }
    return status;
}

static enum profd_status acknowledge(struct store *s, struct sqlite_relay *r, const struct store_acknowledgement *a,
                                     int64_t now, struct profd_error *e)
{
    bool found = false;
    if (!r->met || memcmp(r->incarnation, a->incarnation, sizeof r->incarnation) != 0) {
        return PROFD_OK;
    }
    /* The sealed segment of a key. */
    sqlite3_stmt *q;
    TRY(sqlite_first(s, SQL_SEGMENT_BY_KEY, VALUES(BLOB(a->epoch, sizeof a->epoch), INTEGER(a->sequence)), &q, &found,
                     e));
    if (!found) {
        return PROFD_OK;
    }
    const int64_t id = sqlite3_column_int64(q, 0);
    const struct store_amount amount = sqlite_amount(q, 1);
    sqlite_finish(q);
    outgoing_amount_add(&r->acknowledged, &amount);
    if (a->outcome != STORE_SEGMENT_COUNTED) {
        outgoing_amount_add(&r->rejected, &amount);
    }
    return sqlite_run(s, SQL_SEGMENT_ACKNOWLEDGE,
                      VALUES(INTEGER(id), INTEGER(now), INTEGER(a->number), INTEGER(a->outcome)), e);
}

enum profd_status store_acknowledge_segments(struct store *s, const struct store_acknowledgement *list, size_t n,
                                             int64_t now, struct profd_error *e)
{
    struct sqlite_relay r;
    TRY(sqlite_write_begin(s, e));
    enum profd_status status = sqlite_relay_load(s, &r, e);
    outgoing_pace_note(&s->relay_pace, now);
    for (size_t i = 0; i < n && status == PROFD_OK && r.known; i++) {
        status = acknowledge(s, &r, &list[i], now, e);
    }
    if (status == PROFD_OK && r.known) {
        status = sqlite_relay_save(s, &r, e);
    }
    return sqlite_write_end(s, status, e);
}

/* Removes the bytes of a segment; the row stays if a restored centre may lack the segment. */
static enum profd_status remove_bytes(struct store *s, int64_t id, bool safe, struct profd_error *e)
{
    TRY(sqlite_run(s, SQL_SEGMENT_BYTES_REMOVE, VALUES(INTEGER(id)), e));
    return sqlite_run(s, safe ? SQL_SEGMENT_REMOVE : SQL_SEGMENT_EMPTY, VALUES(INTEGER(id)), e);
}

/* Removes one that is in a backup of the centre and old enough, or, of too many bytes, the oldest. */
static enum profd_status remove_kept(struct store *s, const struct store_policy *policy, int64_t now, bool *more,
                                     struct profd_error *e)
{
    struct sqlite_relay r;
    int64_t id = 0, bytes = 0;
    bool found = false;
    *more = false;
    enum profd_status status = sqlite_relay_load(s, &r, e);
    if (status == PROFD_OK) {
        status = sqlite_find(s, SQL_SEGMENT_KEPT_SAFE, VALUES(INTEGER(r.backup), INTEGER(now - policy->relay_age)), &id,
                             more, e);
    }
    if (status != PROFD_OK || *more) {
        return *more ? remove_bytes(s, id, true, e) : status;
    }
    TRY(sqlite_find(s, SQL_SEGMENT_KEPT_BYTES, NULL, 0, &bytes, &found, e));
    if ((uint64_t)bytes > policy->relay_bytes) {
        TRY(sqlite_find(s, SQL_SEGMENT_KEPT_OLDEST, NULL, 0, &id, more, e));
    }
    return *more ? remove_bytes(s, id, false, e) : PROFD_OK;
}

enum profd_status store_keep_segments(struct store *s, const struct store_policy *policy, int64_t now,
                                      struct store_progress *progress, struct profd_error *e)
{
    struct sqlite_budget budget = sqlite_budget_begin();
    bool more = true;
    uint64_t rows = 0;
    TRY(sqlite_write_begin(s, e));
    enum profd_status status = PROFD_OK;
    while (status == PROFD_OK && more && !sqlite_budget_spent(&budget)) {
        status = remove_kept(s, policy, now, &more, e);
        if (status == PROFD_OK && !more) {
            status = sqlite_segment_fold_next(s, &more, e);
        }
        rows += more;
    }
    status = sqlite_write_end(s, status, e);
    if (status == PROFD_OK) {
        *progress = (struct store_progress){.more = more, .rows = rows};
    }
    return status;
}

/* head: only number and held. */
static enum profd_status get_relay(struct store *s, bool head, struct store_relay *out, struct profd_error *e)
{
    struct sqlite_relay r;
    struct sqlite_state state;
    struct store_amount pending = {0};
    int64_t newest = 0;
    bool found;
    *out = (struct store_relay){.active = false};
    TRY(sqlite_relay_load(s, &r, e));
    TRY(sqlite_load_state(s, &state, e));
    out->number = (uint64_t)state.number;
    out->held = r.held ? r.held : s->relay_unresolved ? out->number + 1 : 0;
    if (!r.known || head) {
        return PROFD_OK;
    }
    out->active = r.active;
    out->acknowledged = r.acknowledged;
    out->rejected = r.rejected;
    out->withdrawn = r.withdrawn;
    out->has_centre = r.has_centre;
    memcpy(out->centre, r.centre, sizeof out->centre);
    out->met = r.met;
    out->backup = r.backup;
    memcpy(out->incarnation, r.incarnation, sizeof out->incarnation);
    enum profd_status status = sum_states(s, out, &pending, e);
    if (status == PROFD_OK) {
        status = sqlite_find(s, SQL_SEGMENT_NEWEST, NULL, 0, &newest, &found, e);
    }
    out->newest = (uint64_t)newest;
    if (!r.active) { /* what was accepted since is not known apart */
        out->accepted = pending;
        outgoing_amount_add(&out->accepted, &r.acknowledged);
        outgoing_amount_add(&out->accepted, &r.withdrawn);
        return status;
    }
    out->accepted = accepted_of(&state);
    outgoing_amount_subtract(&out->accepted, &r.outside);
    return status;
}

enum profd_status store_get_relay(struct store *s, struct store_relay *out, struct profd_error *e)
{
    bool began;
    TRY(sqlite_read_begin(s, &began, e));
    return sqlite_read_end(s, began, get_relay(s, false, out, e), e);
}

enum profd_status store_get_relay_head(struct store *s, struct store_relay *out, struct profd_error *e)
{
    bool began;
    TRY(sqlite_read_begin(s, &began, e));
    return sqlite_read_end(s, began, get_relay(s, true, out, e), e);
}
