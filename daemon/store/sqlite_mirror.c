/* What other centres sealed, as stubs of this database, and what was deleted at any centre. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "proto/sum.h"
#include "proto/hex.h"
#include "proto/label.h"
#include "store/store_internal.h"
#include "store/block_keys.h"

#define COUNT_MOST (INT64_C(1) << 53) /* uploads of a sum; times and numbers may be larger */

/* CONFLICT unless the block arrives. */
static enum profd_status find_arriving(struct store *s, uint64_t row, struct store_block *out, struct profd_error *e)
{
    bool found = false;
    TRY(sqlite_block_find(s, SQL_BLOCK_GET, row, out, &found, e));
    return found && out->state == STORE_BLOCK_ARRIVING
               ? PROFD_OK
               : profd_error_set(e, PROFD_CONFLICT, "a block is not arriving, or not any more");
}

enum profd_status store_mirror_begin(struct store *s, uint64_t row, struct profd_error *e)
{
    TRY(sqlite_write_begin(s, e));
    enum profd_status status = sqlite_run(
        s, SQL_MIRROR_STATE, VALUES(INTEGER(row), INTEGER(STORE_BLOCK_LISTED), INTEGER(STORE_BLOCK_ARRIVING)), e);
    if (!status && sqlite3_changes(s->db) == 0) {
        status = profd_error_set(e, PROFD_CONFLICT, "a block is not listed, or not any more");
    }
    return sqlite_write_end(s, status, e);
}

/* --- A sum as it comes from the tier: everything in it may be false. --- */

struct putting {
    struct store *s;
    struct store_block block;
    struct arena *arena; /* of a sum */
};

static enum profd_status refuse(const struct putting *p, const struct store_block_sum *sum, struct profd_error *e,
                                const char *rule)
{
    return profd_error_set(e, PROFD_PROTOCOL,
                           "a sum of program %.*s in block %" PRIu64 " of another centre is not mirrored: %s",
                           BUILDID_TEXT_SIZE, sum->stub.program, p->block.number, rule);
}

static enum profd_status judge_series(const struct putting *p, const struct store_block_sum *sum, uint32_t *program,
                                      struct profd_error *e)
{
    uint8_t key[STORE_SERIES_KEY_SIZE];
    struct buildid id;
    size_t bytes = 0;
    *program = UINT32_MAX;
    if (sum->build_count == 0 || sum->build_count > LIMIT_BUILDS || sum->label_count > LIMIT_LABELS) {
        return refuse(p, sum, e, "it has no builds, or more builds or labels than a series may have");
    }
    for (size_t i = 0; i < sum->build_count; i++) {
        const char *text = sum->builds[i].id.text, *name = sum->builds[i].name;
        if (buildid_parse(text, strlen(text), &id, NULL) != PROFD_OK || strcmp(id.text, text) != 0) {
            return refuse(p, sum, e, "it has a build-id that is none");
        }
        if (strlen(name) > LIMIT_BUILD_NAME || !utf8_valid((const uint8_t *)name, strlen(name))) {
            return refuse(p, sum, e, "the name of a build is too long, or not UTF-8");
        }
        *program = strcmp(text, sum->stub.program) == 0 && *program == UINT32_MAX ? (uint32_t)i : *program;
    }
    for (size_t i = 0; i < sum->label_count; i++) {
        const struct store_label *l = &sum->labels[i];
        bytes += strlen(l->name) + strlen(l->value);
        if (label_judge(l->name, strlen(l->name), l->value, strlen(l->value)) != LABEL_GOOD ||
            (i > 0 && strcmp(sum->labels[i - 1].name, l->name) >= 0)) {
            return refuse(p, sum, e, "its labels break the rules of labels, or their order");
        }
    }
    if (*program == UINT32_MAX || bytes > LIMIT_LABEL_BYTES) {
        return refuse(p, sum, e, "its program is not among its builds, or its labels are too long");
    }
    sqlite_series_key_make(sum, key);
    return memcmp(key, sum->stub.series, sizeof key) == 0 ? PROFD_OK
                                                          : refuse(p, sum, e, "its series does not have its key");
}

