/* Finds and lists builds, their labels and companions; totals and epochs. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "proto/sum.h"
#include "store/labels.h"
#include "store/store_internal.h"

/* Finds the first two visible builds, ascending, whose id begins with the prefix (or equals it, if exact). */
static enum profd_status find_builds(struct store *s, const struct store_scope *scope, const char *prefix, bool exact,
                                     struct buildid found[2], size_t *count, struct profd_error *e)
{
    enum sqlite_sql which = exact ? (scope->all ? SQL_FIND_EXACT_ALL : SQL_FIND_EXACT_UID)
                                  : (scope->all ? SQL_FIND_PREFIX_ALL : SQL_FIND_PREFIX_UID);
    sqlite3_stmt *q;
    size_t n = 0;
    /* The statements over all users' builds have one parameter. */
    const struct sqlite_value values[] = {TEXT(prefix), SCOPE(scope)};
    enum profd_status status = sqlite_start(s, which, values, scope->all ? 1 : 2, &q, e);
    while (n < 2 && sqlite_row(s, q, &status, e)) {
        snprintf(found[n++].text, sizeof found[0].text, "%s", sqlite_text(q, 0));
    }
    sqlite_finish(q);
    TRY(status);
    *count = n;
    return PROFD_OK;
}

enum profd_status store_find_build(struct store *s, const struct store_scope *scope, const char *text,
                                   struct buildid *id, struct profd_error *e)
{
    struct buildid found[2];
    size_t count = 0;
    char prefix[BUILDID_TEXT_SIZE];
    size_t n = strlen(text);
    FAIL_IF(n >= sizeof prefix, e, PROFD_REFUSED, "a build-id has at most %d characters, this has %zu",
            BUILDID_TEXT_SIZE - 1, n);
    for (size_t i = 0; i <= n; i++) { /* ids copied from other tools may have capitals */
        prefix[i] = (char)(text[i] >= 'A' && text[i] <= 'Z' ? text[i] - 'A' + 'a' : text[i]);
    }
    TRY(n > 0 ? find_builds(s, scope, prefix, true, found, &count, e) : PROFD_OK);
    if (count == 0) {
        FAIL_IF(!buildid_prefix_valid(prefix, n), e, PROFD_REFUSED,
                "\"%s\" is neither a build-id nor a prefix of at least 4 of its characters; `profctl builds --all` "
                "lists the stored builds",
                text);
        TRY(find_builds(s, scope, prefix, false, found, &count, e));
    }
    if (count == 0) {
        char owner[32] = "";
        if (!scope->all) {
            (void)snprintf(owner, sizeof owner, " for user %u", scope->uid);
        }
        return profd_error_set(e, PROFD_NOT_FOUND,
                               "no profile of build \"%s\" is stored%s; `profctl builds --all` lists the stored builds",
                               text, owner);
    }
    FAIL_IF(count > 1, e, PROFD_AMBIGUOUS, "\"%s\" begins several build-ids, among them %s and %s", text, found[0].text,
            found[1].text);
    *id = found[0];
    return PROFD_OK;
}

/* A build, to which the rows of its users are added. */
struct build_sums {
    int64_t row_id;
    struct build_row row;
    char *name;
    int64_t added;  /* number of the upload that stated the name */
    uint32_t *uids; /* ascending */
    size_t uid_count, uid_capacity;
};

static void build_sums_done(struct build_sums *b)
{
    free(b->name);
    free(b->uids);
    *b = (struct build_sums){.row_id = 0};
}

/* Columns of the statements that list builds, behind those of sums. */
enum { SET = SQLITE_SUM_COLUMNS, PROGRAM, BUILD_ID, BUILD, USER, NAME, ADDED };

