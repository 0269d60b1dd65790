/* The Unix protocol against real sockets and a real loop: hostile and clumsy peers, deadlines, descriptors, budgets. */
#include <criterion/criterion.h>
#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "net/conn.h"
#include "net/loop.h"
#include "tests/rounds.h"

static struct {
    struct loop *loop;
    struct conn_config config;
    struct conn_group *group;
    struct loop_timer *timer;
    int opened, closed, handled, fds_seen;
    size_t body_sum;
    uint32_t tags[5000];
    conn_id last, hung_up;
    struct conn_body kept[64]; /* of frames whose handler keeps them */
    int kept_count;
    bool keep, refuse, silent;
    ino_t inode;
} bed;

static void *on_opened(void *context, struct conn *c)
{
    (void)context;
    (void)c;
    bed.opened++;
    return &bed;
}

static void on_closed(void *context, void *user)
{
    (void)context;
    cr_assert_eq(user, &bed);
    bed.closed++;
}

static void on_hung_up(void *context, conn_id id)
{
    (void)context;
    bed.hung_up = id;
}

/* UPLOAD: acknowledged at once, kept, refused, or left unanswered, as the test says. */
static enum profd_status on_upload(void *context, struct conn *c, struct conn_frame *f, struct profd_error *e)
{
    const struct message ack = {.type = FRAME_ACK};

    (void)context;
    bed.last = conn_get_id(c);
    bed.tags[bed.handled++ % 5000] = f->header.tag;
    for (size_t i = 0; i < f->body.size; i++) {
        bed.body_sum += f->body.data[i];
    }
    if (bed.keep) {
        conn_frame_take_body(f, &bed.kept[bed.kept_count++]);
    }
    if (bed.refuse) {
        return profd_error_set(e, PROFD_REFUSED, "not today");
    }
    if (!bed.silent && !bed.keep) {
        conn_answer(c, &ack, 0, f->header.tag);
    }
    return PROFD_OK;
}

static enum profd_status on_object(void *context, struct conn *c, struct conn_frame *f, struct profd_error *e)
{
    const struct message ack = {.type = FRAME_ACK};
    struct stat st;

    (void)context;
    (void)e;
    bed.fds_seen += (int)f->fd_count;
    for (unsigned i = 0; i < f->fd_count; i++) {
        cr_assert_eq(fstat(f->fds[i], &st), 0);
        cr_assert(fcntl(f->fds[i], F_GETFD) & FD_CLOEXEC);
        bed.inode = st.st_ino;
    }
    bed.handled++;
    conn_answer(c, &ack, 0, f->header.tag);
    return PROFD_OK;
}

struct pieces {
    struct conn_source source; /* first */
    int left;
};
static int pieces_freed;

static bool pieces_make(struct conn_source *s, uint8_t **block, size_t *size)
{
    struct pieces *p = (struct pieces *)(void *)s;
    struct message m = {.type = FRAME_REPLY};
    static uint8_t body[100000];

    if (!p->left) {
        *size = 0;
        return true;
    }
    p->left--;
    m.as.reply.content_type = m.as.reply.etag = "";
    m.as.reply.body.data = body;
    m.as.reply.body.size = sizeof body;
    return !message_encode(&m, p->left ? 0 : FRAME_FLAG_LAST, 77, block, size, NULL);
}

static void pieces_free(struct conn_source *s)
{
    pieces_freed++;
    free(s);
}

static enum profd_status on_query(void *context, struct conn *c, struct conn_frame *f, struct profd_error *e)
{
    struct pieces *p = calloc(1, sizeof *p);

    (void)context;
    (void)f;
    (void)e;
    p->source.make = pieces_make;
    p->source.free = pieces_free;
    p->left = 100;
    bed.handled++;
    conn_stream(c, &p->source);
    return PROFD_OK;
}

static const struct conn_handler handlers[] = {
    {FRAME_UPLOAD, true, 0, 0, on_upload, NULL, false},
    {FRAME_OBJECT, true, 1, 2, on_object, NULL, false},
    {FRAME_QUERY, true, 0, 0, on_query, NULL, true},
    {FRAME_SYNC, true, 0, 0, on_upload, NULL, true},
};

static void on_timer(void *context)
{
    (void)context;
    loop_stop(bed.loop);
}

static void setup(void)
{
    cr_assert_eq(loop_new(&bed.loop, NULL), PROFD_OK);
    conn_config_init(&bed.config);
    /* This process may stand still for a while: tests of deadlines set their own. */
    bed.config.hello_ms = bed.config.header_ms = bed.config.body_ms = bed.config.write_ms = 86400000;
    bed.config.base = loop_get_base(bed.loop);
    bed.config.handlers = handlers;
    bed.config.handler_count = sizeof handlers / sizeof *handlers;
    bed.config.daemon = "test";
    bed.config.opened = on_opened;
    bed.config.closed = on_closed;
    bed.config.hung_up = on_hung_up;
    bed.group = conn_group_new(&bed.config);
    bed.timer = loop_timer_new(bed.loop, on_timer, NULL);
}

/* With other limits than those of limits.h. */
static void again(void)
{
    conn_group_free(bed.group);
    bed.group = conn_group_new(&bed.config);
}

static void teardown(void)
{
    struct conn_counts counts;

    for (int i = 0; i < bed.kept_count; i++) {
        conn_body_free(bed.group, &bed.kept[i]);
    }
    conn_group_get_counts(bed.group, &counts);
    cr_assert(counts.connections || !counts.bodies, "%zu bytes of bodies are left", counts.bodies);
    conn_group_free(bed.group);
    cr_assert_eq(bed.opened, bed.closed);
    loop_timer_free(bed.timer);
    loop_free(bed.loop);
}

