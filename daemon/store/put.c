/* Stores uploads and harvests, many in one transaction; live processes; the ids by which each delivery counts once. */
#include <stdlib.h>

#include "proto/sum.h"
#include "store/labels.h"
#include "store/sequence.h"
#include "store/store_internal.h"

/* --- Row ids, which the writer caches, so that an upload of a known series needs no query --- */

/* Finds the row id of a text in the cache or in the table, or adds a row. */
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

/* Finds or adds the rows of a series and of its set of builds. set: 32-bit numbers. */
static enum profd_status find_series(struct store *s, const struct store_upload *u, enum sqlite_series_kind kind,
                                     const int64_t *builds, const uint8_t *set, int64_t *id, struct profd_error *e)
{
    const bool mirror = kind == SQLITE_SERIES_MIRROR;
    const struct sqlite_value members = BLOB(set, 4 * u->build_count);
    int64_t set_id = 0;
    bool found = false;
    TRY(sqlite_find(s, SQL_SET_FIND, &members, 1, &set_id, &found, e));
    if (!found) {
        TRY(sqlite_run(s, SQL_SET_ADD, &members, 1, e));
        set_id = sqlite3_last_insert_rowid(s->db);
        for (size_t i = 0; i < u->build_count; i++) {
            TRY(sqlite_run(s, SQL_SET_MEMBER_ADD, VALUES(INTEGER(builds[i]), INTEGER(set_id)), e));
        }
    }
    struct buffer labels;
    buffer_init(&labels, SQLITE_CACHE_BYTES);
    labels_encode(u->labels, u->label_count, &labels);
    const struct sqlite_value row[] = {INTEGER(set_id), INTEGER(u->uid), INTEGER(builds[u->program]),
                                       BLOB(labels.data, labels.size), INTEGER(mirror)};
    enum profd_status status = labels.failed
                                   ? profd_no_memory(e)
                                   : sqlite_find(s, SQL_SERIES_FIND, row, sizeof row / sizeof row[0], id, &found, e);
    if (!status && !found && kind == SQLITE_SERIES_KNOWN) {
        status = PROFD_NOT_FOUND;
    } else if (!status && !found) {
        status = sqlite_run(s, SQL_SERIES_ADD, row, sizeof row / sizeof row[0], e);
        *id = sqlite3_last_insert_rowid(s->db);
    }
    buffer_done(&labels);
    if (status || found) {
        return status;
    }
    const int64_t number = s->state.number + 1;
    TRY(sqlite_run(s, SQL_SET_USER_ADD, VALUES(INTEGER(set_id), INTEGER(u->uid)), e));
    for (size_t i = 0; i < u->build_count; i++) {
        TRY(sqlite_run(s, SQL_BUILD_USER_ADD,
                       VALUES(INTEGER(builds[i]), INTEGER(u->uid), INTEGER(number), TEXT(u->builds[i].name),
                              INTEGER(mirror ? 0 : number)),
                       e));
    }
    return PROFD_OK;
}

enum profd_status sqlite_intern_series(struct store *s, const struct store_upload *u, enum sqlite_series_kind kind,
                                       const struct sqlite_series **series, struct profd_error *e)
{
    const uint64_t head[4] = {u->uid, u->program, u->build_count, kind == SQLITE_SERIES_MIRROR};
    s->key.size = 0;
    s->key.failed = false;
    buffer_add(&s->key, head, sizeof head);
    for (size_t i = 0; i < u->build_count; i++) {
        buffer_add(&s->key, u->builds[i].id.text, strlen(u->builds[i].id.text) + 1);
    }
    labels_encode(u->labels, u->label_count, &s->key);
    if (s->key.failed) {
        return profd_no_memory(e);
    }
    const struct sqlite_series *cached = hashmap_find(&s->series, s->key.data, s->key.size);
    if (cached) {
        *series = cached;
        return PROFD_OK;
    }

    const size_t size = sizeof(struct sqlite_series) + u->build_count * sizeof(int64_t);
    struct sqlite_series *entry = calloc(1, size);
    uint8_t *set = calloc(u->build_count, 4);
    enum profd_status status = entry && set ? PROFD_OK : profd_no_memory(e);
    for (size_t i = 0; !status && i < u->build_count; i++) {
        status = sqlite_intern_build(s, u->builds[i].id.text, &entry->builds[i], e);
        if (!status && entry->builds[i] > UINT32_MAX) {
            status = profd_error_set(e, PROFD_LIMIT, "more than 2^32 builds");
        }
        for (unsigned byte = 0; !status && byte < 4; byte++) {
            set[4 * i + byte] = (uint8_t)(entry->builds[i] >> (8 * byte));
        }
    }
    if (!status) {
        entry->build_count = (uint32_t)u->build_count;
        status = find_series(s, u, kind, entry->builds, set, &entry->id, e);
    }
    if (!status) {
        *series = hashmap_put(&s->series, s->key.data, s->key.size, entry, size);
        status = *series ? PROFD_OK : profd_no_memory(e);
    }
    free(entry);
    free(set);
    return status;
}

