/* Updates the lists after something was removed, so that they show what is stored. */
#include <string.h>

#include "core/sum.h"
#include "proto/message.h"
#include "store/sqlite_rollup.h"

/* A build as one user sees it, and the removed part of it. */
struct part_key {
    int64_t build, uid;
};
struct part {
    uint64_t uploads, processes, nanoseconds, calls;
    int64_t first, last; /* earliest and latest removed time, if the rest of its series does not extend as far */
    uint32_t lost;       /* reasons for inexactness that the rest of the series does not have */
    bool anew;           /* add up the remainder: the build may not be a program any more */
};

void sqlite_withdrawal_init(struct sqlite_withdrawal *w)
{
    hashmap_init(&w->parts, 0);
    w->any = false;
}

void sqlite_withdrawal_done(struct sqlite_withdrawal *w)
{
    hashmap_clear(&w->parts);
}

enum profd_status sqlite_withdraw(struct sqlite_withdrawal *w, const struct sqlite_identity *series,
                                  const struct sqlite_sums *gone, const struct sqlite_sums *rest, struct profd_error *e)
{
    bool saturated = false;
    w->any = true;
    for (size_t i = 0; i < series->build_count; i++) {
        struct part_key key = {.build = series->builds[i], .uid = series->uid};
        struct part *p = hashmap_find(&w->parts, &key, sizeof key), none = {.first = INT64_MAX, .last = INT64_MIN};
        if (!p) {
            p = hashmap_put(&w->parts, &key, sizeof key, &none, sizeof none);
        }
        if (!p) {
            return profd_no_memory(e);
        }
        sum_add(&p->uploads, gone->uploads, &saturated);
        sum_add(&p->processes, gone->processes, &saturated);
        sum_add(&p->nanoseconds, gone->shares[i].nanoseconds, &saturated);
        sum_add(&p->calls, gone->shares[i].calls, &saturated);
        if (gone->first < rest->first && gone->first < p->first) {
            p->first = gone->first;
        }
        if (gone->last > rest->last && gone->last > p->last) {
            p->last = gone->last;
        }
        p->lost |= gone->inexact & ~rest->inexact;
        p->anew |= saturated || (rest->uploads == 0 && series->builds[i] == series->program);
    }
    return PROFD_OK;
}

static void read_shown(sqlite3_stmt *q, struct sqlite_shown *x)
{
    *x = (struct sqlite_shown){.is_program = sqlite3_column_int(q, 0) != 0,
                               .first = sqlite3_column_int64(q, 1),
                               .last = sqlite3_column_int64(q, 2),
                               .uploads = (uint64_t)sqlite3_column_int64(q, 3),
                               .processes = (uint64_t)sqlite3_column_int64(q, 4),
                               .nanoseconds = (uint64_t)sqlite3_column_int64(q, 5),
                               .calls = (uint64_t)sqlite3_column_int64(q, 6),
                               .inexact = (uint32_t)sqlite3_column_int64(q, 7)};
}

/* Subtracts; false if the remainder must be added up again. */
static bool subtract_part(struct sqlite_shown *x, const struct part *p)
{
    if (p->anew || p->first <= x->first || p->last >= x->last || (p->lost & x->inexact) != 0) {
        return false;
    }
    return sum_subtract(&x->uploads, p->uploads) && sum_subtract(&x->processes, p->processes) &&
           sum_subtract(&x->nanoseconds, p->nanoseconds) && sum_subtract(&x->calls, p->calls);
}

void sqlite_shown_add(struct sqlite_shown *x, const struct sqlite_sums *sums, size_t place, bool program)
{
    bool saturated = false;
    sum_add(&x->uploads, sums->uploads, &saturated);
    sum_add(&x->processes, sums->processes, &saturated);
    sum_add(&x->nanoseconds, sums->shares[place].nanoseconds, &saturated);
    sum_add(&x->calls, sums->shares[place].calls, &saturated);
    /* A sum at the end of the series exceeded it. */
    saturated |= sums->shares[place].nanoseconds >= SUM_MAX || sums->shares[place].calls >= SUM_MAX;
    x->inexact |= sums->inexact | (saturated ? (uint32_t)INEXACT_SATURATED : 0);
    x->first = sums->first < x->first ? sums->first : x->first;
    x->last = sums->last > x->last ? sums->last : x->last;
    x->is_program |= program;
}

/* Adds up the sums of a build over its series. uploads 0: there are none. */
static enum profd_status add_up(struct store *s, const struct part_key *key, struct sqlite_shown *x,
                                struct profd_error *e)
{
    sqlite3_stmt *q;
    struct sqlite_sums sums;
    *x = (struct sqlite_shown){.first = INT64_MAX, .last = INT64_MIN};
    TRY(sqlite_start(s, SQL_SERIES_SUMS, VALUES(INTEGER(key->build), INTEGER(key->uid)), &q, e));
    enum profd_status status = PROFD_OK;
    while (sqlite_row(s, q, &status, e)) {
        size_t n;
        const uint8_t *set = sqlite_blob(q, SQLITE_SUM_COLUMNS, &n);
        status = n / 4 <= LIMIT_BUILDS
                     ? sqlite_sums_read(s, q, n / 4, &sums, e)
                     : profd_error_set(e, PROFD_DAMAGED, "database %s: a set of %zu builds", s->path, n / 4);
        bool program = sqlite3_column_int64(q, SQLITE_SUM_COLUMNS + 1) == key->build;
        for (size_t i = 0; status == PROFD_OK && i < n / 4; i++) {
            if (sqlite_set_build(set, i) == key->build) {
                sqlite_shown_add(x, &sums, i, program);
            }
        }
    }
    return status;
}

