/* One database: a folder, a daemon, a client. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tests/crash/campaign.h"

#define START_MS HANG_MS
#define SETTLE_MS HANG_MS

uint32_t campaign_roll(struct campaign *c, uint32_t below)
{
    c->random ^= c->random << 13;
    c->random ^= c->random >> 7;
    c->random ^= c->random << 17;
    return (uint32_t)(c->random >> 32) % below;
}

char *campaign_folder(const struct campaign *c, const char *name, char out[PLACE_PATH])
{
    place_join(out, c->folder, name);
    place_remove(out);
    mkdir(out, 0700);
    return out;
}

bool run_open(struct run *r, struct campaign *c, const char *name)
{
    *r = (struct run){.campaign = c};
    campaign_folder(c, name, r->folder);
    daemon_init(&r->daemon, c->program, r->folder, "s");
    r->stream = stream_new(r->daemon.socket);
    return r->stream != NULL;
}

bool run_look(struct run *r)
{
    uint8_t *acked = judge_note(r->stream);
    char why[512] = "";
    struct verdict v;
    bool ok = acked && judge_sums(&r->daemon, r->stream, acked, false, &v, why);

    if (ok) {
        ok = judge_add(&r->campaign->tally, &v, r->folder);
    } else {
        printf("# %s: %s\n", r->folder, why);
    }
    r->checks++;
    free(acked);
    return ok;
}

static bool run_complain(struct run *r, const char *what, const char *why)
{
    printf("# %s: %s\n", what, why);
    daemon_show_log(&r->daemon);
    return false;
}

/* Sums and totals are read one after the other: a day may be removed between them, not for ever. */
static bool run_add_up(struct run *r, struct verdict *v, char why[512])
{
    uint8_t *acked = judge_note(r->stream);
    bool ok = false;

    for (unsigned tries = 0; acked && !ok && tries < 5; tries++) {
        ok = judge_sums(&r->daemon, r->stream, acked, true, v, why) && judge_totals(&r->daemon, r->stream, v, why) &&
             judge_stacks(&r->daemon, v, why);
    }
    free(acked);
    return ok;
}

/* Sums, then the ledger, with the daemon alive. */
static bool run_compare(struct run *r, const char *what)
{
    uint8_t *acked = judge_note(r->stream);
    char why[512] = "no memory";
    struct verdict v;
    bool ok = acked && judge_sums(&r->daemon, r->stream, acked, true, &v, why);

    free(acked);
    if (!ok) {
        return run_complain(r, what, why);
    }
    if (!judge_add(&r->campaign->tally, &v, what)) {
        ok = run_complain(r, what, "the sums are wrong");
    }
    if (!judge_executable(&r->daemon, r->stream, why)) {
        r->campaign->tally.lost++;
        ok = run_complain(r, what, why);
    }
    r->campaign->tally.executables += r->stream->executable_acked;
    if (!judge_ledger(&r->daemon, why) || !run_add_up(r, &v, why)) {
        r->campaign->tally.damaged++;
        ok = run_complain(r, what, why);
    }
    r->campaign->tally.rollups += v.rollups;
    r->campaign->tally.retired += v.retired;
    return ok;
}

bool run_settle(struct run *r, const char *what)
{
    struct tally *t = &r->campaign->tally;
    char why[512] = "";
    bool ok = true;

    if (!daemon_alive(&r->daemon) && !daemon_start(&r->daemon)) {
        return run_complain(r, what, "profd cannot be started");
    }
    if (!daemon_await(&r->daemon, START_MS)) {
        return run_complain(r, what, "profd does not come up");
    }
    if (!stream_settle(r->stream, SETTLE_MS)) {
        return run_complain(r, what, r->stream->reason[0] ? r->stream->reason : "uploads are not acknowledged");
    }
    ok = run_compare(r, what);
    for (unsigned i = 0; i < STREAM_LANES; i++) {
        t->repeated += r->stream->lanes[i].repeated;
        t->refused += r->stream->lanes[i].refused;
        t->doubled += r->stream->lanes[i].contradicted;
        if (r->stream->lanes[i].rejected) {
            ok = run_complain(r, what, r->stream->reason);
        }
    }
    t->acknowledged += stream_acked(r->stream);
    daemon_kill(&r->daemon);
    if (!judge_integrity(&r->daemon, r->folder, why)) {
        t->damaged++;
        ok = run_complain(r, what, why);
    }
    return ok;
}

void run_close(struct run *r)
{
    if (r->stream) {
        stream_stop(r->stream, r->client);
    }
    daemon_kill(&r->daemon);
    stream_free(r->stream);
    place_remove(r->folder);
}
