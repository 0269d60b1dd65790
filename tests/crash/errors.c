/* A disk that cannot be written any more: an ext4 with a journal lies sparse on a tmpfs that gets filled, so that the
 * kernel itself reports the errors, to writes and to syncs, and perhaps goes read-only; or the device is gone
 * altogether. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/crash/campaign.h"
#include "tests/crash/image.h"

#define MEMORY_KIB (24u << 10)
#define IMAGE_MIB 128u

enum bad_disk_way { BAD_BLOCKS, BAD_BLOCKS_READ_ONLY, GONE, BAD_WAYS };

struct bad_disk {
    struct run run;
    enum bad_disk_way way;
    char memory[PLACE_PATH], image[PLACE_PATH], filler[PLACE_PATH], mount[PLACE_PATH];
};

static bool bad_disk_open(struct bad_disk *k, struct campaign *c, char why[128])
{
    struct run *r = &k->run;

    *k = (struct bad_disk){.run = {.campaign = c}, .way = (enum bad_disk_way)campaign_roll(c, BAD_WAYS)};
    snprintf(why, 128, "no tmpfs may be mounted");
    if (!run_open(r, c, "errors")) {
        return false;
    }
    place_join(k->memory, r->folder, "memory");
    place_join(k->image, k->memory, "image");
    place_join(k->filler, k->memory, "filler");
    place_join(k->mount, r->folder, "disk");
    place_join(r->daemon.state, k->mount, "db");
    if (!image_mount_memory(k->memory, MEMORY_KIB)) {
        return false;
    }
    snprintf(why, 128, "mkfs.ext4 makes no file system here");
    if (!image_make(k->image, IMAGE_MIB) || !image_mount(k->image, k->mount, k->way == BAD_BLOCKS_READ_ONLY, why)) {
        return false;
    }
    snprintf(why, 128, "the requests of a loop device cannot be shortened");
    return image_limit_requests(k->mount, 4);
}

static void bad_disk_close(struct bad_disk *k)
{
    struct run *r = &k->run;

    if (r->stream) {
        stream_stop(r->stream, r->client);
    }
    r->client = 0;
    daemon_kill(&r->daemon);
    unlink(k->filler);
    image_limit_requests(k->mount, IMAGE_REQUEST_USUAL);
    image_unmount(k->mount);
    image_unmount(k->memory);
    run_close(r);
}

/* Takes all the room that the image could still grow into. */
static bool fill(const char *path)
{
    static char block[65536];
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    size_t n = sizeof block;

    memset(block, 'x', sizeof block);
    while (fd >= 0 && n) {
        const ssize_t written = write(fd, block, n);

        if (written < 0 && errno != ENOSPC) {
            break;
        }
        if (written < (ssize_t)n) {
            n /= 2;
        }
    }
    if (fd >= 0) {
        close(fd);
    }
    return fd >= 0 && n == 0;
}

static bool complain(struct bad_disk *k, const char *what)
{
    printf("# a disk that %s: %s; last refusal: %s\n",
           k->way == GONE         ? "goes"
           : k->way == BAD_BLOCKS ? "gets bad"
                                  : "gets bad and read-only",
           what, k->run.stream->reason);
    daemon_show_log(&k->run.daemon);
    return false;
}

/* The disk fails; what is demanded of the daemon meanwhile. */
static bool endure(struct bad_disk *k)
{
    struct run *r = &k->run;
    uint64_t acked;

    for (unsigned i = 0; i < 20000 && daemon_alive(&r->daemon) && r->stream->last_status != PROFD_IO; i++) {
        daemon_pause_us(1000);
    }
    if (r->daemon.managed) {
        return daemon_wait(&r->daemon, HANG_MS) == 74 || complain(k, "under a supervisor it does not exit with 74");
    }
    if (r->stream->last_status != PROFD_IO) {
        return complain(k, "an input/output error is not said to be one");
    }
    daemon_pause_us(5000);
    acked = stream_acked(r->stream);
    daemon_pause_us(20000);
    if (stream_acked(r->stream) != acked) {
        return complain(k, "it acknowledges again");
    }
    if (k->way != GONE && !run_look(r)) { /* such a disk cannot be read either */
        return complain(k, "questions are not answered any more");
    }
    return daemon_alive(&r->daemon) || complain(k, "it ended");
}

/* One life of a disk: good, bad, and good again. */
static bool live_through(struct bad_disk *k)
{
    struct run *r = &k->run;
    char why[128];

    run_accustom(r, &habits[campaign_roll(r->campaign, 2) ? HABIT_RETENTION : HABIT_PLAIN]);
    r->daemon.managed = campaign_roll(r->campaign, 2) == 0;
    r->stream->pause_ns = 1000000; /* or the disk is full of uploads before it is bad */
    if (!daemon_start(&r->daemon) || !daemon_await(&r->daemon, HANG_MS)) {
        return complain(k, "profd does not start");
    }
    r->client = stream_start(r->stream);
    daemon_pause_us(20000 + campaign_roll(r->campaign, 400000));
    if (!(k->way == GONE ? image_shut_down(k->mount) : fill(k->filler))) {
        return complain(k, "it could not be made to fail");
    }
    if (!endure(k)) {
        return false;
    }
    daemon_kill(&r->daemon);
    r->daemon.managed = false;
    r->stream->last_status = 0;
    unlink(k->filler);
    if (!image_unmount(k->mount) || !image_mount(k->image, k->mount, k->way == BAD_BLOCKS_READ_ONLY,
                                                 why)) { /* drops what only the page cache knew */
        return complain(k, "the disk cannot be mounted again");
    }
    return image_limit_requests(k->mount, IMAGE_REQUEST_USUAL);
}

static const char *const after_words[BAD_WAYS] = {"after bad blocks", "after bad blocks, read-only",
                                                  "after a disk that went away"};

void campaign_errors(struct campaign *c, unsigned rounds)
{
    const uint64_t acked = c->tally.acknowledged;
    char why[128] = "private mounts are not allowed";
    unsigned done = 0, bad = 0;
    struct bad_disk k;

    if (!c->mounts || !bad_disk_open(&k, c, why)) {
        if (c->mounts) {
            bad_disk_close(&k);
        }
        judge_skip(&c->tally, "a failing disk", why);
        return;
    }
    bad_disk_close(&k);
    for (; done < rounds && bad < 3; done++) {
        if (!bad_disk_open(&k, c, why) || !live_through(&k) || !run_settle(&k.run, after_words[k.way])) {
            bad++;
        } else {
            c->tally.rounds++;
        }
        bad_disk_close(&k);
    }
    judge_point(
        &c->tally, !bad,
        "%u times the kernel reported errors of the disk: of %llu acknowledged uploads each is there exactly once",
        done, (unsigned long long)(c->tally.acknowledged - acked));
}
