/* The database file: checked before SQLite may modify it, and complete before it gets its name. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "store/sqlite.h"

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
    if (n < HEADER_SIZE || memcmp(header, "SQLite format 3", 16) != 0) {
        return profd_error_set(e, PROFD_DAMAGED,
                               "\"%s\" is not a profd database: it has no header of a SQLite database", path);
    }
    uint32_t application = get_u32(header + HEADER_APPLICATION), version = get_u32(header + HEADER_VERSION);
    if (application != SQLITE_APPLICATION_ID) {
        return profd_error_set(e, PROFD_DAMAGED,
                               "\"%s\" is not a profd database: its application id is 0x%08x, not 0x%08x", path,
                               application, (unsigned)SQLITE_APPLICATION_ID);
    }
    if (version > SQLITE_SCHEMA_VERSION) {
        return profd_error_set(e, PROFD_NEWER,
                               "\"%s\" has schema version %u, from a newer profd; this one knows up to %d", path,
                               version, SQLITE_SCHEMA_VERSION);
    }
    return PROFD_OK;
}

/* SQLite would apply a log without its database to the new database. */
static enum profd_status judge_log(const char *path, struct profd_error *e)
{
    char log[PATH_MAX];
    struct stat st;
    int n = snprintf(log, sizeof log, "%s-wal", path);
    if (n < 0 || (size_t)n >= sizeof log) {
        return profd_error_set(e, PROFD_CONFIG, "the database's path has more than %zu bytes", sizeof log - 5);
    }
    if (stat(log, &st) == 0 && st.st_size > 0) {
        return profd_error_set(
            e, PROFD_CONFIG,
            "\"%s\" exists but its database does not: put the database back, or move the log away, then "
            "start profd again",
            log);
    }
    return PROFD_OK;
}

enum profd_status sqlite_judge_file(const char *path, bool *exists, struct profd_error *e)
{
    struct stat st;
    if (stat(path, &st) != 0) {
        if (errno != ENOENT) {
            return profd_error_set(e, PROFD_CANT_CREATE, "cannot stat the database \"%s\": %s", path, strerror(errno));
        }
        *exists = false;
        return judge_log(path, e);
    }
    if (!S_ISREG(st.st_mode)) {
        return profd_error_set(e, PROFD_CONFIG, "the database \"%s\" is %s, not a file", path,
                               S_ISDIR(st.st_mode) ? "a directory" : "a device, pipe or socket");
    }
    if (st.st_size == 0) {
        *exists = false;
        return judge_log(path, e);
    }
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return profd_error_set(e, PROFD_CANT_CREATE, "cannot open the database \"%s\": %s", path, strerror(errno));
    }
    uint8_t header[HEADER_SIZE];
    ssize_t n = pread(fd, header, sizeof header, 0);
    int error = errno;
    close(fd);
    if (n < 0) {
        return profd_error_set(e, PROFD_IO, "cannot read the database \"%s\": %s", path, strerror(error));
    }
    *exists = true;
    return judge_header(path, header, n, e);
}

enum profd_status store_sqlite_judge(int fd, const char *path, uint64_t size, struct profd_error *e)
{
    uint8_t header[HEADER_SIZE];
    ssize_t n = pread(fd, header, sizeof header, 0);
    if (n < 0) {
        return profd_error_set(e, PROFD_IO, "cannot read \"%s\": %s", path, strerror(errno));
    }
    TRY(judge_header(path, header, n, e));
    if (get_u32(header + HEADER_CHANGES) != get_u32(header + HEADER_VALID_FOR)) {
        return PROFD_OK;
    }
    uint32_t page = (uint32_t)header[HEADER_PAGE_SIZE] << 8 | header[HEADER_PAGE_SIZE + 1];
    uint64_t bytes = (uint64_t)get_u32(header + HEADER_PAGES) * (page == 1 ? 65536 : page);
    if (bytes != size) {
        return profd_error_set(e, PROFD_DAMAGED, "\"%s\" has %llu bytes, and its header says %llu", path,
                               (unsigned long long)size, (unsigned long long)bytes);
    }
    return PROFD_OK;
}

bool store_sqlite_is_ours(const char *path)
{
    bool exists = false;
    return sqlite_judge_file(path, &exists, NULL) == PROFD_OK && exists;
}

enum profd_status sqlite_sync_directory(const char *path, struct profd_error *e)
{
    const char *slash = strrchr(path, '/');
    char directory[PATH_MAX];
    int n = slash ? snprintf(directory, sizeof directory, "%.*s", (int)(slash - path) + 1, path)
                  : snprintf(directory, sizeof directory, ".");
    int fd = n > 0 && (size_t)n < sizeof directory ? open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    if (fd < 0) {
        return profd_error_set(e, PROFD_IO, "cannot open the directory of \"%s\": %s", path, strerror(errno));
    }
    int rc = fsync(fd);
    int error = errno;
    close(fd);
    if (rc != 0) {
        return profd_error_set(e, PROFD_IO, "cannot sync the directory of \"%s\": %s", path, strerror(error));
    }
    return PROFD_OK;
}

/* Makes an empty database of an empty file. */
static enum profd_status fill_empty(const char *path, struct profd_error *e)
{
    sqlite3 *db = NULL;
    enum profd_status status = PROFD_OK;
    sqlite_seal_register();
    if (sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL) != SQLITE_OK) {
        status = profd_error_set(e, PROFD_CANT_CREATE, "cannot create the database \"%s\": %s", path,
                                 db ? sqlite3_errmsg(db) : "out of memory");
    }
    if (status == PROFD_OK) {
        status = sqlite_schema_extend(db, &sqlite_schema_newest, 0, e);
    }
    sqlite3_close(db);
    return status;
}

static void remove_leftovers(const char *path)
{
    char journal[PATH_MAX];
    unlink(path);
    if (snprintf(journal, sizeof journal, "%s-journal", path) < (int)sizeof journal) {
        unlink(journal);
    }
}

enum profd_status sqlite_create_file(const char *path, struct profd_error *e)
{
    char making[PATH_MAX];
    int n = snprintf(making, sizeof making - 8, "%s.new", path);
    if (n < 0 || (size_t)n >= sizeof making - 8) {
        return profd_error_set(e, PROFD_CONFIG, "the database's path has more than %zu bytes", sizeof making - 13);
    }
    remove_leftovers(making);
    int fd = open(making, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0) {
        return profd_error_set(e, PROFD_CANT_CREATE, "cannot create the database \"%s\": %s", path, strerror(errno));
    }
    close(fd);
    enum profd_status status = fill_empty(making, e);
    if (status == PROFD_OK && rename(making, path) != 0) {
        status = profd_error_set(e, PROFD_CANT_CREATE, "cannot create the database \"%s\": %s", path, strerror(errno));
    }
    if (status != PROFD_OK) {
        remove_leftovers(making);
        return status;
    }
    return sqlite_sync_directory(path, e);
}
