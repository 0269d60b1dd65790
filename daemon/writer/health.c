#include "writer/health.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/log.h"
#include "net/loop.h"

struct health {
    const char *state_dir;
    struct lock *lock;             /* of the next line */
    struct store_health published; /* by the writer's thread */
    atomic_uint_fast64_t changes;  /* of published */

    /* the loop's */
    uint64_t noted; /* changes that were taken over */
    bool failed, full;
    struct profd_error failure, full_error;
};

enum profd_status health_new(const char *state_dir, struct health **out, struct profd_error *e)
{
    struct health *h = calloc(1, sizeof *h);

    if (h) {
        h->state_dir = state_dir;
        h->lock = lock_new();
    }
    if (!h || !h->lock) {
        free(h);
        return profd_no_memory(e);
    }
    *out = h;
    return PROFD_OK;
}

void health_free(struct health *h)
{
    if (h) {
        lock_free(h->lock);
    }
    free(h);
}

void health_publish(struct health *h, const struct store_health *now)
{
    if (now->changes == atomic_load(&h->changes)) {
        return;
    }
    lock_take(h->lock);
    h->published = *now;
    lock_give(h->lock);
    atomic_store(&h->changes, now->changes);
}

/* From set to clear, uploads are refused because of a full disk. Each change is logged once. */
static void health_set_full(struct health *h, const struct profd_error *why)
{
    if (h->full) {
        return;
    }
    h->full = true;
    h->full_error = *why;
    log_write(LOG_LEVEL_ERROR, "space", "uploads are refused until there is space: %s", why->sentence);
}

static void health_clear_full(struct health *h)
{
    if (!h->full) {
        return;
    }
    h->full = false;
    log_write(LOG_LEVEL_NOTICE, "space", "%s has space again", h->state_dir);
}

enum health_change health_update(struct health *h, bool keep_full)
{
    const uint64_t changes = atomic_load(&h->changes);

    if (changes == h->noted || h->failed) {
        return HEALTH_SAME;
    }
    h->noted = changes;
    lock_take(h->lock);
    struct store_health now = h->published;
    lock_give(h->lock);
    if (now.failed) {
        h->failed = true;
        profd_error_set(&h->failure, PROFD_IO, "the store failed and nothing is written any more: %s%s",
                        now.error.sentence,
                        now.damaged ? "; start profd again: it checks the whole file and puts a damaged one aside"
                                    : ", then start profd again");
        log_write(LOG_LEVEL_ERROR, NULL, "%s", h->failure.sentence);
        return now.damaged ? HEALTH_DAMAGED : HEALTH_FAILED;
    }
    if (now.full) {
        health_set_full(h, &now.error);
    } else if (!keep_full) {
        health_clear_full(h);
    }
    return HEALTH_SAME;
}

enum profd_status health_check(const struct health *h, struct profd_error *e)
{
    if (!h->failed) {
        return PROFD_OK;
    }
    if (e) {
        *e = h->failure;
    }
    return PROFD_IO;
}

const char *health_get_failure(const struct health *h)
{
    return h->failed ? h->failure.sentence : NULL;
}

const char *health_get_full(const struct health *h)
{
    return h->full ? h->full_error.sentence : NULL;
}

static uint64_t reserve_allocated(const struct stat *st)
{
    return (uint64_t)st->st_blocks * 512;
}

enum profd_status reserve_open(struct reserve *r, const char *directory, struct profd_error *e)
{
    struct stat st;

    *r = (struct reserve){.state = RESERVE_GIVEN_UP};
    FAIL_IF(snprintf(r->path, sizeof r->path, "%s/reserve", directory) >= (int)sizeof r->path, e, PROFD_TOO_LARGE,
            "the path of the state directory is too long");
    if (!lstat(r->path, &st) && S_ISREG(st.st_mode) && st.st_size > 0 &&
        reserve_allocated(&st) >= (uint64_t)st.st_size) {
        r->state = RESERVE_HELD;
        r->bytes = (uint64_t)st.st_size;
    }
    return PROFD_OK;
}

/* Measures the free bytes of the reserve's file system, and its size. Returns false if that is impossible. */
static bool reserve_measure(const struct reserve *r, uint64_t *available, uint64_t *size)
{
    char directory[sizeof r->path];
    struct statvfs fs;

    snprintf(directory, sizeof directory, "%.*s", (int)(strrchr(r->path, '/') - r->path), r->path);
    if (statvfs(*directory ? directory : "/", &fs)) {
        return false;
    }
    *available = (uint64_t)fs.f_bavail * fs.f_frsize;
    *size = (uint64_t)fs.f_blocks * fs.f_frsize;
    return true;
}

static void reserve_fail(struct reserve *r, int error)
{
    const bool full = error == ENOSPC || error == EDQUOT;

    r->state = full ? RESERVE_GIVEN_UP : RESERVE_MISSING;
    r->bytes = 0;
    profd_error_set(&r->why, full ? PROFD_FULL : PROFD_IO, "cannot allocate %s: %s", r->path, strerror(error));
}

/* Allocates blocks for that many bytes of the open file, and checks that they were allocated. */
static void reserve_allocate(struct reserve *r, int fd, uint64_t bytes)
{
    struct stat st;
    int error = posix_fallocate(fd, 0, (off_t)bytes);

    if (!error && (fsync(fd) || fstat(fd, &st))) {
        error = errno;
    }
    if (error) {
        (void)!ftruncate(fd, 0);
        reserve_fail(r, error);
    } else if (reserve_allocated(&st) < bytes) {
        (void)!ftruncate(fd, 0);
        r->state = RESERVE_MISSING;
        r->bytes = 0;
        profd_error_set(&r->why, PROFD_IO,
                        "%s has %llu bytes, but its file system allocated only %llu, so it is no reserve", r->path,
                        (unsigned long long)bytes, (unsigned long long)reserve_allocated(&st));
    } else {
        r->state = RESERVE_HELD;
        r->bytes = bytes;
    }
}