/* Adds one series of one user. */
static enum profd_status add_series(struct store *s, struct build_sums *b, sqlite3_stmt *q, struct profd_error *e)
{
    struct build_row *r = &b->row;
    struct sqlite_sums sums;
    bool saturated = false;
    size_t n;
    const uint8_t *set = sqlite_blob(q, SET, &n);
    const uint32_t uid = (uint32_t)sqlite3_column_int64(q, USER);
    const int64_t added = sqlite3_column_int64(q, ADDED);
    FAIL_IF(n / 4 > LIMIT_BUILDS, e, PROFD_DAMAGED, "database %s: a set of %zu builds", s->path, n / 4);
    TRY(sqlite_sums_read(s, q, n / 4, &sums, e));
    if (b->uid_count == 0) {
        b->row_id = sqlite3_column_int64(q, BUILD);
        snprintf(r->build_id.text, sizeof r->build_id.text, "%s", sqlite_text(q, BUILD_ID));
        r->first_seen = INT64_MAX;
        r->last_seen = INT64_MIN;
    }
    if (b->uid_count == 0 || added < b->added) {
        free(b->name);
        b->added = added;
        b->name = strdup(sqlite_text(q, NAME));
        TRY(b->name ? PROFD_OK : profd_no_memory(e));
    }
    r->is_program |= sqlite3_column_int64(q, PROGRAM) == b->row_id;
    r->first_seen = sums.first < r->first_seen ? sums.first : r->first_seen;
    r->last_seen = sums.last > r->last_seen ? sums.last : r->last_seen;
    sum_add(&r->uploads, sums.uploads, &saturated);
    sum_add(&r->processes, sums.processes, &saturated);
    for (size_t i = 0; i < n / 4; i++) {
        if (sqlite_set_build(set, i) == b->row_id) {
            sum_add(&r->nanoseconds, sums.shares[i].nanoseconds, &saturated);
            sum_add(&r->calls, sums.shares[i].calls, &saturated);
            /* A sum that has stopped is not the true one. */
            saturated |= sums.shares[i].nanoseconds >= SUM_MAX || sums.shares[i].calls >= SUM_MAX;
        }
    }
    r->inexact |= sums.inexact | (saturated ? (uint32_t)INEXACT_SATURATED : 0);
    if (b->uid_count > 0 && b->uids[b->uid_count - 1] == uid) {
        return PROFD_OK;
    }
    if (!LIST_GROW(b->uids, b->uid_count, b->uid_capacity)) {
        return profd_no_memory(e);
    }
    b->uids[b->uid_count++] = uid;
    return PROFD_OK;
}

/* Receiver of the rows; one of the two functions is set. */
struct build_sink {
    bool (*each)(void *context, const struct build_row *row);
    void (*once)(void *context, const struct build_row *row);
    void *context;
    const struct store_scope *scope;
    size_t left, given;
};

/* Gives each build when the rows of all of its series were added. */
static enum profd_status list_builds(struct store *s, enum sqlite_sql which, const char *text, struct build_sink *sink,
                                     struct profd_error *e)
{
    struct build_sums b = {.row_id = 0};
    sqlite3_stmt *q;
    bool row = true;
    const struct sqlite_value values[] = {TEXT(text), SCOPE(sink->scope)};
    enum profd_status status = PROFD_OK;
    TRY(sqlite_start(s, which, values, sink->scope->all ? 1 : 2, &q, e));
    while (!status && sink->left > 0 && row) {
        row = sqlite_row(s, q, &status, e);
        if (!status && b.uid_count > 0 && (!row || sqlite3_column_int64(q, BUILD) != b.row_id)) {
            const struct store_filter filter = {.build_id = b.row.build_id.text};
            const struct store_senders senders = {.uids = b.uids, .uid_count = b.uid_count};
            struct sqlite_choice choice = {.object = 0};
            struct store_living unread = {.processes = 0};
            uint32_t reasons = 0;
            unsigned of = 0;
            for (size_t i = 0; i < b.uid_count; i++) {
                of |= store_origin_of(b.uids[i]);
            }
            status = sqlite_choose_object(s, b.row_id, &senders, &choice, e);
            status = status ? status : store_get_living(s, STORE_UNREAD, sink->scope, &filter, &unread, e);
            status = status ? status : store_get_marks(s, sink->scope, &filter, (enum store_origin)of, &reasons, e);
            if (!status) {
                b.row.inexact |= reasons | (unread.processes > 0 ? (uint32_t)INEXACT_NOT_READ : 0);
                b.row.name = b.name;
                b.row.has_names = choice.object != 0 && choice.has_names;
                b.row.note = choice.note ? choice.note : "";
                sink->given++;
                sink->left--;
                if (sink->once) {
                    sink->once(sink->context, &b.row);
                } else if (!sink->each(sink->context, &b.row)) {
                    sink->left = 0;
                }
            }
            free(choice.note);
            build_sums_done(&b);
        }
        if (!status && row && sink->left > 0) {
            status = add_series(s, &b, q, e);
        }
    }
    sqlite_finish(q);
    build_sums_done(&b);
    return status;
}

