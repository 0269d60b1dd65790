/* Every step-th operation of the daemon on its database goes wrong in every way. */
#include "tests/crash/points.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define LOG_BYTES (4040 * INT64_C(4120)) /* just before the writer takes the log into the database */

/* A sync that fails is the end of writing whatever its reason: a disk is full for writes. */
#define FILLING (FAULT_WRITE | FAULT_TRUNCATE | FAULT_NAME)

static const struct way ways[] = {
    {"SIGKILL", FAULT_KILL, 0, FAULT_ALL, false},
    {"SIGKILL after half of it", FAULT_KILL_TORN, 0, FAULT_ALL, false},
    {"EIO", FAULT_ONCE, EIO, FAULT_ALL, false},
    {"EIO from then on", FAULT_ON, EIO, FAULT_ALL, false},
    {"EIO after half of it", FAULT_TEAR, EIO, FAULT_ALL, false},
    {"EIO under a supervisor", FAULT_ONCE, EIO, FAULT_ALL, true},
    {"ENOSPC", FAULT_ONCE, ENOSPC, FILLING, false},
    {"ENOSPC for a while", FAULT_ON, ENOSPC, FILLING, false},
    {"a short write", FAULT_SHORT, 0, FAULT_ALL, false},
    {"EINTR", FAULT_INTERRUPT, 0, FAULT_WRITE | FAULT_TRUNCATE, false},
};

/* Windows as when rolling up, but nothing is rolled up yet. */
static const struct habit raw = {.name = "storing for later", .options = {"--keep-age", "0"}, .hours = 100};

/* What a daemon leaves that is killed with its log as long as it gets. */
static bool make_seed(struct run *r, const struct habit *h)
{
    char path[PLACE_PATH];
    struct stat st = {.st_size = 0};

    place_join(path, r->daemon.state, "profd.db-wal");
    r->stream->in_flight = 4;
    run_accustom(r, h);
    r->client = stream_start(r->stream);
    if (!daemon_start(&r->daemon) || !daemon_await(&r->daemon, HANG_MS)) {
        return false;
    }
    for (unsigned i = 0; i < 60000 && st.st_size < LOG_BYTES; i++) {
        daemon_pause_us(1000);
        if (stat(path, &st)) {
            st.st_size = 0;
        }
    }
    if (!stream_settle(r->stream, HANG_MS)) {
        return false;
    }
    daemon_kill(&r->daemon);
    stream_stop(r->stream, r->client);
    r->client = 0;
    return st.st_size >= LOG_BYTES;
}

static void try_scene(struct campaign *c, struct scene *scene, unsigned step)
{
    bool hit;

    if (!points_try(c, scene, &ways[0], 0, &hit) || !scene->operations) {
        judge_point(&c->tally, false, "%s: a run without faults", scene->name);
        return;
    }
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        unsigned runs = 0, hits = 0, bad = 0;

        /* How uploads fall into batches differs from run to run: two that end before their operation are the end. */
        for (uint64_t n = 1 + i % step; n <= scene->operations && bad < 3 && runs - hits < 2; n += step) {
            bad += !points_try(c, scene, &ways[i], n, &hit);
            runs++;
            hits += hit;
        }
        judge_point(&c->tally, !bad && hits > 0,
                    "%s: %s at %u of about %" PRIu64 " operations: nothing lost, nothing double", scene->name,
                    ways[i].name, hits, scene->operations);
    }
}

/* A scene that begins with what such a daemon left. */
static void try_seeded(struct campaign *c, struct scene *scene, const struct habit *h, unsigned step)
{
    char seed[PLACE_PATH];
    struct run r;

    campaign_folder(c, "seed", seed);
    if (run_open(&r, c, "log") && make_seed(&r, h) && place_copy(r.daemon.state, seed)) {
        scene->seed = seed;
        scene->begun = r.stream;
        try_scene(c, scene, step);
    } else {
        judge_point(&c->tally, false, "%s: what it begins with could not be made", scene->name);
    }
    run_close(&r);
    place_remove(seed);
}

void campaign_points(struct campaign *c, unsigned step)
{
    struct scene fresh = {.name = "new database", .more = 8, .habit = &habits[HABIT_PLAIN]},
                 log = {.name = "long log", .more = 12, .habit = &habits[HABIT_PLAIN]},
                 sums = {.name = "rolling up and removing",
                         .more = 45,
                         .pause_ns = 15000000,
                         .habit = &habits[HABIT_RETENTION]};

    try_scene(c, &fresh, step);
    try_seeded(c, &log, &habits[HABIT_PLAIN], step);
    try_seeded(c, &sums, &raw, step * 40); /* thousands of operations, and each run takes seconds */
}
