/* Descriptors that clients sent are closed on other threads, counted by sender; one slow close delays nobody else. */
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/closer.h"

/* A pipe's reading end whose writing end went to the closer: its end of file says that it was closed. */
static int give(struct closer *c, uint32_t uid)
{
    int ends[2];
    cr_assert_eq(pipe2(ends, O_CLOEXEC), 0);
    closer_close(c, uid, ends[1]);
    return ends[0];
}

static void assert_closed(int end)
{
    struct pollfd p = {.fd = end, .events = POLLIN};
    char byte;
    cr_assert_eq(poll(&p, 1, 60000), 1, "the other end was not closed");
    cr_assert_eq(read(end, &byte, 1), 0);
    close(end);
}

/* The count follows the close by a moment. */
static void assert_count(struct closer *c, uint32_t uid, size_t wanted)
{
    for (int i = 0; i < 60000 && closer_count(c, uid) != wanted; i++) {
        usleep(1000);
    }
    cr_assert_eq(closer_count(c, uid), wanted);
}

Test(net_closer, descriptors_are_closed_and_counted_by_sender)
{
    struct closer *c;
    int ends[200];
    cr_assert_eq(closer_new(4, &c, NULL), PROFD_OK);
    for (int i = 0; i < 200; i++) {
        ends[i] = give(c, i % 2 ? 1000u : 65534u);
    }
    for (int i = 0; i < 200; i++) {
        assert_closed(ends[i]);
    }
    assert_count(c, 1000, 0);
    assert_count(c, 65534, 0);
    cr_assert_eq(closer_count(c, 7), 0);
    closer_free(c);
}

Test(net_closer, without_threads_nothing_is_closed_and_nobody_waits)
{
    struct closer *c;
    int end;
    struct pollfd p = {.events = POLLIN};
    cr_assert_eq(closer_new(0, &c, NULL), PROFD_OK);
    end = give(c, 5);
    p.fd = end;
    cr_assert_eq(poll(&p, 1, 0), 0);
    cr_assert_eq(closer_count(c, 5), 1);
    cr_assert_eq(closer_count(c, 6), 0);
    closer_free(c);
    close(end);
}

Test(net_closer, without_a_closer_it_happens_at_once)
{
    assert_closed(give(NULL, 1));
    cr_assert_eq(closer_count(NULL, 1), 0);
    closer_free(NULL);
}

/* A loopback socket whose close() waits: it has unsent data that its peer never reads. *peer keeps it so. */
static int lingering(int *peer)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof at;
    const struct linger wait = {.l_onoff = 1, .l_linger = 3600};
    const int few = 4096;
    static char block[65536];
    int listener = socket(AF_INET, SOCK_STREAM, 0), fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    setsockopt(listener, SOL_SOCKET, SO_RCVBUF, &few, sizeof few);
    cr_assert(bind(listener, (void *)&at, size) == 0 && listen(listener, 1) == 0 &&
              getsockname(listener, (void *)&at, &size) == 0);
    cr_assert(connect(fd, (void *)&at, size) == 0 || errno == EINPROGRESS);
    *peer = accept(listener, NULL, NULL);
    close(listener);
    while (send(fd, block, sizeof block, MSG_NOSIGNAL) > 0) {
    }
    cr_assert_eq(setsockopt(fd, SOL_SOCKET, SO_LINGER, &wait, sizeof wait), 0);
    return fd;
}

Test(net_closer, one_sender_does_not_occupy_all_threads)
{
    struct closer *c;
    int peers[CLOSER_RUNNING_PER_UID + 4];
    cr_assert_eq(closer_new(CLOSER_RUNNING_PER_UID + 1, &c, NULL), PROFD_OK);
    for (unsigned i = 0; i < CLOSER_RUNNING_PER_UID + 4; i++) {
        closer_close(c, 7, lingering(&peers[i]));
    }
    assert_closed(give(c, 8)); /* the thread that is left */
    assert_closed(give(c, 8));
    cr_assert_eq(closer_count(c, 7), CLOSER_RUNNING_PER_UID + 4);
    for (unsigned i = 0; i < CLOSER_RUNNING_PER_UID + 4; i++) {
        close(peers[i]); /* with unread data: the connection is reset, and close() returns */
    }
    assert_count(c, 7, 0);
    closer_free(c);
}

static void send_descriptor(int to, int fd)
{
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control = {.bytes = {0}};
    char byte = 'x';
    struct iovec io = {.iov_base = &byte, .iov_len = 1};
    struct msghdr m = {.msg_iov = &io, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof control};
    struct cmsghdr *h = CMSG_FIRSTHDR(&m);
    *h = (struct cmsghdr){.cmsg_len = CMSG_LEN(sizeof fd), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
    memcpy(CMSG_DATA(h), &fd, sizeof fd);
    cr_assert_eq(sendmsg(to, &m, 0), 1);
    close(fd);
}

Test(net_closer, descriptors_that_nobody_read_are_closed_with_their_connection)
{
    struct closer *c;
    int pair[2], peers[2];
    char byte;
    cr_assert_eq(closer_new(4, &c, NULL), PROFD_OK);
    cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    send_descriptor(pair[0], lingering(&peers[0]));
    cr_assert_eq(closer_receive(c, 7, pair[1], &byte, 1), 1);
    cr_assert_eq(closer_count(c, 7), 1, "what came with bytes is a thread's");
    send_descriptor(pair[0], lingering(&peers[1]));
    closer_close_connection(c, 7, pair[1]);
    cr_assert_eq(closer_count(c, 7), 2, "and so is a connection with unread bytes");
    cr_assert_eq(send(pair[0], "x", 1, MSG_NOSIGNAL), -1);
    close(peers[0]);
    close(peers[1]);
    assert_count(c, 7, 0);
    cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    closer_close_connection(c, 7, pair[1]);
    cr_assert_eq(closer_count(c, 7), 0, "an empty one is closed at once");
    closer_free(c);
}
