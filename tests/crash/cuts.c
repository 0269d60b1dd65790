/* Power cuts: the daemon stops in mid-air, what the disk holds at that moment is copied, and a second daemon is started
 * on the copy. What was acknowledged by then must be there. Whatever only the page cache knew is not in the copy. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/crash/campaign.h"
#include "tests/crash/image.h"
#include "tests/crash/points.h"

#define CUTS_EACH 25u /* cuts of one database */
#define IMAGE_MIB 96u

/* A database on a disk of its own. */
struct disk {
    struct run run;
    char image[PLACE_PATH], mount[PLACE_PATH], cut[PLACE_PATH], cut_mount[PLACE_PATH], fault_path[PLACE_PATH];
    struct fault *fault;
};

static bool disk_open(struct disk *k, struct campaign *c, char why[128])
{
    struct run *r = &k->run;

    *k = (struct disk){.fault = NULL};
    snprintf(why, 128, "no memory");
    if (!run_open(r, c, "cuts")) {
        return false;
    }
    place_join(k->image, r->folder, "image");
    place_join(k->mount, r->folder, "disk");
    place_join(k->cut, r->folder, "cut");
    place_join(k->cut_mount, r->folder, "cut-disk");
    place_join(r->daemon.state, k->mount, "db");
    snprintf(why, 128, "mkfs.ext4 makes no file system here");
    return image_make(k->image, IMAGE_MIB) && image_mount(k->image, k->mount, false, why);
}

static void disk_close(struct disk *k)
{
    struct run *r = &k->run;

    if (r->stream) {
        stream_stop(r->stream, r->client);
    }
    r->client = 0;
    daemon_kill(&r->daemon);
    image_unmount(k->mount);
    if (k->fault) {
        munmap(k->fault, sizeof *k->fault);
    }
    run_close(r);
}

/* Starts a daemon on the copy and compares. */
static bool look_at_copy(struct disk *k, const uint8_t *acked)
{
    struct run *r = &k->run;
    struct campaign *c = r->campaign;
    struct daemon second = r->daemon;
    char why[512] = "profd does not come up on it", path[PLACE_PATH];
    struct verdict v;
    bool ok;

    if (!image_mount(k->cut, k->cut_mount, false, why)) {
        printf("# the copy cannot be mounted: %s\n", why);
        return false;
    }
    second.pid = 0;
    second.fault = NULL;
    place_join(second.state, k->cut_mount, "db");
    snprintf(second.socket, sizeof second.socket, "%.107s", place_join(path, r->folder, "s2"));
    place_join(second.log, r->folder, "log2");
    ok = daemon_start(&second) && daemon_await(&second, HANG_MS) &&
         judge_sums(&second, r->stream, acked, false, &v, why) && judge_ledger(&second, why);
    daemon_kill(&second);
    if (!ok) {
        c->tally.damaged++;
        printf("# after a power cut: %s\n", why);
        daemon_show_log(&second);
    } else {
        ok = judge_add(&c->tally, &v, "after a power cut");
    }
    if (ok && !judge_integrity(&second, r->folder, why)) {
        c->tally.damaged++;
        ok = false;
        printf("# after a power cut: %s\n", why);
    }
    return image_unmount(k->cut_mount) && ok;
}

static bool cut_power(struct disk *k)
{
    struct run *r = &k->run;
    struct campaign *c = r->campaign;
    uint8_t *acked;
    bool ok;

    daemon_pause_us(2000 + campaign_roll(c, 60000));
    if (!daemon_freeze(&r->daemon)) {
        printf("# profd cannot be stopped: it ended\n");
        daemon_show_log(&r->daemon);
        return false;
    }
    acked = judge_note(r->stream);
    ok = acked && place_copy_file(k->image, k->cut);
    if (!ok) {
        printf("# the image cannot be copied\n");
    }
    ok = ok && look_at_copy(k, acked);
    daemon_thaw(&r->daemon);
    free(acked);
    c->tally.cuts++;
    return ok;
}

static bool cut_often(struct disk *k, const struct habit *h, unsigned cuts)
{
    struct run *r = &k->run;

    run_accustom(r, h);
    bool ok = daemon_start(&r->daemon) && daemon_await(&r->daemon, HANG_MS);

    r->client = stream_start(r->stream);
    for (unsigned i = 0; ok && i < cuts; i++) {
        ok = cut_power(k);
        /* The machine itself goes down at times, too. */
        if (ok && campaign_roll(r->campaign, 4) == 0) {
            daemon_kill(&r->daemon);
            ok = daemon_start(&r->daemon) && daemon_await(&r->daemon, HANG_MS);
        }
    }
    return ok;
}

