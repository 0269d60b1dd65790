/* libprofd: sends profiles to profd and queries its reports; see libprofd(3).
 *
 * Three layers, each usable without the next one:
 *
 *   - profd_client converts between requests, events and bytes. It has no sockets, no clock and does not block. It is
 *     for programs with their own event loop.
 *   - profd_conn is one connection. Its functions block, at most for the times in struct profd_options.
 *   - profd_delivery sends many uploads over one connection. Uploads that cannot be delivered go to the spool.
 *
 * Every function that can fail returns enum profd_status (PROFD_OK is 0). If it fails, its results are unchanged, and
 * it writes one sentence with the rule and the value to *e. e may be NULL. Every such function may return NO_MEMORY.
 * An object may be used by one thread at a time. No function starts a thread, installs a signal handler, prints, or
 * raises SIGPIPE. Strings are UTF-8 and NUL-terminated. Times are nanoseconds since 1970-01-01 UTC. The ABI is not yet
 * stable: the version in the soname is 0. */
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

/* Version of the library in use, for example "1.0.0". It may differ from the version of this header. Static. */
const char *profd_version(void);

/* --- uploads: what one process counted since its previous upload ------------------------------------------------ */

struct profd_upload;

/* Reasons why counts are not exact. Without any, every call and every tick was counted. */
enum profd_inexact {
    PROFD_INEXACT_THREADS_UNKNOWN = 1,     /* calls of several threads may have been lost */
    PROFD_INEXACT_CALLER_BUCKET = 2,       /* callers are rounded down to 16 bytes */
    PROFD_INEXACT_BINS_16_BIT = 4,         /* bins wrap at 65,535 */
    PROFD_INEXACT_CLOCK = 8,               /* the window is not known */
    PROFD_INEXACT_SATURATED = 16,          /* a sum reached 2^63-1 and is larger */
    PROFD_INEXACT_CALLS_LOST = 32,         /* calls were lost */
    PROFD_INEXACT_TICKS_LOST = 262144,     /* ticks were lost */
    PROFD_INEXACT_END_NOT_SEEN = 64,       /* the end of the process was not seen */
    PROFD_INEXACT_SAMPLED = 128,           /* calls were sampled, not counted */
    PROFD_INEXACT_TICKS_OUTSIDE = 256,     /* ticks of code in no build were left out */
    PROFD_INEXACT_PAUSED = 512,            /* counting was switched off meanwhile */
    PROFD_INEXACT_LABEL_LEFT_OUT = 2048,   /* a label was invalid and was left out; counts are complete */
    PROFD_INEXACT_SHARED_BINS = 4096,      /* some ticks were shared between neighbouring functions by an estimate */
    PROFD_INEXACT_LEFT_OUT = 131072,       /* calls into some functions were not counted, on request */
    PROFD_INEXACT_AMBIGUOUS_NAMES = 65536, /* functions of one name could not be told apart; the first has all counts */
};

#define PROFD_NOWHERE UINT32_MAX /* build index of an address outside every known build */

/* Creates an upload without builds, labels and counts: processes_started 1, inexact 0, window unknown. Free it with
 * profd_upload_free. */
enum profd_status profd_upload_new(struct profd_upload **out, struct profd_error *e);
/* Accepts NULL. */
void profd_upload_free(struct profd_upload *u);

/* Adds an ELF object by its build-id (hexadecimal, or "sha256-…") and the path from which it was loaded. Both are
 * copied. *index (from 0) identifies it in histograms and arcs. Add the program first, the others in load order.
 * REFUSED: the id is invalid or was added before, name has more than 4,096 bytes, or there are more than 1,024 builds.
 */
enum profd_status profd_upload_add_build(struct profd_upload *u, const char *build_id, const char *name,
                                         uint32_t *index, struct profd_error *e);
/* Adds a label; name and value are copied. REFUSED unless name is [a-zA-Z_][a-zA-Z0-9_]*, does not begin with "__" and
 * is new, value is UTF-8, and there are at most 64 labels. TOO_LARGE: name has more than 128 bytes or value more than
 * 1,024. */
