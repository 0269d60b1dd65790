#include "requests/admin.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/arena.h"
#include "live/live.h"
#include "base/log.h"
#include "net/loop.h"
#include "proto/limits.h"
#include "render/document.h"
#include "render/render.h"
#include "requests/admin_internal.h"
#include "requests/body.h"
#include "requests/relay.h"
#include "requests/session.h"
#include "store/store.h"
#include "writer/space.h"
#include "writer/upkeep_job.h"
#include "proto/noun.h"

#define PROCESSES_MAX (64u << 20) /* bytes of an answer */

/* Removing may write although the disk is full. */
static enum profd_status delete_run(struct admin *a, struct store *store, const struct profd_error *full,
                                    struct profd_error *e)
{
    const struct store_scope all = {.all = true};
    enum profd_status status;

    (void)full;
    TRY(store_find_build(store, &all, a->request.build, &a->build, e));
    status = store_delete_build(store, &all, a->build.text, &a->uploads, e);
    if (status == PROFD_FULL && space_give_up(a->service->config.space)) {
        status = store_delete_build(store, &all, a->build.text, &a->uploads, e);
    }
    return status;
}

static enum profd_status delete_done(struct admin *a, struct profd_error *e)
{
    (void)e;
    log_write(LOG_LEVEL_NOTICE, NULL, "user %u deleted build %s: %" PRIu64 " %s", a->uid, a->build.text, a->uploads,
              noun_for(a->uploads, "upload", "uploads"));
    upkeep_job_hurry(a->service->config.upkeep);
    a->answer = json_pack("{s:s, s:I}", "build_id", a->build.text, "uploads", (json_int_t)a->uploads);
    return PROFD_OK;
}

/* It may write although the disk is full: it removes more. */
static enum profd_status move_run(struct admin *a, struct store *store, const struct profd_error *full,
                                  struct profd_error *e)
{
    (void)full;
    return relay_move(a->service->config.relay, store, &a->uploads, e);
}

static enum profd_status move_done(struct admin *a, struct profd_error *e)
{
    (void)e;
    log_write(LOG_LEVEL_NOTICE, NULL,
              "user %u moved this host to another centre: %" PRIu64 " %s sealed for the one before count here only",
              a->uid, a->uploads, noun_for(a->uploads, "upload", "uploads"));
    a->answer = json_pack("{s:I}", "withdrawn", (json_int_t)a->uploads);
    return PROFD_OK;
}

static enum profd_status admin_check(const struct admin_service *s, const struct conn *c, const struct message_admin *m,
                                     struct request *request, struct profd_error *e)
{
    const struct peer *peer = conn_get_peer(c);
    const bool for_all = !strcmp(m->verb, "pause") || !strcmp(m->verb, "resume"); /* for processes of one's own */
    enum profd_status status = PROFD_OK;
    uint64_t reserve;

    if (!peer->may_admin && !for_all) {
        return profd_error_set(
            e, PROFD_FORBIDDEN,
            "user %u may not use the command \"%.100s\"; only root, the daemon's user and members of the admin "
            "group may",
            peer->uid, m->verb);
    }
    status = request_parse(m->verb, m->arguments, m->argument_count, request, e);
    if (status || for_all) {
        return status;
    }
    if (request->verb == REQUEST_RELOAD) {
        return PROFD_OK;
    }
    if (request->verb != REQUEST_VERIFY && writer_check(s->config.writer, e)) {
        return PROFD_IO;
    }
    if (request->verb == REQUEST_BACKUP && space_get_reserve(s->config.space, &reserve) == RESERVE_GIVEN_UP) {
        return profd_error_set(e, PROFD_FULL, "no space left in %s, where a backup is stored before it is sent",
                               s->config.state_dir);
    }
    if (request->verb == REQUEST_BACKUP && s->backup) {
        return profd_error_set(e, PROFD_BUSY, "another backup is in progress");
    }
    if (s->jobs >= LIMIT_ADMIN_JOBS) {
        return profd_error_set(e, PROFD_BUSY,
                               "too many admin requests: %zu in progress, the limit is %u; try again later", s->jobs,
                               LIMIT_ADMIN_JOBS);
    }
    return PROFD_OK;
}

static enum profd_status admin_begin(struct admin *a, struct profd_error *e)
{
    switch (a->request.verb) {
    case REQUEST_DELETE:
        return admin_submit(a, delete_run, delete_done, e);
    case REQUEST_RELAY_MOVE:
        return admin_submit(a, move_run, move_done, e);
    case REQUEST_VERIFY:
        return admin_begin_verify(a, e);
    case REQUEST_TOKEN_ADD:
    case REQUEST_TOKEN_LIST:
    case REQUEST_TOKEN_REMOVE:
        return admin_begin_token(a, e);
    case REQUEST_TIER_INIT:
        return admin_begin_tier(a, e);
    default:
        return admin_begin_backup(a, e);
    }
}

/* Pause and resume are told to the processes at once; the answer lists them. */
static enum profd_status admin_control(struct admin_service *s, struct conn *c, uint32_t tag,
                                       const struct request *request, struct profd_error *e)
{
    const struct peer *peer = conn_get_peer(c);
    struct arena *arena = arena_new(PROCESSES_MAX);
    struct process_row *rows;
    struct page page;
    size_t n;
    enum profd_status status = arena ? live_control(s->config.live, peer, request, loop_clock(), arena, &rows, &n, e)
                                     : profd_error_set(e, PROFD_NO_MEMORY, "no memory for a list of processes");

    if (!status) {
        page_init(&page, 200, "application/json; charset=utf-8");
        page.body.limit = PROCESSES_MAX;
        render_processes(rows, n, NULL, &page.body);
        reply_send(s->config.replies, c, tag, &page);
    }
    arena_free(arena);
    return status;
}

