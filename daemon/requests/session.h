/* What is remembered of a connection: which answers a SYNC waits for, and which executables were asked for. */
#ifndef PROFD_REQUESTS_SESSION_H
#define PROFD_REQUESTS_SESSION_H

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

/* A SYNC was received: it is granted when every job begun before it has ended. False if out of memory. */
bool session_sync(struct session *s, uint32_t tag);
/* Removes a SYNC that can be answered; call it until it returns false. failed: one of its jobs ended with session_fail.
 */
bool session_take_granted(struct session *s, uint32_t *tag, bool *failed);

/* The place of the live process of this connection; NULL stands there if there is none. Not read here. */
struct live_process;
struct live_process **session_get_process(struct session *s);

/* True the first time for a build-id: the caller must then request it. At most 4,096 are remembered; beyond that none
 * is requested. O(log n). */
bool session_ask(struct session *s, const struct buildid *id);
/* The client has sent it, and the daemon has its names: if they are deleted, session_ask is true again. O(log n). */
void session_answered(struct session *s, const struct buildid *id);

#endif
