#include "profctl/run_delivery.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "profctl/profctl_ask.h"

#define ID_SIZE 160
#define QUESTION_MS 100  /* while the command waits for its signals */
#define NAMELESS_MAX 256 /* builds: their files are examined after one command */
#define CLOCKS_APART 5   /* seconds: the times that processes report are their own clock's */

/* Milliseconds of the monotonic clock. */
static int64_t ms_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static uint32_t ms_left(int64_t deadline)
{
    int64_t left = deadline - ms_now();
    return left > 0 ? (uint32_t)left : 0;
}

void run_delivery_close(struct run_delivery *d)
{
    profd_conn_close(d->conn);
    d->conn = NULL;
}

static void executable_refused(void *context, const struct profd_outcome *o)
{
    struct run_delivery *d = context;
    if (d->refused++ == 0) {
        (void)profd_error_set(&d->why, o->status, "%s: executable not stored: %s", o->name, o->sentence);
    }
}

enum profd_status run_delivery_open(struct run_delivery *d, struct profd_error *e)
{
    const struct profd_options o = {.name = "profctl run " PROFD_VERSION, .connect_ms = 200};
    *d = (struct run_delivery){.started = (int64_t)time(NULL)};
    enum profd_status status = profd_conn_open(&o, &d->conn, e);
    if (status == PROFD_OK && strncmp(profd_conn_server(d->conn), "unix:", 5) != 0) {
        status = profd_error_set(e, PROFD_USAGE, "%s answers queries only; profctl run requires a Unix socket",
                                 profd_conn_server(d->conn));
        run_delivery_close(d);
    }
    if (status == PROFD_OK) {
        profd_conn_get_refused(d->conn, &d->run, &d->refused_before);
        profd_conn_set_sink(d->conn, executable_refused, d);
    }
    return status;
}

/* True if the daemon says that it has names for the build; it is not asked long. */
static bool has_names(struct run_delivery *d, const char *id)
{
    struct ask_target target;
    struct answer build = {.whole = NULL};
    uint32_t patience = profd_conn_set_answer_ms(d->conn, QUESTION_MS);
    ask_target_init(&target, "/api/v1/builds/{}", id);
    bool known = ask_object(d->conn, &target, &build, NULL) == PROFD_OK && row_flag(build.whole, "symbols");
    (void)profd_conn_set_answer_ms(d->conn, patience);
    answer_free(&build);
    return known;
}

/* Queues the file as an executable that was not requested. False: it has no function names. */
static bool file_queue(struct run_delivery *d, const char *path)
{
    struct profd_executable *x;
    bool queued = false;
    if (profd_executable_open(path, &x, NULL) == PROFD_OK) {
        queued = profd_executable_has_names(x) && profd_conn_queue_executable(d->conn, x, NULL) == PROFD_OK;
        profd_executable_free(x);
    }
    d->names += queued;
    return queued;
}

void run_delivery_send_command(struct run_delivery *d, const char *path)
{
    char id[ID_SIZE];
    if (d->conn && profd_executable_read_id(path, id, sizeof id, NULL) == PROFD_OK && !has_names(d, id) &&
        file_queue(d, path)) {
        (void)profd_conn_flush(d->conn, NULL);
    }
}

/* Waits for all that was sent. A connection that is no more is made anew, once. */
static enum profd_status delivery_sync(struct run_delivery *d, int64_t deadline, struct profd_error *e)
{
    enum profd_status status = d->conn ? profd_conn_sync(d->conn, ms_left(deadline), e) : PROFD_UNAVAILABLE;
    if (status != PROFD_UNAVAILABLE && status != PROFD_STOPPING) {
        return status;
    }
    const struct run_delivery before = *d;
    run_delivery_close(d);
    status = run_delivery_open(d, e);
    d->started = before.started;
    d->names = before.names;
    d->run = before.run;
    d->refused_before = before.refused_before;
    return status == PROFD_OK ? profd_conn_sync(d->conn, ms_left(deadline), e) : status;
}

static int64_t time_of(const char *rfc3339)
{
    struct tm t = {.tm_sec = 0};
    return strptime(rfc3339, "%Y-%m-%dT%H:%M:%S", &t) ? (int64_t)timegm(&t) : 0;
}

/* Builds without names that were counted in since the command began: programs that it started, and the libraries of
 * all. */
static size_t nameless_send(struct run_delivery *d, json_t *builds)
{
    json_t *build;
    size_t sent = 0, tried = 0, i;
    char id[ID_SIZE];
    d->refused = 0; /* what is still without names is sent again */
    json_array_foreach(builds, i, build)
    {
        const char *path = row_text(build, "name");
        if (tried == NAMELESS_MAX || row_flag(build, "symbols") || path[0] != '/' ||
            time_of(row_text(build, "last_seen")) + CLOCKS_APART < d->started) {
            continue;
        }
        tried++;
        if (profd_executable_read_id(path, id, sizeof id, NULL) == PROFD_OK &&
            strcmp(id, row_text(build, "build_id")) == 0) {
            sent += file_queue(d, path);
        }
    }
    return sent;
}

/* What was seen without names, and can be named: sent, and waited for. */
static enum profd_status names_finish(struct run_delivery *d, int64_t deadline, struct profd_error *e)
{
    struct ask_target target;
    struct answer builds = {.whole = NULL};
    ask_target_init(&target, "/api/v1/builds", NULL);
    ask_target_add(&target, "limit", "1000");
    uint32_t left = ms_left(deadline);
    (void)profd_conn_set_answer_ms(d->conn, left ? left : 1);
    enum profd_status status = ask_rows(d->conn, &target, &builds, e);
    if (status == PROFD_OK && nameless_send(d, builds.rows)) {
        status = profd_conn_sync(d->conn, ms_left(deadline), e);
    }
    answer_free(&builds);
    return status;
}

/* An ACK of SYNC covers the processes that this run of the daemon has accepted. Checks whether there were others. */
static enum profd_status delivery_judge(const struct run_delivery *d, struct profd_error *e)
{
    uint64_t run, refused;
    profd_conn_get_refused(d->conn, &run, &refused);
    if (run == 0) {
        return profd_error_set(e, PROFD_UNAVAILABLE,
                               "%s is older than this profctl and does not say whether it accepted every process",
                               profd_conn_daemon(d->conn));
    }
    if (run != d->run) {
        return profd_error_set(e, PROFD_UNAVAILABLE,
                               "profd was restarted while the command ran, and does not know which processes ran "
                               "meanwhile");
    }
    if (refused != d->refused_before) {
        return profd_error_set(e, PROFD_UNAVAILABLE,
                               "profd refused %llu processes or connections of this user while the command ran; its "
                               "log says why",
                               (unsigned long long)(refused - d->refused_before));
    }
    return PROFD_OK;
}

enum profd_status run_delivery_finish(struct run_delivery *d, uint32_t wait_ms, struct profd_error *e)
{
    int64_t deadline = ms_now() + wait_ms;
    struct profd_error why = {""};
    enum profd_status status = delivery_sync(d, deadline, e);
    if (status != PROFD_OK) {
        return profd_error_wrap(e, status, "it is unknown whether all counts are stored");
    }
    enum profd_status judged = delivery_judge(d, &why);
    status = names_finish(d, deadline, e);
    if (judged != PROFD_OK) {
        *e = why;
        return profd_error_wrap(e, judged, "it is unknown whether all counts are stored");
    }
    return status == PROFD_OK
               ? status
               : profd_error_wrap(e, status, "all counts are stored, but some function names may be missing");
}
