#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "store/sqlite_users.h"

#define QUICK_CHECK_BYTES (64 << 20) /* a larger database is not read completely when it is opened */

void store_close(struct store *s)
{
    if (!s) {
        return;
    }
    sqlite_statements_done(s);
    (void)sqlite_watch_look(s, NULL);
    /* A handle that may not write any more must not checkpoint when it is closed, either. */
    if (s->db && s->broken != PROFD_OK) {
        sqlite3_db_config(s->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    }
    sqlite3_close(s->db);
    sqlite_watch_end(s);
    hashmap_clear(&s->hosts);
    hashmap_clear(&s->builds);
    hashmap_clear(&s->series);
    hashmap_clear(&s->known);
    buffer_done(&s->key);
    hashmap_clear(&s->owed);
    free(s->bounds);
    free(s->path);
    free(s);
}

static struct store *new_handle(const char *path, bool writable)
{
    struct store *s = calloc(1, sizeof *s);
    if (!s) {
        return NULL;
    }
    s->writable = writable;
    hashmap_init(&s->hosts, SQLITE_CACHE_BYTES);
    hashmap_init(&s->builds, SQLITE_CACHE_BYTES);
    hashmap_init(&s->series, SQLITE_CACHE_BYTES);
    hashmap_init(&s->known, SQLITE_CACHE_BYTES);
    buffer_init(&s->key, SQLITE_CACHE_BYTES);
    hashmap_init(&s->owed, 0);
    s->path = strdup(path);
    if (!s->path) {
        store_close(s);
        return NULL;
    }
    return s;
}

static enum profd_status execute(struct store *s, const char *sql, struct profd_error *e)
{
    return sqlite3_exec(s->db, sql, NULL, NULL, NULL) == SQLITE_OK ? PROFD_OK : sqlite_fail(s, e);
}

/* Opens the connection and lets it do nothing that the file's owner has not asked for. Nothing is written yet. */
static enum profd_status connect_file(struct store *s, int flags, struct profd_error *e)
{
    sqlite_seal_register();
    if (sqlite3_open_v2(s->path, &s->db, flags | SQLITE_OPEN_NOMUTEX, NULL) != SQLITE_OK) {
        return s->db ? sqlite_fail(s, e) : profd_error_set(e, PROFD_NO_MEMORY, "no memory to open the database");
    }
    sqlite3_extended_result_codes(s->db, 1);
    sqlite3_db_config(s->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    sqlite3_db_config(s->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    sqlite3_db_config(s->db, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
    sqlite3_db_config(s->db, SQLITE_DBCONFIG_ENABLE_VIEW, 0, NULL);
    return execute(s,
                   "PRAGMA busy_timeout=0; PRAGMA mmap_size=0; PRAGMA trusted_schema=OFF; PRAGMA temp_store=MEMORY; "
                   "PRAGMA cell_size_check=ON; PRAGMA wal_autocheckpoint=0",
                   e);
}

static enum profd_status check_pages(struct store *s, struct profd_error *e)
{
    sqlite3_stmt *q = NULL;
    (void)sqlite_seal_take_fault();
    if (sqlite3_prepare_v2(s->db, "PRAGMA quick_check(1)", -1, &q, NULL) != SQLITE_OK) {
        return sqlite_fail(s, e);
    }
    enum profd_status status = PROFD_OK;
    if (sqlite3_step(q) != SQLITE_ROW) {
        status = sqlite_fail(s, e);
    } else if (strcmp(sqlite_text(q, 0), "ok") != 0) {
        status = profd_error_set(e, PROFD_DAMAGED, "database %s: %s", s->path, sqlite_text(q, 0));
    }
    sqlite3_finalize(q);
    /* A page that cannot be read is no reason to refuse the others: what does not need it is answered. */
    int64_t page = sqlite_seal_take_fault();
    s->bad_page = page ? page : s->bad_page;
    return s->bad_page ? PROFD_OK : status;
}

/* Whether the header says that pages have space for checksums. Only VACUUM changes that. */
static bool is_sealed(const struct store *s)
{
    return sqlite_seal_reserve(s->db, -1) == SQLITE_SEAL_SIZE;
}

static int note_frames(void *context, sqlite3 *db, const char *name, int frames)
{
    (void)db;
    (void)name;
    struct store *s = context;
    /* The log was restarted, so nothing holds it back any more. */
    if (frames < s->wal_frames) {
        s->checkpoint_at = s->log_frames;
    }
    s->wal_frames = frames;
    sqlite_watch_note_log(s);
    return SQLITE_OK;
}

/* From here on the file is known to be a profd database and may be written. */
static enum profd_status prepare_writing(struct store *s, struct profd_error *e)
{
    sqlite3_stmt *q = NULL;
    if (sqlite3_prepare_v2(s->db, "PRAGMA journal_mode=WAL", -1, &q, NULL) != SQLITE_OK) {
        return sqlite_fail(s, e);
    }
    enum profd_status status = PROFD_OK;
    if (sqlite3_step(q) != SQLITE_ROW) {
        status = sqlite_fail(s, e);
    } else if (strcmp(sqlite_text(q, 0), "wal") != 0) {
        status = profd_error_set(e, PROFD_IO,
                                 "database \"%s\": no write-ahead log on this file system (journal_mode stays %s)",
                                 s->path, sqlite_text(q, 0));
    }
    /* The change is committed only when the statement ends, and that may fail. */
    if (sqlite3_finalize(q) != SQLITE_OK && status == PROFD_OK) {
        status = sqlite_fail(s, e);
    }
    if (status == PROFD_OK) {
        /* secure_delete: some builds of SQLite write zeros over all that is deleted; the log would grow by as much as a
         * removal frees. */
        TRY(execute(s, "PRAGMA synchronous=FULL; PRAGMA cache_size=-16384; PRAGMA secure_delete=FAST", e));
    }
    return status;
}

/* Syncs the log through a descriptor of its own: SQLite holds no locks on it. */
static enum profd_status sync_log(const struct store *s, struct profd_error *e)
{
    char path[PATH_MAX];
    int n = snprintf(path, sizeof path, "%s-wal", s->path);
    int fd = n > 0 && (size_t)n < sizeof path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    int rc = fd >= 0 ? fdatasync(fd) : -1, error = errno;
    if (fd >= 0) {
        close(fd);
    }
    return rc == 0 ? PROFD_OK : profd_error_set(e, PROFD_IO, "cannot sync \"%s-wal\": %s", s->path, strerror(error));
}

/* Commits that an earlier process wrote but did not sync count as committed when the log is read again, and repeats of
 * them are acknowledged without another write. They must be durable first. A checkpoint rewrites what a failed sync may
 * have left in memory only. If the disk is too full for that, the log itself is synced. */
static enum profd_status make_durable(struct store *s, struct profd_error *e)
{
    int rc = sqlite3_wal_checkpoint_v2(s->db, "main", SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
    if (rc == SQLITE_OK) {
        return PROFD_OK;
    }
    if ((rc & 0xff) == SQLITE_FULL || (rc & 0xff) == SQLITE_BUSY) { /* busy: another program reads the file */
        return sync_log(s, e);
    }
    return sqlite_fail(s, e);
}

static enum profd_status open_writer(struct store *s, struct profd_error *e)
{
    bool exists;
    int64_t version = 0;
    TRY(sqlite_judge_file(s->path, &exists, e));
    if (!exists) {
        TRY(sqlite_create_file(s->path, e));
    }
    TRY(connect_file(s, SQLITE_OPEN_READWRITE, e));
    if (sqlite3_db_readonly(s->db, "main") == 1) {
        return profd_error_set(e, PROFD_CANT_CREATE, "the database \"%s\" may not be written by this user", s->path);
    }
    TRY(sqlite_judge_schema(s->db, s->path, &version, e));
    /* Checks, before the file is changed: the pages of a small file, and the tables. If the byte of the header that
     * says how much of a page is free were damaged, the check of the pages would fail. */
    struct stat st;
    if (stat(s->path, &st) != 0) {
        return profd_error_set(e, PROFD_IO, "cannot stat the database \"%s\": %s", s->path, strerror(errno));
    }
    TRY(!is_sealed(s) || st.st_size < QUICK_CHECK_BYTES ? check_pages(s, e) : PROFD_OK);
    TRY(sqlite_structure_judge(s->db, &sqlite_schema_newest, s->path, version, e));
    if (!is_sealed(s)) {
        return profd_error_set(e, PROFD_CONFIG,
                               "the pages of the database \"%s\" have no checksums, because another program made it; "
                               "profd --restore makes them in a copy",
                               s->path);
    }
    TRY(prepare_writing(s, e));
    if (version < SQLITE_SCHEMA_VERSION) {
        TRY(sqlite_schema_extend(s->db, &sqlite_schema_newest, version, e));
    }
    TRY(sqlite_load_state(s, &s->state, e));
    TRY(make_durable(s, e));
    TRY(sqlite_space_open(s, e));
    TRY(sqlite_direct_integer(s->db, "PRAGMA page_size", &s->page_size, e));
    TRY(sqlite_watch_begin(s, e));
    sqlite_users_watch(s);
    sqlite3_wal_hook(s->db, note_frames, s);
    sqlite3_db_config(s->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0, NULL);
    return PROFD_OK;
}

static enum profd_status open_reader(struct store *s, struct profd_error *e)
{
    struct stat st;
    int64_t version = 0;
    if (stat(s->path, &st) != 0) {
        return profd_error_set(e, PROFD_NO_INPUT, "cannot open the database \"%s\": %s", s->path, strerror(errno));
    }
    if (!S_ISREG(st.st_mode)) {
        return profd_error_set(e, PROFD_CONFIG, "the database \"%s\" is not a file", s->path);
    }
    TRY(connect_file(s, SQLITE_OPEN_READONLY, e));
    TRY(sqlite_judge_schema(s->db, s->path, &version, e));
    if (!is_sealed(s)) {
        return profd_error_set(e, PROFD_DAMAGED, "the pages of the database \"%s\" have no checksums", s->path);
    }
    if (version != SQLITE_SCHEMA_VERSION) {
        return profd_error_set(e, PROFD_CONFIG, "database \"%s\" has schema version %lld; open it for writing first",
                               s->path, (long long)version);
    }
    return PROFD_OK;
}

/* Writes the content of s with checksums into the empty file. */
static enum profd_status copy_sealed(struct store *s, const char *copy, struct profd_error *e)
{
    sqlite3_stmt *q = NULL;
    char size[48];
    (void)snprintf(size, sizeof size, "PRAGMA page_size=%d", SQLITE_PAGE);
    enum profd_status status = check_pages(s, e);
    if (status == PROFD_OK) {
        status = execute(s, size, e);
    }
    (void)sqlite_seal_reserve(s->db, SQLITE_SEAL_SIZE); /* the size of pages sets it to 0 */
    if (status == PROFD_OK &&
        (sqlite3_prepare_v2(s->db, "VACUUM INTO ?1", -1, &q, NULL) != SQLITE_OK ||
         sqlite3_bind_text(q, 1, copy, -1, SQLITE_STATIC) != SQLITE_OK || sqlite3_step(q) != SQLITE_DONE)) {
        status = sqlite_fail(s, e);
    }
    sqlite3_finalize(q);
    return status;
}

enum profd_status store_sqlite_seal(const char *path, struct profd_error *e)
{
    char copy[PATH_MAX];
    int64_t version;
    struct store *s = new_handle(path, true);
    if (!s) {
        return profd_no_memory(e);
    }
    enum profd_status status = connect_file(s, SQLITE_OPEN_READWRITE, e);
    if (status == PROFD_OK) {
        status = sqlite_judge_schema(s->db, path, &version, e);
    }
    struct stat st;
    const int n = snprintf(copy, sizeof copy, "%s-sealed", path);
    if (status == PROFD_OK && (is_sealed(s) || n >= (int)sizeof copy)) {
        store_close(s);
        return PROFD_OK; /* store_sqlite_open_writer refuses so long a path */
    }
    if (status == PROFD_OK) {
        unlink(copy);
        const int fd = open(copy, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        if (fd < 0 || stat(path, &st) != 0 || fchown(fd, st.st_uid, st.st_gid) != 0) {
            status = profd_error_set(e, PROFD_CANT_CREATE, "cannot create \"%s\": %s", copy, strerror(errno));
        }
        if (fd >= 0) {
            close(fd);
        }
    }
    if (status == PROFD_OK) {
        status = copy_sealed(s, copy, e);
    }
    store_close(s);
    if (status == PROFD_OK && rename(copy, path) != 0) {
        status = profd_error_set(e, PROFD_CANT_CREATE, "cannot rename \"%s\": %s", copy, strerror(errno));
    }
    if (status != PROFD_OK) {
        unlink(copy);
    }
    return status;
}

enum profd_status store_sqlite_open_writer(const char *path, struct store **out, struct profd_error *e)
{
    struct store *s = new_handle(path, true);
    if (!s) {
        return profd_error_set(e, PROFD_NO_MEMORY, "no memory to open the database");
    }
    enum profd_status status = open_writer(s, e);
    if (status == PROFD_OK) {
        *out = s;
    } else {
        store_close(s);
    }
    return status;
}

enum profd_status store_sqlite_open_reader(const char *path, struct store **out, struct profd_error *e)
{
    struct store *s = new_handle(path, false);
    if (!s) {
        return profd_error_set(e, PROFD_NO_MEMORY, "no memory to open the database");
    }
    enum profd_status status = open_reader(s, e);
    if (status == PROFD_OK) {
        *out = s;
    } else {
        store_close(s);
    }
    return status;
}

void store_set_share(struct store *s, const struct store_share *share)
{
    s->share = *share;
}

void store_set_detail(struct store *s, const struct store_detail *detail)
{
    s->detail = *detail;
}

void store_set_run(struct store *s, uint64_t run)
{
    s->run = run;
}

void store_set_salt(struct store *s, uint64_t salt)
{
    s->salt = salt;
}