enum profd_status profd_upload_add_label(struct profd_upload *u, const char *name, const char *value,
                                         struct profd_error *e);
/* True if the upload has a label of that name. */
bool profd_upload_has_label(const struct profd_upload *u, const char *name);
/* Sets the time range in which the counts were made. 0: unknown. */
void profd_upload_set_window(struct profd_upload *u, uint64_t start, uint64_t end);
/* Number of builds, and id and name of one of them (index < count). The strings belong to u. */
uint32_t profd_upload_build_count(const struct profd_upload *u);
const char *profd_upload_build_id(const struct profd_upload *u, uint32_t index);
const char *profd_upload_build_name(const struct profd_upload *u, uint32_t index);
/* Sets the reasons why the counts are not exact: bits of enum profd_inexact. */
void profd_upload_set_inexact(struct profd_upload *u, uint32_t bits);
/* 1 in a process's first upload, 0 in its later ones; of a sum of several processes, their number. */
void profd_upload_set_processes_started(struct profd_upload *u, uint32_t n);

/* A histogram of one build. Bin i covers [low + i·(high−low)/bins, low + (i+1)·(high−low)/bins), in link-time
 * addresses. index[] and ticks[] are the bins with ticks: used entries each, index ascending, ticks not 0. rate is in
 * ticks per second. */
struct profd_histogram {
    uint32_t build, bins, rate, used;
    uint64_t low, high;
    const uint32_t *index;
    const uint64_t *ticks;
};
/* Adds a histogram in the dimension seconds; its arrays are copied. REFUSED: a rule above is broken, or the upload
 * would have more than 4,096 histograms or 16,777,216 bins with ticks. O(used). */
enum profd_status profd_upload_add_histogram(struct profd_upload *u, const struct profd_histogram *h,
                                             struct profd_error *e);
/* count calls from address from (the call site or its return address) to an address inside the callee. */
struct profd_arc {
    uint32_t from_build, to_build;
    uint64_t from, to, calls;
};
/* Adds an arc. Arcs keep their order and may repeat. REFUSED: a build is unknown, or the upload would have more
 * than 4,194,304 arcs. Amortized O(1). */
enum profd_status profd_upload_add_arc(struct profd_upload *u, const struct profd_arc *arc, struct profd_error *e);

/* Ticks that found one stack. Its frames are link-time addresses of builds, the outermost caller first: return
 * addresses, and last, if pc, the program counter. PROFD_NOWHERE: an address outside every known build; its address is
 * ignored. */
struct profd_stack {
    uint32_t rate;   /* ticks per second; of the histogram that has these ticks */
    uint32_t frames; /* not 0 */
    bool pc;         /* false: the inner frames are not known, so that the ticks count at the last return address */
    bool incomplete; /* the outer frames are not known */
    const uint32_t *build;
    const uint64_t *address;
    uint64_t ticks;
};
/* Adds a stack in the dimension seconds; its arrays are copied. Ticks must be in a histogram of the upload, too: stacks
 * say from where functions were called. Outer frames beyond 128 are left out, and the stack is incomplete. When there
 * are more than 65,536 different frames, the rarest stacks count at the caller of their innermost frame. A daemon that
 * is older than stacks gets the upload without them. REFUSED: there are no frames or ticks, a build is unknown, or the
 * rate is 0 or above 1,000,000,000. O(frames) expected. */
enum profd_status profd_upload_add_stack(struct profd_upload *u, const struct profd_stack *stack,
                                         struct profd_error *e);

/* --- executables ---------------------------------------------------------------------------------------------- */

struct profd_executable;

/* Opens and reads an ELF executable or shared object, and its separate debug file if .gnu_debuglink names one that
 * fits. NO_INPUT: cannot be opened; REFUSED: not a regular file; TOO_LARGE; MALFORMED: not ELF. */
enum profd_status profd_executable_open(const char *path, struct profd_executable **out, struct profd_error *e);
/* Accepts NULL. */
void profd_executable_free(struct profd_executable *x);
/* Both strings belong to x. The path is absolute, unless its directory could not be determined. */
const char *profd_executable_build_id(const struct profd_executable *x);
const char *profd_executable_path(const struct profd_executable *x);
/* True if the file or its debug file has function names. */
bool profd_executable_has_names(const struct profd_executable *x);

