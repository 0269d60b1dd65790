/* Stops the daemon: finishes what was received, refuses everything else, within 5 s. */
#include <stdlib.h>
#include <unistd.h>

#include "base/log.h"
#include "base/notify.h"
#include "server.h"
#include "writer/database.h"

#define STOP_MS 4000 /* then the loop ends even if connections are open */
#define LOOK_MS 10

static void server_close_storage(struct server *s)
{
    if (s->write_store) {
        database_note_end(s->config->state_dir, s->lock_fd, s->write_store, s->salt);
    }
    store_close(s->write_store);
    s->write_store = NULL;
}

void server_stop_look(void *context)
{
    struct server *s = context;

    struct http_server_counts http;
    struct conn_counts conns;

    conn_group_get_counts(s->conns, &conns);
    endpoints_get_http_counts(s->endpoints, &http);
    const bool idle = !conns.connections && !http.connections && !query_service_pending_http(s->queries) &&
                      !writer_pending(s->writer) && !query_service_pending(s->queries) &&
                      !object_service_pending(s->objects) && verifier_is_idle(s->verifier) && live_is_idle(s->live) &&
                      (!s->sealer || sealer_is_idle(s->sealer)) && (!s->mirror || mirror_is_idle(s->mirror));

    if (idle || loop_now() >= s->stop_deadline) {
        loop_stop(s->loop);
    } else {
        loop_timer_set(s->stopping_timer, LOOK_MS);
    }
}

void server_stop(struct server *s, int exit_status)
{
    if (s->stopping) {
        loop_stop(s->loop);
        return;
    }
    s->stopping = true;
    s->exit_status = exit_status;
    s->stop_deadline = loop_now() + STOP_MS;
    notify_send("STOPPING=1");
    log_write(LOG_LEVEL_NOTICE, NULL, "stopping");
    endpoints_close(s->endpoints);
    query_service_stop(s->queries);
    admin_service_stop(s->admin);
    file_check_stop(s->file_check);
    upkeep_job_stop(s->upkeep);
    if (s->sealer) {
        sealer_stop(s->sealer);
        fetcher_stop(s->fetcher);
    }
    if (s->mirror) {
        mirror_stop(s->mirror);
    }
    live_stop(s->live); /* before its connections close: that then says nothing about the processes */
    conn_group_drain(s->conns);
    /* Parsing executables may take longer than the time left, so only the running one may finish. */
    object_service_stop(s->objects);
    intake_flush(s->intake);
    watcher_stop(s->watcher);
    verifier_stop(s->verifier);
    endpoints_stop_http(s->endpoints);
    loop_timer_set(s->stopping_timer, LOOK_MS);
}

/* Everything that a job may still use is freed after the thread that ran it. */
static void server_end_threads(struct server *s)
{
    live_end_thread(s->live); /* what it has read waits for the writer */
    /* If the time ran out, jobs may be queued. Their answers could not be sent, so the clients repeat their requests.
     * The counts of a live process are read again by the next daemon; those of a process that has ended only if the
     * service manager stored its descriptor. */
    if (s->writer && s->queries) {
        query_service_drop_waiting(s->queries);
        writer_drop_waiting(s->writer);
    }
    if ((s->objects && object_service_pending(s->objects)) || (s->queries && query_service_pending(s->queries)) ||
        (s->verifier && !verifier_is_idle(s->verifier))) {
        /* A thread is blocked by a worker or a long report: the process exits without waiting. Committed data is safe.
         */
        writer_free(s->writer);
        server_close_storage(s);
        log_write(LOG_LEVEL_NOTICE, NULL, "stopped while an executable was read or a query was running");
        _exit(s->exit_status);
    }
    if (s->objects) {
        object_service_join(s->objects);
    }
    writer_free(s->writer);
    s->writer = NULL;
    if (s->queries) {
        query_service_join(s->queries);
    }
    sealer_free(s->sealer);
    mirror_free(s->mirror);
    verifier_free(s->verifier);
    if (s->admin) {
        admin_service_join(s->admin);
    }
    watcher_free(s->watcher);
}

void server_end(struct server *s)
{
    server_end_threads(s);
    intake_free(s->intake); /* answers what waits */
    foreign_names_free(s->foreign_names);
    endpoints_free(s->endpoints);
    live_free(s->live);
    s->live = NULL; /* connections that close hereafter are no longer counted */
    conn_group_free(s->conns);
    admin_service_free(s->admin);
    relay_service_done(&s->relay);
    object_service_free(s->objects);
    query_service_free(s->queries);
    fetcher_free(s->fetcher);
    pages_free(s->pages);
    tokens_done(&s->tokens);
    closer_free(s->closer);
    file_check_free(s->file_check);
    upkeep_job_free(s->upkeep);
    space_close(s->space);
    build_cache_free(s->builds);
    store_close(s->check_store);
    server_close_storage(s);
    health_free(s->health);
    loop_timer_free(s->ping);
    loop_timer_free(s->log_timer);
    loop_timer_free(s->stopping_timer);
    loop_free(s->loop);
    for (unsigned i = 0; i < LIMIT_WORKERS; i++) {
        broker_stop(s->brokers[i]);
    }
    run_times_beat(s->run_times, loop_clock());
    run_times_close(s->run_times);
    free(s->passed.kept);
    close(s->lock_fd); /* both may be -1 */
    close(s->directory_fd);
}
