#include "store/sqlite_users.h"

enum profd_status sqlite_load_state(struct store *s, struct sqlite_state *state, struct profd_error *e)
{
    sqlite3_stmt *q;
    bool row = false;
    TRY(sqlite_first(s, SQL_STATE_GET, NULL, 0, &q, &row, e));
    if (!row) {
        return profd_error_set(e, PROFD_DAMAGED, "database %s: table state is empty", s->path);
    }
    *state = (struct sqlite_state){.number = sqlite3_column_int64(q, 0),
                                   .list_epoch = sqlite3_column_int64(q, 1),
                                   .salt = sqlite3_column_int64(q, 2),
                                   .uploads = (uint64_t)sqlite3_column_int64(q, 3),
                                   .ticks = (uint64_t)sqlite3_column_int64(q, 4),
                                   .calls = (uint64_t)sqlite3_column_int64(q, 5),
                                   .version = sqlite3_column_int64(q, 6),
                                   .retired_uploads = (uint64_t)sqlite3_column_int64(q, 7),
                                   .retired_ticks = (uint64_t)sqlite3_column_int64(q, 8),
                                   .retired_calls = (uint64_t)sqlite3_column_int64(q, 9),
                                   .raw_uploads = (uint64_t)sqlite3_column_int64(q, 10),
                                   .raw_bytes = (uint64_t)sqlite3_column_int64(q, 11),
                                   .rollups = (uint64_t)sqlite3_column_int64(q, 12),
                                   .retiring = sqlite3_column_int64(q, 13),
                                   .live_bytes = (uint64_t)sqlite3_column_int64(q, 14)};
    sqlite_finish(q);
    return PROFD_OK;
}

enum profd_status sqlite_save_state(struct store *s, struct profd_error *e)
{
    const struct sqlite_state *t = &s->state;
    return sqlite_run(s, SQL_STATE_SET,
                      VALUES(INTEGER(t->number), INTEGER(t->list_epoch), INTEGER(t->uploads), INTEGER(t->ticks),
                             INTEGER(t->calls), INTEGER(t->version), INTEGER(t->retired_uploads),
                             INTEGER(t->retired_ticks), INTEGER(t->retired_calls), INTEGER(t->raw_uploads),
                             INTEGER(t->raw_bytes), INTEGER(t->rollups), INTEGER(t->retiring), INTEGER(t->live_bytes)),
                      e);
}

const struct store_health *store_get_health(const struct store *s)
{
    return &s->health;
}

void sqlite_discard_rows(struct store *s)
{
    hashmap_clear(&s->hosts);
    hashmap_clear(&s->builds);
    hashmap_clear(&s->series);
    hashmap_clear(&s->known);
}

enum profd_status sqlite_write_begin(struct store *s, struct profd_error *e)
{
    if (!s->writable) {
        return profd_error_set(e, PROFD_INTERNAL, "this handle of the store only reads");
    }
    enum profd_status status = sqlite_watch_look(s, e);
    if (status == PROFD_OK) {
        status = sqlite_run(s, SQL_BEGIN_WRITE, NULL, 0, e);
    }
    s->spacious = false;
    if (status != PROFD_OK) {
        return status;
    }
    status = sqlite_load_state(s, &s->state, e);
    return status == PROFD_OK ? PROFD_OK : sqlite_write_end(s, status, e);
}

/* Also removes from the caches the row ids that were not committed. */
void sqlite_write_undo(struct store *s)
{
    for (int i = 0; i < SQL_COUNT; i++) {
        sqlite3_reset(s->statements[i]);
    }
    if (!sqlite3_get_autocommit(s->db)) {
        (void)sqlite_run(s, SQL_ROLLBACK, NULL, 0, NULL);
    }
    sqlite_discard_rows(s);
    sqlite_users_discard(s);
    s->relay_settled = false;
}

/* Copies the log into the database when it is long. What was committed stays committed if this fails; but after an I/O
 * error sqlite_fail has closed the handle for further writes. A log that a reader holds back is tried again later. */
static void checkpoint(struct store *s)
{
    if (s->wal_frames < s->checkpoint_at) {
        return;
    }
    int log = 0, done = 0;
    if (sqlite3_wal_checkpoint_v2(s->db, "main", SQLITE_CHECKPOINT_PASSIVE, &log, &done) != SQLITE_OK) {
        (void)sqlite_fail(s, NULL);
    }
    sqlite_watch_note_database(s);
    s->checkpoint_at = log > done ? s->wal_frames + s->log_frames / 4 : s->log_frames;
}

enum profd_status sqlite_empty_log(struct store *s, bool truncate, struct profd_error *e)
{
    TRY(sqlite_watch_look(s, e));
    int rc = sqlite3_wal_checkpoint_v2(s->db, "main", truncate ? SQLITE_CHECKPOINT_TRUNCATE : SQLITE_CHECKPOINT_PASSIVE,
                                       NULL, NULL);
    sqlite_watch_note_database(s);
    enum profd_status status = PROFD_OK;
    if (rc != SQLITE_OK) {
        status = sqlite_fail(s, e);
        return status == PROFD_FULL || status == PROFD_BUSY ? PROFD_OK : status;
    }
    if (truncate) {
        s->wal_frames = 0;
        sqlite_watch_note_log(s);
        (void)sqlite3_exec(s->db, "UPDATE state SET salt=salt", NULL, NULL, NULL); /* see store_sqlite_touch */
        s->checkpoint_at = s->log_frames;
    }
    return PROFD_OK;
}

/* Whether there is space: what found none, and what has stored something since. */
static void note_space(struct store *s, enum profd_status status, const struct profd_error *e)
{
    struct store_health *h = &s->health;
    if (h->failed || !(status == PROFD_FULL || (status == PROFD_OK && s->spacious && h->full))) {
        return;
    }
    h->full = status == PROFD_FULL;
    h->changes++;
    profd_error_set(&h->error, status, "%s", h->full && e ? e->sentence : "");
}

enum profd_status sqlite_write_end(struct store *s, enum profd_status status, struct profd_error *e)
{
    if (status == PROFD_OK) {
        status = sqlite_users_flush(s, e);
    }
    if (status == PROFD_OK) {
        status = sqlite_run(s, SQL_COMMIT, NULL, 0, e);
    }
    note_space(s, status, e);
    if (status != PROFD_OK) {
        sqlite_break(s, status, e ? e->sentence : "what is stored is damaged");
        sqlite_write_undo(s);
        return status;
    }
    /* Again, now that it is durable: what is acknowledged was in these files at some moment after its commit. */
    TRY(sqlite_watch_look(s, e));
    checkpoint(s);
    return PROFD_OK;
}

enum profd_status sqlite_read_begin(struct store *s, bool *began, struct profd_error *e)
{
    *began = false;
    if (!sqlite3_get_autocommit(s->db)) {
        return PROFD_OK;
    }
    enum profd_status status = sqlite_run(s, SQL_BEGIN_READ, NULL, 0, e);
    *began = status == PROFD_OK;
    return status;
}

enum profd_status sqlite_read_end(struct store *s, bool began, enum profd_status status, struct profd_error *e)
{
    if (!began) {
        return status;
    }
    enum profd_status ended = sqlite_run(s, SQL_COMMIT, NULL, 0, status == PROFD_OK ? e : NULL);
    if (ended != PROFD_OK && !sqlite3_get_autocommit(s->db)) {
        (void)sqlite_run(s, SQL_ROLLBACK, NULL, 0, NULL);
    }
    return status != PROFD_OK ? status : ended;
}