/* When it is sent, the daemon is asked to store its instructions, too, so that the dashboard shows them. They need more
 * space than the code itself; the daemon takes those of up to 16 MiB of code. */
void profd_executable_include_code(struct profd_executable *x);

/* Reads only the build-id of a file. size must be at least its length and 1; 129 always suffices. */
enum profd_status profd_executable_read_id(const char *path, char *id, size_t size, struct profd_error *e);

/* Reads a gmon.out of the executable into a new upload, which the caller frees. Its window ends at the file's
 * modification time. It is marked with the three reasons for which no gmon.out is exact. MALFORMED: the file is not a
 * complete gmon.out; the sentence states the offset. WRONG_BUILD: another executable wrote it. */
enum profd_status profd_executable_import(const struct profd_executable *x, const char *gmon_path,
                                          struct profd_upload **out, struct profd_error *e);

/* --- the protocol without I/O ------------------------------------------------------------------------------- */

struct profd_client;

#define PROFD_SENDER_SIZE 12
/* Identifies an upload; the daemon counts each id once. sequence numbers the uploads of a sender from 1. */
struct profd_id {
    uint8_t sender[PROFD_SENDER_SIZE];
    uint32_t sequence;
};
/* Creates a sender: 48 bits of time in ms and 48 random bits. sequence is 0; increment it before each upload. */
enum profd_status profd_id_make(struct profd_id *id, struct profd_error *e);

enum profd_event_kind {
    PROFD_EVENT_READY,       /* the daemon sent WELCOME; name is its name */
    PROFD_EVENT_ACK,         /* the request is durable; duplicate: the upload had been stored before */
    PROFD_EVENT_NACK,        /* status, sentence; retry: the same request may succeed after retry_after_ms */
    PROFD_EVENT_WANT_OBJECT, /* build_id, name, tag: answer with profd_client_send_object or _decline */
    PROFD_EVENT_REPLY,       /* a piece of an answer; the first has http_status, content_type and etag; last */
    PROFD_EVENT_CLOSED,      /* the daemon closes the connection: status, sentence. Nothing more is sent or read */
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
    uint64_t done, total; /* progress of a long answer; both 0: unknown */
};

/* Creates a client and queues HELLO. The daemon's log shows name ("myprogram 1.0"). */
enum profd_status profd_client_new(const char *name, struct profd_client **out, struct profd_error *e);
/* Closes descriptors that were not sent. Accepts NULL. */
void profd_client_free(struct profd_client *c);

/* Passes n bytes received from the daemon, cut anywhere; all are consumed. On any status but PROFD_OK the daemon has
 * violated the protocol: close the connection. The status is permanent. Memory for payloads is allocated as bytes
 * arrive, not by the length in a header. */
enum profd_status profd_client_feed(struct profd_client *c, const void *bytes, size_t n, struct profd_error *e);
/* The bytes to send next: *n bytes at *bytes (0: none), and *fd_count descriptors (at most 2), to be sent by SCM_RIGHTS
 * with the first of these bytes. Send a prefix of at least one byte, and pass its length to profd_client_sent. */
void profd_client_output(const struct profd_client *c, const void **bytes, size_t *n, int fds[2], size_t *fd_count);
void profd_client_sent(struct profd_client *c, size_t n);
/* Takes the next event; false if there is none. */
bool profd_client_next(struct profd_client *c, struct profd_event *event);
/* Number of requests without their last answer. At 256, the daemon stops reading until it has answered some. */
size_t profd_client_in_flight(const struct profd_client *c);

/* Queue a request. Its answers have *tag; tag may be NULL. Requests may be queued before READY. The client copies what
 * it needs. TOO_LARGE: the message exceeds the daemon's limit. */
enum profd_status profd_client_send_upload(struct profd_client *c, const struct profd_upload *u,
                                           const struct profd_id *id, uint32_t *tag, struct profd_error *e);