static enum profd_status judge_sum(const struct putting *p, const struct store_block_sum *sum, struct profd_error *e)
{
    const int64_t day = sum->stub.level == SQLITE_LEVEL_HOUR ? sum->stub.at / 24 : sum->stub.at;
    struct random_groups groups;
    if (sum->stub.level < SQLITE_LEVEL_HOUR || sum->stub.level > SQLITE_LEVEL_DAY || day != p->block.day ||
        sum->stub.at < 0) {
        return refuse(p, sum, e, "it is not of an hour of the block's day, nor of the day");
    }
    if (sum->uploads == 0 || sum->uploads > COUNT_MOST || sum->processes > SUM_MAX || sum->ticks > SUM_MAX ||
        sum->calls > SUM_MAX || sum->number > SUM_MAX || sum->stub.bytes > COUNT_MOST ||
        sum->bulk.host_count > COUNT_MOST || sum->first < 0 || sum->first > sum->last || sum->last / SQLITE_DAY < day) {
        return refuse(p, sum, e, "one of its numbers or times cannot be that of a sum");
    }
    if (sum->groups_size > 0 && !random_groups_decode(sum->groups, sum->groups_size, &groups)) {
        return refuse(p, sum, e, "its processes by group cannot be read");
    }
    return PROFD_OK;
}

/* The user that the tenant is here. Only a block of this centre has local users. */
static enum profd_status find_uid(struct putting *p, const struct store_block_sum *sum, bool own, uint32_t *uid,
                                  struct profd_error *e)
{
    int64_t tenant = 0;
    unsigned local = 0;
    int end = 0;
    if (sscanf(sum->tenant, "uid %u%n", &local, &end) == 1 && sum->tenant[end] == '\0') {
        *uid = local;
        return own && local < STORE_TENANT_LAST ? PROFD_OK : refuse(p, sum, e, "it is of a local user of that centre");
    }
    if (*sum->tenant == '\0' || strlen(sum->tenant) > LIMIT_LABEL_VALUE ||
        !utf8_valid((const uint8_t *)sum->tenant, strlen(sum->tenant))) {
        return refuse(p, sum, e, "the name of its tenant is empty, too long, or not UTF-8");
    }
    TRY(sqlite_find_tenant(p->s, sum->tenant, &tenant, e));
    *uid = store_tenant_uid(tenant);
    return PROFD_OK;
}

static enum profd_status put_sum(struct putting *p, const struct store_block_sum *sum, bool own, struct profd_error *e)
{
    struct store_upload series = {
        .build_count = sum->build_count, .builds = sum->builds, .label_count = sum->label_count, .labels = sum->labels};
    const struct sqlite_series *known;
    struct sqlite_sums hours;
    uint8_t encoded[SQLITE_SHARES_BYTES];
    const uint8_t *shares = sum->shares;
    size_t shares_size = sum->shares_size;
    TRY(judge_series(p, sum, &series.program, e));
    TRY(judge_sum(p, sum, e));
    TRY(find_uid(p, sum, own, &series.uid, e));
    TRY(sqlite_intern_series(p->s, &series, SQLITE_SERIES_MIRROR, &known, e));
    sqlite_sums_init(&hours, sum->build_count);
    if (sum->stub.level == SQLITE_LEVEL_HOUR) {
        if (!sqlite_shares_decode(shares, shares_size, &hours)) {
            return refuse(p, sum, e, "its shares of builds cannot be read");
        }
    } else {
        TRY(sqlite_sums_of_rows(p->s, SQL_MIRROR_HOURS,
                                VALUES(INTEGER(known->id), INTEGER(p->block.day), INTEGER(p->block.row)),
                                sum->build_count, &hours, e));
        if (hours.uploads != sum->uploads || hours.processes != sum->processes) {
            return refuse(p, sum, e, "it is not the sum of its hours");
        }
        shares_size = sqlite_shares_encode(&hours, encoded);
        shares = encoded;
    }
    return sqlite_run(p->s, SQL_MIRROR_PUT,
                      VALUES(INTEGER(p->block.row), INTEGER(known->id), INTEGER(sum->stub.level), INTEGER(sum->stub.at),
                             INTEGER(sum->number), INTEGER(sum->uploads), INTEGER(sum->processes), INTEGER(sum->ticks),
                             INTEGER(sum->calls), INTEGER(sum->first), INTEGER(sum->last), INTEGER(sum->inexact),
                             sum->groups_size > 0 ? BLOB(sum->groups, sum->groups_size) : NOTHING,
                             INTEGER(sum->stub.bytes),
                             sum->bulk.counts_size > 0 ? BLOB(sum->bulk.counts, sum->bulk.counts_size) : NOTHING,
                             BLOB(shares, shares_size), INTEGER(sum->bulk.host_count)),
                      e);
}