enum profd_status store_each_build(struct store *s, const struct store_scope *scope, const char *after, size_t limit,
                                   bool (*each)(void *context, const struct build_row *row), void *context,
                                   struct profd_error *e)
{
    struct build_sink sink = {.each = each, .context = context, .scope = scope, .left = limit};
    bool began;
    if (limit == 0) {
        return PROFD_OK;
    }
    TRY(sqlite_read_begin(s, &began, e));
    enum profd_status status = list_builds(s, scope->all ? SQL_EACH_BUILD_ALL : SQL_EACH_BUILD_UID, after, &sink, e);
    return sqlite_read_end(s, began, status, e);
}

enum profd_status store_get_build(struct store *s, const struct store_scope *scope, const char *build_id,
                                  void (*each)(void *context, const struct build_row *row), void *context,
                                  struct profd_error *e)
{
    struct build_sink sink = {.once = each, .context = context, .scope = scope, .left = 1};
    bool began;
    TRY(sqlite_read_begin(s, &began, e));
    enum profd_status status = list_builds(s, scope->all ? SQL_GET_BUILD_ALL : SQL_GET_BUILD_UID, build_id, &sink, e);
    if (!status && sink.given == 0) {
        status = profd_error_set(e, PROFD_NOT_FOUND, "no build %s has been uploaded", build_id);
    }
    return sqlite_read_end(s, began, status, e);
}

/* number NULL: of the list of all users' builds. */
static enum profd_status make_epoch(struct store *s, const int64_t *number, struct store_epoch *epoch,
                                    struct profd_error *e)
{
    struct sqlite_state state;
    TRY(sqlite_load_state(s, &state, e));
    *epoch = (struct store_epoch){.number = (uint64_t)(number ? *number : state.list_epoch),
                                  .salt = (uint64_t)state.salt ^ s->salt};
    return PROFD_OK;
}

enum profd_status store_epoch(struct store *s, const struct store_scope *scope, const char *build_id,
                              struct store_epoch *epoch, struct profd_error *e)
{
    int64_t number = 0;
    bool found = false;
    TRY(scope->all ? sqlite_find(s, SQL_EPOCH_ALL, VALUES(TEXT(build_id)), &number, &found, e)
                   : sqlite_find(s, SQL_EPOCH_UID, VALUES(TEXT(build_id), SCOPE(scope)), &number, &found, e));
    return make_epoch(s, &number, epoch, e);
}

enum profd_status store_epoch_all(struct store *s, const struct store_scope *scope, struct store_epoch *epoch,
                                  struct profd_error *e)
{
    int64_t number = 0;
    bool found = false;
    TRY(scope->all ? PROFD_OK : sqlite_find(s, SQL_LIST_EPOCH_UID, VALUES(SCOPE(scope)), &number, &found, e));
    return make_epoch(s, scope->all ? NULL : &number, epoch, e);
}

