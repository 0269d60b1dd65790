/* Opens, creates and checks the database file, and brings its tables to the newest schema version. */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "store/store_internal.h"

extern const unsigned char embed_schema_001_initial_sql[];

static const char *const steps[] = {(const char *)embed_schema_001_initial_sql};
_Static_assert(sizeof steps / sizeof steps[0] == SQLITE_SCHEMA_VERSION, "each version has one file in schema/");

const struct sqlite_schema sqlite_schema_newest = {.steps = steps, .version = SQLITE_SCHEMA_VERSION};

/* Draws a new random salt for ETags (struct store_epoch). In the caller's transaction, if there is one. */
static enum profd_status draw_salt(sqlite3 *db, struct profd_error *e)
{
    int64_t salt;
    char sql[64];
    FAIL_IF(getrandom(&salt, sizeof salt, 0) != (ssize_t)sizeof salt, e, PROFD_IO,
            "no random bytes for the salt of ETags");
    sqlite3_snprintf((int)sizeof sql, sql, "UPDATE state SET salt=%lld", (long long)salt);
    return sqlite_direct_run(db, sql, "cannot set the salt of ETags", e);
}

/* Checks the version of the open database. *version is its version. */
static enum profd_status judge_schema(sqlite3 *db, const char *path, int64_t *version, struct profd_error *e)
{
    int64_t application = 0, has = 0;
    enum profd_status status = sqlite_direct_integer(db, "PRAGMA application_id", &application, e);
    status = status ? status : sqlite_direct_integer(db, "PRAGMA user_version", &has, e);
    if (status) {
        return profd_error_wrap(e, status, "database \"%s\"", path);
    }
    FAIL_IF(application != SQLITE_APPLICATION_ID, e, PROFD_DAMAGED,
            "\"%s\" is not a profd database: its application id is 0x%08llx", path, (unsigned long long)application);
    FAIL_IF(has < 1, e, PROFD_DAMAGED, "\"%s\" has schema version %lld; the first is 1", path, (long long)has);
    FAIL_IF(has > SQLITE_SCHEMA_VERSION, e, PROFD_NEWER,
            "\"%s\" has schema version %lld, from a newer profd; this one knows up to %d", path, (long long)has,
            SQLITE_SCHEMA_VERSION);
    *version = has;
    return PROFD_OK;
}

/* Runs the steps that lead from one version to another, in the caller's transaction if there is one. */
static enum profd_status make_schema(sqlite3 *db, const struct sqlite_schema *schema, int64_t from, int64_t to,
                                     struct profd_error *e)
{
    for (int64_t i = from; i < to; i++) {
        TRY(sqlite_direct_run(db, schema->steps[i], "cannot make the schema", e));
    }
    return PROFD_OK;
}

enum profd_status sqlite_schema_extend(sqlite3 *db, const struct sqlite_schema *schema, int64_t version,
                                       struct profd_error *e)
{
    char mark[128];
    snprintf(mark, sizeof mark, "PRAGMA application_id=%d; PRAGMA user_version=%lld", SQLITE_APPLICATION_ID,
             (long long)schema->version);
    (void)sqlite_seal_reserve(db, SQLITE_SEAL_SIZE);
    /* auto_vacuum allows free pages to be returned. It cannot be enabled once there is a table. */
    enum profd_status status =
        sqlite_direct_run(db, "PRAGMA auto_vacuum=INCREMENTAL; BEGIN IMMEDIATE", "cannot begin the schema", e);
    status = status ? status : make_schema(db, schema, version, schema->version, e);
    status = status || version > 0 ? status : draw_salt(db, e);
    status = status ? status : sqlite_direct_run(db, mark, "cannot mark the schema", e);
    status = status ? status : sqlite_direct_run(db, "COMMIT", "cannot commit the schema", e);
    if (status && !sqlite3_get_autocommit(db)) {
        (void)sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL);
    }
    return status == PROFD_OK || version == 0
               ? status
               : profd_error_wrap(e, status, "cannot bring the database from schema version %lld to %lld",
                                  (long long)version, (long long)schema->version);
}

