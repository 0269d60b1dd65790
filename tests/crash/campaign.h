/* The parts of the campaign. Each adds to the tally and prints TAP points. */
#ifndef PROFD_TESTS_CRASH_CAMPAIGN_H
#define PROFD_TESTS_CRASH_CAMPAIGN_H

#include <stdbool.h>
#include <stdint.h>

#include "tests/crash/daemon.h"
#include "tests/crash/fault.h"
#include "tests/crash/judge.h"
#include "tests/crash/stream.h"

struct campaign {
    const char *program, *preload; /* profd, and the fault library */
    char folder[PLACE_PATH];
    bool mounts; /* private mounts are allowed */
    uint64_t random;
    struct tally tally;
};

/* A number below n; the same from the same seed. */
uint32_t campaign_roll(struct campaign *c, uint32_t below);
/* A folder of its own below the campaign's, made anew; returns out. */
char *campaign_folder(const struct campaign *c, const char *name, char out[PLACE_PATH]);

/* One database with its daemon and its client. */
struct run {
    struct campaign *campaign;
    char folder[PLACE_PATH];
    struct daemon daemon;
    struct stream *stream;
    pid_t client;
    uint64_t checks;
};
/* What the daemon is told to do with its uploads besides storing them. */
struct habit {
    const char *name;
    const char *options[DAEMON_OPTIONS];
    uint32_t hours;   /* windows of the uploads lie in so many */
    int64_t keep;     /* as of struct stream */
    unsigned life_us; /* until it is killed, at most; long enough for what it is to be killed in */
};
enum { HABIT_PLAIN, HABIT_SUMS, HABIT_RETENTION, HABITS };
extern const struct habit habits[HABITS];
/* Of a run that was just opened. */
void run_accustom(struct run *r, const struct habit *h);
/* Makes folder and client; the daemon does not run yet. */
bool run_open(struct run *r, struct campaign *c, const char *name);
/* Compares while the client goes on: what was acknowledged before the question must be in the answer. */
bool run_look(struct run *r);
/* The end of a database: everything that was begun is delivered, then counted exactly once; ledger and integrity are
 * clean. The daemon must be able to serve. False: something is wrong, and was said. */
bool run_settle(struct run *r, const char *what);
/* Ends client and daemon and removes the folder. */
void run_close(struct run *r);

/* kills.c: SIGKILL at random moments. */
void campaign_kills(struct campaign *c, unsigned kills);
/* As above with acknowledgements before the commit: must be found out. */
void campaign_kills_control(struct campaign *c);
/* cuts.c: power cuts on a journalled file system of its own, and with syncs of the log that do nothing. */
void campaign_cuts(struct campaign *c, unsigned cuts);
/* errors.c: a disk whose blocks cannot be written any more. */
void campaign_errors(struct campaign *c, unsigned rounds);
/* points.c: every step-th operation of the daemon on its database fails in every way. */
void campaign_points(struct campaign *c, unsigned step);
/* soak.c: everything at once, for so many seconds. */
void campaign_soak(struct campaign *c, unsigned seconds);

#endif
