/* What the tests of requests share: all services, and the client of a connection. */
#include "tests/unit/requests/bed.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/closer.h"
#include "proto/attach_memory.h"
#include "proto/counts.h"
#include "requests/requests.h"

#define TRIES 12000 /* of 5 ms */

struct requests_bed bed;
static int bed_fd = -1; /* came with a frame */

static void bed_on_timer(void *context)
{
    (void)context;
    loop_stop(bed.loop);
}

void bed_run(unsigned ms)
{
    loop_timer_set(bed.timer, ms);
    loop_run(bed.loop);
}

static void bed_on_failed(void *context, bool damaged)
{
    (void)context;
    (void)damaged;
    live_fail_syncs(bed.live);
}

static void bed_on_read_failed(void *context, const char *sentence)
{
    (void)context;
    (void)sentence;
}

static void *bed_on_opened(void *context, struct conn *c)
{
    (void)context;
    (void)c;
    return session_new();
}

static void bed_on_closed(void *context, void *user)
{
    struct live_process *process = *session_get_process(user);

    (void)context;
    if (process) {
        live_hang_up(bed.live, process);
    }
    session_free(user);
}

static void bed_on_hung_up(void *context, conn_id id)
{
    (void)context;
    query_service_cancel(bed.queries, id);
    admin_service_cancel(bed.admin, id);
    bed.hung_up++;
}

static struct live_process **bed_get_slot(struct conn *c)
{
    return session_get_process(conn_get_user(c));
}

static void bed_ignore(void *context)
{
    (void)context;
}

static void bed_request(void *context, struct conn *c, const struct missing_build *missing, size_t n)
{
    (void)context;
    object_request_missing(bed.objects, c, missing, n);
}

static uint64_t bed_get_uploads(void *context)
{
    (void)context;
    return bed.uploads.counts.stored;
}

static void bed_get_numbers(void *context, struct pages_numbers *n)
{
    (void)context;
    n->failure = health_get_failure(bed.health);
    n->uploads = bed.uploads.counts;
}

static void bed_start_writer(void)
{
    const struct space_config space = {.state_dir = bed.directory, .user_share = 100};
    struct upkeep_job_config upkeep = {.loop = bed.loop, .get_uploads = bed_get_uploads};
    struct writer_config writer = {.loop = bed.loop, .failed = bed_on_failed};
    const struct verifier_config verifier = {.loop = bed.loop, .database = bed.path, .failed = bed_on_read_failed};

    strcpy(bed.directory, "/tmp/profd-requests-XXXXXX");
    cr_assert_not_null(mkdtemp(bed.directory));
    snprintf(bed.path, sizeof bed.path, "%s/profd.db", bed.directory);
    cr_assert_eq(space_open(&space, &bed.space, NULL), PROFD_OK);
    cr_assert_eq(store_sqlite_open_writer(bed.path, &bed.store, NULL), PROFD_OK);
    space_keep(bed.space);
    cr_assert_eq(store_sqlite_open_reader(bed.path, &bed.check_store, NULL), PROFD_OK);
    cr_assert_eq(build_cache_new(bed.check_store, &bed.builds, NULL), PROFD_OK);
    cr_assert_eq(health_new(bed.directory, &bed.health, NULL), PROFD_OK);
    writer.store = bed.store;
    writer.health = bed.health;
    cr_assert_eq(writer_new(&writer, &bed.writer, NULL), PROFD_OK);
    upkeep.writer = bed.writer;
    upkeep.space = bed.space;
    upkeep.health = bed.health;
    upkeep.store = bed.check_store;
    upkeep.policy.raw_age = INT64_MAX;
    upkeep.policy.raw_bytes = UINT64_MAX;
    cr_assert_eq(upkeep_job_start(&upkeep, &bed.upkeep, NULL), PROFD_OK);
    cr_assert_eq(verifier_start(&verifier, &bed.verifier, NULL), PROFD_OK);
}

static void bed_start_conns(void)
{
    struct conn_config config;

    conn_config_init(&config);
    config.hello_ms = config.header_ms = config.body_ms = config.write_ms = 86400000; /* however slow we are */
    config.base = loop_get_base(bed.loop);
    config.closer = bed.closer;
    config.handlers = bed.handlers;
    config.handler_count = HANDLERS_COUNT;
    config.daemon = "test";
    config.opened = bed_on_opened;
    config.closed = bed_on_closed;
    config.hung_up = bed_on_hung_up;
    bed.conns = conn_group_new(&config);
    cr_assert_not_null(bed.conns);
}

