/* Counts the bytes that each user stores. A hook sees every row before it changes, so that no statement can be
 * forgotten.
 *
 * A row counts its texts and blobs, and SQLITE_ROW_BYTES for the rest. Rows of a series or a live process are noted
 * under its number; their user is found when the transaction ends. Symbols count for a user only if no other user has
 * sent them. */
#define SQLITE_ENABLE_PREUPDATE_HOOK /* declares what the library must have */

#include "store/store_internal.h"

/* The key under which bytes are noted. GONE: instead of bytes, the user of a row that the transaction has removed. */
enum owner { OWNER_USER, OWNER_SERIES, OWNER_INSTANCE, OWNER_SERIES_GONE, OWNER_INSTANCE_GONE };
struct owner_key {
    int64_t owner, id;
};
#define NOBODY (-1) /* the user of series that other centres have sealed */

/* The tables whose rows count, and the columns that name their owners. */
static const struct counted_table {
    const char *table;
    enum owner owner;
    int column;
    enum owner gone; /* OWNER_USER: its removal says nothing about others */
    int gone_user;   /* column */
    int gone_nobody; /* column: not 0 if the rows count for no user; 0: there is none */
    bool counts;
    int beside; /* column: bytes of another row before, which count; columns behind it were part of it. 0: none */
} tables[] = {
    {"upload", OWNER_SERIES, 1, OWNER_USER, 0, 0, true, 0},
    {"rollup", OWNER_SERIES, 1, OWNER_USER, 0, 0, true, 0},
    {"sealed", OWNER_SERIES, 2, OWNER_USER, 0, 0, true, 14},
    {"rollup_processes", OWNER_SERIES, 0, OWNER_USER, 0, 0, true, 0},
    {"ledger", OWNER_SERIES, 0, OWNER_USER, 0, 0, true, 0},
    {"series", OWNER_SERIES, 0, OWNER_SERIES_GONE, 2, 16, true, 0},
    {"doomed", OWNER_SERIES, 0, OWNER_SERIES_GONE, 1, 0, false, 0},
    {"snapshot", OWNER_INSTANCE, 0, OWNER_USER, 0, 0, true, 0},
    {"instance", OWNER_INSTANCE, 0, OWNER_INSTANCE_GONE, 1, 0, true, 0},
    {"build_user", OWNER_USER, 1, OWNER_USER, 0, 0, true, 0},
};

static void note(struct store *s, enum owner owner, int64_t id, int64_t bytes)
{
    const struct owner_key key = {owner, id};
    int64_t *sum = hashmap_find(&s->owed, &key, sizeof key);
    if (sum) {
        *sum += bytes;
    } else if (!hashmap_put(&s->owed, &key, sizeof key, &bytes, sizeof bytes)) {
        s->owed_lost = true;
    }
}

typedef int column_reader(sqlite3 *db, int column, sqlite3_value **value);

static int64_t row_bytes(sqlite3 *db, column_reader *column, int beside)
{
    int64_t bytes = SQLITE_ROW_BYTES;
    sqlite3_value *more;
    if (beside > 0 && column(db, beside, &more) == SQLITE_OK) {
        bytes += SQLITE_ROW_BYTES + sqlite3_value_int64(more);
    }
    const int columns = beside > 0 ? beside : sqlite3_preupdate_count(db);
    for (int i = 0; i < columns; i++) {
        sqlite3_value *v;
        if (column(db, i, &v) == SQLITE_OK &&
            (sqlite3_value_type(v) == SQLITE_BLOB || sqlite3_value_type(v) == SQLITE_TEXT)) {
            bytes += sqlite3_value_bytes(v);
        }
    }
    return bytes;
}