enum profd_status store_mirror_put(struct store *s, uint64_t row, const struct store_block_sum *sums, size_t n,
                                   struct profd_error *e)
{
    struct putting p = {.s = s};
    struct store_centre centre;
    TRY(sqlite_store_begin(s, e));
    enum profd_status status = find_arriving(s, row, &p.block, e);
    status = status ? status : sqlite_centre_load(s, &centre, e);
    const bool own = !status && memcmp(centre.name, p.block.centre, sizeof centre.name) == 0;
    for (size_t i = 0; i < n && !status; i++) {
        status = put_sum(&p, &sums[i], own, e);
    }
    status = status ? status : sqlite_run(s, SQL_MIRROR_GROW, VALUES(INTEGER(row), INTEGER(n)), e);
    return sqlite_store_end(s, status, e);
}

/* --- Blocks become visible, and leave --- */

/* Computes the sums of a mirrored series anew. */
static enum profd_status sum_series(struct store *s, struct arena *a, int64_t id, uint32_t *uid, struct profd_error *e)
{
    struct sqlite_identity series;
    struct sqlite_sums sums;
    bool found = false;
    arena_reset(a);
    TRY(sqlite_series_identify(s, a, id, &series, &found, e));
    if (!found) { /* it was deleted, and its rows are being removed */
        *uid = STORE_TENANT;
        return PROFD_OK;
    }
    *uid = series.uid;
    TRY(sqlite_sums_of_rows(s, SQL_MIRROR_DAYS, VALUES(INTEGER(id)), series.build_count, &sums, e));
    return sqlite_series_save(s, id, &sums, e);
}

/* Computes the sums of all series of a block anew. Their users are touched later. */
static enum profd_status sum_block(struct store *s, uint64_t row, struct profd_error *e)
{
    struct arena *a = arena_new(0);
    enum profd_status status = a ? PROFD_OK : profd_no_memory(e);
    int64_t series = 0;
    uint32_t uid = 0;
    for (bool found = true; !status; series++) {
        status = sqlite_find(s, SQL_MIRROR_SERIES_NEXT,
                             VALUES(INTEGER(row), INTEGER(SQLITE_LEVEL_DAY), INTEGER(series)), &series, &found, e);
        if (status || !found) {
            break;
        }
        status = sum_series(s, a, series, &uid, e);
        if (!status && !hashmap_find(&s->touched, &uid, sizeof uid) &&
            !hashmap_put(&s->touched, &uid, sizeof uid, &uid, sizeof uid)) {
            status = profd_no_memory(e);
        }
    }
    arena_free(a);
    return status;
}

/* Answers about the users of the blocks that changed are new, and those about tenants, which name the centres. */
static enum profd_status touch(struct store *s, struct profd_error *e)
{
    size_t position = 0;
    const int64_t number = s->state.list_epoch = ++s->state.number;
    enum profd_status status = sqlite_centre_touch(s, number, STORE_TENANT_LAST, STORE_TENANT, e);
    for (const uint32_t *uid; !status && (uid = hashmap_next(&s->touched, &position, NULL));) {
        status = sqlite_centre_touch(s, number, *uid, *uid, e);
    }
    hashmap_clear(&s->touched);
    return status;
}

static enum profd_status hide_block(struct store *s, uint64_t row, struct profd_error *e)
{
    TRY(sqlite_run(s, SQL_MIRROR_STATE,
                   VALUES(INTEGER(row), INTEGER(STORE_BLOCK_MIRRORED), INTEGER(STORE_BLOCK_LEAVING)), e));
    return sum_block(s, row, e);
}

