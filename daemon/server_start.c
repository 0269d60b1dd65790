/* Start, in the order in which a later step may rely on an earlier one. */
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "admin/backup.h"
#include "log.h"
#include "server_attach.h"
#include "server_parts.h"
#include "server_upkeep.h"
#include "server_web_coded.h"

#define WRITER_QUEUE 32768u
#define WRITER_QUEUE_UID 24576u
#define WRITER_BATCH 2048u
#define WRITER_BATCH_BYTES (64u << 20) /* unpacked: what one user sends must not keep the others waiting for seconds   \
                                        */
#define READER_QUEUE 1024u
#define READER_NICE 10 /* a report may take its time, an acknowledgement may not */
#define OBJECT_QUEUE 256u
#define CLOSER_THREADS 64u
#define HEAP_SPARE (32 << 20) /* bytes */
#define HEAP_STEP (1 << 20)
#define HEAP_MMAP (1 << 20) /* larger blocks come from the system and go back at once */

/* Made by root in somebody's directory, the file is that one's all the same: the daemon must be able to lock it later.
 */
static int server_open_lock(const char *path, const char *state_dir)
{
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    struct stat st;

    if (fd < 0)
        return open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (!geteuid() && !stat(state_dir, &st) && st.st_uid && fchown(fd, st.st_uid, st.st_gid)) {
        close(fd);
        unlink(path);
        return -1;
    }
    return fd;
}

/* A second daemon on the same data would be a second writer. The lock is released by the kernel with the process. */
enum profd_status server_lock(const char *state_dir, int *out, struct profd_error *e)
{
    char path[4096];
    enum profd_status status = server_make_directory(state_dir, 0750, e);
    int fd;

    if (status)
        return status;
    if (snprintf(path, sizeof path, "%s/lock", state_dir) >= (int)sizeof path)
        return profd_error_set(e, PROFD_TOO_LARGE, "the path of the state directory is too long");
    fd = server_open_lock(path, state_dir);
    if (fd < 0)
        return profd_error_set(e, PROFD_CANT_CREATE, "cannot create %s: %s", path, strerror(errno));
    if (flock(fd, LOCK_EX | LOCK_NB)) {
        status = errno == EWOULDBLOCK
                     ? profd_error_set(e, PROFD_BUSY, "another profd uses the state directory %s", state_dir)
                     : profd_error_set(e, PROFD_IO, "cannot lock %s: %s", path, strerror(errno));
        close(fd);
        return status;
    }
    *out = fd;
    return PROFD_OK;
}

enum profd_status server_database_path(const struct server *s, char *path, size_t size, struct profd_error *e)
{
    if (snprintf(path, size, "%s/profd.db", s->config->state_dir) >= (int)size)
        return profd_error_set(e, PROFD_TOO_LARGE, "the path of the state directory is too long");
    return PROFD_OK;
}

static enum profd_status server_open_store(struct server *s, struct profd_error *e)
{
    char path[4096];
    enum profd_status status;

    status = server_database_path(s, path, sizeof path, e);
    if (!status)
        status = store_sqlite_open_writer(path, &s->write_store, e);
    for (unsigned i = 0; i < SERVER_READERS && !status; i++)
        status = store_sqlite_open_reader(path, &s->read_stores[i], e);
    if (!status)
        status = store_sqlite_open_reader(path, &s->object_store, e);
    if (!status)
        status = store_sqlite_open_reader(path, &s->check_store, e);
    if (!status)
        status = ingest_checker_new(s->check_store, &s->checker, e);
    return status;
}

static enum profd_status server_start_writer(struct server *s, struct profd_error *e)
{
    void *contexts[1] = {s};
    const struct work_config config = {
        .name = "profd-writer",
        .threads = 1,
        .contexts = contexts,
        .queue_max = WRITER_QUEUE,
        .queue_max_uid = WRITER_QUEUE_UID,
        .batch_max = WRITER_BATCH,
        .batch_weight = WRITER_BATCH_BYTES,
        .prepare = server_writer_prepare,
        .prepare_context = s,
        .run = server_writer_run,
        .done = server_writer_done,
        .done_context = s,
    };

    return work_new(s->loop, &config, &s->writer, e);
}

