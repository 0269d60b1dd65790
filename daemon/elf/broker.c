#include "elf/broker.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "elf/broker_loop.h"
#include "elf/broker_wire.h"
#include "elf/sandbox.h"

struct broker {
    pid_t process;
    int socket; /* −1 once the broker is known to be gone */
};

extern char **environ;

/* The child keeps the socket and standard error, nothing else: no environment either, not even its bytes. */
static void forget_inheritance(int socket)
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
    if (!SANDBOX_POSSIBLE) { /* the sanitizer's options are in the environment */
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
        int socket = fcntl(pair[1], F_DUPFD_CLOEXEC, 3); /* out of the way of standard input and output */
        if (socket < 0) {
            _exit(1);
        }
        forget_inheritance(socket);
        broker_loop(socket, act, limits);
    }
    int error = errno;
    close(pair[1]);
    if (process < 0) {
        close(pair[0]);
        free(b);
        return profd_error_set(e, PROFD_INTERNAL, "the broker could not be started: %s", strerror(error));
    }
    *b = (struct broker){process, pair[0]};
    *out = b;
    return PROFD_OK;
}

enum profd_status broker_start(struct broker **out, struct profd_error *e)
{
    static const struct worker_limits limits = {
        .memory = LIMIT_WORKER_MEMORY_MAX,
        .cpu_seconds = LIMIT_WORKER_CPU_SECONDS + (LIMIT_OBJECT_BYTES >> 20) * LIMIT_WORKER_CPU_PER_MB_MS / 1000,
        .answer_bytes = LIMIT_OBJECT_ANSWER,
        .headers_ms = LIMIT_WORKER_HEADERS_MS};
    return broker_start_with(out, worker_read, &limits, e);
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

static enum profd_status broker_gone(struct broker *b, struct profd_error *e)
{
    close(b->socket);
    b->socket = -1;
    return profd_error_set(e, PROFD_INTERNAL, "the process that reads executables has ended; restart profd");
}

enum profd_status broker_read_object(struct broker *b, int executable, int debug, uint64_t memory, uint8_t **answer,
                                     size_t *size, struct profd_error *e)
{
    if (b->socket < 0) {
        return profd_error_set(e, PROFD_INTERNAL, "the process that reads executables has ended; restart profd");
    }
    const int fds[BROKER_FDS] = {executable, debug};
    struct broker_request request = {BROKER_MAGIC, debug >= 0 ? 2 : 1, memory};
    if (!broker_send(b->socket, &request, sizeof request, fds, request.descriptors)) {
        if (errno == EBADF) {
            return profd_error_set(e, PROFD_REFUSED, "an executable must be an open descriptor; %d is not", executable);
        }
        return broker_gone(b, e);
    }
    struct broker_reply reply = {0};
    int got[BROKER_FDS];
    if (broker_receive(b->socket, &reply, sizeof reply, got) != 1) {
        return broker_gone(b, e);
    }
    reply.sentence[sizeof reply.sentence - 1] = '\0';
    enum profd_status status = PROFD_OK;
    if (reply.magic != BROKER_MAGIC || !profd_status_known(reply.status) || (reply.status == PROFD_OK && got[0] < 0)) {
        status = profd_error_set(e, PROFD_INTERNAL, "the broker's answer makes no sense");
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
    while (waitpid(b->process, NULL, 0) < 0 && errno == EINTR) {
    }
    free(b);
}
