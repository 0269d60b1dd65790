/* What the files of the server share. Private to server*.c. Everything belongs to the loop's thread, except what a job
 * says about itself while it is with a worker. */
#ifndef PROFD_DAEMON_SERVER_PARTS_H
#define PROFD_DAEMON_SERVER_PARTS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "config.h"
#include "core/buffer.h"
#include "elf/broker.h"
#include "ingest/attach.h"
#include "ingest/ingest.h"
#include "metrics.h"
#include "net/closer.h"
#include "net/conn.h"
#include "net/http.h"
#include "net/listen.h"
#include "net/lock.h"
#include "net/loop.h"
#include "net/work.h"
#include "query/query.h"
#include "session.h"
#include "store/store.h"

struct server_web_coded;

#define SERVER_READERS 3                  /* of which one user occupies two at most */
#define SERVER_ANSWERS_MAX (512ull << 20) /* bytes of answers that readers have not taken; then BUSY */

/* The doors, in the order in which their listeners stand. */
enum server_door { SERVER_UPLOAD, SERVER_HTTP, SERVER_HTTP_TCP, SERVER_DOORS };

struct server_listener {
    struct server *server;
    enum server_door door;
    int fd;           /* −1: none */
    const char *path; /* of a Unix socket made here, to be removed; else NULL */
    struct listener *listener;
};

struct server {
    const struct config *config;
    struct loop *loop;
    struct broker *broker;
    int lock_fd;
    bool managed; /* a service manager listens to us */
    double start; /* seconds since the epoch */

    struct store *write_store, *read_stores[SERVER_READERS], *object_store, *check_store;
    struct lock *cache_lock;
    struct query_cache *cache; /* of sums, for all readers */
    struct lock *answers_lock;
    struct query_answers *answers;   /* finished ones, for readers and the loop */
    atomic_uint_fast64_t generation; /* of what is stored: odd while the writer is at it */
    struct server_web_coded *web;
    struct ingest_checker *checker;
    atomic_uint_fast64_t objects_generation; /* grows when what uploads are checked against may have changed */
    struct work *writer, *readers, *objects;

    struct peer_policy policy;
    struct server_listener listeners[SERVER_DOORS];
    uint16_t http_port;
    uint8_t refusal[512];
    size_t refusal_size;
    struct conn_group *conns;
    struct closer *closer;
    struct http_door *doors[SERVER_DOORS]; /* of the two that speak HTTP */

    struct loop_timer *ping, *stopping_timer, *log_timer;
    uint64_t pinged_batches;
    struct metrics metrics;
    uint64_t answer_bytes;
    size_t http_pending; /* exchanges not answered yet */
    uint64_t frames_at_trim;

    struct server_attach *attach; /* live processes */

    struct server_upkeep *upkeep;
    struct server_scrub *scrub;
    struct server_admin *backup; /* the one that is being made or sent */
    size_t admin_jobs;
    unsigned backup_number;

    bool full; /* the latest write found no space; uploads are tried all the same */
    struct profd_error full_error;
    bool write_failed; /* the store had an input/output error: nothing is written any more (DECISIONS 31) */
    struct profd_error write_error;
    bool stopping;
    uint64_t stop_deadline; /* ms of loop_now */
    int exit_status;
};

/* Nanoseconds since the epoch. */
int64_t server_clock(void);

/* server_writer.c: jobs of the one thread that writes. */
enum server_write_kind { SERVER_WRITE_UPLOAD, SERVER_WRITE_OBJECT, SERVER_WRITE_JOB, SERVER_WRITE_HARVEST };
struct server_write {
    struct work_item item; /* first */
    enum server_write_kind kind;
};
/* Anything else that the writer does now and then, of bounded length. */
struct server_job {
    struct server_write write;                              /* first */
    void (*run)(struct server *s, struct server_job *job);  /* on the writer's thread */
    void (*done)(struct server *s, struct server_job *job); /* then, on the loop */
    void (*drop)(struct server *s, struct server_job *job); /* instead of both, on the loop: it will not be run */
};
/* It takes nobody's turn. */
void server_job_init(struct server_job *job, void (*run)(struct server *s, struct server_job *job),
                     void (*done)(struct server *s, struct server_job *job),
                     void (*drop)(struct server *s, struct server_job *job));

