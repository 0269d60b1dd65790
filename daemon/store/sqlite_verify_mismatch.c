/* Reports differences. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "core/sum.h"
#include "proto/hex.h"
#include "store/outgoing.h"
#include "store/sqlite_centre.h"
#include "store/sqlite_segment.h"
#include "store/sqlite_users.h"
#include "store/sqlite_verify.h"

void sqlite_verify_tell(struct sqlite_verifying *v, const char *format, ...)
{
    char sentence[512];
    va_list ap;
    va_start(ap, format);
    vsnprintf(sentence, sizeof sentence, format, ap);
    va_end(ap);
    v->mismatch(v->context, sentence);
}

void sqlite_verify_equal(struct sqlite_verifying *v, const char *where, const char *name, const char *in_one,
                         uint64_t x, const char *in_other, uint64_t y)
{
    if (x != y) {
        sqlite_verify_tell(v, "%s: %s: %" PRIu64 " by the %s, %" PRIu64 " by the %s", where, name, x, in_one, y,
                           in_other);
    }
}

enum profd_status sqlite_verify_load(struct sqlite_verifying *v, const struct sqlite_identity *series, int level,
                                     int64_t at, struct folded *row, bool *found, struct profd_error *e)
{
    struct profd_error why;
    enum profd_status status =
        sqlite_rollup_load(v->s, v->arena, series->id, level, at, series->build_count, row, found, &why);
    if (status == PROFD_DAMAGED && v->s->broken == PROFD_OK) {
        sqlite_verify_tell(v, "series %" PRId64 ", level %d, number %" PRId64 ": %s", series->id, level, at,
                           why.sentence);
        *found = false;
        return PROFD_OK;
    }
    if (status != PROFD_OK && e) {
        *e = why;
    }
    return status;
}

void sqlite_verify_amounts(struct sqlite_verifying *v, const char *where, const char *in_one,
                           const struct store_amount *x, const char *in_other, const struct store_amount *y)
{
    sqlite_verify_equal(v, where, "uploads", in_one, x->uploads, in_other, y->uploads);
    if (x->ticks < SUM_MAX && y->ticks < SUM_MAX) { /* a saturated sum is unknown, and so are its parts */
        sqlite_verify_equal(v, where, "ticks", in_one, x->ticks, in_other, y->ticks);
    }
    if (x->calls < SUM_MAX && y->calls < SUM_MAX) {
        sqlite_verify_equal(v, where, "calls", in_one, x->calls, in_other, y->calls);
    }
}