static void bed_start_services(void)
{
    const struct live_config live = {.loop = bed.loop,
                                     .conns = bed.conns,
                                     .writer = bed.writer,
                                     .database = bed.path,
                                     .links = "/var/log/containers",
                                     .harvest_interval = INT64_C(10000000000),
                                     .descriptors = 1000,
                                     .run = 5,
                                     .get_slot = bed_get_slot,
                                     .request_objects = bed_request,
                                     .accept_waiting = bed_ignore};
    const struct pages_config pages = {.get_numbers = bed_get_numbers};
    const struct object_config objects = {.shared = &bed.shared, .closer = bed.closer, .brokers = bed.brokers};
    struct query_service_config queries = {.shared = &bed.shared, .run = 5};
    const struct admin_config admin = {.shared = &bed.shared,
                                       .space = bed.space,
                                       .upkeep = bed.upkeep,
                                       .verifier = bed.verifier,
                                       .state_dir = bed.directory};
    const struct intake_config intake = {.interval = INT64_C(60000000000), .shared = &bed.shared};

    cr_assert_eq(live_new(&live, &bed.live, NULL), PROFD_OK);
    bed.shared = (struct shared){.loop = bed.loop,
                                 .conns = bed.conns,
                                 .live = bed.live,
                                 .writer = bed.writer,
                                 .database = bed.path,
                                 .no_space = bed_ignore};
    cr_assert_eq(intake_new(&intake, &bed.intake, NULL), PROFD_OK);
    cr_assert_eq(pages_new(&pages, &bed.pages, NULL), PROFD_OK);
    cr_assert_eq(object_service_start(&objects, &bed.objects, NULL), PROFD_OK);
    bed.uploads = (struct process_uploads){.shared = &bed.shared, .builds = bed.builds, .objects = bed.objects};
    queries.pages = bed.pages;
    cr_assert_eq(query_service_start(&queries, &bed.queries, NULL), PROFD_OK);
    cr_assert_eq(admin_service_new(&admin, &bed.admin, NULL), PROFD_OK);
}

void bed_setup(void)
{
    for (unsigned i = 0; i < LIMIT_WORKERS; i++) {
        cr_assert_eq(broker_start(&bed.brokers[i], NULL), PROFD_OK);
    }
    cr_assert_eq(loop_new(&bed.loop, NULL), PROFD_OK);
    bed.timer = loop_timer_new(bed.loop, bed_on_timer, NULL);
    cr_assert_eq(closer_new(4, &bed.closer, NULL), PROFD_OK);
    bed_start_writer();
    bed_start_conns();
    bed_start_services();
    const struct handlers_services services = {.uploads = &bed.uploads,
                                               .objects = bed.objects,
                                               .queries = bed.queries,
                                               .shared = &bed.shared,
                                               .admin = bed.admin,
                                               .live = bed.live};

    handlers_fill(&services, bed.handlers);
}

void bed_teardown(void)
{
    char command[128];

    upkeep_job_stop(bed.upkeep);
    live_end_thread(bed.live);
    object_service_join(bed.objects);
    query_service_drop_waiting(bed.queries);
    writer_free(bed.writer);
    query_service_join(bed.queries);
    verifier_free(bed.verifier);
    intake_free(bed.intake);
    live_free(bed.live);
    conn_group_free(bed.conns);
    admin_service_free(bed.admin);
    object_service_free(bed.objects);
    query_service_free(bed.queries);
    pages_free(bed.pages);
    closer_free(bed.closer);
    upkeep_job_free(bed.upkeep);
    space_close(bed.space);
    build_cache_free(bed.builds);
    store_close(bed.check_store);
    store_close(bed.store);
    health_free(bed.health);
    loop_timer_free(bed.timer);
    loop_free(bed.loop);
    for (unsigned i = 0; i < LIMIT_WORKERS; i++) {
        broker_stop(bed.brokers[i]);
    }
    snprintf(command, sizeof command, "rm -rf %s", bed.directory);
    cr_assert_eq(system(command), 0);
}

