#include "elf/broker.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "elf/elf_internal.h"
#include "elf/sandbox.h"
#include "proto/whole.h"

/* Messages between daemon and broker over their socket pair: one fixed struct for each packet, with descriptors. Both
 * sides are the same program. */

#define BROKER_FDS 2
#define BROKER_MAGIC 0x62726f6bu

/* Descriptors: the executable and, if descriptors is 2, the debug file. */
struct broker_request {
    uint32_t magic, descriptors;
    uint64_t memory;       /* bytes */
    uint64_t instructions; /* 1: wanted */
};

/* With status OK one descriptor: the answer. The object begins after struct worker_answer. */
struct broker_reply {
    uint32_t magic, status;
    uint64_t size;
    char sentence[512];
};

/* Ancillary data, aligned as the kernel requires. */
union control {
    struct cmsghdr header;
    char bytes[CMSG_SPACE(BROKER_FDS * sizeof(int))];
};

/* Sends one packet with n descriptors. False on any failure, with errno. */
static int broker_send(int socket, const void *packet, size_t size, const int *fds, unsigned n)
{
    char copy[1024];
    if (size > sizeof copy || n > BROKER_FDS) {
        return 0;
    }
    memcpy(copy, packet, size);
    struct iovec part = {copy, size};
    union control control;
    memset(&control, 0, sizeof control);
    struct msghdr m = {.msg_iov = &part, .msg_iovlen = 1};
    if (n != 0) {
        m.msg_control = control.bytes;
        m.msg_controllen = CMSG_SPACE(n * sizeof(int));
        struct cmsghdr *c = CMSG_FIRSTHDR(&m);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(n * sizeof(int));
        memcpy(CMSG_DATA(c), fds, n * sizeof(int));
    }
    ssize_t sent;
    do {
        sent = sendmsg(socket, &m, MSG_NOSIGNAL);
    } while (sent < 0 && errno == EINTR);
    return sent == (ssize_t)size;
}

/* Receives one packet of exactly size bytes. fds gets up to BROKER_FDS descriptors (close-on-exec), −1 for missing
 * ones. 1: received; 0: the other side has closed; −1: an error or a malformed packet, whose descriptors are
 * closed. */
static int broker_receive(int socket, void *packet, size_t size, int fds[BROKER_FDS])
{
    struct iovec part = {packet, size};
    union control control;
    struct msghdr m = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof control.bytes};
    for (int i = 0; i < BROKER_FDS; i++) {
        fds[i] = -1;
    }
    ssize_t got;
    do {
        got = recvmsg(socket, &m, MSG_CMSG_CLOEXEC);
    } while (got < 0 && errno == EINTR);
    if (got == 0) {
        return 0;
    }
    if (got > 0) {
        for (struct cmsghdr *c = CMSG_FIRSTHDR(&m); c != NULL; c = CMSG_NXTHDR(&m, c)) {
            if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) {
                continue;
            }
            size_t n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
            memcpy(fds, CMSG_DATA(c), (n < BROKER_FDS ? n : BROKER_FDS) * sizeof(int));
        }
    }
    bool whole = got == (ssize_t)size && !(m.msg_flags & (MSG_TRUNC | MSG_CTRUNC));
    for (int i = 0; i < BROKER_FDS && !whole; i++) {
        if (fds[i] >= 0) {
            close(fds[i]);
        }
    }
    return whole ? 1 : -1;
}

/* How a worker ended. */
struct outcome {
    int wait_status;
    bool timed_out;
};

static int64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* Reads the header of the answer. False if none was written. */
static bool read_head(int answer, struct worker_answer *head)
{
    if (pread(answer, head, sizeof *head, 0) != (ssize_t)sizeof *head || head->magic != WORKER_MAGIC) {
        return false;
    }
    head->sentence[sizeof head->sentence - 1] = '\0';
    return true;
}

/* Waits until the worker ends; kills it at its deadline. */
static void await(pid_t worker, int answer, const struct worker_limits *limits, struct outcome *out)
{
    int handle = pidfd_open(worker, 0);
    int64_t start = now_ms(), deadline = start + limits->headers_ms;
    bool extended = false;
    for (;;) {
        struct pollfd p = {handle, POLLIN, 0};
        int64_t left = deadline - now_ms();
        /* Without a pidfd (a kernel that forbids it), checks every 20 ms. */
        int n = left <= 0 ? 0 : poll(&p, handle < 0 ? 0 : 1, handle < 0 ? 20 : (int)left);
        if (n > 0 || (handle < 0 && waitpid(worker, &out->wait_status, WNOHANG) == worker)) {
            break;
        }
        if (now_ms() < deadline) {
            continue;
        }
        struct worker_answer head;
        if (!extended && read_head(answer, &head) && head.budget_seconds != 0) {
            uint64_t budget = head.budget_seconds < limits->cpu_seconds ? head.budget_seconds : limits->cpu_seconds;
            deadline = start + limits->headers_ms + 10000 * (int64_t)budget;
            extended = true;
            continue;
        }
        out->timed_out = true;
        kill(worker, SIGKILL);
        break;
    }
    if (handle >= 0) {
        close(handle);
    }
    while (waitpid(worker, &out->wait_status, 0) < 0 && errno == EINTR) {
    }
}

