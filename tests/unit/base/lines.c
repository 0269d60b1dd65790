/* Log lines, and notifications to the service manager. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/log.h"
#include "base/notify.h"

/* What log_write puts on stderr. */
static void capture(char *out, size_t size, void (*f)(void))
{
    int before = dup(STDERR_FILENO), pipe_fds[2];
    ssize_t n;

    cr_assert_eq(pipe(pipe_fds), 0);
    dup2(pipe_fds[1], STDERR_FILENO);
    f();
    dup2(before, STDERR_FILENO);
    close(pipe_fds[1]);
    n = read(pipe_fds[0], out, size - 1);
    out[n > 0 ? n : 0] = 0;
    close(pipe_fds[0]);
    close(before);
}

static void write_control_bytes(void)
{
    log_open(LOG_LEVEL_INFO);
    log_write(LOG_LEVEL_ERROR, NULL, "%s", "a\nb\x1b[31m\x7f\xc3\xa4");
    log_write(LOG_LEVEL_DEBUG, NULL, "not shown");
}

Test(log, control_bytes_are_escaped_and_levels_respected)
{
    char out[500];

    capture(out, sizeof out, write_control_bytes);
    cr_assert_str_eq(out, "profd: error: a\\x0ab\\x1b[31m\\x7f\xc3\xa4\n");
}

static void write_flood(void)
{
    log_open(LOG_LEVEL_INFO);
    for (int i = 0; i < 1000; i++) {
        log_write(LOG_LEVEL_INFO, "flood", "line %d", i);
    }
    log_write(LOG_LEVEL_INFO, "other", "still heard");
}

Test(log, a_flood_is_twenty_lines)
{
    char out[5000];
    int lines = 0;

    capture(out, sizeof out, write_flood);
    for (const char *p = out; (p = strchr(p, '\n')); p++) {
        lines++;
    }
    cr_assert_eq(lines, 21);
    cr_assert_not_null(strstr(out, "still heard"));
    cr_assert_eq(log_suppressed(), 980);
}

static void write_priority(void)
{
    char stream[64];
    struct stat st;

    fstat(STDERR_FILENO, &st);
    snprintf(stream, sizeof stream, "%ju:%ju", (uintmax_t)st.st_dev, (uintmax_t)st.st_ino);
    setenv("JOURNAL_STREAM", stream, 1);
    log_open(LOG_LEVEL_INFO);
    log_write(LOG_LEVEL_WARNING, NULL, "hot");
    setenv("JOURNAL_STREAM", "1:1", 1);
    log_open(LOG_LEVEL_INFO);
    log_write(LOG_LEVEL_WARNING, NULL, "cold");
}

Test(log, the_journal_gets_priorities)
{
    char out[500];

    capture(out, sizeof out, write_priority);
    cr_assert_str_eq(out, "<4>hot\nprofd: warning: cold\n");
}

Test(notify, datagrams_reach_the_manager)
{
    char path[64], text[64] = "";
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_DGRAM, 0), memory, came;
    char control[CMSG_SPACE(sizeof(int))];
    struct iovec part = {text, sizeof text};
    struct msghdr m = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    struct stat one, other;

    snprintf(path, sizeof path, "@profd-notify-%d", (int)getpid());
    memcpy(a.sun_path + 1, path + 1, strlen(path) - 1);
    cr_assert_eq(bind(fd, (struct sockaddr *)&a, (socklen_t)(sizeof a.sun_family + strlen(path))), 0);
    setenv("NOTIFY_SOCKET", path, 1);
    setenv("WATCHDOG_USEC", "30000000", 1);
    cr_assert(notify_open());
    cr_assert_null(getenv("NOTIFY_SOCKET"), "children must not inherit it");
    cr_assert_eq(notify_watchdog_ms(), 15000);
    notify_send("READY=1");
    cr_assert_eq(recv(fd, text, sizeof text, MSG_DONTWAIT), 7);
    cr_assert_str_eq(text, "READY=1");
    memory = memfd_create("kept", MFD_CLOEXEC);
    cr_assert(notify_send_fd("FDSTORE=1", memory));
    cr_assert_eq(recvmsg(fd, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC), 9);
    cr_assert(CMSG_FIRSTHDR(&m) && CMSG_FIRSTHDR(&m)->cmsg_type == SCM_RIGHTS);
    memcpy(&came, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof came);
    cr_assert(!fstat(memory, &one) && !fstat(came, &other) && one.st_ino == other.st_ino);
    for (unsigned sent = 0; notify_send_fd("FDSTOREREMOVE=1", -1); sent++) {
        cr_assert(sent < 100000, "a manager that does not listen is noticed");
    }
    close(came), close(memory);
    close(fd);
}
