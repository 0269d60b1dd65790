/* Starts the components in the order of their dependencies. */
#include <fcntl.h>
#include <malloc.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "core/arena.h"
#include "render/render.h"
#include "ingest/otlp.h"
#include "ingest/pyroscope.h"
#include "requests/requests.h"
#include "server.h"
#include "web/web_files.h"
#include "writer/backup.h"
#include "writer/database.h"
#include "writer/restore.h"

#define CLOSER_THREADS 64u
#define DESCRIPTORS_SPARE 512u
#define DESCRIPTORS_ENOUGH (2 * (LIMIT_CONNECTIONS + 2 * LIMIT_ATTACHED))
#define HEAP_SPARE (32 << 20) /* bytes */
#define HEAP_STEP (1 << 20)
#define HEAP_MMAP (16 << 20) /* larger blocks are mapped, and unmapped when freed */
#define HEAP_ARENAS ((size_t)128 << 20)

/* Records damage, so that the next start reads the whole database. */
static void server_mark_damaged(struct server *s, bool unwritable)
{
    database_mark_damaged(s->config->state_dir, s->lock_fd, unwritable);
}

/* Starts the brokers before anything is opened, because their processes must inherit nothing. Then makes the loop. */
static enum profd_status server_start_brokers(struct server *s, struct profd_error *e)
{
    enum profd_status status = PROFD_OK;

    for (unsigned i = 0; i < LIMIT_WORKERS && !status; i++) {
        status = broker_start(&s->brokers[i], e);
    }
    return status ? status : loop_new(&s->loop, e);
}

enum profd_status server_finish_restore(const char *state_dir, bool *restored, struct profd_error *e)
{
    char kept[256] = "";
    TRY(restore_finish(state_dir, restored, kept, sizeof kept, e));

    if (*restored) {
        log_write(LOG_LEVEL_NOTICE, NULL, "backup restored in %s%s%s", state_dir,
                  *kept ? "; the previous database is kept as " : "", kept);
    }
    return PROFD_OK;
}

static enum profd_status server_open_directory(struct server *s, struct profd_error *e)
{
    const struct config *config = s->config;
    const struct space_config space = {
        .state_dir = config->state_dir, .keep_bytes = config->keep_bytes, .user_share = config->user_share};
    TRY(state_dir_lock(config->state_dir, &s->lock_fd, &s->directory_fd, e));
    bool restored;

    backup_clean(config->state_dir);
    TRY(server_finish_restore(config->state_dir, &restored, e));
    TRY(state_dir_database_path(config->state_dir, s->path, sizeof s->path, e));
    s->run_times = run_times_open(s->directory_fd, loop_clock());
    TRY(s->run_times ? PROFD_OK : profd_no_memory(e));
    return space_open(&space, &s->space, e);
}

/* Only a reader has met damage: writing continues, and the next start reads the whole file. */
static void server_on_read_failure(void *context, const char *sentence)
{
    struct server *s = context;

    if (s->read_failed) {
        return;
    }
    s->read_failed = true;
    log_write(LOG_LEVEL_ERROR, NULL,
              "profd could not read %s: %s; what needs it is refused, and uploads go on; profctl verify says which "
              "data is affected; start profd again to check the whole file, and restore a backup, see profd(8)",
              s->path, sentence);
    server_mark_damaged(s, false);
}

static enum profd_status server_open_store(struct server *s, struct profd_error *e)
{
    char lock[4096];
    enum profd_status status = database_open(s->config->state_dir, s->lock_fd, &s->write_store, &s->salt, e);

