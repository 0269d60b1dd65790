/* Stores uploads and harvests: row ids of what they name, one transaction for many, live processes, ids. */
#include <stdlib.h>
#include <string.h>

#include "core/rollup.h"
#include "proto/limits.h"
#include "proto/message.h"
#include "proto/sum.h"
#include "store/labels.h"
#include "store/sequence.h"
#include "store/store_internal.h"

/* --- Row ids of hosts, builds and series. The writer caches them, so that an upload of a known series needs no query.
 */

/* Row id of a text in a table: from the cache, from the table, or new. */
static enum profd_status intern_text(struct store *s, struct hashmap *cache, enum sqlite_sql find, enum sqlite_sql add,
                                     const char *text, int64_t *id, struct profd_error *e)
{
    const int64_t *cached = hashmap_find(cache, text, strlen(text));
    if (cached) {
        *id = *cached;
        return PROFD_OK;
    }
    int64_t row = 0;
    bool found = false;
    TRY(sqlite_find(s, find, VALUES(TEXT(text)), &row, &found, e));
    if (!found) {
        TRY(sqlite_run(s, add, VALUES(TEXT(text)), e));
        row = sqlite3_last_insert_rowid(s->db);
    }
    if (!hashmap_put(cache, text, strlen(text), &row, sizeof row)) {
        return profd_no_memory(e);
    }
    *id = row;
    return PROFD_OK;
}

enum profd_status sqlite_intern_host(struct store *s, const char *host, int64_t *id, struct profd_error *e)
{
    return intern_text(s, &s->hosts, SQL_HOST_FIND, SQL_HOST_ADD, host, id, e);
}

enum profd_status sqlite_intern_build(struct store *s, const char *build_id, int64_t *id, struct profd_error *e)
{
    return intern_text(s, &s->builds, SQL_BUILD_FIND, SQL_BUILD_ADD, build_id, id, e);
}

/* Finds or adds the row of a set of builds, with its members. set: 32-bit numbers. */
static enum profd_status intern_set(struct store *s, const int64_t *builds, size_t count, const uint8_t *set,
                                    int64_t *id, struct profd_error *e)
{
    bool found = false;
    TRY(sqlite_find(s, SQL_SET_FIND, VALUES(BLOB(set, 4 * count)), id, &found, e));
    if (found) {
        return PROFD_OK;
    }
    TRY(sqlite_run(s, SQL_SET_ADD, VALUES(BLOB(set, 4 * count)), e));
    *id = sqlite3_last_insert_rowid(s->db);
    for (size_t i = 0; i < count; i++) {
        TRY(sqlite_run(s, SQL_SET_MEMBER_ADD, VALUES(INTEGER(builds[i]), INTEGER(*id)), e));
    }
    return PROFD_OK;
}

static enum profd_status find_series(struct store *s, const struct store_upload *u, bool mirror, const int64_t *builds,
                                     int64_t set, int64_t *id, struct profd_error *e)
{
    struct buffer labels;
    buffer_init(&labels, SQLITE_CACHE_BYTES);
    labels_encode(u->labels, u->label_count, &labels);
    bool found = false;
    enum profd_status status = labels.failed ? profd_no_memory(e) : PROFD_OK;
    if (status == PROFD_OK) {
        status = sqlite_find(s, SQL_SERIES_FIND,
                             VALUES(INTEGER(set), INTEGER(u->uid), INTEGER(builds[u->program]),
                                    BLOB(labels.data, labels.size), INTEGER(mirror)),
                             id, &found, e);
    }
    if (status == PROFD_OK && !found) {
        status = sqlite_run(s, SQL_SERIES_ADD,
                            VALUES(INTEGER(set), INTEGER(u->uid), INTEGER(builds[u->program]),
                                   BLOB(labels.data, labels.size), INTEGER(mirror)),
                            e);
        *id = sqlite3_last_insert_rowid(s->db);
        if (status == PROFD_OK) {
            status = sqlite_run(s, SQL_SET_USER_ADD, VALUES(INTEGER(set), INTEGER(u->uid)), e);
        }
        for (size_t i = 0; status == PROFD_OK && i < u->build_count; i++) {
            const int64_t number = s->state.number + 1;
            status = sqlite_run(s, SQL_BUILD_USER_ADD,
                                VALUES(INTEGER(builds[i]), INTEGER(u->uid), INTEGER(number), TEXT(u->builds[i].name),
                                       INTEGER(mirror ? 0 : number)),
                                e);
        }
    }
    buffer_done(&labels);
    return status;
}

/* Makes the key of a series in s->key. */
static bool make_key(struct store *s, const struct store_upload *u, bool mirror)
{
    s->key.size = 0;
    s->key.failed = false;
    uint64_t head[4] = {u->uid, u->program, u->build_count, mirror};
    buffer_add(&s->key, head, sizeof head);
    for (size_t i = 0; i < u->build_count; i++) {
        buffer_add(&s->key, u->builds[i].id.text, strlen(u->builds[i].id.text) + 1);
    }
    labels_encode(u->labels, u->label_count, &s->key);
    return !s->key.failed;
}

