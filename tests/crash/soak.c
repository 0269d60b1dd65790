/* make soak: uploads, reports, rolling up, stops, kills and a clock that jumps, for as long as is asked; then the sums
 * must be exact, and memory must not have grown. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/crash/campaign.h"

#define SAMPLES 4096u
#define PERIOD_MS 100u
#define UPLOADS_MOST 200000u

/* Resident memory over time, of one life; the least-squares slope is what it grows by. */
struct growth {
    double seconds[SAMPLES], bytes[SAMPLES];
    size_t n;
};

struct soak {
    struct run run;
    struct growth growth;
    char clock[PLACE_PATH];
    _Atomic uint64_t *answered; /* shared with the asking child */
    pid_t asker;
    unsigned stops, kills, jumps;
    bool ok;
};

static double now_seconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void growth_add(struct growth *g, pid_t pid, double at)
{
    unsigned long long size = 0, resident = 0;
    char path[64];
    FILE *f;

    snprintf(path, sizeof path, "/proc/%d/statm", (int)pid);
    f = fopen(path, "re");
    if (f && g->n < SAMPLES && fscanf(f, "%llu %llu", &size, &resident) == 2) {
        g->seconds[g->n] = at;
        g->bytes[g->n++] = (double)resident * (double)sysconf(_SC_PAGESIZE);
    }
    if (f) {
        fclose(f);
    }
}

/* Bytes a second, of the second half: what a process takes when it begins is no growth. */
static double growth_slope(const struct growth *g)
{
    double x = 0, y = 0, xx = 0, xy = 0;
    const size_t first = g->n / 2, n = g->n - first;

    for (size_t i = first; i < g->n; i++) {
        x += g->seconds[i] / (double)n;
        y += g->bytes[i] / (double)n;
    }
    for (size_t i = first; i < g->n; i++) {
        xx += (g->seconds[i] - x) * (g->seconds[i] - x);
        xy += (g->seconds[i] - x) * (g->bytes[i] - y);
    }
    return xx > 0 ? xy / xx : 0;
}

/* A child that asks for the sum again and again. */
static void ask_for_ever(struct soak *k)
{
    struct verdict v;
    char why[512];
    uint8_t *none = calloc(1, STREAM_IDS);

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    while (none) {
        if (judge_sums(&k->run.daemon, k->run.stream, none, false, &v, why)) {
            ++*k->answered;
        }
        daemon_pause_us(20000);
    }
    _exit(0);
}

/* The wall clock of the daemon, where a library for that is installed; steady clocks stay true. */
static const char *find_clock(void)
{
    static const char path[] = "/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1";

    return access(path, R_OK) ? NULL : path;
}

static void set_clock(struct soak *k, const char *offset)
{
    char text[64];
    const int n = snprintf(text, sizeof text, "%s\n", offset);

    if (place_write(k->clock, text, (size_t)n)) {
        k->jumps++;
    }
}

static bool soak_open(struct soak *k, struct campaign *c)
{
    static const struct habit habit = {
        .name = "soak", .options = {"--raw-age", "1s", "--raw-bytes", "1M", "--keep-age", "0"}, .hours = 100};
    struct run *r = &k->run;

    if (!run_open(r, c, "soak")) {
        return false;
    }
    run_accustom(r, &habit);
    k->answered = mmap(NULL, sizeof *k->answered, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (k->answered == MAP_FAILED) {
        return false;
    }
    place_join(k->clock, r->folder, "clock");
    r->daemon.clock_library = find_clock();
    r->daemon.clock = k->clock;
    set_clock(k, "+0");
    r->stream->pause_ns = 3000000;
    r->stream->most = UPLOADS_MOST;
    if (!daemon_start(&r->daemon) || !daemon_await(&r->daemon, HANG_MS)) {
        return false;
    }
    r->client = stream_start(r->stream);
    k->asker = fork();
    if (k->asker == 0) {
        ask_for_ever(k);
    }
    return true;
}

/* The first half is one life, for its memory; in the second it is stopped and killed. */
static void soak_live(struct soak *k, double length)
{
    static const char *const offsets[] = {"+0", "+3600", "-86400", "+864000000", "+0"};
    const double began = now_seconds();
    struct run *r = &k->run;
    unsigned beat = 0;

    for (double at = 0; k->ok && at < length; at = now_seconds() - began) {
        daemon_pause_us(PERIOD_MS * 1000);
        if (at < length / 2) {
            /* A tenth of them is enough for hours. */
            if (length < 100 || beat % (unsigned)(length / 100 * 3 + 1) == 0) {
                growth_add(&k->growth, r->daemon.pid, at);
            }
        } else if (beat % 20 == 0) {
            if (campaign_roll(r->campaign, 2)) {
                k->ok = daemon_stop(&r->daemon, 10000) == 0;
                k->stops++;
            } else {
                daemon_kill(&r->daemon);
                k->kills++;
            }
            k->ok = k->ok && daemon_start(&r->daemon) && daemon_await(&r->daemon, HANG_MS);
        } else if (beat % 7 == 0 && r->daemon.clock_library) {
            set_clock(k, offsets[campaign_roll(r->campaign, 5)]);
        }
        beat++;
        if (!daemon_alive(&r->daemon)) {
            k->ok = false;
        }
    }
}

void campaign_soak(struct campaign *c, unsigned length)
{
    static struct soak k;
    double most = 0;

    k = (struct soak){.ok = true};
    k.ok = soak_open(&k, c);
    if (k.ok) {
        soak_live(&k, length);
    }
    if (!k.ok) {
        daemon_show_log(&k.run.daemon);
    }
    if (k.run.daemon.clock_library) {
        set_clock(&k, "+0");
    }
    if (k.asker > 0) {
        kill(k.asker, SIGKILL);
        waitpid(k.asker, NULL, 0);
    }
    k.ok = k.ok && run_settle(&k.run, "soak");
    for (size_t i = 0; i < k.growth.n; i++) {
        most = k.growth.bytes[i] > most ? k.growth.bytes[i] : most;
    }
    judge_point(&c->tally, k.ok && k.answered && *k.answered > 0 && most < 512e6,
                "soak: %u s, %llu reports, %u stops, %u kills, %u clock jumps, at most %.1f MiB, growing by %.2f MiB "
                "an hour: sums exact",
                length, (unsigned long long)(k.answered ? *k.answered : 0), k.stops, k.kills,
                k.run.daemon.clock_library ? k.jumps : 0, most / 1048576, growth_slope(&k.growth) * 3600 / 1048576);
    run_close(&k.run);
}
