/* Symbols, labels and companions of a build. */
#include <stdlib.h>
#include <string.h>

#include "store/labels.h"
#include "store/sqlite.h"

/* One object with a summary of its senders. */
struct candidate {
    int64_t object;
    bool readable, has_names, trusted;
    size_t users, operators; /* numbers of the users that accept it, and of these the tenants with operators that did */
    int64_t delivered;       /* latest delivery by a trusted sender or one of the users */
    char *note;              /* of that delivery */
};

/* Is the candidate, which may name functions, to be preferred? */
static bool is_better(const struct candidate *c, const struct candidate *best, size_t uid_count)
{
    const bool ruled = c->operators == uid_count, best_ruled = best->operators == uid_count;
    return best->object == 0                 ? true
           : c->has_names != best->has_names ? c->has_names
           : ruled != best_ruled             ? ruled
           : c->trusted != best->trusted     ? c->trusted
                                             : c->delivered > best->delivered;
}

/* When all senders of an object were read: keeps the better of it and the best so far. */
static void judge_candidate(struct candidate *c, size_t uid_count, struct candidate *best, struct candidate *failure)
{
    struct candidate *target = NULL;
    if (c->readable && (c->trusted || (uid_count > 0 && c->users == uid_count))) {
        target = is_better(c, best, uid_count) ? best : NULL;
    } else if (!c->readable && c->delivered > failure->delivered) {
        target = failure;
    }
    if (target) {
        free(target->note);
        *target = *c;
        c->note = NULL;
    }
    free(c->note);
    c->note = NULL;
}

static bool is_member(const uint32_t *uids, size_t n, uint32_t uid)
{
    size_t low = 0, high = n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (uids[middle] < uid) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < n && uids[low] == uid;
}

/* Adds a row of SQL_OBJECT_EACH to its object. */
static enum profd_status fold_sender(struct candidate *c, sqlite3_stmt *q, const struct store_senders *of, bool *apart,
                                     struct profd_error *e)
{
    const uint32_t uid = (uint32_t)sqlite3_column_int64(q, 3);
    const bool trusted = sqlite3_column_int(q, 4) != 0, member = is_member(of->uids, of->uid_count, uid);
    const int64_t delivered = sqlite3_column_int64(q, 5);
    c->readable = sqlite3_column_int(q, 1) != 0;
    c->has_names = sqlite3_column_int(q, 2) != 0;
    c->trusted |= trusted;
    c->users += member && sqlite3_column_int(q, 8) != 0;
    c->operators += member && sqlite3_column_int(q, 7) != 0;
    *apart |= member && c->readable && store_is_tenant(uid);
    if ((!trusted && !member) || delivered <= c->delivered) {
        return PROFD_OK;
    }
    c->delivered = delivered;
    free(c->note);
    c->note = strdup(sqlite_text(q, 6));
    return c->note ? PROFD_OK : profd_error_set(e, PROFD_NO_MEMORY, "no memory for a sentence about an executable");
}

enum profd_status sqlite_choose_object(struct store *s, int64_t build, const struct store_senders *of,
                                       struct sqlite_choice *choice, struct profd_error *e)
{
    sqlite3_stmt *q;
    struct candidate current = {.object = 0}, best = {.object = 0}, failure = {.object = 0};
    bool apart = false;
    TRY(sqlite_start(s, SQL_OBJECT_EACH, VALUES(INTEGER(build)), &q, e));
    enum profd_status status = PROFD_OK;
    while (sqlite_row(s, q, &status, e)) {
        if (sqlite3_column_int64(q, 0) != current.object) {
            judge_candidate(&current, of->uid_count, &best, &failure);
            current = (struct candidate){.object = sqlite3_column_int64(q, 0)};
        }
        status = fold_sender(&current, q, of, &apart, e);
    }
    if (status == PROFD_OK) {
        judge_candidate(&current, of->uid_count, &best, &failure);
        choice->object = best.object;
        choice->has_names = best.has_names;
        choice->trusted = best.trusted;
        choice->by_operators = best.operators > 0 && best.operators == of->uid_count;
        choice->apart = apart && best.object == 0;
        choice->note = best.object != 0 ? best.note : failure.note;
        *(best.object != 0 ? &best.note : &failure.note) = NULL;
    }
    free(current.note);
    free(best.note);
    free(failure.note);
    return status;
}

enum profd_status sqlite_touch_object(struct store *s, int64_t build, uint32_t from, uint32_t to, struct profd_error *e)
{
    static const enum sqlite_sql touches[] = {SQL_TOUCH_BUILD_USERS, SQL_TOUCH_BUILDS, SQL_TOUCH_USERS};
    enum profd_status status = PROFD_OK;
    int users = 0;
    for (size_t i = 0; status == PROFD_OK && i < sizeof touches / sizeof touches[0]; i++) {
        status =
            sqlite_run(s, touches[i], VALUES(INTEGER(build), INTEGER(from), INTEGER(to), INTEGER(s->state.number)), e);
        users = sqlite3_changes(s->db);
    }
    struct sqlite_state *t = &s->state;
    if (users > 0) {
        t->list_epoch = t->number;
    }
    return status == PROFD_OK ? sqlite_save_state(s, e) : status;
}

