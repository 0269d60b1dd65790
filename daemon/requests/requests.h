/* What all requests share: sessions of connections, SYNC, replies, and the table of message types. */
#ifndef PROFD_REQUESTS_REQUESTS_H
#define PROFD_REQUESTS_REQUESTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/buffer.h"
#include "core/coding.h"
#include "net/conn.h"
#include "net/http.h"
#include "proto/buildid.h"
#include "proto/message.h"
#include "proto/status.h"

struct live;
struct loop;
struct tokens;
struct writer;

/* What the services share. It outlives them, the connections and the threads. */
struct shared {
    struct loop *loop;
    struct conn_group *conns;
    struct live *live;
    struct writer *writer;
    struct tokens *tokens;           /* as HTTP admits them */
    const char *database;            /* path */
    void (*no_space)(void *context); /* an upload was refused because the disk is full */
    void *context;
    uint64_t reply_bytes; /* of answers that readers have not taken yet */
};

/* A session is the state of a connection: the jobs that a SYNC waits for, and the executables that were asked for. */

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

/* SYNC: acknowledged when every earlier request of its connection has been answered, and when everything that a live
 * process of its user, ended by now, had counted is durable. NACK: a client's complaint, for the log. */

/* For conn_handler; the context is a struct shared. */
enum profd_status sync_receive(void *context, struct conn *c, struct conn_frame *f, struct profd_error *e);
enum profd_status sync_receive_nack(void *context, struct conn *c, struct conn_frame *f, struct profd_error *e);

/* Ends a job of the connection's session and acknowledges the SYNCs that waited for it. */
void sync_end_job(const struct shared *shared, struct conn *c, uint64_t job);

/* A request of a connection until a job has answered it. */
struct caller {
    conn_id conn;
    uint32_t tag;
    uint64_t job; /* of the session */
};
/* The job begins: it was handed over. */
void caller_begin(struct caller *r, struct conn *c, uint32_t tag);
/* The job ends: answers with m, or after an error by NACK, and acknowledges the SYNCs that waited. Nothing is sent if
 * the connection is closed. retry_after_ms as in conn_nack. */
void caller_answer(const struct shared *shared, const struct caller *r, const struct message *m,
                   enum profd_status status, const char *sentence, uint32_t retry_after_ms);
/* The status of a job that the store could not carry out. A damaged store becomes IO: what was sent is not its cause,
 * and the sender must keep it. */
enum profd_status caller_status(enum profd_status status);

/* An answer, which HTTP or the Unix socket sends. The Unix socket sends REPLY frames; each is made when the client has
 * read the frames before it. */

struct page {
    int status;                                     /* of HTTP */
    const char *content_type, *cache_control, *csp; /* csp NULL: the strictest */
    const char *etag, *exact;                       /* exact: NULL or as in struct query_answer */
    enum coding coding;
    bool negotiated; /* as in struct http_answer */
    char tag[80];    /* where etag may point to */
    uint32_t retry_after_ms;
    struct buffer body; /* the owner of the page ends it by buffer_done */
};

/* An empty body of at most 1 MiB, not to be stored. */
void page_init(struct page *page, int status, const char *content_type);
/* A problem document (RFC 9457). */
void page_problem(struct page *page, int http_status, enum profd_status code, const char *detail);

/* Answers over HTTP. Frees the page's body. */
void reply_tell(struct http_exchange *x, struct page *page);
/* Takes over the body of the page. A body that has failed is answered by a NACK, NO_MEMORY. */
void reply_send(struct shared *shared, struct conn *c, uint32_t tag, const struct page *page);

/* Decodes the body of a frame. Inflates a compressed one to at most LIMIT_FRAME_SMALL bytes. On OK the caller must
 * call message_done. */
enum profd_status body_decode(const struct conn_frame *f, struct message *m, struct profd_error *e);

/* Checks that a text is printable ASCII without spaces and shorter than most bytes. It may be empty. MALFORMED; what is
 * the subject of the sentence. */
enum profd_status body_check_text(const char *what, const char *text, size_t most, struct profd_error *e);

/* The message types that an open connection may send: one table, which the daemon and the tests of requests use. */

struct admin_service;
struct object_service;
struct query_service;
struct relay_service;
struct process_uploads;

#define HANDLERS_COUNT 11 /* types that clients send */

/* The services that answer the types. All outlive the connections. */
struct handlers_services {
    struct process_uploads *uploads;
    struct object_service *objects;
    struct query_service *queries;
    struct shared *shared;
    struct admin_service *admin;
    struct live *live;
    struct relay_service *relay;
};

/* Fills the table for conn_config. */
void handlers_fill(const struct handlers_services *s, struct conn_handler out[HANDLERS_COUNT]);

#endif
