/* libprofd: send profiles to profd and ask it questions. profd delivers, sums and reports; see libprofd(3), profctl(1).
 *
 * Three layers, each usable without the one above it:
 *   profd_client    speaks the protocol between two byte buffers: no sockets, no clock, no blocking. For programs with
 * an event loop of their own. profd_conn      one connection and a clock: blocks, but never longer than it was told.
 *   profd_delivery  many uploads at once over one connection; what cannot be delivered now goes to the spool.
 *
 * Every fallible function returns enum profd_status (PROFD_OK is 0), leaves its results untouched on failure, and
 * writes one sentence naming the rule and the value to *e, which may be NULL. Objects belong to one thread at a time.
 * Nothing here starts a thread, installs a signal handler, prints, or raises SIGPIPE. Strings are UTF-8 and
 * NUL-terminated; times are nanoseconds since 1970-01-01 UTC. The ABI is not yet stable: the library's soname says 0.
 */
#ifndef PROFD_H
#define PROFD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/status.h" /* installed beside this file */

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* "0.1.0": of the library that runs, not of this header. */
const char *profd_version(void);

/* --- uploads: what one process counted since its previous one ------------------------------------------------ */

struct profd_upload;

/* Why counts may be less than what happened. None: every call and every tick was counted. */
enum profd_inexact {
    PROFD_INEXACT_THREADS_UNKNOWN = 1,   /* calls are lost when several threads make them */
    PROFD_INEXACT_CALLER_BUCKET = 2,     /* callers are rounded down to 16 bytes */
    PROFD_INEXACT_BINS_16_BIT = 4,       /* bins wrap at 65,535 */
    PROFD_INEXACT_CLOCK = 8,             /* the window is not known */
    PROFD_INEXACT_SATURATED = 16,        /* a sum reached its end */
    PROFD_INEXACT_LOST = 32,             /* losses were counted */
    PROFD_INEXACT_END_NOT_SEEN = 64,     /* the process ended while no daemon could read it */
    PROFD_INEXACT_SAMPLED = 128,         /* calls were sampled, not counted */
    PROFD_INEXACT_TICKS_OUTSIDE = 256,   /* ticks of code in no build were left out */
    PROFD_INEXACT_PAUSED = 512,          /* counting was switched off meanwhile */
    PROFD_INEXACT_LABEL_LEFT_OUT = 2048, /* a label broke the rules and was left out; counts are whole */
};

#define PROFD_NOWHERE UINT32_MAX /* build index of an address outside every known build */

/* An empty upload: no builds, no labels, processes_started 1, inexact 0, window unknown. */
enum profd_status profd_upload_new(struct profd_upload **out, struct profd_error *e);
/* Accepts NULL. */
void profd_upload_free(struct profd_upload *u);

/* Adds an ELF object by its build-id (hexadecimal, or "sha256-…") and the path it was loaded from; *index is its place.
 * The first is the program, the others follow in load order. REFUSED: bad or repeated id, name over 4,096 bytes. */
enum profd_status profd_upload_add_build(struct profd_upload *u, const char *build_id, const char *name,
                                         uint32_t *index, struct profd_error *e);
/* REFUSED unless name is [a-zA-Z_][a-zA-Z0-9_]* and does not begin with "__", value is UTF-8, there are at most 64 and
 * the name is new. TOO_LARGE for a name of more than 128 or a value of more than 1,024 bytes. */
enum profd_status profd_upload_add_label(struct profd_upload *u, const char *name, const char *value,
                                         struct profd_error *e);
/* True if the upload has a label of that name. */
bool profd_upload_has_label(const struct profd_upload *u, const char *name);
/* When it was counted; 0 for what is not known. */
void profd_upload_set_window(struct profd_upload *u, uint64_t start, uint64_t end);
/* How many builds were added, and the id and the name of one of them (index < count); they live as long as u. */
uint32_t profd_upload_build_count(const struct profd_upload *u);
const char *profd_upload_build_id(const struct profd_upload *u, uint32_t index);
const char *profd_upload_build_name(const struct profd_upload *u, uint32_t index);
/* A set of enum profd_inexact. */
void profd_upload_set_inexact(struct profd_upload *u, uint32_t bits);
/* 1 in a process's first upload, 0 in its later ones. */
void profd_upload_set_processes_started(struct profd_upload *u, uint32_t n);

/* A histogram: bin i covers [low + i·(high−low)/bins, low + (i+1)·(high−low)/bins), in link-time addresses of that
 * build. index[] ascends and ticks[] are not 0; both have used entries and are copied. rate is in ticks per second. */
