/* What an operator asked for, while it is done. Private to server_admin*.c and those who start and stop them. */
#ifndef PROFD_DAEMON_SERVER_ADMIN_H
#define PROFD_DAEMON_SERVER_ADMIN_H

#include <stdbool.h>
#include <stdint.h>

#include "admin/backup.h"
#include "admin/request.h"
#include "server_parts.h"
#include "server_upkeep.h"

#define SERVER_PROGRESS_MS 200 /* between two words about how far it is */

struct server_admin {
    struct server_job job;     /* first: delete and backup, on the writer */
    struct server_check check; /* verify */
    struct server *server;
    conn_id conn;
    uint32_t tag, uid;
    uint64_t session_job;
    struct request request;
    uint64_t told; /* ms of loop_now: when progress was last said */

    enum profd_status status;
    struct profd_error error;
    struct buildid build; /* DELETE: what was found, and how much of it went */
    uint64_t uploads;
    size_t from; /* VERIFY: what has been logged */
    uint64_t counted;
    struct backup backup; /* BACKUP */
    struct loop_timer *timer;
    bool whole, cancelled;
    uint64_t took_ms;
};

/* The connection that waits for it; NULL when it has gone. */
struct conn *server_admin_conn(const struct server_admin *a);
/* Says how far it is, now and then. */
void server_admin_tell(struct server_admin *a, uint64_t done, uint64_t total);
/* Answers by NACK, or by a JSON page whose body is taken over, and frees the request. */
void server_admin_refuse(struct server_admin *a, enum profd_status status, const char *sentence);
void server_admin_answer(struct server_admin *a, struct server_page *page);
void server_admin_free(struct server_admin *a);

/* server_admin_backup.c */
enum profd_status server_admin_backup(struct server_admin *a, struct profd_error *e);
/* server_admin_verify.c */
enum profd_status server_admin_verify(struct server_admin *a, struct profd_error *e);

#endif
