#include "store/sqlite_batch.h"
#include "store/sqlite_users.h"

static enum profd_status put_upload(struct sqlite_batch *b, const struct store_upload *u, enum store_outcome *outcome,
                                    struct profd_error *e)
{
    int64_t host, number;
    const struct sqlite_series *series;
    bool may = true, counted = false;
    if (u->live) {
        TRY(u->counts_size > 0 ? sqlite_judge_upload(u, e) : PROFD_OK);
        return sqlite_put_harvest(b, u, outcome, e);
    }
    if (u->sequence == 0) {
        return profd_error_set(e, PROFD_INTERNAL, "an upload's sequence is 0; sequences begin with 1");
    }
    TRY(sqlite_judge_upload(u, e));
    TRY(sqlite_share_take(b->s, &b->shares, u->uid, u->counts_size, &may, e));
    if (!may) { /* a repeat of what was counted takes no space */
        TRY(store_has_upload(b->s, u, &counted, e));
    }
    if (!may && !counted) {
        *outcome = STORE_OVER_SHARE;
        return PROFD_OK;
    }
    TRY(sqlite_intern_host(b->s, u->host, &host, e));
    TRY(sqlite_take_id(b->s, u, host, outcome, e));
    if (*outcome != STORE_STORED) {
        return PROFD_OK;
    }
    TRY(sqlite_intern_series(b->s, u, &series, e));
    return sqlite_batch_put(b, u, host, series, 0, &number, e);
}

enum profd_status store_put_uploads(struct store *s, const struct store_upload *uploads, size_t n,
                                    enum store_outcome *outcomes, struct profd_error *e)
{
    struct sqlite_batch b;
    if (n == 0) {
        return PROFD_OK;
    }
    TRY(sqlite_store_begin(s, e));
    sqlite_batch_init(&b, s);
    enum profd_status status = PROFD_OK;
    for (size_t i = 0; status == PROFD_OK && i < n; i++) {
        status = put_upload(&b, &uploads[i], &outcomes[i], e);
    }
    if (status == PROFD_OK) {
        status = sqlite_batch_flush(&b, e);
    }
    status = sqlite_store_end(s, status, e);
    sqlite_batch_done(&b);
    return status;
}