/* Reads or adds the rows of a series that is not cached. entry has space for all builds. */
static enum profd_status load_series(struct store *s, const struct store_upload *u, bool mirror,
                                     struct sqlite_series *entry, uint8_t *set, struct profd_error *e)
{
    int64_t set_id = 0;
    for (size_t i = 0; i < u->build_count; i++) {
        enum profd_status status = sqlite_intern_build(s, u->builds[i].id.text, &entry->builds[i], e);
        if (status != PROFD_OK) {
            return status;
        }
        if (entry->builds[i] > UINT32_MAX) {
            return profd_error_set(e, PROFD_LIMIT, "more than 2^32 builds");
        }
        for (unsigned byte = 0; byte < 4; byte++) {
            set[4 * i + byte] = (uint8_t)(entry->builds[i] >> (8 * byte));
        }
    }
    enum profd_status status = intern_set(s, entry->builds, u->build_count, set, &set_id, e);
    if (status == PROFD_OK) {
        status = find_series(s, u, mirror, entry->builds, set_id, &entry->id, e);
    }
    return status;
}

enum profd_status sqlite_intern_series(struct store *s, const struct store_upload *u, bool mirror,
                                       const struct sqlite_series **series, struct profd_error *e)
{
    if (!make_key(s, u, mirror)) {
        return profd_no_memory(e);
    }
    const struct sqlite_series *cached = hashmap_find(&s->series, s->key.data, s->key.size);
    if (cached) {
        *series = cached;
        return PROFD_OK;
    }
    size_t size = sizeof(struct sqlite_series) + u->build_count * sizeof(int64_t);
    struct sqlite_series *entry = calloc(1, size);
    uint8_t *set = calloc(u->build_count, 4);
    enum profd_status status = entry && set ? PROFD_OK : profd_no_memory(e);
    if (status == PROFD_OK) {
        entry->build_count = (uint32_t)u->build_count;
        status = load_series(s, u, mirror, entry, set, e);
    }
    if (status == PROFD_OK) {
        cached = hashmap_put(&s->series, s->key.data, s->key.size, entry, size);
        if (cached) {
            *series = cached;
        } else {
            status = profd_no_memory(e);
        }
    }
    free(entry);
    free(set);
    return status;
}

struct hour_key {
    int64_t series, hour;
};

void sqlite_batch_init(struct sqlite_batch *b, struct store *s)
{
    b->s = s;
    b->changed = false;
    hashmap_init(&b->shares, 0);
    hashmap_init(&b->hours, 0);
    buffer_init(&b->touched, SIZE_MAX);
}

void sqlite_batch_done(struct sqlite_batch *b)
{
    hashmap_clear(&b->shares);
    hashmap_clear(&b->hours);
    buffer_done(&b->touched);
}

int64_t sqlite_batch_number(struct sqlite_batch *b)
{
    b->changed = true;
    return ++b->s->state.number;
}

/* INTERNAL: the caller has not validated the upload. */
static enum profd_status sqlite_judge_upload(const struct store_upload *u, struct profd_error *e)
{
    if (u->program >= u->build_count) {
        return profd_error_set(e, PROFD_INTERNAL, "program %u is not one of the upload's %zu builds", u->program,
                               u->build_count);
    }
    if (u->start > u->end || u->start < 0) {
        return profd_error_set(e, PROFD_INTERNAL, "an upload's window ends before it starts");
    }
    if (u->group >= COUNTS_GROUPS) {
        return profd_error_set(e, PROFD_INTERNAL, "an upload of group %u; there are %u", u->group, COUNTS_GROUPS);
    }
    return PROFD_OK;
}

enum profd_status sqlite_batch_add(struct sqlite_batch *b, const struct store_upload *u,
                                   const struct sqlite_series *series, const struct sqlite_sums *one,
                                   struct profd_error *e)
{
    bool saturated = false;
    TRY(b->s->relay_settled ? PROFD_OK : sqlite_relay_settle(b->s, e));
    if (b->s->relaying) {
        TRY(sqlite_segment_add(b->s, u, series->id, one, e));
    }
    const struct hour_key key = {series->id, u->end / SQLITE_HOUR};
    struct sqlite_sums none, *sums = hashmap_find(&b->hours, &key, sizeof key);
    if (!sums) {
        sqlite_sums_init(&none, series->build_count);
        sums = hashmap_put(&b->hours, &key, sizeof key, &none, SQLITE_SUMS_SIZE(series->build_count));
    }
    if (!sums) {
        return profd_no_memory(e);
    }
    sqlite_sums_add(sums, one);
    struct sqlite_state *t = &b->s->state;
    sum_add(&t->uploads, one->uploads, &saturated);
    sum_add(&t->ticks, one->ticks, &saturated);
    sum_add(&t->calls, one->calls, &saturated);
    t->raw_uploads += one->raw_uploads;
    t->raw_bytes += one->raw_bytes; /* modulo 2^64, as in sqlite_sums_add */
    t->live_bytes += one->live_bytes;
    return PROFD_OK;
}

