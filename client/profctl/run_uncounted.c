#include "profctl/run_uncounted.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "lib/upload.h"
#include "profctl/profctl.h"
#include "profctl/run_judge.h"
#include "proto/collector.h"
#include "proto/uncounted.h"

#define END '.' /* from profctl itself: nothing follows */

/* Adds the program of this file, unless the collector is linked into it or its user may load the collector. */
static void program_take(struct run_uncounted *u, char kind, int file)
{
    char link[32], path[4096];
    (void)snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t n = readlink(link, path, sizeof path - 1);
    path[n > 0 ? n : 0] = '\0';
    const char *why = kind == UNCOUNTED_ROOT ? "it is started below another root directory, where the collector is not"
                                             : run_judge_program(link);
    if (!why && kind == UNCOUNTED_ENVIRONMENT) {
        why = "it is started without the variable LD_PRELOAD of profctl run (env -i?)";
    }
    if (!why) {
        return;
    }
    for (size_t i = 0; i < u->count; i++) {
        if (u->rows[i].why == why && strcmp(u->rows[i].path, path) == 0) {
            u->rows[i].times++;
            return;
        }
    }
    char *copy = u->count < RUN_UNCOUNTED_MAX ? strdup(path) : NULL;
    if (!copy) {
        u->others++;
        return;
    }
    u->rows[u->count].path = copy;
    u->rows[u->count].why = why;
    u->rows[u->count++].times = 1;
}

/* One message; its descriptors are closed. False: it was the last one. Messages of other users are passed over. */
static bool message_take(struct run_uncounted *u)
{
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(sizeof(int) * 8) + CMSG_SPACE(sizeof(struct ucred))];
    } control;
    struct ucred peer = {0, (uid_t)-1, 0};
    int files[8];
    size_t count = 0;
    char kind = 0;
    struct iovec text = {&kind, 1};
    struct msghdr message = {
        .msg_iov = &text, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    if (recvmsg(u->fd, &message, MSG_CMSG_CLOEXEC) < 0) {
        return true;
    }
    for (struct cmsghdr *c = CMSG_FIRSTHDR(&message); c; c = CMSG_NXTHDR(&message, c)) {
        if (c->cmsg_type == SCM_RIGHTS) {
            count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
            memcpy(files, CMSG_DATA(c), count * sizeof(int));
        } else if (c->cmsg_type == SCM_CREDENTIALS) {
            memcpy(&peer, CMSG_DATA(c), sizeof peer);
        }
    }
    const bool ours = peer.uid == geteuid() || peer.uid == 0;
    if (ours && count == 1 && kind != END) {
        program_take(u, kind, files[0]);
    }
    while (count > 0) {
        close(files[--count]);
    }
    return !(peer.pid == getpid() && kind == END);
}

static void *messages_take(void *context)
{
    while (message_take(context)) {
    }
    return NULL;
}

void run_uncounted_open(struct run_uncounted *u)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    unsigned char random[16];
    char text[2 * sizeof random + 1];
    const int on = 1;
    *u = (struct run_uncounted){.fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)};
    if (u->fd < 0 || getrandom(random, sizeof random, 0) != (ssize_t)sizeof random) {
        return;
    }
    for (size_t i = 0; i < sizeof random; i++) {
        (void)snprintf(text + 2 * i, 3, "%02x", random[i]);
    }
    memcpy(name.sun_path + 1, text, sizeof text);
    sigset_t all, before;
    sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before); /* signals are for the thread that waits for the command */
    if (setsockopt(u->fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof on) != 0 ||
        bind(u->fd, (struct sockaddr *)&name, (socklen_t)(sizeof(sa_family_t) + sizeof text)) != 0 ||
        setenv("PROFD_RUN", text, 1) != 0 || pthread_create(&u->thread, NULL, messages_take, u) != 0) {
        close(u->fd);
        u->fd = -1;
    }
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
}

size_t run_uncounted_finish(struct run_uncounted *u)
{
    struct sockaddr_un name;
    socklen_t size = sizeof name;
    const char end = END;
    size_t all = u->others;
    if (u->fd < 0 || getsockname(u->fd, (struct sockaddr *)&name, &size) != 0 ||
        sendto(u->fd, &end, 1, 0, (struct sockaddr *)&name, size) != 1) {
        return 0;
    }
    (void)pthread_join(u->thread, NULL);
    close(u->fd);
    for (size_t i = 0; i < u->count; i++) {
        all += u->rows[i].times;
    }
    if (all > 0) {
        profctl_complain("run: at least %zu program%s not counted; what %s started is not known", all,
                         all == 1 ? " was" : "s were", all == 1 ? "it" : "they");
    }
    for (size_t i = 0; i < u->count; i++) {
        const size_t times = u->rows[i].times;
        char repeated[32] = "";
        (void)(times > 1 && snprintf(repeated, sizeof repeated, " (%zu times)", times));
        profctl_complain("run: not counted: %s%s: %s", u->rows[i].path, repeated, u->rows[i].why);
        free(u->rows[i].path);
    }
    if (u->others) {
        profctl_complain("run: not counted: %zu others", u->others);
    }
    return all;
}

/* The labels that the collector reads in the environment, and the host's name as it states it. */
static enum profd_status labels_add(struct profd_upload *u, struct profd_error *e)
{
    static const char prefix[] = "PROFD_LABEL_";
    char name[256];
    struct utsname machine;
    for (char **v = environ; *v; v++) {
        const char *rest = strncmp(*v, prefix, sizeof prefix - 1) == 0 ? *v + sizeof prefix - 1 : NULL;
        const char *equals = rest ? strchr(rest, '=') : NULL;
        if (equals && (size_t)(equals - rest) < sizeof name) {
            (void)snprintf(name, sizeof name, "%.*s", (int)(equals - rest), rest);
            TRY(profd_upload_add_label(u, name, equals + 1, e));
        }
    }
    return profd_upload_has_label(u, "host") || uname(&machine) != 0
               ? PROFD_OK
               : profd_upload_add_label(u, "host", machine.nodename, e);
}

/* The counter alone, of a process that is not counted again. */
static enum profd_status upload_fill(struct profd_upload *u, size_t programs, const char *path, struct profd_error *e)
{
    char build[160];
    uint32_t bin = COLLECTOR_NOT_COUNTED;
    uint64_t ticks = programs;
    struct counts_histogram h;
    struct timespec now;
    collector_make_histogram(&h, 0);
    h.used = 1;
    const struct counts counts = {
        .histograms = &h, .histogram_count = 1, .bin_index = &bin, .bin_ticks = &ticks, .bin_count = 1};
    clock_gettime(CLOCK_REALTIME, &now);
    const uint64_t end = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
    profd_upload_set_window(u, end, end);
    profd_upload_set_processes_started(u, 0);
    TRY(profd_executable_read_id(path, build, sizeof build, e));
    TRY(profd_upload_add_build(u, build, path, NULL, e));
    TRY(labels_add(u, e));
    return upload_add_counts(u, &counts, e);
}

void run_uncounted_send(size_t programs, const char *path, struct profd_conn *conn)
{
    struct profd_error e = {""};
    struct profd_upload *u = NULL;
    struct profd_id id;
    enum profd_status status = profd_upload_new(&u, &e);
    if (!status) {
        status = upload_fill(u, programs, path, &e);
    }
    if (!status) {
        status = profd_id_make(&id, &e);
    }
    if (!status) {
        id.sequence++;
        status = profd_conn_upload(conn, u, &id, &e);
    }
    if (status) {
        profctl_complain("run: the number of programs that were not counted is not stored: %s", e.sentence);
    }
    profd_upload_free(u);
}
