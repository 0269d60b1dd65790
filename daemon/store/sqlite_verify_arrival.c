#include <inttypes.h>

#include "store/outgoing.h"
#include "store/sqlite_centre.h"
#include "store/sqlite_segment.h"
#include "store/sqlite_verify.h"

/* The three sums of a statement's only row. */
static enum profd_status add_up(struct sqlite_store *s, enum sqlite_sql which, struct store_amount *out,
                                struct profd_error *e)
{
    sqlite3_stmt *q;
    bool row = false;
    const struct sqlite_value tenants[] = {INTEGER(STORE_TENANT_LAST), INTEGER(STORE_TENANT)};
    enum profd_status status = sqlite_start(s, which, tenants, which == SQL_TENANT_SUMS ? 2 : 0, &q, e);
    if (status == PROFD_OK) {
        status = sqlite_next(s, q, &row, e);
    }
    if (row) {
        const struct store_amount sum = sqlite_amount(q, 0);
        outgoing_amount_add(out, &sum);
        sqlite_finish(q);
    }
    return status;
}

enum profd_status sqlite_verify_arrivals(struct sqlite_verifying *v, struct profd_error *e)
{
    struct sqlite_centre c;
    struct store_amount stored, marks = {0};
    int64_t number = 0, aside = 0;
    bool orphan = false, found;
    enum profd_status status = sqlite_centre_load(v->s, &c, e);
    if (status != PROFD_OK) {
        return status;
    }
    stored = c.removed;
    status = add_up(v->s, SQL_TENANT_SUMS, &stored, e);
    if (status == PROFD_OK) {
        status = add_up(v->s, SQL_ARRIVAL_SUMS, &marks, e);
    }
    if (status == PROFD_OK) {
        status = add_up(v->s, SQL_EPOCH_SUMS, &marks, e);
    }
    if (status == PROFD_OK) {
        status = sqlite_find(v->s, SQL_ARRIVAL_ORPHAN, NULL, 0, &number, &orphan, e);
    }
    if (status == PROFD_OK) {
        status = sqlite_find(v->s, SQL_ROLLUP_ASIDE_COUNT, NULL, 0, &aside, &found, e);
    }
    if (status != PROFD_OK) {
        return status;
    }
    if (aside > 0) {
        sqlite_verify_tell(v,
                           "%" PRId64
                           " sums of what hosts have sent cannot be read and were put aside: their hours are "
                           "marked segment-missing",
                           aside);
    }
    if (orphan) {
        sqlite_verify_tell(v, "arrival %" PRId64 " is of no epoch, or is below its mark", number);
    }
    sqlite_verify_amounts(v, "from hosts", "counted", &c.counted, "marks of arrivals", &marks);
    sqlite_verify_amounts(v, "from hosts", "counted", &c.counted, "series and what was removed", &stored);
    return PROFD_OK;
}
