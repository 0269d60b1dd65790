#include "requests/symbols.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/log.h"
#include "core/container.h"
#include "net/closer.h"
#include "net/loop.h"
#include "query/params.h"
#include "render/document.h"
#include "requests/intake.h"
#include "requests/requests.h"
#include "requests/tokens.h"

/* Which files may name functions for every user. */

#define FUSE_MAGIC 0x65735546 /* on such a file system its user controls the owners of files */

/* Returns whether a process serves this descriptor's file system. Reading or closing such a file may block forever. */
static bool trusted_file_may_hang(int fd)
{
    struct statfs fs;

    return !fstatfs(fd, &fs) && fs.f_type == FUSE_MAGIC;
}

/* Returns whether only root can change the content. */
static bool trusted_file_only_root_writes(int fd)
{
    struct stat st;

    return !fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_uid == 0 && !(st.st_mode & (S_IWGRP | S_IWOTH)) &&
           !trusted_file_may_hang(fd);
}

/* Returns whether the content of this descriptor, which a client opened, may name functions for all users. It must be a
 * file of root's that no other user can write. On a nosuid mount the owner proves nothing: it may be a removable disk,
 * an image, or a server of the user's. *nosuid is set if that is the only obstacle. The file system of this program is
 * trusted even if it is mounted nosuid: a service manager may show a whole system as nosuid to one service. */
static bool trusted_file_check(int fd, bool *nosuid)
{
    struct statfs fs;
    struct stat own, st;

    if (!trusted_file_only_root_writes(fd) || fstatfs(fd, &fs)) {
        return false;
    }
    if (!(fs.f_flags & ST_NOSUID) || (!stat("/proc/self/exe", &own) && !fstat(fd, &st) && own.st_dev == st.st_dev)) {
        return true;
    }
    *nosuid = true;
    return false;
}

/* Opens the debug file of a build that the system's packages installed. Returns −1 if none can be trusted. */
static int trusted_file_open_debug(const char *build_id)
{
    char path[32 + BUILDID_TEXT_SIZE];

    /* Only GNU build-ids have such files. The id was validated: hexadecimal digits cannot leave the directory. */
    if (strlen(build_id) < 6 || !strncmp(build_id, "sha256-", 7) ||
        strspn(build_id, "0123456789abcdef") != strlen(build_id)) {
        return -1;
    }
    snprintf(path, sizeof path, "/usr/lib/debug/.build-id/%.2s/%s.debug", build_id, build_id + 2);
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    /* Only root can mount file systems there, so nosuid does not matter. */
    if (fd >= 0 && !trusted_file_only_root_writes(fd)) {
        close(fd);
        return -1;
    }
    return fd;
}

/* The processes that read executables (elf/broker.h) are watched. One that has ended is started again, after a delay
 * that grows from one second to one minute while it ends again and again. On the loop's thread. */

#define DELAY_MIN_MS 1000u
#define DELAY_MAX_MS 60000u
#define STEADY_MS 60000u /* one that lived longer is started again after the shortest delay */
#define AGAIN_MS 50      /* it serves a request: the thread that waits for the answer notices its end */

struct object_broker {
    struct object_service *service;
    struct broker *broker;
    struct loop_watch *watch;
    struct loop_timer *timer;
    uint64_t started, delay; /* ms of loop_now, ms */
    bool gone;
};

/* What one of the threads uses to read executables. */
struct executable_reader {
    struct object_service *service;
    struct broker *broker;
    struct store *store;
    bool waited; /* in vain, since the broker was last seen ready */
};

struct object_service {
    struct object_config config;
    struct executable_reader readers[LIMIT_WORKERS];
    struct object_broker brokers[LIMIT_WORKERS];
    struct work *work;
    atomic_bool stopped;
    struct object_counts counts;
};