TestSuite(conn, .init = setup, .fini = teardown);

/* Does what can be done at once: with however much delay, not less. */
static void settle(void)
{
    for (int i = 0; i < 50; i++) {
        event_base_loop(loop_get_base(bed.loop), EVLOOP_NONBLOCK);
    }
}

/* What can be done at once, and at least so many milliseconds. */
static void run_for(unsigned ms)
{
    settle();
    loop_timer_set(bed.timer, ms);
    loop_run(bed.loop);
}

/* The client's end of a new connection. */
static int join_as(uint32_t uid)
{
    const struct peer peer = {.uid = uid};
    int pair[2];

    cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair), 0);
    conn_group_accept(bed.group, pair[0], &peer);
    return pair[1];
}

static size_t put_header(uint8_t *at, unsigned type, unsigned flags, uint32_t tag, uint32_t length)
{
    const struct frame_header f = {
        .length = length, .version = FRAME_VERSION, .type = (uint8_t)type, .flags = (uint16_t)flags, .tag = tag};

    frame_encode(&f, at);
    return FRAME_HEADER_SIZE;
}

static void put(int fd, const void *bytes, size_t n)
{
    cr_assert_eq(send(fd, bytes, n, MSG_NOSIGNAL), (ssize_t)n, "%s", strerror(errno));
}

static void put_frame(int fd, unsigned type, uint32_t tag, const void *body, size_t n)
{
    uint8_t *block = malloc(FRAME_HEADER_SIZE + n + 1);

    put_header(block, type, 0, tag, (uint32_t)n);
    if (n) {
        memcpy(block + FRAME_HEADER_SIZE, body, n);
    }
    put(fd, block, FRAME_HEADER_SIZE + n);
    free(block);
}

static void put_message(int fd, const struct message *m, uint32_t tag)
{
    uint8_t *block;
    size_t n;

    cr_assert_eq(message_encode(m, 0, tag, &block, &n, NULL), PROFD_OK);
    put(fd, block, n);
    free(block);
}

static void say_hello(int fd)
{
    struct message m = {.type = FRAME_HELLO};

    m.as.hello.version_oldest = 1;
    m.as.hello.version_newest = FRAME_VERSION + 5;
    m.as.hello.client = "net_conn";
    put_message(fd, &m, 9);
}

/* Reads a whole frame, running the loop meanwhile; 0 at the end of the stream, −1 when nothing comes for a minute. */
static int take_exactly(int fd, uint8_t *into, size_t n)
{
    size_t got = 0;

    for (int tries = 0; got < n && tries < 12000; tries++) {
        ssize_t part = recv(fd, into + got, n - got, 0);

        if (!part) {
            return 0;
        }
        if (part > 0) {
            got += (size_t)part;
        } else {
            run_for(5);
        }
    }
    return got == n ? 1 : -1;
}

static int take(int fd, struct frame_header *f, struct message *m)
{
    uint8_t header[FRAME_HEADER_SIZE], *body;
    int got = take_exactly(fd, header, sizeof header);
    struct profd_error e;

    if (got <= 0) {
        return got;
    }
    cr_assert_eq(frame_decode(header, f, &e), PROFD_OK, "%s", e.sentence);
    body = malloc(f->length + 1);
    cr_assert_eq(f->length ? take_exactly(fd, body, f->length) : 1, 1);
    cr_assert_eq(message_decode(f->type, body, f->length, m, &e), PROFD_OK, "%s", e.sentence);
    free(body);
    return 1;
}

static void expect_ack(int fd, uint32_t tag)
{
    struct message m = {0};
    struct frame_header f;

    cr_assert_eq(take(fd, &f, &m), 1);
    if (f.type == FRAME_NACK) {
        cr_assert_fail("NACK: %s", m.as.nack.sentence);
    }
    cr_assert_eq(f.type, FRAME_ACK);
    cr_assert_eq(f.tag, tag, "tag %u", f.tag);
    message_done(&m);
}

/* A NACK with this status and tag whose sentence holds a word; then, if closed, the end of the stream. */
static void expect_nack(int fd, enum profd_status status, uint32_t tag, const char *word, bool closed)
{
    struct message m = {0};
    struct frame_header f;
    int got = take(fd, &f, &m);

    cr_assert_eq(got, 1, "no NACK \"%s\", but %d", word, got);
    cr_assert_eq(f.type, FRAME_NACK, "type %d", f.type);
    cr_assert_eq(m.as.nack.status, (unsigned)status, "%u: %s", m.as.nack.status, m.as.nack.sentence);
    cr_assert_eq(f.tag, tag, "tag %u", f.tag);
    cr_assert_not_null(strstr(m.as.nack.sentence, word), "%s", m.as.nack.sentence);
    cr_assert_eq(m.as.nack.retry, profd_status_retry(status));
    message_done(&m);
    if (closed) {
        cr_assert_eq(take(fd, &f, &m), 0, "the connection is not closed");
    }
}

static void expect_welcome(int fd)
{
    struct message m = {0};
    struct frame_header f;

    cr_assert_eq(take(fd, &f, &m), 1);
    cr_assert_eq(f.type, FRAME_WELCOME);
    cr_assert_eq(f.tag, 9);
    cr_assert_eq(m.as.welcome.version, FRAME_VERSION);
    cr_assert_eq(m.as.welcome.payload_max, LIMIT_FRAME_PAYLOAD);
    cr_assert_str_eq(m.as.welcome.daemon, "test");
    message_done(&m);
}

static int join_open_as(uint32_t uid)
{
    int fd = join_as(uid);

    say_hello(fd);
    expect_welcome(fd);
    return fd;
}

static int join_open(void)
{
    return join_open_as(1000);
}

