/* What lists say after something was removed. Deletes the uploads of a program: one commit makes them invisible, and
 * their rows are removed in slices (sqlite_reclaim). */
#include <string.h>

#include "core/sum.h"
#include "store/sqlite_centre.h"
#include "store/sqlite_rollup.h"
#include "store/sqlite_segment.h"
#include "store/sqlite_users.h"

/* A build as one user sees it. */
struct part_key {
    int64_t build, uid;
};

enum profd_status sqlite_withdraw(struct hashmap *gone, const struct sqlite_identity *series, int64_t last,
                                  struct profd_error *e)
{
    for (size_t i = 0; i < series->build_count; i++) {
        const struct part_key key = {.build = series->builds[i], .uid = series->uid};
        int64_t *latest = hashmap_find(gone, &key, sizeof key);
        if (latest) {
            *latest = last > *latest ? last : *latest;
        } else if (!hashmap_put(gone, &key, sizeof key, &last, sizeof last)) {
            return profd_no_memory(e);
        }
    }
    return PROFD_OK;
}

enum profd_status sqlite_withdrawal_apply(struct store *s, const struct hashmap *gone, struct profd_error *e)
{
    size_t position = 0;
    const void *key;
    if (gone->count == 0) {
        return PROFD_OK;
    }
    const struct sqlite_value number = INTEGER(s->state.list_epoch = ++s->state.number);
    for (const int64_t *last; (last = hashmap_next(gone, &position, &key));) {
        struct part_key k; /* keys are unaligned */
        memcpy(&k, key, sizeof k);
        const struct sqlite_value build = INTEGER(k.build), uid = INTEGER(k.uid);
        TRY(sqlite_run(s, SQL_BUILD_USER_LEAVE, VALUES(build, uid), e));
        TRY(sqlite_run(s, SQL_BUILD_USER_TOUCH, VALUES(build, uid, number), e));
        TRY(sqlite_run(s, SQL_BUILD_LEAVE, VALUES(build, uid, number, INTEGER(*last)), e));
        TRY(sqlite_run(s, SQL_USER_EPOCH_SET, VALUES(uid, number), e));
        TRY(sqlite_run(s, SQL_BUILD_FORGET, VALUES(build), e));
    }
    sqlite_discard_rows(s);
    return PROFD_OK;
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

enum profd_status sqlite_symbols_remove(struct store *s, int64_t build, struct profd_error *e)
{
    static const enum sqlite_sql steps[] = {SQL_OBJECT_SENDERS_REMOVE, SQL_OBJECT_REMOVE, SQL_ATTESTATIONS_REMOVE,
                                            SQL_VARIANTS_REMOVE,       SQL_BUILD_UNNAMED, SQL_BUILD_FORGET};
    enum profd_status status = sqlite_count_objects_of(s, build, -1, e);
    for (size_t i = 0; status == PROFD_OK && i < sizeof steps / sizeof steps[0]; i++) {
        status = sqlite_run(s, steps[i], VALUES(INTEGER(build)), e);
    }
    sqlite_discard_rows(s);
    return status;
}

/* Sets the sentence why there is nothing to delete. */
static enum profd_status refuse(struct store *s, const struct store_scope *scope, const char *build_id, int64_t build,
                                struct profd_error *e)
{
    char users[SQLITE_SCOPE_TEXT];
    sqlite3_stmt *q;
    bool row = false;
    TRY(sqlite_first(s, SQL_PROGRAM_OF_LIBRARY,
                     VALUES(INTEGER(build), INTEGER(scope->all), TEXT(sqlite_scope_format(scope, users))), &q, &row,
                     e));
    if (!row) {
        return profd_error_set(e, PROFD_NOT_FOUND, "no build %s has been uploaded", build_id);
    }
    enum profd_status status = profd_error_set(
        e, PROFD_REFUSED, "build %s is not a program but a library; delete the programs that use it, such as %s (%s)",
        build_id, sqlite_text(q, 0), sqlite_text(q, 1));
    sqlite_finish(q);
    return status;
}

static enum profd_status doom_series(struct store *s, struct arena *a, int64_t id, struct hashmap *w, uint64_t *uploads,
                                     struct profd_error *e)
{
    struct sqlite_identity series;
    struct sqlite_sums gone;
    bool found, saturated = false;
    TRY(sqlite_series_identify(s, a, id, &series, &found, e));
    TRY(sqlite_series_load(s, id, series.build_count, &gone, &found, e));
    enum profd_status status = sqlite_run(s, SQL_DOOMED_ADD, VALUES(INTEGER(id)), e);
    if (status == PROFD_OK) {
        status = sqlite_series_remove(s, &series, e);
    }
    if (status == PROFD_OK) {
        status = sqlite_segment_withdraw(s, id, e);
    }
    if (status == PROFD_OK) {
        status = sqlite_withdraw(w, &series, gone.last, e);
    }
    if (status == PROFD_OK) {
        status = sqlite_centre_removed(s, &series, &gone, e);
    }
    sqlite_retired_add(&s->state, &gone);
    sum_add(uploads, gone.uploads, &saturated);
    return status;
}

/* All series of which the build is the program. */
static enum profd_status doom_program(struct store *s, const struct store_scope *scope, int64_t build,
                                      struct hashmap *w, uint64_t *uploads, bool *any, struct profd_error *e)
{
    char users[SQLITE_SCOPE_TEXT];
    struct arena *a = arena_new(0);
    enum profd_status status = a ? PROFD_OK : profd_no_memory(e);
    for (bool found = true; status == PROFD_OK && found;) {
        int64_t series = 0;
        status = sqlite_find(s, SQL_SERIES_OF_PROGRAM,
                             VALUES(INTEGER(build), INTEGER(scope->all), TEXT(sqlite_scope_format(scope, users))),
                             &series, &found, e);
        if (status != PROFD_OK || !found) {
            break;
        }
        *any = true;
        arena_reset(a);
        status = doom_series(s, a, series, w, uploads, e);
    }
    arena_free(a);
    return status;
}

static enum profd_status delete_program(struct store *s, const struct store_scope *scope, const char *build_id,
                                        struct hashmap *w, uint64_t *uploads, struct profd_error *e)
{
    int64_t build = 0, one;
    bool known = false, any = false, named = true;
    TRY(sqlite_find(s, SQL_BUILD_FIND, VALUES(TEXT(build_id)), &build, &known, e));
    if (!known) {
        return profd_error_set(e, PROFD_NOT_FOUND, "no build %s has been uploaded", build_id);
    }
    TRY(doom_program(s, scope, build, w, uploads, &any, e));
    if (!any) {
        return refuse(s, scope, build_id, build, e);
    }
    if (store_scope_has_tenants(scope)) { /* hosts may send some of it later */
        TRY(sqlite_run(s, SQL_DELETION_ADD, VALUES(TEXT(build_id)), e));
    }
    TRY(sqlite_withdrawal_apply(s, w, e));
    TRY(sqlite_find(s, SQL_BUILD_IS_MEMBER, VALUES(INTEGER(build)), &one, &named, e));
    if (!named) {
        TRY(sqlite_symbols_remove(s, build, e));
    }
    return PROFD_OK;
}

enum profd_status store_delete_build(struct store *s, const struct store_scope *scope, const char *build_id,
                                     uint64_t *uploads, struct profd_error *e)
{
    struct hashmap w;
    uint64_t removed = 0;
    TRY(sqlite_upkeep_begin(s, e));
    hashmap_init(&w, 0);
    enum profd_status status = delete_program(s, scope, build_id, &w, &removed, e);
    s->spacious = true; /* it frees more than it writes */
    status = sqlite_upkeep_end(s, status, e);
    hashmap_clear(&w);
    if (status == PROFD_OK) {
        *uploads = removed;
    }
    return status;
}