/* Sums that readers added up, for the next question. */
static enum profd_status server_make_cache(struct server *s, struct profd_error *e)
{
    s->cache_lock = lock_new();
    const struct query_lock lock = {lock_take, lock_give, s->cache_lock};

    s->cache = s->cache_lock ? query_cache_new(LIMIT_ROLLUP_CACHE, &lock) : NULL;
    return s->cache ? PROFD_OK : profd_error_set(e, PROFD_NO_MEMORY, "no memory for a cache of sums");
}

/* What is sent as it was made before: finished answers, and the dashboard. */
static enum profd_status server_make_answers(struct server *s, struct profd_error *e)
{
    s->answers_lock = lock_new();
    const struct query_lock lock = {lock_take, lock_give, s->answers_lock};

    s->answers = s->answers_lock ? query_answers_new(LIMIT_ANSWER_CACHE, &lock) : NULL;
    s->web = server_web_coded_new();
    return s->answers && s->web ? PROFD_OK : profd_error_set(e, PROFD_NO_MEMORY, "no memory for a cache of answers");
}

static enum profd_status server_start_readers(struct server *s, struct profd_error *e)
{
    void *contexts[SERVER_READERS];
    struct work_config config = {
        .name = "profd-reader",
        .threads = SERVER_READERS,
        .contexts = contexts,
        .queue_max = READER_QUEUE,
        .queue_max_uid = READER_QUEUE / 2,
        .batch_max = 1,
        .threads_max_uid = SERVER_READERS - 1,
        .nice = READER_NICE,
        .run = server_query_run,
        .done = server_query_done,
        .done_context = s,
    };

    for (unsigned i = 0; i < SERVER_READERS; i++)
        contexts[i] = s->read_stores[i];
    if (server_make_cache(s, e) || server_make_answers(s, e))
        return PROFD_NO_MEMORY;
    return work_new(s->loop, &config, &s->readers, e);
}

static enum profd_status server_start_objects(struct server *s, struct profd_error *e)
{
    void *contexts[1] = {s->object_store};
    const struct work_config config = {
        .name = "profd-object",
        .threads = 1,
        .contexts = contexts,
        .queue_max = OBJECT_QUEUE,
        .queue_max_uid = OBJECT_QUEUE / 2,
        .batch_max = 1,
        .run = server_object_run,
        .done = server_object_parsed,
        .done_context = s,
    };

    return work_new(s->loop, &config, &s->objects, e);
}

/* As many descriptors as the hard limit allows: each connection is one, and each may carry some. */
static void server_raise_descriptors(void)
{
    struct rlimit limit;

    if (!getrlimit(RLIMIT_NOFILE, &limit) && limit.rlim_cur < limit.rlim_max) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}

/* Uploads take and give some blocks each: without this every few of them would move the end of a heap to and fro. What
 * is free goes back when nothing is under way. */
static void server_tune_memory(void)
{
    mallopt(M_TRIM_THRESHOLD, HEAP_SPARE);
    mallopt(M_TOP_PAD, HEAP_STEP);
    mallopt(M_MMAP_THRESHOLD, HEAP_MMAP);
}

enum profd_status server_start(struct server *s, struct profd_error *e)
{
    enum profd_status status;
    bool restored;

    umask(0077);
    server_tune_memory();
    server_raise_descriptors();
    status = broker_start(&s->broker, e); /* first: it must inherit nothing worth stealing */
    if (!status)
        status = loop_new(&s->loop, e);
    if (!status)
        status = server_lock(s->config->state_dir, &s->lock_fd, e);
    if (!status) {
        backup_clean(s->config->state_dir);
        status = server_finish_restore(s->config->state_dir, &restored, e);
    }
    if (!status)
        status = server_open_store(s, e);
    if (!status)
        status = server_start_writer(s, e);
    if (!status)
        status = server_start_readers(s, e);
    if (!status)
        status = server_start_objects(s, e);
    if (!status)
        status = server_upkeep_start(s, e);
    if (!status)
        status = server_scrub_start(s, e);
    if (!status)
        status = server_attach_start(s, e);
    if (!status)
        status = closer_new(CLOSER_THREADS, &s->closer, e);
    if (!status)
        status = server_open_doors(s, e);
    if (!status)
        server_attach_look_unseen(s);
    return status;
}