/* A connection that has sent its first frame. */
static int join_proven(uint32_t uid)
{
    int fd = join_as(uid);

    say_hello(fd);
    put_frame(fd, FRAME_UPLOAD, 5, "x", 1);
    expect_welcome(fd);
    expect_ack(fd, 5);
    return fd;
}

static size_t connections(void)
{
    struct conn_counts counts;

    conn_group_get_counts(bed.group, &counts);
    return counts.connections;
}

Test(conn, uploads_are_pipelined_and_answered_by_tag)
{
    uint8_t block[50 * (FRAME_HEADER_SIZE + 3)], *at = block;
    int fd = join_open();

    for (uint32_t i = 0; i < 50; i++) {
        at += put_header(at, FRAME_UPLOAD, 0, 1000 + i, 3);
        memcpy(at, "\1\2\3", 3);
        at += 3;
    }
    put(fd, block, sizeof block);
    for (uint32_t i = 0; i < 50; i++) {
        expect_ack(fd, 1000 + i);
    }
    cr_assert_eq(bed.body_sum, 300);
    close(fd);
    run_for(5);
    cr_assert_eq(connections(), 0);
}

Test(conn, every_split_of_the_bytes_means_the_same)
{
    uint8_t block[200], *at = block;
    uint8_t *hello;
    size_t hello_size, n;
    struct message m = {.type = FRAME_HELLO};

    m.as.hello.version_oldest = m.as.hello.version_newest = 1;
    m.as.hello.client = "x";
    cr_assert_eq(message_encode(&m, 0, 9, &hello, &hello_size, NULL), PROFD_OK);
    memcpy(at, hello, hello_size);
    at += hello_size;
    free(hello);
    at += put_header(at, FRAME_UPLOAD, 0, 1, 5);
    memcpy(at, "abcde", 5);
    at += 5;
    at += put_header(at, FRAME_UPLOAD, 0, 2, 0);
    at += put_header(at, FRAME_UPLOAD, 0, 3, 1);
    *at++ = 'z';
    n = (size_t)(at - block);
    for (size_t cut = 0; cut <= n; cut++) {
        struct message w = {0};
        struct frame_header f;
        int fd = join_as(1000);

        if (cut) {
            put(fd, block, cut);
        }
        run_for(1);
        if (cut < n) {
            put(fd, block + cut, n - cut);
        }
        cr_assert_eq(take(fd, &f, &w), 1, "cut at %zu", cut);
        cr_assert_eq(f.type, FRAME_WELCOME);
        message_done(&w);
        for (uint32_t tag = 1; tag <= 3; tag++) {
            expect_ack(fd, tag);
        }
        close(fd);
    }
    cr_assert_eq(bed.handled, 3 * (int)(n + 1));
    run_for(5);
    cr_assert_eq(connections(), 0);
}

Test(conn, bad_beginnings_get_a_sentence_and_the_end)
{
    uint8_t header[FRAME_HEADER_SIZE];
    struct message m = {.type = FRAME_HELLO};
    int fd = join_as(1000);

    put(fd, "GET / HTTP/1.1\r\nHost: x\r\n\r\n", 27);
    expect_nack(fd, PROFD_TOO_LARGE, 0x312f5054u, "HELLO", true);
    close(fd);
    fd = join_as(1000);
    put_frame(fd, FRAME_UPLOAD, 5, "abc", 3);
    expect_nack(fd, PROFD_PROTOCOL, 5, "UPLOAD before HELLO", true);
    close(fd);
    fd = join_as(1000);
    put_header(header, FRAME_HELLO, 0, 6, 5000);
    put(fd, header, sizeof header);
    expect_nack(fd, PROFD_TOO_LARGE, 6, "5000", true);
    close(fd);
    fd = join_as(1000);
    put_header(header, FRAME_HELLO, 0, 6, 0);
    header[4] = 99;
    put(fd, header, sizeof header);
    expect_nack(fd, PROFD_UNKNOWN_VERSION, 6, "99", true);
    close(fd);
    fd = join_as(1000);
    m.as.hello.version_oldest = FRAME_VERSION + 1;
    m.as.hello.version_newest = FRAME_VERSION + 9;
    m.as.hello.client = "future";
    put_message(fd, &m, 8);
    expect_nack(fd, PROFD_UNKNOWN_VERSION, 8, "10", true);
    close(fd);
    fd = join_as(1000);
    put_frame(fd, FRAME_HELLO, 8, "\xff\xff\xff\xff\xff", 5);
    expect_nack(fd, PROFD_MALFORMED, 8, "", true);
    close(fd);
    cr_assert_eq(bed.opened, 0);
    cr_assert_eq(bed.handled, 0);
    cr_assert_eq(connections(), 0);
}

Test(conn, bad_frames_get_a_sentence_and_the_end)
{
    uint8_t header[FRAME_HEADER_SIZE];
    int fd = join_open();

    put_header(header, FRAME_UPLOAD, 0, 11, UINT32_MAX);
    put(fd, header, sizeof header);
    expect_nack(fd, PROFD_TOO_LARGE, 11, "4294967295", true);
    close(fd);
    fd = join_open();
    put_header(header, 200, 0, 12, 0);
    put(fd, header, sizeof header);
    expect_nack(fd, PROFD_UNKNOWN_TYPE, 12, "200", true);
    close(fd);
    fd = join_open();
    put_header(header, FRAME_WELCOME, 0, 13, 0);
    put(fd, header, sizeof header);
    expect_nack(fd, PROFD_UNKNOWN_TYPE, 13, "WELCOME", true);
    close(fd);
    fd = join_open();
    put_header(header, FRAME_UPLOAD, 0x8000, 14, 0);
    put(fd, header, sizeof header);
    expect_nack(fd, PROFD_PROTOCOL, 14, "", true);
    close(fd);
    fd = join_open();
    say_hello(fd);
    expect_nack(fd, PROFD_PROTOCOL, 9, "second HELLO", true);
    close(fd);
    cr_assert_eq(bed.handled, 0);
    cr_assert_eq(connections(), 0);
}