/* Turns the worker's end and its answer into a status. *lesser: whether an attempt without source lines and demangling
 * may succeed. */
static enum profd_status judge(const struct outcome *o, int answer, const struct worker_limits *limits, uint64_t *size,
                               bool *lesser, struct profd_error *e)
{
    *lesser = true;
    FAIL_IF(o->timed_out, e, PROFD_LIMIT, "the worker took too long and was killed");
    if (WIFSIGNALED(o->wait_status)) {
        const int number = WTERMSIG(o->wait_status);
        switch (number) {
        case SIGXCPU:
            return profd_error_set(e, PROFD_LIMIT, "the worker reached its limit of CPU time");
        case SIGXFSZ:
            return profd_error_set(e, PROFD_LIMIT, "the worker's answer reached its limit of bytes");
        case SIGSYS:
            return profd_error_set(e, PROFD_INTERNAL,
                                   "the worker was killed by signal %d: it made a system call that the sandbox forbids",
                                   number);
        case SIGSEGV:
        case SIGBUS:
            return profd_error_set(e, PROFD_INTERNAL, "the worker was killed by signal %d: a memory fault", number);
        case SIGKILL:
            return profd_error_set(
                e, PROFD_INTERNAL,
                "the worker was killed by signal %d: by the kernel, for time or memory, or by an operator", number);
        default:
            return profd_error_set(e, PROFD_INTERNAL, "the worker was killed by signal %d", number);
        }
    }
    struct worker_answer head;
    FAIL_IF(!WIFEXITED(o->wait_status) || WEXITSTATUS(o->wait_status) != 0, e, PROFD_INTERNAL,
            "the worker ended with status %d", WEXITSTATUS(o->wait_status));
    FAIL_IF(!read_head(answer, &head) || head.done != 1 || !profd_status_known(head.status), e, PROFD_INTERNAL,
            "the worker ended without an answer");

    /* The file may control the worker, so the worker's status only decides whether the file or the worker is at fault.
     * Its sentence is used as the reason. IO: the file could not be read, or became shorter meanwhile. */
    switch (head.status) {
    case PROFD_OK:
        break;
    case PROFD_MALFORMED:
    case PROFD_TOO_LARGE:
    case PROFD_REFUSED:
    case PROFD_WRONG_BUILD:
    case PROFD_IO:
    case PROFD_LIMIT:
        *lesser = head.status == PROFD_LIMIT;
        return profd_error_set(e, PROFD_REFUSED, "%s", head.sentence);
    default:
        return profd_error_set(e, PROFD_INTERNAL, "%s", head.sentence);
    }
    FAIL_IF(head.size > limits->answer_bytes, e, PROFD_LIMIT,
            "the worker's answer may have %" PRIu64 " bytes, not %" PRIu64, limits->answer_bytes, head.size);
    *size = head.size;
    return PROFD_OK;
}

/* Runs one worker for one attempt. On OK *answer is open; *lesser: as judge. */
static enum profd_status attempt(const struct worker_job *job, const int fds[BROKER_FDS], worker_act *act, int *answer,
                                 uint64_t *size, bool *lesser, struct profd_error *e)
{
    *lesser = false;
    int memory = memfd_create("profd-answer", MFD_CLOEXEC);
    FAIL_IF(memory < 0, e, PROFD_INTERNAL, "the broker has no memory for an answer: %s", strerror(errno));
    (void)disassembler_load(NULL); /* a worker may open no files */
    pid_t worker = fork();
    if (worker == 0) {
        worker_run(job, fds[0], fds[1], memory, act);
    }
    if (worker < 0) {
        close(memory);
        return profd_error_set(e, PROFD_INTERNAL, "the broker could not start a worker: %s", strerror(errno));
    }
    struct outcome o = {0};
    await(worker, memory, &job->limits, &o);
    enum profd_status status = judge(&o, memory, &job->limits, size, lesser, e);
    if (status) {
        close(memory);
        return status;
    }
    *answer = memory;
    return PROFD_OK;
}

