/* make crash: kills, power cuts, failing disks. Usage: crash PROFD FAULT-LIBRARY
 * [kills=N] [cuts=N] [eio=N] [points=STEP] [soak=SECONDS] [seed=S] */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/crash/campaign.h"

static volatile sig_atomic_t worker; /* the process that does it all */

static void on_signal(int number)
{
    if (worker > 0) {
        kill((pid_t)worker, number == SIGINT ? SIGINT : SIGKILL);
    }
}

struct wishes {
    uint64_t kills, cuts, eio, points, soak, seed;
};

static bool take_wish(struct wishes *w, const char *text)
{
    const struct {
        const char *name;
        uint64_t *value;
    } all[] = {{"kills=", &w->kills},   {"cuts=", &w->cuts}, {"eio=", &w->eio},
               {"points=", &w->points}, {"soak=", &w->soak}, {"seed=", &w->seed}};

    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        const size_t n = strlen(all[i].name);
        char *end;

        if (strncmp(text, all[i].name, n)) {
            continue;
        }
        *all[i].value = strtoull(text + n, &end, 10);
        return *end == 0 && end != text + n;
    }
    return false;
}

static void run_parts(struct campaign *c, const struct wishes *w)
{
    if (w->kills) {
        campaign_kills_control(c);
        campaign_kills(c, (unsigned)w->kills);
    }
    if (w->points) {
        campaign_points(c, (unsigned)w->points);
    }
    if (w->cuts) {
        campaign_cuts(c, (unsigned)w->cuts);
    }
    if (w->eio) {
        campaign_errors(c, (unsigned)w->eio);
    }
    if (w->soak) {
        campaign_soak(c, (unsigned)w->soak);
    }
}

static int work(struct campaign *c, const struct wishes *w)
{
    const struct tally *t = &c->tally;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    signal(SIGINT, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
    c->mounts = (w->cuts || w->eio) && place_unshare();
    printf("# seed=%" PRIu64 "\n", w->seed);
    run_parts(c, w);
    printf("1..%" PRIu64 "\n", t->points);
    printf("# %" PRIu64 " comparisons, %" PRIu64 " repeats of acknowledged uploads, %" PRIu64 " refusals, %" PRIu64
           " executables, %" PRIu64 " half there, %" PRIu64 " damaged, %" PRIu64 " sums, %" PRIu64 " retired\n",
           t->checks, t->repeated, t->refused, t->executables, t->half, t->damaged, t->rollups, t->retired);
    printf("crash: %" PRIu64 " kills, %" PRIu64 " cuts, %" PRIu64 " rounds of EIO, %" PRIu64 " acknowledged, %" PRIu64
           " lost, %" PRIu64 " double\n",
           t->kills, t->cuts, t->rounds, t->acknowledged, t->lost, t->doubled);
    return t->failed || t->lost || t->doubled || t->half || t->damaged;
}

/* However the worker ends: its children die with it, its mounts with its name space, and its files are removed here. */
static int clean_up(const struct campaign *c)
{
    int status = 0;

    while (waitpid((pid_t)worker, &status, 0) < 0 && errno == EINTR) {
    }
    place_remove(c->folder);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int main(int argc, char **argv)
{
    struct wishes w = {.seed = (uint64_t)time(NULL)};
    struct campaign c = {.program = argc > 2 ? argv[1] : NULL, .preload = argc > 2 ? argv[2] : NULL};

    for (int i = 3; i < argc; i++) {
        if (!take_wish(&w, argv[i])) {
            c.program = NULL;
        }
    }
    if (!c.program) {
        fprintf(stderr, "usage: crash PROFD FAULT-LIBRARY [kills=N] [cuts=N] [eio=N] [points=STEP] "
                        "[soak=SECONDS] [seed=S]\n");
        return 64;
    }
    if (!place_make(c.folder)) {
        perror("crash: no temporary folder");
        return 73;
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGINT, on_signal);
    signal(SIGTERM, on_signal);
    c.random = w.seed * 2 + 1;
    worker = fork();
    if (worker == 0) {
        return work(&c, &w);
    }
    return clean_up(&c);
}