    /* If the lock file is missing, an older daemon could start on the same data, so this one must not write. */
    status = status ? status : state_dir_lock_path(s->config->state_dir, lock, sizeof lock, e);
    status = status ? status : store_sqlite_watch(s->write_store, lock, s->lock_fd, e);
    /* Identifies this run of the daemon, to distinguish processes that an earlier daemon read. Without random numbers
     * the clock is used. */
    if (getrandom(&s->run, sizeof s->run, 0) != (ssize_t)sizeof s->run) {
        s->run = (uint64_t)loop_clock();
    }
    s->run = (s->run & INT64_MAX) | 1;
    if (!status && store_sqlite_bad_page(s->write_store)) {
        struct profd_error why;

        (void)profd_error_set(&why, PROFD_DAMAGED, "page %lld does not have its checksum",
                              (long long)store_sqlite_bad_page(s->write_store));
        server_on_read_failure(s, why.sentence);
    }
    if (!status) {
        store_set_run(s->write_store, s->run);
        store_set_tier(s->write_store, s->config->tier != NULL);
        status = s->config->relay ? relay_begin_epoch(s->write_store, s->relay.epoch, e) : PROFD_OK;
    }
    if (!status) {
        s->tokens.has_proxy = s->config->has_http_proxy_user;
        s->tokens.proxy_user = s->config->http_proxy_user;
        status = tokens_load(&s->tokens, s->write_store, e);
    }
    status = status ? status : store_get_centre(s->write_store, &s->was, e);
    status = status ? status : store_sqlite_open_reader(s->path, &s->check_store, e);
    status = status ? status : build_cache_new(s->check_store, &s->builds, e);
    if (!status) {
        space_keep(s->space);
        run_times_begin(s->run_times);
    } else if (status == PROFD_DAMAGED && s->write_store) { /* the next start begins a new database */
        server_mark_damaged(s, true);
    }
    return status;
}

/* The store has failed: no SYNC can be granted any more. A new process starts from what is on the disk; without a
 * supervisor reads go on in this one. */
static void server_on_store_failure(void *context, bool damaged)
{
    struct server *s = context;

    if (damaged) {
        server_mark_damaged(s, true);
    }
    live_fail_syncs(s->live);
    if (s->managed) {
        server_stop(s, profd_status_exit(PROFD_IO));
    }
}

static uint64_t server_get_uploads(void *context)
{
    const struct server *s = context;

    return s->uploads.counts.stored;
}

/* A clock that is ahead would seal days that have not ended. */
static int64_t server_get_clock(void *context)
{
    const struct server *s = context;
    struct upkeep_counts counts;

    upkeep_job_get_counts(s->upkeep, &counts);
    return counts.clock_ahead > 0 ? 0 : upkeep_job_clock(s->upkeep);
}

/* Reads the address of the tier and its password. Does not connect. */
static enum profd_status server_open_tier(struct server *s, struct profd_error *e)
{
    const char *path = s->config->tier_password_file;

    if (!s->config->tier) {
        return PROFD_OK;
    }
    TRY(clickhouse_parse_address(s->config->tier, &s->tier, e));
    TRY(path ? config_read_secret("password", path, 1, s->tier.password, sizeof s->tier.password, e) : PROFD_OK);
    return fetcher_new(&s->tier, s->config->tier_ca, &s->fetcher, e);
}

static enum profd_status server_start_sealer(struct server *s, struct profd_error *e)
{
    const struct sealer_config config = {.loop = s->loop,
                                         .writer = s->writer,
                                         .address = &s->tier,
                                         .ca = s->config->tier_ca,
                                         .name = s->config->tier_name,
                                         .database = s->path,
                                         .seal_after = s->config->seal_after,
                                         .get_clock = server_get_clock,
                                         .context = s};

    if (!s->config->tier) {
        return PROFD_OK;
    }
    TRY(sealer_start(&config, &s->sealer, e));
    return mirror_start(&config, fetcher_get_archive(s->fetcher), &s->mirror, e);
}

static enum profd_status server_start_writer(struct server *s, struct profd_error *e)
{
    const struct config *config = s->config;
    enum profd_status status = health_new(config->state_dir, &s->health, e);
    const struct writer_config writer = {.loop = s->loop,
                                         .store = s->write_store,
                                         .space = s->space,
                                         .health = s->health,
                                         .failed = server_on_store_failure,
                                         .context = s};
    struct upkeep_job_config upkeep = {.loop = s->loop,
                                       .space = s->space,
                                       .health = s->health,
                                       .policy = server_get_policy(config),
                                       .store = s->check_store,
                                       .get_uploads = server_get_uploads,
                                       .context = s};
    struct verifier_config verifier = {
        .loop = s->loop, .database = s->path, .failed = server_on_read_failure, .context = s};

    if (!status) {
        status = server_open_tier(s, e);
        verifier.archive = s->fetcher ? fetcher_get_archive(s->fetcher) : NULL;
    }
    status = status ? status : writer_new(&writer, &s->writer, e);
    status = status ? status : file_check_start(s->loop, s->writer, config->state_dir, &s->file_check, e);
    upkeep.writer = s->writer;
    status = status ? status : upkeep_job_start(&upkeep, &s->upkeep, e);
    s->tokens.upkeep = s->upkeep;
    status = status ? status : server_start_sealer(s, e);
    return status ? status : verifier_start(&verifier, &s->verifier, e);
}