/* The tables of a database are compared with those of a new one in memory, which has run the steps to the same version
 * and so contains what the SQLite of this process makes of an ALTER TABLE. The texts of their statements must be equal,
 * except for white space and comments. */

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

/* Skips white space and comments. */
static const char *skip_blanks(const char *at)
{
    for (;;) {
        if (isspace((unsigned char)*at)) {
            at++;
        } else if (at[0] == '-' && at[1] == '-') {
            at += strcspn(at, "\n");
        } else {
            return at;
        }
    }
}

/* Returns whether two texts have the same words and signs. */
static bool same_text(const char *a, const char *b)
{
    bool word = false;
    for (;;) {
        const char *x = skip_blanks(a), *y = skip_blanks(b);
        if (*x != *y || (word && (x != a) != (y != b) && is_word(*x))) {
            return false; /* they differ, or one separates words that the other joins */
        }
        if (*x == '\0') {
            return true;
        }
        word = is_word(*x);
        a = x + 1;
        b = y + 1;
    }
}

enum profd_status sqlite_structure_judge(sqlite3 *db, const struct sqlite_schema *schema, const char *path,
                                         int64_t version, struct profd_error *e)
{
    static const char model_name[] = "the model of the tables";
    sqlite3 *model = NULL;
    sqlite3_stmt *q = NULL, *own = NULL;
    int rc = SQLITE_DONE;
    enum profd_status status =
        sqlite3_open_v2(":memory:", &model, SQLITE_OPEN_READWRITE | SQLITE_OPEN_MEMORY | SQLITE_OPEN_NOMUTEX, NULL) ==
                SQLITE_OK
            ? make_schema(model, schema, 0, version, e)
            : profd_no_memory(e);
    if (!status && sqlite3_prepare_v2(model,
                                      "SELECT type, name, sql FROM main.sqlite_schema "
                                      "WHERE name NOT LIKE 'sqlite^_%' ESCAPE '^'",
                                      -1, &q, NULL) != SQLITE_OK) {
        status = sqlite_direct_fail(model, model_name, e);
    }
    if (!status &&
        sqlite3_prepare_v2(db, "SELECT type, sql FROM main.sqlite_schema WHERE name=?1", -1, &own, NULL) != SQLITE_OK) {
        status = sqlite_direct_fail(db, path, e);
    }
    while (!status && (rc = sqlite3_step(q)) == SQLITE_ROW) {
        const char *type = sqlite_text(q, 0), *name = sqlite_text(q, 1);
        sqlite3_reset(own);
        if (sqlite3_bind_text(own, 1, name, -1, SQLITE_TRANSIENT) != SQLITE_OK) {
            status = profd_no_memory(e);
            break;
        }
        const int found = sqlite3_step(own);
        if (found == SQLITE_DONE) {
            status = profd_error_set(e, PROFD_DAMAGED, "database %s: %s %s of schema version %lld is missing", path,
                                     type, name, (long long)version);
        } else if (found != SQLITE_ROW) {
            status = sqlite_direct_fail(db, path, e);
        } else if (strcmp(type, sqlite_text(own, 0)) != 0 || !same_text(sqlite_text(q, 2), sqlite_text(own, 1))) {
            status = profd_error_set(e, PROFD_DAMAGED, "database %s: %s %s is not that of schema version %lld", path,
                                     type, name, (long long)version);
        }
    }
    if (!status && rc != SQLITE_DONE) {
        status = sqlite_direct_fail(model, model_name, e);
    }
    sqlite3_finalize(own);
    sqlite3_finalize(q);
    sqlite3_close(model);
    return status;
}

int64_t store_sqlite_bad_page(const struct store *s)
{
    return s->bad_page;
}

