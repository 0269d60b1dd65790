/* The connection of profctl run to the daemon, beside the collector's: sends executables, and at the end waits until
 * all counts are stored. */
#ifndef PROFD_CLIENT_RUN_DELIVERY_H
#define PROFD_CLIENT_RUN_DELIVERY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "profd.h"

struct run_delivery {
    struct profd_conn *conn;      /* NULL: there is no daemon */
    int64_t started;              /* seconds since 1970 */
    uint64_t run, refused_before; /* as stated by the daemon when the command started (struct message_welcome) */
    size_t names;                 /* executables sent because the daemon had no names for them */
    size_t refused;               /* of the latest of these, those that it has not stored */
    struct profd_error why;       /* of the first of them, with its path */
};

/* Connects to the daemon that the collector will find ($PROFD_SOCKET or the default), within 200 ms. Fails as
 * profd_conn_open. */
enum profd_status run_delivery_open(struct run_delivery *d, struct profd_error *e);

/* Sends this executable, unless the daemon has its names already; does not wait for it to be
 * parsed. Scripts, files without names and what cannot be read are passed over: run_delivery_finish looks again. */
void run_delivery_send_command(struct run_delivery *d, const char *path);

/* After the command: waits at most wait_ms until all counts of ended processes are durable, and until the names of the
 * builds that ran meanwhile have been sent, if their files are still in place. If the daemon was restarted meanwhile,
 * it is asked again. Returns TIMEOUT, UNAVAILABLE, or the daemon's status. UNAVAILABLE also means that the daemon
 * cannot know whether it has all counts: since run_delivery_open it was restarted, or it refused a process or a
 * connection of this user. OK does not cover a process that found the daemon's queue of new connections full. */
enum profd_status run_delivery_finish(struct run_delivery *d, uint32_t wait_ms, struct profd_error *e);

/* Closes. */
void run_delivery_close(struct run_delivery *d);

#endif