/* Counts a value of a label if it is new in this hour. False: there are too many. */
static bool value_take(struct store *s, uint32_t uid, const struct store_label *l, int64_t hour)
{
    char key[sizeof uid + LIMIT_LABEL_NAME + 1 + LIMIT_LABEL_VALUE];
    const size_t name = strlen(l->name) + 1, value = strlen(l->value), head = sizeof uid + name;
    const uint32_t none = 0;
    if (s->values_hour != hour) {
        hashmap_clear(&s->values);
        s->values_hour = hour;
    }
    memcpy(key, &uid, sizeof uid);
    memcpy(key + sizeof uid, l->name, name);
    memcpy(key + head, l->value, value);
    if (hashmap_find(&s->values, key, head + value)) {
        return true;
    }
    uint32_t *count = hashmap_find(&s->values, key, head);
    count = count ? count : hashmap_put(&s->values, key, head, &none, sizeof none);
    if (!count || *count >= (store_is_tenant(uid) ? LIMIT_LABEL_VALUES_OF_TENANT : LIMIT_LABEL_VALUES_PER_HOUR)) {
        return !count; /* without memory nothing is limited */
    }
    ++*count;
    if (s->values.bytes < SQLITE_CACHE_BYTES) { /* one that is not remembered counts again with its next series */
        (void)hashmap_put(&s->values, key, head + value, &none, sizeof none);
    }
    return true;
}

enum profd_status sqlite_intern_limited(struct store *s, struct store_upload *u, struct store_label *labels,
                                        const struct sqlite_series **series, enum store_outcome *outcome,
                                        struct profd_error *e)
{
    const enum profd_status status = sqlite_intern_series(s, u, SQLITE_SERIES_KNOWN, series, e);
    *outcome = STORE_STORED;
    if (status != PROFD_NOT_FOUND) {
        return status;
    }
    for (size_t i = 0; i < u->label_count; i++) {
        labels[i] = u->labels[i];
        if (!value_take(s, u->uid, &labels[i], u->received / SQLITE_HOUR)) {
            labels[i].value = STORE_OTHER;
            u->inexact |= (uint32_t)INEXACT_LABEL_LEFT_OUT;
            *outcome = STORE_RELABELLED;
        }
    }
    u->labels = labels;
    return sqlite_intern_series(s, u, SQLITE_SERIES_OWN, series, e);
}

/* --- The sums that a transaction changes --- */

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

/* Checks what the caller must have validated. */
static enum profd_status judge_upload(const struct store_upload *u, struct profd_error *e)
{
    FAIL_IF(u->program >= u->build_count, e, PROFD_INTERNAL, "program %u is not one of the upload's %zu builds",
            u->program, u->build_count);
    FAIL_IF(u->start > u->end || u->start < 0, e, PROFD_INTERNAL, "an upload's window ends before it starts");
    FAIL_IF(u->group >= COUNTS_GROUPS, e, PROFD_INTERNAL, "an upload of group %u; there are %u", u->group,
            COUNTS_GROUPS);
    return PROFD_OK;
}

enum profd_status sqlite_batch_add(struct sqlite_batch *b, const struct store_upload *u,
                                   const struct sqlite_series *series, const struct sqlite_sums *one,
                                   struct profd_error *e)
{
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
    TRY(sums ? PROFD_OK : profd_no_memory(e));
    sqlite_sums_add(sums, one);
    struct sqlite_state *t = &b->s->state;
    const struct store_amount amount = sqlite_sums_amount(one);
    outgoing_amount_add(&t->accepted, &amount);
    t->raw_uploads += one->raw_uploads;
    t->raw_bytes += one->raw_bytes; /* modulo 2^64, as in sqlite_sums_add */
    t->live_bytes += one->live_bytes;
    return PROFD_OK;
}

