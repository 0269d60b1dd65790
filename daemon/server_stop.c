/* The end: what was received is finished, everything else is refused, and nothing takes longer than 5 s. */
#include <stdlib.h>
#include <unistd.h>

#include "log.h"
#include "notify.h"
#include "server_attach.h"
#include "server_parts.h"
#include "server_web_coded.h"
#include "server_upkeep.h"

#define STOP_MS 4000 /* then the loop ends with what is still open */
#define LOOK_MS 10

static bool server_is_idle(const struct server *s)
{
    struct conn_counts conns;
    size_t http = 0;

    conn_group_get_counts(s->conns, &conns);
    for (int i = SERVER_HTTP; i < SERVER_DOORS; i++) {
        struct http_door_counts counts = {.connections = 0};

        if (s->doors[i])
            http_door_get_counts(s->doors[i], &counts);
        http += counts.connections;
    }
    return !conns.connections && !http && !s->http_pending && !work_pending(s->writer) && !work_pending(s->readers) &&
           !work_pending(s->objects) && server_scrub_is_idle(s) && server_attach_is_idle(s);
}

void server_stop_look(void *context)
{
    struct server *s = context;

    if (server_is_idle(s) || loop_now() >= s->stop_deadline)
        loop_stop(s->loop);
    else
        loop_timer_set(s->stopping_timer, LOOK_MS);
}

void server_stop(struct server *s, int exit_status)
{
    if (s->stopping) {
        loop_stop(s->loop); /* said twice: at once */
        return;
    }
    s->stopping = true;
    s->exit_status = exit_status;
    s->stop_deadline = loop_now() + STOP_MS;
    notify_send("STOPPING=1");
    log_write(LOG_LEVEL_NOTICE, NULL, "stopping");
    server_close_listeners(s);
    conn_group_drain(s->conns);
    server_attach_stop(s);
    /* Reading an executable may take longer than is left: only the one at hand may finish. */
    work_drop(s->objects, server_object_drop, s);
    server_scrub_stop(s);
    for (int i = SERVER_HTTP; i < SERVER_DOORS; i++)
        if (s->doors[i])
            http_door_stop(s->doors[i]);
    loop_timer_set(s->stopping_timer, LOOK_MS);
}

/* Everything a job may still need goes after the thread that ran it. */
static void server_end_threads(struct server *s)
{
    server_attach_end_thread(s); /* what it has read waits for the writer */
    /* After a stop that ran out of time something may wait: nobody would hear its answer, and its sender asks again.
     * What was read of a live process is read again by the next daemon; of one that has ended, if the service manager
     * keeps its memory. */
    if (s->writer && s->readers) {
        work_drop(s->readers, server_query_drop, s);
        work_drop(s->writer, server_writer_drop, s);
    }
    if ((s->objects && work_pending(s->objects)) || (s->readers && work_pending(s->readers))) {
        /* Stuck in the sandbox, or in a report that takes a minute: the process ends without waiting for it. What is
         * committed stays. */
        work_free(s->writer);
        store_close(s->write_store);
        log_write(LOG_LEVEL_NOTICE, NULL, "stopped while an executable was being read or a question answered");
        _exit(s->exit_status);
    }
    work_free(s->objects);
    work_free(s->writer);
    work_free(s->readers);
    server_scrub_end(s);
    s->objects = s->writer = s->readers = NULL;
}

void server_end(struct server *s)
{
    server_close_listeners(s);
    server_end_threads(s);
    for (int i = SERVER_HTTP; i < SERVER_DOORS; i++)
        if (s->doors[i])
            http_door_free(s->doors[i]);
    conn_group_free(s->conns);
    s->conns = NULL; /* what follows gives back its share of descriptors only while there is somebody to share with */
    server_admin_end(s);
    server_attach_end(s);
    server_upkeep_end(s);
    closer_free(s->closer);
    for (unsigned i = 0; i < SERVER_READERS; i++)
        store_close(s->read_stores[i]);
    query_cache_free(s->cache);
    lock_free(s->cache_lock);
    query_answers_free(s->answers);
    lock_free(s->answers_lock);
    server_web_coded_free(s->web);
    store_close(s->object_store);
    ingest_checker_free(s->checker);
    store_close(s->check_store);
    store_close(s->write_store);
    loop_timer_free(s->ping);
    loop_timer_free(s->log_timer);
    loop_timer_free(s->stopping_timer);
    loop_free(s->loop);
    broker_stop(s->broker);
    if (s->lock_fd >= 0)
        close(s->lock_fd);
}
