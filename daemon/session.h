/* What the server remembers of a connection: which answers a SYNC waits for, and which executables were asked for. */
#ifndef PROFD_DAEMON_SESSION_H
#define PROFD_DAEMON_SESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/buildid.h"

struct session;

/* NULL when out of memory. */
struct session *session_new(void);
void session_free(struct session *s);

/* A job of the connection begins; the number is given back to session_end. */
uint64_t session_begin(struct session *s);
void session_end(struct session *s, uint64_t job);

/* The same for a job without which a SYNC behind it cannot be granted. */
void session_fail(struct session *s, uint64_t job);

/* A SYNC arrived: it is due when every job begun before it has ended. False when out of memory. */
bool session_sync(struct session *s, uint32_t tag);
/* Takes out a SYNC that is due; call until false. failed: one of its jobs ended by session_fail. */
bool session_take_due(struct session *s, uint32_t *tag, bool *failed);

/* The live process whose connection this is; NULL for others. */
struct server_attached;
void session_set_attached(struct session *s, struct server_attached *attached);
struct server_attached *session_get_attached(const struct session *s);

/* True the first time for a build-id: ask the client for it. At most 4,096 are remembered, then none is asked. O(log
 * n). */
bool session_ask(struct session *s, const struct buildid *id);

#endif