enum profd_status profd_client_send_query(struct profd_client *c, const char *target, const char *if_none_match,
                                          uint32_t *tag, struct profd_error *e);
/* Queues an administrative command: "delete" with a build-id, "verify", "backup", "reload", "pause" or "resume"
 * (profd-protocol(7)). It is answered by REPLY or NACK. */
enum profd_status profd_client_send_admin(struct profd_client *c, const char *verb, const char *const *arguments,
                                          size_t n, uint32_t *tag, struct profd_error *e);
/* Offers an executable without a request (want NULL), or answers a WANT_OBJECT event. It is answered by ACK or NACK. */
enum profd_status profd_client_send_object(struct profd_client *c, const struct profd_event *want,
                                           const struct profd_executable *x, uint32_t *tag, struct profd_error *e);
enum profd_status profd_client_send_decline(struct profd_client *c, const struct profd_event *want, const char *reason,
                                            struct profd_error *e);
/* Queues a SYNC. It is answered by ACK when everything sent before is durable and parsed. */
enum profd_status profd_client_send_sync(struct profd_client *c, uint32_t *tag, struct profd_error *e);

/* --- a connection that blocks, within limits -------------------------------------------------------------------- */

struct profd_conn;

/* The outcome of an upload or of an executable. */
struct profd_outcome {
    const char *name;         /* as given; of an upload from the spool its file; of an executable its path */
    enum profd_status status; /* PROFD_OK: durable in the daemon, or spooled */
    bool spooled;             /* kept for the next delivery; sentence says why */
    bool earlier;             /* came from the spool */
    bool executable;          /* concerns an executable that was sent and is not stored */
    bool duplicate;
    const char *sentence; /* "" if there is nothing to say. With PROFD_OK and not spooled: what the daemon, being older
                           * than this library, did not get of this and later uploads; said once a delivery */
};
typedef void (*profd_outcome_sink)(void *context, const struct profd_outcome *outcome);

struct profd_answer {
    int http_status;
    char content_type[128], etag[128];
    uint64_t done, total; /* of profd_admin: progress of the daemon; both 0: unknown */
};
/* Called with each piece of a body, at least once, perhaps with n = 0. All of *answer is valid at the first call. Any
 * status but PROFD_OK ends the query with that status. */
typedef enum profd_status (*profd_sink)(void *context, const struct profd_answer *answer, const void *bytes, size_t n,
                                        struct profd_error *e);

/* Makes a request over HTTP for the library, which has neither HTTP nor TLS of its own: a GET, or a PUT of body_size
 * bytes that are read from the descriptor body. PROFD_OK: the answer was given to the sink. The strings live during the
 * call. */
struct profd_http_request {
    const char *url;           /* "https://HOST:PORT/api/v1/builds" */
    const char *token;         /* bearer token; "" if there is none */
    const char *if_none_match; /* ETag, or NULL */
    int body;                  /* −1: GET */
    uint64_t body_size;
    uint32_t connect_ms, answer_ms; /* as in struct profd_options */
};
typedef enum profd_status (*profd_http)(void *context, const struct profd_http_request *request, profd_sink sink,
                                        void *sink_context, struct profd_error *e);

/* Zero or NULL means the default. */
struct profd_options {
    const char *server;     /* "unix:/path", a path, "http://127.0.0.1:PORT" or "https://HOST" (both: queries only).
                             * Default:     $PROFD_SOCKET (not in set-user-id programs), /run/profd/profd.sock,
                             * then a user's own as in profctl(1) */
    const char *token_file; /* holds the bearer token of an http or https server; CONFIG if other users may read it */
    const char *name;       /* of this program */
    uint32_t connect_ms;    /* from connect to WELCOME; default 200 */
    uint32_t answer_ms;     /* time without any byte from the daemon while an answer is due; default 10,000 */
    profd_http http;        /* for http and https servers; NULL: USAGE there */
    void *http_context;
};

/* Connects. UNAVAILABLE: no daemon. TIMEOUT. UNTRUSTED: the daemon runs neither as root, as profd nor as the current
 * user, or its uid is not mapped in this user namespace. USAGE: bad address (the path of a socket has at most 107
 * bytes). FORBIDDEN. */