/* Sums of one upload, by its own statements. */
static void sum_up(const struct store_upload *u, size_t builds, struct sqlite_sums *one)
{
    sqlite_sums_init(one, builds);
    one->uploads = one->raw_uploads = 1;
    one->processes = u->processes_started;
    one->ticks = u->ticks;
    one->calls = u->calls;
    one->stack_ticks = u->stack_ticks;
    one->first = u->start;
    one->last = u->end;
    one->inexact = u->inexact;
    one->raw_bytes = u->counts_size;
    one->raw_since = u->received / SQLITE_SECOND;
    for (size_t i = 0; i < builds; i++) {
        one->shares[i] = (struct share){.nanoseconds = u->builds[i].nanoseconds, .calls = u->builds[i].calls};
    }
}

/* Stores an upload as it is and adds it up; *number is its. series: its, interned. instance: the live process
 * that it is of and that a slice begins with it for; 0: none. */
static enum profd_status sqlite_batch_put(struct sqlite_batch *b, const struct store_upload *u, int64_t host,
                                          const struct sqlite_series *series, int64_t instance, int64_t *number,
                                          struct profd_error *e)
{
    struct sqlite_sums one;
    *number = sqlite_batch_number(b);
    TRY(sqlite_run(b->s, SQL_UPLOAD_ADD,
                   VALUES(INTEGER(*number), INTEGER(series->id), INTEGER(u->end / SQLITE_HOUR), INTEGER(host),
                          INTEGER(u->start), INTEGER(u->end - u->start), INTEGER(u->inexact),
                          INTEGER(u->processes_started), INTEGER(u->group), BLOB(u->counts, u->counts_size),
                          INTEGER(instance != 0 ? SQLITE_SLICE_NARROW : 0), INTEGER(instance)),
                   e));
    sum_up(u, series->build_count, &one);
    one.live_bytes = instance != 0 ? u->counts_size : 0;
    if (instance != 0) {
        TRY(sqlite_slice_add(b->s, &(struct sqlite_slice){series->id, SQLITE_SLICE_NARROW, u->end, instance, *number},
                             e));
    }
    return sqlite_batch_add(b, u, series, &one, e);
}

/* Reports on the builds of the series, and the lists that show them, will be new. */
static void sqlite_batch_touch(struct sqlite_batch *b, int64_t series)
{
    b->changed = true;
    buffer_add_format(&b->touched, "%c%lld", b->touched.size > 0 ? ',' : '[', (long long)series);
}

/* Adds an hour's sums to the ledger and to those of its series. */
static enum profd_status flush_hour(struct store *s, const struct hour_key *key, const struct sqlite_sums *more,
                                    struct profd_error *e)
{
    struct sqlite_sums sums;
    bool found;
    TRY(sqlite_ledger_load(s, key->series, key->hour, more->build_count, &sums, &found, e));
    const bool older = found && more->raw_since < sums.raw_since;
    sqlite_sums_add(&sums, more);
    TRY(sqlite_ledger_save(s, key->series, key->hour, &sums, e));
    if (older) {
        TRY(sqlite_run(s, SQL_LEDGER_SINCE, VALUES(INTEGER(key->series), INTEGER(key->hour), INTEGER(sums.raw_since)),
                       e));
    }
    TRY(sqlite_series_load(s, key->series, more->build_count, &sums, &found, e));
    if (!found) {
        return profd_error_set(e, PROFD_INTERNAL, "series %lld vanished", (long long)key->series);
    }
    sqlite_sums_add(&sums, more);
    return sqlite_series_save(s, key->series, &sums, e);
}

enum profd_status sqlite_batch_flush(struct sqlite_batch *b, struct profd_error *e)
{
    static const enum sqlite_sql touches[] = {SQL_TOUCH_SERIES_BUILDS, SQL_TOUCH_SERIES_BUILD_USERS,
                                              SQL_TOUCH_SERIES_USERS};
    size_t position = 0;
    const void *key;
    if (!b->changed) {
        return PROFD_OK;
    }
    for (const struct sqlite_sums *sums; (sums = hashmap_next(&b->hours, &position, &key));) {
        struct hour_key copy; /* keys are unaligned */
        memcpy(&copy, key, sizeof copy);
        TRY(flush_hour(b->s, &copy, sums, e));
        sqlite_batch_touch(b, copy.series);
    }
    buffer_add(&b->touched, "]", sizeof "]");
    if (b->touched.failed) {
        return profd_no_memory(e);
    }
    for (size_t i = 0; b->touched.size > sizeof "]" && i < sizeof touches / sizeof touches[0]; i++) {
        TRY(sqlite_run(b->s, touches[i], VALUES(TEXT(b->touched.data), INTEGER(b->s->state.number)), e));
    }
    b->s->state.list_epoch = b->s->state.number;
    return sqlite_save_state(b->s, e);
}

