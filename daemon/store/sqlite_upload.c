#include "store/sqlite_batch.h"

static enum profd_status put_upload(struct sqlite_batch *b, const struct store_upload *u, enum store_outcome *outcome,
                                    struct profd_error *e)
{
    int64_t host, number;
    const struct sqlite_series *series;
    enum profd_status status = sqlite_intern_host(b->s, u->host, &host, e);
    if (status == PROFD_OK) {
        status = sqlite_take_id(b->s, u, host, outcome, e);
    }
    if (status != PROFD_OK || *outcome != STORE_STORED) {
        return status;
    }
    status = sqlite_intern_series(b->s, u, &series, e);
    return status == PROFD_OK ? sqlite_batch_put(b, u, host, series, 0, &number, e) : status;
}

enum profd_status sqlite_put_uploads(struct store *base, const struct store_upload *uploads, size_t n,
                                     enum store_outcome *outcomes, struct profd_error *e)
{
    struct sqlite_store *s = sqlite_self(base);
    struct sqlite_batch b;
    enum profd_status status = sqlite_space_begin(s, e);
    if (status == PROFD_OK) {
        status = sqlite_write_begin(s, e);
    }
    if (status != PROFD_OK) {
        return status;
    }
    sqlite_batch_init(&b, s);
    for (size_t i = 0; status == PROFD_OK && i < n; i++) {
        status = put_upload(&b, &uploads[i], &outcomes[i], e);
    }
    if (status == PROFD_OK) {
        status = sqlite_batch_flush(&b, e);
    }
    if (status == PROFD_OK) {
        status = sqlite_space_judge(s, e);
    }
    status = sqlite_write_end(s, status, e);
    sqlite_batch_done(&b);
    return status;
}