static enum profd_status show_block(struct store *s, uint64_t row, uint64_t sums, struct profd_error *e)
{
    struct store_block b;
    int64_t series = 0, before = 0;
    bool found = false;
    TRY(find_arriving(s, row, &b, e));
    FAIL_IF(b.sums != sums, e, PROFD_CONFLICT, "%" PRIu64 " of %" PRIu64 " sums of block %" PRIu64 " are here", b.sums,
            sums, b.number);
    TRY(sqlite_find(s, SQL_MIRROR_LONE, VALUES(INTEGER(row)), &series, &found, e));
    FAIL_IF(found, e, PROFD_PROTOCOL,
            "block %" PRIu64 " of another centre is not mirrored: it has an hour of a series and no day of it",
            b.number);
    const struct sqlite_value which[] = {BLOB(b.centre, sizeof b.centre), INTEGER(b.number), INTEGER(row)};
    for (found = true; found;) {
        TRY(sqlite_find(s, SQL_MIRROR_BEFORE, which, sizeof which / sizeof which[0], &before, &found, e));
        TRY(found ? hide_block(s, (uint64_t)before, e) : PROFD_OK);
    }
    TRY(sqlite_run(s, SQL_MIRROR_STATE,
                   VALUES(INTEGER(row), INTEGER(STORE_BLOCK_ARRIVING), INTEGER(STORE_BLOCK_MIRRORED)), e));
    TRY(sum_block(s, row, e));
    return touch(s, e);
}

enum profd_status store_mirror_show(struct store *s, uint64_t row, uint64_t sums, struct profd_error *e)
{
    TRY(sqlite_upkeep_begin(s, e));
    return sqlite_upkeep_end(s, show_block(s, row, sums, e), e);
}

/* --- Blocks of this centre, after a restore --- */

struct adopting {
    struct store *s;
    int64_t day;
};

static enum profd_status keep_key(void *context, const char *tenant, const uint8_t epoch[SEGMENT_EPOCH_SIZE],
                                  const struct block_keys_range *range, struct profd_error *e)
{
    const struct adopting *a = context;
    int64_t id = 0;
    TRY(sqlite_find_tenant(a->s, tenant, &id, e));
    return sqlite_run(a->s, SQL_ADOPTED_PUT,
                      VALUES(INTEGER(a->day), INTEGER(id), BLOB(epoch, SEGMENT_EPOCH_SIZE), INTEGER(range->low),
                             INTEGER(range->high)),
                      e);
}

static enum profd_status adopt_block(struct store *s, uint64_t row, uint64_t sums, const uint8_t *keys, size_t n,
                                     struct profd_error *e)
{
    struct store_block b;
    TRY(find_arriving(s, row, &b, e));
    TRY(sqlite_retire_day(s, b.day, e));
    TRY(block_keys_decode(keys, n, keep_key, &(struct adopting){s, b.day}, e));
    return show_block(s, row, sums, e);
}

enum profd_status store_mirror_adopt(struct store *s, uint64_t row, uint64_t sums, const uint8_t *keys, size_t n,
                                     struct profd_error *e)
{
    TRY(sqlite_upkeep_begin(s, e));
    return sqlite_upkeep_end(s, adopt_block(s, row, sums, keys, n, e), e);
}

enum profd_status store_mirror_end(struct store *s, const struct store_block *own, size_t n, struct profd_error *e)
{
    TRY(sqlite_write_begin(s, e));
    enum profd_status status = sqlite_run(s, SQL_ADOPT_NUMBER_ADD, NULL, 0, e);
    for (size_t i = 0; i < n && !status; i++) {
        status = sqlite_run(s, SQL_ADOPT_NUMBER, VALUES(INTEGER(own[i].number)), e);
        if (!status) {
            status = sqlite_run(s, SQL_ADOPT_ATTEMPT, VALUES(INTEGER(own[i].number), INTEGER(own[i].attempt)), e);
        }
    }
    status = status ? status : sqlite_run(s, SQL_ADOPT_END, NULL, 0, e);
    return sqlite_write_end(s, status, e);
}

/* --- Which blocks there are --- */

/* Blocks that are here and not in the list. */
struct comparing {
    const struct store_mirror *list;
    size_t n;
    struct store_block first;
    uint64_t count;
};

