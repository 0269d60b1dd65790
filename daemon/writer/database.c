#include "writer/database.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "core/container.h"
#include "net/listen.h"
#include "net/loop.h"
#include "writer/aside.h"
#include "writer/writer.h"

static enum profd_status state_dir_format(const char *state_dir, const char *name, char *path, size_t size,
                                          struct profd_error *e)
{
    FAIL_IF(snprintf(path, size, "%s/%s", state_dir, name) >= (int)size, e, PROFD_TOO_LARGE,
            "the path of the state directory is too long");
    return PROFD_OK;
}

enum profd_status state_dir_lock_path(const char *state_dir, char *path, size_t size, struct profd_error *e)
{
    return state_dir_format(state_dir, "lock", path, size, e);
}

enum profd_status state_dir_database_path(const char *state_dir, char *path, size_t size, struct profd_error *e)
{
    return state_dir_format(state_dir, "profd.db", path, size, e);
}

/* If root makes the file in another user's directory, the file must belong to that user, whose daemon must be able to
 * lock it later. */
static int state_dir_open_lock(const char *path, const char *state_dir)
{
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    struct stat st;

    if (fd < 0) {
        return open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    }
    if (!geteuid() && !stat(state_dir, &st) && st.st_uid && fchown(fd, st.st_uid, st.st_gid)) {
        close(fd);
        unlink(path);
        return -1;
    }
    return fd;
}

enum profd_status state_dir_lock(const char *state_dir, int *lock, int *directory, struct profd_error *e)
{
    char path[4096];
    TRY(listen_make_directory(state_dir, 0750, e));

    TRY(state_dir_lock_path(state_dir, path, sizeof path, e));
    int fd = state_dir_open_lock(path, state_dir);
    FAIL_IF(fd < 0, e, PROFD_CANT_CREATE, "cannot create %s: %s", path, strerror(errno));
    int why = flock(fd, LOCK_EX | LOCK_NB) ? errno : 0;