static void see_row(void *context, sqlite3 *db, int op, const char *schema, const char *table, sqlite3_int64 before,
                    sqlite3_int64 after)
{
    struct store *s = context;
    const struct counted_table *t = tables, *end = tables + sizeof tables / sizeof tables[0];
    (void)schema;
    (void)before;
    (void)after;
    while (t < end && strcmp(t->table, table) != 0) {
        t++;
    }
    if (t == end) {
        return;
    }
    column_reader *column = op == SQLITE_INSERT ? sqlite3_preupdate_new : sqlite3_preupdate_old;
    sqlite3_value *v;
    const int64_t id = column(db, t->column, &v) == SQLITE_OK ? sqlite3_value_int64(v) : 0;
    if (t->counts) {
        note(s, t->owner, id,
             (op == SQLITE_DELETE ? 0 : row_bytes(db, sqlite3_preupdate_new, t->beside)) -
                 (op == SQLITE_INSERT ? 0 : row_bytes(db, sqlite3_preupdate_old, t->beside)));
    }
    if (op == SQLITE_DELETE && t->gone != OWNER_USER) {
        const struct owner_key key = {t->gone, id};
        sqlite3_value *uid;
        const bool nobody = t->gone_nobody > 0 && sqlite3_preupdate_old(db, t->gone_nobody, &uid) == SQLITE_OK &&
                            sqlite3_value_int(uid) != 0;
        if (sqlite3_preupdate_old(db, t->gone_user, &uid) == SQLITE_OK && !hashmap_find(&s->owed, &key, sizeof key)) {
            note(s, t->gone, id, nobody ? NOBODY : sqlite3_value_int64(uid));
        }
    }
}

void sqlite_users_watch(struct store *s)
{
    sqlite3_preupdate_hook(s->db, see_row, s);
}

enum profd_status sqlite_users_remove_sums(struct store *s, int64_t series, const struct sqlite_value *which,
                                           size_t count, uint64_t *removed, struct profd_error *e)
{
    sqlite3_stmt *q;
    bool row = false;
    TRY(sqlite_first(s, SQL_ROLLUP_BYTES, which, count, &q, &row, e));
    const int64_t bytes = row ? sqlite3_column_int64(q, 0) : 0;
    sqlite_finish(q);
    sqlite3_preupdate_hook(s->db, NULL, NULL);
    const enum profd_status status = sqlite_run(s, SQL_ROLLUP_REMOVE, which, count, e);
    sqlite_users_watch(s);
    TRY(status);
    *removed = (uint64_t)sqlite3_changes(s->db);
    note(s, OWNER_SERIES, series, -bytes - (int64_t)*removed * SQLITE_ROW_BYTES);
    return PROFD_OK;
}

void sqlite_users_discard(struct store *s)
{
    hashmap_clear(&s->owed);
    s->owed_lost = false;
}

static enum profd_status user_add(struct store *s, int64_t uid, int64_t bytes, struct profd_error *e)
{
    return bytes == 0 || uid == NOBODY ? PROFD_OK
                                       : sqlite_run(s, SQL_USER_ADD, VALUES(INTEGER(uid), INTEGER(bytes)), e);
}

enum profd_status sqlite_users_flush(struct store *s, struct profd_error *e)
{
    size_t position = 0;
    const void *key;
    enum profd_status status = s->owed_lost ? profd_no_memory(e) : PROFD_OK;
    for (const int64_t *bytes; !status && (bytes = hashmap_next(&s->owed, &position, &key));) {
        struct owner_key k; /* keys are unaligned */
        int64_t uid = 0, sum;
        memcpy(&k, key, sizeof k);
        memcpy(&sum, bytes, sizeof sum);
        if (k.owner >= OWNER_SERIES_GONE) {
            continue;
        }
        const bool series = k.owner == OWNER_SERIES;
        const struct owner_key gone = {series ? OWNER_SERIES_GONE : OWNER_INSTANCE_GONE, k.id};
        const int64_t *known = k.owner == OWNER_USER ? &k.id : hashmap_find(&s->owed, &gone, sizeof gone);
        bool found = known != NULL;
        if (known) {
            uid = *known;
        } else {
            status = sqlite_find(s, series ? SQL_SERIES_UID : SQL_INSTANCE_UID, VALUES(INTEGER(k.id)), &uid, &found, e);
        }
        if (!status && found) {
            status = user_add(s, uid, sum, e);
        }
    }
    sqlite_users_discard(s);
    return status;
}

enum profd_status sqlite_count_object(struct store *s, int64_t object, int sign, struct profd_error *e)
{
    sqlite3_stmt *q;
    bool row = false;
    int64_t uid = 0, bytes = 0;
    enum profd_status status =
        sqlite_first(s, SQL_OBJECT_ALONE, VALUES(INTEGER(object), INTEGER(SQLITE_ROW_BYTES)), &q, &row, e);
    if (row) {
        uid = sqlite3_column_int64(q, 0);
        bytes = sqlite3_column_int64(q, 1);
        sqlite_finish(q);
    }
    return status == PROFD_OK ? user_add(s, uid, sign * bytes, e) : status;
}