/* What a live process counted, on its way to the store: all of a batch in one transaction. */
struct server_harvest {
    struct server_write write; /* first */
    struct attach_harvest harvest;
    enum profd_status status; /* of reading, then of the store */
    enum store_harvest_outcome outcome;
    struct profd_error error;
    void (*read)(void *context, struct server_harvest *h);        /* on the harvesting thread */
    void (*was_read)(struct server *s, struct server_harvest *h); /* then, on the loop; or, status STOPPING, instead */
    void (*stored)(struct server *s, struct server_harvest *h);   /* after the writer, on the loop; likewise */
};

/* Checks uploads beside the writer, while it waits for the disk. */
void server_writer_prepare(void *context, struct work_item *const *items, size_t n);
void server_writer_run(void *context, struct work_item *const *items, size_t n);
void server_writer_done(void *context, struct work_item *item);
/* Answers a job that will not be run, and frees it. */
void server_writer_drop(void *context, struct work_item *item);
/* Notes an outcome of the store: an input/output error ends writing for good. */
void server_note_store_status(struct server *s, enum profd_status status, const struct profd_error *e);

/* server_upload.c */
struct server_upload {
    struct server_write write; /* first */
    conn_id conn;
    uint32_t tag;
    uint64_t job;   /* of the session */
    uint64_t began; /* ms of loop_now */
    struct conn_body body;
    bool compressed;
    uint8_t *inflated;
    struct ingest_item item;
};
enum profd_status server_take_upload(void *context, struct conn *c, struct conn_frame *f, struct profd_error *e);
void server_upload_done(struct server *s, struct server_upload *u);
/* Asks for executables that nobody has sent yet, once each on a connection. */
void server_want_objects(struct server *s, struct conn *c, const struct wanted_build *wanted, size_t n);

/* server_object.c */
struct server_object {
    struct server_write write; /* first; its item serves the object thread's queue, too */
    struct server *server;
    conn_id conn;
    uint32_t tag;
    uint64_t job;
    uint32_t uid;
    int executable, debug;
    bool trusted;
    int64_t received;
    char build_id[BUILDID_TEXT_SIZE]; /* "" if nobody asked */
    char name[256];
    uint8_t *answer;
    size_t answer_size;
    bool known;               /* somebody else's copy was stored meanwhile */
    enum profd_status status; /* of the worker, then of the store */
    struct profd_error error;
};
enum profd_status server_take_object(void *context, struct conn *c, struct conn_frame *f, struct profd_error *e);
enum profd_status server_take_decline(void *context, struct conn *c, struct conn_frame *f, struct profd_error *e);
void server_object_run(void *context, struct work_item *const *items, size_t n);
void server_object_parsed(void *context, struct work_item *item);
void server_object_store(struct store *store, struct server_object *o);
void server_object_stored(struct server *s, struct server_object *o);
/* Answers an object that will not be looked at, and frees it. */
void server_object_drop(void *context, struct work_item *item);

/* server_admin.c */
enum profd_status server_take_admin(void *context, struct conn *c, struct conn_frame *f, struct profd_error *e);
/* Lets go of what is left when the writer's thread and the connections have ended. */
void server_admin_end(struct server *s);

/* server_restore.c: what --restore asks for, from the lock to the end. */
enum profd_status server_restore(const struct config *config, struct profd_error *e);
/* Finishes a restore that was interrupted behind its point of no return. The lock is held. */
enum profd_status server_finish_restore(const char *state_dir, bool *restored, struct profd_error *e);

/* server_debug.c: opens the debug file of a build that the system's packages installed; −1 if there is none to be
 * believed. */
int server_open_debug(const char *build_id);
/* Is this descriptor's content beyond the reach of everybody but root? */
bool server_trusts_file(int fd);
/* Does a process answer for this descriptor's file system? Whoever reads or closes such a file may wait for ever. */
bool server_hangs_file(int fd);

