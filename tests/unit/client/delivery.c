/* Deliveries against a peer that is busy, silent, gone, or somebody else. It is a child process that speaks the real
 * codec. */
#include <criterion/criterion.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "profd.h"
#include "proto/frame.h"
#include "proto/message.h"

#define LONG_MS 60000u /* a bound for what hangs, never reached by what is slow */

static char directory[] = "/tmp/client_del_XXXXXX";
static char address[64], spool_path[64];

static void begin(void)
{
    cr_assert_not_null(mkdtemp(directory));
    snprintf(address, sizeof address, "%s/sock", directory);
    snprintf(spool_path, sizeof spool_path, "%s/spool", directory);
    setenv("PROFD_SPOOL", spool_path, 1);
}

static void end(void)
{
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", directory);
    cr_assert_eq(system(command), 0);
}

TestSuite(client_delivery, .init = begin, .fini = end);

/* What the peer does with the n-th upload (from 0) of the n-th connection. */
enum act { ACK, NACK_BUSY, NACK_WRONG, SILENCE, HANG_UP };
typedef enum act (*script)(int connection, int upload);

static void say(int fd, const struct message *m, uint32_t tag)
{
    uint8_t *frame;
    size_t size;
    if (message_encode(m, 0, tag, &frame, &size, NULL) != PROFD_OK || write(fd, frame, size) != (ssize_t)size) {
        _exit(3);
    }
    free(frame);
}

static bool hear(int fd, struct frame_header *f, struct message *m)
{
    uint8_t header[FRAME_HEADER_SIZE];
    if (recv(fd, header, sizeof header, MSG_WAITALL) != sizeof header || frame_decode(header, f, NULL) != PROFD_OK) {
        return false;
    }
    uint8_t *payload = malloc(f->length + 1);
    bool good = (f->length == 0 || recv(fd, payload, f->length, MSG_WAITALL) == (ssize_t)f->length) &&
                message_decode(f->type, payload, f->length, m, NULL) == PROFD_OK;
    free(payload);
    return good;
}

static void serve(int fd, int connection, script acts)
{
    struct frame_header f;
    struct message m, answer = {.type = FRAME_WELCOME};
    int uploads = 0;
    answer.as.welcome = (struct message_welcome){1, 1 << 20, 8, "peer", 1, 0, false};
    while (hear(fd, &f, &m)) {
        if (f.type == FRAME_HELLO) {
            say(fd, &answer, f.tag);
        } else if (f.type == FRAME_UPLOAD) {
            enum act act = acts(connection, uploads++);
            struct message a = {.type = act == ACK ? FRAME_ACK : FRAME_NACK};
            if (act == NACK_BUSY || act == NACK_WRONG) {
                a.as.nack = (struct message_nack){act == NACK_BUSY ? PROFD_BUSY : PROFD_WRONG_BUILD, act == NACK_BUSY,
                                                  10, "the peer says no"};
            }
            if (act == HANG_UP) {
                message_done(&m);
                return;
            }
            if (act != SILENCE) {
                say(fd, &a, f.tag);
            }
        }
        message_done(&m);
    }
}

static pid_t peer(script acts, int connections)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    memcpy(a.sun_path, address, sizeof address);
    unlink(address);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    cr_assert_eq(bind(fd, (struct sockaddr *)&a, sizeof a), 0);
    cr_assert_eq(listen(fd, 8), 0);
    pid_t pid = fork();
    if (pid == 0) {
        for (int i = 0; i < connections; i++) {
            int c = accept(fd, NULL, NULL);
            serve(c, i, acts);
            close(c);
        }
        _exit(0);
    }
    close(fd);
    return pid;
}

struct seen {
    size_t stored, spooled, refused, earlier, first_refusal;
    char sentence[512];
};

static void see(void *context, const struct profd_outcome *o)
{
    struct seen *s = context;
    s->earlier += o->earlier;
    if (o->status != PROFD_OK) {
        s->refused++;
        s->first_refusal = s->first_refusal ? s->first_refusal : (size_t)o->status;
    } else if (o->spooled) {
        s->spooled++;
    } else {
        s->stored++;
    }
    snprintf(s->sentence, sizeof s->sentence, "%s", o->sentence);
}

