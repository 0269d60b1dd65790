#include "client/run_delivery.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "client/conn.h"
#include "client/profctl_ask.h"
#include "client/profctl_rows.h"

#define ID_SIZE 160
#define QUESTION_MS 100  /* while the command waits for its signals */
#define NAMELESS_MAX 256 /* builds whose files are looked at after one command */
#define CLOCKS_APART 5   /* seconds: the times that processes report are their own clock's */

void run_delivery_close(struct run_delivery *d)
{
    profd_conn_close(d->conn);
    d->conn = NULL;
}

enum profd_status run_delivery_open(struct run_delivery *d, struct profd_error *e)
{
    const struct profd_options o = {.name = "profctl run " PROFD_VERSION, .connect_ms = 200};
    *d = (struct run_delivery){.started = (int64_t)time(NULL)};
    enum profd_status status = profd_conn_open(&o, &d->conn, e);
    if (status == PROFD_OK && !d->conn->client) {
        status = profd_error_set(e, PROFD_USAGE, "%s answers queries only; processes count for a Unix socket",
                                 d->conn->address.text);
        run_delivery_close(d);
    }
    return status;
}

bool run_delivery_find_command(const char *name, char out[RUN_PATH_SIZE])
{
    const char *folder = getenv("PATH");
    if (strchr(name, '/')) {
        return snprintf(out, RUN_PATH_SIZE, "%s", name) < RUN_PATH_SIZE;
    }
    for (folder = folder ? folder : "/bin:/usr/bin"; folder; folder = *folder == ':' ? folder + 1 : NULL) {
        size_t n = strcspn(folder, ":");
        int written =
            snprintf(out, RUN_PATH_SIZE, "%.*s%s%s", (int)(n < RUN_PATH_SIZE ? n : 0), folder, n ? "/" : "", name);
        if (written > 0 && written < RUN_PATH_SIZE && access(out, X_OK) == 0) {
            return true;
        }
        folder += n;
    }
    return false;
}

/* True if the daemon says that it has names for the build; it is not asked long. */
static bool has_names(struct run_delivery *d, const char *id)
{
    struct ask_target target;
    struct rows *build = NULL;
    uint32_t patience = d->conn->answer_ms;
    d->conn->answer_ms = QUESTION_MS;
    ask_target_init(&target, "/api/v1/builds");
    ask_target_add_segment(&target, id);
    bool known = rows_read_object(d->conn, &target, &build, NULL) == PROFD_OK && rows_flag(build, 0, "symbols");
    d->conn->answer_ms = patience;
    rows_free(build);
    return known;
}

/* Queues the file as an executable that nobody asked for. False: it has nothing to tell. */
static bool file_queue(struct run_delivery *d, const char *path)
{
    struct profd_executable *x;
    bool queued = false;
    if (profd_executable_open(path, &x, NULL) == PROFD_OK) {
        queued =
            profd_executable_has_names(x) && profd_client_send_object(d->conn->client, NULL, x, NULL, NULL) == PROFD_OK;
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
        (void)conn_flush(d->conn, NULL);
    }
}

/* Waits for all that was sent. A connection that is no more is made anew, once. */
static enum profd_status delivery_sync(struct run_delivery *d, int64_t deadline, struct profd_error *e)
{
    enum profd_status status = d->conn ? conn_sync(d->conn, deadline, e) : PROFD_UNAVAILABLE;
    if (status != PROFD_UNAVAILABLE && status != PROFD_STOPPING) {
        return status;
    }
    int64_t started = d->started;
    size_t names = d->names;
    run_delivery_close(d);
    status = run_delivery_open(d, e);
    d->started = started;
    d->names = names;
    return status == PROFD_OK ? conn_sync(d->conn, deadline, e) : status;
}

static int64_t time_of(const char *rfc3339)
{
    struct tm t = {.tm_sec = 0};
    return strptime(rfc3339, "%Y-%m-%dT%H:%M:%S", &t) ? (int64_t)timegm(&t) : 0;
}

/* Builds without names that were counted in since the command began: programs that it started, and the libraries of
 * all. */
static size_t nameless_send(struct run_delivery *d, const struct rows *builds)
{
    size_t sent = 0, tried = 0;
    char id[ID_SIZE];
    for (size_t i = 0; i < rows_count(builds) && tried < NAMELESS_MAX; i++) {
        const char *path = rows_text(builds, i, "name");
        if (rows_flag(builds, i, "symbols") || path[0] != '/' ||
            time_of(rows_text(builds, i, "last_seen")) + CLOCKS_APART < d->started) {
            continue;
        }
        tried++;
        if (profd_executable_read_id(path, id, sizeof id, NULL) == PROFD_OK &&
            strcmp(id, rows_text(builds, i, "build_id")) == 0) {
            sent += file_queue(d, path);
        }
    }
    return sent;
}

/* What was seen without names, and can be named: sent, and waited for. */
static enum profd_status names_finish(struct run_delivery *d, int64_t deadline, struct profd_error *e)
{
    struct ask_target target;
    struct rows *builds = NULL;
    int64_t left = deadline - conn_clock();
    ask_target_init(&target, "/api/v1/builds");
    ask_target_add(&target, "limit", "1000");
    d->conn->answer_ms = left > 1 ? (uint32_t)left : 1;
    enum profd_status status = rows_read(d->conn, &target, &builds, e);
    if (status == PROFD_OK && nameless_send(d, builds)) {
        status = conn_sync(d->conn, deadline, e);
    }
    rows_free(builds);
    return status;
}

enum profd_status run_delivery_finish(struct run_delivery *d, uint32_t wait_ms, struct profd_error *e)
{
    int64_t deadline = conn_clock() + wait_ms;
    enum profd_status status = delivery_sync(d, deadline, e);
    if (status != PROFD_OK) {
        return profd_error_wrap(e, status, "not sure that all counts are stored");
    }
    status = names_finish(d, deadline, e);
    return status == PROFD_OK ? status
                              : profd_error_wrap(e, status, "all counts are stored, but perhaps not all names");
}