static void object_broker_look(struct object_broker *b)
{
    struct profd_error why;

    if (b->gone || !broker_has_ended(b->broker, &why)) {
        return;
    }
    loop_watch_free(b->watch);
    b->watch = NULL;
    b->gone = true;
    b->service->counts.readers_gone++;
    b->delay = loop_now() - b->started > STEADY_MS || !b->delay ? DELAY_MIN_MS : b->delay * 2;
    b->delay = b->delay < DELAY_MAX_MS ? b->delay : DELAY_MAX_MS;
    log_write(LOG_LEVEL_WARNING, "executables", "%s; it is started again in %u s, until then executables wait",
              why.sentence, (unsigned)(b->delay / 1000));
    loop_timer_set(b->timer, b->delay);
}

static void object_broker_on_end(void *context)
{
    struct object_broker *b = context;

    object_broker_look(b);
    if (!b->gone) {
        loop_timer_set(b->timer, AGAIN_MS);
    }
}

/* Without a pidfd, the end of a broker is noticed only when an answer is missing. */
static void object_broker_watch(struct object_broker *b)
{
    const int handle = broker_get_handle(b->broker);

    b->watch = handle < 0 ? NULL : loop_watch_new(b->service->config.shared->loop, handle, object_broker_on_end, b);
    b->started = loop_now();
}

static void object_broker_on_timer(void *context)
{
    struct object_broker *b = context;
    struct profd_error e;

    if (!b->gone) {
        object_broker_on_end(b);
    } else if (broker_restart(b->broker, &e)) {
        b->delay = b->delay * 2 < DELAY_MAX_MS ? b->delay * 2 : DELAY_MAX_MS;
        log_write(LOG_LEVEL_WARNING, "executables", "%s; the next attempt is in %u s", e.sentence,
                  (unsigned)(b->delay / 1000));
        loop_timer_set(b->timer, b->delay);
    } else {
        b->gone = false;
        b->service->counts.readers_gone--;
        object_broker_watch(b);
        log_write(LOG_LEVEL_NOTICE, NULL, "the process that reads executables was started again");
    }
}

#define QUEUE 256u
#define OBJECT_ARENA (3ull << 30)
#define PAUSE_MS 50
#define PAUSES 40 /* then the client is told to send the executable again later */

/* One executable, until it is answered. */
struct object_request {
    struct writer_job job; /* its item serves the queue of the object threads, too; its status is first theirs */
    struct object_service *service;
    struct caller caller;
    uint32_t uid;
    int executable, debug;
    bool trusted;
    struct object_put put; /* without done: a client of the Unix socket has sent it */
    bool code;             /* with instructions */
    bool nosuid;           /* it would be trusted but for the mount */
    int64_t received;
    char build_id[BUILDID_TEXT_SIZE]; /* "" if it was not asked for */
    char name[256];
    uint8_t *answer;
    size_t answer_size;
    bool known; /* another sender's copy was stored meanwhile */
};

/* Closing a descriptor from a client may block, so other threads do it. */
static void object_close(struct object_request *o)
{
    if (o->executable >= 0) {
        closer_close(o->service->config.closer, o->uid, o->executable);
    }
    if (o->debug >= 0) {
        closer_close(o->service->config.closer, o->uid, o->debug);
    }
    o->executable = o->debug = -1;
}

static void object_free(struct object_request *o)
{
    object_close(o);
    free(o->answer);
    free(o);
}

/* Answers by ACK or NACK and frees the request. */
static void object_answer(struct object_request *o)
{
    struct object_service *s = o->service;
    struct conn *c = o->put.done ? NULL : conn_find(s->config.shared->conns, o->caller.conn);
    const struct message ack = {.type = FRAME_ACK};
    const struct object_put put = o->put;
    struct buildid id;

    if (o->job.status) {
        s->counts.failed++;
        log_write(LOG_LEVEL_INFO, "executable refused", "%s from user %u: %s", *o->name ? o->name : "an executable",
                  o->uid, o->job.error.sentence);
    } else {
        s->counts.stored++;
        if (o->nosuid) {
            log_write(LOG_LEVEL_NOTICE, "executable of one user",
                      "%s from user %u names functions for that user only: root owns the file, but its file system is "
                      "mounted nosuid. To name them for all users, root must run: profctl symbols FILE",
                      *o->name ? o->name : "an executable", o->uid);
        }
    }
    if (put.done) {
        put.done(put.context, o->job.status, o->job.error.sentence);
    } else if (c) {
        if (!o->job.status && !buildid_parse(o->build_id, strlen(o->build_id), &id, NULL)) {
            session_answered(conn_get_user(c), &id);
        }
        caller_answer(s->config.shared, &o->caller, &ack, o->job.status, o->job.error.sentence, 1000);
    }
    object_free(o);
}