Test(conn, a_refused_frame_does_not_end_the_connection)
{
    int fd = join_open();

    bed.refuse = true;
    put_frame(fd, FRAME_UPLOAD, 1, "a", 1);
    expect_nack(fd, PROFD_REFUSED, 1, "not today", false);
    bed.refuse = false;
    put_frame(fd, FRAME_UPLOAD, 2, "a", 1);
    expect_ack(fd, 2);
    close(fd);
}

/* One sendmsg with bytes and descriptors. */
static void put_fds(int to, const void *bytes, size_t n, const int *fds, unsigned count)
{
    union {
        struct cmsghdr align;
        char space[CMSG_SPACE(64 * sizeof(int))];
    } control;
    struct iovec io = {.iov_base = (void *)(uintptr_t)bytes, .iov_len = n};
    struct msghdr m = {.msg_iov = &io, .msg_iovlen = 1};

    memset(&control, 0, sizeof control);
    if (count) {
        m.msg_control = control.space;
        m.msg_controllen = CMSG_SPACE(count * sizeof(int));
        CMSG_FIRSTHDR(&m)->cmsg_level = SOL_SOCKET;
        CMSG_FIRSTHDR(&m)->cmsg_type = SCM_RIGHTS;
        CMSG_FIRSTHDR(&m)->cmsg_len = CMSG_LEN(count * sizeof(int));
        memcpy(CMSG_DATA(CMSG_FIRSTHDR(&m)), fds, count * sizeof(int));
    }
    cr_assert_eq(sendmsg(to, &m, MSG_NOSIGNAL), (ssize_t)n);
}

static int count_fds(void)
{
    int n = 0;

    for (int fd = 0; fd < 256; fd++) {
        n += fcntl(fd, F_GETFD) >= 0;
    }
    return n;
}

Test(conn, descriptors_glued_to_earlier_bytes_find_their_frame)
{
    uint8_t block[200], *at;
    struct stat st;
    int fd = join_open(), file = open("/etc/passwd", O_RDONLY), before, both[2] = {file, file};

    cr_assert_eq(fstat(file, &st), 0);
    run_for(2);
    before = count_fds();
    /* Uploads first, in a message of their own, then OBJECT with descriptors, then uploads: all read by one recvmsg at
     * most up to the descriptors' message. */
    for (int round = 0; round < 3; round++) {
        at = block;
        at += put_header(at, FRAME_UPLOAD, 0, 1, 2);
        memcpy(at, "ab", 2);
        at += 2;
        put(fd, block, (size_t)(at - block));
        at = block;
        at += put_header(at, FRAME_UPLOAD, 0, 2, 0);
        at += put_header(at, FRAME_OBJECT, (1u + (round == 2)) << FRAME_FLAG_FDS_SHIFT, 3, 4);
        memcpy(at, "obje", 4);
        at += 4;
        at += put_header(at, FRAME_UPLOAD, 0, 4, 0);
        put_fds(fd, block, (size_t)(at - block), both, 1u + (round == 2));
        at = block + put_header(block, FRAME_UPLOAD, 0, 5, 0);
        put(fd, block, (size_t)(at - block));
        for (uint32_t tag = 1; tag <= 5; tag++) {
            expect_ack(fd, tag);
        }
        cr_assert_eq(bed.inode, st.st_ino);
    }
    cr_assert_eq(bed.fds_seen, 4);
    cr_assert_eq(count_fds(), before, "descriptors leak");
    /* With the header only, the body later; and with the last byte of the body. */
    at = block + put_header(block, FRAME_OBJECT, 1u << FRAME_FLAG_FDS_SHIFT, 6, 4);
    put_fds(fd, block, 5, &file, 1);
    run_for(2);
    put(fd, block + 5, 7);
    run_for(2);
    put(fd, "obje", 4);
    expect_ack(fd, 6);
    put(fd, block, 12);
    run_for(2);
    put(fd, "obj", 3);
    run_for(2);
    put_fds(fd, "e", 1, &file, 1);
    expect_ack(fd, 6);
    cr_assert_eq(bed.fds_seen, 6);
    cr_assert_eq(count_fds(), before);
    close(file);
    close(fd);
}