/* server_session.c: the part of every request that belongs to its connection. */
/* Ends a job and acknowledges the SYNCs that waited for it. */
void server_end_job(struct conn *c, uint64_t job);
/* The same for a job without which they cannot be: they are refused. */
void server_fail_job(struct conn *c, uint64_t job);
enum profd_status server_take_sync(void *context, struct conn *c, struct conn_frame *f, struct profd_error *e);
enum profd_status server_take_nack(void *context, struct conn *c, struct conn_frame *f, struct profd_error *e);
/* The body of a frame, inflated if it was compressed, as a message. On OK the message must be ended by message_done. */
enum profd_status server_decode(const struct conn_frame *f, struct message *m, struct profd_error *e);

/* server_pages.c: what is answered without asking the store, and the shape of all answers. */
struct server_page {
    int status;
    const char *content_type, *cache_control, *csp; /* csp NULL: the strictest */
    const char *etag;
    enum coding coding;
    bool negotiated; /* as in struct http_answer */
    char tag[80];    /* where etag may point to */
    uint32_t retry_after_ms;
    struct buffer body;
};

/* server_query.c: questions of both doors. */
struct server_query {
    struct work_item item; /* first */
    struct server *server;
    conn_id conn; /* 0: asked by HTTP */
    uint32_t tag;
    uint64_t job;
    struct http_exchange *exchange;
    bool metrics, summary; /* /metrics, /api/v1/status: want the totals only */
    bool made;             /* the page of these is there: it is only to be coded, which the loop has no time for */
    struct server_page page;
    uint64_t began;
    char *target, *if_none_match;
    struct query_request request;
    struct query_answer answer;
    struct store_totals totals;
    struct query_cache_use cache_use;
    enum profd_status totals_status;
};
enum profd_status server_take_query(void *context, struct conn *c, struct conn_frame *f, struct profd_error *e);
void server_http_request(void *context, struct http_exchange *x, const struct http_request *request);
void server_query_run(void *context, struct work_item *const *items, size_t n);
void server_query_done(void *context, struct work_item *item);
void server_query_drop(void *context, struct work_item *item);

/* server_pages.c */
/* True if the target is one of these pages. Strings of the page live as long as the server and the request. */
bool server_page_find(struct server *s, const struct query_request *request, struct server_page *page);
void server_page_init(struct server_page *page, int status, const char *content_type);
/* Text of n bytes inside a JSON string. */
void server_page_add_json(struct buffer *out, const char *text, size_t n);
void server_page_problem(struct server_page *page, int http_status, enum profd_status code, const char *detail);
void server_page_metrics(struct server *s, const struct store_totals *totals, const struct query_cache_use *cache,
                         struct server_page *page);

/* server_status.c: totals and upkeep, as JSON. */
void server_page_status(struct server *s, const struct store_totals *totals, struct server_page *page);

/* server_reply.c: an answer on its way to the Unix socket. Takes over the body. */
void server_reply(struct server *s, struct conn *c, uint32_t tag, const struct server_page *page);

/* server_start.c, server_doors.c, server_stop.c */
enum profd_status server_start(struct server *s, struct profd_error *e);
/* Makes the state directory if need be and locks it: BUSY when another daemon has it. *fd is closed by the caller. */
enum profd_status server_lock(const char *state_dir, int *fd, struct profd_error *e);
enum profd_status server_database_path(const struct server *s, char *path, size_t size, struct profd_error *e);
enum profd_status server_open_doors(struct server *s, struct profd_error *e);
void server_close_listeners(struct server *s);
/* Makes the directory and those above it. */
enum profd_status server_make_directory(const char *path, unsigned mode, struct profd_error *e);
/* Begins to stop; what was received is finished first. */
void server_stop(struct server *s, int exit_status);
/* The timer of a stop: is everything finished? */
void server_stop_look(void *context);
/* Frees everything. May not return if a worker is stuck: the process ends then. */
void server_end(struct server *s);

#endif
