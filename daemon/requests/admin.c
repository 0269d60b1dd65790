#include "requests/admin.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <nettle/sha2.h>
#include <stdlib.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/log.h"
#include "core/container.h"
#include "net/loop.h"
#include "proto/attach_memory.h"
#include "proto/hex.h"
#include "proto/noun.h"
#include "query/params.h"
#include "render/document.h"
#include "render/render.h"
#include "requests/relay.h"
#include "requests/requests.h"
#include "requests/tokens.h"
#include "tier/init.h"
#include "tier/tombstone.h"
#include "writer/backup.h"

#define ADMIN_PROGRESS_MS 200  /* between two reports of progress */
#define ANSWER_MAX (64u << 20) /* bytes */

struct admin;

struct admin_service {
    struct admin_config config;
    size_t jobs; /* requests in all */
    LIST_HEAD(, admin) all;
    struct admin *backup; /* the one that is being made or sent */
    unsigned backup_number;
    atomic_bool stopped;
    struct work *tier; /* asks the tier; NULL: none is configured */
};

/* The two halves of an operator's request: run on the writer's thread, then done on the loop's thread. One of them sets
 * a->answer to the document of the answer. */
typedef enum profd_status admin_run(struct admin *a, struct store *store, struct profd_error *e);
typedef enum profd_status admin_done(struct admin *a, struct profd_error *e);

struct admin {
    struct writer_job job; /* all but verify; its status is also that of the tier */
    admin_run *run;        /* admin_submit */
    admin_done *done;
    struct verification check; /* verify */
    struct work_item item;     /* of the queue tier */
    struct admin_service *service;
    LIST_ENTRY(admin) of_all;
    atomic_bool gone; /* the client has closed the connection */
    conn_id conn;
    uint32_t tag, uid;
    uint64_t session_job;
    struct admin_request request;
    uint64_t told; /* ms of loop_now: when progress was last reported */

    struct buildid build; /* DELETE: the uploads found, and those already removed */
    uint64_t uploads;
    /* DELETE with a tier: */
    struct arena *arena; /* of what follows */
    struct tombstone_order order;
    uint32_t tenant_capacity;
    const char **tenants;
    struct store_tombstone *tombstones; /* that are written */
    size_t tombstone_count;
    char token[96];       /* TOKEN_ADD: shown once; "" */
    struct backup backup; /* BACKUP */
    struct loop_timer *timer;
    bool whole, cancelled, was_there; /* TOKEN_ADD: nothing was added */
    uint64_t took_ms;
    json_t *answer; /* of admin_submit and the tier */
};

#define ADMIN_GONE "the client has closed the connection"

/* Returns the connection that waits for the answer, or NULL if it is closed. */
static struct conn *admin_get_conn(const struct admin *a)
{
    return conn_find(a->service->config.shared->conns, a->conn);
}

static void admin_free(struct admin *a)
{
    a->service->jobs--;
    LIST_REMOVE(a, of_all);
    if (a->service->backup == a) {
        a->service->backup = NULL;
    }
    verify_done(&a->check.verify);
    backup_done(&a->backup);
    json_decref(a->answer);
    arena_free(a->arena);
    explicit_bzero(a->token, sizeof a->token);
    explicit_bzero(a->request.given, sizeof a->request.given);
    loop_timer_free(a->timer);
    free(a);
}

/* Sends the progress, at most once in ADMIN_PROGRESS_MS. */
static void admin_report(struct admin *a, uint64_t done, uint64_t total)
{
    struct message m = {.type = FRAME_REPLY};
    struct conn *c = admin_get_conn(a);

    if (!c || loop_now() - a->told < ADMIN_PROGRESS_MS) {
        return;
    }
    a->told = loop_now();
    m.as.reply.content_type = m.as.reply.etag = "";
    m.as.reply.done = done;
    m.as.reply.total = total > done ? total : done;
    conn_send(c, &m, 0, a->tag);
}

/* Answers by a NACK, and frees the request. */
static void admin_refuse(struct admin *a, enum profd_status status, const char *sentence)
{
    struct conn *c = admin_get_conn(a);

    log_write(LOG_LEVEL_NOTICE, "administration", "%s of user %u: %s", admin_verb_name(a->request.verb), a->uid,
              sentence);
    if (c) {
        conn_nack(c, a->tag, status, sentence, 1000);
        sync_end_job(a->service->config.shared, c, a->session_job);
    }
    admin_free(a);
}

static void admin_send(struct admin_service *s, struct conn *c, uint32_t tag, json_t *answer)
{
    struct page page;

    page_init(&page, 200, "application/json; charset=utf-8");
    page.body.limit = ANSWER_MAX;
    document_write(answer, &page.body);
    reply_send(s->config.shared, c, tag, &page);
}

/* Ends a request with a->job.status: by a NACK, or by a->answer. */
static void admin_end(struct admin *a)
{
    struct conn *c = admin_get_conn(a);

    if (a->job.status) {
        admin_refuse(a, a->job.status, a->job.error.sentence);
        return;
    }
    if (c) {
        admin_send(a->service, c, a->tag, a->answer);
        a->answer = NULL;
        sync_end_job(a->service->config.shared, c, a->session_job);
    }
    admin_free(a);
}

static enum profd_status work_run(struct writer_job *job, struct store *store, struct profd_error *e)
{
    struct admin *a = container_of(job, struct admin, job);