enum profd_status store_sqlite_check(struct store *s, void (*fault)(void *context, const char *sentence), void *context,
                                     struct profd_error *e)
{
    sqlite3_stmt *q = NULL;
    (void)sqlite_seal_take_fault();
    int rc = sqlite3_prepare_v2(s->db, "PRAGMA integrity_check(100)", -1, &q, NULL);
    while (rc == SQLITE_OK || rc == SQLITE_ROW) {
        rc = sqlite3_step(q);
        if (rc == SQLITE_ROW && strcmp(sqlite_text(q, 0), "ok") != 0) {
            fault(context, sqlite_text(q, 0));
        }
    }
    int64_t page = sqlite_seal_take_fault();
    s->bad_page = page ? page : s->bad_page;
    enum profd_status status = rc == SQLITE_DONE ? PROFD_OK : sqlite_fail(s, e);
    sqlite3_finalize(q);
    TRY(status);

    /* SQLite reads what is missing of the last page as zeros. */
    struct stat st;
    int64_t size = 0;
    TRY(sqlite_direct_integer(s->db, "PRAGMA page_size", &size, e));
    FAIL_IF(stat(s->path, &st) != 0, e, PROFD_IO, "cannot check the database \"%s\"", s->path);
    if (size > 0 && st.st_size % size != 0) {
        fault(context, "the file ends within a page");
    }
    return PROFD_OK;
}

/* --- The file: it is checked before SQLite may modify it, and complete before it gets its name --- */

#define HEADER_SIZE 100
#define HEADER_PAGE_SIZE 16   /* offset, 2 bytes; 1 means 65536 */
#define HEADER_CHANGES 24     /* offset of the number of the latest change, */
#define HEADER_PAGES 28       /* of the number of pages, which is valid if */
#define HEADER_VALID_FOR 92   /* this is the same as that of the latest change */
#define HEADER_VERSION 60     /* offset of user_version, big-endian */
#define HEADER_APPLICATION 68 /* of application_id */

static uint32_t get_u32(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | (uint32_t)p[3];
}

static enum profd_status judge_header(const char *path, const uint8_t *header, ssize_t n, struct profd_error *e)
{
    FAIL_IF(n < HEADER_SIZE || memcmp(header, "SQLite format 3", 16) != 0, e, PROFD_DAMAGED,
            "\"%s\" is not a profd database: it has no header of a SQLite database", path);
    uint32_t application = get_u32(header + HEADER_APPLICATION), version = get_u32(header + HEADER_VERSION);
    FAIL_IF(application != SQLITE_APPLICATION_ID, e, PROFD_DAMAGED,
            "\"%s\" is not a profd database: its application id is 0x%08x, not 0x%08x", path, application,
            (unsigned)SQLITE_APPLICATION_ID);
    FAIL_IF(version > SQLITE_SCHEMA_VERSION, e, PROFD_NEWER,
            "\"%s\" has schema version %u, from a newer profd; this one knows up to %d", path, version,
            SQLITE_SCHEMA_VERSION);
    return PROFD_OK;
}

/* Refuses a log without its database: SQLite would apply it to the new database. */
static enum profd_status judge_log(const char *path, struct profd_error *e)
{
    char log[PATH_MAX];
    struct stat st;
    int n = snprintf(log, sizeof log, "%s-wal", path);
    FAIL_IF(n < 0 || (size_t)n >= sizeof log, e, PROFD_CONFIG, "the database's path has more than %zu bytes",
            sizeof log - 5);
    if (stat(log, &st) == 0 && st.st_size > 0) {
        return profd_error_set(
            e, PROFD_CONFIG,
            "\"%s\" exists but its database does not: put the database back, or move the log away, then "
            "start profd again",
            log);
    }
    return PROFD_OK;
}

