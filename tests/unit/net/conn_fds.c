/* Descriptors that the daemon sends, and who is heard before anything else. */
#include <criterion/criterion.h>
#include <dirent.h>
#include <event2/event.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "net/conn.h"
#include "net/listen.h"
#include "net/loop.h"
#include "proto/limits.h"

static struct {
    struct loop *loop;
    struct conn_config config;
    struct conn_group *group;
    struct loop_timer *timer;
    int handled;
    conn_id last;
} bed;

/* A file whose size says which one it is. */
static int file_of(int number)
{
    int fd = memfd_create("test", MFD_CLOEXEC);

    cr_assert(fd >= 0 && !ftruncate(fd, number));
    return fd;
}

/* Tags 1000… are answered with a descriptor, others without. */
static enum profd_status on_upload(void *context, struct conn *c, struct conn_frame *f, struct profd_error *e)
{
    const struct message ack = {.type = FRAME_ACK};
    const uint32_t tag = f->header.tag;

    (void)context;
    (void)e;
    bed.handled++;
    bed.last = conn_get_id(c);
    if (tag >= 1000) {
        conn_answer_fd(c, &ack, 0, tag, file_of((int)tag));
    } else {
        conn_answer(c, &ack, 0, tag);
    }
    return PROFD_OK;
}

static const struct conn_handler handlers[] = {{FRAME_UPLOAD, true, 0, 0, on_upload, NULL, false}};

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
    bed.config.handler_count = 1;
    bed.group = conn_group_new(&bed.config);
    bed.timer = loop_timer_new(bed.loop, on_timer, NULL);
}

static void teardown(void)
{
    conn_group_free(bed.group);
    loop_timer_free(bed.timer);
    loop_free(bed.loop);
}

TestSuite(conn_fds, .init = setup, .fini = teardown);

/* What can be done at once, and at least so many milliseconds. */
static void run_for(unsigned ms)
{
    for (int i = 0; i < 50; i++) {
        event_base_loop(loop_get_base(bed.loop), EVLOOP_NONBLOCK);
    }
    loop_timer_set(bed.timer, ms);
    loop_run(bed.loop);
}

static int join_as(uint32_t uid, int size)
{
    const struct peer peer = {.uid = uid};
    int pair[2];

    cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair), 0);
    if (size) {
        cr_assert_eq(setsockopt(pair[0], SOL_SOCKET, SO_SNDBUF, &size, sizeof size), 0);
    }
    conn_group_accept(bed.group, pair[0], &peer);
    return pair[1];
}

static void put_frame(int fd, unsigned type, uint32_t tag, const void *body, size_t n)
{
    const struct frame_header f = {.length = (uint32_t)n, .version = FRAME_VERSION, .type = (uint8_t)type, .tag = tag};
    uint8_t bytes[FRAME_HEADER_SIZE + 64];

    frame_encode(&f, bytes);
    if (n) {
        memcpy(bytes + FRAME_HEADER_SIZE, body, n);
    }
    cr_assert_eq(write(fd, bytes, FRAME_HEADER_SIZE + n), (ssize_t)(FRAME_HEADER_SIZE + n));
}

static void put_hello(int fd)
{
    static const uint8_t hello[] = {0x08, 1, 0x10, 1};

    put_frame(fd, FRAME_HELLO, 0, hello, sizeof hello);
}