    /* The lock file may be removed, the directory cannot be while the daemon uses it. If directories cannot be locked,
     * as on some network file systems, the lock file alone must do. */
    *directory = why ? -1 : open(state_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (*directory >= 0 && flock(*directory, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK) {
        why = EWOULDBLOCK;
        close(*directory);
        *directory = -1;
    }
    if (why) {
        close(fd);
        return why == EWOULDBLOCK
                   ? profd_error_set(e, PROFD_BUSY, "another profd uses the state directory %s", state_dir)
                   : profd_error_set(e, PROFD_IO, "cannot lock %s: %s", path, strerror(why));
    }
    *lock = fd;
    return PROFD_OK;
}

/* The lock file records which file is this daemon's database, and whether damage was found in it. Page 1 of a database
 * identifies its owner, but it may be the damaged page. */
struct database_mark {
    bool any;           /* the state directory had a database, with the inode below */
    bool known;         /* the file that has its name now is that database */
    bool damaged;       /* damage was found in it */
    bool unwritable;    /* and ended writing */
    bool closed;        /* profd closed it, in the state `last`; otherwise profd was killed */
    uint64_t log_inode; /* if it was killed: of the log, which is not empty; 0: not known */
    uint64_t inode;
    struct store_sqlite_state last;
};

#define MARK_SIZE (128 + STORE_STATE_TEXT)

/* Skips the word at *at. Returns false, and skips nothing, if another text is there. */
static bool skip_word(const char **at, const char *word)
{
    if (strncmp(*at, word, strlen(word)) != 0) {
        return false;
    }
    *at += strlen(word);
    return true;
}

/* Takes the decimal number at *at. A negative one wraps around, so that a signed one is its conversion. */
static bool take_number(const char **at, uint64_t *out)
{
    char *end;
    errno = 0;
    *out = strtoull(*at, &end, 10);
    if (end == *at || errno != 0) {
        return false;
    }
    *at = end;
    return true;
}

/* Reads the mark. path: of the database, which may be missing. A part that cannot be read is unknown. */
static void database_mark_read(int lock_fd, const char *path, struct database_mark *out)
{
    char text[MARK_SIZE] = "";
    const char *at = text;
    struct stat st;

    *out = (struct database_mark){.any = false};
    if (pread(lock_fd, text, sizeof text - 1, 0) <= 0 || !skip_word(&at, "database ") ||
        !take_number(&at, &out->inode)) {
        return;
    }
    out->any = true;
    out->known = !stat(path, &st) && st.st_ino == out->inode;
    out->damaged = skip_word(&at, " damaged");
    out->unwritable = skip_word(&at, " unwritable");
    if (skip_word(&at, " closed ")) {
        uint64_t salt = 0, number = 0;
        out->closed = take_number(&at, &salt) && take_number(&at, &number) && skip_word(&at, " ");
        out->last.salt = (int64_t)salt;
        out->last.number = (int64_t)number;
        size_t n = strcspn(at, "\n");
        out->closed = out->closed && n > 0 && n < sizeof out->last.text;
        memcpy(out->last.text, at, out->closed ? n : 0);
    } else if (skip_word(&at, " log ") && !take_number(&at, &out->log_inode)) {
        out->log_inode = 0;
    }
}

/* Replaces the mark, durably. A failure is logged. */
static void mark_write(int lock_fd, const char *path, const char *rest)
{
    char text[MARK_SIZE];
    struct stat st;
    int n;

    if (stat(path, &st)) {
        return;
    }
    n = snprintf(text, sizeof text, "database %" PRIu64 "%s\n", (uint64_t)st.st_ino, rest);
    /* Written in place: on a full disk, a block that the file gave back might be lost. */
    if (pwrite(lock_fd, text, (size_t)n, 0) != n || ftruncate(lock_fd, n) || fsync(lock_fd)) {
        log_write(LOG_LEVEL_WARNING, NULL, "cannot note in the lock file what is known of %s", path);
    }
}

/* Records damage. closed: the database is being closed and has no log; otherwise the recorded log stays recorded. */
static void database_mark_write_damaged(int lock_fd, const char *path, bool unwritable, bool closed)
{
    char rest[64], log[32] = "";
    struct database_mark mark;

    database_mark_read(lock_fd, path, &mark);
    if (!closed && mark.known && mark.log_inode != 0) {
        (void)snprintf(log, sizeof log, " log %" PRIu64, mark.log_inode);
    }
    (void)snprintf(rest, sizeof rest, " damaged%s%s", unwritable || mark.unwritable ? " unwritable" : "", log);
    mark_write(lock_fd, path, rest);
}

void database_mark_damaged(const char *state_dir, int lock_fd, bool unwritable)
{
    char path[4096];

    if (!state_dir_database_path(state_dir, path, sizeof path, NULL)) {
        database_mark_write_damaged(lock_fd, path, unwritable, false);
    }
}

void database_note_end(const char *state_dir, int lock_fd, struct store *store, uint64_t salt)
{
    char path[4096];
    struct store_sqlite_state last;
    struct database_mark mark;
    const bool unsalted = salt && store_sqlite_resalt(store, NULL);

    if (state_dir_database_path(state_dir, path, sizeof path, NULL) || store_sqlite_describe(store, &last, NULL)) {
        return;
    }
    database_mark_read(lock_fd, path, &mark);
    if (mark.damaged) { /* the next start must read the whole file */
        database_mark_write_damaged(lock_fd, path, false, true);
    } else if (unsalted) {
        /* Nothing more is committed, and the next start takes the database for another one: its ETags become new. */
        mark_write(lock_fd, path, "");
    } else {
        /* Nothing more is committed. */
        char rest[64 + STORE_STATE_TEXT];

        (void)snprintf(rest, sizeof rest, " closed %" PRId64 " %" PRId64 " %s", last.salt, last.number, last.text);
        mark_write(lock_fd, path, rest);
    }
}

static enum profd_status database_put_aside(const char *state_dir, const struct profd_error *why, struct profd_error *e)
{
    char name[ASIDE_NAME_SIZE];
    const int dir = open(state_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    enum profd_status status = dir < 0 ? profd_error_set(e, PROFD_CANT_CREATE, "cannot open %s", state_dir)
                                       : aside_move(dir, ASIDE_DAMAGED, time(NULL), name, e);

    if (dir >= 0) {
        close(dir);
    }
    if (status) {
        return profd_error_wrap(e, status, "the database is damaged (%s) and cannot be put aside", why->sentence);
    }
    log_write(LOG_LEVEL_ERROR, NULL,
              "the database is damaged: %s; it is kept as %s/%s, and uploads go into a new database; what was stored "
              "before is missing from every report: restore a backup, or recover the file, see profd(8)",
              why->sentence, state_dir, name);
    return PROFD_OK;
}

static void database_on_fault(void *context, const char *sentence)
{
    struct profd_error *first = context;

    if (!*first->sentence) {
        profd_error_set(first, PROFD_DAMAGED, "%s", sentence);
    }
}

/* Reads the whole file after damage was found. unwritable: nothing could be stored any more, so a page with a wrong
 * checksum is reason enough to begin a new database. */
static enum profd_status database_check_marked(struct store **store, bool unwritable, struct profd_error *e)
{
    struct profd_error first = {""};
    enum profd_status status = store_sqlite_check(*store, database_on_fault, &first, e);

    if (!status && *first.sentence) {
        status = profd_error_set(e, PROFD_DAMAGED, "%s", first.sentence);
    }
    if (status == PROFD_DAMAGED && store_sqlite_bad_page(*store) && !unwritable) {
        return PROFD_OK;
    }
    if (status) {
        store_close(*store);
        *store = NULL;
    }
    return status;
}

static const char *database_bus_directory; /* the state directory, for database_on_bus */

/* SQLite maps the index of the log. A thread that reads behind the end of a mapped file gets SIGBUS, in whatever it was
 * doing: nothing can go on. What was committed is in the database and its log; SQLite makes the index anew. */
static void database_on_bus(int number, siginfo_t *info, void *context)
{
    (void)context;
    if (info->si_code <= 0) { /* sent by kill(2) */
        (void)raise(number);  /* SA_RESETHAND: it ends the process when this returns */
        return;
    }
    log_write(LOG_LEVEL_ERROR, NULL,
              "a file that profd has mapped was truncated, probably %s/profd.db-shm; profd ends. Nothing that was "
              "acknowledged is lost; start profd again",
              database_bus_directory);
    _exit(profd_status_exit(PROFD_IO));
}

/* Records durably that data is missing. log: the log does not belong to the file that has the database's name. */
static enum profd_status database_note_lost(const char *state_dir, const char *sentence, bool log,
                                            struct profd_error *e)
{
    char name[ASIDE_NAME_SIZE];
    const int dir = open(state_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    enum profd_status status = dir < 0 ? profd_error_set(e, PROFD_CANT_CREATE, "cannot open %s", state_dir)
                                       : aside_note(dir, sentence, log, time(NULL), name, e);

    if (dir >= 0) {
        close(dir);
    }
    if (!status && log) {
        log_write(LOG_LEVEL_ERROR, NULL,
                  "%s; restore a backup or put the file back, see profd(8); the log is kept as "
                  "%s/%s-wal",
                  sentence, state_dir, name);
    } else {
        log_write(LOG_LEVEL_ERROR, NULL, "%s; restore a backup or put the file back, see profd(8)", sentence);
    }
    if (status && !log) { /* a full disk: the log has said it */
        log_write(LOG_LEVEL_WARNING, NULL, "cannot record this in %s: %s", state_dir, e->sentence);
        return PROFD_OK;
    }
    return status;
}

/* Checks that the log is still there, which after a crash holds the latest commits. SQLite would read a database
 * without its log, and would copy any other log into it. *lost: the log is missing. */
static enum profd_status database_judge_log(const char *state_dir, const char *path, const struct database_mark *mark,
                                            bool *lost, struct profd_error *e)
{
    char log[4096 + 8], sentence[4096 + 256];
    struct stat st;
    const char *what = NULL;

    if (!mark->known || !mark->log_inode) {
        return PROFD_OK;
    }
    (void)snprintf(log, sizeof log, "%s-wal", path);
    if (stat(log, &st)) {
        what = "is missing";
        st.st_size = 0;
    } else if (st.st_ino != mark->log_inode) {
        what = "is another file";
    } else if (!st.st_size) {
        what = "is empty";
    }
    if (!what) {
        return PROFD_OK;
    }
    *lost = true;
    (void)snprintf(sentence, sizeof sentence,
                   "profd could not close its database, and \"%s\", which held what was committed last, %s: what was "
                   "stored last may be missing from every report",
                   log, what);
    return database_note_lost(state_dir, sentence, st.st_size > 0, e);
}

/* Moves the log of a set-aside database to it. *aside: the database was set aside because it is damaged. */
static enum profd_status database_finish_aside(const char *state_dir, const struct database_mark *mark, bool *aside,
                                               struct profd_error *e)
{
    char name[ASIDE_NAME_SIZE] = "";
    const int dir = open(state_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool moved = false;
    enum profd_status status = dir < 0 ? profd_error_set(e, PROFD_CANT_CREATE, "cannot open %s", state_dir)
                                       : aside_finish(dir, mark->inode, &moved, name, e);

    if (dir >= 0) {
        close(dir);
    }
    if (moved) {
        log_write(LOG_LEVEL_ERROR, NULL, "the database was renamed to %s/%s without its log: the log is there now, too",
                  state_dir, name);
    }
    *aside = aside_is_damaged(name);
    return status;
}

/* Checks the files before SQLite opens them. DAMAGED: the database is an empty file. */
static enum profd_status database_judge_files(const char *state_dir, const char *path, const struct database_mark *mark,
                                              bool *lost, struct profd_error *e)
{
    char log[4096 + 8], sentence[4096 + 256];
    bool aside = false;
    struct stat st;

    *lost = false;
    if (!mark->any) {
        return PROFD_OK;
    }
    TRY(database_finish_aside(state_dir, mark, &aside, e));
    if (stat(path, &st)) {
        if (errno != ENOENT || aside) {
            return PROFD_OK;
        }
        /* The database is gone. Uploads are accepted into a new one, as after damage. The old log must not be copied
         * into it. */
        (void)snprintf(log, sizeof log, "%s-wal", path);
        (void)snprintf(sentence, sizeof sentence,
                       "\"%s\" is missing: what was stored in it is in no report, and uploads go into a new database",
                       path);
        return database_note_lost(state_dir, sentence, !stat(log, &st) && st.st_size > 0, e);
    }
    FAIL_IF(S_ISREG(st.st_mode) && !st.st_size, e, PROFD_DAMAGED, "\"%s\" is empty, and was a database", path);
    return database_judge_log(state_dir, path, mark, lost, e);
}

/* Draws a new salt of ETags. If the database cannot store it, the salt is for this run only: queries and removals must
 * be possible on a full disk. copy: the database may lack commits. */
static enum profd_status database_renew(struct store *store, bool copy, uint64_t *salt, struct profd_error *e)
{
    enum profd_status status = copy ? store_sqlite_renew(store, e) : store_sqlite_resalt(store, e);

    if (status != PROFD_FULL && status != PROFD_BUSY) {
        return status;
    }
    FAIL_IF(getrandom(salt, sizeof *salt, 0) != (ssize_t)sizeof *salt, e, PROFD_IO,
            "no random bytes for the salt of ETags");
    *salt |= 1; /* not 0 */
    log_write(LOG_LEVEL_WARNING, NULL, "%s: the ETags of this run end with it, and change once more at the next start",
              e->sentence);
    return PROFD_OK;
}

/* Checks whether it is the database that profd closed last, in the same state. If not, it gets a new salt, because its
 * ETags could be those of other contents. */
static enum profd_status database_begin(const char *state_dir, const char *path, const struct database_mark *mark,
                                        bool lost, struct store *store, uint64_t *salt, struct profd_error *e)
{
    const struct store_sqlite_state *last = &mark->last;
    struct store_sqlite_state now;
    char sentence[4096 + 256];
    enum profd_status status = store_sqlite_describe(store, &now, e);
    const bool related = !status && mark->known && mark->closed && now.salt == last->salt;
    const bool same = related && now.number == last->number && !strcmp(now.text, last->text);

    if (related && now.number < last->number) {
        (void)snprintf(
            sentence, sizeof sentence,
            "\"%s\" is older than when profd closed it, because a copy has its place or its log was removed: what "
            "was stored since is missing from every report",
            path);
        status = database_note_lost(state_dir, sentence, false, e);
    }
    *salt = 0;
    if (status || !same) {
        const bool killed = mark->known && !mark->closed && !mark->damaged && !lost;

        return status ? status : database_renew(store, !killed, salt, e);
    }
    status = store_sqlite_touch(store, e);
    if (status == PROFD_FULL || status == PROFD_BUSY) { /* nothing has changed: the salt may stay */
        log_write(LOG_LEVEL_WARNING, NULL, "%s", e->sentence);
        status = PROFD_OK;
    }
    return status;
}

enum profd_status database_open(const char *state_dir, int lock_fd, struct store **out, uint64_t *salt,
                                struct profd_error *e)
{
    char path[4096];
    struct store *store = NULL;
    struct database_mark mark;
    bool lost = false;
    TRY(state_dir_database_path(state_dir, path, sizeof path, e));
    database_mark_read(lock_fd, path, &mark);
    struct sigaction action = {.sa_sigaction = database_on_bus, .sa_flags = SA_SIGINFO | (int)SA_RESETHAND};

    database_bus_directory = state_dir;
    sigemptyset(&action.sa_mask);
    (void)sigaction(SIGBUS, &action, NULL);
    enum profd_status status = database_judge_files(state_dir, path, &mark, &lost, e);
    const bool empty = status == PROFD_DAMAGED;
    status = status ? status : store_sqlite_open_writer(path, &store, e);
    if (!status && (mark.damaged || lost)) {
        status = database_check_marked(&store, mark.unwritable, e);
    }
    if (status == PROFD_DAMAGED && (mark.known || empty || store_sqlite_is_ours(path))) {
        const struct profd_error why = *e;

        status = database_put_aside(state_dir, &why, e);
        status = status ? status : store_sqlite_open_writer(path, &store, e);
    }
    status = status ? status : database_begin(state_dir, path, &mark, lost, store, salt, e);
    if (status) {
        store_close(store);
        return status;
    }
    /* The database is open, and its log not empty. */
    char log[PATH_MAX], rest[32] = "";
    struct stat st;

    if (snprintf(log, sizeof log, "%s-wal", path) < (int)sizeof log && !stat(log, &st) && st.st_size > 0) {
        (void)snprintf(rest, sizeof rest, " log %" PRIu64, (uint64_t)st.st_ino);
    }
    mark_write(lock_fd, path, rest);
    *out = store;
    return PROFD_OK;
}

#define LOOK_MS 2000

/* Databases that were set aside. */
struct file_check_aside {
    size_t count;
    char latest[ASIDE_NAME_SIZE];
};

struct file_check {
    struct writer_job job;
    struct writer *writer;
    struct loop_timer *timer;
    const char *state_dir;
    bool running, stopped;
    struct file_check_aside found, shown; /* found: the job's */
};

static enum profd_status file_check_run(struct writer_job *job, struct store *store, struct profd_error *e)
{
    struct file_check *c = container_of(job, struct file_check, job);

    (void)store_look(store, e); /* the store's health says what it found */
    c->found.count = aside_count_damaged(c->state_dir, c->found.latest);
    return PROFD_OK;
}

static void file_check_done(struct writer_job *job)
{
    struct file_check *c = container_of(job, struct file_check, job);

    c->running = false;
    c->shown = c->found;
}

static const struct writer_job_type file_check_type = {.run = file_check_run, .done = file_check_done};

static void file_check_on_timer(void *context)
{
    struct file_check *c = context;

    if (c->stopped || writer_check(c->writer, NULL)) {
        return;
    }
    if (!c->running) {
        c->running = writer_put(c->writer, &c->job);
    }
    loop_timer_set(c->timer, LOOK_MS);
}

enum profd_status file_check_start(struct loop *loop, struct writer *writer, const char *state_dir,
                                   struct file_check **out, struct profd_error *e)
{
    struct file_check *c = calloc(1, sizeof *c);

    if (c) {
        c->timer = loop_timer_new(loop, file_check_on_timer, c);
    }
    if (!c || !c->timer) {
        free(c);
        return profd_no_memory(e);
    }
    c->job = (struct writer_job){.item = {.uid = WRITER_UID_NONE, .weight = 1}, .type = &file_check_type};
    c->writer = writer;
    c->state_dir = state_dir;
    c->shown.count = aside_count_damaged(state_dir, c->shown.latest);
    loop_timer_set(c->timer, LOOK_MS);
    *out = c;
    return PROFD_OK;
}

void file_check_stop(struct file_check *c)
{
    c->stopped = true;
    loop_timer_clear(c->timer);
}

void file_check_free(struct file_check *c)
{
    if (c) {
        loop_timer_free(c->timer);
    }
    free(c);
}

size_t file_check_count_damaged(const struct file_check *c, const char **latest)
{
    *latest = c->shown.latest;
    return c->shown.count;
}