Test(conn, surplus_and_missing_descriptors_are_protocol_errors)
{
    uint8_t block[64];
    int fds[20], before, fd;

    fds[0] = open("/dev/null", O_RDONLY);
    for (int i = 1; i < 20; i++) {
        fds[i] = fds[0];
    }
    fd = join_open();
    before = count_fds(); /* the pair included */
    /* Missing. */
    put_header(block, FRAME_OBJECT, 1u << FRAME_FLAG_FDS_SHIFT, 21, 0);
    put(fd, block, 12);
    expect_nack(fd, PROFD_PROTOCOL, 21, "announced 1 descriptors, 0 were received", true);
    close(fd);
    /* With a frame that announces none. */
    fd = join_open();
    put_header(block, FRAME_UPLOAD, 0, 22, 0);
    put_fds(fd, block, 12, fds, 1);
    expect_ack(fd, 22);
    expect_nack(fd, PROFD_PROTOCOL, 0, "1 descriptors were received that no frame announced", true);
    close(fd);
    /* Two where one was announced, in the middle of its body. */
    fd = join_open();
    put_header(block, FRAME_OBJECT, 1u << FRAME_FLAG_FDS_SHIFT, 23, 100);
    put_fds(fd, block, 13, fds, 2);
    expect_nack(fd, PROFD_PROTOCOL, 23, "1 descriptors were received that no frame announced", true);
    close(fd);
    /* More than may ever wait. */
    fd = join_open();
    put_fds(fd, block, 5, fds, 20);
    expect_nack(fd, PROFD_PROTOCOL, 0, "16", true);
    close(fd);
    /* A type that takes none, one that takes one or two. */
    fd = join_open();
    put_header(block, FRAME_UPLOAD, 1u << FRAME_FLAG_FDS_SHIFT, 24, 0);
    put_fds(fd, block, 12, fds, 1);
    expect_nack(fd, PROFD_PROTOCOL, 24, "UPLOAD has 1", true);
    close(fd);
    fd = join_open();
    put_header(block, FRAME_OBJECT, 3u << FRAME_FLAG_FDS_SHIFT, 25, 0);
    put_fds(fd, block, 12, fds, 3);
    expect_nack(fd, PROFD_PROTOCOL, 25, "OBJECT has 3", true);
    close(fd);
    fd = join_open();
    put_header(block, FRAME_OBJECT, 0, 26, 0);
    put(fd, block, 12);
    expect_nack(fd, PROFD_PROTOCOL, 26, "OBJECT has 0", true);
    close(fd);
    run_for(5);
    cr_assert_eq(connections(), 0);
    cr_assert_eq(count_fds(), before - 2, "descriptors leak");
    cr_assert_eq(bed.fds_seen, 0);
    close(fds[0]);
}

Test(conn, descriptors_of_a_dead_connection_are_closed)
{
    uint8_t block[64];
    int file = open("/dev/null", O_RDONLY), before = count_fds(), fd = join_open();

    put_header(block, FRAME_OBJECT, 1u << FRAME_FLAG_FDS_SHIFT, 23, 100);
    put_fds(fd, block, 12, &file, 1);
    run_for(2);
    close(fd);
    run_for(2);
    cr_assert_eq(connections(), 0);
    cr_assert_eq(count_fds(), before);
    close(file);
}

Test(conn, deadlines_do_not_move_with_each_byte)
{
    uint8_t header[FRAME_HEADER_SIZE];
    int silent, drip_header, drip_body, idle;

    bed.config.hello_ms = 150;
    bed.config.header_ms = 120;
    bed.config.body_ms = 100;
    bed.config.body_rate = 1000; /* 100 bytes: 100 ms more */
    again();
    silent = join_as(1);
    idle = join_open();
    drip_header = join_open();
    drip_body = join_open();
    put_header(header, FRAME_UPLOAD, 0, 31, 100);
    put(drip_body, header, sizeof header);
    for (int i = 0; i < 11; i++) {
        (void)!send(drip_header, header + i, 1, MSG_NOSIGNAL); /* a slow machine may be past the deadline */
        run_for(10);
    }
    /* A byte more does not help. */
    for (int i = 0; i < 30; i++) {
        (void)!send(drip_body, "x", 1, MSG_NOSIGNAL);
        run_for(10);
    }
    expect_nack(drip_header, PROFD_TIMEOUT, 0, "header", true);
    expect_nack(drip_body, PROFD_TIMEOUT, 31, "of the frame's 100 bytes", true);
    expect_nack(silent, PROFD_TIMEOUT, 0, "HELLO", true);
    /* An open connection may be silent as long as it likes. */
    put_frame(idle, FRAME_UPLOAD, 32, "", 0);
    expect_ack(idle, 32);
    cr_assert_eq(connections(), 1);
    cr_assert_eq(bed.handled, 1);
}

Test(conn, a_hello_in_drops_is_bounded_too)
{
    uint8_t header[FRAME_HEADER_SIZE];
    int fd;

    bed.config.hello_ms = 100;
    bed.config.body_ms = 100000;
    again();
    fd = join_as(1);
    put_header(header, FRAME_HELLO, 0, 1, 4000);
    put(fd, header, sizeof header);
    for (int i = 0; i < 15; i++) {
        (void)!send(fd, "x", 1, MSG_NOSIGNAL);
        run_for(10);
    }
    expect_nack(fd, PROFD_TIMEOUT, 1, "HELLO", true);
}

Test(conn, who_does_not_read_is_not_read_and_then_dropped)
{
    int fd, small = 4096;
    struct conn_counts counts;

    fd = join_open();
    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
    put_frame(fd, FRAME_QUERY, 77, "", 0);
    settle();
    conn_group_get_counts(bed.group, &counts);
    cr_assert_eq(counts.connections, 1);
    cr_assert_eq(pieces_freed, 0);
    close(fd);
    bed.config.write_ms = 100;
    again();
    pieces_freed = 0;
    fd = join_open();
    put_frame(fd, FRAME_QUERY, 77, "", 0);
    for (int tries = 0; tries < 6000 && !pieces_freed; tries++) {
        run_for(10);
    }
    cr_assert_eq(connections(), 0);
    cr_assert_eq(pieces_freed, 1);
    close(fd);
}

static void expect_pieces(int fd)
{
    struct message m = {0};
    struct frame_header f = {0};
    int n = 0;
    size_t bytes = 0;

    do {
        cr_assert_eq(take(fd, &f, &m), 1);
        cr_assert_eq(f.type, FRAME_REPLY);
        bytes += m.as.reply.body.size;
        message_done(&m);
        n++;
    } while (!(f.flags & FRAME_FLAG_LAST));
    cr_assert_eq(n, 100);
    cr_assert_eq(bytes, 100 * 100000u);
}