static bool compare_block(void *context, const struct store_mirror *m)
{
    struct comparing *c = context;
    const struct store_block *here = &m->block;
    bool listed = false;
    for (size_t i = 0; i < c->n && !listed; i++) {
        const struct store_block *b = &c->list[i].block;
        /* What is visible stays until its next attempt is. */
        listed = b->number == here->number && (b->attempt == here->attempt || here->state == STORE_BLOCK_MIRRORED) &&
                 memcmp(b->centre, here->centre, sizeof b->centre) == 0;
    }
    if (!listed && here->state != STORE_BLOCK_LEAVING && c->count++ == 0) {
        c->first = *here;
    }
    return c->count < 2;
}

static enum profd_status list_blocks(struct store *s, const struct store_mirror *list, size_t n, bool *more,
                                     struct profd_error *e)
{
    struct comparing c = {.list = list, .n = n};
    uint64_t added = 0;
    TRY(sqlite_run(s, SQL_MIRROR_ARRIVING, NULL, 0, e));
    for (size_t i = 0; i < n; i++) {
        const struct store_block *b = &list[i].block;
        TRY(sqlite_run(s, SQL_MIRROR_ADD,
                       VALUES(BLOB(b->centre, sizeof b->centre), INTEGER(b->attempt), INTEGER(b->day),
                              INTEGER(b->sealed), INTEGER(b->number), TEXT(list[i].name), INTEGER(b->bytes)),
                       e));
        added += (uint64_t)sqlite3_changes(s->db);
    }
    TRY(store_each_mirror(s, compare_block, &c, e));
    if (c.count > 0 && c.first.state == STORE_BLOCK_MIRRORED) {
        TRY(hide_block(s, c.first.row, e));
    } else if (c.count > 0) {
        TRY(sqlite_run(s, SQL_BLOCK_STATE_SET, VALUES(INTEGER(c.first.row), INTEGER(STORE_BLOCK_LEAVING)), e));
    }
    *more = c.count > 1;
    return added + c.count > 0 ? touch(s, e) : PROFD_OK;
}

enum profd_status store_mirror_list(struct store *s, const struct store_mirror *list, size_t n, bool *more,
                                    struct profd_error *e)
{
    bool others = false;
    TRY(sqlite_upkeep_begin(s, e));
    TRY(sqlite_upkeep_end(s, list_blocks(s, list, n, &others, e), e));
    *more = others;
    return PROFD_OK;
}

/* Removes the sums of a series of a hidden block, and the series if it has no others. */
static enum profd_status clean_series(struct store *s, struct arena *a, uint64_t row, int64_t id, struct hashmap *gone,
                                      struct profd_error *e)
{
    struct sqlite_identity series;
    struct sqlite_sums sums;
    int64_t one;
    bool found = false, used = true;
    TRY(sqlite_run(s, SQL_MIRROR_REMOVE, VALUES(INTEGER(row), INTEGER(id)), e));
    TRY(sqlite_find(s, SQL_MIRROR_USED, VALUES(INTEGER(id)), &one, &used, e));
    if (used) {
        return PROFD_OK;
    }
    arena_reset(a);
    TRY(sqlite_series_identify(s, a, id, &series, &found, e));
    if (!found) {
        return PROFD_OK;
    }
    TRY(sqlite_series_load(s, id, series.build_count, &sums, &found, e));
    TRY(sqlite_series_remove(s, &series, e));
    return sqlite_withdraw(gone, &series, sums.uploads > 0 ? sums.last : 0, e);
}

/* Hides a block that was adopted and that retention removes. */
static enum profd_status hide_retired(struct store *s, bool *found, struct profd_error *e)
{
    int64_t row = 0;
    TRY(sqlite_find(s, SQL_ADOPTED_RETIRED, NULL, 0, &row, found, e));
    if (!*found) {
        return PROFD_OK;
    }
    TRY(hide_block(s, (uint64_t)row, e));
    return touch(s, e);
}