/* --- Live processes. */

#define FORGET_SLICE 2000 /* instances removed in one transaction */

/* Reads the current row of SQL_SNAPSHOT_GET. */
static enum profd_status copy_snapshot(struct store *s, sqlite3_stmt *q, uint32_t uid, uint64_t *generation,
                                       uint8_t **snapshot, size_t *size, struct profd_error *e)
{
    size_t n;
    if (sqlite3_column_type(q, 1) == SQLITE_NULL) {
        return profd_error_set(e, PROFD_DAMAGED, "database %s: an instance of user %u has no snapshot", s->path, uid);
    }
    const uint8_t *bytes = sqlite_blob(q, 1, &n);
    uint8_t *copy = malloc(n + 1);
    if (!copy) {
        return profd_error_set(e, PROFD_NO_MEMORY, "no memory for a snapshot of %zu bytes", n);
    }
    memcpy(copy, bytes, n);
    *generation = (uint64_t)sqlite3_column_int64(q, 0);
    *snapshot = copy;
    *size = n;
    return PROFD_OK;
}

enum profd_status store_get_instance(struct store *s, uint32_t uid, const uint8_t instance[STORE_INSTANCE_SIZE],
                                     uint64_t *generation, uint8_t **snapshot, size_t *size, struct profd_error *e)
{
    sqlite3_stmt *q;
    bool row = false;
    TRY(sqlite_first(s, SQL_SNAPSHOT_GET, VALUES(INTEGER(uid), BLOB(instance, STORE_INSTANCE_SIZE)), &q, &row, e));
    if (!row) {
        *generation = 0;
        *snapshot = NULL;
        *size = 0;
        return PROFD_OK;
    }
    enum profd_status status = copy_snapshot(s, q, uid, generation, snapshot, size, e);
    sqlite_finish(q);
    return status;
}

/* name NULL: store_each_instance; otherwise store_each_namesake. */
static enum profd_status each_found(struct store *s, const uint8_t *name,
                                    bool (*each)(void *context, const struct store_instance *i), void *context,
                                    struct profd_error *e)
{
    sqlite3_stmt *q;
    TRY(name ? sqlite_start(s, SQL_INSTANCE_NAMESAKES, VALUES(BLOB(name, STORE_INSTANCE_SIZE)), &q, e)
             : sqlite_start(s, SQL_INSTANCE_EACH, NULL, 0, &q, e));
    enum profd_status status = PROFD_OK;
    while (sqlite_row(s, q, &status, e)) {
        size_t n, size;
        struct store_instance i = {.uid = (uint32_t)sqlite3_column_int64(q, 0),
                                   .generation = (uint64_t)sqlite3_column_int64(q, 2),
                                   .seen = sqlite3_column_int64(q, 3),
                                   .ended = sqlite3_column_int(q, 5) != 0,
                                   .missing_since = sqlite3_column_int64(q, 6)};
        const uint8_t *bytes = sqlite_blob(q, 1, &n);
        i.snapshot = sqlite_blob(q, 4, &size);
        i.snapshot_size = size;
        memcpy(i.instance, bytes, n < sizeof i.instance ? n : sizeof i.instance);
        if (!each(context, &i)) {
            sqlite_finish(q);
            break;
        }
    }
    return status;
}

enum profd_status store_each_instance(struct store *s, bool (*each)(void *context, const struct store_instance *i),
                                      void *context, struct profd_error *e)
{
    return each_found(s, NULL, each, context, e);
}

enum profd_status store_each_namesake(struct store *s, const uint8_t instance[STORE_INSTANCE_SIZE],
                                      bool (*each)(void *context, const struct store_instance *i), void *context,
                                      struct profd_error *e)
{
    return each_found(s, instance, each, context, e);
}

enum profd_status store_get_living(struct store *s, enum store_living_kind kind, const struct store_scope *scope,
                                   const struct store_filter *filter, struct store_living *out, struct profd_error *e)
{
    const char *build = filter->build_id ? filter->build_id : "";
    sqlite3_stmt *q;
    *out = (struct store_living){.processes = 0};
    if (s->run == 0) {
        return PROFD_OK;
    }
    TRY(sqlite_start(s, kind == STORE_READ ? SQL_INSTANCE_READ : SQL_INSTANCE_UNREAD,
                     VALUES(INTEGER(s->run), INTEGER(filter->until), INTEGER(scope->all), SCOPE(scope), TEXT(build),
                            INTEGER(filter->as_program), INTEGER(kind == STORE_READ ? filter->since : 0)),
                     &q, e));
    enum profd_status status = PROFD_OK;
    while (sqlite_row(s, q, &status, e)) {
        size_t n;
        const uint8_t *labels = sqlite_blob(q, 0, &n);
        int64_t earliest = sqlite3_column_int64(q, 2), latest = sqlite3_column_int64(q, 3);
        if (!labels_match((const char *)labels, n, filter->matchers, filter->matcher_count)) {
            continue;
        }
        out->earliest = out->processes == 0 || earliest < out->earliest ? earliest : out->earliest;
        out->latest = latest > out->latest ? latest : out->latest;
        out->processes += (uint64_t)sqlite3_column_int64(q, 1);
    }
    return status;
}