/* Stores a new upload of this host and series, and adds it up. *number: of the upload. instance: the live process that
 * begins a slice with it; 0: none. */
static enum profd_status batch_put(struct sqlite_batch *b, const struct store_upload *u, int64_t host,
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
    sqlite_sums_init(&one, series->build_count);
    one.uploads = one.raw_uploads = 1;
    one.processes = u->processes_started;
    one.ticks = u->ticks;
    one.calls = u->calls;
    one.stack_ticks = u->stack_ticks;
    one.first = u->start;
    one.last = u->end;
    one.inexact = u->inexact;
    one.raw_bytes = u->counts_size;
    one.raw_since = u->received / SQLITE_SECOND;
    for (size_t i = 0; i < series->build_count; i++) {
        one.shares[i] = (struct share){.nanoseconds = u->builds[i].nanoseconds, .calls = u->builds[i].calls};
    }
    if (instance != 0) {
        const struct sqlite_slice slice = {series->id, SQLITE_SLICE_NARROW, u->end, instance, *number};
        one.live_bytes = u->counts_size;
        TRY(sqlite_slice_add(b->s, &slice, e));
    }
    return sqlite_batch_add(b, u, series, &one, e);
}

/* Notes that reports on the builds of the series, and the lists that show them, change. */
static void batch_touch(struct sqlite_batch *b, int64_t series)
{
    b->changed = true;
    buffer_add_format(&b->touched, "%c%lld", b->touched.size > 0 ? ',' : '[', (long long)series);
}

enum profd_status sqlite_batch_flush(struct sqlite_batch *b, struct profd_error *e)
{
    static const enum sqlite_sql touches[] = {SQL_TOUCH_SERIES_BUILDS, SQL_TOUCH_SERIES_BUILD_USERS,
                                              SQL_TOUCH_SERIES_USERS};
    struct store *s = b->s;
    size_t position = 0;
    const void *key;
    if (!b->changed) {
        return PROFD_OK;
    }
    for (const struct sqlite_sums *more; (more = hashmap_next(&b->hours, &position, &key));) {
        struct hour_key k; /* keys are unaligned */
        struct sqlite_sums sums;
        bool found;
        memcpy(&k, key, sizeof k);
        TRY(sqlite_ledger_load(s, k.series, k.hour, more->build_count, &sums, &found, e));
        const bool older = found && more->raw_since < sums.raw_since;
        sqlite_sums_add(&sums, more);
        TRY(sqlite_ledger_save(s, k.series, k.hour, &sums, e));
        if (older) {
            TRY(sqlite_run(s, SQL_LEDGER_SINCE, VALUES(INTEGER(k.series), INTEGER(k.hour), INTEGER(sums.raw_since)),
                           e));
        }
        TRY(sqlite_series_load(s, k.series, more->build_count, &sums, &found, e));
        FAIL_IF(!found, e, PROFD_INTERNAL, "series %lld vanished", (long long)k.series);
        sqlite_sums_add(&sums, more);
        TRY(sqlite_series_save(s, k.series, &sums, e));
        batch_touch(b, k.series);
    }
    buffer_add(&b->touched, "]", sizeof "]");
    if (b->touched.failed) {
        return profd_no_memory(e);
    }
    for (size_t i = 0; b->touched.size > sizeof "]" && i < sizeof touches / sizeof touches[0]; i++) {
        TRY(sqlite_run(s, touches[i], VALUES(TEXT(b->touched.data), INTEGER(s->state.number)), e));
    }
    s->state.list_epoch = s->state.number;
    return sqlite_save_state(s, e);
}

/* --- Live processes --- */