struct profd_histogram {
    uint32_t build, bins, rate, used;
    uint64_t low, high;
    const uint32_t *index;
    const uint64_t *ticks;
};
enum profd_status profd_upload_add_histogram(struct profd_upload *u, const struct profd_histogram *h,
                                             struct profd_error *e);
/* count calls from address from (the call site or its return address) to an address inside the callee. */
struct profd_arc {
    uint32_t from_build, to_build;
    uint64_t from, to, calls;
};
/* Arcs keep the order they are added in, and may repeat. Amortized O(1). */
enum profd_status profd_upload_add_arc(struct profd_upload *u, const struct profd_arc *arc, struct profd_error *e);

/* --- executables ---------------------------------------------------------------------------------------------- */

struct profd_executable;

/* Opens and reads an ELF executable or shared object, and its separate debug file if .gnu_debuglink names one that
 * fits. NO_INPUT: cannot be opened; REFUSED: not a regular file; TOO_LARGE; MALFORMED: not ELF. */
enum profd_status profd_executable_open(const char *path, struct profd_executable **out, struct profd_error *e);
/* Accepts NULL. */
void profd_executable_free(struct profd_executable *x);
/* Both live as long as x. The path is absolute where that could be found out. */
const char *profd_executable_build_id(const struct profd_executable *x);
const char *profd_executable_path(const struct profd_executable *x);
/* False when neither it nor its debug file has function names. */
bool profd_executable_has_names(const struct profd_executable *x);

/* Only the build-id of a file, into id of at least 129 bytes. */
enum profd_status profd_executable_read_id(const char *path, char *id, size_t size, struct profd_error *e);

/* Reads a gmon.out of that executable into a new upload: its window ends at the file's modification time, and it is
 * marked inexact the three ways gmon.out is. MALFORMED: not a whole gmon.out, with the offset; WRONG_BUILD: of another
 * executable. */
enum profd_status profd_executable_import(const struct profd_executable *x, const char *gmon_path,
                                          struct profd_upload **out, struct profd_error *e);

/* --- the protocol without I/O ------------------------------------------------------------------------------- */

struct profd_client;

#define PROFD_SENDER_SIZE 12
/* Identifies an upload: the same id is counted once. sequence counts a sender's uploads from 1. */
struct profd_id {
    uint8_t sender[PROFD_SENDER_SIZE];
    uint32_t sequence;
};
/* A new sender: 48 bits of time in ms, 48 random bits; sequence 0, to be incremented before each upload. */
enum profd_status profd_id_make(struct profd_id *id, struct profd_error *e);

enum profd_event_kind {
    PROFD_EVENT_READY,       /* the daemon sent WELCOME; name is its name */
    PROFD_EVENT_ACK,         /* durable; duplicate if it had been there before */
    PROFD_EVENT_NACK,        /* status, sentence; retry: the same request may succeed after retry_after_ms */
    PROFD_EVENT_WANT_OBJECT, /* answer with profd_client_send_object or _decline: build_id, name, tag */
    PROFD_EVENT_REPLY,       /* piece of a query's answer; http_status, content_type, etag in the first; last */
    PROFD_EVENT_CLOSED,      /* the daemon gave up this connection: status, sentence. Nothing more is sent or read */
};

/* Pointers live until the next call of profd_client_next, profd_client_feed or profd_client_free. Strings are never
 * NULL. */
struct profd_event {
    enum profd_event_kind kind;
    uint32_t tag; /* of the request it answers */
    enum profd_status status;
    bool duplicate, retry, last;
    uint32_t retry_after_ms;
    int http_status;
    const char *sentence, *build_id, *name, *content_type, *etag;
    const void *body;
    size_t body_size;
    uint64_t done, total; /* of a long answer: how far it is; both 0 if nothing is said */
};

/* name ("myprogram 1.0") is shown in the daemon's logs. HELLO is queued. */
enum profd_status profd_client_new(const char *name, struct profd_client **out, struct profd_error *e);
/* Closes descriptors that were not sent. Accepts NULL. */
void profd_client_free(struct profd_client *c);

/* Passes n bytes received from the daemon, cut anywhere; all are consumed. On any status but PROFD_OK the daemon has
 * violated the protocol: close the connection. The status is permanent. Memory for payloads is allocated as bytes
 * arrive, not by the length in a header. */
enum profd_status profd_client_feed(struct profd_client *c, const void *bytes, size_t n, struct profd_error *e);
/* What goes out next: *n bytes at *bytes (0: nothing now), together with *fd_count descriptors (SCM_RIGHTS, at most 2,
 * with the first byte). Send a prefix of any length ≥ 1 and say so with profd_client_sent. */
