/* What hosts attest (attestations.h). */
#include <stdio.h>
#include <string.h>

#include "store/sqlite_users.h"

/* One item, with the rows behind it. */
struct attesting {
    struct store *s;
    const struct store_attestation *a;
    int64_t host, build, variant; /* variant: before; 0: none */
};

enum profd_status sqlite_await_objects(struct store *s, int64_t series, int64_t host, struct profd_error *e)
{
    return sqlite_run(s, SQL_ATTESTATION_AWAIT, VALUES(INTEGER(series), INTEGER(host)), e);
}

/* The object of a variant that no host attests any more is removed, unless a user has sent it, too. */
static enum profd_status remove_variant(struct store *s, int64_t variant, struct profd_error *e)
{
    int64_t object = 0;
    bool found = false;
    TRY(sqlite_find(s, SQL_VARIANT_OBJECT, VALUES(INTEGER(variant)), &object, &found, e));
    if (found) {
        TRY(sqlite_count_object(s, object, -1, e));
    }
    if (found) {
        TRY(sqlite_run(s, SQL_OBJECT_SENDER_DROP,
                       VALUES(INTEGER(object), INTEGER(STORE_TENANT_LAST), INTEGER(STORE_TENANT)), e));
    }
    if (found) {
        TRY(sqlite_run(s, SQL_OBJECT_DROP_UNSENT, VALUES(INTEGER(object)), e));
    }
    if (found) {
        TRY(sqlite_count_object(s, object, 1, e));
    }
    return sqlite_run(s, SQL_VARIANT_REMOVE, VALUES(INTEGER(variant)), e);
}

static enum profd_status leave_variant(const struct attesting *x, struct profd_error *e)
{
    int64_t hosts = 1;
    bool found = false;
    if (x->variant != 0) {
        TRY(sqlite_find(x->s, SQL_VARIANT_LEAVE, VALUES(INTEGER(x->variant)), &hosts, &found, e));
    }
    return found && hosts <= 0 ? remove_variant(x->s, x->variant, e) : PROFD_OK;
}

/* The limits of one host. */
static enum profd_status judge_limits(const struct attesting *x, struct store_attested *out, struct profd_error *e)
{
    sqlite3_stmt *q;
    bool row = false;
    enum profd_status status =
        sqlite_first(x->s, SQL_ATTESTATION_USE, VALUES(INTEGER(x->host), INTEGER(x->build)), &q, &row, e);
    if (row) {
        const uint64_t bytes = (uint64_t)sqlite3_column_int64(q, 1);
        if (sqlite3_column_int64(q, 0) >= STORE_ATTEST_MOST) {
            out->verdict = STORE_ATTEST_TOO_MANY;
        } else if (x->a->size > STORE_ATTEST_BYTES - (bytes < STORE_ATTEST_BYTES ? bytes : STORE_ATTEST_BYTES)) {
            out->verdict = STORE_ATTEST_TOO_LARGE;
        }
        sqlite_finish(q);
    }
    return status;
}

/* Enters what the host attests now. */
static enum profd_status enter(const struct attesting *x, bool has, struct store_attested *out, struct profd_error *e)
{
    const struct store_attestation *a = x->a;
    int64_t variant = 0, object = 0;
    bool found = false;
    if (has) { /* before the old one is left, which may be the same */
        TRY(sqlite_find(x->s, SQL_VARIANT_ADD, VALUES(INTEGER(x->build), BLOB(a->hash, sizeof a->hash)), &variant,
                        &found, e));
    }
    TRY(leave_variant(x, e));
    if (has) {
        TRY(sqlite_find(x->s, SQL_VARIANT_OBJECT, VALUES(INTEGER(variant)), &object, &out->stored, e));
    }
    const bool over = a->refused || out->verdict != STORE_ATTEST_TAKEN || out->stored;
    const int64_t wait = over ? STORE_ATTEST_AGAIN : has ? STORE_ATTEST_AWAITED : STORE_ATTEST_ABSENT;
    return sqlite_run(x->s, SQL_ATTESTATION_SET,
                      VALUES(INTEGER(x->build), INTEGER(x->host), INTEGER(variant), INTEGER(has ? a->size : 0),
                             INTEGER(a->now + wait)),
                      e);
}

static enum profd_status attest_build(struct attesting *x, struct store_attested *out, struct profd_error *e)
{
    struct store *s = x->s;
    int64_t before = 0, after = 0;
    TRY(x->a->has ? judge_limits(x, out, e) : PROFD_OK);
    TRY(sqlite_find_quorum(s, x->build, &before, e));
    TRY(enter(x, x->a->has && out->verdict == STORE_ATTEST_TAKEN, out, e));
    TRY(sqlite_find_quorum(s, x->build, &after, e));
    if (after == 0 || after != before) {
        s->state.number++;
        TRY(sqlite_touch_object(s, x->build, STORE_TENANT_LAST, STORE_TENANT, e));
    }
    return PROFD_OK;
}

static enum profd_status attest_one(struct store *s, const struct store_attestation *a, struct store_attested *out,
                                    struct profd_error *e)
{
    struct attesting x = {.s = s, .a = a};
    sqlite3_stmt *q;
    bool row = false, found = false;
    *out = (struct store_attested){.verdict = STORE_ATTEST_UNASKED};
    enum profd_status status =
        sqlite_find(s, SQL_FLEET_HOST_FIND, VALUES(BLOB(a->host, sizeof a->host)), &x.host, &found, e);
    if (status == PROFD_OK) {
        status = sqlite_start(s, SQL_ATTESTATION_FIND, VALUES(TEXT(a->build_id), INTEGER(x.host)), &q, e);
    }
    if (status == PROFD_OK) {
        status = sqlite_next(s, q, &row, e);
    }
    if (row) {
        x.variant = sqlite3_column_int64(q, 0);
        x.build = sqlite3_column_int64(q, 1);
        sqlite_finish(q);
        out->verdict = STORE_ATTEST_TAKEN;
        status = attest_build(&x, out, e);
    }
    if (status == PROFD_OK) {
        status = sqlite_start(s, SQL_ATTESTATION_NEXT, VALUES(INTEGER(x.host), INTEGER(a->now)), &q, e);
    }
    if (status == PROFD_OK && (status = sqlite_next(s, q, &row, e)) == PROFD_OK && row) {
        snprintf(out->next.text, sizeof out->next.text, "%s", sqlite_text(q, 0));
        sqlite_finish(q);
    }
    return status;
}

enum profd_status store_attest(struct store *s, const struct store_attestation *list, size_t n,
                               struct store_attested *out, struct profd_error *e)
{
    TRY(sqlite_store_begin(s, e));
    enum profd_status status = PROFD_OK;
    for (size_t i = 0; i < n && status == PROFD_OK; i++) {
        status = attest_one(s, &list[i], &out[i], e);
    }
    return sqlite_store_end(s, status, e);
}