/* What a harvest of the instance with this id says of its children and its parent. first: it was not known; before: ns,
 * when it was harvested last. */
static enum profd_status sqlite_put_kin(struct store *s, const struct store_upload *u, int64_t id, bool first,
                                        int64_t before, struct profd_error *e)
{
    int64_t more = (int64_t)u->children;
    if (first) {
        TRY(sqlite_run(s, SQL_INSTANCE_ADOPT, VALUES(BLOB(u->instance, sizeof u->instance), INTEGER(u->uid)), e));
        more -= sqlite3_changes(s->db); /* children that were read before their parent are not missing */
    }
    if (more != 0) {
        TRY(sqlite_run(s, SQL_INSTANCE_BEAR, VALUES(INTEGER(id), INTEGER(more), INTEGER(before)), e));
    }
    for (size_t i = 0; i < u->parent_count; i++) {
        const struct sqlite_value parent = BLOB(u->parents + i * STORE_INSTANCE_SIZE, STORE_INSTANCE_SIZE);
        const struct sqlite_value uid = INTEGER(u->uid);
        TRY(sqlite_run(s, SQL_INSTANCE_FOUND, VALUES(parent, uid), e));
        const bool found = sqlite3_changes(s->db) > 0;
        TRY(found ? PROFD_OK : sqlite_run(s, SQL_INSTANCE_WAIT, VALUES(parent, INTEGER(id), uid), e));
    }
    return u->told ? sqlite_run(s, SQL_INSTANCE_TELL, VALUES(INTEGER(id)), e) : PROFD_OK;
}

/* Removes some of the ended instances that were last seen before. Inside a write transaction. */
static enum profd_status sqlite_remove_instances(struct store *s, int64_t before, struct profd_error *e)
{
    TRY(sqlite_run(s, SQL_INSTANCE_WAIT_REMOVE, VALUES(INTEGER(before), INTEGER(FORGET_SLICE)), e));
    TRY(sqlite_run(s, SQL_SNAPSHOT_REMOVE, VALUES(INTEGER(before), INTEGER(FORGET_SLICE)), e));
    return sqlite_run(s, SQL_INSTANCE_REMOVE, VALUES(INTEGER(before), INTEGER(FORGET_SLICE)), e);
}

/* A row of table instance. */
struct instance {
    bool known;
    int64_t id;
    uint64_t generation; /* 0: not known */
    bool has_upload;
    int64_t upload, series, hour;
    int64_t seen;
};

/* An upload that may grow. */
struct growing {
    int64_t start, end;
    uint32_t inexact, group;
    uint64_t started;
    int64_t host;
    size_t size; /* of its counts, encoded */
    int width;   /* number of the upload of its slice; 0: it has none yet */
    struct counts counts;
};

static enum profd_status load_instance(struct store *s, const struct store_upload *u, struct instance *out,
                                       struct profd_error *e)
{
    sqlite3_stmt *q;
    bool row = false;
    *out = (struct instance){.known = false};
    enum profd_status status =
        sqlite_first(s, SQL_INSTANCE_GET, VALUES(INTEGER(u->uid), BLOB(u->instance, sizeof u->instance)), &q, &row, e);
    if (!row) {
        return status;
    }
    *out = (struct instance){.known = true,
                             .id = sqlite3_column_int64(q, 0),
                             .generation = (uint64_t)sqlite3_column_int64(q, 1),
                             .has_upload = sqlite3_column_type(q, 2) != SQLITE_NULL,
                             .upload = sqlite3_column_int64(q, 2),
                             .series = sqlite3_column_int64(q, 3),
                             .hour = sqlite3_column_int64(q, 4),
                             .seen = sqlite3_column_int64(q, 5)};
    sqlite_finish(q);
    return PROFD_OK;
}

/* Its row, which uploads name. */
static enum profd_status add_instance(struct store *s, const struct store_upload *u, struct instance *i,
                                      struct profd_error *e)
{
    enum profd_status status = sqlite_run(s, SQL_INSTANCE_ADD,
                                          VALUES(INTEGER(u->uid), BLOB(u->instance, sizeof u->instance),
                                                 INTEGER(u->base + 1), INTEGER(u->received), INTEGER(u->ended)),
                                          e);
    i->id = sqlite3_last_insert_rowid(s->db);
    i->known = true;
    return status;
}