static enum profd_status clean(struct store *s, struct arena *a, struct hashmap *gone, struct store_progress *progress,
                               struct profd_error *e)
{
    struct sqlite_budget budget = sqlite_budget_begin();
    int64_t row = 0, series = 0;
    TRY(hide_retired(s, &progress->more, e));
    while (!sqlite_budget_spent(&budget)) {
        bool found = false;
        TRY(sqlite_find(s, SQL_MIRROR_LEAVING, NULL, 0, &row, &progress->more, e));
        for (int level = SQLITE_LEVEL_DAY; progress->more && !found && level >= SQLITE_LEVEL_HOUR; level--) {
            TRY(sqlite_find(s, SQL_MIRROR_SERIES_NEXT, VALUES(INTEGER(row), INTEGER(level), INTEGER(0)), &series,
                            &found, e));
        }
        if (!progress->more) {
            return PROFD_OK;
        }
        if (found) {
            TRY(clean_series(s, a, (uint64_t)row, series, gone, e));
        } else {
            TRY(sqlite_run(s, SQL_ADOPTED_GONE, VALUES(INTEGER(row)), e));
            TRY(sqlite_run(s, SQL_MIRROR_FORGET, VALUES(INTEGER(row)), e));
        }
        progress->rows++;
    }
    return PROFD_OK;
}

enum profd_status store_mirror_clean(struct store *s, struct store_progress *progress, struct profd_error *e)
{
    struct store_progress p = {.more = false};
    struct hashmap gone;
    struct arena *a = arena_new(0);
    enum profd_status status = a ? sqlite_upkeep_begin(s, e) : profd_no_memory(e);
    if (!status) {
        hashmap_init(&gone, 0);
        status = clean(s, a, &gone, &p, e);
        status = status ? status : sqlite_withdrawal_apply(s, &gone, e);
        hashmap_clear(&gone);
        status = sqlite_upkeep_end(s, status, e);
    }
    arena_free(a);
    if (!status) {
        *progress = p;
    }
    return status;
}

/* --- Lists --- */

enum profd_status store_each_mirror(struct store *s, bool (*each)(void *context, const struct store_mirror *m),
                                    void *context, struct profd_error *e)
{
    sqlite3_stmt *q;
    enum profd_status status = PROFD_OK;
    TRY(sqlite_start(s, SQL_MIRROR_EACH, NULL, 0, &q, e));
    while (sqlite_row(s, q, &status, e)) {
        struct store_mirror m = {.name = sqlite_text(q, SQLITE_BLOCK_COLUMNS)};
        sqlite_block_take(q, 0, &m.block);
        if (!each(context, &m)) {
            sqlite_finish(q);
            break;
        }
    }
    return status;
}

enum profd_status store_each_centre(struct store *s, void (*each)(void *context, const struct store_tier_centre *c),
                                    void *context, struct profd_error *e)
{
    sqlite3_stmt *q;
    enum profd_status status = PROFD_OK;
    TRY(sqlite_start(s, SQL_MIRROR_CENTRES, NULL, 0, &q, e));
    while (sqlite_row(s, q, &status, e)) {
        const bool waits = sqlite3_column_int64(q, 6) > 0;
        struct store_tier_centre c = {
            .sealed_to = (waits ? sqlite3_column_int64(q, 7) : sqlite3_column_int64(q, 2) + 1) * SQLITE_DAY,
            .days = sqlite_u64(q, 3),
            .sums = sqlite_u64(q, 4),
            .bytes = sqlite_u64(q, 5),
            .waiting = sqlite_u64(q, 6)};
        char digits[9];
        sqlite_copy(q, 0, c.centre, sizeof c.centre);
        hex_put(digits, c.centre, 4);
        digits[8] = '\0';
        (void)snprintf(c.name, sizeof c.name, sqlite3_column_int(q, 8) > 1 ? "%.*s (%s)" : "%.*s",
                       STORE_CENTRE_NAME_MOST, sqlite_text(q, 1), digits);
        each(context, &c);
    }
    return status;
}

/* --- Marks of the tier --- */