    /* A deletion that is in the tier is done here, too. */
    return atomic_load(&a->gone) && !a->tombstones
               ? profd_error_set(e, PROFD_STOPPING, "not begun, because " ADMIN_GONE)
               : a->run(a, store, e);
}

static void work_done(struct writer_job *job)
{
    struct admin *a = container_of(job, struct admin, job);

    if (!a->job.status) {
        a->job.status = a->done(a, &a->job.error);
    }
    admin_end(a);
}

static const struct writer_job_type work_type = {.run = work_run, .done = work_done};
/* Symbols of a build that is deleted may go with it. */
static const struct writer_job_type delete_type = {.run = work_run, .done = work_done, .changes_objects = true};

/* Gives the request to the writer. It is answered by a NACK or by a->answer. */
static enum profd_status admin_submit(struct admin *a, admin_run *run, admin_done *done, struct profd_error *e)
{
    a->run = run;
    a->done = done;
    return writer_submit(a->service->config.shared->writer, &a->job,
                         a->request.verb == ADMIN_DELETE ? &delete_type : &work_type, e);
}

/* ADMIN backup: the copy is made in steps on the writer's connection, between batches of uploads. The complete copy is
 * unlinked and sent in pieces as the client reads them. */

#define PAUSE_MS 40

static void admin_verify_put(void *context)
{
    struct admin *a = context;

    if (!verifier_put(a->service->config.verifier, &a->check)) {
        admin_refuse(a, verifier_is_stopped(a->service->config.verifier) ? PROFD_STOPPING : PROFD_BUSY,
                     verifier_is_stopped(a->service->config.verifier) ? "the daemon is stopping"
                                                                      : "the queue of verifications is full");
    }
}

static void admin_verify_done(struct verification *c)
{
    struct admin *a = container_of(c, struct admin, check);

    verifier_note(a->service->config.verifier, c);
    if (c->status) {
        admin_refuse(a, c->status, c->error.sentence);
    } else if (atomic_load(&a->gone) || !admin_get_conn(a)) {
        admin_refuse(a, PROFD_STOPPING, "ended, because " ADMIN_GONE);
    } else if (c->verify.cursor.done) {
        const struct verify *v = &c->verify;
        const char *at = v->sentences.data, *end = at ? at + v->sentences.size : at;
        json_t *rows = json_array();

        while (at < end) {
            const char *line = at, *stop = memchr(at, '\n', (size_t)(end - at));

            json_array_append_new(rows, json_pack("{s:o}", "mismatch", document_text_of(line, (size_t)(stop - line))));
            at = stop + 1;
        }
        a->answer = json_pack("{s:I, s:I, s:o}", "uploads", (json_int_t)v->uploads, "mismatches",
                              (json_int_t)v->mismatches, "rows", rows);
        admin_end(a);
    } else {
        admin_report(a, c->verify.uploads, c->verify.total);
        /* A permanent reader would prevent the write-ahead log from being reset, so that it would grow with every
         * upload. */
        if (writer_pending(a->service->config.shared->writer)) {
            loop_timer_set(a->timer, PAUSE_MS);
        } else {
            admin_verify_put(a);
        }
    }
}

#define STEP_BYTES (4ull << 20)
#define PIECE_BYTES (12u << 10) /* below LIMIT_OUTPUT, so that requests are still read while the copy is sent */
#define AHEAD_BYTES (4u << 20)  /* read ahead, because the loop must not wait for the disk */
#define QUEUE_FULL_MS 50

struct admin_backup_source {
    struct conn_source source;
    struct admin *admin;
    uint64_t sent;
    bool ended;
};

static bool admin_backup_make(struct conn_source *source, uint8_t **block, size_t *size)
{
    struct admin_backup_source *b = container_of(source, struct admin_backup_source, source);
    const struct backup *backup = &b->admin->backup;
    struct message m = {.type = FRAME_REPLY};
    const uint64_t left = backup->total - b->sent;
    const size_t n = left < PIECE_BYTES ? (size_t)left : PIECE_BYTES;
    uint8_t piece[PIECE_BYTES];
    ssize_t got = 0;

    if (b->ended) {
        *size = 0;
        return true;
    }
    while (n && (got = pread(backup->fd, piece, n, (off_t)b->sent)) < 0 && errno == EINTR) {
    }
    if (got != (ssize_t)n) {
        log_write(LOG_LEVEL_ERROR, "administration", "backup of user %u: the copy cannot be read back", b->admin->uid);
        return false; /* closes the connection, so that the client cannot take a truncated copy for a complete one */
    }
    if (b->sent / AHEAD_BYTES != (b->sent + n) / AHEAD_BYTES || !b->sent) {
        posix_fadvise(backup->fd, (off_t)(b->sent + AHEAD_BYTES), AHEAD_BYTES, POSIX_FADV_WILLNEED);
    }
    m.as.reply.content_type = m.as.reply.etag = "";
    if (!b->sent) {
        m.as.reply.http_status = 200;
        m.as.reply.content_type = "application/vnd.sqlite3";
    }
    m.as.reply.body.data = piece;
    m.as.reply.body.size = n;
    b->sent += n;
    b->ended = b->sent == backup->total;
    m.as.reply.done = b->sent;
    m.as.reply.total = backup->total;
    return !message_encode(&m, b->ended ? FRAME_FLAG_LAST : 0, b->admin->tag, block, size, NULL);
}

