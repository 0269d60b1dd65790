/* Row ids of hosts, builds and series. The writer caches them, so that an upload of a known series needs no query. */
#include <stdlib.h>
#include <string.h>

#include "store/labels.h"
#include "store/sqlite.h"

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

static enum profd_status find_series(struct store *s, const struct store_upload *u, const int64_t *builds, int64_t set,
                                     int64_t *id, struct profd_error *e)
{
    struct buffer labels;
    buffer_init(&labels, SQLITE_CACHE_BYTES);
    labels_encode(u->labels, u->label_count, &labels);
    bool found = false;
    enum profd_status status = labels.failed ? profd_no_memory(e) : PROFD_OK;
    if (status == PROFD_OK) {
        status = sqlite_find(
            s, SQL_SERIES_FIND,
            VALUES(INTEGER(set), INTEGER(u->uid), INTEGER(builds[u->program]), BLOB(labels.data, labels.size)), id,
            &found, e);
    }
    if (status == PROFD_OK && !found) {
        status = sqlite_run(
            s, SQL_SERIES_ADD,
            VALUES(INTEGER(set), INTEGER(u->uid), INTEGER(builds[u->program]), BLOB(labels.data, labels.size)), e);
        *id = sqlite3_last_insert_rowid(s->db);
        if (status == PROFD_OK) {
            status = sqlite_run(s, SQL_SET_USER_ADD, VALUES(INTEGER(set), INTEGER(u->uid)), e);
        }
        for (size_t i = 0; status == PROFD_OK && i < u->build_count; i++) {
            status = sqlite_run(
                s, SQL_BUILD_USER_ADD,
                VALUES(INTEGER(builds[i]), INTEGER(u->uid), INTEGER(s->state.number + 1), TEXT(u->builds[i].name)), e);
        }
    }
    buffer_done(&labels);
    return status;
}

/* Makes the key of a series in s->key. */
static bool make_key(struct store *s, const struct store_upload *u)
{
    s->key.size = 0;
    s->key.failed = false;
    uint64_t head[3] = {u->uid, u->program, u->build_count};
    buffer_add(&s->key, head, sizeof head);
    for (size_t i = 0; i < u->build_count; i++) {
        buffer_add(&s->key, u->builds[i].id.text, strlen(u->builds[i].id.text) + 1);
    }
    labels_encode(u->labels, u->label_count, &s->key);
    return !s->key.failed;
}

/* Reads or adds the rows of a series that is not cached. entry has space for all builds. */
static enum profd_status load_series(struct store *s, const struct store_upload *u, struct sqlite_series *entry,
                                     uint8_t *set, struct profd_error *e)
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
        status = find_series(s, u, entry->builds, set_id, &entry->id, e);
    }
    return status;
}

enum profd_status sqlite_intern_series(struct store *s, const struct store_upload *u,
                                       const struct sqlite_series **series, struct profd_error *e)
{
    if (!make_key(s, u)) {
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
        status = load_series(s, u, entry, set, e);
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
