/* Start, in the order in which a later step may rely on an earlier one. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "log.h"
#include "server_parts.h"

#define WRITER_QUEUE 32768u
#define WRITER_QUEUE_UID 24576u
#define WRITER_BATCH 1024u
#define WRITER_BATCH_BYTES (64u << 20) /* unpacked: what one user sends must not keep the others waiting for seconds */
#define READER_QUEUE 1024u
#define OBJECT_QUEUE 256u
#define CLOSER_THREADS 64u

/* A second daemon on the same data would be a second writer. The lock is released by the kernel with the process. */
static enum profd_status server_lock(struct server *s, struct profd_error *e)
{
    char path[4096];
    enum profd_status status = server_make_directory(s->config->state_dir, 0750, e);

    if (status)
        return status;
    if (snprintf(path, sizeof path, "%s/lock", s->config->state_dir) >= (int)sizeof path)
        return profd_error_set(e, PROFD_TOO_LARGE, "the path of the state directory is too long");
    s->lock_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (s->lock_fd < 0)
        return profd_error_set(e, PROFD_CANT_CREATE, "cannot create %s: %s", path, strerror(errno));
    if (flock(s->lock_fd, LOCK_EX | LOCK_NB))
        return errno == EWOULDBLOCK
                   ? profd_error_set(e, PROFD_BUSY, "another profd uses the state directory %s", s->config->state_dir)
                   : profd_error_set(e, PROFD_IO, "cannot lock %s: %s", path, strerror(errno));
    return PROFD_OK;
}

static enum profd_status server_open_store(struct server *s, struct profd_error *e)
{
    char path[4096];
    enum profd_status status;

    if (snprintf(path, sizeof path, "%s/profd.db", s->config->state_dir) >= (int)sizeof path)
        return profd_error_set(e, PROFD_TOO_LARGE, "the path of the state directory is too long");
    status = store_sqlite_open_writer(path, &s->write_store, e);
    for (unsigned i = 0; i < SERVER_READERS && !status; i++)
        status = store_sqlite_open_reader(path, &s->read_stores[i], e);
    if (!status)
        status = store_sqlite_open_reader(path, &s->object_store, e);
    return status;
}

static enum profd_status server_start_writer(struct server *s, struct profd_error *e)
{
    void *contexts[1] = {s->write_store};
    const struct work_config config = {
        .name = "profd-writer",
        .threads = 1,
        .contexts = contexts,
        .queue_max = WRITER_QUEUE,
        .queue_max_uid = WRITER_QUEUE_UID,
        .batch_max = WRITER_BATCH,
        .batch_weight = WRITER_BATCH_BYTES,
        .run = server_writer_run,
        .done = server_writer_done,
        .done_context = s,
    };

    return work_new(s->loop, &config, &s->writer, e);
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
        .run = server_query_run,
        .done = server_query_done,
        .done_context = s,
    };

    for (unsigned i = 0; i < SERVER_READERS; i++)
        contexts[i] = s->read_stores[i];
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

enum profd_status server_start(struct server *s, struct profd_error *e)
{
    enum profd_status status;

    umask(0077);
    server_raise_descriptors();
    status = broker_start(&s->broker, e); /* first: it must inherit nothing worth stealing */
    if (!status)
        status = loop_new(&s->loop, e);
    if (!status)
        status = server_lock(s, e);
    if (!status)
        status = server_open_store(s, e);
    if (!status)
        status = server_start_writer(s, e);
    if (!status)
        status = server_start_readers(s, e);
    if (!status)
        status = server_start_objects(s, e);
    if (!status)
        status = closer_new(CLOSER_THREADS, &s->closer, e);
    if (!status)
        status = server_open_doors(s, e);
    return status;
}