enum profd_status object_receive_decline(void *context, struct conn *c, struct conn_frame *f, struct profd_error *e)
{
    struct message m;
    enum profd_status status = body_decode(f, &m, e);

    (void)context;
    if (status) {
        return status;
    }
    log_write(LOG_LEVEL_INFO, "executable declined", "user %u cannot send the executable of %s: %s",
              conn_get_peer(c)->uid, m.as.decline.build_id, m.as.decline.reason);
    message_done(&m);
    return PROFD_OK;
}

/* Returns whether the parsed executable lacks names that a debug file could add. id gets its build-id. */
static bool object_wants_debug(const struct object_request *o, char id[BUILDID_TEXT_SIZE])
{
    struct arena *arena = arena_new(OBJECT_ARENA);
    struct object *object;
    bool wants = false;

    if (arena && !object_decode(arena, o->answer, o->answer_size, &object, NULL)) {
        wants = !object->has_names || object->only_dynamic;
        memcpy(id, object->id.text, BUILDID_TEXT_SIZE);
    }
    arena_free(arena);
    return wants;
}

static void object_read(struct broker *broker, struct object_request *o)
{
    struct broker_file file = {o->executable, -1, o->job.item.weight, o->code};
    char id[BUILDID_TEXT_SIZE];
    uint8_t *answer;
    size_t size;

    if (trusted_file_may_hang(o->executable) || (o->debug >= 0 && trusted_file_may_hang(o->debug))) {
        o->job.status =
            profd_error_set(&o->job.error, PROFD_REFUSED,
                            "executables on a FUSE file system are refused, because its owner could block the "
                            "daemon; copy the file elsewhere");
        return;
    }
    o->trusted = !o->uid || (!o->put.done && trusted_file_check(o->executable, &o->nosuid) &&
                             (o->debug < 0 || trusted_file_check(o->debug, &o->nosuid)));
    if (o->debug < 0 && *o->build_id) {
        o->debug = trusted_file_open_debug(o->build_id);
    }
    file.debug = o->debug;
    o->job.status = broker_read_object(broker, &file, &o->answer, &o->answer_size, &o->job.error);
    if (o->job.status || o->debug >= 0 || *o->build_id || !object_wants_debug(o, id)) {
        return;
    }
    o->debug = trusted_file_open_debug(id);
    file.debug = o->debug;
    if (o->debug < 0 || broker_read_object(broker, &file, &answer, &size, NULL)) {
        return;
    }
    free(o->answer);
    o->answer = answer;
    o->answer_size = size;
}

static void object_run(void *context, struct work_item *const *items, size_t n)
{
    struct executable_reader *reader = context;
    const struct timespec pause = {.tv_nsec = PAUSE_MS * 1000000};

    for (size_t i = 0; i < n; i++) {
        struct object_request *o = container_of(items[i], struct object_request, job.item);

        /* Many processes of one build are asked at the same time; the first answer is used. */
        if (!*o->build_id || o->put.done || store_has_object(reader->store, o->uid, o->build_id, &o->known, NULL)) {
            o->known = false;
        }
        if (!o->known) {
            /* Wait for a broker that is being started again, once for each of its ends: a client that sends ten
             * executables is answered after one wait, not after ten. Meanwhile other threads may have a broker. */
            for (unsigned k = 0; k < PAUSES && !reader->waited && !broker_is_ready(reader->broker); k++) {
                reader->waited = atomic_load(&reader->service->stopped);
                nanosleep(&pause, NULL);
            }
            reader->waited = !broker_is_ready(reader->broker);
            object_read(reader->broker, o);
        }
    }
}