static void server_on_welcome(void *context, const struct conn *c, struct message_welcome *w)
{
    const struct server *s = context;

    live_tell(s->live, conn_get_peer(c)->uid, &w->run, &w->refused);
}

static void server_on_refused(void *context, uint32_t uid)
{
    struct server *s = context;

    if (s->live) { /* NULL while the server is freed */
        live_count_refused(s->live, &uid);
    }
}

/* The user of the connection is not known. */
static void server_on_not_accepted(void *context)
{
    struct server *s = context;

    live_count_refused(s->live, NULL);
}

static void *server_on_opened(void *context, struct conn *c)
{
    (void)context;
    (void)c;
    return session_new();
}

static void server_on_closed(void *context, void *user)
{
    struct server *s = context;
    struct live_process *process = *session_get_process(user);

    if (process) {
        live_hang_up(s->live, process);
    }
    session_free(user);
}

static void server_on_note(void *context, const char *category, const char *sentence)
{
    (void)context;
    log_write(LOG_LEVEL_INFO, category, "%s: %s", category, sentence);
}

static void server_on_warning(void *context, const char *category, const char *sentence)
{
    (void)context;
    log_write(LOG_LEVEL_WARNING, category, "%s", sentence);
}

/* Connections and live processes may not use all descriptors of the process: sent descriptors, answers and the store
 * need some. */
static size_t server_count_descriptors(void)
{
    const int lowest = open("/dev/null", O_RDONLY | O_CLOEXEC); /* about as many are in use */
    struct rlimit limit;

    if (lowest >= 0) {
        close(lowest);
    }
    if (lowest < 0 || getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur <= (rlim_t)lowest) {
        return 1;
    }
    if (limit.rlim_cur > DESCRIPTORS_ENOUGH) {
        limit.rlim_cur = DESCRIPTORS_ENOUGH;
    }
    size_t capacity = (size_t)limit.rlim_cur - (size_t)lowest;
    size_t spare = capacity / 4 < DESCRIPTORS_SPARE ? capacity / 4 : DESCRIPTORS_SPARE;
    return capacity - spare;
}

/* Cancels queries and admin requests. Uploads, executables and SYNCs continue: their effects do not depend on the
 * answer, or they cost nothing. */
static void server_on_hung_up(void *context, conn_id id)
{
    struct server *s = context;

    query_service_cancel(s->queries, id);
    admin_service_cancel(s->admin, id);
}

static enum profd_status server_make_conns(struct server *s, size_t descriptors, struct profd_error *e)
{
    struct conn_config config;
    TRY(closer_new(CLOSER_THREADS, &s->closer, e));
    conn_config_init(&config);
    if (descriptors < config.connections_max) {
        config.connections_max = descriptors;
    }
    config.base = loop_get_base(s->loop);
    config.closer = s->closer;
    config.handlers = s->handlers;
    config.handler_count = HANDLERS_COUNT;
    config.daemon = "profd " PROFD_VERSION;
    config.context = s;
    config.welcome = server_on_welcome;
    config.refused = server_on_refused;
    config.opened = server_on_opened;
    config.closed = server_on_closed;
    config.hung_up = server_on_hung_up;
    config.note = server_on_note;
    s->conns = conn_group_new(&config);
    return s->conns ? PROFD_OK : profd_no_memory(e);
}

static struct live_process **server_get_slot(struct conn *c)
{
    return session_get_process(conn_get_user(c));
}

static void server_request_objects(void *context, struct conn *c, const struct missing_build *missing, size_t n)
{
    struct server *s = context;

    object_request_missing(s->objects, c, missing, n);
}

static void server_accept_waiting(void *context)
{
    struct server *s = context;

    endpoints_accept_uploads(s->endpoints);
}

static enum profd_status server_make_live(struct server *s, struct profd_error *e)
{
    const size_t descriptors = server_count_descriptors();
    TRY(server_make_conns(s, descriptors, e));
    const struct live_config config = {.loop = s->loop,
                                       .conns = s->conns,
                                       .writer = s->writer,
                                       .database = s->path,
                                       .links = s->config->containers,
                                       .harvest_interval = s->config->harvest_interval,
                                       .descriptors = descriptors,
                                       .run = s->run,
                                       .managed = s->managed,
                                       .get_slot = server_get_slot,
                                       .request_objects = server_request_objects,
                                       .accept_waiting = server_accept_waiting,
                                       .context = s};