static struct seen deliver_within(int uploads, uint32_t connect_ms, uint32_t answer_ms)
{
    struct profd_options o = {.server = address, .connect_ms = connect_ms, .answer_ms = answer_ms};
    struct seen s = {.stored = 0};
    struct profd_delivery *d;
    struct profd_error e = {""};
    struct profd_upload *u;
    cr_assert_eq(profd_delivery_open(&o, see, &s, &d, &e), PROFD_OK, "%s", e.sentence);
    cr_assert_eq(profd_upload_new(&u, NULL), PROFD_OK);
    cr_assert_eq(profd_upload_add_build(u, "abcd", "/bin/x", NULL, NULL), PROFD_OK);
    for (int i = 0; i < uploads; i++) {
        cr_assert_eq(profd_delivery_upload(d, u, "file", NULL), PROFD_OK);
    }
    cr_assert_eq(profd_delivery_finish(d, NULL), PROFD_OK);
    profd_delivery_close(d);
    profd_upload_free(u);
    return s;
}

static struct seen deliver(int uploads)
{
    return deliver_within(uploads, LONG_MS, LONG_MS);
}

static void count_entry(void *context, const struct profd_spool_entry *entry)
{
    cr_assert_gt(entry->size, 12);
    ++*(size_t *)context;
}

static size_t spooled(void)
{
    size_t n = 0;
    cr_assert_eq(profd_spool_list(count_entry, &n, NULL), PROFD_OK);
    return n;
}

static void reap(pid_t pid, bool kill_it)
{
    int status;
    if (kill_it) {
        kill(pid, SIGKILL);
    }
    cr_assert_eq(waitpid(pid, &status, 0), pid);
    cr_assert(kill_it || (WIFEXITED(status) && WEXITSTATUS(status) == 0));
}

static enum act always_ack(int connection, int upload)
{
    (void)connection, (void)upload;
    return ACK;
}

Test(client_delivery, nobody_there_then_somebody)
{
    struct seen s = deliver(5);
    cr_assert(s.spooled == 5 && s.stored == 0 && s.refused == 0);
    cr_assert(strstr(s.sentence, address), "%s", s.sentence);
    cr_assert_eq(spooled(), 5);
    pid_t pid = peer(always_ack, 1);
    s = deliver(2);
    cr_assert_eq(s.stored, 7);
    cr_assert_eq(s.earlier, 5);
    cr_assert_eq(spooled(), 0);
    reap(pid, false);
}

Test(client_delivery, hundreds_through_a_window_of_eight)
{
    pid_t pid = peer(always_ack, 1);
    struct seen s = deliver(500);
    cr_assert_eq(s.stored, 500);
    reap(pid, false);
}

static enum act busy_twice(int connection, int upload)
{
    (void)connection;
    return upload < 2 ? NACK_BUSY : ACK;
}

Test(client_delivery, busy_is_tried_again)
{
    pid_t pid = peer(busy_twice, 1);
    struct seen s = deliver(1);
    cr_assert(s.stored == 1 && s.spooled == 0);
    cr_assert_eq(spooled(), 0);
    reap(pid, false);
}

static enum act always_busy(int connection, int upload)
{
    (void)connection, (void)upload;
    return NACK_BUSY;
}

Test(client_delivery, busy_for_ever_is_spooled_and_stays_there)
{
    pid_t pid = peer(always_busy, 2);
    struct seen s = deliver(2);
    cr_assert_eq(s.spooled, 2);
    cr_assert(strstr(s.sentence, "the peer says no"));
    cr_assert_eq(spooled(), 2);
    s = deliver(0);
    cr_assert(s.spooled == 2 && s.earlier == 2);
    cr_assert_eq(spooled(), 2);
    reap(pid, false);
}

static enum act second_is_wrong(int connection, int upload)
{
    (void)connection;
    return upload == 1 ? NACK_WRONG : ACK;
}

