/* Listening sockets: modes, the living and the dead, the too long, the passed in; and running out of descriptors. */
#include <criterion/criterion.h>
#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <grp.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "net/listen.h"
#include "net/loop.h"
#include "net/peer.h"

static char directory[] = "/tmp/profd-listen-XXXXXX";
static char path[64];

static void make_directory(void)
{
    cr_assert_not_null(mkdtemp(directory));
    snprintf(path, sizeof path, "%s/s", directory);
}

static void remove_directory(void)
{
    unlink(path);
    rmdir(directory);
}

static int dial(const char *where)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);

    strncpy(a.sun_path, where, sizeof a.sun_path - 1);
    if (connect(fd, (struct sockaddr *)&a, sizeof a)) {
        close(fd);
        return -1;
    }
    return fd;
}

TestSuite(listen, .init = make_directory, .fini = remove_directory);

Test(listen, mode_and_group_are_set)
{
    struct profd_error e;
    struct stat st;
    int fd, client;

    umask(0077);
    cr_assert_eq(listen_open_unix(path, 0666, LISTEN_NO_GROUP, &fd, &e), PROFD_OK, "%s", e.sentence);
    cr_assert_eq(stat(path, &st), 0);
    cr_assert_eq(st.st_mode & 07777, 0666);
    cr_assert_eq(umask(0077), 0077);
    client = dial(path);
    cr_assert(client >= 0);
    close(client);
    listen_remove_unix(path, fd);
    cr_assert_neq(stat(path, &st), 0);
    close(fd);
    cr_assert_eq(listen_open_unix(path, 0660, (uint32_t)getegid(), &fd, &e), PROFD_OK, "%s", e.sentence);
    cr_assert_eq(stat(path, &st), 0);
    cr_assert_eq(st.st_mode & 07777, 0660);
    cr_assert_eq(st.st_gid, getegid());
    close(fd);
}

Test(listen, a_living_socket_is_left_alone)
{
    struct profd_error e;
    int fd, second = -7, client;

    cr_assert_eq(listen_open_unix(path, 0666, LISTEN_NO_GROUP, &fd, &e), PROFD_OK);
    cr_assert_eq(listen_open_unix(path, 0666, LISTEN_NO_GROUP, &second, &e), PROFD_BUSY);
    cr_assert_not_null(strstr(e.sentence, path), "%s", e.sentence);
    cr_assert_eq(second, -7);
    cr_assert_eq(profd_status_exit(PROFD_BUSY), 75);
    client = dial(path);
    cr_assert(client >= 0, "the first still answers");
    close(client);
    close(fd);
}

Test(listen, a_dead_socket_is_replaced_and_other_files_are_not)
{
    struct profd_error e;
    int fd, file;

    cr_assert_eq(listen_open_unix(path, 0666, LISTEN_NO_GROUP, &fd, &e), PROFD_OK);
    close(fd); /* as after kill -9 */
    cr_assert_eq(dial(path), -1);
    cr_assert_eq(listen_open_unix(path, 0666, LISTEN_NO_GROUP, &fd, &e), PROFD_OK, "%s", e.sentence);
    close(fd);
    unlink(path);
    file = open(path, O_CREAT | O_WRONLY, 0600);
    cr_assert_eq(write(file, "precious", 8), 8);
    close(file);
    cr_assert_eq(listen_open_unix(path, 0666, LISTEN_NO_GROUP, &fd, &e), PROFD_CANT_CREATE);
    cr_assert_not_null(strstr(e.sentence, "not a socket"), "%s", e.sentence);
    cr_assert_eq(access(path, F_OK), 0);
}

Test(listen, somebody_elses_socket_is_not_removed)
{
    struct profd_error e;
    int first, second;

    cr_assert_eq(listen_open_unix(path, 0666, LISTEN_NO_GROUP, &first, &e), PROFD_OK);
    unlink(path);
    cr_assert_eq(listen_open_unix(path, 0666, LISTEN_NO_GROUP, &second, &e), PROFD_OK);
    listen_remove_unix(path, first);
    cr_assert_eq(access(path, F_OK), 0);
    close(first);
    close(second);
}

Test(listen, the_longest_path_is_107_bytes)
{
    char longest[200];
    struct profd_error e;
    int fd;

    memset(longest, 'x', sizeof longest);
    memcpy(longest, directory, strlen(directory));
    longest[strlen(directory)] = '/';
    longest[107] = 0;
    cr_assert_eq(listen_open_unix(longest, 0666, LISTEN_NO_GROUP, &fd, &e), PROFD_OK, "%s", e.sentence);
    close(fd);
    unlink(longest);
    longest[107] = 'x';
    longest[108] = 0;
    cr_assert_eq(listen_open_unix(longest, 0666, LISTEN_NO_GROUP, &fd, &e), PROFD_CONFIG);
    cr_assert_not_null(strstr(e.sentence, "107"), "%s", e.sentence);
    cr_assert_not_null(strstr(e.sentence, "108"), "%s", e.sentence);
    cr_assert_eq(listen_open_unix("", 0666, LISTEN_NO_GROUP, &fd, &e), PROFD_CONFIG);
    cr_assert_eq(listen_open_unix("/nonexistent/x/y", 0666, LISTEN_NO_GROUP, &fd, &e), PROFD_CANT_CREATE);
}