static enum profd_status tally_labels(struct store *s, const struct store_scope *scope, const char *build_id,
                                      struct label_tally *tally, struct profd_error *e)
{
    sqlite3_stmt *q;
    TRY(build_id ? sqlite_start(s, SQL_LABELS_BUILD, VALUES(INTEGER(scope->all), SCOPE(scope), TEXT(build_id)), &q, e)
                 : sqlite_start(s, SQL_LABELS_ALL, VALUES(INTEGER(scope->all), SCOPE(scope)), &q, e));
    enum profd_status status = PROFD_OK;
    while (sqlite_row(s, q, &status, e)) {
        size_t n;
        const uint8_t *labels = sqlite_blob(q, 0, &n);
        status = label_tally_add(tally, (const char *)labels, n, (uint64_t)sqlite3_column_int64(q, 1), e);
    }
    return status;
}

enum profd_status store_each_label(struct store *s, const struct store_scope *scope, const char *build_id,
                                   bool (*each)(void *context, const struct label_row *row), void *context,
                                   struct profd_error *e)
{
    struct label_tally tally;
    label_tally_init(&tally);
    enum profd_status status = tally_labels(s, scope, build_id, &tally, e);
    if (status == PROFD_OK) {
        status = label_tally_each(&tally, each, context, e);
    }
    label_tally_done(&tally);
    return status;
}

struct companion {
    char *id, *name;
};

static int compare_companions(const void *a, const void *b)
{
    return strcmp(((const struct companion *)a)->id, ((const struct companion *)b)->id);
}

/* Row ids of all builds that share a set with this one, as keys. */
static enum profd_status collect_rows(struct store *s, const struct store_scope *scope, int64_t build,
                                      struct hashmap *rows, struct profd_error *e)
{
    sqlite3_stmt *q;
    TRY(sqlite_start(s, SQL_COMPANION_SETS, VALUES(INTEGER(scope->all), SCOPE(scope), INTEGER(build)), &q, e));
    enum profd_status status = PROFD_OK;
    while (sqlite_row(s, q, &status, e)) {
        size_t n;
        const uint8_t *set = sqlite_blob(q, 0, &n);
        for (size_t i = 0; status == PROFD_OK && i + 4 <= n; i += 4) {
            uint32_t id =
                (uint32_t)set[i] | (uint32_t)set[i + 1] << 8 | (uint32_t)set[i + 2] << 16 | (uint32_t)set[i + 3] << 24;
            if (id != build && !hashmap_find(rows, &id, sizeof id) && !hashmap_put(rows, &id, sizeof id, NULL, 0)) {
                status = profd_error_set(e, PROFD_NO_MEMORY, "no memory for the list of companions");
            }
        }
    }
    return status;
}

static enum profd_status read_companion(struct store *s, const struct store_scope *scope, uint32_t build,
                                        struct companion *c, struct profd_error *e)
{
    sqlite3_stmt *q;
    bool row = false;
    TRY(sqlite_first(s, SQL_BUILD_NAME, VALUES(INTEGER(build), INTEGER(scope->all), SCOPE(scope)), &q, &row, e));
    if (!row) {
        return profd_error_set(e, PROFD_DAMAGED, "database %s: a build's row is missing", s->path);
    }
    c->id = strdup(sqlite_text(q, 0));
    c->name = strdup(sqlite_text(q, 1));
    sqlite_finish(q);
    return c->id && c->name ? PROFD_OK : profd_error_set(e, PROFD_NO_MEMORY, "no memory for the list of companions");
}

static enum profd_status list_companions(struct store *s, const struct store_scope *scope, int64_t build,
                                         struct companion **list, size_t *count, struct profd_error *e)
{
    struct hashmap rows;
    hashmap_init(&rows, 0);
    enum profd_status status = collect_rows(s, scope, build, &rows, e);
    if (status == PROFD_OK) {
        *list = calloc(rows.count + 1, sizeof **list);
        if (!*list) {
            status = profd_error_set(e, PROFD_NO_MEMORY, "no memory for the list of companions");
        }
    }
    size_t position = 0;
    const void *key;
    while (status == PROFD_OK && hashmap_next(&rows, &position, &key)) {
        uint32_t id;
        memcpy(&id, key, sizeof id);
        status = read_companion(s, scope, id, &(*list)[(*count)++], e);
    }
    hashmap_clear(&rows);
    return status;
}

enum profd_status store_each_companion(struct store *s, const struct store_scope *scope, const char *build_id,
                                       bool (*each)(void *context, const char *companion, const char *name),
                                       void *context, struct profd_error *e)
{
    struct companion *list = NULL;
    size_t count = 0;
    int64_t build = 0;
    bool began, found = false;
    enum profd_status status = sqlite_read_begin(s, &began, e);
    if (status != PROFD_OK) {
        return status;
    }
    status = sqlite_find(s, SQL_BUILD_FIND, VALUES(TEXT(build_id)), &build, &found, e);
    if (status == PROFD_OK && found) {
        status = list_companions(s, scope, build, &list, &count, e);
    }
    status = sqlite_read_end(s, began, status, e);
    if (status == PROFD_OK && count > 0) {
        qsort(list, count, sizeof *list, compare_companions);
    }
    bool more = status == PROFD_OK;
    for (size_t i = 0; i < count; i++) {
        more = more && each(context, list[i].id, list[i].name);
        free(list[i].id);
        free(list[i].name);
    }
    free(list);
    return status;
}
