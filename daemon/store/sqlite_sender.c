/* Upload ids, by which each delivery is counted once (DECISIONS 15). */
#include <string.h>

#include "proto/limits.h"
#include "store/sequence.h"
#include "store/sqlite_centre.h"

#define SECOND INT64_C(1000000000)
#define SEEN_SLACK 3600    /* seconds by which a sender's last_seen may be outdated */
#define FORGET_SLICE 50000 /* senders visited in one transaction */

/* Reads the sender's set; {0} if the sender is unknown. */
static enum profd_status load_set(struct store *s, const struct store_upload *u, int64_t host, struct sequence_set *set,
                                  int64_t *seen, struct profd_error *e)
{
    sqlite3_stmt *q;
    bool known = false;
    set->mark = set->count = 0;
    *seen = 0;
    enum profd_status status = sqlite_first(
        s, SQL_SENDER_FIND, VALUES(INTEGER(host), INTEGER(u->uid), BLOB(u->sender, sizeof u->sender)), &q, &known, e);
    if (!known) {
        return status;
    }
    size_t n;
    const uint8_t *above = sqlite_blob(q, 2, &n);
    bool good = sequence_decode(set, (uint32_t)sqlite3_column_int64(q, 0), above, n);
    *seen = sqlite3_column_int64(q, 1);
    sqlite_finish(q);
    return good ? PROFD_OK
                : profd_error_set(e, PROFD_DAMAGED, "database %s: a sender's list of ids breaks its rules", s->path);
}

_Static_assert(STORE_ID_RANGES == SEQUENCE_RANGES, "store.h promises what sequence.h keeps");
_Static_assert(LIMIT_ID_DAYS > LIMIT_SPOOL_DAYS, "an id must outlive every spool that may still deliver it");
_Static_assert(LIMIT_ID_DAYS >= STORE_ENDED_DAYS, "one time tells of both");

enum profd_status sqlite_take_id(struct store *s, const struct store_upload *u, int64_t host,
                                 enum store_outcome *outcome, struct profd_error *e)
{
    struct sequence_set set;
    uint8_t above[SEQUENCE_BYTES];
    int64_t seen, now = u->received / SECOND;
    TRY(load_set(s, u, host, &set, &seen, e));
    enum sequence_outcome taken = sequence_add(&set, u->sequence);
    *outcome = taken == SEQUENCE_NEW ? STORE_STORED : taken == SEQUENCE_SEEN ? STORE_DUPLICATE : STORE_TOO_MANY_GAPS;
    if (taken != SEQUENCE_NEW && now < seen + SEEN_SLACK) {
        return PROFD_OK;
    }
    size_t n = sequence_encode(&set, above);
    return sqlite_run(s, SQL_SENDER_SET,
                      VALUES(INTEGER(host), INTEGER(u->uid), BLOB(u->sender, sizeof u->sender), INTEGER(set.mark),
                             INTEGER(now > seen ? now : seen), BLOB(above, n)),
                      e);
}

enum profd_status store_has_upload(struct store *s, const struct store_upload *upload, bool *counted,
                                   struct profd_error *e)
{
    struct sequence_set set;
    int64_t host = 0, seen;
    bool found = false;
    enum profd_status status = sqlite_find(s, SQL_HOST_FIND, VALUES(TEXT(upload->host)), &host, &found, e);
    if (status == PROFD_OK && found) {
        status = load_set(s, upload, host, &set, &seen, e);
        found = status == PROFD_OK && sequence_holds(&set, upload->sequence);
    }
    if (status == PROFD_OK) {
        *counted = found;
    }
    return status;
}

/* Finds the end of the slice after the cursor; whole: the end of the table was reached. */
static enum profd_status find_slice(struct store *s, const struct sqlite_cursor *from, struct sqlite_cursor *to,
                                    bool *whole, struct profd_error *e)
{
    sqlite3_stmt *q;
    int64_t n = 0;
    TRY(sqlite_start(
        s, SQL_SENDER_SCAN,
        VALUES(INTEGER(from->host), INTEGER(from->uid), BLOB(from->sender, sizeof from->sender), INTEGER(FORGET_SLICE)),
        &q, e));
    enum profd_status status = PROFD_OK;
    while (sqlite_row(s, q, &status, e)) {
        size_t size;
        const uint8_t *sender = sqlite_blob(q, 2, &size);
        to->host = sqlite3_column_int64(q, 0);
        to->uid = sqlite3_column_int64(q, 1);
        memcpy(to->sender, sender, size < sizeof to->sender ? size : sizeof to->sender);
        n++;
    }
    *whole = n < FORGET_SLICE;
    return status;
}

enum profd_status store_remove_ids(struct store *s, int64_t before, struct profd_error *e)
{
    struct sqlite_cursor to = s->forget;
    bool whole = false;
    TRY(sqlite_write_begin(s, e));
    enum profd_status status = find_slice(s, &s->forget, &to, &whole, e);
    if (status == PROFD_OK) {
        status = sqlite_run(s, SQL_SENDER_REMOVE,
                            VALUES(INTEGER(s->forget.host), INTEGER(s->forget.uid),
                                   BLOB(s->forget.sender, sizeof s->forget.sender), INTEGER(to.host), INTEGER(to.uid),
                                   BLOB(to.sender, sizeof to.sender), INTEGER(before / SECOND)),
                            e);
    }
    if (status == PROFD_OK) {
        status = sqlite_remove_instances(s, before + SQLITE_ENDED_BEFORE, e);
    }
    if (status == PROFD_OK) {
        status = sqlite_centre_forget(s, before + SQLITE_DIGESTS_BEFORE, e);
    }
    if (status == PROFD_OK) {
        status = sqlite_run(s, SQL_CLOCK_SET, VALUES(INTEGER(before + LIMIT_ID_DAYS * INT64_C(86400000000000))), e);
    }
    status = sqlite_write_end(s, status, e);
    if (status == PROFD_OK) {
        s->forget = whole ? (struct sqlite_cursor){.host = 0} : to;
    }
    return status;
}