/* The upload of the instance in its hour and series, if it is still single and can be read. */
static enum profd_status load_growing(struct store *s, const struct instance *i, size_t builds, struct growing *g,
                                      bool *found, struct profd_error *e)
{
    sqlite3_stmt *q;
    size_t n;
    struct profd_error why;
    *found = false;
    enum profd_status status = sqlite_start(
        s, SQL_UPLOAD_GROWING,
        VALUES(INTEGER(i->upload), INTEGER(i->series), INTEGER(i->hour), INTEGER(STORE_GROWN_MOST)), &q, e);
    if (status == PROFD_OK) {
        status = sqlite_next(s, q, found, e);
    }
    if (!*found) {
        return status;
    }
    *g = (struct growing){.host = sqlite3_column_int64(q, 0),
                          .start = sqlite3_column_int64(q, 1),
                          .end = sqlite3_column_int64(q, 1) + sqlite3_column_int64(q, 2),
                          .inexact = (uint32_t)sqlite3_column_int64(q, 3),
                          .started = (uint64_t)sqlite3_column_int64(q, 4),
                          .group = (uint32_t)sqlite3_column_int64(q, 5)};
    const uint8_t *bytes = sqlite_blob(q, 6, &n);
    g->size = n;
    g->width = sqlite3_column_int(q, 7);
    status = counts_decode(bytes, n, (uint32_t)builds, &g->counts, &why);
    *found = status == PROFD_OK;
    if (status == PROFD_NO_MEMORY && e) {
        *e = why;
    }
    sqlite_finish(q);
    return status == PROFD_NO_MEMORY ? status : PROFD_OK; /* verification reports what cannot be read */
}

/* Difference between the counts now and before, as if they had arrived at once. */
static void judge_gain(const struct counts *before, const struct counts *now, struct sqlite_sums *one)
{
    uint64_t ticks, calls;
    struct share was[LIMIT_BUILDS] = {{0}};
    counts_totals(now, &one->ticks, &one->calls);
    counts_totals(before, &ticks, &calls);
    one->ticks -= ticks;
    one->calls -= calls;
    one->stack_ticks = sum_all(now->node_ticks, now->node_count) - sum_all(before->node_ticks, before->node_count);
    bool saturated = share_add_counts(one->shares, now);
    (void)share_add_counts(was, before);
    for (size_t i = 0; i < one->build_count; i++) {
        one->shares[i].nanoseconds -= was[i].nanoseconds;
        one->shares[i].calls -= was[i].calls;
    }
    one->inexact |= saturated ? (uint32_t)INEXACT_SATURATED : 0;
}

/* Replaces the row by the sum, and adds the difference to all sums. */
static enum profd_status save_grown(struct sqlite_batch *b, const struct store_upload *u,
                                    const struct sqlite_series *series, const struct instance *i,
                                    const struct growing *g, const struct counts *sum, const uint8_t *bytes,
                                    size_t size, struct profd_error *e)
{
    struct sqlite_sums one;
    bool full = sum->saturated;
    uint64_t started = g->started;
    int64_t start = u->start < g->start ? u->start : g->start, end = u->end > g->end ? u->end : g->end;
    sum_add(&started, u->processes_started, &full);
    sqlite_sums_init(&one, series->build_count);
    one.processes = started - g->started;
    one.first = u->start;
    one.last = u->end;
    one.inexact = g->inexact | u->inexact | (full ? (uint32_t)INEXACT_SATURATED : 0);
    one.raw_bytes = one.live_bytes = (uint64_t)size - g->size;
    judge_gain(&g->counts, sum, &one);
    (void)sqlite_batch_number(b); /* no row has this number; it only advances the epochs */
    TRY(sqlite_run(b->s, SQL_UPLOAD_GROW,
                   VALUES(INTEGER(i->upload), INTEGER(start), INTEGER(end - start), INTEGER(one.inexact),
                          INTEGER(started), BLOB(bytes, size)),
                   e));
    return sqlite_batch_add(b, u, series, &one, e);
}

/* Adds the difference to the row. *done is false if both together exceed the limits of an upload. */
static enum profd_status grow(struct sqlite_batch *b, const struct store_upload *u, const struct sqlite_series *series,
                              const struct instance *i, const struct growing *g, bool *done, struct profd_error *e)
{
    struct counts more, sum = {0};
    struct profd_error why;
    uint8_t *bytes = NULL;
    size_t size = 0;
    enum profd_status status = counts_decode(u->counts, u->counts_size, series->build_count, &more, &why);
    if (status != PROFD_OK) {
        return profd_error_set(e, status == PROFD_NO_MEMORY ? status : PROFD_INTERNAL, "a harvest's counts: %s",
                               why.sentence);
    }
    struct arena *scratch = arena_new(0);
    status = scratch ? rollup_grow(scratch, &g->counts, &more, &sum, &why) : profd_no_memory(&why);
    if (status == PROFD_OK) {
        status = counts_encode(&sum, &bytes, &size, &why);
    }
    counts_done(&more);
    *done = status == PROFD_OK;
    if (status == PROFD_OK) {
        status = save_grown(b, u, series, i, g, &sum, bytes, size, e);
    } else if (status == PROFD_TOO_LARGE) {
        status = PROFD_OK;
    } else {
        (void)profd_error_set(e, status, "%s", why.sentence);
    }
    arena_free(scratch);
    free(bytes);
    return status;
}