enum profd_status store_get_totals(struct store *s, struct store_totals *out, struct profd_error *e)
{
    struct store_totals t = {.builds = 0};
    struct sqlite_state state = {.number = 0};
    struct stat st;
    char log[4200];
    sqlite3_stmt *q = NULL;
    bool began, row = false, found;
    TRY(sqlite_read_begin(s, &began, e));
    enum profd_status status = sqlite_load_state(s, &state, e);
    status = status ? status : sqlite_first(s, SQL_TOTALS, NULL, 0, &q, &row, e);
    if (!status && row) {
        t.builds = sqlite_u64(q, 0);
        t.builds_without_names = sqlite_u64(q, 1);
        t.nameless_since = sqlite3_column_int64(q, 2);
    }
    sqlite_finish(q);
    status = status ? status : sqlite_first(s, SQL_PAGES, NULL, 0, &q, &row, e);
    if (!status && row) {
        const uint64_t page = sqlite_u64(q, 1);
        t.file_bytes = sqlite_u64(q, 0) * page;
        t.free_bytes = sqlite_u64(q, 2) * page;
    }
    sqlite_finish(q);
    t.uploads = state.accepted.uploads;
    t.ticks = state.accepted.ticks;
    t.calls = state.accepted.calls;
    t.retired_uploads = state.retired.uploads;
    t.retired_ticks = state.retired.ticks;
    t.retired_calls = state.retired.calls;
    t.raw_uploads = state.raw_uploads;
    t.raw_bytes = state.raw_bytes;
    t.rollups = state.rollups;
    status = status ? status : sqlite_find(s, SQL_CLOCK_GET, NULL, 0, &t.clock, &found, e);
    status = status ? status : sqlite_users_list(s, &t, e);
    TRY(sqlite_read_end(s, began, status, e));
    snprintf(log, sizeof log, "%s-wal", s->path);
    t.wal_bytes = stat(log, &st) == 0 ? (uint64_t)st.st_size : 0;
    *out = t;
    return PROFD_OK;
}

/* A label with its name and value, as they are stored, and the uploads that have it. */
struct label_uploads {
    const char *pair;
    uint64_t uploads;
};

static int compare_labels(const void *a, const void *b)
{
    const char *x = ((const struct label_uploads *)a)->pair, *y = ((const struct label_uploads *)b)->pair;
    const int names = strcmp(x, y);
    return names != 0 ? names : strcmp(x + strlen(x) + 1, y + strlen(y) + 1);
}

enum profd_status store_each_label(struct store *s, const struct store_scope *scope, const char *build_id,
                                   bool (*each)(void *context, const struct label_row *row), void *context,
                                   struct profd_error *e)
{
    struct hashmap pairs; /* name NUL value NUL → uint64_t uploads */
    sqlite3_stmt *q;
    size_t position = 0, count = 0;
    const void *key;
    enum profd_status status = PROFD_OK;
    TRY(build_id ? sqlite_start(s, SQL_LABELS_BUILD, VALUES(INTEGER(scope->all), SCOPE(scope), TEXT(build_id)), &q, e)
                 : sqlite_start(s, SQL_LABELS_ALL, VALUES(INTEGER(scope->all), SCOPE(scope)), &q, e));
    hashmap_init(&pairs, 0);
    while (sqlite_row(s, q, &status, e)) {
        struct store_label ignored;
        size_t n;
        const char *text = (const char *)sqlite_blob(q, 0, &n), *start = text;
        const uint64_t uploads = sqlite_u64(q, 1);
        for (const char *at = text; !status && labels_next(&at, text + n, &ignored); start = at) {
            const size_t size = (size_t)(at - start);
            uint64_t *sum = hashmap_find(&pairs, start, size);
            bool saturated = false;
            if (sum) {
                sum_add(sum, uploads, &saturated);
            } else if (!hashmap_put(&pairs, start, size, &uploads, sizeof uploads)) {
                status = profd_no_memory(e);
            }
        }
    }
    struct label_uploads *list = calloc(pairs.count + 1, sizeof *list);
    status = status || list ? status : profd_no_memory(e);
    for (const uint64_t *sum; !status && (sum = hashmap_next(&pairs, &position, &key));) {
        list[count++] = (struct label_uploads){.pair = key, .uploads = *sum};
    }
    if (count > 0) {
        qsort(list, count, sizeof *list, compare_labels);
    }
    for (size_t i = 0; i < count; i++) {
        const char *name = list[i].pair;
        const struct label_row row = {.name = name, .value = name + strlen(name) + 1, .uploads = list[i].uploads};
        if (!each(context, &row)) {
            break;
        }
    }
    free(list);
    hashmap_clear(&pairs);
    return status;
}

struct companion {
    char *id, *name;
};

static int compare_companions(const void *a, const void *b)
{
    return strcmp(((const struct companion *)a)->id, ((const struct companion *)b)->id);
}