static void admin_backup_free(struct conn_source *source)
{
    struct admin_backup_source *b = container_of(source, struct admin_backup_source, source);

    admin_free(b->admin);
    free(b);
}

static void admin_backup_put(void *context)
{
    struct admin *a = context;

    if (!writer_put(a->service->config.shared->writer, &a->job)) {
        loop_timer_set(a->timer, QUEUE_FULL_MS);
    }
}

static enum profd_status admin_backup_run(struct writer_job *job, struct store *store, struct profd_error *e)
{
    struct admin *a = container_of(job, struct admin, job);
    const uint64_t began = loop_now();

    a->cancelled = a->cancelled || atomic_load(&a->gone);
    if (a->cancelled) {
        backup_done(&a->backup);
        return PROFD_OK;
    }
    TRY(writer_job_check_space(job, e)); /* the copy must not use space that was freed for removals */
    const enum profd_status status = backup_step(&a->backup, store, STEP_BYTES, &a->whole, e);
    a->took_ms = loop_now() - began;
    return status;
}

static void admin_backup_step_done(struct writer_job *job)
{
    struct admin *a = container_of(job, struct admin, job);
    const struct admin_service *s = a->service;
    struct conn *c = admin_get_conn(a);

    if (job->status == PROFD_STOPPING) {
        return; /* the writer may still use the connection that makes the copy: admin_service_free frees it */
    }
    if (a->cancelled) {
        admin_refuse(a, PROFD_STOPPING, s->stopped ? "the daemon is stopping" : "ended, because " ADMIN_GONE);
    } else if (a->job.status) {
        /* An error of the copy concerns only the copy: the store detects its own errors. */
        admin_refuse(a, a->job.status, a->job.error.sentence);
    } else if (!c || s->stopped) {
        a->cancelled = true;
        admin_backup_put(a); /* it ends on the thread that made it */
    } else if (!a->whole) {
        admin_report(a, a->backup.done, a->backup.total);
        /* Uploads have three quarters of the writer's time. */
        if (writer_pending(s->config.shared->writer) && a->took_ms) {
            loop_timer_set(a->timer, 3 * a->took_ms);
        } else {
            admin_backup_put(a);
        }
    } else {
        struct admin_backup_source *b = calloc(1, sizeof *b);

        if (!b) {
            admin_refuse(a, PROFD_NO_MEMORY, "no memory to send the copy");
            return;
        }
        b->source.make = admin_backup_make;
        b->source.free = admin_backup_free;
        b->source.size = sizeof *b;
        b->admin = a;
        log_write(LOG_LEVEL_NOTICE, "administration", "backup of user %u: %" PRIu64 " bytes are being sent", a->uid,
                  a->backup.total);
        sync_end_job(s->config.shared, c, a->session_job);
        conn_stream(c, &b->source);
    }
}

static const struct writer_job_type admin_backup_type = {.run = admin_backup_run, .done = admin_backup_step_done};

/* ADMIN tier-init, and the tombstones of a delete: on a thread of their own, which waits for ClickHouse. */

#define CONNECT_MS 10000
#define ANSWER_MS 120000 /* of a statement: replicated tables are made slowly */
#define REPLY_BYTES (1u << 20)

static bool admin_tier_stopped(void *context)
{
    const struct admin *a = context;

    return atomic_load(&a->gone) || atomic_load(&a->service->stopped);
}

static enum profd_status admin_add_owner(void *context, const char *tenant, struct profd_error *e)
{
    struct admin *a = context;
    const char *copy = arena_copy(a->arena, tenant, strlen(tenant));

    if (!copy || !ARENA_EXTEND(a->arena, a->tenants, (uint32_t)a->order.tenant_count, a->tenant_capacity)) {
        return profd_no_memory(e);
    }
    a->order.tenants = a->tenants;
    a->tenants[a->order.tenant_count++] = copy;
    return PROFD_OK;
}

/* Fills in a->order: the build, its tenants, this centre and its newest block. */
static enum profd_status admin_order(struct admin *a, struct store *store, struct profd_error *e)
{
    const struct store_scope all = {.all = true};
    struct store_tier_totals totals;
    struct store_centre centre;

    TRY(store_find_build(store, &all, a->request.build, &a->build, e));
    TRY(store_each_owner(store, a->build.text, admin_add_owner, a, e));
    TRY(store_get_centre(store, &centre, e));
    TRY(store_get_tier_totals(store, 0, &totals, e));
    memcpy(a->order.centre, centre.name, sizeof centre.name);
    a->order.block = totals.newest;
    a->order.deleted = loop_clock();
    a->order.build = a->build.text;
    return PROFD_OK;
}

static enum profd_status admin_write_tombstones(struct admin *a, const struct clickhouse_limits *limits,
                                                struct profd_error *e)
{
    const struct admin_config *c = &a->service->config;
    struct clickhouse *client = NULL;
    struct store *store = NULL;

    a->arena = arena_new(0);
    TRY(a->arena ? PROFD_OK : profd_no_memory(e));
    TRY(store_sqlite_open_reader(c->shared->database, &store, e));
    enum profd_status status = admin_order(a, store, e);
    store_close(store);
    TRY(status);
    if (!a->order.tenant_count) { /* the writer says why it cannot be deleted */
        return PROFD_OK;
    }
    TRY(clickhouse_open(c->tier, c->tier_ca, limits, &client, e));
    status = tombstone_write(client, &a->order, a->arena, &a->tombstones, &a->tombstone_count, e);
    clickhouse_close(client);
    return !status || status == PROFD_NO_MEMORY
               ? status
               : profd_error_wrap(e, PROFD_UNAVAILABLE,
                                  "build %s is not deleted, because ClickHouse cannot record that it is",
                                  a->build.text);
}