void profd_client_output(const struct profd_client *c, const void **bytes, size_t *n, int fds[2], size_t *fd_count);
void profd_client_sent(struct profd_client *c, size_t n);
/* Takes the next event; false if there is none. */
bool profd_client_next(struct profd_client *c, struct profd_event *event);
/* Requests without their last answer. Send no more than the daemon's limit (256) at a time; it stops reading then. */
size_t profd_client_in_flight(const struct profd_client *c);

/* Queue requests; *tag (may be NULL) comes back in the answers. Anything may be queued before READY. */
enum profd_status profd_client_send_upload(struct profd_client *c, const struct profd_upload *u,
                                           const struct profd_id *id, uint32_t *tag, struct profd_error *e);
enum profd_status profd_client_send_query(struct profd_client *c, const char *target, const char *if_none_match,
                                          uint32_t *tag, struct profd_error *e);
/* An operator's verb: "delete" and a build-id, "verify", "backup" (profd-protocol(7)). Answered by REPLY or NACK. */
enum profd_status profd_client_send_admin(struct profd_client *c, const char *verb, const char *const *arguments,
                                          size_t n, uint32_t *tag, struct profd_error *e);
/* Offers an executable without a request (want NULL), or answers a WANT_OBJECT event. Answered by ACK or NACK. */
enum profd_status profd_client_send_object(struct profd_client *c, const struct profd_event *want,
                                           const struct profd_executable *x, uint32_t *tag, struct profd_error *e);
enum profd_status profd_client_send_decline(struct profd_client *c, const struct profd_event *want, const char *reason,
                                            struct profd_error *e);
/* ACK when everything sent before is durable and parsed. */
enum profd_status profd_client_send_sync(struct profd_client *c, uint32_t *tag, struct profd_error *e);

/* --- a connection that blocks, within limits -------------------------------------------------------------------- */

struct profd_conn;

/* What became of one upload, or of an executable. */
struct profd_outcome {
    const char *name;         /* as given; the file in the spool for one of an earlier run; an executable's path */
    enum profd_status status; /* PROFD_OK: durable in the daemon, or spooled */
    bool spooled;             /* kept for the next delivery; sentence says why */
    bool earlier;             /* came from the spool */
    bool executable;          /* concerns an executable that was sent and is not stored */
    bool duplicate;
    const char *sentence; /* "" if there is nothing to say */
};
typedef void (*profd_outcome_sink)(void *context, const struct profd_outcome *outcome);

/* Zero or NULL means the default. */
struct profd_options {
    const char *server; /* "unix:/path", a path, or "http://127.0.0.1:PORT" (queries only). Default: $PROFD_SOCKET (not
                         * in set-user-id programs), /run/profd/profd.sock, $XDG_RUNTIME_DIR/profd/profd.sock */
    const char *token_file; /* holds the bearer token of an http server */
    const char *name;       /* of this program */
    uint32_t connect_ms;    /* from connect to WELCOME; default 200 */
    uint32_t answer_ms;     /* without any byte from the daemon while an answer is due; default 10,000 */
};

/* Connects. UNAVAILABLE: no daemon. TIMEOUT. UNTRUSTED: the daemon runs neither as root, as profd nor as the current
 * user, or its uid is not mapped in this user namespace. USAGE: bad address (the path of a socket has at most 107
 * bytes). FORBIDDEN. */
enum profd_status profd_conn_open(const struct profd_options *o, struct profd_conn **out, struct profd_error *e);
/* Accepts NULL. Unanswered requests are dropped. */
void profd_conn_close(struct profd_conn *c);
/* "profd 0.1.0"; "" for an http server. */
const char *profd_conn_daemon(const struct profd_conn *c);
/* The address in use, as "unix:/path" or a URL. */
const char *profd_conn_server(const struct profd_conn *c);

/* Executables that WANT_OBJECT is answered with while one waits in the functions below. x stays the caller's. */
enum profd_status profd_conn_offer(struct profd_conn *c, const struct profd_executable *x, struct profd_error *e);
/* Sends and waits for the ACK. With a retryable status, try again later with the same id. */
enum profd_status profd_conn_upload(struct profd_conn *c, const struct profd_upload *u, const struct profd_id *id,
                                    struct profd_error *e);
/* Sends an executable that was not requested, and waits until its names are stored. */
enum profd_status profd_conn_send_executable(struct profd_conn *c, const struct profd_executable *x,
                                             struct profd_error *e);

/* Queues an executable that was not requested, and does not wait; x may be freed afterwards. It is sent by
 * profd_conn_flush or while another function waits. USAGE with an http server. */