/* Judges the file without opening it as a database and without writing. *exists: there is a file that is not empty. */
static enum profd_status judge_file(const char *path, bool *exists, struct profd_error *e)
{
    struct stat st;
    if (stat(path, &st) != 0) {
        FAIL_IF(errno != ENOENT, e, PROFD_CANT_CREATE, "cannot stat the database \"%s\": %s", path, strerror(errno));
        *exists = false;
        return judge_log(path, e);
    }
    FAIL_IF(!S_ISREG(st.st_mode), e, PROFD_CONFIG, "the database \"%s\" is %s, not a file", path,
            S_ISDIR(st.st_mode) ? "a directory" : "a device, pipe or socket");
    if (st.st_size == 0) {
        *exists = false;
        return judge_log(path, e);
    }
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    FAIL_IF(fd < 0, e, PROFD_CANT_CREATE, "cannot open the database \"%s\": %s", path, strerror(errno));
    uint8_t header[HEADER_SIZE];
    ssize_t n = pread(fd, header, sizeof header, 0);
    int error = errno;
    close(fd);
    FAIL_IF(n < 0, e, PROFD_IO, "cannot read the database \"%s\": %s", path, strerror(error));
    *exists = true;
    return judge_header(path, header, n, e);
}

enum profd_status store_sqlite_judge(int fd, const char *path, uint64_t size, struct profd_error *e)
{
    uint8_t header[HEADER_SIZE];
    ssize_t n = pread(fd, header, sizeof header, 0);
    FAIL_IF(n < 0, e, PROFD_IO, "cannot read \"%s\": %s", path, strerror(errno));
    TRY(judge_header(path, header, n, e));
    if (get_u32(header + HEADER_CHANGES) != get_u32(header + HEADER_VALID_FOR)) {
        return PROFD_OK;
    }
    uint32_t page = (uint32_t)header[HEADER_PAGE_SIZE] << 8 | header[HEADER_PAGE_SIZE + 1];
    uint64_t bytes = (uint64_t)get_u32(header + HEADER_PAGES) * (page == 1 ? 65536 : page);
    FAIL_IF(bytes != size, e, PROFD_DAMAGED, "\"%s\" has %llu bytes, and its header says %llu", path,
            (unsigned long long)size, (unsigned long long)bytes);
    return PROFD_OK;
}

bool store_sqlite_is_ours(const char *path)
{
    bool exists = false;
    return judge_file(path, &exists, NULL) == PROFD_OK && exists;
}

enum profd_status sqlite_sync_directory(const char *path, struct profd_error *e)
{
    const char *slash = strrchr(path, '/');
    char directory[PATH_MAX];
    int n = slash ? snprintf(directory, sizeof directory, "%.*s", (int)(slash - path) + 1, path)
                  : snprintf(directory, sizeof directory, ".");
    int fd = n > 0 && (size_t)n < sizeof directory ? open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    FAIL_IF(fd < 0, e, PROFD_IO, "cannot open the directory of \"%s\": %s", path, strerror(errno));
    int rc = fsync(fd);
    int error = errno;
    close(fd);
    FAIL_IF(rc != 0, e, PROFD_IO, "cannot sync the directory of \"%s\": %s", path, strerror(error));
    return PROFD_OK;
}

static void remove_leftovers(const char *path)
{
    char journal[PATH_MAX];
    unlink(path);
    if (snprintf(journal, sizeof journal, "%s-journal", path) < (int)sizeof journal) {
        unlink(journal);
    }
}