    return live_new(&config, &s->live, e);
}

/* Removing days makes space only if a bound is configured. */
static void server_on_no_space(void *context)
{
    struct server *s = context;

    if (s->config->keep_bytes) {
        upkeep_job_free_space(s->upkeep);
    }
}

static void server_get_numbers(void *context, struct pages_numbers *n)
{
    const struct server *s = context;

    n->stopping = s->stopping;
    n->failure = health_get_failure(s->health);
    n->full = health_get_full(s->health);
    n->damaged = file_check_count_damaged(s->file_check, &n->damaged_latest);
    n->read_failed = s->read_failed;
    n->reserve = space_get_reserve(s->space, &n->reserve_bytes);
    n->http_port = endpoints_get_http_port(s->endpoints);
    n->uploads = s->uploads.counts;
    n->objects = object_service_get_counts(s->objects);
    live_get_counts(s->live, &n->live);
    memcpy(n->queries, query_service_get_durations(s->queries), sizeof n->queries);
    n->answers = query_service_measure_answers(s->queries);
    n->answer_bytes = s->shared.reply_bytes;
    conn_group_get_counts(s->conns, &n->conns);
    endpoints_get_http_counts(s->endpoints, &n->http);
    upkeep_job_get_counts(s->upkeep, &n->upkeep);
    verifier_get_counts(s->verifier, &n->verified);
    if (s->mirror) {
        sealer_get_counts(s->sealer, &n->tier);
        mirror_get_counts(s->mirror, &n->mirror);
    }
    n->writer_pending = writer_pending(s->writer);
    n->reader_pending = query_service_pending(s->queries);
    n->object_pending = object_service_pending(s->objects);
    n->batches = writer_batches(s->writer);
    n->relay = s->relay.counts;
    n->centre = *intake_get_counts(s->intake);
    n->hosts = intake_get_hosts(s->intake);
    if (!s->was.hosts && !n->hosts->count) {
        n->hosts = NULL; /* no host has ever come */
    }
}

static enum profd_status server_make_queries(struct server *s, struct profd_error *e)
{
    const struct pages_config pages = {
        .get_numbers = server_get_numbers, .context = s, .start = s->start, .setup = server_get_setup(s->config)};
    struct query_service_config queries = {.shared = &s->shared,
                                           .symbols = &s->symbols,
                                           .posts = s->posts,
                                           .post_count = SERVER_POSTS,
                                           .run = s->run,
                                           .salt = s->salt,
                                           .archive = s->fetcher ? fetcher_get_archive(s->fetcher) : NULL,
                                           .downtime = run_times_get_downtime(s->run_times),
                                           .failed = server_on_read_failure,
                                           .context = s};
    enum profd_status status = pages_new(&pages, &s->pages, e);

    s->symbols = (struct symbols_service){.objects = s->objects, .shared = &s->shared, .intake = s->intake};
    const struct post_route posts[SERVER_POSTS] = {{"/api/v1/uploads", batch_judge, batch_receive, &s->batches},
                                                   {PYROSCOPE_INGEST, push_judge, push_receive, &s->pushes},
                                                   {PYROSCOPE_PUSH, push_judge, push_receive, &s->pushes},
                                                   {OTLP_PATH, push_judge, push_receive, &s->pushes}};

    memcpy(s->posts, posts, sizeof posts);
    queries.pages = s->pages;
    return status ? status : query_service_start(&queries, &s->queries, e);
}

static enum profd_status server_on_reload(void *context, struct admin_reload *out, struct profd_error *e)
{
    struct config_change change;
    enum profd_status status = server_reload(context, &change, e);

    _Static_assert(CONFIG_COUNT <= sizeof out->applied / sizeof *out->applied, "each key has a place");
    if (!status) {
        out->applied_count = change.applied_count;
        out->restart_count = change.restart_count;
        memcpy(out->applied, change.applied, sizeof change.applied);
        memcpy(out->restart, change.restart, sizeof change.restart);
    }
    return status;
}

static void server_on_end_token(void *context, uint64_t id)
{
    struct server *s = context;

    endpoints_end_token(s->endpoints, id);
}

