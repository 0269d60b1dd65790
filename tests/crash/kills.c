/* SIGKILL at random moments: while it starts, while it stores, while it puts its files in order. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "tests/crash/campaign.h"

#define KILLS_EACH 50u /* kills of one database */
#define ENOUGH 10u     /* kills after which it must have done what it was to be killed in */
#define LONGER 6u      /* further kills until it has, each life twice as long: a busy machine gets less done */

static double seconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* One life: a quarter of the daemons die while they start. Now and then what the last kill left is counted. */
static bool live_and_die(struct run *r, const struct habit *h)
{
    struct campaign *c = r->campaign;
    bool ok = true;

    if (!daemon_start(&r->daemon)) {
        return false;
    }
    if (campaign_roll(c, 4) == 0) {
        daemon_pause_us(campaign_roll(c, 15000));
    } else {
        if (!daemon_await(&r->daemon, HANG_MS)) {
            printf("# profd does not come up after a kill\n");
            daemon_show_log(&r->daemon);
            return false;
        }
        if (campaign_roll(c, 8) == 0) {
            ok = run_look(r);
        }
        daemon_pause_us(campaign_roll(c, h->life_us));
    }
    daemon_kill(&r->daemon);
    c->tally.kills++;
    return ok;
}

static bool kill_often(struct run *r, const struct habit *h, unsigned kills)
{
    run_accustom(r, h);
    r->client = stream_start(r->stream);
    for (unsigned i = 0; i < kills; i++) {
        if (!live_and_die(r, h)) {
            return false;
        }
    }
    return true;
}

/* One database and its kills. */
static bool kill_run(struct campaign *c, const struct habit *h, unsigned kills)
{
    struct run r;
    const bool ok = run_open(&r, c, "kills") && kill_often(&r, h, kills) && run_settle(&r, h->name);

    run_close(&r);
    return ok;
}

/* True if since this tally the daemons did what their habit is named after. */
static bool did_it(const struct campaign *c, const struct habit *h, const struct tally *before)
{
    return (!h->hours || c->tally.rollups > before->rollups) && (!h->keep || c->tally.retired > before->retired);
}

static void kill_habit(struct campaign *c, const struct habit *h, unsigned kills)
{
    const double began = seconds();
    const struct tally before = c->tally;
    struct habit longer = *h;
    unsigned done = 0, bad = 0;
    double took;

    while (done < kills && bad < 3) {
        const unsigned n = kills - done < KILLS_EACH ? kills - done : KILLS_EACH;

        bad += !kill_run(c, h, n);
        done += n;
    }
    for (unsigned i = 0; kills >= ENOUGH && !bad && i < LONGER && !did_it(c, h, &before); i++) {
        longer.life_us *= 2;
        bad += !kill_run(c, &longer, 1);
        done++;
    }
    took = seconds() - began;
    if (kills >= ENOUGH && !did_it(c, h, &before)) {
        printf("# %s: it did nothing of the kind\n", h->name);
        bad++;
    }
    judge_point(&c->tally, !bad, "%u kills while %s (%.0f a minute): %llu acknowledged uploads are there exactly once",
                done, h->name, done * 60 / took, (unsigned long long)(c->tally.acknowledged - before.acknowledged));
}

void campaign_kills(struct campaign *c, unsigned kills)
{
    const unsigned tenth = kills / 10;

    for (unsigned i = 1; i < HABITS; i++) {
        kill_habit(c, &habits[i], tenth);
    }
    kill_habit(c, &habits[HABIT_PLAIN], kills - (HABITS - 1) * tenth);
}

/* A client that errs must be found out by the sums; its errors do not count. */
static void try_control(struct campaign *c, bool early, bool forgetful, struct tally *t)
{
    struct campaign apart = *c;
    struct run r;

    apart.tally = (struct tally){.kills = 0};
    if (run_open(&r, &apart, "control")) {
        r.stream->early = early;
        r.stream->forgetful = forgetful;
        r.client = stream_start(r.stream);
        for (unsigned i = 0; i < 300 && !apart.tally.lost && !apart.tally.doubled; i++) {
            live_and_die(&r, &habits[HABIT_PLAIN]);
        }
        if (daemon_start(&r.daemon) && daemon_await(&r.daemon, HANG_MS)) {
            if (forgetful) {
                stream_settle(r.stream, 5000);
            }
            run_look(&r);
        }
    }
    run_close(&r);
    *t = apart.tally;
}

/* Some uploads without their stack are exactly what the judge says is wrong; with them nothing is. */
static bool find_stacks(struct campaign *c, bool unstacked, char why[512])
{
    struct campaign apart = *c;
    struct verdict v = {.present = 0};
    struct run r;
    bool agree = false, settled = false;

    apart.tally = (struct tally){.kills = 0};
    if (run_open(&r, &apart, "control")) {
        r.stream->unstacked = unstacked;
        r.stream->most = 1000;
        if (daemon_start(&r.daemon) && daemon_await(&r.daemon, HANG_MS)) {
            r.client = stream_start(r.stream);
            settled = stream_done(r.stream, HANG_MS);
        }
        uint8_t *acked = judge_note(r.stream);
        settled = settled && acked && judge_sums(&r.daemon, r.stream, acked, true, &v, why) && !v.lost && !v.half;
        agree = settled && judge_stacks(&r.daemon, &v, why);
        free(acked);
    }
    run_close(&r);
    return settled && v.stack_ticks > 0 && agree == !unstacked;
}

void campaign_kills_control(struct campaign *c)
{
    struct tally t;
    char why[512] = "nothing was sent";

    try_control(c, true, false, &t);
    judge_point(&c->tally, t.lost > 0,
                "control: acknowledged before the commit, %llu uploads are found lost after %llu kills",
                (unsigned long long)t.lost, (unsigned long long)t.kills);
    try_control(c, false, true, &t);
    judge_point(&c->tally, t.doubled > 0,
                "control: sent again under another id, %llu uploads are found double after %llu kills",
                (unsigned long long)t.doubled, (unsigned long long)t.kills);
    bool found = find_stacks(c, false, why);
    judge_point(&c->tally, found, "without a fault %s", why);
    found = find_stacks(c, true, why);
    judge_point(&c->tally, found, "control: uploads without their stacks are found: %s", why);
}