/* The three sums of a statement's only row. */
static enum profd_status add_up(struct store *s, enum sqlite_sql which, struct store_amount *out, struct profd_error *e)
{
    sqlite3_stmt *q;
    bool row = false;
    const struct sqlite_value tenants[] = {INTEGER(STORE_TENANT_LAST), INTEGER(STORE_TENANT)};
    enum profd_status status = sqlite_first(s, which, tenants, which == SQL_TENANT_SUMS ? 2 : 0, &q, &row, e);
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
    TRY(sqlite_centre_load(v->s, &c, e));
    stored = c.removed;
    TRY(add_up(v->s, SQL_TENANT_SUMS, &stored, e));
    TRY(add_up(v->s, SQL_ARRIVAL_SUMS, &marks, e));
    TRY(add_up(v->s, SQL_EPOCH_SUMS, &marks, e));
    TRY(sqlite_find(v->s, SQL_ARRIVAL_ORPHAN, NULL, 0, &number, &orphan, e));
    TRY(sqlite_find(v->s, SQL_ROLLUP_ASIDE_COUNT, NULL, 0, &aside, &found, e));
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

/* Columns of SQL_INSTANCE_EVERY. */
enum { UID, NAME, GENERATION, UPLOAD, SERIES, HOUR, ENDED, UPLOAD_SERIES, UPLOAD_HOUR, HAS_SNAPSHOT };

static bool is_null(sqlite3_stmt *q, int column)
{
    return sqlite3_column_type(q, column) == SQLITE_NULL;
}

/* Its upload may have been removed, but must not be another's. */
static void verify_upload(struct sqlite_verifying *v, sqlite3_stmt *q, int64_t last, const char *where)
{
    int64_t upload = sqlite3_column_int64(q, UPLOAD), series = sqlite3_column_int64(q, SERIES),
            hour = sqlite3_column_int64(q, HOUR);
    if (is_null(q, UPLOAD) != is_null(q, SERIES) || is_null(q, UPLOAD) != is_null(q, HOUR)) {
        sqlite_verify_tell(v, "%s: of number, series and hour of its upload some are missing", where);
    } else if (!is_null(q, UPLOAD) && (upload < 1 || upload > last)) {
        sqlite_verify_tell(v, "%s: its upload is %" PRId64 ", a number that was never given; the last is %" PRId64,
                           where, upload, last);
    } else if (!is_null(q, UPLOAD_SERIES) &&
               (sqlite3_column_int64(q, UPLOAD_SERIES) != series || sqlite3_column_int64(q, UPLOAD_HOUR) != hour)) {
        sqlite_verify_tell(v,
                           "%s: upload %" PRId64 " of series %" PRId64 ", hour %" PRId64
                           " is not its own of series %" PRId64 ", hour %" PRId64,
                           where, upload, (int64_t)sqlite3_column_int64(q, UPLOAD_SERIES),
                           (int64_t)sqlite3_column_int64(q, UPLOAD_HOUR), series, hour);
    }
}

static void verify_instance(struct sqlite_verifying *v, sqlite3_stmt *q, int64_t last)
{
    char where[96], digits[2 * STORE_INSTANCE_SIZE + 1];
    size_t n;
    const uint8_t *name = sqlite_blob(q, NAME, &n);
    int64_t generation = sqlite3_column_int64(q, GENERATION), ended = sqlite3_column_int64(q, ENDED);
    hex_put(digits, name, n < STORE_INSTANCE_SIZE ? n : STORE_INSTANCE_SIZE);
    snprintf(where, sizeof where, "live process %s of user %" PRId64, digits, (int64_t)sqlite3_column_int64(q, UID));
    if (n != STORE_INSTANCE_SIZE) {
        sqlite_verify_tell(v, "%s: its name has %zu bytes, not %d", where, n, STORE_INSTANCE_SIZE);
    }
    if (generation < 1) {
        sqlite_verify_tell(v, "%s: a snapshot without a generation: %" PRId64 ", the first is 1", where, generation);
    }
    if (sqlite3_column_int(q, HAS_SNAPSHOT) == 0) {
        sqlite_verify_tell(v, "%s: generation %" PRId64 " without a snapshot", where, generation);
    }
    if (ended != 0 && ended != 1) {
        sqlite_verify_tell(v, "%s: neither living (0) nor ended (1) but %" PRId64, where, ended);
    }
    verify_upload(v, q, last, where);
}

enum profd_status sqlite_verify_instances(struct sqlite_verifying *v, struct profd_error *e)
{
    sqlite3_stmt *q;
    struct sqlite_state state;
    bool found = false;
    int64_t one = 0;
    TRY(sqlite_load_state(v->s, &state, e));
    TRY(sqlite_start(v->s, SQL_INSTANCE_EVERY, NULL, 0, &q, e));
    enum profd_status status = PROFD_OK;
    while (sqlite_row(v->s, q, &status, e)) {
        verify_instance(v, q, state.number);
    }
    if (status == PROFD_OK) {
        TRY(sqlite_find(v->s, SQL_INSTANCE_SHARED, NULL, 0, &one, &found, e));
    }
    if (status == PROFD_OK && found) {
        sqlite_verify_tell(v, "upload %" PRId64 " is the latest of two live processes", one);
    }
    if (status == PROFD_OK) {
        TRY(sqlite_find(v->s, SQL_SNAPSHOT_ORPHAN, NULL, 0, &one, &found, e));
    }
    if (status == PROFD_OK && found) {
        sqlite_verify_tell(v, "a snapshot is of live process %" PRId64 ", which is not there", one);
    }
    return status;
}

/* Adds the parts of a segment. *count: how many there are. */
static enum profd_status add_parts(struct sqlite_verifying *v, int64_t id, struct store_amount *amount,
                                   uint64_t *stack_ticks, uint64_t *count, bool *readable, struct profd_error *e)
{
    sqlite3_stmt *q;
    bool ignored = false;
    TRY(sqlite_start(v->s, SQL_SEGMENT_PARTS, VALUES(INTEGER(id)), &q, e));
    enum profd_status status = PROFD_OK;
    while (sqlite_row(v->s, q, &status, e)) {
        struct counts c;
        struct store_amount part = {.uploads = (uint64_t)sqlite3_column_int64(q, 4)};
        size_t n;
        const uint8_t *bytes = sqlite_blob(q, 6, &n);
        ++*count;
        if (counts_decode(bytes, n, LIMIT_BUILDS, &c, NULL) != PROFD_OK) {
            *readable = false;
            continue;
        }
        counts_totals(&c, &part.ticks, &part.calls);
        sum_add(stack_ticks, sum_all(c.node_ticks, c.node_count), &ignored);
        counts_done(&c);
        outgoing_amount_add(amount, &part);
    }
    return status;
}

/* The current row of SQL_SEGMENT_VERIFY. */
static enum profd_status compare_segment(struct sqlite_verifying *v, sqlite3_stmt *q, struct profd_error *e)
{
    char where[48];
    size_t n;
    const int64_t id = sqlite3_column_int64(q, 0);
    const struct store_amount row = sqlite_amount(q, 2);
    struct store_amount found = {0};
    uint64_t parts = 0, stack_ticks = 0;
    struct profd_error why = {""};
    snprintf(where, sizeof where, "segment %" PRId64, id);
    const uint8_t *bytes = sqlite_blob(q, 6, &n);
    bool readable = outgoing_measure(bytes, n, &found, &stack_ticks, &why) == PROFD_OK;
    TRY(add_parts(v, id, &found, &stack_ticks, &parts, &readable, e));
    if (!readable) {
        sqlite_verify_tell(v, "%s cannot be read, and what it holds cannot be sent: %s", where, why.sentence);
        return PROFD_OK;
    }
    sqlite_verify_equal(v, where, "parts", "row", (uint64_t)sqlite3_column_int64(q, 5), "parts", parts);
    sqlite_verify_amounts(v, where, "row", &row, "bytes", &found);
    if (sqlite3_column_type(q, 7) != SQLITE_NULL && stack_ticks < SUM_MAX) {
        sqlite_verify_equal(v, where, "ticks of stacks", "row", (uint64_t)sqlite3_column_int64(q, 7), "bytes",
                            stack_ticks);
    }
    return PROFD_OK;
}

static enum profd_status compare_all(struct sqlite_verifying *v, struct profd_error *e)
{
    struct store_relay r;
    TRY(store_get_relay(v->s, &r, e));
    if (!r.active) {
        return PROFD_OK;
    }
    struct store_amount sum = r.acknowledged;
    outgoing_amount_add(&sum, &r.withdrawn);
    outgoing_amount_add(&sum, &r.sealed);
    outgoing_amount_add(&sum, &r.open);
    sqlite_verify_amounts(v, "forwarded", "accepted", &r.accepted, "acknowledged, withdrawn, sealed and open", &sum);
    return PROFD_OK;
}

enum profd_status sqlite_verify_segments(struct sqlite_verifying *v, struct profd_error *e)
{
    sqlite3_stmt *q;
    bool lone = false;
    int64_t id = 0;
    TRY(sqlite_start(v->s, SQL_SEGMENT_VERIFY, NULL, 0, &q, e));
    enum profd_status status = PROFD_OK;
    while (sqlite_row(v->s, q, &status, e)) {
        status = compare_segment(v, q, e);
    }
    if (status == PROFD_OK) {
        TRY(sqlite_find(v->s, SQL_SEGMENT_ORPHAN, NULL, 0, &id, &lone, e));
    }
    if (status == PROFD_OK && lone) {
        sqlite_verify_tell(v, "bytes or parts of segment %" PRId64 " stand alone: there is no such segment", id);
    }
    return status == PROFD_OK ? compare_all(v, e) : status;
}

enum profd_status sqlite_verify_users(struct sqlite_verifying *v, struct profd_error *e)
{
    sqlite3_stmt *q;
    TRY(sqlite_start(v->s, SQL_USERS_WRONG, VALUES(INTEGER(SQLITE_ROW_BYTES)), &q, e));
    enum profd_status status = PROFD_OK;
    while (sqlite_row(v->s, q, &status, e)) {
        char where[32];
        snprintf(where, sizeof where, "user %" PRId64, (int64_t)sqlite3_column_int64(q, 0));
        sqlite_verify_equal(v, where, "bytes", "list of users", (uint64_t)sqlite3_column_int64(q, 1), "stored rows",
                            (uint64_t)sqlite3_column_int64(q, 2));
    }
    return status;
}