/* Serves requests from the socket until its other end is closed, then exits. */
static _Noreturn void broker_loop(int socket, worker_act *act, const struct worker_limits *limits)
{
    /* If memory is exhausted, the kernel must end a worker, not the daemon; 1000 is the maximum. The file can be
     * written only as long as the process is dumpable. */
    int oom = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    if (oom >= 0) {
        (void)!write(oom, "1000", 4);
        close(oom);
    }
    prctl(PR_SET_NAME, "profd-elf", 0, 0, 0);
    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    /* The daemon ends the broker by closing the socket. A signal of a terminal or of systemd to the group must not end
     * it earlier. */
    static const int ignored[] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGUSR1, SIGUSR2};
    for (size_t i = 0; i < sizeof ignored / sizeof *ignored; i++) {
        signal(ignored[i], SIG_IGN);
    }
    signal(SIGCHLD, SIG_DFL);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);

    for (;;) {
        struct broker_request request = {0};
        int fds[BROKER_FDS];
        int got = broker_receive(socket, &request, sizeof request, fds);
        if (got == 0) {
            _exit(0);
        }
        struct profd_error e = {""};
        struct broker_reply reply = {.magic = BROKER_MAGIC, .status = PROFD_INTERNAL};
        int answer = -1;
        if (got < 0 || request.magic != BROKER_MAGIC || fds[0] < 0) {
            profd_error_set(&e, PROFD_INTERNAL, "the broker received a malformed request");
        } else {
            struct worker_job job = {.has_debug = request.descriptors == 2 && fds[1] >= 0,
                                     .options = {.static_arcs = true,
                                                 .demangle = true,
                                                 .lines = true,
                                                 .rows = true,
                                                 .inlined = true,
                                                 .instructions = request.instructions == 1},
                                     .limits = *limits};
            /* The answer uses memory, too: of the worker, then of the daemon. */
            if (request.memory < job.limits.memory) {
                job.limits.memory = request.memory;
            }
            if (job.limits.memory / 4 < job.limits.answer_bytes) {
                job.limits.answer_bytes = job.limits.memory / 4;
            }
            bool lesser;
            reply.status = attempt(&job, fds, act, &answer, &reply.size, &lesser, &e);

            /* Source lines and demangling read the most complex data: if a worker failed, the symbols alone may still
             * be read. If they are not, the first attempt's sentence is the answer. */
            if (reply.status && lesser) {
                snprintf(job.left_out, sizeof job.left_out, "Source lines%s and demangled names were left out: %.130s.",
                         job.options.instructions ? ", instructions" : "", e.sentence);
                job.options = (struct elf_read_options){.static_arcs = true};
                struct profd_error second;
                if (!attempt(&job, fds, act, &answer, &reply.size, &lesser, &second)) {
                    reply.status = PROFD_OK;
                }
            }
        }
        snprintf(reply.sentence, sizeof reply.sentence, "%s", e.sentence);
        int sent = broker_send(socket, &reply, sizeof reply, &answer, answer >= 0 ? 1 : 0);
        for (int i = 0; i < BROKER_FDS; i++) {
            if (fds[i] >= 0) {
                close(fds[i]);
            }
        }
        if (answer >= 0) {
            close(answer);
        }
        if (!sent) {
            _exit(0);
        }
    }
}

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
    FAIL_IF(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0, e, PROFD_INTERNAL,
            "the broker's socket could not be made: %s", strerror(errno));
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

enum profd_status broker_restart(struct broker *b, struct profd_error *e)
{
    int pair[2];
    FAIL_IF(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0, e, PROFD_INTERNAL,
            "the broker's socket could not be made: %s", strerror(errno));

    /* posix_spawn copies nothing of this process, which may have threads. */
    static char name[] = BROKER_NAME;
    char *const arguments[] = {name, NULL}, *const nothing[] = {NULL};
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none;
    pid_t process = 0;
    sigemptyset(&none);
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
    posix_spawn_file_actions_adddup2(&actions, pair[1], RESTART_SOCKET);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
    posix_spawnattr_setsigmask(&attributes, &none);
    int error =
        posix_spawn(&process, "/proc/self/exe", &actions, &attributes, arguments, SANDBOX_POSSIBLE ? nothing : environ);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
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
    FAIL_IF(size == 0 || size > LIMIT_OBJECT_ANSWER, e, PROFD_LIMIT,
            "an object's description must have 1 to %llu bytes, not %" PRIu64, LIMIT_OBJECT_ANSWER, size);
    uint8_t *bytes = malloc((size_t)size);
    FAIL_IF(bytes == NULL, e, PROFD_NO_MEMORY, "out of memory for an object's description of %" PRIu64 " bytes", size);
    const ssize_t n = whole_read(answer, bytes, (size_t)size, sizeof(struct worker_answer));
    if (n != (ssize_t)size) {
        free(bytes);
        return profd_error_set(e, PROFD_INTERNAL, "the worker's answer ends after %zd of %" PRIu64 " bytes", n, size);
    }
    *out = bytes;
    *out_size = (size_t)size;
    return PROFD_OK;
}

/* unread: the broker had ended before it took the request, so the executable cannot be the cause. */
static enum profd_status broker_gone(struct broker *b, bool unread, struct profd_error *e)
{
    close(b->socket);
    b->socket = -1;
    atomic_store(&b->state, BROKER_GONE);
    FAIL_IF(unread, e, PROFD_BUSY, GONE_SENTENCE);
    return profd_error_set(e, PROFD_INTERNAL,
                           "the process that reads executables has ended while it read this one; send it again with "
                           "profctl symbols");
}

enum profd_status broker_read_object(struct broker *b, const struct broker_file *file, uint8_t **answer, size_t *size,
                                     struct profd_error *e)
{
    int ready = BROKER_READY;
    FAIL_IF(!atomic_compare_exchange_strong(&b->state, &ready, BROKER_SERVING), e, PROFD_BUSY, GONE_SENTENCE);
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
        /* The kernel reports ECONNRESET if the broker's end was closed with the request unread. */
        return broker_gone(b, errno == ECONNRESET, e);
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