static void admin_tier_run(void *context, struct work_item *const *items, size_t n)
{
    struct admin *a = container_of(items[0], struct admin, item); /* the batches are of one */
    const struct admin_config *c = &a->service->config;
    const struct clickhouse_limits limits = {.connect_ms = CONNECT_MS,
                                             .answer_ms = ANSWER_MS,
                                             .reply_bytes = REPLY_BYTES,
                                             .stopped = admin_tier_stopped,
                                             .context = a};
    struct tier_made made;

    (void)context;
    (void)n;
    if (a->request.verb == ADMIN_DELETE) {
        a->job.status = admin_write_tombstones(a, &limits, &a->job.error);
        return;
    }
    a->job.status = tier_init(c->tier, c->tier_ca, &limits, &made, &a->job.error);
    if (!a->job.status) {
        json_t *rows = json_array();

        for (unsigned i = 0; i < made.count; i++) {
            json_array_append_new(rows, json_pack("{s:s, s:s, s:s, s:b}", "server", made.servers[i].place, "version",
                                                  made.servers[i].version, "database", c->tier->database, "made",
                                                  made.servers[i].made));
        }
        a->answer = json_pack("{s:o}", "rows", rows);
    }
}

static enum profd_status bury_run(struct admin *a, struct store *store, struct profd_error *e);
static enum profd_status delete_done(struct admin *a, struct profd_error *e);

static void admin_tier_done(void *context, struct work_item *item)
{
    struct admin *a = container_of(item, struct admin, item);

    (void)context;
    if (!a->job.status && a->request.verb == ADMIN_DELETE) {
        struct profd_error e;
        const enum profd_status status = admin_submit(a, bury_run, delete_done, &e);

        if (!status) {
            return; /* the writer has it */
        }
        a->job.status = status;
        a->job.error = e;
    } else if (!a->job.status) {
        log_write(LOG_LEVEL_NOTICE, NULL, "user %u made the tables of the tier, or found them there", a->uid);
    }
    admin_end(a);
}

static enum profd_status admin_begin_tier(struct admin *a, struct profd_error *e)
{
    FAIL_IF(!a->service->tier, e, PROFD_REFUSED, "no tier is configured: the key tier of profd.conf(5) names it");
    a->item.uid = a->uid;
    return work_put(a->service->tier, &a->item)
               ? PROFD_OK
               : profd_error_set(e, PROFD_BUSY, "too many requests for the tier are in progress");
}

/* ADMIN token-add, token-list and token-remove. */

#define SECRET_SIZE 32
#define TOKEN_PREFIX "profd_" /* scanners of source code find leaked tokens by it */

static json_t *token_time(int64_t at)
{
    char text[40];

    if (!at) {
        return json_null();
    }
    render_time(at, text);
    return json_string(text);
}

static json_t *token_describe(const struct store_token *t)
{
    static const char *const names[] = {"read", "write", "admin"};
    json_t *rights = json_array();

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (t->rights & 1u << i) {
            json_array_append_new(rights, json_string(names[i]));
        }
    }
    return json_pack("{s:s, s:o, s:s, s:o, s:b, s:o, s:o}", "name", t->name, "rights", rights, "tenant", t->tenant,
                     "hosts", *t->hosts ? json_string(t->hosts) : json_null(), "proxy", !t->has_hash, "expires",
                     token_time(t->expires), "created", token_time(t->created));
}

static bool token_list(void *context, const struct store_token *t)
{
    struct admin *a = context;

    if (json_array_append_new(json_object_get(a->answer, "rows"), token_describe(t))) {
        json_decref(a->answer); /* no memory: a list without this row would look whole */
        a->answer = NULL;
    }
    return a->answer;
}

/* Takes a token that is there already, as it is to be added. */
static bool token_is_there(void *context, const struct store_token *t)
{
    struct store_token *wanted = context;

    if (!strcmp(t->name, wanted->name) && t->has_hash && !memcmp(t->hash, wanted->hash, sizeof t->hash) &&
        t->rights == wanted->rights && !strcmp(t->tenant, wanted->tenant) && !strcmp(t->hosts, wanted->hosts) &&
        t->expires == wanted->expires && (!t->expires || t->expires > wanted->created)) {
        *wanted = *t;
    }
    return !wanted->id;
}

static enum profd_status token_run(struct admin *a, struct store *store, struct profd_error *e)
{
    struct store_token *t = &a->request.token;

    if (a->request.verb == ADMIN_TOKEN_REMOVE) {
        TRY(store_remove_token(store, t->name, &t->id, e));
        a->answer = json_pack("{s:s}", "name", t->name);
    } else if (a->request.verb == ADMIN_TOKEN_LIST) {
        a->answer = json_pack("{s:[]}", "rows");
        TRY(store_each_token(store, token_list, a, e));
    } else {
        TRY(*a->request.given ? store_each_token(store, token_is_there, t, e) : PROFD_OK);
        a->was_there = t->id > 0;
        if (!a->was_there) {
            TRY(writer_job_check_space(&a->job, e));
            TRY(store_add_token(store, t, e));
        }
        a->answer = token_describe(t);
        json_object_set_new(a->answer, "added", json_boolean(!a->was_there));
        json_object_set_new(a->answer, "token", t->has_hash ? json_string(a->token) : json_null());
    }
    return PROFD_OK;
}