/* Removes the build for this user. If no user has it, its row states since when. */
static enum profd_status remove_shown(struct store *s, const struct part_key *key, const struct sqlite_shown *was,
                                      bool *gone, struct profd_error *e)
{
    int64_t one;
    bool others = false;
    TRY(sqlite_run(s, SQL_BUILD_USER_REMOVE, VALUES(INTEGER(key->build), INTEGER(key->uid)), e));
    TRY(sqlite_find(s, SQL_BUILD_USER_ANY, VALUES(INTEGER(key->build)), &one, &others, e));
    TRY(sqlite_run(s, SQL_BUILD_UNSEEN, VALUES(INTEGER(key->build), INTEGER(was->last), INTEGER(!others)), e));
    *gone = !others;
    return PROFD_OK;
}

static enum profd_status save_shown(struct store *s, const struct part_key *key, const struct sqlite_shown *x,
                                    struct profd_error *e)
{
    return sqlite_run(s, SQL_BUILD_USER_SET,
                      VALUES(INTEGER(key->build), INTEGER(key->uid), INTEGER(s->state.number), INTEGER(0),
                             INTEGER(x->is_program), INTEGER(x->first), INTEGER(x->last), INTEGER(x->uploads),
                             INTEGER(x->processes), INTEGER(x->nanoseconds), INTEGER(x->calls), INTEGER(x->inexact),
                             TEXT("")),
                      e);
}

static enum profd_status apply_part(struct store *s, const struct part_key *key, const struct part *p,
                                    struct profd_error *e)
{
    sqlite3_stmt *q;
    bool row = false, gone = false;
    struct sqlite_shown was, x;
    enum profd_status status =
        sqlite_first(s, SQL_BUILD_USER_FIND, VALUES(INTEGER(key->build), INTEGER(key->uid)), &q, &row, e);
    if (!row) {
        return status == PROFD_OK
                   ? profd_error_set(e, PROFD_DAMAGED, "database %s: build %lld of user %lld is in no list", s->path,
                                     (long long)key->build, (long long)key->uid)
                   : status;
    }
    read_shown(q, &was);
    sqlite_finish(q);
    x = was;
    if (!subtract_part(&x, p)) {
        status = add_up(s, key, &x, e);
    }
    if (status == PROFD_OK) {
        TRY(x.uploads == 0 ? remove_shown(s, key, &was, &gone, e) : save_shown(s, key, &x, e));
    }
    if (status == PROFD_OK && !gone) {
        TRY(sqlite_run(s, SQL_BUILD_EPOCH_SET, VALUES(INTEGER(key->build), INTEGER(s->state.number)), e));
    }
    if (status == PROFD_OK) {
        TRY(sqlite_run(s, SQL_USER_EPOCH_SET, VALUES(INTEGER(key->uid), INTEGER(s->state.number)), e));
    }
    if (status == PROFD_OK && gone) {
        TRY(sqlite_run(s, SQL_BUILD_FORGET, VALUES(INTEGER(key->build)), e));
    }
    return status;
}

enum profd_status sqlite_withdrawal_apply(struct store *s, struct sqlite_withdrawal *w, struct profd_error *e)
{
    enum profd_status status = PROFD_OK;
    size_t position = 0;
    const void *key;
    if (!w->any) {
        return PROFD_OK;
    }
    s->state.list_epoch = ++s->state.number;
    for (const struct part *p; status == PROFD_OK && (p = hashmap_next(&w->parts, &position, &key));) {
        struct part_key copy; /* keys are unaligned */
        memcpy(&copy, key, sizeof copy);
        status = apply_part(s, &copy, p, e);
    }
    sqlite_discard_rows(s);
    return status;
}

void sqlite_retired_add(struct sqlite_state *t, const struct sqlite_sums *gone)
{
    bool saturated = false;
    sum_add(&t->retired_uploads, gone->uploads, &saturated);
    sum_add(&t->retired_ticks, gone->ticks, &saturated);
    sum_add(&t->retired_calls, gone->calls, &saturated);
    t->raw_uploads -= gone->raw_uploads < t->raw_uploads ? gone->raw_uploads : t->raw_uploads;
    t->raw_bytes -= gone->raw_bytes < t->raw_bytes ? gone->raw_bytes : t->raw_bytes;
    t->live_bytes -= gone->live_bytes < t->live_bytes ? gone->live_bytes : t->live_bytes;
}

enum profd_status sqlite_series_remove(struct store *s, const struct sqlite_identity *series, struct profd_error *e)
{
    TRY(sqlite_run(s, SQL_SERIES_REMOVE, VALUES(INTEGER(series->id)), e));
    TRY(sqlite_run(s, SQL_SET_USER_REMOVE, VALUES(INTEGER(series->set), INTEGER(series->uid)), e));
    TRY(sqlite_run(s, SQL_SET_REMOVE, VALUES(INTEGER(series->set)), e));
    if (sqlite3_changes(s->db) > 0) {
        TRY(sqlite_run(s, SQL_SET_MEMBERS_REMOVE, VALUES(INTEGER(series->set)), e));
    }
    return PROFD_OK;
}