Test(conn, long_answers_come_whole_in_pieces)
{
    int fd = join_open();

    put_frame(fd, FRAME_QUERY, 77, "", 0);
    expect_pieces(fd);
    put_frame(fd, FRAME_UPLOAD, 1, "", 0);
    expect_ack(fd, 1);
    cr_assert_eq(pieces_freed, 1);
}

/* libevent adds no event that has been activated and waits for its handler. The connection is settled in between. */
Test(conn, an_event_that_was_activated_is_added_all_the_same)
{
    struct profd_error e;
    uint32_t at = 0;
    int fd = join_open();

    bed.silent = true;
    put_frame(fd, FRAME_UPLOAD, 1, "", 0);
    settle();
    cr_assert_eq(on_query(NULL, conn_find(bed.group, bed.last), NULL, &e), PROFD_OK);
    bed.silent = false;
    put_frame(fd, FRAME_UPLOAD, 2, "", 0);
    cr_assert(conn_group_listen(bed.group, 1000, &at));
    expect_ack(fd, 2);
    expect_pieces(fd);
    put_frame(fd, FRAME_UPLOAD, 3, "", 0);
    expect_ack(fd, 3);
}

Test(conn, too_many_unanswered_frames_stop_the_reading)
{
    const struct message ack = {.type = FRAME_ACK};
    uint8_t block[40 * FRAME_HEADER_SIZE], *at = block;
    int fd;

    bed.config.in_flight_max = 16;
    again();
    fd = join_open();
    bed.silent = true;
    for (uint32_t i = 0; i < 40; i++) {
        at += put_header(at, FRAME_UPLOAD, 0, i, 0);
    }
    put(fd, block, sizeof block);
    run_for(20);
    cr_assert_eq(bed.handled, 16);
    /* Each answer lets one more in, whatever their order. */
    for (uint32_t i = 0; i < 10; i++) {
        conn_answer(conn_find(bed.group, bed.last), &ack, 0, 15 - i);
    }
    run_for(20);
    cr_assert_eq(bed.handled, 26);
    for (uint32_t i = 0; i < 10; i++) {
        expect_ack(fd, 15 - i);
    }
    for (int round = 0; bed.handled < 40; round++) {
        cr_assert(round < 40);
        conn_answer(conn_find(bed.group, bed.last), &ack, 0, 0);
        run_for(2);
    }
    for (uint32_t i = 0; i < 40; i++) {
        cr_assert_eq(bed.tags[i], i);
    }
}

Test(conn, answers_to_the_dead_find_nobody)
{
    conn_id dead;
    int fd = join_open(), other;

    bed.silent = true;
    put_frame(fd, FRAME_UPLOAD, 1, "", 0);
    run_for(5);
    dead = bed.last;
    cr_assert_not_null(conn_find(bed.group, dead));
    close(fd);
    run_for(5);
    /* In flight: it waits for the answer, which then has nowhere to go. */
    if (conn_find(bed.group, dead)) {
        conn_nack(conn_find(bed.group, dead), 1, PROFD_REFUSED, "x", 0);
    }
    run_for(5);
    cr_assert_null(conn_find(bed.group, dead));
    other = join_open(); /* takes the same slot */
    put_frame(other, FRAME_UPLOAD, 1, "", 0);
    run_for(5);
    cr_assert_neq(bed.last, dead);
    cr_assert_eq((uint32_t)bed.last, (uint32_t)dead);
    cr_assert_null(conn_find(bed.group, dead));
    cr_assert_null(conn_find(bed.group, 0));
    cr_assert_null(conn_find(bed.group, UINT64_MAX));
}

Test(conn, queries_are_not_handled_after_a_hang_up_and_uploads_are)
{
    int fd = join_open();

    for (uint32_t i = 0; i < 100; i++) {
        put_frame(fd, i % 2 ? FRAME_QUERY : FRAME_SYNC, i, "", 0);
    }
    put_frame(fd, FRAME_UPLOAD, 100, "", 0);
    close(fd);
    run_for(20);
    cr_assert_eq(bed.handled, 1, "%d frames were handled", bed.handled);
    cr_assert_eq(bed.tags[0], 100);
    cr_assert_eq(pieces_freed, 0);
    cr_assert_eq(connections(), 0);
}

/* Its queued requests can be cancelled: nothing else would say so before their answers are written. */
Test(conn, a_hang_up_behind_a_request_in_flight_is_noticed)
{
    int fd = join_open(), other = join_open();
    conn_id id;

    bed.silent = true;
    put_frame(other, FRAME_SYNC, 1, "", 0);
    run_for(5);
    put_frame(fd, FRAME_SYNC, 1, "", 0);
    run_for(5);
    id = bed.last;
    shutdown(other, SHUT_WR); /* this one still reads */
    close(fd);
    for (int i = 0; i < 1000 && !bed.hung_up; i++) {
        run_for(5);
    }
    cr_assert_eq(bed.hung_up, id);
    conn_nack(conn_find(bed.group, id), 1, PROFD_REFUSED, "cancelled", 0); /* it must be answered all the same */
    run_for(5);
    cr_assert_eq(connections(), 1);
}

#define MANY 300

/* Fills connections of user 7 with a frame each, and behind them one of user 8. Nothing is read yet. */
static void crowd(int fds[MANY + 1])
{
    for (uint32_t i = 0; i <= MANY; i++) {
        fds[i] = join_as(i < MANY ? 7 : 8);
        say_hello(fds[i]);
        put_frame(fds[i], FRAME_UPLOAD, i, "", 0);
    }
}

static int find_tag(uint32_t tag)
{
    int at = 0;

    while (at < bed.handled && bed.tags[at] != tag) {
        at++;
    }
    return at;
}