enum profd_status store_get_instance(struct store *s, uint32_t uid, const uint8_t instance[STORE_INSTANCE_SIZE],
                                     uint64_t *generation, uint8_t **snapshot, size_t *size, struct profd_error *e)
{
    sqlite3_stmt *q;
    bool row = false;
    size_t n;
    TRY(sqlite_first(s, SQL_SNAPSHOT_GET, VALUES(INTEGER(uid), BLOB(instance, STORE_INSTANCE_SIZE)), &q, &row, e));
    if (!row) {
        *generation = 0;
        *snapshot = NULL;
        *size = 0;
        return PROFD_OK;
    }
    enum profd_status status = PROFD_OK;
    const uint8_t *bytes = sqlite_blob(q, 1, &n);
    uint8_t *copy = NULL;
    if (sqlite3_column_type(q, 1) == SQLITE_NULL) {
        status = profd_error_set(e, PROFD_DAMAGED, "database %s: an instance of user %u has no snapshot", s->path, uid);
    } else if (!(copy = malloc(n + 1))) {
        status = profd_no_memory(e);
    } else {
        memcpy(copy, bytes, n);
        *generation = sqlite_u64(q, 0);
        *snapshot = copy;
        *size = n;
    }
    sqlite_finish(q);
    return status;
}

