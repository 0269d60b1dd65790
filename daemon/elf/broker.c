#include "elf/broker.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "elf/broker_loop.h"
#include "elf/broker_wire.h"
#include "elf/sandbox.h"

#define RESTART_SOCKET 3 /* descriptor of a restarted broker */
#define GONE_SENTENCE "the process that reads executables has ended and is being started again"

/* READY → SERVING → READY, or GONE if there was no answer; READY → GONE if it ended meanwhile; GONE → READY. In the
 * state SERVING the socket belongs to the thread that serves; otherwise everything belongs to the thread of
 * broker_has_ended. */
enum broker_state { BROKER_READY, BROKER_SERVING, BROKER_GONE };

struct broker {
    pid_t process; /* 0: waited for */
    int handle;    /* pidfd; −1: unknown */
    int socket;
    atomic_int state;
};

extern char **environ;

/* The child keeps only the socket and standard error; its environment is empty. */
static void drop_inherited(int socket)
{
    if (socket > 3) {
        close_range(3, (unsigned)socket - 1, 0);
    }
    close_range((unsigned)socket + 1, ~0u, 0);
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (null >= 0) {
        dup2(null, 0);
        dup2(null, 1);
        close(null);
    }
    if (!SANDBOX_POSSIBLE) { /* the environment contains options of the sanitizer */
        return;
    }
    for (char **v = environ; v != NULL && *v != NULL; v++) {
        explicit_bzero(*v, strlen(*v));
    }
    clearenv();
}

enum profd_status broker_start_with(struct broker **out, worker_act *act, const struct worker_limits *limits,
                                    struct profd_error *e)
{
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0) {
        return profd_error_set(e, PROFD_INTERNAL, "the broker's socket could not be made: %s", strerror(errno));
    }
    struct broker *b = malloc(sizeof *b);
    pid_t process = b == NULL ? -1 : fork();
    if (process == 0) {
        int socket = fcntl(pair[1], F_DUPFD_CLOEXEC, 3); /* above the numbers of standard input and output */
        if (socket < 0) {
            _exit(1);
        }
        drop_inherited(socket);
        broker_loop(socket, act, limits);
    }
    int error = errno;
    close(pair[1]);
    if (process < 0) {
        close(pair[0]);
        free(b);
        return profd_error_set(e, PROFD_INTERNAL, "the broker could not be started: %s", strerror(error));
    }
    *b = (struct broker){process, pidfd_open(process, 0), pair[0], BROKER_READY};
    *out = b;
    return PROFD_OK;
}

static const struct worker_limits broker_limits = {
    .memory = LIMIT_WORKER_MEMORY_MAX,
    .cpu_seconds = LIMIT_WORKER_CPU_SECONDS + (LIMIT_OBJECT_BYTES >> 20) * LIMIT_WORKER_CPU_PER_MB_MS / 1000,
    .answer_bytes = LIMIT_OBJECT_ANSWER,
    .headers_ms = LIMIT_WORKER_HEADERS_MS};

enum profd_status broker_start(struct broker **out, struct profd_error *e)
{
    return broker_start_with(out, worker_read, &broker_limits, e);
}

_Noreturn void broker_main(void)
{
    if (fcntl(RESTART_SOCKET, F_SETFD, FD_CLOEXEC) < 0) { /* not started by broker_restart */
        _exit(1);
    }
    drop_inherited(RESTART_SOCKET);
    broker_loop(RESTART_SOCKET, worker_read, &broker_limits);
}

/* posix_spawn copies nothing of this process, which may have threads. */
static int broker_spawn(int socket, pid_t *process)
{
    static char name[] = BROKER_NAME;
    char *const arguments[] = {name, NULL}, *const nothing[] = {NULL};
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none;
    int error;

    sigemptyset(&none);
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
    posix_spawn_file_actions_adddup2(&actions, socket, RESTART_SOCKET);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
    posix_spawnattr_setsigmask(&attributes, &none);
    error =
        posix_spawn(process, "/proc/self/exe", &actions, &attributes, arguments, SANDBOX_POSSIBLE ? nothing : environ);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    return error;
}

enum profd_status broker_restart(struct broker *b, struct profd_error *e)
{
    int pair[2], error;
    pid_t process = 0;

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0) {
        return profd_error_set(e, PROFD_INTERNAL, "the broker's socket could not be made: %s", strerror(errno));
    }
    error = broker_spawn(pair[1], &process);
    close(pair[1]);
    if (error) {
        close(pair[0]);
        return profd_error_set(e, PROFD_INTERNAL, "the process that reads executables could not be started: %s",
                               strerror(error));
    }
    if (b->handle >= 0) {
        close(b->handle);
    }
    b->process = process;
    b->handle = pidfd_open(process, 0);
    b->socket = pair[0];
    atomic_store(&b->state, BROKER_READY);
    return PROFD_OK;
}

bool broker_is_ready(const struct broker *b)
{
    return atomic_load(&b->state) != BROKER_GONE;
}

int broker_get_handle(const struct broker *b)
{
    return b->handle;
}

