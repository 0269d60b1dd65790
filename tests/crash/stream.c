/* What is shared with the judge, and what an upload holds. */
#include "tests/crash/stream.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/crash/stream_run.h"

int64_t stream_end(const struct stream *s, uint32_t n)
{
    return s->hours ? s->base - (int64_t)(n % s->hours) * INT64_C(3600000000000) - n : s->base;
}

uint64_t stream_calls(uint32_t n)
{
    return stream_first_calls(n) + stream_second_calls(n) + 1 + (n % 16 == 0 ? STREAM_BULK : 0);
}

struct stream *stream_new(const char *socket)
{
    struct stream *s = mmap(NULL, sizeof *s, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    struct timespec now;
    struct profd_id id;

    if (s == MAP_FAILED) {
        return NULL;
    }
    clock_gettime(CLOCK_REALTIME, &now);
    s->base = now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
    s->in_flight = 16;
    s->most = STREAM_IDS;
    snprintf(s->socket, sizeof s->socket, "%s", socket);
    if (profd_executable_read_id("/proc/self/exe", s->executable, sizeof s->executable, NULL)) {
        munmap(s, sizeof *s);
        return NULL;
    }
    for (unsigned i = 0; i < STREAM_LANES; i++) {
        if (profd_id_make(&id, NULL)) {
            munmap(s, sizeof *s);
            return NULL;
        }
        memcpy(s->lanes[i].sender, id.sender, sizeof id.sender);
    }
    return s;
}

void stream_free(struct stream *s)
{
    if (s) {
        munmap(s, sizeof *s);
    }
}

pid_t stream_start(struct stream *s)
{
    const pid_t parent = getpid();
    pid_t pid;

    s->quit = 0;
    pid = fork();
    if (pid != 0) {
        return pid;
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) {
        _exit(1);
    }
    signal(SIGPIPE, SIG_IGN);
    signal(SIGTERM, SIG_DFL);
    _exit(stream_run(s));
}

uint64_t stream_acked(const struct stream *s)
{
    uint64_t n = 0;

    for (unsigned i = 0; i < STREAM_LANES; i++) {
        n += s->lanes[i].acked;
    }
    return n;
}

bool stream_done(const struct stream *s, unsigned ms)
{
    const struct timespec pause = {.tv_nsec = 1000000};

    for (unsigned waited = 0;; waited++) {
        unsigned idle = 0;

        for (unsigned i = 0; i < STREAM_LANES; i++) {
            idle += s->lanes[i].idle;
        }
        if (idle == STREAM_LANES || waited >= ms) {
            return idle == STREAM_LANES;
        }
        nanosleep(&pause, NULL);
    }
}

bool stream_settle(struct stream *s, unsigned ms)
{
    s->stop = 1;
    return stream_done(s, ms);
}

void stream_stop(struct stream *s, pid_t pid)
{
    s->quit = 1;
    if (pid > 0) {
        waitpid(pid, NULL, 0);
    }
}