Test(listen, tcp_is_loopback_only)
{
    static const char *const bad[] = {
        "0.0.0.0:1",    "192.168.1.1:80",  "[::]:80",          "example.org:80", ":80",         "127.0.0.1",
        "127.0.0.1:",   "127.0.0.1:65536", "127.0.0.1:-1",     "127.0.0.1:8o",   "127.1:80",    "126.0.0.1:80",
        "128.0.0.1:80", "::1:80",          "127.0.0.1:000001", " 127.0.0.1:1",   "127.0.0.1 :1"};
    static const char *const good[] = {"127.0.0.1:0", "localhost:0", "127.255.0.3:0"};
    struct profd_error e;
    uint16_t port;
    int fd = -1;

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        cr_assert_eq(listen_open_tcp(bad[i], &fd, &port, &e), PROFD_CONFIG, "%s", bad[i]);
        cr_assert_not_null(strstr(e.sentence, bad[i]), "%s", e.sentence);
    }
    cr_assert_eq(fd, -1);
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        port = 0;
        cr_assert_eq(listen_open_tcp(good[i], &fd, &port, &e), PROFD_OK, "%s", e.sentence);
        cr_assert_neq(port, 0);
        close(fd);
    }
}

static void pass(const char *count, const char *names)
{
    char pid[24];

    snprintf(pid, sizeof pid, "%ld", (long)getpid());
    setenv("LISTEN_PID", pid, 1);
    setenv("LISTEN_FDS", count, 1);
    if (names) {
        setenv("LISTEN_FDNAMES", names, 1);
    } else {
        unsetenv("LISTEN_FDNAMES");
    }
}

/* Descriptors from 3 on are the protocol, and the test framework's, too: hence a child, which exits with the line of
 * the check that failed. */
#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "line %d: %s: %s\n", __LINE__, #condition, e.sentence);                                    \
            _exit(1);                                                                                                  \
        }                                                                                                              \
    } while (0)

static int child_status(pid_t child)
{
    int status = -1;

    cr_assert_eq(waitpid(child, &status, 0), child);
    return status;
}

static void judge_passed_sockets(void)
{
    struct listen_passed p;
    struct profd_error e = {""};
    uint16_t port;
    int unix_fd, tcp_fd;

    CHECK(!listen_open_unix(path, 0666, LISTEN_NO_GROUP, &unix_fd, &e));
    CHECK(!listen_open_tcp("127.0.0.1:0", &tcp_fd, &port, &e));
    unix_fd = fcntl(unix_fd, F_DUPFD, 100);
    tcp_fd = fcntl(tcp_fd, F_DUPFD, 100);
    CHECK(dup2(unix_fd, 3) == 3 && dup2(unix_fd, 4) == 4 && dup2(tcp_fd, 5) == 5);
    pass("3", "upload:http:http-tcp");
    CHECK(!listen_take_passed(&p, &e));
    CHECK(p.upload == 3 && p.http == 4 && p.http_tcp == 5 && p.http_port == port);
    CHECK(fcntl(3, F_GETFD) & FD_CLOEXEC);
    CHECK(fcntl(3, F_GETFL) & O_NONBLOCK);
    CHECK(!getenv("LISTEN_FDS"));
    pass("1", NULL);
    CHECK(!listen_take_passed(&p, &e));
    CHECK(p.upload == 3 && p.http == -1 && p.http_tcp == -1);
    pass("1", "admin");
    CHECK(listen_take_passed(&p, &e) == PROFD_CONFIG && strstr(e.sentence, "admin"));
    pass("2", "upload:upload");
    CHECK(listen_take_passed(&p, &e) == PROFD_CONFIG);
    pass("3", "upload:http-tcp:http");
    CHECK(listen_take_passed(&p, &e) == PROFD_CONFIG);
    pass("seven", "upload");
    CHECK(listen_take_passed(&p, &e) == PROFD_CONFIG && strstr(e.sentence, "seven"));
    pass("1", "upload");
    setenv("LISTEN_PID", "1", 1);
    CHECK(!listen_take_passed(&p, &e) && p.upload == -1);
    CHECK(dup2(open("/dev/null", O_RDONLY), 3) == 3);
    pass("1", "upload");
    CHECK(listen_take_passed(&p, &e) == PROFD_CONFIG && strstr(e.sentence, "not a listening"));
}

Test(listen, passed_sockets_are_judged)
{
    pid_t child = fork();

    if (!child) {
        judge_passed_sockets();
        _exit(0);
    }
    cr_assert_eq(child_status(child), 0);
}

static struct {
    struct loop *loop;
    int accepted, exhausted, fds[16];
} bed;

