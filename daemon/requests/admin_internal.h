/* What an operator asked for, while it is done. For admin*.c only. */
#ifndef PROFD_REQUESTS_ADMIN_INTERNAL_H
#define PROFD_REQUESTS_ADMIN_INTERNAL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "admin/backup.h"
#include "admin/request.h"
#include "net/work.h"
#include "proto/buildid.h"
#include "render/document.h"
#include "requests/admin.h"
#include "requests/tokens.h"
#include "writer/verifier.h"
#include "writer/writer.h"

#define ADMIN_PROGRESS_MS 200 /* between two reports of progress */

struct admin_service {
    struct admin_config config;
    size_t jobs; /* that wait or go on: */
    LIST_HEAD(, admin) all;
    struct admin *backup; /* the one that is being made or sent */
    unsigned backup_number;
    atomic_bool stopped;
    struct work *tier; /* asks the tier; NULL: none is configured */
};

struct admin;
/* The two halves of an operator's request: run on the writer's thread, then done on the loop's thread. One of them sets
 * a->answer to the document of the answer. full is as in writer/writer.h. */
typedef enum profd_status admin_run(struct admin *a, struct store *store, const struct profd_error *full,
                                    struct profd_error *e);
typedef enum profd_status admin_done(struct admin *a, struct profd_error *e);

struct admin {
    struct writer_job job; /* all but verify */
    admin_run *run;        /* admin_submit */
    admin_done *done;
    struct verification check; /* verify */
    struct work_item item;     /* of the queue tier */
    struct admin_service *service;
    LIST_ENTRY(admin) of_all;
    atomic_bool gone; /* its client has hung up: it is not begun, or ends */
    conn_id conn;
    uint32_t tag, uid;
    uint64_t session_job;
    struct request request;
    uint64_t told; /* ms of loop_now: when progress was last reported */

    enum profd_status status;
    struct profd_error error;
    struct buildid build; /* DELETE: the uploads found, and those already removed */
    uint64_t uploads;
    char token[96];       /* TOKEN_ADD: shown once; "" */
    struct backup backup; /* BACKUP */
    struct loop_timer *timer;
    bool whole, cancelled;
    uint64_t took_ms;
    json_t *answer; /* of admin_submit and the tier */
};

/* admin_answer.c */
#define ADMIN_GONE "the client has closed the connection"

/* The connection that waits for the answer; NULL if it is closed. */
struct conn *admin_get_conn(const struct admin *a);
/* Reports progress, now and then. */
void admin_report(struct admin *a, uint64_t done, uint64_t total);
/* Answers by NACK or by a page, and frees the request. Takes over the body of the page. */
void admin_refuse(struct admin *a, enum profd_status status, const char *sentence);
void admin_answer(struct admin *a, struct page *page);
/* The drop of a job (writer/writer.h): refuses it, because the daemon is stopping. */
void admin_drop(struct writer_job *job);
void admin_free(struct admin *a);
/* Ends a request with a->status by a NACK or by a->answer. */
void admin_end(struct admin *a);
/* Gives the request to the writer. It is answered by a NACK or by a->answer. */
enum profd_status admin_submit(struct admin *a, admin_run *run, admin_done *done, struct profd_error *e);

/* admin_backup.c, admin_token.c: begin it. */
enum profd_status admin_begin_token(struct admin *a, struct profd_error *e);
enum profd_status admin_begin_backup(struct admin *a, struct profd_error *e);
enum profd_status admin_begin_verify(struct admin *a, struct profd_error *e);

/* admin_tier.c: the thread that asks the tier, if one is configured. */
enum profd_status admin_start_tier(struct admin_service *s, struct profd_error *e);
enum profd_status admin_begin_tier(struct admin *a, struct profd_error *e);

#endif