enum profd_status profd_conn_open(const struct profd_options *o, struct profd_conn **out, struct profd_error *e);
/* Closes the connection; unanswered requests have an unknown outcome. Accepts NULL. */
void profd_conn_close(struct profd_conn *c);
/* Name and version of the daemon, "profd 1.0.0"; "" for an http server. Belongs to c. */
const char *profd_conn_daemon(const struct profd_conn *c);
/* The address in use, "unix:/path" or a URL. Belongs to c. */
const char *profd_conn_server(const struct profd_conn *c);

/* Registers an executable, which the functions below send when the daemon requests it. x must live as long as c. */
enum profd_status profd_conn_offer(struct profd_conn *c, const struct profd_executable *x, struct profd_error *e);
/* Sends an upload and waits for its ACK. After a status with profd_status_retry, send it again with the same id. */
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
/* As of the latest profd_conn_open or profd_conn_sync: the random number of the daemon's run, and how many processes
 * and connections of this user it had refused (profd-protocol(7), SYNC). */
void profd_conn_get_refused(const struct profd_conn *c, uint64_t *run, uint64_t *refused);
/* Changes answer_ms of struct profd_options; returns the previous value. 0 means the default. */
uint32_t profd_conn_set_answer_ms(struct profd_conn *c, uint32_t answer_ms);

/* Sends a GET of the HTTP interface. target is for example "/api/v1/builds?limit=5", if_none_match an ETag or NULL.
 * PROFD_OK: the answer is complete; from http_status 400 on its body is a problem document (RFC 9457). */
enum profd_status profd_query(struct profd_conn *c, const char *target, const char *if_none_match, profd_sink sink,
                              void *context, struct profd_error *e);

/* Sends an executable to an http or https server, for a reader with the role admin: its debug file, if only that has
 * function names. The answer is passed to the sink as by profd_query. USAGE with a Unix socket, or without a function
 * http in the options. */
enum profd_status profd_put_executable(struct profd_conn *c, const struct profd_executable *x, profd_sink sink,
                                       void *context, struct profd_error *e);

/* Sends an administrative command and passes its answer to the sink. While the daemon works, the sink is also called
 * with n = 0 and a new answer->done; http_status is 0 until the body begins. PROFD_OK: the answer is complete.
 * FORBIDDEN: the user is not root, not the daemon's user and not in the admin group. USAGE with an http server. */
enum profd_status profd_admin(struct profd_conn *c, const char *verb, const char *const *arguments, size_t n,
                              profd_sink sink, void *context, struct profd_error *e);

/* --- delivery: pipelined, and spooled when there is no daemon ------------------------------------------------------
 */

struct profd_delivery;

/* Connects, and begins to deliver the uploads in the spool, oldest first. Succeeds without a daemon, too: uploads then
 * go to the spool. USAGE: bad address. */
enum profd_status profd_delivery_open(const struct profd_options *o, profd_outcome_sink sink, void *context,
                                      struct profd_delivery **out, struct profd_error *e);
/* Like profd_conn_offer; x must live until profd_delivery_close. Spooled uploads store its path. */
enum profd_status profd_delivery_offer(struct profd_delivery *d, const struct profd_executable *x,
                                       struct profd_error *e);
/* Sends u with a new id. Waits for answers only while the uploads in flight exceed the memory limit. u may be freed
 * afterwards. The sink receives the outcome, now or later. Fails only if u itself cannot be sent. */
enum profd_status profd_delivery_upload(struct profd_delivery *d, const struct profd_upload *u, const char *name,
                                        struct profd_error *e);
/* Waits until every upload is answered and every requested executable is sent. Uploads without an answer then go to
 * the spool. */
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
/* Lists the uploads in the spool, oldest first. A spool that does not exist is empty. */
enum profd_status profd_spool_list(void (*each)(void *context, const struct profd_spool_entry *entry), void *context,
                                   struct profd_error *e);
/* Writes the directory of the spool to path. UNAVAILABLE: the environment names none. */
enum profd_status profd_spool_directory(char *path, size_t size, struct profd_error *e);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