/* Adds up in *changes how many rows of table tier_mark become other ones. */
static enum profd_status add_tier_marks(struct store *s, const struct store_tier_mark *list, size_t n, int64_t *changes,
                                        struct profd_error *e)
{
    for (size_t i = 0; i < n; i++) {
        const struct store_tier_mark *m = &list[i];
        TRY(sqlite_run(s, SQL_TIER_MARK_ADD,
                       VALUES(BLOB(m->centre, sizeof m->centre), INTEGER(m->hour), TEXT(m->tenant), TEXT(m->host),
                              INTEGER(m->reasons)),
                       e));
        *changes += sqlite3_changes(s->db);
    }
    return PROFD_OK;
}

static enum profd_status set_tier_marks(struct store *s, const struct store_tier_mark *list, size_t n,
                                        struct profd_error *e)
{
    int64_t count = 0, changes = 0;
    bool found;
    TRY(add_tier_marks(s, list, n, &changes, e));
    TRY(sqlite_find(s, SQL_TIER_MARK_COUNT, NULL, 0, &count, &found, e));
    if ((size_t)count != n) { /* the tier has lost some */
        TRY(sqlite_run(s, SQL_TIER_MARK_CLEAR, NULL, 0, e));
        TRY(add_tier_marks(s, list, n, &changes, e));
        changes = 1;
    }
    return changes == 0 ? PROFD_OK : touch(s, e);
}

enum profd_status store_set_tier_marks(struct store *s, const struct store_tier_mark *list, size_t n,
                                       struct profd_error *e)
{
    TRY(sqlite_upkeep_begin(s, e));
    return sqlite_upkeep_end(s, set_tier_marks(s, list, n, e), e);
}

enum profd_status store_each_untold_mark(struct store *s, int64_t before,
                                         void (*each)(void *context, const struct store_tier_mark *m), void *context,
                                         struct profd_error *e)
{
    sqlite3_stmt *q;
    enum profd_status status = PROFD_OK;
    TRY(sqlite_start(s, SQL_TIER_MARK_LACKING, VALUES(INTEGER(before)), &q, e));
    while (sqlite_row(s, q, &status, e)) {
        struct store_tier_mark m = {.hour = sqlite3_column_int64(q, 1),
                                    .tenant = sqlite_text(q, 2),
                                    .host = sqlite_text(q, 3),
                                    .reasons = (uint32_t)sqlite3_column_int64(q, 4)};
        sqlite_copy(q, 0, m.centre, sizeof m.centre);
        each(context, &m);
    }
    return status;
}

/* --- Deletions of the tier --- */

/* Finds the scope of a tombstone. *found: its tenant has a number here. */
static enum profd_status find_owner(struct store *s, const struct store_tombstone *t, struct store_scope *scope,
                                    bool *found, struct profd_error *e)
{
    int64_t id = 0;
    unsigned uid = 0;
    int end = 0;
    if (sscanf(t->tenant, "uid %u%n", &uid, &end) == 1 && t->tenant[end] == '\0') {
        *scope = (struct store_scope){.uid = uid};
        if (store_is_tenant(uid)) {
            return PROFD_OK;
        }
        return sqlite_find(s, SQL_TOMBSTONE_OF_CENTRE, VALUES(BLOB(t->centre, sizeof t->centre)), &id, found, e);
    }
    TRY(sqlite_find(s, SQL_TENANT_FIND, VALUES(TEXT(t->tenant)), &id, found, e));
    *scope = (struct store_scope){.uid = store_tenant_uid(id)};
    return PROFD_OK;
}

/* Hides the mirrored blocks of another centre that have a number above `after`, up to `last`. They are then mirrored
 * again. */
static enum profd_status mirror_again(struct store *s, const uint8_t centre[STORE_CENTRE_SIZE], uint64_t after,
                                      uint64_t last, struct profd_error *e)
{
    const struct sqlite_value which[] = {BLOB(centre, STORE_CENTRE_SIZE), INTEGER(after), INTEGER(last)};
    int64_t row = 0;
    bool found = true, any = false;
    while (found) {
        TRY(sqlite_find(s, SQL_MIRROR_BETWEEN, which, sizeof which / sizeof which[0], &row, &found, e));
        TRY(found ? hide_block(s, (uint64_t)row, e) : PROFD_OK);
        any |= found;
    }
    return any ? touch(s, e) : PROFD_OK;
}