/* Changes the tokens by which HTTP judges before the answer is sent. */
static enum profd_status token_done(struct admin *a, struct profd_error *e)
{
    const struct admin_config *config = &a->service->config;
    const struct store_token *t = &a->request.token;

    if (a->request.verb == ADMIN_TOKEN_LIST) {
        return PROFD_OK;
    }
    if (a->request.verb == ADMIN_TOKEN_ADD) {
        TRY(tokens_find(config->shared->tokens, t->id) ? PROFD_OK : tokens_add(config->shared->tokens, t, e));
    } else {
        tokens_remove(config->shared->tokens, t->id);
        config->end_token(config->context, t->id);
    }
    if (!a->was_there) {
        log_write(LOG_LEVEL_NOTICE, NULL, "user %u %s token %s", a->uid,
                  a->request.verb == ADMIN_TOKEN_ADD ? "added" : "removed", t->name);
    }
    return PROFD_OK;
}

static enum profd_status admin_begin_token(struct admin *a, struct profd_error *e)
{
    struct store_token *t = &a->request.token;
    const bool add = a->request.verb == ADMIN_TOKEN_ADD;

    t->created = upkeep_job_clock(a->service->config.upkeep);
    if (add && *a->request.until && when_parse("expires", a->request.until, t->created, &t->expires, e)) {
        return PROFD_USAGE;
    }
    FAIL_IF(add && *a->request.until && t->expires <= t->created, e, PROFD_USAGE,
            "a token cannot end at %s, which is in the past", a->request.until);
    if (a->request.lasts) {
        t->expires = t->created + a->request.lasts;
    }
    if (add && t->has_hash) {
        uint8_t secret[SECRET_SIZE];
        struct sha256_ctx context;

        memcpy(a->token, a->request.given, sizeof a->token);
        if (!*a->token) { /* draws one */
            FAIL_IF(getrandom(secret, sizeof secret, 0) != (ssize_t)sizeof secret, e, PROFD_IO,
                    "cannot draw a token: %s", strerror(errno));
            memcpy(a->token, TOKEN_PREFIX, sizeof TOKEN_PREFIX - 1);
            hex_put(a->token + sizeof TOKEN_PREFIX - 1, secret, sizeof secret);
            explicit_bzero(secret, sizeof secret);
        }
        sha256_init(&context);
        sha256_update(&context, strlen(a->token), (const uint8_t *)a->token);
        sha256_digest(&context, sizeof a->request.token.hash, a->request.token.hash);
    }
    return admin_submit(a, token_run, token_done, e);
}

#define PROCESSES_MAX (64u << 20) /* bytes of an answer */

/* A full disk does not stop it, because removing frees space. */
static enum profd_status delete_run(struct admin *a, struct store *store, struct profd_error *e)
{
    const struct store_scope all = {.all = true};
    TRY(store_find_build(store, &all, a->request.build, &a->build, e));
    enum profd_status status = store_delete_build(store, &all, a->build.text, &a->uploads, e);
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

static enum profd_status bury_run(struct admin *a, struct store *store, struct profd_error *e)
{
    if (!a->tombstones) {
        return delete_run(a, store, e);
    }
    /* If blocks were sealed meanwhile, the mirror covers them, as it does for deletions at other centres. */
    enum profd_status status = store_bury(store, a->tombstones, a->tombstone_count, &a->uploads, e);
    if (status == PROFD_FULL && space_give_up(a->service->config.space)) {
        status = store_bury(store, a->tombstones, a->tombstone_count, &a->uploads, e);
    }
    return status;
}

/* A full disk does not stop it, because it removes more than it writes. */
static enum profd_status move_run(struct admin *a, struct store *store, struct profd_error *e)
{
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
                                     struct admin_request *request, struct profd_error *e)
{
    const struct peer *peer = conn_get_peer(c);
    const bool for_all = !strcmp(m->verb, "pause") || !strcmp(m->verb, "resume"); /* for processes of one's own */
    uint64_t reserve;

    if (!peer->may_admin && !for_all) {
        return profd_error_set(
            e, PROFD_FORBIDDEN,
            "user %u may not use the command \"%.100s\"; only root, the daemon's user and members of the admin "
            "group may",
            peer->uid, m->verb);
    }
    enum profd_status status = admin_parse(m->verb, m->arguments, m->argument_count, request, e);
    if (status || for_all) {
        return status;
    }
    if (request->verb == ADMIN_RELOAD) {
        return PROFD_OK;
    }
    if (request->verb != ADMIN_VERIFY && writer_check(s->config.shared->writer, e)) {
        return PROFD_IO;
    }
    FAIL_IF(request->verb == ADMIN_BACKUP && space_get_reserve(s->config.space, &reserve) == RESERVE_GIVEN_UP, e,
            PROFD_FULL, "no space left in %s, where a backup is stored before it is sent", s->config.state_dir);
    FAIL_IF(request->verb == ADMIN_BACKUP && s->backup, e, PROFD_BUSY, "another backup is in progress");
    FAIL_IF(s->jobs >= LIMIT_ADMIN_JOBS, e, PROFD_BUSY,
            "too many admin requests: %zu in progress, the limit is %u; try again later", s->jobs, LIMIT_ADMIN_JOBS);
    return PROFD_OK;
}

static enum profd_status admin_begin(struct admin *a, struct profd_error *e)
{
    struct admin_service *s = a->service;

