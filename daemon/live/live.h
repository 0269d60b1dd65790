/* Live processes: each counts into a memory that it has handed over, which is read (harvested) at intervals and once
 * more when the process has ended. Everything here belongs to the loop's thread.
 *
 *   ATTACH → table → ready → read (harvesting thread) → stored (writer) → settled → ready again after the interval
 *
 * A process ends when its handle (pidfd) says so and its connection is closed. Each alone means "read it now" only: the
 * one, that a child has the memory, too; the other, that the daemon or the process closed it. */
#ifndef PROFD_LIVE_LIVE_H
#define PROFD_LIVE_LIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "core/arena.h"
#include "core/rows.h"
#include "ingest/ingest.h"
#include "live/live_counts.h"
#include "net/conn.h"
#include "net/listen.h"
#include "proto/limits.h"
#include "proto/status.h"
#include "store/store.h"

struct live;
struct live_process;
struct loop;
struct writer;

/* All parts outlive the live processes. */
struct live_config {
    struct loop *loop;
    struct conn_group *conns;
    struct writer *writer;
    const char *database;     /* path of the database, for live_new only */
    const char *links;        /* directory of the kubelet's links (proto/place.h) */
    int64_t harvest_interval; /* nanoseconds */
    size_t descriptors;       /* that connections and processes may hold together */
    uint64_t run;             /* the random number of this run of the daemon */
    bool managed;             /* a service manager keeps memories (base/notify.h) */

    /* Where the connection's live process is kept; NULL stands there at first. */
    struct live_process **(*get_slot)(struct conn *c);
    /* Executables that a harvest named and the store does not have. */
    void (*request_objects)(void *context, struct conn *c, const struct missing_build *missing, size_t n);
    /* Accept the connections that wait now: one of them may carry an ATTACH that a SYNC is to wait for. */
    void (*accept_waiting)(void *context);
    void *context;
};

enum profd_status live_new(const struct live_config *config, struct live **out, struct profd_error *e);
/* Takes back what the service manager kept, and frees the list. Before connections are accepted. */
void live_take_back(struct live *l, struct listen_kept *kept, size_t n);
/* Looks for processes of an earlier daemon that have not attached again, now and then every minute. */
void live_look_for_orphans(struct live *l);
/* Reads every process for the last time; new ones are refused. */
void live_stop(struct live *l);
bool live_is_idle(const struct live *l);
/* Ends the harvesting thread, while the writer still runs. Accepts NULL. */
void live_end_thread(struct live *l);
/* After the writer's thread, before the connections are freed. Accepts NULL. */
void live_free(struct live *l);

/* The interval between harvests, in nanoseconds, from now on. O(processes). */
void live_set_interval(struct live *l, int64_t interval);

/* ATTACH, for conn_handler; the context is the struct live. Answered when the store knows the process. */
enum profd_status live_attach(void *context, struct conn *c, struct conn_frame *f, struct profd_error *e);
/* The connection of the process ends; the process may live. */
void live_hang_up(struct live *l, struct live_process *p);

/* A SYNC of a user; embedded in what waits for it. */
struct live_sync {
    STAILQ_ENTRY(live_sync) next; /* live's */
    uint64_t sequence;            /* live's: everything that was pending by then */
    uint32_t uid;
    /* Once. OK: everything that a process of this user, ended by now, had counted is durable; IO: it cannot be stored;
     * STOPPING: the daemon ends, and the connections may be gone. */
    void (*granted)(struct live_sync *sync, enum profd_status status);
};
/* BUSY: too many wait; NO_MEMORY. Then granted is not called. */
enum profd_status live_sync(struct live *l, struct live_sync *sync, struct profd_error *e);
/* What a SYNC cannot vouch for. Counts a process of the user, or a connection that may have been of one, that was not
 * accepted; of every user if the user is not known (NULL). The entry of the user stays: 100 bytes for each of them. */
void live_count_refused(struct live *l, const uint32_t *uid);
/* The random number of this run of the daemon, and how many were counted for the user. */
void live_tell(const struct live *l, uint32_t uid, uint64_t *run, uint64_t *refused);
/* The store has failed: every SYNC that waits is granted with IO. */
void live_fail_syncs(struct live *l);

/* The processes that the asker may see, as rows in the arena. O(processes). */
enum profd_status live_list(const struct live *l, const struct store_scope *scope, int64_t now, struct arena *a,
                            struct process_row **rows, size_t *n, struct profd_error *e);
/* Which live processes are meant: one of the pids and instances, if any are given, with all of the labels. At least one
 * selector. */
enum live_selector_kind { LIVE_PID, LIVE_INSTANCE, LIVE_LABEL };
struct live_selector {
    enum live_selector_kind kind;
    const char *text; /* as it was given, borrowed */
    uint32_t pid;
    size_t name_size;  /* LABEL: bytes of the name that text begins with */
    const char *value; /* LABEL */
};
struct live_selection {
    bool pause; /* false: resume */
    size_t selector_count;
    struct live_selector selectors[LIMIT_ADMIN_ARGUMENTS];
    bool has_rate;
    uint32_t rate; /* ticks per second from now on, 0: as the process was started */
};

/* Pauses or resumes the processes that the request selects, those of the peer only unless it may administer; rows are
 * what was changed. NOT_FOUND, AMBIGUOUS. */
enum profd_status live_control(struct live *l, const struct peer *peer, const struct live_selection *selection,
                               int64_t now, struct arena *a, struct process_row **rows, size_t *n,
                               struct profd_error *e);
void live_get_counts(const struct live *l, struct live_counts *out);

#endif