static void object_parsed(void *context, struct work_item *item)
{
    struct object_request *o = container_of(item, struct object_request, job.item);
    struct object_service *s = context;

    if (o->job.status) { /* perhaps because a broker has ended */
        for (size_t i = 0; i < LIMIT_WORKERS; i++) {
            object_broker_look(&s->brokers[i]);
        }
    }
    /* A failure is stored, too, so that the build shows why its names are missing. If it cannot be stored, it is
     * answered here. */
    if (o->known) {
        object_answer(o);
        return;
    }
    object_close(o);
    o->job.item.weight = o->answer_size;
    if (!writer_put(o->service->config.shared->writer, &o->job)) {
        o->job.status = profd_error_set(&o->job.error, PROFD_BUSY, "the queue of uploads to be stored is full");
        object_answer(o);
    }
}

static enum profd_status object_write(struct writer_job *job, struct store *store, struct profd_error *e)
{
    struct object_request *o = container_of(job, struct object_request, job);
    const enum profd_status failed = job->status;
    const struct ingest_object given = {.uid = o->uid,
                                        .trusted = o->trusted,
                                        .by_operator = o->put.tenant != 0,
                                        .wants_names = o->put.done != NULL,
                                        .received = o->received,
                                        .build_id = o->build_id,
                                        .name = o->name,
                                        .answer = failed ? NULL : o->answer,
                                        .answer_size = failed ? 0 : o->answer_size,
                                        .failure = failed ? job->error.sentence : NULL};

    if (!failed) {
        TRY(writer_job_check_space(job, e));
        return ingest_object_store(store, &given, e);
    }
    /* A failure is recorded for a build only if that build was requested; temporary failures are not recorded. */
    if (!job->full && *o->build_id && !o->put.done && !profd_status_retry(failed)) {
        (void)ingest_object_store(store, &given, NULL);
    }
    return failed;
}

static void object_stored(struct writer_job *job)
{
    object_answer(container_of(job, struct object_request, job));
}

static void object_drop(void *context, struct work_item *item)
{
    struct object_request *o = container_of(item, struct object_request, job.item);

    (void)context;
    o->job.status = profd_error_set(&o->job.error, PROFD_STOPPING, "the daemon is stopping");
    object_answer(o);
}

static const struct writer_job_type object_type = {.run = object_write, .done = object_stored, .changes_objects = true};

static enum profd_status object_new(struct object_service *s, uint32_t uid, const struct message_object *m,
                                    struct object_request **out, struct profd_error *e)
{
    struct object_request *o = calloc(1, sizeof *o);
    struct buildid id = {.text = ""};
    size_t n = strlen(m->name);
    enum profd_status status = PROFD_OK;

    TRY(o ? PROFD_OK : profd_no_memory(e));
    if (*m->build_id) {
        status = buildid_parse(m->build_id, strlen(m->build_id), &id, e);
    }
    if (status) {
        free(o);
        return status;
    }
    memcpy(o->build_id, id.text, sizeof o->build_id);
    if (n >= sizeof o->name) { /* the end of a path is more informative than its beginning */
        n = sizeof o->name - 1;
    }
    memcpy(o->name, m->name + strlen(m->name) - n, n + 1);
    while ((*o->name & 0xc0) == 0x80) { /* cut at a character */
        memmove(o->name, o->name + 1, strlen(o->name));
    }
    o->job.type = &object_type;
    o->job.item.uid = o->uid = uid;
    o->service = s;
    o->code = m->code;
    o->received = loop_clock();
    o->executable = o->debug = -1;
    *out = o;
    return PROFD_OK;
}

/* Takes over the request. On BUSY it is freed. */
static enum profd_status object_queue(struct object_request *o, struct profd_error *e)
{
    const int fds[] = {o->executable, o->debug};
    struct statx stx;