static enum profd_status server_make_services(struct server *s, struct profd_error *e)
{
    const struct object_config objects = {.shared = &s->shared, .closer = s->closer, .brokers = s->brokers};
    const struct admin_config admin = {.shared = &s->shared,
                                       .space = s->space,
                                       .upkeep = s->upkeep,
                                       .verifier = s->verifier,
                                       .relay = &s->relay,
                                       .state_dir = s->config->state_dir,
                                       .tier = s->config->tier ? &s->tier : NULL,
                                       .tier_ca = s->config->tier_ca,
                                       .reload = server_on_reload,
                                       .end_token = server_on_end_token,
                                       .context = s};
    const struct intake_config intake = {
        .interval = s->config->relay_interval, .detail = server_get_detail(s->config), .shared = &s->shared};

    s->shared = (struct shared){.loop = s->loop,
                                .conns = s->conns,
                                .live = s->live,
                                .writer = s->writer,
                                .tokens = &s->tokens,
                                .database = s->path,
                                .no_space = server_on_no_space,
                                .context = s};
    TRY(intake_new(&intake, &s->intake, e));
    TRY(object_service_start(&objects, &s->objects, e));
    s->uploads = (struct process_uploads){.shared = &s->shared, .builds = s->builds, .objects = s->objects};
    s->batches.relays = s->relay.active = s->config->relay;
    s->batches.shared = s->relay.shared = &s->shared;
    s->batches.intake = s->intake;
    memcpy(s->batches.centre, s->was.name, sizeof s->batches.centre);
    TRY(foreign_names_new(&s->foreign_names, e));
    s->pushes = (struct push_service){.names = s->foreign_names,
                                      .builds = s->builds,
                                      .shared = &s->shared,
                                      .relay = &s->config->relay,
                                      .counts = &s->uploads.counts};
    TRY(admin_service_new(&admin, &s->admin, e));
    return server_make_queries(s, e);
}

static enum profd_status server_open_endpoints(struct server *s, struct profd_error *e)
{
    const struct config *config = s->config;
    const struct handlers_services services = {.uploads = &s->uploads,
                                               .objects = s->objects,
                                               .queries = s->queries,
                                               .shared = &s->shared,
                                               .admin = s->admin,
                                               .live = s->live,
                                               .relay = &s->relay};
    struct endpoints_config endpoints = {.loop = s->loop,
                                         .closer = s->closer,
                                         .conns = s->conns,
                                         .access = server_get_access(config),
                                         .socket = config->socket,
                                         .http_socket = config->http_socket,
                                         .http_given = config->http_given,
                                         .http = config->http,
                                         .web = {.is_public = web_has,
                                                 .admit = tokens_admit,
                                                 .admit_context = &s->tokens,
                                                 .find_methods = query_find_methods,
                                                 .judge_body = query_judge_body,
                                                 .body_context = s->queries,
                                                 .write_problem = render_problem},
                                         .request = query_receive_http,
                                         .request_context = s->queries,
                                         .warn = server_on_warning,
                                         .refused = server_on_not_accepted,
                                         .context = s};

    handlers_fill(&services, s->handlers);
    live_take_back(s->live, s->passed.kept, s->passed.kept_count);
    s->passed.kept = NULL;
    return endpoints_open(&endpoints, &s->passed, &s->endpoints, e);
}

enum profd_status server_start(struct server *s, struct profd_error *e)
{
    typedef enum profd_status start_step(struct server *, struct profd_error *);
    static start_step *const steps[] = {server_start_brokers, server_open_directory, server_open_store,
                                        server_start_writer,  server_make_live,      server_make_services,
                                        server_make_watcher,  server_open_endpoints};
    enum profd_status status = listen_take_passed(&s->passed, e);

    umask(0077);
    /* Every upload allocates and frees some blocks. Without a threshold the end of the heap would grow and shrink all
     * the time; free memory is returned when the queues are empty. */
    mallopt(M_TRIM_THRESHOLD, HEAP_SPARE);
    mallopt(M_TOP_PAD, HEAP_STEP);
    mallopt(M_MMAP_THRESHOLD, HEAP_MMAP);
    arena_keep_blocks(HEAP_ARENAS);
    /* Raises the soft limit of descriptors to the hard limit: each connection needs one, and each may send some. */
    struct rlimit limit;

    if (!getrlimit(RLIMIT_NOFILE, &limit) && limit.rlim_cur < limit.rlim_max) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
    for (size_t i = 0; i < sizeof steps / sizeof *steps && !status; i++) {
        status = steps[i](s, e);
    }
    if (!status) {
        live_look_for_orphans(s->live);
    }
    return status;
}