enum profd_status sqlite_count_objects_of(struct store *s, int64_t build, int sign, struct profd_error *e)
{
    int64_t object = 0;
    bool found = true;
    while (found) {
        TRY(sqlite_find(s, SQL_OBJECT_NEXT, VALUES(INTEGER(build), INTEGER(object)), &object, &found, e));
        if (found) {
            TRY(sqlite_count_object(s, object, sign, e));
        }
    }
    return PROFD_OK;
}

enum profd_status sqlite_get_use(struct store *s, uint32_t uid, uint64_t *bytes, uint64_t *total, struct profd_error *e)
{
    int64_t own = 0, all = 0;
    bool found;
    TRY(sqlite_find(s, SQL_USER_GET, VALUES(INTEGER(uid)), &own, &found, e));
    TRY(sqlite_find(s, SQL_USERS_TOTAL, NULL, 0, &all, &found, e));
    *bytes = (uint64_t)own;
    *total = (uint64_t)all;
    return PROFD_OK;
}

enum profd_status sqlite_users_list(struct store *s, struct store_totals *t, struct profd_error *e)
{
    sqlite3_stmt *q;
    bool row = false;
    enum profd_status status = PROFD_OK;
    TRY(sqlite_first(s, SQL_USERS_COUNT, NULL, 0, &q, &row, e));
    t->users = row ? sqlite_u64(q, 0) : 0;
    t->user_bytes = row ? sqlite_u64(q, 1) : 0;
    sqlite_finish(q);
    TRY(sqlite_start(s, SQL_USERS_LARGEST, VALUES(INTEGER(STORE_LARGEST_USERS)), &q, e));
    t->largest_count = 0;
    while (sqlite_row(s, q, &status, e)) {
        t->largest[t->largest_count++] =
            (struct store_user){.uid = (uint32_t)sqlite3_column_int64(q, 0), .bytes = sqlite_u64(q, 1)};
    }
    return status;
}

uint64_t sqlite_share_most(const struct store_share *share, uint64_t own, uint64_t total)
{
    const uint64_t others = total > own ? total - own : 0;
    const uint64_t left = others < share->limit ? share->limit - others : 0;
    if (share->limit == 0 || share->percent >= 100) {
        return UINT64_MAX;
    }
    return left / 100 * share->percent + left % 100 * share->percent / 100; /* left * percent may be above 2^64 */
}

enum profd_status store_get_use(struct store *s, uint32_t uid, struct store_use *use, struct profd_error *e)
{
    uint64_t own, total;
    TRY(sqlite_get_use(s, uid, &own, &total, e));
    *use = (struct store_use){
        .bytes = own, .others = total > own ? total - own : 0, .most = sqlite_share_most(&s->share, own, total)};
    return PROFD_OK;
}

enum profd_status store_share_refuse(struct store *s, uint32_t uid, struct profd_error *e)
{
    struct store_use use;
    TRY(store_get_use(s, uid, &use, e));
    return profd_error_set(e, PROFD_FULL,
                           "user %u stores %llu bytes here and may store at most %llu: user-share, %u%%, of the "
                           "%llu bytes that other "
                           "users leave of %llu; delete programs of this user (profctl delete), let keep-age or "
                           "keep-bytes remove "
                           "days, or raise user-share",
                           uid, (unsigned long long)use.bytes, (unsigned long long)use.most, s->share.percent,
                           (unsigned long long)(s->share.limit > use.others ? s->share.limit - use.others : 0),
                           (unsigned long long)s->share.limit);
}

enum profd_status sqlite_share_take(struct store *s, struct hashmap *users, uint32_t uid, uint64_t bytes, bool *may,
                                    struct profd_error *e)
{
    *may = true;
    if (s->share.limit == 0 || s->share.percent >= 100) {
        return PROFD_OK;
    }
    uint64_t *left = hashmap_find(users, &uid, sizeof uid);
    if (!left) {
        struct store_use use;
        TRY(store_get_use(s, uid, &use, e));
        const uint64_t most = use.most > use.bytes ? use.most - use.bytes : 0;
        left = hashmap_put(users, &uid, sizeof uid, &most, sizeof most);
    }
    TRY(left ? PROFD_OK : profd_no_memory(e));
    *may = bytes <= *left;
    *left -= *may ? bytes : 0;
    return PROFD_OK;
}