bool broker_has_ended(struct broker *b, struct profd_error *why)
{
    struct pollfd end = {.fd = b->handle, .events = POLLIN};
    int ready = BROKER_READY, how = 0;

    if (atomic_load(&b->state) != BROKER_GONE) {
        if (b->handle < 0 || poll(&end, 1, 0) <= 0 || !atomic_compare_exchange_strong(&b->state, &ready, BROKER_GONE)) {
            return false;
        }
        close(b->socket);
        b->socket = -1;
    }
    if (b->process > 0) {
        kill(b->process, SIGKILL); /* it may have only closed its socket */
        while (waitpid(b->process, &how, 0) < 0 && errno == EINTR) {
        }
        b->process = 0;
    }
    profd_error_set(why, PROFD_INTERNAL, "the process that reads executables %s %d",
                    WIFSIGNALED(how) ? "was killed by signal" : "has ended with status",
                    WIFSIGNALED(how) ? WTERMSIG(how) : WEXITSTATUS(how));
    return true;
}

/* Copies the object out of the answer's memory. */
static enum profd_status fetch(int answer, uint64_t size, uint8_t **out, size_t *out_size, struct profd_error *e)
{
    if (size == 0 || size > LIMIT_OBJECT_ANSWER) {
        return profd_error_set(e, PROFD_LIMIT, "an object's description must have 1 to %llu bytes, not %" PRIu64,
                               LIMIT_OBJECT_ANSWER, size);
    }
    uint8_t *bytes = malloc((size_t)size);
    if (bytes == NULL) {
        return profd_error_set(e, PROFD_NO_MEMORY, "out of memory for an object's description of %" PRIu64 " bytes",
                               size);
    }
    for (uint64_t done = 0; done < size;) {
        ssize_t n = pread(answer, bytes + done, (size_t)(size - done), (off_t)(sizeof(struct worker_answer) + done));
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            free(bytes);
            return profd_error_set(e, PROFD_INTERNAL, "the worker's answer ends after %" PRIu64 " of %" PRIu64 " bytes",
                                   done, size);
        }
        done += (uint64_t)n;
    }
    *out = bytes;
    *out_size = (size_t)size;
    return PROFD_OK;
}

/* unread: it had ended before it took the request, so the executable has no part in its end. */
static enum profd_status broker_gone(struct broker *b, bool unread, struct profd_error *e)
{
    close(b->socket);
    b->socket = -1;
    atomic_store(&b->state, BROKER_GONE);
    if (unread) {
        return profd_error_set(e, PROFD_BUSY, GONE_SENTENCE);
    }
    return profd_error_set(e, PROFD_INTERNAL,
                           "the process that reads executables has ended while it read this one; send it again with "
                           "profctl symbols");
}

enum profd_status broker_read_object(struct broker *b, const struct broker_file *file, uint8_t **answer, size_t *size,
                                     struct profd_error *e)
{
    int ready = BROKER_READY;
    if (!atomic_compare_exchange_strong(&b->state, &ready, BROKER_SERVING)) {
        return profd_error_set(e, PROFD_BUSY, GONE_SENTENCE);
    }
    const int fds[BROKER_FDS] = {file->executable, file->debug};
    struct broker_request request = {BROKER_MAGIC, file->debug >= 0 ? 2 : 1, file->memory, file->instructions};
    if (!broker_send(b->socket, &request, sizeof request, fds, request.descriptors)) {
        if (errno == EBADF) {
            atomic_store(&b->state, BROKER_READY);
            return profd_error_set(e, PROFD_REFUSED, "an executable must be an open descriptor; %d is not",
                                   file->executable);
        }
        return broker_gone(b, errno == EPIPE, e);
    }
    struct broker_reply reply = {0};
    int got[BROKER_FDS];
    errno = 0;
    if (broker_receive(b->socket, &reply, sizeof reply, got) != 1) {
        return broker_gone(b, errno == ECONNRESET, e); /* the kernel says so if its end left the request unread */
    }
    atomic_store(&b->state, BROKER_READY);
    reply.sentence[sizeof reply.sentence - 1] = '\0';
    enum profd_status status = PROFD_OK;
    if (reply.magic != BROKER_MAGIC || !profd_status_known(reply.status) || (reply.status == PROFD_OK && got[0] < 0)) {
        status = profd_error_set(e, PROFD_INTERNAL, "the broker's answer is malformed");
    } else if (reply.status != PROFD_OK) {
        status = profd_error_set(e, (enum profd_status)reply.status, "%s", reply.sentence);
    } else {
        status = fetch(got[0], reply.size, answer, size, e);
    }
    for (int i = 0; i < BROKER_FDS; i++) {
        if (got[i] >= 0) {
            close(got[i]);
        }
    }
    return status;
}

void broker_stop(struct broker *b)
{
    if (b == NULL) {
        return;
    }
    if (b->socket >= 0) {
        close(b->socket);
    }
    while (b->process > 0 && waitpid(b->process, NULL, 0) < 0 && errno == EINTR) {
    }
    if (b->handle >= 0) {
        close(b->handle);
    }
    free(b);
}