    /* The weight is the memory that the reader may need. statx returns what the kernel knows, because a file system may
     * block forever. */
    o->job.item.weight = LIMIT_WORKER_MEMORY_SMALL;
    for (size_t i = 0; i < 2; i++) {
        if (fds[i] >= 0 && (statx(fds[i], "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_SIZE, &stx) ||
                            stx.stx_size > LIMIT_WORKER_SMALL_FILE)) {
            o->job.item.weight = LIMIT_WORKER_MEMORY_MAX;
        }
    }
    if (!work_put(o->service->work, &o->job.item)) {
        object_free(o);
        return profd_error_set(e, PROFD_BUSY, "the queue of executables to be read is full");
    }
    return PROFD_OK;
}

enum profd_status object_receive(void *context, struct conn *c, struct conn_frame *f, struct profd_error *e)
{
    struct object_service *s = context;
    struct object_request *o;
    struct buildid id = {.text = ""};
    struct message m;
    uint32_t uid;
    TRY(writer_check(s->config.shared->writer, e) ? PROFD_IO : body_decode(f, &m, e));
    const struct claim claim = {conn_get_peer(c)->uid, conn_get_peer(c)->may_claim, m.as.object.claimed,
                                m.as.object.uid};
    enum profd_status status = claim_check(&claim, &uid, e);
    status = status ? status : object_new(s, uid, &m.as.object, &o, e);
    message_done(&m);
    if (status) {
        return status;
    }
    o->executable = conn_frame_take_fd(f, 0);
    o->debug = conn_frame_take_fd(f, 1);
    TRY(object_queue(o, e));
    caller_begin(&o->caller, c, f->header.tag);
    if (*o->build_id && !buildid_parse(o->build_id, strlen(o->build_id), &id, NULL)) {
        (void)session_ask(conn_get_user(c), &id); /* a harvest need not request an executable that is being sent */
    }
    return PROFD_OK;
}

enum profd_status object_put(struct object_service *s, const struct object_put *put, struct profd_error *e)
{
    const struct message_object m = {.build_id = put->build_id, .name = put->name, .code = put->code};
    struct object_request *o;
    enum profd_status status =
        writer_check(s->config.shared->writer, e) ? PROFD_IO : object_new(s, put->tenant, &m, &o, e);

    if (status) {
        close(put->fd);
        return status;
    }
    o->executable = put->fd;
    o->put = *put;
    return object_queue(o, e);
}

void object_request_missing(struct object_service *s, struct conn *c, const struct missing_build *missing, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct message m = {.type = FRAME_WANT_OBJECT};

        if (!session_ask(conn_get_user(c), &missing[i].id)) {
            continue;
        }
        m.as.want_object.build_id = missing[i].id.text;
        m.as.want_object.name = missing[i].name;
        conn_send(c, &m, 0, 0);
        s->counts.requested++;
    }
}

enum profd_status object_service_start(const struct object_config *config, struct object_service **out,
                                       struct profd_error *e)
{
    struct object_service *s = calloc(1, sizeof *s);
    void *contexts[LIMIT_WORKERS];
    const struct work_config work = {
        .name = "profd-object",
        .threads = LIMIT_WORKERS,
        .contexts = contexts,
        .queue_max = QUEUE,
        .queue_max_uid = QUEUE / 2,
        .batch_max = 1,
        .threads_max_uid = 1, /* a user's slow one delays that user */
        .running_weight = LIMIT_WORKERS_MEMORY,
        .run = object_run,
        .done = object_parsed,
        .done_context = s,
    };
    enum profd_status status = PROFD_OK;

    TRY(s ? PROFD_OK : profd_no_memory(e));
    s->config = *config;
    for (unsigned i = 0; i < LIMIT_WORKERS && !status; i++) {
        struct object_broker *b = &s->brokers[i];

        contexts[i] = &s->readers[i];
        s->readers[i].service = b->service = s;
        s->readers[i].broker = b->broker = config->brokers[i];
        status = store_sqlite_open_reader(config->shared->database, &s->readers[i].store, e);
        if (!status) {
            b->timer = loop_timer_new(config->shared->loop, object_broker_on_timer, b);
            status = b->timer ? PROFD_OK : profd_no_memory(e);
        }
        if (!status) {
            object_broker_watch(b);
        }
    }
    status = status ? status : work_new(config->shared->loop, &work, &s->work, e);
    if (status) {
        object_service_free(s);
        return status;
    }
    *out = s;
    return PROFD_OK;
}