/* Calls each with the instances of this name; NULL: with those that have not ended or have missing children. */
static enum profd_status each_found(struct store *s, const uint8_t *name,
                                    bool (*each)(void *context, const struct store_instance *i), void *context,
                                    struct profd_error *e)
{
    sqlite3_stmt *q;
    TRY(name ? sqlite_start(s, SQL_INSTANCE_NAMESAKES, VALUES(BLOB(name, STORE_INSTANCE_SIZE)), &q, e)
             : sqlite_start(s, SQL_INSTANCE_EACH, NULL, 0, &q, e));
    enum profd_status status = PROFD_OK;
    while (sqlite_row(s, q, &status, e)) {
        struct store_instance i = {.uid = (uint32_t)sqlite3_column_int64(q, 0),
                                   .generation = sqlite_u64(q, 2),
                                   .seen = sqlite3_column_int64(q, 3),
                                   .ended = sqlite3_column_int(q, 5) != 0,
                                   .missing_since = sqlite3_column_int64(q, 6)};
        i.snapshot = sqlite_blob(q, 4, &i.snapshot_size);
        sqlite_copy(q, 1, i.instance, sizeof i.instance);
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
    enum profd_status status =
        sqlite_start(s, kind == STORE_READ ? SQL_INSTANCE_READ : SQL_INSTANCE_UNREAD,
                     VALUES(INTEGER(s->run), INTEGER(filter->until), INTEGER(scope->all), SCOPE(scope), TEXT(build),
                            INTEGER(filter->as_program), INTEGER(kind == STORE_READ ? filter->since : 0)),
                     &q, e);
    while (sqlite_row(s, q, &status, e)) {
        size_t n;
        const uint8_t *labels = sqlite_blob(q, 0, &n);
        int64_t earliest = sqlite3_column_int64(q, 2), latest = sqlite3_column_int64(q, 3);
        if (!labels_match((const char *)labels, n, filter->matchers, filter->matcher_count)) {
            continue;
        }
        out->earliest = out->processes == 0 || earliest < out->earliest ? earliest : out->earliest;
        out->latest = latest > out->latest ? latest : out->latest;
        out->processes += sqlite_u64(q, 1);
    }
    return status;
}

/* A row of table instance. */
struct instance {
    int64_t id; /* 0: not known */
    uint64_t generation;
    bool has_upload;
    int64_t upload, series, hour;
    int64_t seen;
};

/* The upload of an instance, which may grow. */
struct growing {
    int64_t start, end;
    uint32_t inexact, group;
    uint64_t started;
    int64_t host;
    size_t size; /* of its counts, encoded */
    int width;   /* minutes of its slice; 0: it has none yet */
    struct counts counts;
};

/* Adds the difference u to the upload, and to all sums what it has gained by that. *done is false, and nothing has
 * changed, if both together exceed the limits of an upload. */
static enum profd_status grow(struct sqlite_batch *b, const struct store_upload *u, const struct sqlite_series *series,
                              const struct instance *i, const struct growing *g, bool *done, struct profd_error *e)
{
    struct counts more, sum = {0};
    struct profd_error why;
    uint8_t *bytes = NULL;
    size_t size = 0;
    enum profd_status status = counts_decode(u->counts, u->counts_size, series->build_count, &more, &why);
    FAIL_IF(status, e, status == PROFD_NO_MEMORY ? status : PROFD_INTERNAL, "a harvest's counts: %s", why.sentence);
    struct arena *scratch = arena_new(0);
    status = scratch ? rollup_grow(scratch, &g->counts, &more, &sum, &why) : profd_no_memory(&why);
    status = status ? status : counts_encode(&sum, &bytes, &size, &why);
    counts_done(&more);
    *done = !status;
    if (!status) {
        struct sqlite_sums one;
        struct share was[LIMIT_BUILDS] = {{0}};
        bool full = sum.saturated;
        uint64_t started = g->started, ticks, calls;
        const int64_t start = u->start < g->start ? u->start : g->start, end = u->end > g->end ? u->end : g->end;
        sum_add(&started, u->processes_started, &full);
        sqlite_sums_init(&one, series->build_count);
        one.processes = started - g->started;
        one.first = u->start;
        one.last = u->end;
        one.raw_bytes = one.live_bytes = (uint64_t)size - g->size;

        /* What u adds is the difference of the sums, as if the upload had arrived at once: times are rounded. */
        counts_totals(&sum, &one.ticks, &one.calls);
        counts_totals(&g->counts, &ticks, &calls);
        one.ticks -= ticks;
        one.calls -= calls;
        one.stack_ticks = sum_all(sum.node_ticks, sum.node_count) - sum_all(g->counts.node_ticks, g->counts.node_count);
        full |= share_add_counts(one.shares, &sum);
        (void)share_add_counts(was, &g->counts);
        for (size_t k = 0; k < one.build_count; k++) {
            one.shares[k].nanoseconds -= was[k].nanoseconds;
            one.shares[k].calls -= was[k].calls;
        }
        one.inexact = g->inexact | u->inexact | (full ? (uint32_t)INEXACT_SATURATED : 0);
        (void)sqlite_batch_number(b); /* no row has this number; it only advances the epochs */
        status = sqlite_run(b->s, SQL_UPLOAD_GROW,
                            VALUES(INTEGER(i->upload), INTEGER(start), INTEGER(end - start), INTEGER(one.inexact),
                                   INTEGER(started), BLOB(bytes, size)),
                            e);
        status = status ? status : sqlite_batch_add(b, u, series, &one, e);
    } else if (status == PROFD_TOO_LARGE) {
        status = PROFD_OK;
    } else {
        (void)profd_error_set(e, status, "%s", why.sentence);
    }
    arena_free(scratch);
    free(bytes);
    return status;
}

/* Adds the difference to the instance's upload if that is in the same slice, still single and can be read; otherwise
 * creates an upload, which is then that of i. */
static enum profd_status put_counts(struct sqlite_batch *b, struct store_upload *u, struct instance *i,
                                    enum store_outcome *outcome, struct profd_error *e)
{
    struct store *s = b->s;
    struct store_label labels[LIMIT_LABELS];
    int64_t host = 0;
    const struct sqlite_series *series = NULL;
    bool found = false, done = false;
    TRY(sqlite_intern_host(s, u->host, &host, e));
    TRY(sqlite_intern_limited(s, u, labels, &series, outcome, e));
    if (i->has_upload && i->series == series->id && i->hour == u->end / SQLITE_HOUR) {
        sqlite3_stmt *q;
        size_t n;
        struct profd_error why;
        TRY(sqlite_first(s, SQL_UPLOAD_GROWING,
                         VALUES(INTEGER(i->upload), INTEGER(i->series), INTEGER(i->hour), INTEGER(STORE_GROWN_MOST)),
                         &q, &found, e));
        const uint8_t *bytes = found ? sqlite_blob(q, 6, &n) : NULL;
        struct growing g = {.start = 0};
        if (found) {
            g = (struct growing){.host = sqlite3_column_int64(q, 0),
                                 .start = sqlite3_column_int64(q, 1),
                                 .end = sqlite3_column_int64(q, 1) + sqlite3_column_int64(q, 2),
                                 .inexact = (uint32_t)sqlite3_column_int64(q, 3),
                                 .started = sqlite_u64(q, 4),
                                 .group = (uint32_t)sqlite3_column_int64(q, 5),
                                 .size = n,
                                 .width = sqlite3_column_int(q, 7)};
            const enum profd_status status = counts_decode(bytes, n, series->build_count, &g.counts, &why);
            sqlite_finish(q);
            FAIL_IF(status == PROFD_NO_MEMORY, e, status, "%s", why.sentence);
            found = !status; /* otherwise verification reports it */
        }
        if (found) {
            enum profd_status status = PROFD_OK;
            if (g.host == host && g.group == u->group && g.width > 0 &&
                sqlite_slice_at(g.width, g.end) == sqlite_slice_at(g.width, u->end)) {
                status = grow(b, u, series, i, &g, &done, e);
            }
            counts_done(&g.counts);
            TRY(status);
        }
    }
    if (done) {
        return PROFD_OK;
    }
    i->has_upload = true;
    i->series = series->id;
    i->hour = u->end / SQLITE_HOUR;
    return batch_put(b, u, host, series, i->id, &i->upload, e);
}

static enum profd_status put_harvest(struct sqlite_batch *b, const struct store_upload *u, enum store_outcome *outcome,
                                     struct profd_error *e)
{
    struct store *s = b->s;
    const struct sqlite_value name[] = {INTEGER(u->uid), BLOB(u->instance, sizeof u->instance)};
    struct instance i = {.id = 0};
    sqlite3_stmt *q;
    bool may = true, known = false;
    TRY(u->counts_size > 0 ? judge_upload(u, e) : PROFD_OK);
    if (u->counts_size > 0 && (u->ticks > 0 || u->calls > 0)) {
        const uint64_t bytes = u->counts_size + (u->base == 0 ? u->snapshot_size : 0);
        TRY(sqlite_share_take(s, &b->shares, u->uid, bytes, &may, e));
    }
    if (!may) { /* the instance counts as not read in this run */
        *outcome = STORE_OVER_SHARE;
        return sqlite_run(s, SQL_INSTANCE_PUT_OFF, name, 2, e);
    }
    TRY(sqlite_first(s, SQL_INSTANCE_GET, name, 2, &q, &known, e));
    if (known) {
        i = (struct instance){.id = sqlite3_column_int64(q, 0),
                              .generation = sqlite_u64(q, 1),
                              .has_upload = sqlite3_column_type(q, 2) != SQLITE_NULL,
                              .upload = sqlite3_column_int64(q, 2),
                              .series = sqlite3_column_int64(q, 3),
                              .hour = sqlite3_column_int64(q, 4),
                              .seen = sqlite3_column_int64(q, 5)};
        sqlite_finish(q);
    }
    *outcome = i.generation == u->base ? STORE_STORED : STORE_STALE;
    if (*outcome == STORE_STALE) {
        return PROFD_OK;
    }
    if (!known) {
        TRY(sqlite_run(s, SQL_INSTANCE_ADD,
                       VALUES(name[0], name[1], INTEGER(u->base + 1), INTEGER(u->received), INTEGER(u->ended)), e));
        i.id = sqlite3_last_insert_rowid(s->db);
    }
    const struct sqlite_value id = INTEGER(i.id);
    if (u->counts_size > 0) {
        struct store_upload own = *u;
        TRY(put_counts(b, &own, &i, outcome, e));
    } else if (i.has_upload) { /* reports state that it was read again or has ended */
        (void)sqlite_batch_number(b);
        batch_touch(b, i.series);
    }
    if (u->marks) {
        return sqlite_run(s, SQL_INSTANCE_MARK, &id, 1, e);
    }
    TRY(sqlite_run(s, SQL_INSTANCE_SET,
                   VALUES(id, INTEGER(u->base + 1), i.has_upload ? INTEGER(i.upload) : NOTHING,
                          i.has_upload ? INTEGER(i.series) : NOTHING, i.has_upload ? INTEGER(i.hour) : NOTHING,
                          INTEGER(u->received), INTEGER(u->ended), INTEGER(s->run)),
                   e));
    TRY(sqlite_run(s, SQL_SNAPSHOT_SET, VALUES(id, BLOB(u->snapshot, u->snapshot_size)), e));