enum profd_status store_each_companion(struct store *s, const struct store_scope *scope, const char *build_id,
                                       bool (*each)(void *context, const char *companion, const char *name),
                                       void *context, struct profd_error *e)
{
    struct companion *list = NULL;
    struct hashmap rows; /* of all builds that share a set with this one: row id → nothing */
    sqlite3_stmt *q;
    size_t count = 0, position = 0;
    const void *key;
    int64_t build = 0;
    bool began, found = false;
    TRY(sqlite_read_begin(s, &began, e));
    hashmap_init(&rows, 0);
    enum profd_status status = sqlite_find(s, SQL_BUILD_FIND, VALUES(TEXT(build_id)), &build, &found, e);
    if (!status && found) {
        status = sqlite_start(s, SQL_COMPANION_SETS, VALUES(INTEGER(scope->all), SCOPE(scope), INTEGER(build)), &q, e);
        while (!status && sqlite_row(s, q, &status, e)) {
            size_t n;
            const uint8_t *set = sqlite_blob(q, 0, &n);
            for (size_t i = 0; !status && i < n / 4; i++) {
                const uint32_t id = sqlite_set_build(set, i);
                if (id != build && !hashmap_find(&rows, &id, sizeof id) &&
                    !hashmap_put(&rows, &id, sizeof id, NULL, 0)) {
                    status = profd_no_memory(e);
                }
            }
        }
    }
    list = calloc(rows.count + 1, sizeof *list);
    status = status || list ? status : profd_no_memory(e);
    while (!status && hashmap_next(&rows, &position, &key)) {
        struct companion *c = &list[count++];
        uint32_t id;
        memcpy(&id, key, sizeof id);
        status = sqlite_first(s, SQL_BUILD_NAME, VALUES(INTEGER(id), INTEGER(scope->all), SCOPE(scope)), &q, &found, e);
        if (!status && !found) {
            status = profd_error_set(e, PROFD_DAMAGED, "database %s: a build's row is missing", s->path);
        }
        if (!status) {
            c->id = strdup(sqlite_text(q, 0));
            c->name = strdup(sqlite_text(q, 1));
            sqlite_finish(q);
            status = c->id && c->name ? PROFD_OK : profd_no_memory(e);
        }
    }
    hashmap_clear(&rows);
    status = sqlite_read_end(s, began, status, e);
    if (list) {
        qsort(list, status ? 0 : count, sizeof *list, compare_companions);
    }
    bool more = !status;
    for (size_t i = 0; i < count; i++) {
        more = more && each(context, list[i].id, list[i].name);
        free(list[i].id);
        free(list[i].name);
    }
    free(list);
    return status;
}

/* --- The watch list --- */

enum profd_status store_put_watch_rows(struct store *s, const struct store_watch_row *rows, size_t n,
                                       struct profd_error *e)
{
    TRY(sqlite_store_begin(s, e));
    enum profd_status status = PROFD_OK;
    for (size_t i = 0; !status && i < n; i++) {
        const struct store_watch_row *r = &rows[i];
        status = r->document
                     ? sqlite_run(s, SQL_WATCH_PUT, VALUES(TEXT(r->key), INTEGER(r->changed), TEXT(r->document)), e)
                     : sqlite_run(s, SQL_WATCH_REMOVE, VALUES(TEXT(r->key)), e);
    }
    return sqlite_write_end(s, status, e);
}

enum profd_status store_each_watch_row(struct store *s, bool (*each)(void *context, const struct store_watch_row *row),
                                       void *context, struct profd_error *e)
{
    sqlite3_stmt *q;
    bool more = true;
    enum profd_status status = PROFD_OK;
    TRY(sqlite_start(s, SQL_WATCH_EACH, NULL, 0, &q, e));
    while (more && sqlite_row(s, q, &status, e)) {
        const struct store_watch_row out = {
            .key = sqlite_text(q, 0), .changed = sqlite3_column_int64(q, 1), .document = sqlite_text(q, 2)};
        more = each(context, &out);
    }
    sqlite_finish(q);
    return status;
}
