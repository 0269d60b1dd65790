/* The program profd: its options, its loop, and a restore. */
#include <malloc.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/config.h"
#include "base/log.h"
#include "base/notify.h"
#include "core/arena.h"
#include "proto/runtime.h"
#include "server.h"
#include "writer/database.h"
#include "writer/restore.h"

#define LOG_FLUSH_MS 10000 /* a kill is noticed to this precision (writer/upkeep_job.h), too */

static void server_on_signal(void *context, int number)
{
    struct server *s = context;

    if (number == SIGHUP) {
        struct config_change change;
        struct profd_error e;

        (void)server_reload(s, &change, &e); /* a failure is logged */
    } else {
        server_stop(s, 0);
    }
}

static void server_on_library_log(int severity, const char *text)
{
    log_write(severity >= 2 ? LOG_LEVEL_WARNING : LOG_LEVEL_DEBUG, "event library", "%s", text);
}

/* The watchdog is notified only if the writer has made progress or is idle. */
static void server_on_ping(void *context)
{
    struct server *s = context;
    const uint64_t batches = writer_batches(s->writer);

    if (batches != s->pinged_batches || !writer_pending(s->writer)) {
        notify_send("WATCHDOG=1");
    }
    s->pinged_batches = batches;
    loop_timer_set(s->ping, notify_watchdog_ms());
}

static void server_on_log_timer(void *context)
{
    struct server *s = context;
    struct conn_counts counts;
    struct http_server_counts http;

    log_flush();
    run_times_beat(s->run_times, loop_clock());

    /* A burst of uploads or answers fragments the heap. Free pages are returned to the kernel when the queues are
     * empty, and once more in the interval after: a connection's memory is freed after its last answer. */
    conn_group_get_counts(s->conns, &counts);
    endpoints_get_http_counts(s->endpoints, &http);
    if (counts.frames + http.bytes != s->handled) {
        s->handled = counts.frames + http.bytes;
        s->trims_due = 2;
    }
    if (s->trims_due > 0 && !writer_pending(s->writer)) {
        s->trims_due--;
        arena_trim();
        malloc_trim(0);
    }
    loop_timer_set(s->log_timer, LOG_FLUSH_MS);
}

static enum profd_status server_watch(struct server *s, struct profd_error *e)
{
    static const int signals[] = {SIGTERM, SIGINT, SIGHUP};
    enum profd_status status = PROFD_OK;

    for (size_t i = 0; i < sizeof signals / sizeof *signals && !status; i++) {
        status = loop_watch_signal(s->loop, signals[i], server_on_signal, s, e);
    }
    s->ping = loop_timer_new(s->loop, server_on_ping, s);
    s->log_timer = loop_timer_new(s->loop, server_on_log_timer, s);
    s->stopping_timer = loop_timer_new(s->loop, server_stop_look, s);
    if (!status && (!s->ping || !s->log_timer || !s->stopping_timer)) {
        status = profd_no_memory(e);
    }
    if (status) {
        return status;
    }
    if (notify_watchdog_ms()) {
        loop_timer_set(s->ping, notify_watchdog_ms());
    }
    loop_timer_set(s->log_timer, LOG_FLUSH_MS);
    return PROFD_OK;
}

/* Logs the addresses. */
static void server_announce(const struct server *s)
{
    const struct config *config = s->config;
    const uint16_t port = endpoints_get_http_port(s->endpoints);

    log_write(LOG_LEVEL_NOTICE, NULL, "profd %s: uploads and queries on %s, data in %s", PROFD_VERSION,
              endpoints_get_path(s->endpoints, ENDPOINT_UPLOAD) ? config->socket : "the socket passed in",
              config->state_dir);
    if (endpoints_get_path(s->endpoints, ENDPOINT_UPLOAD) && strcmp(config->socket, RUNTIME_SYSTEM_SOCKET) != 0 &&
        !access(RUNTIME_SYSTEM_SOCKET, F_OK)) {
        log_write(LOG_LEVEL_NOTICE, NULL,
                  "there is a daemon at " RUNTIME_SYSTEM_SOCKET ", which profctl and the programs ask first: set "
                  "PROFD_SOCKET=%s for them to ask this one",
                  config->socket);
    }
    if (endpoints_get_path(s->endpoints, ENDPOINT_HTTP)) {
        log_write(LOG_LEVEL_NOTICE, NULL, "HTTP on unix:%s", config->http_socket);
    }
    if (port) {
        log_write(LOG_LEVEL_NOTICE, NULL, "HTTP on loopback port %u%s", port,
                  config->http_open ? ", open to every local user" : "");
    }
}

/* Starts with a checked configuration, runs the loop until SIGTERM or SIGINT, and stops. Errors are those of the start.
 * *exit_status is set by a run that was started. */
static enum profd_status server_run(struct config *config, int argc, char *const argv[], int *exit_status,
                                    struct profd_error *e)
{
    struct server *s = calloc(1, sizeof *s);

    TRY(s ? PROFD_OK : profd_no_memory(e));
    s->config = config;
    s->argc = argc;
    s->argv = argv;
    s->lock_fd = s->directory_fd = -1;
    s->start = (double)loop_clock() / 1e9;
    s->managed = notify_open();
    loop_redirect_log(server_on_library_log);
    enum profd_status status = server_start(s, e);
    status = status ? status : server_watch(s, e);
    if (!status) {
        server_announce(s);
        notify_send("READY=1");
        loop_run(s->loop);
        *exit_status = s->exit_status;
    }
    server_end(s);
    free(s);
    return status;
}

static void server_on_restore_note(void *context, const char *sentence)
{
    (void)context;
    log_write(LOG_LEVEL_ERROR, NULL, "%s", sentence);
}

/* --restore FILE: offline, under the same lock as a running daemon. */
static enum profd_status server_restore(const struct config *config, struct profd_error *e)
{
    static const struct restore_engine engine = {store_sqlite_judge, store_sqlite_seal, store_sqlite_open_writer,
                                                 store_sqlite_check, store_sqlite_renew};
    const char *file = config->values[CONFIG_restore];
    bool restored = false;
    int lock, directory = -1;
    TRY(state_dir_lock(config->state_dir, &lock, &directory, e));
    umask(0077);
    enum profd_status status = restore_prepare(config->state_dir, file, &engine, server_on_restore_note, NULL, e);
    status = status ? status : server_finish_restore(config->state_dir, &restored, e);
    close(lock);
    close(directory);
    return status;
}

int main(int argc, char *argv[])
{
    struct config config;
    struct profd_error e = {""};
    bool run;
    int exit_status = 0;

    if (argc > 0 && !strcmp(argv[0], BROKER_NAME)) {
        broker_main();
    }
    enum profd_status status = config_start(OF_PROFD, argc, argv, &config, &run, &e);
    if (run) {
        status = config.values[CONFIG_restore] ? server_restore(&config, &e)
                                               : server_run(&config, argc, argv, &exit_status, &e);
    }
    config_done(&config);
    if (status) {
        log_write(LOG_LEVEL_ERROR, NULL, "%s", e.sentence);
        exit_status = profd_status_exit(status);
    }
    return exit_status;
}