/* The process dies between writing the log and syncing it; the next one finds those uploads stored and says so to who
 * repeats them. From then on they must survive a power cut, although nothing new was written. */
static bool cut_after_repeats(struct disk *k)
{
    struct run *r = &k->run;
    uint8_t *acked = NULL;
    bool ok;

    r->daemon.preload = r->campaign->preload;
    r->daemon.fault = place_join(k->fault_path, r->folder, "fault");
    k->fault = points_share(k->fault_path);
    ok = k->fault && daemon_start(&r->daemon) && daemon_await(&r->daemon, HANG_MS);
    r->stream->in_flight = 1;
    r->client = stream_start(r->stream);
    daemon_pause_us(20000 + campaign_roll(r->campaign, 20000));
    if (ok) {
        k->fault->kinds = FAULT_SYNC;
        k->fault->at = 1;
        k->fault->action = FAULT_KILL;
        ok = daemon_wait(&r->daemon, HANG_MS) == -1 && k->fault->hits;
    }
    r->stream->stop = 1;
    r->daemon.fault = NULL;
    ok = ok && daemon_start(&r->daemon) && daemon_await(&r->daemon, HANG_MS) && stream_settle(r->stream, HANG_MS) &&
         daemon_freeze(&r->daemon);
    acked = judge_note(r->stream);
    ok = ok && acked && place_copy_file(k->image, k->cut) && look_at_copy(k, acked);
    daemon_thaw(&r->daemon);
    free(acked);
    r->campaign->tally.cuts++;
    return ok;
}

static void cuts_of_repeats(struct campaign *c, unsigned rounds)
{
    unsigned bad = 0, done = 0;
    char why[128];
    struct disk k;

    for (; done < rounds && bad < 3; done++) {
        if (!disk_open(&k, c, why) || !cut_after_repeats(&k) || !run_settle(&k.run, "after a power cut")) {
            bad++;
        }
        disk_close(&k);
    }
    judge_point(&c->tally, !bad,
                "%u times killed before a sync, repeated, and the power cut: nothing acknowledged is lost", done);
}

/* The same with a disk that is told nothing about the log, which is what synchronous=NORMAL amounts to between
 * checkpoints. */
static void cuts_control(struct campaign *c)
{
    struct campaign apart = *c;
    struct disk k;
    char why[128];
    bool ok;

    apart.tally = (struct tally){.cuts = 0};
    ok = disk_open(&k, &apart, why);
    if (ok) {
        k.run.daemon.preload = c->preload;
        k.run.daemon.fault = place_join(k.fault_path, k.run.folder, "fault");
        k.fault = points_share(k.fault_path);
        ok = k.fault != NULL;
    }
    if (ok) {
        k.fault->kinds = FAULT_SYNC;
        k.fault->action = FAULT_LIE;
        ok = daemon_start(&k.run.daemon) && daemon_await(&k.run.daemon, HANG_MS);
        k.run.client = stream_start(k.run.stream);
        for (unsigned i = 0; ok && i < 10 && !apart.tally.lost; i++) {
            cut_power(&k);
        }
        ok = k.fault->hits > 0;
    }
    disk_close(&k);
    judge_point(
        &c->tally, ok && apart.tally.lost > 0,
        "control: with syncs of the log that do nothing, %llu acknowledged uploads are found lost after %llu cuts",
        (unsigned long long)apart.tally.lost, (unsigned long long)apart.tally.cuts);
}

void campaign_cuts(struct campaign *c, unsigned cuts)
{
    const uint64_t acked = c->tally.acknowledged;
    unsigned done = 0, bad = 0;
    char why[128] = "private mounts are not allowed";
    const struct habit *h = NULL;
    struct disk k;

    if (!c->mounts || !disk_open(&k, c, why)) {
        if (c->mounts) {
            disk_close(&k);
        }
        judge_skip(&c->tally, "power cuts", why);
        return;
    }
    disk_close(&k);
    cuts_control(c);
    cuts_of_repeats(c, cuts < 50 ? 3 : 3 + cuts / 50);
    while (done < cuts && bad < 3) {
        const unsigned n = cuts - done < CUTS_EACH ? cuts - done : CUTS_EACH;

        h = &habits[h == &habits[HABIT_PLAIN] ? HABIT_RETENTION : HABIT_PLAIN];
        if (!disk_open(&k, c, why) || !cut_often(&k, h, n) || !run_settle(&k.run, "after power cuts")) {
            bad++;
        }
        disk_close(&k);
        done += n;
    }
    judge_point(&c->tally, !bad,
                "%u power cuts on a journalled file system: of %llu acknowledged uploads each is there exactly once",
                done, (unsigned long long)(c->tally.acknowledged - acked));
}