/* At most n bytes, and the size of the one file that came with them, or −1. −1 bytes when nothing is there. */
static ssize_t take(int fd, uint8_t *into, size_t n, int *file)
{
    union {
        struct cmsghdr head;
        char bytes[CMSG_SPACE(8 * sizeof(int))];
    } control;
    struct iovec io = {into, n};
    struct msghdr m = {.msg_iov = &io, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof control};
    ssize_t got = recvmsg(fd, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    struct cmsghdr *h = got > 0 ? CMSG_FIRSTHDR(&m) : NULL;
    struct stat st;
    int sent;

    *file = -1;
    if (!h) {
        return got;
    }
    cr_assert(h->cmsg_type == SCM_RIGHTS && h->cmsg_len == CMSG_LEN(sizeof sent) && !(m.msg_flags & MSG_CTRUNC));
    memcpy(&sent, CMSG_DATA(h), sizeof sent);
    cr_assert_eq(fstat(sent, &st), 0);
    *file = (int)st.st_size;
    close(sent);
    return got;
}

static int open_descriptors(void)
{
    DIR *d = opendir("/proc/self/fd");
    int n = 0;

    while (readdir(d)) {
        n++;
    }
    closedir(d);
    return n;
}

/* Reads everything in pieces of n bytes; each descriptor must come with the first byte of the frame that announces it.
 */
static int read_all(int fd, size_t n, int wanted)
{
    uint8_t stream[1 << 16], piece[4096];
    size_t size = 0, at = 0;
    int files[4096], file, found = 0;
    size_t places[4096];
    unsigned came = 0, used = 0;

    for (int idle = 0; idle < 20000 && found < wanted;) {
        const ssize_t got = take(fd, piece, n, &file);

        if (got <= 0) {
            idle++;
            run_for(1);
            continue;
        }
        if (file >= 0) {
            files[came] = file;
            places[came++] = size;
        }
        memcpy(stream + size, piece, (size_t)got);
        size += (size_t)got;
        while (size - at >= FRAME_HEADER_SIZE) {
            struct frame_header f;

            cr_assert_eq(frame_decode(stream + at, &f, NULL), PROFD_OK);
            if (size - at - FRAME_HEADER_SIZE < f.length) {
                break;
            }
            cr_assert_eq(frame_fds(&f), f.tag >= 1000);
            if (frame_fds(&f)) {
                cr_assert(used < came, "frame %u came without its descriptor", f.tag);
                cr_assert(places[used] <= at && places[used] + n > at, "descriptor at %zu, frame at %zu", places[used],
                          at);
                cr_assert(n > 1 || places[used] == at);
                cr_assert_eq(files[used++], (int)f.tag);
            }
            found += f.type == FRAME_ACK;
            at += FRAME_HEADER_SIZE + f.length;
        }
    }
    cr_assert_eq(used, came);
    return found;
}

Test(conn_fds, a_descriptor_goes_with_the_first_byte_of_its_frame)
{
    const int before = open_descriptors();
    static const size_t pieces[] = {1, 2, 5, 13, 4096};

    for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
        int fd = join_as(7, 0);

        put_hello(fd);
        for (uint32_t tag = 1; tag <= 12; tag++) {
            put_frame(fd, FRAME_UPLOAD, tag % 3 ? tag : 1000 + tag, NULL, 0);
        }
        cr_assert_eq(read_all(fd, pieces[i], 12), 12);
        close(fd);
        run_for(20);
    }
    cr_assert_eq(open_descriptors(), before);
}

Test(conn_fds, a_socket_that_is_full_again_and_again_mixes_nothing_up)
{
    int fd = join_as(7, 1), sent = 0, found = 0;

    put_hello(fd);
    for (int round = 0; round < 20; round++) {
        for (int i = 0; i < 40; i++, sent++) {
            put_frame(fd, FRAME_UPLOAD, sent % 2 ? 1000u + (uint32_t)sent : (uint32_t)sent % 999u + 1u, NULL, 0);
        }
        run_for(5);
        found += read_all(fd, 7, 40);
    }
    cr_assert_eq(found, sent);
    close(fd);
}

Test(conn_fds, what_could_not_be_sent_is_closed_with_the_connection)
{
    const int before = open_descriptors();
    int fd = join_as(7, 1);

    put_hello(fd);
    for (uint32_t i = 0; i < 200; i++) {
        put_frame(fd, FRAME_UPLOAD, 1000 + i, NULL, 0);
    }
    for (int i = 0; i < 12000 && bed.handled < 20; i++) {
        run_for(5);
    }
    cr_assert(bed.handled >= 20);
    close(fd);
    for (int i = 0; i < 12000 && open_descriptors() != before; i++) {
        run_for(5);
    }
    cr_assert_eq(open_descriptors(), before);
}

Test(conn_fds, what_was_sent_before_is_heard_at_once)
{
    int a = join_as(7, 0), b = join_as(8, 0);
    uint32_t at = 0;

    put_hello(a), put_hello(b);
    put_frame(a, FRAME_UPLOAD, 1, NULL, 0);
    put_frame(b, FRAME_UPLOAD, 2, NULL, 0);
    at = 0;
    cr_assert(conn_group_listen(bed.group, 7, &at)); /* the loop has not run yet */
    cr_assert_eq(bed.handled, 1);
    at = 0;
    cr_assert(conn_group_listen(bed.group, 9, &at));
    cr_assert_eq(bed.handled, 1);
    at = 0;
    cr_assert(conn_group_listen(bed.group, 8, &at));
    cr_assert_eq(bed.handled, 2);
    close(a);
    at = 0;
    cr_assert(conn_group_listen(bed.group, 7, &at)); /* and so is the end */
    struct conn_counts counts;
    conn_group_get_counts(bed.group, &counts);
    cr_assert_eq(counts.connections, 1);
    close(b);
}