void bed_put(int client, const struct message *m, uint32_t tag)
{
    uint8_t *block;
    size_t n;

    cr_assert_eq(message_encode(m, 0, tag, &block, &n, NULL), PROFD_OK);
    cr_assert_eq(send(client, block, n, MSG_NOSIGNAL), (ssize_t)n, "%s", strerror(errno));
    free(block);
}

void bed_put_fd(int client, const struct message *m, uint32_t tag, int fd)
{
    char control[CMSG_SPACE(sizeof fd)] = "";
    uint8_t *block;
    size_t n;

    cr_assert_eq(message_encode(m, 1u << FRAME_FLAG_FDS_SHIFT, tag, &block, &n, NULL), PROFD_OK);
    struct iovec part = {block, n};
    struct msghdr h = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    struct cmsghdr *c = CMSG_FIRSTHDR(&h);

    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof fd);
    memcpy(CMSG_DATA(c), &fd, sizeof fd);
    cr_assert_eq(sendmsg(client, &h, MSG_NOSIGNAL), (ssize_t)n, "%s", strerror(errno));
    free(block);
}

int bed_make_memory(uint8_t number)
{
    const int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL;
    const uint64_t modules = 4 * ATTACH_PAGE;
    const int fd = memfd_create(ATTACH_MEMORY_NAME, MFD_CLOEXEC | MFD_ALLOW_SEALING);

    cr_assert(fd >= 0 && ftruncate(fd, ATTACH_SIZE_MIN) == 0);
    uint8_t *bytes = mmap(NULL, ATTACH_SIZE_MIN, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    cr_assert_neq(bytes, MAP_FAILED);
    struct attach_header *header = (void *)bytes;
    struct attach_chunk *chunk = (void *)(bytes + ATTACH_PAGE);
    struct attach_module_row *row = (void *)(chunk + 1);

    *header = (struct attach_header){.magic = ATTACH_MAGIC,
                                     .layout = ATTACH_LAYOUT,
                                     .machine = 62,
                                     .size = ATTACH_SIZE_MIN,
                                     .used = ATTACH_PAGE + modules,
                                     .instance = {number},
                                     .pid = 7,
                                     .rate = 100,
                                     .mode = ATTACH_MODE_CPU,
                                     .modules = 1,
                                     .start = (uint64_t)loop_clock() - 1000};
    *chunk =
        (struct attach_chunk){.magic = ATTACH_CHUNK_MAGIC, .kind = ATTACH_KIND_MODULES, .size = modules, .primary = 1};
    *row = (struct attach_module_row){
        .state = 1, .loaded = 1, .low = 0x1000, .high = 0x2000, .id_size = 20, .name_size = 7, .name = "program"};
    for (int i = 0; i < 20; i++) {
        row->id[i] = i < 2 || i == 19 ? 0xaa : 0;
    }
    munmap(bytes, ATTACH_SIZE_MIN);
    cr_assert_eq(fcntl(fd, F_ADD_SEALS, seals), 0);
    return fd;
}

void bed_put_upload(int client, uint32_t tag, uint32_t sequence)
{
    struct message m = {.type = FRAME_UPLOAD};
    struct message_build builds[1] = {{BED_BUILD, "/usr/bin/program"}};
    struct counts counts;
    uint8_t *encoded;
    size_t n;

    cr_assert_eq(counts_init(&counts, 0, 0, 1, NULL), PROFD_OK);
    counts.from[0] = 0x1100;
    counts.to[0] = 0x1200;
    counts.calls[0] = 10;
    cr_assert_eq(counts_encode(&counts, &encoded, &n, NULL), PROFD_OK);
    m.as.upload = (struct message_upload){.sender = {(const uint8_t *)"sender-id-01", UPLOAD_SENDER_SIZE},
                                          .sequence = sequence,
                                          .start = (uint64_t)loop_clock() - 1000,
                                          .end = (uint64_t)loop_clock(),
                                          .build_count = 1,
                                          .builds = builds,
                                          .processes_started = 1,
                                          .host = "0123456789abcdef0123456789abcdef",
                                          .counts = {encoded, n}};
    bed_put(client, &m, tag);
    free(encoded);
    counts_done(&counts);
}

static ssize_t bed_receive(int client, uint8_t *into, size_t n)
{
    char control[CMSG_SPACE(sizeof bed_fd)];
    struct iovec part = {into, n};
    struct msghdr h = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    const ssize_t got = recvmsg(client, &h, MSG_CMSG_CLOEXEC);
    const struct cmsghdr *c = got > 0 ? CMSG_FIRSTHDR(&h) : NULL;

    if (c && c->cmsg_type == SCM_RIGHTS) {
        memcpy(&bed_fd, CMSG_DATA(c), sizeof bed_fd);
    }
    return got;
}

static void bed_take_exactly(int client, uint8_t *into, size_t n)
{
    size_t got = 0;

    for (int tries = 0; got < n && tries < TRIES; tries++) {
        const ssize_t part = bed_receive(client, into + got, n - got);

        cr_assert_neq(part, 0, "the connection was closed");
        if (part > 0) {
            got += (size_t)part;
        } else {
            bed_run(5);
        }
    }
    cr_assert_eq(got, n, "no answer in a minute");
}

const struct message *bed_take(int client, struct frame_header *f)
{
    static struct message m;
    uint8_t header[FRAME_HEADER_SIZE], *body;
    struct profd_error e;

    if (m.block) {
        message_done(&m);
    }
    bed_take_exactly(client, header, sizeof header);
    cr_assert_eq(frame_decode(header, f, &e), PROFD_OK, "%s", e.sentence);
    body = malloc(f->length + 1);
    bed_take_exactly(client, body, f->length);
    cr_assert_eq(message_decode(f->type, body, f->length, &m, &e), PROFD_OK, "%s", e.sentence);
    free(body);
    return &m;
}

int bed_take_fd(void)
{
    const int fd = bed_fd;

    bed_fd = -1;
    return fd;
}

const struct message *bed_expect_ack(int client, uint32_t tag)
{
    struct frame_header f;
    const struct message *m = bed_take(client, &f);

    cr_assert_eq(f.type, FRAME_ACK, "type %u: %s", f.type, f.type == FRAME_NACK ? m->as.nack.sentence : "");
    cr_assert_eq(f.tag, tag);
    return m;
}

const struct message *bed_expect_nack(int client, uint32_t tag, enum profd_status status)
{
    struct frame_header f;
    const struct message *m = bed_take(client, &f);

    cr_assert_eq(f.type, FRAME_NACK, "type %u", f.type);
    cr_assert_eq(m->as.nack.status, (uint32_t)status, "%u: %s", m->as.nack.status, m->as.nack.sentence);
    cr_assert_eq(f.tag, tag);
    return m;
}

const char *bed_expect_reply(int client, uint32_t tag, uint32_t http_status)
{
    static char text[1 << 16];
    struct frame_header f;
    const struct message *m = bed_take(client, &f);

    cr_assert_eq(f.type, FRAME_REPLY, "type %u: %s", f.type, f.type == FRAME_NACK ? m->as.nack.sentence : "");
    cr_assert_eq(f.tag, tag);
    cr_assert(f.flags & FRAME_FLAG_LAST);
    cr_assert_eq(m->as.reply.http_status, http_status, "%.*s", (int)m->as.reply.body.size,
                 (const char *)m->as.reply.body.data);
    cr_assert_lt(m->as.reply.body.size, sizeof text);
    memcpy(text, m->as.reply.body.data ? m->as.reply.body.data : (const uint8_t *)"", m->as.reply.body.size);
    text[m->as.reply.body.size] = 0;
    return text;
}

int bed_join(uint32_t uid, bool may_admin)
{
    const struct peer peer = {.uid = uid, .may_admin = may_admin, .may_read_all = may_admin};

    return bed_join_peer(&peer);
}

int bed_join_peer(const struct peer *peer)
{
    struct message hello = {.type = FRAME_HELLO};
    struct frame_header f;
    int pair[2];

    cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair), 0);
    conn_group_accept(bed.conns, pair[0], peer);
    hello.as.hello.version_oldest = 1;
    hello.as.hello.version_newest = FRAME_VERSION;
    hello.as.hello.client = "requests";
    bed_put(pair[1], &hello, 1);
    (void)bed_take(pair[1], &f);
    cr_assert_eq(f.type, FRAME_WELCOME);
    return pair[1];
}

void bed_fail_store(void)
{
    static struct store_health health = {.failed = true, .changes = UINT64_MAX, .error = {"the disk has gone"}};

    health_publish(bed.health, &health);
    cr_assert_eq(health_update(bed.health, false), HEALTH_FAILED);
}