Test(conn, a_user_with_many_connections_keeps_another_waiting_for_few_of_them)
{
    int fds[MANY + 1];

    crowd(fds);
    for (int i = 0; i < 1000 && bed.handled <= MANY; i++) {
        run_for(1);
    }
    cr_assert_eq(bed.handled, MANY + 1);
    cr_assert_leq(find_tag(MANY), 2 * (int)LIMIT_READS_PER_UID, "%d frames were handled before it", find_tag(MANY));
    for (uint32_t i = 0; i < MANY; i++) {
        expect_welcome(fds[i]);
        expect_ack(fds[i], i);
    }
}

Test(conn, what_is_postponed_may_close_and_is_drained)
{
    int fds[MANY + 1];

    crowd(fds);
    loop_timer_set(bed.timer, 0);
    loop_run(bed.loop);
    cr_assert_lt(bed.handled, MANY + 1, "some are postponed");
    for (int i = 0; i < MANY; i += 2) {
        close(fds[i]);
    }
    loop_timer_set(bed.timer, 0);
    loop_run(bed.loop);
    conn_group_drain(bed.group);
    cr_assert_eq(bed.handled, MANY + 1, "what had arrived is handled");
    run_for(20);
    cr_assert_eq(connections(), 0);
}

Test(conn, listening_to_a_user_reads_few_connections_at_a_time)
{
    int fds[MANY + 1], calls = 1;
    uint32_t at = 0;

    crowd(fds);
    while (!conn_group_listen(bed.group, 7, &at)) {
        cr_assert_leq(bed.handled, calls * (int)LIMIT_READS_PER_UID);
        calls++;
    }
    cr_assert_eq(bed.handled, MANY, "all of this user, none of another");
}

/* A connection that is postponed was first: the user's next one at its limit does not displace it, and another user's
 * does without its frames being handled. */
Test(conn, limits_hold_while_connections_are_postponed)
{
    int fds[MANY + 1], late;

    bed.config.connections_max = MANY + 1 + MANY / 5; /* of which one user may use MANY */
    again();
    for (int i = 0; i < MANY / 5; i++) {
        join_proven(10);
    }
    bed.handled = 0;
    crowd(fds);
    loop_timer_set(bed.timer, 0);
    loop_run(bed.loop);
    cr_assert_lt(bed.handled, MANY + 1, "some are postponed");
    late = join_as(7);
    expect_nack(late, PROFD_BUSY, 0, "connections are open", true);
    late = join_as(9);
    say_hello(late);
    put_frame(late, FRAME_UPLOAD, 4000, "", 0);
    expect_welcome(late);
    expect_ack(late, 4000);
    cr_assert_leq(find_tag(4000), 4 * (int)LIMIT_READS_PER_UID, "%d frames were handled before it", find_tag(4000));
}

Test(conn, a_half_closed_connection_gets_its_answers)
{
    const struct message ack = {.type = FRAME_ACK};
    struct message m;
    struct frame_header f;
    uint8_t header[FRAME_HEADER_SIZE];
    int fd = join_open();

    bed.silent = true;
    put_frame(fd, FRAME_UPLOAD, 41, "", 0);
    put_header(header, FRAME_UPLOAD, 0, 42, 10); /* never whole: no answer */
    put(fd, header, sizeof header);
    put(fd, "half", 4);
    shutdown(fd, SHUT_WR);
    run_for(20);
    cr_assert_eq(bed.handled, 1);
    cr_assert_eq(connections(), 1);
    conn_answer(conn_find(bed.group, bed.last), &ack, 0, 41);
    expect_ack(fd, 41);
    cr_assert_eq(take(fd, &f, &m), 0);
    cr_assert_eq(connections(), 0);
}

static void put_large(int fd, uint32_t tag, size_t n)
{
    uint8_t *block = calloc(1, FRAME_HEADER_SIZE + n);
    size_t sent = 0;

    put_header(block, FRAME_UPLOAD, 0, tag, (uint32_t)n);
    for (int tries = 0; sent < FRAME_HEADER_SIZE + n && tries < 500; tries++) {
        ssize_t part = send(fd, block + sent, FRAME_HEADER_SIZE + n - sent, MSG_NOSIGNAL);

        if (part > 0) {
            sent += (size_t)part;
        }
        run_for(1);
    }
    free(block);
}

Test(conn, large_bodies_wait_for_the_budget_and_small_ones_pass)
{
    struct conn_counts counts;
    int first, second, third;

    bed.config.budget = 8u << 20;
    again();
    first = join_open();
    second = join_open();
    third = join_open();
    bed.keep = true;
    put_large(first, 1, 3u << 20);
    cr_assert_eq(bed.handled, 1);
    /* The user's half is used up: a second large body waits with its bytes in the socket. */
    put_large(second, 2, 2u << 20);
    cr_assert_eq(bed.handled, 1);
    conn_group_get_counts(bed.group, &counts);
    cr_assert_eq(counts.bodies, 3u << 20);
    put_frame(third, FRAME_UPLOAD, 3, "small", 5);
    run_for(5);
    cr_assert_eq(bed.handled, 2);
    cr_assert_eq(bed.tags[1], 3);
    conn_body_free(bed.group, &bed.kept[0]);
    run_for(20);
    conn_group_get_counts(bed.group, &counts);
    cr_assert_eq(counts.bodies, (2u << 20) + 5);
}

Test(conn, a_waiting_connection_may_die)
{
    struct conn_counts counts;
    int first, second;

    bed.config.budget = 4u << 20;
    again();
    first = join_open();
    second = join_open();
    bed.keep = true;
    put_large(first, 1, 2u << 20);
    put_large(second, 2, 2u << 20);
    cr_assert_eq(bed.handled, 1);
    conn_group_drain(bed.group);
    close(second);
    run_for(5);
    conn_body_free(bed.group, &bed.kept[0]);
    run_for(5);
    conn_group_get_counts(bed.group, &counts);
    cr_assert_eq(counts.bodies, 0);
    cr_assert_eq(bed.handled, 1);
}