    /* Children that were read before their parent are not missing; a parent that is not known yet is waited for. */
    const int64_t before = known ? i.seen : u->counts_size > 0 ? u->start : u->received;
    int64_t more = (int64_t)u->children;
    if (!known) {
        TRY(sqlite_run(s, SQL_INSTANCE_ADOPT, VALUES(name[1], name[0]), e));
        more -= sqlite3_changes(s->db);
    }
    if (more != 0) {
        TRY(sqlite_run(s, SQL_INSTANCE_BEAR, VALUES(id, INTEGER(more), INTEGER(before)), e));
    }
    for (size_t k = 0; k < u->parent_count; k++) {
        const struct sqlite_value parent = BLOB(u->parents + k * STORE_INSTANCE_SIZE, STORE_INSTANCE_SIZE);
        TRY(sqlite_run(s, SQL_INSTANCE_FOUND, VALUES(parent, name[0]), e));
        TRY(sqlite3_changes(s->db) > 0 ? PROFD_OK : sqlite_run(s, SQL_INSTANCE_WAIT, VALUES(parent, id, name[0]), e));
    }
    return u->told ? sqlite_run(s, SQL_INSTANCE_TELL, &id, 1, e) : PROFD_OK;
}

/* --- Upload ids, by which each delivery is counted once --- */

/* Added to the before of store_remove_ids. */
#define ENDED_BEFORE ((LIMIT_ID_DAYS - STORE_ENDED_DAYS) * SQLITE_DAY)
#define DIGESTS_BEFORE ((LIMIT_ID_DAYS - STORE_ARRIVAL_DAYS) * SQLITE_DAY)
#define DAY_IDS_BEFORE (LIMIT_ID_DAYS * SQLITE_DAY - STORE_ID_HOURS * SQLITE_HOUR)
#define SEEN_SLACK 3600           /* seconds by which a sender's last_seen may be outdated */
#define SENDER_FORGET_SLICE 50000 /* senders visited in one transaction */
#define INSTANCE_FORGET_SLICE 2000
#define DAY_ID_FORGET_SLICE 20000

/* Reads the set of a sender's ids; the empty set if the sender is unknown. */
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

enum profd_status store_has_upload(struct store *s, const struct store_upload *upload, bool *counted,
                                   struct profd_error *e)
{
    struct sequence_set set;
    int64_t host = 0, seen;
    bool found = false;
    if (upload->ids == STORE_ID_NONE) {
        *counted = false;
        return PROFD_OK;
    }
    if (upload->ids == STORE_ID_OF_DAY) {
        return sqlite_find(s, SQL_DAY_ID_FIND,
                           VALUES(INTEGER(upload->uid), BLOB(upload->sender, sizeof upload->sender)), &seen, counted,
                           e);
    }
    enum profd_status status = sqlite_find(s, SQL_HOST_FIND, VALUES(TEXT(upload->host)), &host, &found, e);
    if (!status && found) {
        status = load_set(s, upload, host, &set, &seen, e);
        found = status == PROFD_OK && sequence_holds(&set, upload->sequence);
    }
    if (!status) {
        *counted = found;
    }
    return status;
}

enum profd_status store_remove_ids(struct store *s, int64_t before, struct profd_error *e)
{
    static const enum sqlite_sql of_instances[] = {SQL_INSTANCE_WAIT_REMOVE, SQL_SNAPSHOT_REMOVE, SQL_INSTANCE_REMOVE};
    const struct sqlite_cursor from = s->forget;
    struct sqlite_cursor to = from;
    sqlite3_stmt *q;
    int64_t visited = 0;
    TRY(sqlite_write_begin(s, e));
    enum profd_status status = sqlite_start(s, SQL_SENDER_SCAN,
                                            VALUES(INTEGER(from.host), INTEGER(from.uid),
                                                   BLOB(from.sender, sizeof from.sender), INTEGER(SENDER_FORGET_SLICE)),
                                            &q, e);
    while (sqlite_row(s, q, &status, e)) {
        to.host = sqlite3_column_int64(q, 0);
        to.uid = sqlite3_column_int64(q, 1);
        sqlite_copy(q, 2, to.sender, sizeof to.sender);
        visited++;
    }
    if (!status) {
        status = sqlite_run(s, SQL_SENDER_REMOVE,
                            VALUES(INTEGER(from.host), INTEGER(from.uid), BLOB(from.sender, sizeof from.sender),
                                   INTEGER(to.host), INTEGER(to.uid), BLOB(to.sender, sizeof to.sender),
                                   INTEGER(before / SQLITE_SECOND)),
                            e);
    }
    for (size_t i = 0; !status && i < sizeof of_instances / sizeof of_instances[0]; i++) {
        status =
            sqlite_run(s, of_instances[i], VALUES(INTEGER(before + ENDED_BEFORE), INTEGER(INSTANCE_FORGET_SLICE)), e);
    }
    status =
        status
            ? status
            : sqlite_run(s, SQL_DAY_ID_REMOVE,
                         VALUES(INTEGER((before + DAY_IDS_BEFORE) / SQLITE_SECOND), INTEGER(DAY_ID_FORGET_SLICE)), e);
    status = status ? status : sqlite_centre_forget(s, before + DIGESTS_BEFORE, e);
    status = status ? status : sqlite_run(s, SQL_ADOPTED_FORGET, VALUES(INTEGER(before / SQLITE_DAY)), e);
    status = status ? status : sqlite_run(s, SQL_CLOCK_SET, VALUES(INTEGER(before + LIMIT_ID_DAYS * SQLITE_DAY)), e);
    status = sqlite_write_end(s, status, e);
    if (!status) {
        s->forget = visited < SENDER_FORGET_SLICE ? (struct sqlite_cursor){.host = 0} : to;
    }
    return status;
}

/* Enters the id into the set of its sender. */
static enum profd_status put_sequence(struct store *s, const struct store_upload *u, int64_t host,
                                      enum store_outcome *outcome, struct profd_error *e)
{
    struct sequence_set set;
    uint8_t above[SEQUENCE_BYTES];
    const int64_t now = u->received / SQLITE_SECOND;
    int64_t seen;
    TRY(load_set(s, u, host, &set, &seen, e));
    const enum sequence_outcome added = sequence_add(&set, u->sequence);
    *outcome = added == SEQUENCE_NEW ? STORE_STORED : added == SEQUENCE_SEEN ? STORE_DUPLICATE : STORE_TOO_MANY_GAPS;
    if (added != SEQUENCE_NEW && now < seen + SEEN_SLACK) {
        return PROFD_OK;
    }
    const size_t n = sequence_encode(&set, above);
    return sqlite_run(s, SQL_SENDER_SET,
                      VALUES(INTEGER(host), INTEGER(u->uid), BLOB(u->sender, sizeof u->sender), INTEGER(set.mark),
                             INTEGER(now > seen ? now : seen), BLOB(above, n)),
                      e);
}

/* Stores an upload that is not of a live process, if its id is new, and enters the id. */
static enum profd_status put_upload(struct sqlite_batch *b, const struct store_upload *u, enum store_outcome *outcome,
                                    struct profd_error *e)
{
    struct store *s = b->s;
    int64_t host, number;
    const struct sqlite_series *series;
    bool may = true, counted = false;
    FAIL_IF(u->sequence == 0, e, PROFD_INTERNAL, "an upload's sequence is 0; sequences begin with 1");
    TRY(judge_upload(u, e));
    TRY(sqlite_share_take(s, &b->shares, u->uid, u->counts_size, &may, e));
    if (!may || u->ids == STORE_ID_OF_DAY) { /* a repeat takes no space */
        TRY(store_has_upload(s, u, &counted, e));
    }
    if (!may && !counted) {
        *outcome = STORE_OVER_SHARE;
        return PROFD_OK;
    }
    *outcome = counted ? STORE_DUPLICATE : STORE_STORED;
    TRY(sqlite_intern_host(s, u->host, &host, e));
    if (u->ids == STORE_ID_SEQUENCE) {
        TRY(put_sequence(s, u, host, outcome, e));
    } else if (u->ids == STORE_ID_OF_DAY && !counted) {
        TRY(sqlite_run(s, SQL_DAY_ID_ADD,
                       VALUES(INTEGER(u->uid), BLOB(u->sender, sizeof u->sender), INTEGER(u->received / SQLITE_SECOND)),
                       e));
    }
    if (*outcome != STORE_STORED) {
        return PROFD_OK;
    }
    struct store_upload own = *u;
    struct store_label labels[LIMIT_LABELS];
    TRY(sqlite_intern_limited(s, &own, labels, &series, outcome, e));
    TRY(store_is_tenant(u->uid) ? sqlite_centre_add(s, &own, e) : PROFD_OK);
    return batch_put(b, &own, host, series, 0, &number, e);
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
    for (size_t i = 0; !status && i < n; i++) {
        status = uploads[i].live ? put_harvest(&b, &uploads[i], &outcomes[i], e)
                                 : put_upload(&b, &uploads[i], &outcomes[i], e);
    }
    status = status ? status : sqlite_batch_flush(&b, e);
    status = sqlite_store_end(s, status, e);
    sqlite_batch_done(&b);
    return status;
}