void reserve_take(struct reserve *r)
{
    uint64_t available, size;

    if (!reserve_measure(r, &available, &size)) {
        return;
    }
    uint64_t wanted = size / RESERVE_PART < RESERVE_BYTES ? size / RESERVE_PART / 4096 * 4096 : RESERVE_BYTES;
    if (r->state == RESERVE_MISSING || r->bytes >= wanted || available + r->bytes < wanted + wanted / 4) {
        return;
    }
    int fd = open(r->path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0) {
        reserve_fail(r, errno);
        return;
    }
    reserve_allocate(r, fd, wanted);
    close(fd);
}

bool reserve_give_up(struct reserve *r)
{
    const bool held = r->state == RESERVE_HELD;

    if (held && !truncate(r->path, 0)) {
        r->state = RESERVE_GIVEN_UP;
        r->bytes = 0;
    }
    return held && r->state == RESERVE_GIVEN_UP;
}

const char *reserve_name(enum reserve_state state)
{
    static const char *const names[] = {"missing", "held", "given-up"};

    return names[state];
}

#define SPACE_ENOUGH (8ull << 20) /* bytes free on the disk: worth another try */
#define OPEN_NEEDS (1ull << 20)   /* bytes needed to open a database: shared memory, conversion of the schema */

struct space {
    const char *state_dir;
    atomic_uint_fast64_t keep_bytes;
    atomic_uint user_share;
    struct reserve reserve; /* the writer's, once it runs */
    /* copies for other threads */
    _Atomic(enum reserve_state) state;
    atomic_uint_fast64_t bytes;
    bool missing_said; /* the loop's: logged */
};

/* Tells the other threads. */
static void space_publish(struct space *p)
{
    atomic_store(&p->bytes, p->reserve.bytes);
    atomic_store(&p->state, p->reserve.state);
}

void space_set_limits(struct space *p, uint64_t keep_bytes, unsigned user_share)
{
    atomic_store(&p->keep_bytes, keep_bytes);
    atomic_store(&p->user_share, user_share);
}

enum profd_status space_open(const struct space_config *config, struct space **out, struct profd_error *e)
{
    struct space *p = calloc(1, sizeof *p);
    uint64_t available, size;

    TRY(p ? PROFD_OK : profd_no_memory(e));
    p->state_dir = config->state_dir;
    space_set_limits(p, config->keep_bytes, config->user_share);
    enum profd_status status = reserve_open(&p->reserve, config->state_dir, e);
    if (status) {
        free(p);
        return status;
    }
    if (reserve_measure(&p->reserve, &available, &size) && available < OPEN_NEEDS && reserve_give_up(&p->reserve)) {
        log_write(LOG_LEVEL_WARNING, NULL, "the disk of %s is full: the existing reserve is given up",
                  config->state_dir);
    }
    space_publish(p);
    *out = p;
    return PROFD_OK;
}

void space_close(struct space *p)
{
    free(p);
}

void space_keep(struct space *p)
{
    reserve_take(&p->reserve);
    space_publish(p);
}

static enum profd_status space_refuse(const struct space *p, struct profd_error *e)
{
    return profd_error_set(e, PROFD_FULL,
                           "no space left in %s: the reserve is used for removals; delete programs or files, or lower "
                           "keep-bytes or keep-age",
                           p->state_dir);
}

enum profd_status space_admit(struct space *p, struct store *store, struct profd_error *e)
{
    struct store_share share = {.limit = atomic_load(&p->keep_bytes), .percent = atomic_load(&p->user_share)};
    uint64_t available, size;

    space_keep(p);
    if (reserve_measure(&p->reserve, &available, &size) && size && (!share.limit || size < share.limit)) {
        share.limit = size;
    }
    store_set_share(store, &share);
    return p->reserve.state == RESERVE_GIVEN_UP ? space_refuse(p, e) : PROFD_OK;
}

bool space_give_up(struct space *p)
{
    const bool given = reserve_give_up(&p->reserve);

    space_publish(p);
    return given;
}

/* When a write found no space, perhaps a while ago, there may be some again. The next upload is the real test. */
bool space_look(struct space *p, struct health *h)
{
    const enum reserve_state state = atomic_load(&p->state);
    uint64_t available, size;
    struct profd_error why;

    if (state == RESERVE_GIVEN_UP && !health_get_full(h)) {
        space_refuse(p, &why);
        health_set_full(h, &why);
    }
    if (state == RESERVE_MISSING && !p->missing_said) {
        log_write(LOG_LEVEL_WARNING, NULL, "no reserve for removals on a full disk: %s", p->reserve.why.sentence);
    }
    p->missing_said = state == RESERVE_MISSING;
    if (health_get_full(h) && state != RESERVE_GIVEN_UP && reserve_measure(&p->reserve, &available, &size) &&
        (available >= SPACE_ENOUGH || available >= size / RESERVE_PART)) {
        health_clear_full(h);
    }
    return state == RESERVE_GIVEN_UP;
}

enum reserve_state space_get_reserve(const struct space *p, uint64_t *bytes)
{
    *bytes = atomic_load(&p->bytes);
    return atomic_load(&p->state);
}