static enum profd_status bury(struct store *s, struct store_tombstone *t, uint64_t *uploads, struct profd_error *e)
{
    const struct sqlite_value key[] = {TEXT(t->tenant), TEXT(t->build), BLOB(t->centre, sizeof t->centre),
                                       INTEGER(t->block), INTEGER(t->deleted)};
    struct store_scope scope;
    uint64_t removed = 0;
    int64_t had = 0, beyond = 0, covered = 0, one;
    bool found = false, any;
    t->beyond = 0;
    TRY(sqlite_run(s, SQL_TOMBSTONE_ADD, key, 5, e));
    if (sqlite3_changes(s->db) == 0) {
        TRY(sqlite_find(s, SQL_TOMBSTONE_GET, key, 5, &had, &found, e));
        *uploads += (uint64_t)had;
        TRY(sqlite_find(s, SQL_TOMBSTONE_COVER, key, 5, &beyond, &found, e));
        t->beyond = (uint64_t)beyond;
        return PROFD_OK;
    }
    /* A deletion that failed may have left tombstones, which become visible after one that was applied since. */
    TRY(sqlite_find(s, SQL_TOMBSTONE_LATER, key, 5, &one, &found, e));
    if (found) {
        return PROFD_OK;
    }
    TRY(sqlite_run(s, SQL_MIRROR_ARRIVING, NULL, 0, e)); /* a page that was read before may have some of it */
    TRY(find_owner(s, t, &scope, &found, e));
    if (!found) {
        return PROFD_OK;
    }
    TRY(sqlite_find(s, SQL_TOMBSTONE_COVERED, key, 5, &covered, &found, e));
    if (found) { /* what was accepted since counts: only blocks that were mirrored since have some of it */
        return mirror_again(s, t->centre, (uint64_t)covered, t->block, e);
    }
    TRY(sqlite_program_delete(s, &scope, t->build, t->deleted, &removed, &any, e));
    *uploads += removed;
    TRY(sqlite_run(s, SQL_TOMBSTONE_SET, VALUES(key[0], key[1], key[2], key[3], key[4], INTEGER(removed)), e));
    TRY(sqlite_find(s, SQL_TOMBSTONE_BEYOND, VALUES(key[2], key[3]), &beyond, &found, e));
    if (!found) {
        return PROFD_OK;
    }
    t->beyond = (uint64_t)beyond;
    return sqlite_run(s, SQL_TOMBSTONE_ADD,
                      VALUES(key[0], key[1], key[2], INTEGER(beyond), INTEGER(store_cover_deleted(t))), e);
}

enum profd_status store_bury(struct store *s, struct store_tombstone *list, size_t n, uint64_t *uploads,
                             struct profd_error *e)
{
    uint64_t removed = 0;
    enum profd_status status = PROFD_OK;
    TRY(sqlite_upkeep_begin(s, e));
    for (size_t i = 0; i < n && !status; i++) {
        status = bury(s, &list[i], &removed, e);
    }
    s->spacious = true; /* it frees more than it writes */
    TRY(sqlite_upkeep_end(s, status, e));
    *uploads = removed;
    return PROFD_OK;
}

enum profd_status store_is_buried(struct store *s, const struct store_tombstone *t, bool *buried, struct profd_error *e)
{
    int64_t one;
    return sqlite_find(s, SQL_TOMBSTONE_COVERS,
                       VALUES(TEXT(t->tenant), TEXT(t->build), BLOB(t->centre, sizeof t->centre), INTEGER(t->block)),
                       &one, buried, e);
}

enum profd_status store_each_owner(struct store *s, const char *build_id,
                                   enum profd_status (*each)(void *context, const char *tenant, struct profd_error *e),
                                   void *context, struct profd_error *e)
{
    sqlite3_stmt *q;
    enum profd_status status = PROFD_OK;
    TRY(sqlite_start(s, SQL_PROGRAM_OWNERS, VALUES(TEXT(build_id)), &q, e));
    while (sqlite_row(s, q, &status, e)) {
        char owner[SQLITE_OWNER_SIZE];
        status = sqlite_owner_name(s, (uint32_t)sqlite3_column_int64(q, 0), owner, e);
        status = status ? status : each(context, owner, e);
    }
    return status;
}