void object_service_stop(struct object_service *s)
{
    atomic_store(&s->stopped, true);
    work_drop(s->work, object_drop, NULL);
}

size_t object_service_pending(const struct object_service *s)
{
    return work_pending(s->work);
}

void object_service_join(struct object_service *s)
{
    work_free(s->work);
    s->work = NULL;
}

void object_service_free(struct object_service *s)
{
    if (!s) {
        return;
    }
    work_free(s->work);
    for (unsigned i = 0; i < LIMIT_WORKERS; i++) {
        loop_watch_free(s->brokers[i].watch);
        loop_timer_free(s->brokers[i].timer);
        store_close(s->readers[i].store);
    }
    free(s);
}

struct object_counts object_service_get_counts(const struct object_service *s)
{
    return s->counts;
}

/* PUT /api/v1/builds/{id}/symbols. */

#define PARSED "application/vnd.profd.symbols"

/* One PUT, until it is answered. */
struct symbols_put {
    struct writer_job job; /* of a parsed object */
    const struct symbols_service *service;
    struct http_exchange *exchange;
    struct buildid id;
    char token[STORE_NAME_MOST + 1]; /* its name */
    struct tokens_host host;         /* that sent the parsed object */
    uint8_t *bytes;                  /* of that */
    size_t size;
};

/* Finds the build-id in the path, which matches the route. */
static enum profd_status symbols_find_id(const char *path, size_t n, struct buildid *id, struct profd_error *e)
{
    const size_t before = sizeof "/api/v1/builds/" - 1;

    return buildid_parse(path + before, n - before - (sizeof "/symbols" - 1), id, e);
}

int symbols_judge(const struct symbols_service *s, const struct http_body_head *head, struct profd_error *e)
{
    const struct store_token *t = tokens_find(s->shared->tokens, head->token);
    const bool parsed = head->type_size == sizeof PARSED - 1 && !memcmp(head->type, PARSED, head->type_size);
    const unsigned right = parsed ? STORE_MAY_WRITE : STORE_MAY_ADMIN;
    const uint64_t most = parsed ? LIMIT_PARSED_OBJECT : LIMIT_HTTP_PUT;
    struct buildid id;

    if (symbols_find_id(head->path, head->n, &id, e)) {
        return 400;
    }
    if (!t || !(t->rights & right) || (parsed && t->all)) {
        profd_error_set(e, PROFD_FORBIDDEN,
                        "symbols are taken with a token that has the right %s%s%s%s; on the daemon's machine, use "
                        "profctl symbols with a Unix socket",
                        parsed ? "write, if they are " PARSED : "admin", t ? ", which token " : "", t ? t->name : "",
                        t ? " does not have" : "");
        return 403;
    }
    if (head->sized && !head->size) {
        profd_error_set(e, PROFD_MALFORMED, "the PUT has no body");
        return 400;
    }
    if (head->size > most) {
        profd_error_set(e, PROFD_TOO_LARGE, "the body has %llu bytes, at most %llu are taken over HTTP",
                        (unsigned long long)head->size, (unsigned long long)most);
        return 413;
    }
    return 0;
}

static void symbols_answer(void *context, enum profd_status status, const char *sentence)
{
    struct symbols_put *p = context;
    struct page page;

    if (status) {
        page_problem(&page, profd_status_http(status), status, sentence);
    } else {
        page_init(&page, 200, "application/json; charset=utf-8");
        page.cache_control = "no-store";
        document_write(json_pack("{s:s, s:b}", "build_id", p->id.text, "names", true), &page.body);
    }
    log_write(LOG_LEVEL_NOTICE, p->bytes ? "symbols of hosts" : NULL, "token %s sent symbols of build %s: %s", p->token,
              p->id.text, status ? sentence : "stored");
    reply_tell(p->exchange, &page);
    free(p->bytes);
    free(p);
}