/* Creates a new database beside path and renames it to path when it is complete. */
static enum profd_status create_file(const char *path, struct profd_error *e)
{
    char making[PATH_MAX];
    int n = snprintf(making, sizeof making - 8, "%s.new", path);
    FAIL_IF(n < 0 || (size_t)n >= sizeof making - 8, e, PROFD_CONFIG, "the database's path has more than %zu bytes",
            sizeof making - 13);
    remove_leftovers(making);
    int fd = open(making, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    FAIL_IF(fd < 0, e, PROFD_CANT_CREATE, "cannot create the database \"%s\": %s", path, strerror(errno));
    close(fd);
    sqlite3 *db = NULL;
    enum profd_status status = PROFD_OK;
    sqlite_seal_register();
    if (sqlite3_open_v2(making, &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL) != SQLITE_OK) {
        status = profd_error_set(e, PROFD_CANT_CREATE, "cannot create the database \"%s\": %s", making,
                                 db ? sqlite3_errmsg(db) : "out of memory");
    }
    status = status ? status : sqlite_schema_extend(db, &sqlite_schema_newest, 0, e);
    sqlite3_close(db);
    if (!status && rename(making, path) != 0) {
        status = profd_error_set(e, PROFD_CANT_CREATE, "cannot create the database \"%s\": %s", path, strerror(errno));
    }
    if (status) {
        remove_leftovers(making);
        return status;
    }
    return sqlite_sync_directory(path, e);
}

#define QUICK_CHECK_BYTES (64 << 20) /* a larger database is not read completely when it is opened */

void store_close(struct store *s)
{
    if (!s) {
        return;
    }
    sqlite_statements_done(s);
    (void)sqlite_watch_look(s, NULL);
    /* A handle that failed must not checkpoint when it is closed. */
    if (s->db && s->broken != PROFD_OK) {
        sqlite3_db_config(s->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    }
    sqlite3_close(s->db);
    sqlite_watch_end(s);
    hashmap_clear(&s->hosts);
    hashmap_clear(&s->builds);
    hashmap_clear(&s->series);
    hashmap_clear(&s->values);
    hashmap_clear(&s->known);
    buffer_done(&s->key);
    hashmap_clear(&s->owed);
    hashmap_clear(&s->touched);
    hashmap_clear(&s->tenant_series);
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
    hashmap_init(&s->values, 0); /* value_take bounds it */
    hashmap_init(&s->known, SQLITE_CACHE_BYTES);
    buffer_init(&s->key, SQLITE_CACHE_BYTES);
    hashmap_init(&s->owed, 0);
    hashmap_init(&s->touched, 0);
    hashmap_init(&s->tenant_series, 0);
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

/* Opens the connection, and switches off what a hostile schema could use. Nothing is written yet. */
static enum profd_status connect_file(struct store *s, int flags, struct profd_error *e)
{
    sqlite_seal_register();
    if (sqlite3_open_v2(s->path, &s->db, flags | SQLITE_OPEN_NOMUTEX, NULL) != SQLITE_OK) {
        return s->db ? sqlite_fail(s, e) : profd_no_memory(e);
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
    /* A damaged page is no reason to refuse the database: queries that do not need it are answered. */
    int64_t page = sqlite_seal_take_fault();
    s->bad_page = page ? page : s->bad_page;
    return s->bad_page ? PROFD_OK : status;
}

/* Returns whether the pages have space for checksums, as the header states. Only VACUUM changes that. */
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

static enum profd_status open_writer(struct store *s, struct profd_error *e)
{
    bool exists;
    int64_t version = 0;
    struct stat st;
    sqlite3_stmt *q = NULL;
    TRY(judge_file(s->path, &exists, e));
    TRY(exists ? PROFD_OK : create_file(s->path, e));
    TRY(connect_file(s, SQLITE_OPEN_READWRITE, e));
    FAIL_IF(sqlite3_db_readonly(s->db, "main") == 1, e, PROFD_CANT_CREATE,
            "the database \"%s\" may not be written by this user", s->path);
    TRY(judge_schema(s->db, s->path, &version, e));
    /* Checks, before the file is changed: the pages of a small file, and the tables. If the byte of the header that
     * states how much of a page is free were damaged, the check of the pages would fail. */
    FAIL_IF(stat(s->path, &st) != 0, e, PROFD_IO, "cannot stat the database \"%s\": %s", s->path, strerror(errno));
    TRY(!is_sealed(s) || st.st_size < QUICK_CHECK_BYTES ? check_pages(s, e) : PROFD_OK);
    TRY(sqlite_structure_judge(s->db, &sqlite_schema_newest, s->path, version, e));
    FAIL_IF(!is_sealed(s), e, PROFD_CONFIG,
            "the pages of the database \"%s\" have no checksums, because another program made it; profd --restore "
            "makes them in a copy",
            s->path);

    /* From here on the file is known to be a profd database, and may be written. */
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
    if (sqlite3_finalize(q) != SQLITE_OK && !status) {
        status = sqlite_fail(s, e);
    }
    TRY(status);
    /* secure_delete: some builds of SQLite write zeros over all that is deleted; the log would grow by as much as a
     * removal frees. */
    TRY(execute(s, "PRAGMA synchronous=FULL; PRAGMA cache_size=-16384; PRAGMA secure_delete=FAST", e));
    if (version < SQLITE_SCHEMA_VERSION) {
        TRY(sqlite_schema_extend(s->db, &sqlite_schema_newest, version, e));
    }
    TRY(sqlite_load_state(s, &s->state, e));

    /* Commits that an earlier process wrote but did not sync count as committed when the log is read again, and repeats
     * of them are acknowledged without another write. They must be durable first. A checkpoint rewrites what a failed
     * sync may have left in memory only. If the disk is too full for that, or another program reads the file, the log
     * itself is synced, through a descriptor of its own: SQLite holds no locks on it. */
    const int rc = sqlite3_wal_checkpoint_v2(s->db, "main", SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
    if ((rc & 0xff) == SQLITE_FULL || (rc & 0xff) == SQLITE_BUSY) {
        char log[PATH_MAX];
        const int n = snprintf(log, sizeof log, "%s-wal", s->path);
        const int fd = n > 0 && (size_t)n < sizeof log ? open(log, O_RDWR | O_CLOEXEC) : -1;
        const int synced = fd >= 0 ? fdatasync(fd) : -1, error = errno;
        if (fd >= 0) {
            close(fd);
        }
        TRY(synced == 0 ? PROFD_OK
                        : profd_error_set(e, PROFD_IO, "cannot sync \"%s-wal\": %s", s->path, strerror(error)));
    } else if (rc != SQLITE_OK) {
        return sqlite_fail(s, e);
    }
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
    FAIL_IF(stat(s->path, &st) != 0, e, PROFD_NO_INPUT, "cannot open the database \"%s\": %s", s->path,
            strerror(errno));
    FAIL_IF(!S_ISREG(st.st_mode), e, PROFD_CONFIG, "the database \"%s\" is not a file", s->path);
    TRY(connect_file(s, SQLITE_OPEN_READONLY, e));
    TRY(judge_schema(s->db, s->path, &version, e));
    FAIL_IF(!is_sealed(s), e, PROFD_DAMAGED, "the pages of the database \"%s\" have no checksums", s->path);
    FAIL_IF(version != SQLITE_SCHEMA_VERSION, e, PROFD_CONFIG,
            "database \"%s\" has schema version %lld; open it for writing first", s->path, (long long)version);
    return PROFD_OK;
}

enum profd_status store_sqlite_seal(const char *path, struct profd_error *e)
{
    char copy[PATH_MAX], size[48];
    int64_t version;
    struct stat st;
    sqlite3_stmt *q = NULL;
    struct store *s = new_handle(path, true);
    TRY(s ? PROFD_OK : profd_no_memory(e));
    enum profd_status status = connect_file(s, SQLITE_OPEN_READWRITE, e);
    status = status ? status : judge_schema(s->db, path, &version, e);
    const int n = snprintf(copy, sizeof copy, "%s-sealed", path);
    if (!status && (is_sealed(s) || n >= (int)sizeof copy)) {
        store_close(s);
        return PROFD_OK; /* store_sqlite_open_writer refuses a path of this length */
    }
    if (!status) {
        unlink(copy);
        const int fd = open(copy, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        if (fd < 0 || stat(path, &st) != 0 || fchown(fd, st.st_uid, st.st_gid) != 0) {
            status = profd_error_set(e, PROFD_CANT_CREATE, "cannot create \"%s\": %s", copy, strerror(errno));
        }
        if (fd >= 0) {
            close(fd);
        }
    }
    status = status ? status : check_pages(s, e);
    (void)snprintf(size, sizeof size, "PRAGMA page_size=%d", SQLITE_PAGE);
    status = status ? status : execute(s, size, e);
    if (!status) {
        (void)sqlite_seal_reserve(s->db, SQLITE_SEAL_SIZE); /* setting the size of pages has reset it */
        if (sqlite3_prepare_v2(s->db, "VACUUM INTO ?1", -1, &q, NULL) != SQLITE_OK ||
            sqlite3_bind_text(q, 1, copy, -1, SQLITE_STATIC) != SQLITE_OK || sqlite3_step(q) != SQLITE_DONE) {
            status = sqlite_fail(s, e);
        }
        sqlite3_finalize(q);
    }
    store_close(s);
    if (!status && rename(copy, path) != 0) {
        status = profd_error_set(e, PROFD_CANT_CREATE, "cannot rename \"%s\": %s", copy, strerror(errno));
    }
    if (status) {
        unlink(copy);
    }
    return status;
}

static enum profd_status open_handle(const char *path, bool writable,
                                     enum profd_status (*prepare)(struct store *s, struct profd_error *e),
                                     struct store **out, struct profd_error *e)
{
    struct store *s = new_handle(path, writable);
    const enum profd_status status = s ? prepare(s, e) : profd_no_memory(e);
    if (status) {
        store_close(s);
    } else {
        *out = s;
    }
    return status;
}

enum profd_status store_sqlite_open_writer(const char *path, struct store **out, struct profd_error *e)
{
    return open_handle(path, true, open_writer, out, e);
}

enum profd_status store_sqlite_open_reader(const char *path, struct store **out, struct profd_error *e)
{
    return open_handle(path, false, open_reader, out, e);
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

enum profd_status store_sqlite_resalt(struct store *s, struct profd_error *e)
{
    return draw_salt(s->db, e);
}

enum profd_status store_sqlite_renew(struct store *s, struct profd_error *e)
{
    uint64_t incarnation[2];
    char sql[160];
    FAIL_IF(getrandom(incarnation, sizeof incarnation, 0) != (ssize_t)sizeof incarnation, e, PROFD_IO,
            "no random bytes for the incarnation of a centre");
    sqlite3_snprintf((int)sizeof sql, sql,
                     "UPDATE centre SET restored=(SELECT number>0 FROM state), incarnation=x'%016llx%016llx'",
                     (unsigned long long)incarnation[0], (unsigned long long)incarnation[1]);
    TRY(sqlite_direct_run(s->db, sql, "cannot set the incarnation of a centre", e));
    TRY(sqlite_relay_mark_gap(s, e));
    TRY(sqlite_mark_gap(s, e));
    return store_sqlite_resalt(s, e);
}

enum profd_status store_sqlite_touch(struct store *s, struct profd_error *e)
{
    return sqlite_direct_run(s->db, "UPDATE state SET salt=salt", "cannot begin the log", e);
}

enum profd_status store_sqlite_describe(struct store *s, struct store_sqlite_state *out, struct profd_error *e)
{
    struct sqlite_state t;
    TRY(s->broken == PROFD_OK || s->saved ? sqlite_load_state(s, &t, e)
                                          : profd_error_set(e, s->broken, "%s", s->health.error.sentence));
    out->salt = t.salt;
    out->number = t.number;
    (void)snprintf(out->text, sizeof out->text,
                   "%" PRId64 ",%" PRId64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64,
                   t.list_epoch, t.version, t.accepted.uploads, t.accepted.calls, t.retired.uploads, t.raw_bytes,
                   t.rollups, t.live_bytes);
    return PROFD_OK;
}