/* Adds the difference to the instance's upload, or creates one; i then has its number. */
static enum profd_status put_counts(struct sqlite_batch *b, const struct store_upload *u, struct instance *i,
                                    struct profd_error *e)
{
    int64_t host = 0;
    const struct sqlite_series *series = NULL;
    struct growing g = {0};
    bool found = false, done = false;
    struct store *s = b->s;
    TRY(sqlite_intern_host(s, u->host, &host, e));
    TRY(sqlite_intern_series(s, u, false, &series, e));
    enum profd_status status = PROFD_OK;
    if (i->has_upload && i->series == series->id && i->hour == u->end / SQLITE_HOUR) {
        status = load_growing(s, i, series->build_count, &g, &found, e);
    }
    if (found) {
        bool same_slice = g.width > 0 && sqlite_slice_at(g.width, g.end) == sqlite_slice_at(g.width, u->end);
        if (g.host == host && g.group == u->group && same_slice) {
            status = grow(b, u, series, i, &g, &done, e);
        }
        counts_done(&g.counts);
    }
    if (status != PROFD_OK || done) {
        return status;
    }
    i->has_upload = true;
    i->series = series->id;
    i->hour = u->end / SQLITE_HOUR;
    return sqlite_batch_put(b, u, host, series, i->id, &i->upload, e);
}

static enum profd_status sqlite_put_harvest(struct sqlite_batch *b, const struct store_upload *u,
                                            enum store_outcome *outcome, struct profd_error *e)
{
    struct instance i;
    bool may = true;
    if (u->counts_size > 0 && (u->ticks > 0 || u->calls > 0)) {
        TRY(sqlite_share_take(b->s, &b->shares, u->uid, u->counts_size + (u->base == 0 ? u->snapshot_size : 0), &may,
                              e));
    }
    if (!may) { /* it counts as one that this run has not read */
        *outcome = STORE_OVER_SHARE;
        return sqlite_run(b->s, SQL_INSTANCE_PUT_OFF, VALUES(INTEGER(u->uid), BLOB(u->instance, sizeof u->instance)),
                          e);
    }
    TRY(load_instance(b->s, u, &i, e));
    *outcome = i.generation == u->base ? STORE_STORED : STORE_STALE;
    if (*outcome == STORE_STALE) {
        return PROFD_OK;
    }
    const bool first = !i.known;
    TRY(first ? add_instance(b->s, u, &i, e) : PROFD_OK);
    if (u->counts_size > 0) {
        TRY(put_counts(b, u, &i, e));
    } else if (i.has_upload) { /* it is read again or has ended, and reports state that */
        (void)sqlite_batch_number(b);
        sqlite_batch_touch(b, i.series);
    }
    if (u->marks) {
        return sqlite_run(b->s, SQL_INSTANCE_MARK, VALUES(INTEGER(i.id)), e);
    }
    struct sqlite_value upload = i.has_upload ? INTEGER(i.upload) : NOTHING,
                        series = i.has_upload ? INTEGER(i.series) : NOTHING,
                        hour = i.has_upload ? INTEGER(i.hour) : NOTHING;
    TRY(sqlite_run(b->s, SQL_INSTANCE_SET,
                   VALUES(INTEGER(i.id), INTEGER(u->base + 1), upload, series, hour, INTEGER(u->received),
                          INTEGER(u->ended), INTEGER(b->s->run)),
                   e));
    TRY(sqlite_run(b->s, SQL_SNAPSHOT_SET, VALUES(INTEGER(i.id), BLOB(u->snapshot, u->snapshot_size)), e));
    return sqlite_put_kin(b->s, u, i.id, first, !first ? i.seen : u->counts_size > 0 ? u->start : u->received, e);
}

/* --- Upload ids, by which each delivery is counted once (DECISIONS 15). */

#define SEEN_SLACK 3600           /* seconds by which a sender's last_seen may be outdated */
#define SENDER_FORGET_SLICE 50000 /* senders visited in one transaction */

/* Reads the sender's set; {0} if the sender is unknown. */
static enum profd_status load_set(struct store *s, const struct store_upload *u, int64_t host, struct sequence_set *set,
                                  int64_t *seen, struct profd_error *e)
{
    sqlite3_stmt *q;
    bool known = false;
    set->mark = set->count = 0;
    *seen = 0;
    enum profd_status status = sqlite_first(
        s, SQL_SENDER_FIND, VALUES(INTEGER(host), INTEGER(u->uid), BLOB(u->sender, sizeof u->sender)), &q, &known, e);
    if (!known) {
        return status;
    }
    size_t n;
    const uint8_t *above = sqlite_blob(q, 2, &n);
    bool good = sequence_decode(set, (uint32_t)sqlite3_column_int64(q, 0), above, n);
    *seen = sqlite3_column_int64(q, 1);
    sqlite_finish(q);
    return good ? PROFD_OK
                : profd_error_set(e, PROFD_DAMAGED, "database %s: a sender's list of ids breaks its rules", s->path);
}