static void on_accepted(void *context, int fd)
{
    (void)context;
    bed.fds[bed.accepted++] = fd;
    loop_stop(bed.loop);
}

static void on_exhausted(void *context, const char *why)
{
    (void)context;
    (void)why;
    bed.exhausted++;
    loop_stop(bed.loop);
}

Test(listen, without_descriptors_callers_are_refused_and_later_served)
{
    struct listener_config config = {.refusal = "busy", .refusal_size = 4, .pause_ms = 20};
    struct rlimit few, before;
    struct listener *l;
    struct profd_error e;
    char text[8] = "";
    int first, second, highest;

    cr_assert_eq(loop_new(&bed.loop, NULL), PROFD_OK);
    cr_assert_eq(listen_open_unix(path, 0666, LISTEN_NO_GROUP, &config.fd, &e), PROFD_OK);
    config.accepted = on_accepted;
    config.exhausted = on_exhausted;
    l = listener_new(loop_get_base(bed.loop), &config);
    cr_assert_not_null(l);
    first = dial(path);
    second = dial(path);
    cr_assert(first >= 0 && second >= 0);
    /* No number below the limit is free any more. */
    highest = dup(first);
    close(highest);
    getrlimit(RLIMIT_NOFILE, &before);
    few = before;
    few.rlim_cur = (rlim_t)highest;
    cr_assert_eq(setrlimit(RLIMIT_NOFILE, &few), 0);
    loop_run(bed.loop);
    cr_assert_eq(bed.exhausted, 1);
    cr_assert_eq(bed.accepted, 0);
    cr_assert_eq(read(first, text, sizeof text), 4);
    cr_assert_str_eq(text, "busy");
    cr_assert_eq(read(first, text, sizeof text), 0);
    cr_assert_eq(setrlimit(RLIMIT_NOFILE, &before), 0);
    loop_run(bed.loop);
    cr_assert_eq(bed.accepted, 1, "the second caller is served after the pause");
    listener_free(l);
    loop_free(bed.loop);
}

Test(peer, the_kernel_says_who)
{
    struct peer_policy policy = {.own_uid = (uint32_t)getuid()};
    struct profd_error e;
    struct peer peer;
    int pair[2];

    cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    cr_assert_eq(peer_read(pair[0], &policy, &peer, &e), PROFD_OK, "%s", e.sentence);
    cr_assert_eq(peer.uid, getuid());
    cr_assert_eq(peer.gid, getgid());
    cr_assert_eq(peer.pid, (uint32_t)getpid());
    cr_assert(peer.may_read_all);
    close(pair[0]);
    cr_assert_eq(peer_read(pair[0], &policy, &peer, &e), PROFD_IO);
}

Test(peer, groups_by_number_or_name)
{
    struct profd_error e;
    uint32_t gid = 5;

    cr_assert_eq(peer_find_group("4711", &gid, &e), PROFD_OK);
    cr_assert_eq(gid, 4711);
    cr_assert_eq(peer_find_group("root", &gid, &e), PROFD_OK);
    cr_assert_eq(gid, 0);
    cr_assert_eq(peer_find_group("no-such-group-here", &gid, &e), PROFD_NOT_FOUND);
    cr_assert_not_null(strstr(e.sentence, "no-such-group-here"));
    cr_assert_eq(peer_find_group("4294967295", &gid, &e), PROFD_NOT_FOUND);
    cr_assert_eq(peer_find_group("12x", &gid, &e), PROFD_NOT_FOUND);
    cr_assert_eq(peer_find_group("", &gid, &e), PROFD_NOT_FOUND);
    cr_assert_eq(gid, 0);
}

/* Needs root to become somebody else, in a child. */
Test(peer, supplementary_groups_count)
{
    struct peer_policy policy = {.own_uid = 0, .has_read_group = true, .read_group = 7654};
    gid_t groups[100];
    int fd;
    struct profd_error e;
    struct peer peer;

    if (getuid()) {
        cr_skip_test("needs root");
    }
    make_directory();
    cr_assert_eq(listen_open_unix(path, 0666, LISTEN_NO_GROUP, &fd, &e), PROFD_OK);
    chmod(directory, 0755);
    for (int round = 0; round < 2; round++) {
        pid_t child;
        int got;

        for (int i = 0; i < 100; i++) {
            groups[i] = (gid_t)(8000 + i);
        }
        groups[99] = round ? 7654 : 7655;
        child = fork();
        if (!child) {
            if (setgroups(100, groups) || setgid(12345) || setuid(12345)) {
                _exit(9);
            }
            _exit(dial(path) >= 0 ? 0 : 8);
        }
        do {
            got = accept(fd, NULL, NULL);
        } while (got < 0 && errno == EAGAIN && !usleep(1000));
        cr_assert_eq(peer_read(got, &policy, &peer, &e), PROFD_OK);
        cr_assert_eq(peer.uid, 12345);
        cr_assert_eq(peer.may_read_all, round == 1);
        cr_assert_eq(child_status(child), 0);
        close(got);
    }
    close(fd);
    remove_directory();
}
