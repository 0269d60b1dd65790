/* The salt of ETags, and what else a restored database gets. With the number of a change the salt identifies a state of
 * the data that no other database has. */
#include <inttypes.h>
#include <stdio.h>
#include <sys/random.h>

#include "store/sqlite_segment.h"

enum profd_status sqlite_salt_draw(sqlite3 *db, struct profd_error *e)
{
    int64_t salt;
    char sql[64];
    if (getrandom(&salt, sizeof salt, 0) != (ssize_t)sizeof salt) {
        return profd_error_set(e, PROFD_IO, "no random bytes for the salt of ETags");
    }
    sqlite3_snprintf((int)sizeof sql, sql, "UPDATE state SET salt=%lld", (long long)salt);
    return sqlite_direct_run(db, sql, "cannot set the salt of ETags", e);
}

enum profd_status store_sqlite_resalt(struct store *base, struct profd_error *e)
{
    return sqlite_salt_draw(sqlite_self(base)->db, e);
}

enum profd_status store_sqlite_renew(struct store *base, struct profd_error *e)
{
    uint64_t incarnation[2];
    char sql[96];
    if (getrandom(incarnation, sizeof incarnation, 0) != (ssize_t)sizeof incarnation) {
        return profd_error_set(e, PROFD_IO, "no random bytes for the incarnation of a centre");
    }
    sqlite3_snprintf((int)sizeof sql, sql, "UPDATE centre SET incarnation=x'%016llx%016llx'",
                     (unsigned long long)incarnation[0], (unsigned long long)incarnation[1]);
    enum profd_status status =
        sqlite_direct_run(sqlite_self(base)->db, sql, "cannot set the incarnation of a centre", e);
    if (status == PROFD_OK) {
        status = sqlite_relay_mark_gap(sqlite_self(base), e);
    }
    return status == PROFD_OK ? store_sqlite_resalt(base, e) : status;
}

enum profd_status store_sqlite_touch(struct store *base, struct profd_error *e)
{
    return sqlite_direct_run(sqlite_self(base)->db, "UPDATE state SET salt=salt", "cannot begin the log", e);
}

enum profd_status store_sqlite_describe(struct store *base, struct store_sqlite_state *out, struct profd_error *e)
{
    struct sqlite_store *s = sqlite_self(base);
    struct sqlite_state t;
    enum profd_status status = s->broken == PROFD_OK || s->saved ? sqlite_load_state(s, &t, e)
                                                                 : profd_error_set(e, s->broken, "%s", s->why.sentence);
    if (status != PROFD_OK) {
        return status;
    }
    out->salt = t.salt;
    out->number = t.number;
    (void)snprintf(out->text, sizeof out->text,
                   "%" PRId64 ",%" PRId64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64,
                   t.list_epoch, t.version, t.uploads, t.calls, t.retired_uploads, t.raw_bytes, t.rollups,
                   t.live_bytes);
    return PROFD_OK;
}