_Static_assert(STORE_ID_RANGES == SEQUENCE_RANGES, "store.h promises what sequence.h keeps");
_Static_assert(LIMIT_ID_DAYS > LIMIT_SPOOL_DAYS, "an id must outlive every spool that may still deliver it");
_Static_assert(LIMIT_ID_DAYS >= STORE_ENDED_DAYS, "one time tells of both");

/* Enters the upload's id into its sender's set and says whether it was new. Inside a write transaction. */
static enum profd_status sqlite_take_id(struct store *s, const struct store_upload *u, int64_t host,
                                        enum store_outcome *outcome, struct profd_error *e)
{
    struct sequence_set set;
    uint8_t above[SEQUENCE_BYTES];
    int64_t seen, now = u->received / SQLITE_SECOND;
    TRY(load_set(s, u, host, &set, &seen, e));
    enum sequence_outcome taken = sequence_add(&set, u->sequence);
    *outcome = taken == SEQUENCE_NEW ? STORE_STORED : taken == SEQUENCE_SEEN ? STORE_DUPLICATE : STORE_TOO_MANY_GAPS;
    if (taken != SEQUENCE_NEW && now < seen + SEEN_SLACK) {
        return PROFD_OK;
    }
    size_t n = sequence_encode(&set, above);
    return sqlite_run(s, SQL_SENDER_SET,
                      VALUES(INTEGER(host), INTEGER(u->uid), BLOB(u->sender, sizeof u->sender), INTEGER(set.mark),
                             INTEGER(now > seen ? now : seen), BLOB(above, n)),
                      e);
}

enum profd_status store_has_upload(struct store *s, const struct store_upload *upload, bool *counted,
                                   struct profd_error *e)
{
    struct sequence_set set;
    int64_t host = 0, seen;
    bool found = false;
    enum profd_status status = sqlite_find(s, SQL_HOST_FIND, VALUES(TEXT(upload->host)), &host, &found, e);
    if (status == PROFD_OK && found) {
        status = load_set(s, upload, host, &set, &seen, e);
        found = status == PROFD_OK && sequence_holds(&set, upload->sequence);
    }
    if (status == PROFD_OK) {
        *counted = found;
    }
    return status;
}

/* Finds the end of the slice after the cursor; whole: the end of the table was reached. */
static enum profd_status find_slice(struct store *s, const struct sqlite_cursor *from, struct sqlite_cursor *to,
                                    bool *whole, struct profd_error *e)
{
    sqlite3_stmt *q;
    int64_t n = 0;
    TRY(sqlite_start(s, SQL_SENDER_SCAN,
                     VALUES(INTEGER(from->host), INTEGER(from->uid), BLOB(from->sender, sizeof from->sender),
                            INTEGER(SENDER_FORGET_SLICE)),
                     &q, e));
    enum profd_status status = PROFD_OK;
    while (sqlite_row(s, q, &status, e)) {
        size_t size;
        const uint8_t *sender = sqlite_blob(q, 2, &size);
        to->host = sqlite3_column_int64(q, 0);
        to->uid = sqlite3_column_int64(q, 1);
        memcpy(to->sender, sender, size < sizeof to->sender ? size : sizeof to->sender);
        n++;
    }
    *whole = n < SENDER_FORGET_SLICE;
    return status;
}

enum profd_status store_remove_ids(struct store *s, int64_t before, struct profd_error *e)
{
    struct sqlite_cursor to = s->forget;
    bool whole = false;
    TRY(sqlite_write_begin(s, e));
    enum profd_status status = find_slice(s, &s->forget, &to, &whole, e);
    if (status == PROFD_OK) {
        status = sqlite_run(s, SQL_SENDER_REMOVE,
                            VALUES(INTEGER(s->forget.host), INTEGER(s->forget.uid),
                                   BLOB(s->forget.sender, sizeof s->forget.sender), INTEGER(to.host), INTEGER(to.uid),
                                   BLOB(to.sender, sizeof to.sender), INTEGER(before / SQLITE_SECOND)),
                            e);
    }
    if (status == PROFD_OK) {
        status = sqlite_remove_instances(s, before + SQLITE_ENDED_BEFORE, e);
    }
    if (status == PROFD_OK) {
        status = sqlite_centre_forget(s, before + SQLITE_DIGESTS_BEFORE, e);
    }
    if (status == PROFD_OK) {
        status = sqlite_run(s, SQL_ADOPTED_FORGET, VALUES(INTEGER(before / SQLITE_DAY)), e);
    }
    if (status == PROFD_OK) {
        status = sqlite_run(s, SQL_CLOCK_SET, VALUES(INTEGER(before + LIMIT_ID_DAYS * INT64_C(86400000000000))), e);
    }
    status = sqlite_write_end(s, status, e);
    if (status == PROFD_OK) {
        s->forget = whole ? (struct sqlite_cursor){.host = 0} : to;
    }
    return status;
}

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
    TRY(sqlite_intern_series(b->s, u, false, &series, e));
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
