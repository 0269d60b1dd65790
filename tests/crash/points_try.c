/* One run with one fault. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/crash/points.h"

#define SETTLE_MS HANG_MS

struct fault *points_share(const char *path)
{
    const int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    struct fault *f = MAP_FAILED;

    if (fd >= 0 && !ftruncate(fd, sizeof *f)) {
        f = mmap(NULL, sizeof *f, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    }
    if (fd >= 0) {
        close(fd);
    }
    return f == MAP_FAILED ? NULL : f;
}

/* A run, its fault and where it stands, for words. */
struct attempt {
    struct run run;
    struct fault *fault;
    char path[PLACE_PATH];
    const struct scene *scene;
    const struct way *way;
    uint64_t n;
};

static bool complain(struct attempt *a, const char *what)
{
    printf("# %s, %s, operation %" PRIu64 " (%s): %s; last refusal: %s\n", a->scene->name, a->way->name, a->n,
           a->fault->last, what, a->run.stream->reason);
    daemon_show_log(&a->run.daemon);
    return false;
}

static bool attempt_open(struct attempt *a, struct campaign *c)
{
    struct run *r = &a->run;
    char socket[sizeof r->stream->socket];

    if (!run_open(r, c, "point")) {
        return false;
    }
    if (a->scene->begun) {
        memcpy(socket, r->stream->socket, sizeof socket);
        memcpy(r->stream, a->scene->begun, sizeof *r->stream);
        memcpy(r->stream->socket, socket, sizeof socket);
        for (unsigned i = 0; i < STREAM_LANES; i++) {
            r->stream->lanes[i].idle = 0;
        }
    }
    run_accustom(r, a->scene->habit);
    r->stream->stop = 0;
    r->stream->in_flight = a->scene->pause_ns ? 1 : 4;
    r->stream->pause_ns = a->scene->pause_ns;
    r->stream->most = (r->stream->lanes[0].next + a->scene->more) * STREAM_LANES;
    r->daemon.managed = a->way->managed;
    r->daemon.preload = c->preload;
    r->daemon.fault = place_join(a->path, r->folder, "fault");
    a->fault = points_share(a->path);
    if (!a->fault || (a->scene->seed && !place_copy(a->scene->seed, r->daemon.state))) {
        return false;
    }
    a->fault->kinds = a->way->kinds;
    a->fault->error = a->way->error;
    a->fault->at = a->n;
    a->fault->action = a->n ? a->way->action : FAULT_NONE;
    return true;
}

/* Nothing came of it but perhaps refusals: everything must get through in the same process. */
static bool demand_endurance(struct attempt *a, enum profd_status allowed)
{
    struct run *r = &a->run;

    if (a->way->action == FAULT_ON) { /* refused while it lasts, and answering questions */
        for (unsigned i = 0; i < 2000 && r->stream->last_status == 0 && !stream_done(r->stream, 0); i++) {
            daemon_pause_us(1000);
        }
        if (a->fault->hits && daemon_alive(&r->daemon) && !run_look(r)) {
            return complain(a, "no answer while the disk is full");
        }
        daemon_pause_us(10000);
        a->fault->action = FAULT_NONE;
    }
    if (!stream_done(r->stream, SETTLE_MS)) {
        return complain(a, daemon_alive(&r->daemon) ? "it does not go on by itself" : "it ended");
    }
    if (r->stream->last_status != 0 && r->stream->last_status != allowed) {
        return complain(a, "the reason is not the one that was injected");
    }
    return true;
}

/* After an input/output error nothing is written in this process, and questions are answered. */
static bool demand_silence(struct attempt *a)
{
    struct run *r = &a->run;
    uint64_t after;

    for (unsigned i = 0; i < 20000 && daemon_alive(&r->daemon) && r->stream->last_status == 0; i++) {
        if (stream_done(r->stream, 0)) {
            return true; /* it came to nothing before the end */
        }
        daemon_pause_us(500);
    }
    if (a->way->managed) {
        return daemon_wait(&r->daemon, HANG_MS) == 74 || complain(a, "under a supervisor it does not exit with 74");
    }
    if (r->stream->last_status != PROFD_IO) {
        return complain(a, "an input/output error is not said to be one");
    }
    after = a->fault->operations;
    daemon_pause_us(20000);
    if (!run_look(r)) {
        return complain(a, "questions are not answered any more");
    }
    if (daemon_stop(&r->daemon, HANG_MS) < 0) {
        return complain(a, "it does not stop properly");
    }
    return a->fault->operations == after || complain(a, "it wrote again after an input/output error");
}

/* While it starts it may give up, with a status that says why. */
static bool demand_words(struct attempt *a)
{
    const int status = daemon_wait(&a->run.daemon, HANG_MS);

    if (a->n == 0) {
        return complain(a, "it does not start");
    }
    return (status >= 70 && status <= 78) || complain(a, "it does not start, and its exit status says nothing");
}

/* An error before the first upload must have kept it from serving: nobody would hear of it. A full disk need not, it
 * still answers. (SQLite itself does not ask whether the directory of a new log was synced.) */
static bool demand_start(struct attempt *a)
{
    const bool counts = !strncmp(a->fault->last, "sync of profd", 13) || !strncmp(a->fault->last, "write", 5);

    return !a->fault->hits || a->way->error != EIO || !counts ||
           complain(a, "it serves although that failed while it started");
}

static bool demand(struct attempt *a)
{
    const enum fault_action action = a->way->action;

    if (!demand_start(a)) {
        return false;
    }
    a->run.client = stream_start(a->run.stream);
    if (action == FAULT_KILL || action == FAULT_KILL_TORN) {
        for (unsigned i = 0; i < 20000 && daemon_alive(&a->run.daemon) && !stream_done(a->run.stream, 0); i++) {
            daemon_pause_us(500);
        }
        return true;
    }
    if (action == FAULT_SHORT || action == FAULT_INTERRUPT || a->n == 0) {
        return demand_endurance(a, PROFD_OK);
    }
    return a->way->error == ENOSPC ? demand_endurance(a, PROFD_FULL) : demand_silence(a);
}

bool points_try(struct campaign *c, struct scene *scene, const struct way *way, uint64_t n, bool *hit)
{
    struct attempt a = {.scene = scene, .way = way, .n = n};
    struct run *r = &a.run;
    const uint64_t before = scene->begun ? stream_acked(scene->begun) : 0;
    bool ok = attempt_open(&a, c) && daemon_start(&r->daemon);

    if (ok) {
        ok = daemon_await(&r->daemon, HANG_MS)
                 ? demand(&a)
                 : way->action == FAULT_KILL || way->action == FAULT_KILL_TORN || demand_words(&a);
        if (daemon_alive(&r->daemon)) {
            daemon_stop(&r->daemon, HANG_MS);
        }
        if (!n) {
            scene->operations = a.fault->operations;
        }
        *hit = a.fault->hits > 0;
        r->stream->stop = 0;
        if (!r->client) {
            r->client = stream_start(r->stream);
        }
        r->daemon.fault = NULL;
        r->daemon.managed = false;
        if (ok && !run_settle(r, way->name)) {
            ok = complain(&a, "afterwards");
        } else if (ok) {
            c->tally.acknowledged -= before; /* once is enough */
        }
    }
    if (a.fault) {
        munmap(a.fault, sizeof *a.fault);
    }
    run_close(r);
    return ok;
}