Test(client_delivery, a_refusal_is_told_and_the_others_arrive)
{
    pid_t pid = peer(second_is_wrong, 1);
    struct seen s = deliver(3);
    cr_assert(s.stored == 2 && s.refused == 1 && s.first_refusal == PROFD_WRONG_BUILD);
    cr_assert_eq(spooled(), 0);
    reap(pid, false);
}

Test(client_delivery, a_refused_one_leaves_the_spool)
{
    deliver(3);
    cr_assert_eq(spooled(), 3);
    pid_t pid = peer(second_is_wrong, 1);
    struct seen s = deliver(0);
    cr_assert(s.stored == 2 && s.refused == 1 && s.earlier == 3);
    cr_assert_eq(spooled(), 0);
    reap(pid, false);
}

static enum act first_only(int connection, int upload)
{
    (void)connection;
    return upload == 0 ? ACK : HANG_UP;
}

Test(client_delivery, hung_up_on_in_the_middle)
{
    pid_t pid = peer(first_only, 1);
    struct seen s = deliver(6);
    cr_assert_eq(s.stored, 1);
    cr_assert_eq(s.spooled, 5);
    cr_assert_eq(spooled(), 5);
    reap(pid, false);
}

static enum act silent(int connection, int upload)
{
    (void)connection, (void)upload;
    return SILENCE;
}

Test(client_delivery, silence_is_no_ack)
{
    pid_t pid = peer(silent, 1);
    struct seen s = deliver_within(2, LONG_MS, 300);
    cr_assert_eq(s.spooled, 2);
    cr_assert(strstr(s.sentence, "300 ms"), "%s", s.sentence);
    cr_assert_eq(spooled(), 2);
    reap(pid, true);
}

Test(client_delivery, a_stopped_daemon_costs_the_budget_only)
{
    pid_t pid = peer(always_ack, 1);
    int state;
    kill(pid, SIGSTOP);
    cr_assert(waitpid(pid, &state, WUNTRACED) == pid && WIFSTOPPED(state));
    struct profd_options o = {.server = address, .connect_ms = 100};
    struct profd_conn *c;
    struct profd_error e;
    cr_assert_eq(profd_conn_open(&o, &c, &e), PROFD_TIMEOUT);
    cr_assert(strstr(e.sentence, address));
    struct seen s = deliver_within(1, 100, LONG_MS);
    cr_assert_eq(s.spooled, 1);
    reap(pid, true);
}

Test(client_delivery, http_is_for_queries)
{
    struct profd_options o = {.server = "http://127.0.0.1:9"};
    struct profd_delivery *d;
    struct profd_error e;
    struct seen s;
    cr_assert_eq(profd_delivery_open(&o, see, &s, &d, &e), PROFD_USAGE);
    cr_assert(strstr(e.sentence, "Unix socket"));
}

/* A listener of another user: only root can make one. */
Test(client_delivery, a_strangers_socket_is_not_believed)
{
    if (geteuid() != 0) {
        cr_skip_test("needs root to be two users");
    }
    cr_assert_eq(chmod(directory, 0777), 0);
    int listens[2];
    char byte;
    cr_assert_eq(pipe(listens), 0);
    pid_t pid = fork();
    if (pid == 0) {
        struct sockaddr_un a = {.sun_family = AF_UNIX};
        memcpy(a.sun_path, address, sizeof address);
        int fd = socket(AF_UNIX, SOCK_STREAM, 0);
        if (setgid(65534) != 0 || setuid(65534) != 0 || bind(fd, (struct sockaddr *)&a, sizeof a) != 0 ||
            listen(fd, 8) != 0 || write(listens[1], "x", 1) != 1) {
            _exit(1);
        }
        pause();
        _exit(0);
    }
    close(listens[1]);
    cr_assert_eq(read(listens[0], &byte, 1), 1);
    close(listens[0]);
    struct profd_options o = {.server = address, .connect_ms = LONG_MS};
    struct profd_conn *c;
    struct profd_error e = {""};
    cr_assert_eq(profd_conn_open(&o, &c, &e), PROFD_UNTRUSTED, "%s", e.sentence);
    cr_assert(strstr(e.sentence, "65534"));
    struct seen s = deliver(1);
    cr_assert_eq(s.spooled, 1, "and what it should not see is spooled");
    reap(pid, true);
}