Test(conn_fds, what_was_sent_before_the_sender_went_is_heard_although_nobody_reads_the_answers)
{
    static uint8_t large[100000]; /* more than is read at once: WELCOME meets a closed socket in between */
    const struct frame_header f = {
        .length = sizeof large - FRAME_HEADER_SIZE, .version = FRAME_VERSION, .type = FRAME_UPLOAD, .tag = 1};
    struct conn_counts counts;
    int fd = join_as(7, 0);

    frame_encode(&f, large);
    put_hello(fd);
    cr_assert_eq(write(fd, large, sizeof large), (ssize_t)sizeof large);
    put_frame(fd, FRAME_UPLOAD, 1001, NULL, 0);
    put_frame(fd, FRAME_UPLOAD, 3, NULL, 0);
    close(fd);
    for (int i = 0; i < 12000 && bed.handled < 3; i++) {
        run_for(5);
    }
    cr_assert_eq(bed.handled, 3);
    run_for(20);
    conn_group_get_counts(bed.group, &counts);
    cr_assert_eq(counts.connections, 0);
}

Test(conn_fds, fewer_connections_are_let_in_when_others_need_the_descriptors)
{
    struct conn_counts counts;
    int a, b, c;

    conn_group_limit(bed.group, 2);
    a = join_as(7, 0), b = join_as(7, 0), c = join_as(7, 0); /* none has sent anything: the oldest gives way */
    conn_group_get_counts(bed.group, &counts);
    cr_assert(counts.connections == 2 && counts.accepted == 3, "%zu of %llu accepted", counts.connections,
              (unsigned long long)counts.accepted);
    close(a), close(b), close(c);
}

static int ended;

static void on_end(void *context)
{
    (void)context;
    ended++;
    loop_stop(bed.loop);
}

Test(conn_fds, the_end_of_a_process_is_heard_of_once)
{
    int hold[2], fd, state;
    struct loop_watch *w;
    pid_t child;

    cr_assert_eq(pipe(hold), 0);
    child = fork();
    if (!child) {
        char byte;
        close(hold[1]);
        _exit(read(hold[0], &byte, 1) > 0);
    }
    cr_assert_eq(peer_open_number((uint32_t)child, &fd), PEER_LIVES);
    w = loop_watch_new(bed.loop, fd, on_end, NULL);
    cr_assert_not_null(w);
    run_for(20);
    cr_assert_eq(ended, 0);
    close(hold[1]), close(hold[0]);
    for (int i = 0; i < 30000 && ended == 0; i++) {
        run_for(10);
    }
    cr_assert_eq(ended, 1);
    run_for(20);
    cr_assert_eq(ended, 1);
    loop_watch_free(w);
    close(fd);
    cr_assert_eq(waitpid(child, &state, 0), child);
    cr_assert_eq(peer_open_number((uint32_t)child, &fd), PEER_DEAD);
    cr_assert_eq(fd, -1);
    cr_assert_eq(peer_open_number(0, &fd), PEER_UNKNOWN);
}

/* In a child: descriptors 3… are whatever the runner has there. */
static int kept_are_taken(void)
{
    struct listen_passed p;
    char text[24];
    int memory = memfd_create("kept", 0);

    memory = fcntl(memory, F_DUPFD, 100);
    if (dup2(memory, 3) != 3 || dup2(memory, 4) != 4) {
        return 1;
    }
    snprintf(text, sizeof text, "%d", (int)getpid());
    setenv("LISTEN_PID", text, 1);
    setenv("LISTEN_FDS", "2", 1);
    setenv("LISTEN_FDNAMES", "profd-first-0-7-8:profd-second", 1);
    if (listen_take_passed(&p, NULL) || p.kept_count != 2 || p.upload != -1) {
        return 2;
    }
    if (p.kept[0].fd != 3 || strcmp(p.kept[0].name, "profd-first-0-7-8") || strcmp(p.kept[1].name, "profd-second")) {
        return 3;
    }
    return fcntl(4, F_GETFD) & FD_CLOEXEC ? 0 : 4;
}

Test(conn_fds, memories_that_a_manager_kept_are_told_from_sockets)
{
    int state;
    pid_t child = fork();

    if (!child) {
        _exit(kept_are_taken());
    }
    cr_assert_eq(waitpid(child, &state, 0), child);
    cr_assert_eq(state, 0);
}
