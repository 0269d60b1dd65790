/* Deletes the uploads of a program: one commit makes them invisible, and their rows are removed in slices
 * (sqlite_reclaim). */
#include "core/sum.h"
#include "store/sqlite_centre.h"
#include "store/sqlite_rollup.h"
#include "store/sqlite_segment.h"

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

static enum profd_status doom_series(struct store *s, struct arena *a, int64_t id, struct sqlite_withdrawal *w,
                                     uint64_t *uploads, struct profd_error *e)
{
    struct sqlite_identity series;
    struct sqlite_sums gone, none;
    bool found, saturated = false;
    TRY(sqlite_series_identify(s, a, id, &series, &found, e));
    TRY(sqlite_series_load(s, id, series.build_count, &gone, &found, e));
    sqlite_sums_init(&none, series.build_count);
    enum profd_status status = sqlite_run(s, SQL_DOOMED_ADD, VALUES(INTEGER(id)), e);
    if (status == PROFD_OK) {
        status = sqlite_series_remove(s, &series, e);
    }
    if (status == PROFD_OK) {
        status = sqlite_segment_withdraw(s, id, e);
    }
    if (status == PROFD_OK) {
        status = sqlite_withdraw(w, &series, &gone, &none, e);
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
                                      struct sqlite_withdrawal *w, uint64_t *uploads, bool *any, struct profd_error *e)
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
                                        struct sqlite_withdrawal *w, uint64_t *uploads, struct profd_error *e)
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
    struct sqlite_withdrawal w;
    uint64_t removed = 0;
    TRY(sqlite_upkeep_begin(s, e));
    sqlite_withdrawal_init(&w);
    enum profd_status status = delete_program(s, scope, build_id, &w, &removed, e);
    s->spacious = true; /* it frees more than it writes */
    status = sqlite_upkeep_end(s, status, e);
    sqlite_withdrawal_done(&w);
    if (status == PROFD_OK) {
        *uploads = removed;
    }
    return status;
}