enum profd_status profd_conn_queue_executable(struct profd_conn *c, const struct profd_executable *x,
                                              struct profd_error *e);
/* Executables that were sent without waiting for them and that the daemon does not store are reported to the sink, from
 * within the function that reads the daemon's answer. NULL: they are not reported. */
void profd_conn_set_sink(struct profd_conn *c, profd_outcome_sink sink, void *context);
/* Sends all that is queued. TIMEOUT: the daemon did not read it within answer_ms. USAGE with an http server. */
enum profd_status profd_conn_flush(struct profd_conn *c, struct profd_error *e);
/* Waits until all that was sent before is durable and parsed, at most wait_ms: TIMEOUT. USAGE with an http server. */
enum profd_status profd_conn_sync(struct profd_conn *c, uint32_t wait_ms, struct profd_error *e);
/* Of the latest profd_conn_open or profd_conn_sync: a random number of the daemon's run, and how many processes and
 * connections of this user it had refused by then (profd-protocol(7), SYNC). Both 0: an older daemon does not say. */
void profd_conn_get_refused(const struct profd_conn *c, uint64_t *run, uint64_t *refused);
/* Sets the limit that profd_options.answer_ms gave; returns the one before. 0 means the default. */
uint32_t profd_conn_set_answer_ms(struct profd_conn *c, uint32_t answer_ms);

struct profd_answer {
    int http_status;
    char content_type[128], etag[128];
    uint64_t done, total; /* profd_admin: how far the daemon is; both 0 if it does not say */
};
/* Called with each piece of a body; anything but PROFD_OK ends the query with that status. The answer is complete but
 * for the body at the first call; there is at least one call, perhaps with n = 0. */
typedef enum profd_status (*profd_sink)(void *context, const struct profd_answer *answer, const void *bytes, size_t n,
                                        struct profd_error *e);
/* A GET of the HTTP interface: target "/api/v1/builds?limit=5", if_none_match an ETag or NULL. PROFD_OK for any whole
 * answer: look at its http_status; from 400 on the body is a problem document (RFC 9457). */
enum profd_status profd_query(struct profd_conn *c, const char *target, const char *if_none_match, profd_sink sink,
                              void *context, struct profd_error *e);

/* An operator's verb. The sink is called, too, with n = 0 and a new answer->done while the daemon works; http_status is
 * 0 until the body begins. PROFD_OK: the answer is whole. FORBIDDEN: not root, the daemon's user or in the admin group.
 */
enum profd_status profd_admin(struct profd_conn *c, const char *verb, const char *const *arguments, size_t n,
                              profd_sink sink, void *context, struct profd_error *e);

/* --- delivery: pipelined, and spooled when there is no daemon ------------------------------------------------------
 */

struct profd_delivery;

/* Connects if it can and begins with what is in the spool, oldest first. No daemon is not a failure; a bad address is.
 */
enum profd_status profd_delivery_open(const struct profd_options *o, profd_outcome_sink sink, void *context,
                                      struct profd_delivery **out, struct profd_error *e);
/* As profd_conn_offer; x must live until profd_delivery_close. Spooled uploads remember its path. */
enum profd_status profd_delivery_offer(struct profd_delivery *d, const struct profd_executable *x,
                                       struct profd_error *e);
/* Sends u under a new id without waiting for its answer, unless too much waits already (memory is bounded). The outcome
 * comes to the sink, now or later; fails only when u itself cannot be sent. */
enum profd_status profd_delivery_upload(struct profd_delivery *d, const struct profd_upload *u, const char *name,
                                        struct profd_error *e);
/* Waits for all answers and for the executables asked for; what is left then goes to the spool. */
enum profd_status profd_delivery_finish(struct profd_delivery *d, struct profd_error *e);
/* Accepts NULL. Call profd_delivery_finish first. */
void profd_delivery_close(struct profd_delivery *d);

/* --- the spool: $PROFD_SPOOL, else /var/spool/profd for root, else $XDG_STATE_HOME/profd/spool -----------------------
 */

struct profd_spool_entry {
    const char *name;
    uint64_t size; /* bytes */
    uint64_t time; /* when it was written */
};
/* Lists the uploads that wait, oldest first. An absent spool is an empty one. */
enum profd_status profd_spool_list(void (*each)(void *context, const struct profd_spool_entry *entry), void *context,
                                   struct profd_error *e);
/* Its directory, or UNAVAILABLE where the environment gives none. */
enum profd_status profd_spool_directory(char *path, size_t size, struct profd_error *e);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