static enum profd_status parsed_run(struct writer_job *job, struct store *store, struct profd_error *e)
{
    const struct symbols_put *p = container_of(job, struct symbols_put, job);
    const struct ingest_object given = {.received = loop_clock(),
                                        .build_id = p->id.text,
                                        .name = "a build's functions",
                                        .answer = p->bytes,
                                        .answer_size = p->size,
                                        .host = p->host.identity};
    TRY(writer_job_check_space(job, e));
    return ingest_object_store(store, &given, e);
}

static void parsed_done(struct writer_job *job)
{
    struct symbols_put *p = container_of(job, struct symbols_put, job);
    struct centre_counts *counts = intake_get_counts(p->service->intake);

    counts->objects_stored += !job->status;
    counts->objects_refused += job->status != PROFD_OK;
    symbols_answer(p, job->status, job->error.sentence);
}

static const struct writer_job_type parsed_type = {.run = parsed_run, .done = parsed_done, .changes_objects = true};

/* Parses the parameters of the target into a new block, which the caller frees, after an error, too. Only the named one
 * is allowed. */
static enum profd_status symbols_read_target(const char *target, const char *name, struct params **out,
                                             struct profd_error *e)
{
    const char *const allowed[] = {name, NULL};
    struct params *p = *out = malloc(sizeof *p);

    TRY(p ? params_parse(target, p, e) : profd_no_memory(e));
    return params_check(p, allowed, NULL, e);
}

/* Reads the file, and gives it to the writer. */
static enum profd_status parsed_put(struct symbols_put *p, const struct http_request *request,
                                    const struct store_token *t, struct profd_error *e)
{
    const off_t size = lseek(request->body, 0, SEEK_END);
    struct params *target;
    enum profd_status status = symbols_read_target(request->target, "host", &target, e);

    if (!status) {
        const char *host = params_find(target, "host"); /* only a token for several hosts needs it */

        status = tokens_find_host(t, host ? host : "", &p->host, e);
    }
    free(target);
    if (status) {
        return status;
    }
    p->size = size > 0 ? (size_t)size : 0;
    p->bytes = malloc(p->size + 1);
    TRY(p->bytes ? PROFD_OK : profd_no_memory(e));
    FAIL_IF(pread(request->body, p->bytes, p->size, 0) != (ssize_t)p->size, e, PROFD_IO,
            "the body of %zu bytes cannot be read", p->size);
    p->job.item.weight = p->size;
    return writer_submit(p->service->shared->writer, &p->job, &parsed_type, e);
}

void symbols_receive(const struct symbols_service *s, struct http_exchange *x, const struct http_request *request)
{
    const struct store_token *t =
        tokens_find(s->shared->tokens, request->token); /* else the request had been refused */
    struct symbols_put *p = calloc(1, sizeof *p);
    struct object_put put = {.fd = request->body, .name = "a file", .done = symbols_answer, .context = p};
    struct params *target = NULL;
    struct page page;
    struct profd_error e;
    enum profd_status status = PROFD_OK;

    if (!p || symbols_find_id(request->target, strcspn(request->target, "?"), &p->id, &e)) {
        status = profd_error_set(&e, PROFD_NO_MEMORY, "no memory for an executable");
        close(request->body);
    } else {
        p->service = s;
        p->exchange = x;
        memcpy(p->token, t->name, sizeof p->token);
        if (!strcmp(request->content_type, PARSED)) {
            status = parsed_put(p, request, t, &e);
            close(request->body);
        } else {
            put.tenant = t->all ? 0 : t->uid;
            put.build_id = p->id.text;
            status = symbols_read_target(request->target, "code", &target, &e);
            status = status ? status : params_parse_flag(target, "code", &put.code, &e);
            free(target);
            if (status) {
                close(request->body);
            } else {
                status = object_put(s->objects, &put, &e);
            }
        }
    }
    if (status) {
        if (p) {
            free(p->bytes);
        }
        free(p);
        page_problem(&page, profd_status_http(status), status, e.sentence);
        reply_tell(x, &page);
    }
}