Test(conn, limits_of_connections)
{
    int fds[8];

    bed.config.connections_max = 6;
    bed.config.connections_max_uid = 4;
    again();
    for (int i = 0; i < 4; i++) {
        fds[i] = join_proven(7);
    }
    fds[4] = join_as(7);
    expect_nack(fds[4], PROFD_BUSY, 0, "user 7 has 4 connections", true);
    fds[4] = join_proven(8);
    fds[5] = join_proven(9);
    fds[6] = join_as(10);
    expect_nack(fds[6], PROFD_BUSY, 0, "6 connections are open", true);
    close(fds[0]);
    run_for(5);
    fds[7] = join_proven(7);
    cr_assert_eq(bed.opened, 7);
}

/* Clients are not kept out by connections that say nothing, or only HELLO. */
Test(conn, the_oldest_that_has_sent_nothing_gives_way)
{
    int mute, greeted, asking;

    bed.config.connections_max = 100;
    bed.config.connections_max_uid = 3;
    again();
    greeted = join_open_as(7);
    asking = join_as(7);
    mute = join_as(7);
    say_hello(asking);
    put_frame(asking, FRAME_UPLOAD, 5, "x", 1);
    join_as(7);
    join_as(7); /* the oldest is now the one whose request has arrived and was not read yet: mute goes instead */
    expect_nack(greeted, PROFD_BUSY, 0, "has sent no request", true);
    expect_nack(mute, PROFD_BUSY, 0, "has sent no request", true);
    expect_welcome(asking);
    expect_ack(asking, 5);
    cr_assert_eq(connections(), 3);
}

/* At the limit of all connections a user does not push out another user who has fewer. */
Test(conn, who_has_fewer_connections_does_not_give_way)
{
    int many[5], few;

    bed.config.connections_max = 6;
    again();
    few = join_open_as(8);
    for (int i = 0; i < 5; i++) {
        many[i] = join_as(7);
    }
    for (int i = 0; i < 20; i++) {
        close(join_as(7));
    }
    put_frame(few, FRAME_UPLOAD, 6, "x", 1);
    expect_ack(few, 6);
    join_proven(9);
    cr_assert_leq(connections(), 6);
    for (int i = 0; i < 5; i++) {
        close(many[i]);
    }
}

Test(conn, draining_takes_what_has_arrived_and_ends)
{
    struct message m;
    struct frame_header f;
    const struct message ack = {.type = FRAME_ACK};
    int fd = join_open(), idle = join_open(), greeting = join_as(3), late;

    bed.silent = true;
    put_frame(fd, FRAME_UPLOAD, 51, "abc", 3); /* in the socket, not yet read */
    conn_group_drain(bed.group);
    cr_assert_eq(bed.handled, 1);
    run_for(5);
    cr_assert_eq(connections(), 1);
    cr_assert_eq(take(idle, &f, &m), 0);
    cr_assert_eq(take(greeting, &f, &m), 0);
    late = join_as(4);
    expect_nack(late, PROFD_BUSY, 0, "stopping", true);
    conn_answer(conn_find(bed.group, bed.last), &ack, 0, 51);
    expect_ack(fd, 51);
    cr_assert_eq(take(fd, &f, &m), 0);
    cr_assert_eq(connections(), 0);
}

/* Random frames, cut at random places, some of them damaged: whatever comes, each connection ends in order, memory is
 * given back and no descriptor stays. */
Test(conn, noise)
{
    unsigned seed = 4711;
    int before = count_fds(), file = open("/dev/null", O_RDONLY);
    struct conn_counts counts;

    for (uint32_t round = 0; round < rounds(300); round++) {
        uint8_t block[600];
        size_t n = 0, at = 0;
        int fd = rand_r(&seed) % 3 ? join_open() : join_as(5);

        while (n < 500) {
            size_t body = (size_t)rand_r(&seed) % 40;

            n += put_header(block + n, 1u + (unsigned)rand_r(&seed) % 13, (unsigned)rand_r(&seed) % 20 ? 0 : 0x100,
                            (uint32_t)n, (uint32_t)body);
            for (size_t i = 0; i < body; i++) {
                block[n++] = (uint8_t)rand_r(&seed);
            }
            if (rand_r(&seed) % 4) {
                block[n - body - 12 + 5] = FRAME_UPLOAD;
            }
        }
        if (rand_r(&seed) % 2) {
            block[(size_t)rand_r(&seed) % n] ^= (uint8_t)(1u << rand_r(&seed) % 8);
        }
        while (at < n) {
            size_t part = 1 + (size_t)rand_r(&seed) % (n - at);

            if (rand_r(&seed) % 10) {
                (void)!send(fd, block + at, part, MSG_NOSIGNAL);
            } else if (fcntl(fd, F_GETFD) >= 0 && !send(fd, block, 0, MSG_NOSIGNAL)) {
                put_fds(fd, block + at, part, &file, 0);
            }
            at += part;
            if (!(rand_r(&seed) % 3)) {
                run_for(0);
            }
        }
        run_for(0);
        close(fd);
    }
    run_for(20);
    close(file);
    conn_group_get_counts(bed.group, &counts);
    cr_assert_eq(counts.connections, 0, "seed %u", seed);
    cr_assert_eq(counts.bodies, 0, "seed %u", seed);
    cr_assert_eq(count_fds(), before, "seed %u", seed);
}
