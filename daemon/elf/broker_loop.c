#include "elf/broker_loop.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "elf/broker_wire.h"
#include "elf/elf_disassembler.h"

/* How a worker ended. */
struct outcome {
    int wait_status;
    bool timed_out;
    bool lesser; /* an attempt without source lines and demangling may succeed */
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

/* Describes a signal for administrators. */
static enum profd_status describe_signal(int number, struct profd_error *e)
{
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

/* The file may control the worker, so its status can only mean that the file is at fault, or that the worker is
 * (DECISIONS 45). Its sentence is used as the reason. */
static enum profd_status translate(uint32_t said)
{
    switch (said) {
    case PROFD_MALFORMED:
    case PROFD_TOO_LARGE:
    case PROFD_REFUSED:
    case PROFD_WRONG_BUILD:
    case PROFD_IO: /* the file could not be read, or became shorter meanwhile */
    case PROFD_LIMIT:
        return PROFD_REFUSED;
    default:
        return PROFD_INTERNAL;
    }
}

/* Makes the reply from the worker's end and its answer. */
static enum profd_status judge(struct outcome *o, int answer, const struct worker_limits *limits, uint64_t *size,
                               struct profd_error *e)
{
    o->lesser = true;
    if (o->timed_out) {
        return profd_error_set(e, PROFD_LIMIT, "the worker took too long and was killed");
    }
    if (WIFSIGNALED(o->wait_status)) {
        return describe_signal(WTERMSIG(o->wait_status), e);
    }
    struct worker_answer head;
    if (!WIFEXITED(o->wait_status) || WEXITSTATUS(o->wait_status) != 0) {
        return profd_error_set(e, PROFD_INTERNAL, "the worker ended with status %d", WEXITSTATUS(o->wait_status));
    }
    if (!read_head(answer, &head) || head.done != 1 || !profd_status_known(head.status)) {
        return profd_error_set(e, PROFD_INTERNAL, "the worker ended without an answer");
    }
    if (head.status != PROFD_OK) {
        const enum profd_status status = translate(head.status);
        o->lesser = status == PROFD_INTERNAL || head.status == PROFD_LIMIT;
        return profd_error_set(e, status, "%s", head.sentence);
    }
    if (head.size > limits->answer_bytes) {
        return profd_error_set(e, PROFD_LIMIT, "the worker's answer may have %" PRIu64 " bytes, not %" PRIu64,
                               limits->answer_bytes, head.size);
    }
    *size = head.size;
    return PROFD_OK;
}

/* Runs one worker for one attempt. On OK *answer is open; *lesser: see struct outcome. */
static enum profd_status attempt(const struct worker_job *job, const int fds[BROKER_FDS], worker_act *act, int *answer,
                                 uint64_t *size, bool *lesser, struct profd_error *e)
{
    int memory = memfd_create("profd-answer", MFD_CLOEXEC);
    if (memory < 0) {
        return profd_error_set(e, PROFD_INTERNAL, "the broker has no memory for an answer: %s", strerror(errno));
    }
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
    enum profd_status status = judge(&o, memory, &job->limits, size, e);
    *lesser = o.lesser;
    if (status == PROFD_OK) {
        *answer = memory;
    } else {
        close(memory);
    }
    return status;
}

/* Source lines and demangling read the most complex data: if a worker failed, the symbols alone may still be read. */
static enum profd_status serve(struct worker_job *job, const int fds[BROKER_FDS], worker_act *act, int *answer,
                               uint64_t *size, struct profd_error *e)
{
    bool lesser = false;
    enum profd_status status = attempt(job, fds, act, answer, size, &lesser, e);
    if (status == PROFD_OK || !lesser) {
        return status;
    }
    const bool instructions = job->options.instructions;
    job->options.lines = job->options.inlined = job->options.demangle = job->options.instructions = false;
    snprintf(job->left_out, sizeof job->left_out, "Source lines%s and demangled names were left out: %.130s.",
             instructions ? ", instructions" : "", e->sentence);
    struct profd_error second;
    return attempt(job, fds, act, answer, size, &lesser, &second) == PROFD_OK ? PROFD_OK : status;
}

/* If memory is exhausted, the kernel must end a worker, not the daemon; 1000 is the maximum. */
static void offer_to_oom_killer(void)
{
    int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    if (fd < 0) {
        return;
    }
    (void)!write(fd, "1000", 4);
    close(fd);
}

_Noreturn void broker_loop(int socket, worker_act *act, const struct worker_limits *limits)
{
    offer_to_oom_killer(); /* as long as the descriptor can be written */
    prctl(PR_SET_NAME, "profd-elf", 0, 0, 0);
    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    /* The daemon ends it by closing the socket. A signal of a terminal or of systemd to the group must not end it
     * earlier. */
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
        struct worker_job job = {
            .options = {.static_arcs = true, .demangle = true, .lines = true, .rows = true, .inlined = true},
            .limits = *limits};
        int answer = -1;
        if (got < 0 || request.magic != BROKER_MAGIC || fds[0] < 0) {
            profd_error_set(&e, PROFD_INTERNAL, "the broker received a malformed request");
        } else {
            job.options.instructions = request.instructions == 1;
            job.has_debug = request.descriptors == 2 && fds[1] >= 0;
            /* The answer uses memory, too: of the worker, then of the daemon. */
            if (request.memory < job.limits.memory) {
                job.limits.memory = request.memory;
            }
            if (job.limits.memory / 4 < job.limits.answer_bytes) {
                job.limits.answer_bytes = job.limits.memory / 4;
            }
            reply.status = serve(&job, fds, act, &answer, &reply.size, &e);
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
