#include "server.h"

#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "config.h"
#include "log.h"
#include "notify.h"
#include "server_parts.h"

#define LOG_FLUSH_MS 10000

int64_t server_clock(void)
{
    struct timespec t;

    clock_gettime(CLOCK_REALTIME, &t);
    return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

static void server_on_signal(void *context, int number)
{
    struct server *s = context;

    if (number == SIGHUP)
        log_write(LOG_LEVEL_NOTICE, "signal", "SIGHUP: the configuration is read at start only; restart to change it");
    else
        server_stop(s, 0);
}

static void server_on_library_log(int severity, const char *text)
{
    log_write(severity >= 2 ? LOG_LEVEL_WARNING : LOG_LEVEL_DEBUG, "event library", "%s", text);
}

/* The watchdog is told that we live only if the writer has moved or has nothing to do. */
static void server_on_ping(void *context)
{
    struct server *s = context;
    const uint64_t batches = work_batches(s->writer);

    if (batches != s->pinged_batches || !work_pending(s->writer))
        notify_send("WATCHDOG=1");
    s->pinged_batches = batches;
    loop_timer_set(s->ping, notify_watchdog_ms());
}

/* After a flood the free memory of thousands of uploads lies between what is still used: it goes back when nothing is
 * under way. */
static void server_give_back(struct server *s)
{
    struct conn_counts counts;

    conn_group_get_counts(s->conns, &counts);
    if (counts.frames == s->frames_at_trim || work_pending(s->writer))
        return;
    s->frames_at_trim = counts.frames;
    malloc_trim(0);
}

static void server_on_log_timer(void *context)
{
    struct server *s = context;

    log_flush();
    server_give_back(s);
    loop_timer_set(s->log_timer, LOG_FLUSH_MS);
}

static enum profd_status server_watch(struct server *s, struct profd_error *e)
{
    static const int signals[] = {SIGTERM, SIGINT, SIGHUP};
    enum profd_status status = PROFD_OK;

    for (size_t i = 0; i < sizeof signals / sizeof *signals && !status; i++)
        status = loop_watch_signal(s->loop, signals[i], server_on_signal, s, e);
    s->ping = loop_timer_new(s->loop, server_on_ping, s);
    s->log_timer = loop_timer_new(s->loop, server_on_log_timer, s);
    s->stopping_timer = loop_timer_new(s->loop, server_stop_look, s);
    if (!status && (!s->ping || !s->log_timer || !s->stopping_timer))
        status = profd_error_set(e, PROFD_NO_MEMORY, "no memory for timers");
    if (status)
        return status;
    if (notify_watchdog_ms())
        loop_timer_set(s->ping, notify_watchdog_ms());
    loop_timer_set(s->log_timer, LOG_FLUSH_MS);
    return PROFD_OK;
}

/* Says on the log where to knock. */
static void server_announce(const struct server *s)
{
    const struct config *config = s->config;

    log_write(LOG_LEVEL_NOTICE, NULL, "profd %s: uploads and queries on %s, data in %s", PROFD_VERSION,
              s->listeners[SERVER_UPLOAD].path ? config->socket : "the socket passed in", config->state_dir);
    if (s->listeners[SERVER_HTTP].path)
        log_write(LOG_LEVEL_NOTICE, NULL, "HTTP on unix:%s", config->http_socket);
    if (s->listeners[SERVER_HTTP_TCP].fd >= 0)
        log_write(LOG_LEVEL_NOTICE, NULL, "HTTP on loopback port %u%s", s->http_port,
                  config->http_open ? ", open to every local user" : "");
}

static void server_init(struct server *s, const struct config *config)
{
    s->config = config;
    s->lock_fd = -1;
    s->start = (double)server_clock() / 1e9;
    s->policy.own_uid = (uint32_t)geteuid();
    s->policy.has_read_group = config->has_read_group;
    s->policy.read_group = config->read_group;
    s->policy.has_admin_group = config->has_admin_group;
    s->policy.admin_group = config->admin_group;
    for (int i = 0; i < SERVER_DOORS; i++)
        s->listeners[i] = (struct server_listener){.server = s, .door = (enum server_door)i, .fd = -1};
    s->managed = notify_open();
    loop_redirect_log(server_on_library_log);
}

enum profd_status server_run(const struct config *config, int *exit_status, struct profd_error *e)
{
    struct server *s = calloc(1, sizeof *s);
    enum profd_status status;

    if (!s)
        return profd_error_set(e, PROFD_NO_MEMORY, "no memory for the server");
    server_init(s, config);
    status = server_start(s, e);
    if (!status)
        status = server_watch(s, e);
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

int server_main(int argc, char *argv[])
{
    struct config config;
    struct profd_error e = {""};
    enum profd_status status;
    int exit_status = 0;

    memset(&config, 0, sizeof config);
    status = config_load(argc, argv, &config, &e);
    if (!status && config.values[CONFIG_help]) {
        config_print_help();
    } else if (!status && config.values[CONFIG_version]) {
        printf("profd %s\n", PROFD_VERSION);
    } else if (!status) {
        log_open(config.log_level);
        status = config.values[CONFIG_restore] ? server_restore(&config, &e) : server_run(&config, &exit_status, &e);
    } else {
        log_open(LOG_LEVEL_ERROR);
    }
    config_done(&config);
    if (status) {
        log_write(LOG_LEVEL_ERROR, NULL, "%s", e.sentence);
        exit_status = profd_status_exit(status);
    }
    return exit_status;
}