    switch (a->request.verb) {
    case ADMIN_DELETE:
        return s->tier ? admin_begin_tier(a, e) : admin_submit(a, delete_run, delete_done, e);
    case ADMIN_RELAY_MOVE:
        return admin_submit(a, move_run, move_done, e);
    case ADMIN_TOKEN_ADD:
    case ADMIN_TOKEN_LIST:
    case ADMIN_TOKEN_REMOVE:
        return admin_begin_token(a, e);
    case ADMIN_TIER_INIT:
        return admin_begin_tier(a, e);
    case ADMIN_VERIFY:
        a->timer = loop_timer_new(s->config.shared->loop, admin_verify_put, a);
        TRY(a->timer ? PROFD_OK : profd_no_memory(e));
        a->check.item.uid = a->uid;
        a->check.done = admin_verify_done;
        return verifier_put(s->config.verifier, &a->check)
                   ? PROFD_OK
                   : profd_error_set(e, PROFD_BUSY, "the queue of verifications is full");
    default: /* ADMIN_BACKUP */
        TRY(backup_init(&a->backup, s->config.state_dir, ++s->backup_number, e));
        TRY(backup_judge_space(s->config.state_dir, e));
        a->timer = loop_timer_new(s->config.shared->loop, admin_backup_put, a);
        return a->timer ? writer_submit(s->config.shared->writer, &a->job, &admin_backup_type, e) : profd_no_memory(e);
    }
}

/* Pause and resume are told to the processes at once; the answer lists them. */
static enum profd_status admin_control(struct admin_service *s, struct conn *c, uint32_t tag,
                                       const struct admin_request *request, struct profd_error *e)
{
    const struct peer *peer = conn_get_peer(c);
    struct arena *arena = arena_new(PROCESSES_MAX);
    struct process_row *rows;
    struct page page;
    size_t n;
    enum profd_status status =
        arena ? live_control(s->config.shared->live, peer, &request->processes, loop_clock(), arena, &rows, &n, e)
              : profd_no_memory(e);

    if (!status) {
        page_init(&page, 200, "application/json; charset=utf-8");
        page.body.limit = PROCESSES_MAX;
        render_list(RENDER_PROCESSES, rows, n, NULL, &page.body);
        reply_send(s->config.shared, c, tag, &page);
    }
    arena_free(arena);
    return status;
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

    log_write(LOG_LEVEL_NOTICE, "administration", "user %u requested reload", conn_get_peer(c)->uid);
    enum profd_status status = s->config.reload(s->config.context, &change, e);
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

    FAIL_IF(ahead <= 0, e, PROFD_REFUSED, "the clock is not ahead: removals use it already");
    log_write(LOG_LEVEL_NOTICE, "administration",
              "user %u confirmed the clock, which is %.1f days ahead: from now on data and ids of uploads are removed "
              "by it",
              conn_get_peer(c)->uid, ahead / 86400);
    admin_send(s, c, tag, json_pack("{s:f}", "clock_ahead_seconds", ahead));
    return PROFD_OK;
}

static enum profd_status admin_start(struct admin_service *s, struct conn *c, uint32_t tag,
                                     const struct admin_request *request, struct profd_error *e)
{
    struct admin *a = calloc(1, sizeof *a);

    TRY(a ? PROFD_OK : profd_no_memory(e));
    a->service = s;
    a->conn = conn_get_id(c);
    a->tag = tag;
    a->uid = conn_get_peer(c)->uid;
    a->request = *request;
    a->backup.fd = -1;
    verify_init(&a->check.verify, LIMIT_MISMATCHES);
    s->jobs++;
    LIST_INSERT_HEAD(&s->all, a, of_all);
    if (request->verb == ADMIN_BACKUP) {
        s->backup = a;
    }
    enum profd_status status = admin_begin(a, e);
    if (status) {
        admin_free(a);
        return status;
    }
    a->session_job = session_begin(conn_get_user(c));
    log_write(LOG_LEVEL_NOTICE, "administration", "user %u requested %s%s%s", a->uid, admin_verb_name(request->verb),
              *request->build ? " " : "", request->build);
    return PROFD_OK;
}

enum profd_status admin_receive(void *context, struct conn *c, struct conn_frame *f, struct profd_error *e)
{
    struct admin_service *s = context;
    struct admin_request request;
    struct message m;
    TRY(body_decode(f, &m, e));
    enum profd_status status = admin_check(s, c, &m.as.admin, &request, e);
    if (!status && (request.verb == ADMIN_PAUSE || request.verb == ADMIN_RESUME)) {
        status = admin_control(s, c, f->header.tag, &request, e); /* selectors point into the message */
    } else if (!status && request.verb == ADMIN_RELOAD) {
        status = admin_reload(s, c, f->header.tag, e);
    } else if (!status && request.verb == ADMIN_CONFIRM_CLOCK) {
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
    const struct work_config tier = {.name = "profd-tier-ask",
                                     .threads = 1,
                                     .queue_max = 4,
                                     .queue_max_uid = 4,
                                     .batch_max = 1,
                                     .run = admin_tier_run,
                                     .done = admin_tier_done};
    struct admin_service *s = calloc(1, sizeof *s);
    enum profd_status status = PROFD_OK;

    TRY(s ? PROFD_OK : profd_no_memory(e));
    s->config = *config;
    if (config->tier) {
        status = work_new(config->shared->loop, &tier, &s->tier, e);
    }
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

/* The arguments of requests. Nothing here reads the daemon's state. */

#define INSTANCE_PREFIX 4u
#define PID_DIGITS 7u /* numbers of processes are below 4194304; what is longer begins an instance */
#define RATE "rate="
#define TOKEN_SECONDS_MAX 3155760000u /* 100 years */
#define NAME_CHARACTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._@-"

/* 1 to STORE_NAME_MOST characters of those allowed; what is the subject of the sentence. */
static enum profd_status parse_name(const char *what, const char *text, const char *allowed,
                                    char out[STORE_NAME_MOST + 1], struct profd_error *e)
{
    const size_t n = strlen(text);

    FAIL_IF(!n || n > STORE_NAME_MOST || strspn(text, allowed) < n, e, PROFD_USAGE,
            "%s \"%.100s\" must have 1 to %u letters, digits and characters of \"%s\"", what, text, STORE_NAME_MOST,
            strstr(allowed, "._@-"));
    memcpy(out, text, n + 1);
    return PROFD_OK;
}

/* Words of "read", "write" and "admin" with commas. The right admin includes read. */
static enum profd_status parse_rights(const char *text, unsigned *out, struct profd_error *e)
{
    static const struct {
        const char *name;
        unsigned rights;
    } words[] = {{"read", STORE_MAY_READ}, {"write", STORE_MAY_WRITE}, {"admin", STORE_MAY_ADMIN | STORE_MAY_READ}};

    for (const char *at = text;; at++) {
        const size_t n = strcspn(at, ",");
        size_t i = 0;

        while (i < sizeof words / sizeof *words && (strlen(words[i].name) != n || memcmp(words[i].name, at, n) != 0)) {
            i++;
        }
        FAIL_IF(i == sizeof words / sizeof *words, e, PROFD_USAGE,
                "\"%.100s\" is not a list of the rights read, write and admin", text);
        *out |= words[i].rights;
        at += n;
        if (!*at) {
            return PROFD_OK;
        }
    }
}

/* Name, rights, tenant or "all", end ("" for ever, "+SECONDS", or a time), "token", "proxy" or the token itself,
 * pattern of hosts or "". */
static enum profd_status parse_token(const char *const *arguments, struct admin_request *out, struct profd_error *e)
{
    const char *const end = arguments[3], *const kind = arguments[4], *const hosts = arguments[5];
    struct store_token *t = &out->token;
    TRY(parse_name("the name of a token,", arguments[0], NAME_CHARACTERS, t->name, e));
    TRY(parse_rights(arguments[1], &t->rights, e));

    t->all = !strcmp(arguments[2], "all");
    t->has_hash = strcmp(kind, "proxy") != 0;
    if (t->all) {
        memcpy(t->tenant, "all", sizeof "all");
    } else {
        TRY(parse_name("the name of a tenant,", arguments[2], NAME_CHARACTERS, t->tenant, e));
    }
    FAIL_IF(t->all && (t->rights & STORE_MAY_WRITE), e, PROFD_USAGE,
            "a token with the right write belongs to one tenant, which owns what it sends, and not to all");
    if (*hosts) {
        TRY(parse_name("the pattern of the names of hosts,", hosts, NAME_CHARACTERS "*?", t->hosts, e));
    }
    FAIL_IF(*hosts && !(t->rights & STORE_MAY_WRITE), e, PROFD_USAGE,
            "only a token with the right write has a pattern of the names of hosts");
    if (!strncmp(kind, TOKEN_PREFIX, strlen(TOKEN_PREFIX))) {
        const char *const digits = kind + strlen(TOKEN_PREFIX);

        FAIL_IF(strlen(digits) != 2 * SECRET_SIZE || digits[strspn(digits, "0123456789abcdef")], e, PROFD_USAGE,
                "the token is not " TOKEN_PREFIX " and %d hexadecimal digits, as \"openssl rand -hex %d\" prints them",
                2 * SECRET_SIZE, SECRET_SIZE);
        memcpy(out->given, kind, strlen(kind) + 1);
    } else if (t->has_hash && strcmp(kind, "token") != 0) {
        return profd_error_set(e, PROFD_USAGE, "a token is shown (token) or named by a proxy (proxy), not \"%.100s\"",
                               kind);
    }
    if (*end == '+') {
        const size_t n = strspn(end + 1, "0123456789");
        const unsigned long long seconds = n && n < 12 && !end[n + 1] ? strtoull(end + 1, NULL, 10) : 0;

        FAIL_IF(!seconds || seconds > TOKEN_SECONDS_MAX, e, PROFD_USAGE, "token-add: \"%.100s\" is not 1 to %u seconds",
                end + 1, TOKEN_SECONDS_MAX);
        out->lasts = (int64_t)seconds * 1000000000;
        return PROFD_OK;
    }
    FAIL_IF(strlen(end) >= sizeof out->until, e, PROFD_USAGE, "token-add: \"%.100s\" is not a time", end);
    memcpy(out->until, end, strlen(end) + 1);
    return PROFD_OK;
}

/* A number is a process, K=V a label, and hexadecimal digits are the beginning of an instance. */
static enum profd_status parse_selector(const char *verb, const char *text, struct live_selector *out,
                                        struct profd_error *e)
{
    const size_t n = strlen(text), digits = strspn(text, "0123456789"), hex = strspn(text, "0123456789abcdef");
    const char *equals = strchr(text, '=');
    struct live_selector s = {.text = text};

    if (equals && equals > text) {
        s.kind = LIVE_LABEL;
        s.name_size = (size_t)(equals - text);
        s.value = equals + 1;
    } else if (n && digits == n && n <= PID_DIGITS && strtoull(text, NULL, 10) <= INT32_MAX) {
        s.kind = LIVE_PID;
        s.pid = (uint32_t)strtoul(text, NULL, 10);
    } else if (hex == n && n >= INSTANCE_PREFIX && n <= 2 * ATTACH_INSTANCE_SIZE) {
        s.kind = LIVE_INSTANCE;
    } else {
        return profd_error_set(
            e, PROFD_USAGE,
            "%s: \"%.100s\" is neither a process id, nor a label K=V, nor %u to %d hexadecimal digits of an instance",
            verb, text, INSTANCE_PREFIX, 2 * ATTACH_INSTANCE_SIZE);
    }
    *out = s;
    return PROFD_OK;
}

static enum profd_status parse_switch(const char *verb, const char *const *arguments, size_t n,
                                      struct admin_request *out, struct profd_error *e)
{
    enum profd_status status = PROFD_OK;

    FAIL_IF(n > LIMIT_ADMIN_ARGUMENTS, e, PROFD_USAGE, "%s takes at most %u arguments, not %zu", verb,
            LIMIT_ADMIN_ARGUMENTS, n);
    for (size_t i = 0; i < n && !status; i++) {
        if (!strncmp(arguments[i], RATE, strlen(RATE))) {
            const char *digits = arguments[i] + strlen(RATE);
            const size_t size = strspn(digits, "0123456789");
            const unsigned long rate =
                size && size < 9 && !digits[size] ? strtoul(digits, NULL, 10) : ATTACH_RATE_MAX + 1ul;

            FAIL_IF(rate > ATTACH_RATE_MAX, e, PROFD_USAGE,
                    "%s: \"%.100s\" is not a rate from 0 to %u ticks per second", verb, arguments[i], ATTACH_RATE_MAX);
            out->processes.has_rate = true;
            out->processes.rate = (uint32_t)rate;
        } else {
            status = parse_selector(verb, arguments[i], &out->processes.selectors[out->processes.selector_count++], e);
        }
    }
    if (!status && !out->processes.selector_count) {
        status =
            profd_error_set(e, PROFD_USAGE, "%s: no process given; name a process id, labels K=V or an instance", verb);
    }
    return status;
}

static const struct {
    const char *name;
    enum admin_verb verb;
    size_t arguments;
} verbs[] = {{"delete", ADMIN_DELETE, 1},
             {"verify", ADMIN_VERIFY, 0},
             {"backup", ADMIN_BACKUP, 0},
             {"pause", ADMIN_PAUSE, 0},
             {"resume", ADMIN_RESUME, 0},
             {"reload", ADMIN_RELOAD, 0},
             {"confirm-clock", ADMIN_CONFIRM_CLOCK, 0},
             {"token-add", ADMIN_TOKEN_ADD, 6},
             {"token-list", ADMIN_TOKEN_LIST, 0},
             {"token-remove", ADMIN_TOKEN_REMOVE, 1},
             {"relay-move", ADMIN_RELAY_MOVE, 0},
             {"tier-init", ADMIN_TIER_INIT, 0}};

const char *admin_verb_name(enum admin_verb verb)
{
    size_t i = 0;

    while (verbs[i].verb != verb) {
        i++;
    }
    return verbs[i].name;
}

enum profd_status admin_parse(const char *verb, const char *const *arguments, size_t n, struct admin_request *out,
                              struct profd_error *e)
{
    enum profd_status status = PROFD_OK;
    struct admin_request r = {.verb = ADMIN_DELETE};
    size_t i = 0;

    while (i < sizeof verbs / sizeof *verbs && strcmp(verbs[i].name, verb) != 0) {
        i++;
    }
    FAIL_IF(i == sizeof verbs / sizeof *verbs, e, PROFD_METHOD,
            "unknown command \"%.100s\"; known are delete, verify, backup, pause, resume, reload, confirm-clock, "
            "token-add, token-list, token-remove, relay-move and tier-init",
            verb);
    r.verb = verbs[i].verb;
    if (r.verb == ADMIN_PAUSE || r.verb == ADMIN_RESUME) {
        r.processes.pause = r.verb == ADMIN_PAUSE;
        status = parse_switch(verb, arguments, n, &r, e);
    } else if (n != verbs[i].arguments) {
        status = profd_error_set(e, PROFD_USAGE, "%s takes %zu %s, not %zu", verb, verbs[i].arguments,
                                 noun_for(verbs[i].arguments, "argument", "arguments"), n);
    } else if (r.verb == ADMIN_TOKEN_ADD) {
        status = parse_token(arguments, &r, e);
    } else if (r.verb == ADMIN_TOKEN_REMOVE) {
        status = parse_name("the name of a token,", arguments[0], NAME_CHARACTERS, r.token.name, e);
    } else if (n) {
        const size_t size = strlen(arguments[0]);

        FAIL_IF(!size || size >= sizeof r.build, e, PROFD_USAGE, "a build-id of %zu bytes; it must have 1 to %zu", size,
                sizeof r.build - 1);
        memcpy(r.build, arguments[0], size + 1);
    }
    if (!status) {
        *out = r;
    }
    return status;
}