static void admin_send(struct admin_service *s, struct conn *c, uint32_t tag, json_t *answer)
{
    struct page page;

    page_init(&page, 200, "application/json; charset=utf-8");
    document_write(answer, &page.body);
    reply_send(s->config.replies, c, tag, &page);
}

static json_t *admin_list_keys(const char *const *keys, size_t n)
{
    json_t *list = json_array();

    for (size_t i = 0; i < n; i++) {
        json_array_append_new(list, json_string(keys[i]));
    }
    return list;
}

/* Done at once, like pause and resume: an error changes nothing. */
static enum profd_status admin_reload(struct admin_service *s, struct conn *c, uint32_t tag, struct profd_error *e)
{
    struct admin_reload change;
    enum profd_status status;

    log_write(LOG_LEVEL_NOTICE, "administration", "user %u requested reload", conn_get_peer(c)->uid);
    status = s->config.reload(s->config.context, &change, e);
    if (!status) {
        admin_send(s, c, tag,
                   json_pack("{s:o, s:o}", "applied", admin_list_keys(change.applied, change.applied_count), "restart",
                             admin_list_keys(change.restart, change.restart_count)));
    }
    return status;
}

/* Done at once. */
static enum profd_status admin_confirm_clock(struct admin_service *s, struct conn *c, uint32_t tag,
                                             struct profd_error *e)
{
    const double ahead = upkeep_job_confirm_clock(s->config.upkeep);

    if (ahead <= 0) {
        return profd_error_set(e, PROFD_REFUSED, "the clock is not ahead: removals use it already");
    }
    log_write(LOG_LEVEL_NOTICE, "administration",
              "user %u confirmed the clock, which is %.1f days ahead: from now on data and ids of uploads are removed "
              "by it",
              conn_get_peer(c)->uid, ahead / 86400);
    admin_send(s, c, tag, json_pack("{s:f}", "clock_ahead_seconds", ahead));
    return PROFD_OK;
}

static enum profd_status admin_start(struct admin_service *s, struct conn *c, uint32_t tag,
                                     const struct request *request, struct profd_error *e)
{
    struct admin *a = calloc(1, sizeof *a);
    enum profd_status status;

    if (!a) {
        return profd_error_set(e, PROFD_NO_MEMORY, "no memory for an admin request");
    }
    a->service = s;
    a->conn = conn_get_id(c);
    a->tag = tag;
    a->uid = conn_get_peer(c)->uid;
    a->request = *request;
    a->backup.fd = -1;
    verify_init(&a->check.verify, LIMIT_MISMATCHES);
    s->jobs++;
    LIST_INSERT_HEAD(&s->all, a, of_all);
    if (request->verb == REQUEST_BACKUP) {
        s->backup = a;
    }
    status = admin_begin(a, e);
    if (status) {
        admin_free(a);
        return status;
    }
    a->session_job = session_begin(conn_get_user(c));
    log_write(LOG_LEVEL_NOTICE, "administration", "user %u requested %s%s%s", a->uid, request_verb_name(request->verb),
              *request->build ? " " : "", request->build);
    return PROFD_OK;
}

enum profd_status admin_receive(void *context, struct conn *c, struct conn_frame *f, struct profd_error *e)
{
    struct admin_service *s = context;
    struct request request;
    struct message m;
    enum profd_status status = body_decode(f, &m, e);

    if (status) {
        return status;
    }
    status = admin_check(s, c, &m.as.admin, &request, e);
    if (!status && (request.verb == REQUEST_PAUSE || request.verb == REQUEST_RESUME)) {
        status = admin_control(s, c, f->header.tag, &request, e); /* selectors point into the message */
    } else if (!status && request.verb == REQUEST_RELOAD) {
        status = admin_reload(s, c, f->header.tag, e);
    } else if (!status && request.verb == REQUEST_CONFIRM_CLOCK) {
        status = admin_confirm_clock(s, c, f->header.tag, e);
    } else if (!status) {
        status = admin_start(s, c, f->header.tag, &request, e);
    }
    message_done(&m);
    return status;
}

enum profd_status admin_service_new(const struct admin_config *config, struct admin_service **out,
                                    struct profd_error *e)
{
    struct admin_service *s = calloc(1, sizeof *s);

    if (!s) {
        return profd_error_set(e, PROFD_NO_MEMORY, "no memory for admin requests");
    }
    s->config = *config;
    const enum profd_status status = admin_start_tier(s, e);

    if (status) {
        free(s);
        return status;
    }
    *out = s;
    return PROFD_OK;
}

void admin_service_cancel(struct admin_service *s, conn_id conn)
{
    struct admin *a;

    LIST_FOREACH(a, &s->all, of_all)
    {
        if (a->conn == conn) {
            atomic_store(&a->gone, true);
        }
    }
}

void admin_service_stop(struct admin_service *s)
{
    atomic_store(&s->stopped, true);
}

void admin_service_join(struct admin_service *s)
{
    work_free(s->tier);
    s->tier = NULL;
}

void admin_service_free(struct admin_service *s)
{
    if (s && s->backup) {
        admin_free(s->backup);
    }
    free(s);
}
