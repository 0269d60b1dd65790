/* The daemon's components, wired together. For daemon.c and server*.c only: the components know one another by their
 * headers and by callbacks, and none knows the server. */
#ifndef PROFD_DAEMON_SERVER_H
#define PROFD_DAEMON_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clickhouse_address.h"
#include "base/config.h"
#include "elf/broker.h"
#include "ingest/ingest.h"
#include "live/live.h"
#include "net/closer.h"
#include "net/conn.h"
#include "net/endpoints.h"
#include "net/listen.h"
#include "net/loop.h"
#include "proto/limits.h"
#include "requests/push.h"
#include "requests/admin.h"
#include "requests/intake.h"
#include "requests/pages.h"
#include "requests/queries.h"
#include "requests/relay.h"
#include "requests/requests.h"
#include "requests/symbols.h"
#include "requests/tokens.h"
#include "requests/uploads.h"
#include "requests/watcher.h"
#include "store/store.h"
#include "tier/fetch.h"
#include "tier/mirror.h"
#include "writer/health.h"
#include "writer/upkeep_job.h"
#include "writer/verifier.h"
#include "writer/writer.h"

#define SERVER_POSTS 4u /* paths that take a POST */

/* Components stand in the order in which they are made. */
struct server {
    struct config *config;
    int argc; /* of the start */
    char *const *argv;
    bool managed;  /* there is a service manager */
    double start;  /* seconds since the epoch */
    uint64_t run;  /* store_set_run */
    uint64_t salt; /* store_set_salt */
    struct listen_passed passed;
    struct broker *brokers[LIMIT_WORKERS];
    struct loop *loop;
    struct loop_timer *ping, *stopping_timer, *log_timer;
    int lock_fd, directory_fd; /* of the lock and of the state directory, both locked; −1: not */
    char path[4096];           /* of the database */

    struct run_times *run_times;
    struct space *space;
    struct store *write_store, *check_store;
    struct build_cache *builds; /* that uploads are checked against */
    struct health *health;
    struct writer *writer;
    struct file_check *file_check;
    struct upkeep_job *upkeep;
    struct verifier *verifier;
    struct fetcher *fetcher; /* NULL: there is no tier */
    struct sealer *sealer;
    struct mirror *mirror;

    struct closer *closer;
    struct conn_handler handlers[HANDLERS_COUNT];
    struct conn_group *conns;
    struct shared shared;
    struct live *live;
    struct pages *pages;
    struct tokens tokens;
    struct symbols_service symbols;
    struct object_service *objects;
    struct process_uploads uploads;
    struct query_service *queries;
    struct watcher *watcher;
    struct clickhouse_address tier; /* if one is configured */
    struct admin_service *admin;
    struct relay_service relay;
    struct store_centre was; /* the centre in the database at the start */
    struct intake *intake;
    struct host_batches batches;
    struct foreign_names *foreign_names;
    struct push_service pushes;
    struct post_route posts[SERVER_POSTS];
    struct endpoints *endpoints;

    uint64_t pinged_batches;
    uint64_t handled;   /* frames, and bytes of HTTP answers, up to the last interval */
    unsigned trims_due; /* of the heap */
    bool stopping;
    bool read_failed;       /* a reader met damage or an input/output error */
    uint64_t stop_deadline; /* ms of loop_now */
    int exit_status;
};

/* server_start.c: makes everything. On failure server_end frees what was made. */
enum profd_status server_start(struct server *s, struct profd_error *e);
/* Finishes a restore that was interrupted after its point of no return. The caller holds the lock. */
enum profd_status server_finish_restore(const char *state_dir, bool *restored, struct profd_error *e);

/* server_reload.c: the components' parts of the configuration, and its reload. */
struct store_policy server_get_policy(const struct config *c);
struct pages_setup server_get_setup(const struct config *c);
struct store_detail server_get_detail(const struct config *c);
enum profd_status server_make_watcher(struct server *s, struct profd_error *e);
struct endpoints_access server_get_access(const struct config *c);
/* Reads the configuration again, and changes what can be changed. On an error nothing has changed. Logs what it did. */
enum profd_status server_reload(struct server *s, struct config_change *change, struct profd_error *e);

/* server_stop.c */
/* Begins to stop: received requests are finished first. A second call ends the loop at once. */
void server_stop(struct server *s, int exit_status);
/* The timer of a stop: ends the loop when everything is finished. */
void server_stop_look(void *context);
/* Frees everything. May not return if a worker is stuck: the process ends then. */
void server_end(struct server *s);

#endif
